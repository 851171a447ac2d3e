"""Worker rows: the state of a fit on a cluster, written by the workers that hold its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringleader.errors import WorkerLost
from ringleader.learners.cluster import ClusterLearner
from ringleader.model.state import State
from ringleader.runtime.peers import Peers
from ringleader.snapshot.lease import LOCK
from ringleader.snapshot.pieces import Cuts, write_piece
from ringleader.snapshot.place import Entry, Place, Store, place_of


class WorkerRows:
    """Writes the pieces of a state where their rows are. What is written does not depend on who writes it."""

    def __init__(self, learner: ClusterLearner) -> None:
        self.learner = learner
        self._sees: dict[str, bool] = {}

    def holds(self, state: State) -> bool:
        return self.learner.holds(state)

    def write(self, state: State, place: Place, cuts: Cuts, names: list[str]) -> list[Entry] | None:
        """The entries of the pieces; None where a worker is gone, or does not see the folder of another machine."""
        key = place.key()
        if key not in self._sees:
            self._sees[key] = isinstance(place, Store) or self._all_see(place)
        if not self._sees[key]:
            return None
        try:
            return self.learner.write_rows(state, cuts.spans, _WritePiece(key, names))
        except WorkerLost:
            return None  # the driver has the state too; the next sweep starts new workers

    def _all_see(self, place: Place) -> bool:
        """Whether every worker finds the lock that this process holds in the folder."""
        with place.open(LOCK) as handle:
            content = handle.read()
        workers = self.learner.workers
        try:
            return all(workers.run(_sees_lock, [(place.key(), content)] * workers.count))
        except WorkerLost:
            return False


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
