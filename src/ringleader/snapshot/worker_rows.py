"""Worker rows: arrays of a model written by the workers that hold their rows. Who writes changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ringleader.errors import WorkerLost
from ringleader.judge.cluster import HeldSignals
from ringleader.learners.cluster import ClusterLearner
from ringleader.model.state import State
from ringleader.runtime.peers import Peers
from ringleader.snapshot.folder import ModelPart
from ringleader.snapshot.lease import LOCK
from ringleader.snapshot.pieces import Cuts, piece_of, write_piece
from ringleader.snapshot.place import Entry, Place, Store, place_of


class WorkerRows:
    """Writes the pieces of a state where their rows are, and of what the workers found (``signals``)."""

    def __init__(self, learner: ClusterLearner) -> None:
        self.learner = learner
        self.signals: HeldSignals | None = None
        self._sees: dict[str, bool] = {}

    def written(self, parts: Iterable[ModelPart], state: State) -> list[ModelPart]:
        """The parts of a model, those whose rows lie with the workers written by them."""
        with_workers = self.signals.with_workers if self.signals is not None else {}
        written = []
        for part in parts:
            if part.name == "state" and self.learner.holds(state):
                part = part._replace(write=partial(self._write_state, state))
            elif part.name in with_workers:
                part = part._replace(make=partial(_with_sizes, part, with_workers[part.name]))
                part = part._replace(write=partial(self._write_held, part))
            written.append(part)
        return written

    def _write_state(self, state: State, place: Place, cuts: Cuts, names: list[str]) -> list[Entry] | None:
        """The entries of the pieces; None where a worker is gone, or does not see the folder of another machine."""
        if len(names) == 1 or not self._seen(place):
            return None
        try:
            return self.learner.write_rows(state, cuts.spans, _WritePiece(place.key(), names))
        except WorkerLost:
            return None  # the driver has the state too; the next sweep starts new workers

    def _write_held(self, part: ModelPart, place: Place, cuts: Cuts, names: list[str]) -> list[Entry]:
        """The entries of the pieces. Where workers do not see the folder, they send the rows here."""
        signals = self.signals
        assert signals is not None  # else workers hold nothing
        arrays: Any = part.make()  # of those that lie with the workers the size alone
        if self._seen(place):
            here = {name: array for name, array in arrays.items() if name not in signals.with_workers[part.name]}
            return signals.write(part.name, here, cuts.spans, _WritePiece(place.key(), names))
        whole = arrays | signals.gathered(part.name)
        return [write_piece(place, name, piece_of(whole, span)) for name, span in zip(names, cuts.spans, strict=True)]

    def _seen(self, place: Place) -> bool:
        """Whether all workers see a folder."""
        key = place.key()
        if key not in self._sees:
            self._sees[key] = isinstance(place, Store) or self._all_see(place)
        return self._sees[key]

    def _all_see(self, place: Place) -> bool:
        """Whether every worker finds the lock that this process holds in the folder."""
        with place.open(LOCK) as handle:
            content = handle.read()
        workers = self.learner.workers
        try:
            return all(workers.run(_sees_lock, [(place.key(), content)] * workers.count))
        except WorkerLost:
            return False


def _with_sizes(part: ModelPart, held: dict[str, Any]) -> Any:
    """The arrays of a part, of those that lie with the workers the sizes."""
    arrays: Any = part.make()
    return arrays | held


class _WritePiece:
    """Writes a piece in a worker."""

    def __init__(self, folder: str, names: list[str]) -> None:
        self.folder, self.names = folder, names

    def __call__(self, number: int, arrays: Mapping[str, Any]) -> Entry:
        return write_piece(place_of(self.folder), self.names[number], arrays)


def _sees_lock(memory: dict[str, Any], peers: Peers, folder: str, content: bytes) -> bool:
    """In a worker: whether the lock of a folder is there as another process wrote it."""
    try:
        with place_of(folder).open(LOCK) as handle:
            return handle.read() == content
    except OSError:
        return False
