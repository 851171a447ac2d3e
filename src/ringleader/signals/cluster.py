"""Signals on workers: what the reviews alone say, found where the cells are, with the bits of one process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ringleader.arrays import Factors, Numbers
from ringleader.errors import WorkerLost
from ringleader.runtime.mapped import mapped_rows
from ringleader.runtime.peers import Peers
from ringleader.runtime.workers import Workers, repeat
from ringleader.shares.cells import CellShare, DealtCells, cut_entities, deal_shares
from ringleader.shares.rows import send_arrays
from ringleader.signals.lockstep import Lockstep, find_lockstep, joined_lockstep, start_rows
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.sparse import SparseTensor

FOUND = ("lockstep", "evidence", "label_free", "held")
"""Names in the memory of workers of what they found and keep: of reviews, and by part of a model."""
SOURCES = FOUND[:-1]
"""Those that are needed no more once heads are fitted: what of them is written is held by part."""


class ClusterSignals:
    """The signals of a tensor, found by workers; each of them holds the cells of a range of the first mode's entities.

    A worker that is lost costs the signals that were found: new workers get the cells, and find them again.
    """

    def __init__(
        self, workers: Workers, tensor: SparseTensor, actor: int, settings: LockstepSettings | None = None
    ) -> None:
        """settings : of lockstep."""
        self.workers, self.tensor, self.actor, self.settings = workers, tensor, actor, settings
        self.bounds = cut_entities(tensor, workers.count)
        self._dealt = self._has_lockstep = False
        self._restarts = workers.restarts

    def lockstep(self) -> Lockstep:
        """The direct scores of the cells; the rest stays with the workers, and its sizes are known."""
        parts: list[Lockstep] = self.run(_lockstep, self._lockstep_arguments)
        self._has_lockstep = True
        return joined_lockstep(parts, self.tensor.n_cells)

    def start_rows(self, rank: int, seed: int, dtype: str) -> Factors | None:
        """Rows of the actors to start a fit from, of this type; None where no pair is in lockstep."""

        def arguments() -> list[tuple[Any, ...]]:
            return [(self.bounds[self.actor], rank, seed, dtype)] * self.workers.count

        rows = self.run(_start_rows, arguments, before=[self.need_lockstep], cells=False)
        return None if rows[0] is None else mapped_rows(rows)

    @property
    def cells(self) -> list[slice]:
        """Which cells each worker holds."""
        return [slice(a, b) for a, b in itertools.pairwise(self.edges)]

    @property
    def edges(self) -> list[int]:
        """The first cell of each worker, and the number of cells."""
        places: list[int] = self.tensor.first_cells(self.bounds[0]).tolist()
        return places

    def release(self, results: Iterable[str] = ()) -> None:
        """Give back the memory of the workers: of their cells, and of the results that they hold under these names."""
        names = ("cells", *results)
        self._dealt = False
        self._has_lockstep = self._has_lockstep and "lockstep" not in names
        with suppress(WorkerLost):  # whoever needs the workers next starts new ones
            self.workers.run(_release, [(names,)] * self.workers.count)

    def run(
        self,
        call: Callable[..., Any],
        arguments: Callable[[], Sequence[tuple[Any, ...]]],
        before: Iterable[Callable[[], object]] = (),
        *,
        cells: bool = True,
        said: tuple[str, str] = ("find the signals", "the signals were looked for"),
    ) -> list[Any]:
        """``call(memory, peers, *arguments()[p])`` in every worker p, which holds its cells (``held_cells``).

        cells : whether it needs them. said : the work in words, see ``repeat``

        Arguments are asked for when the cells are dealt: new workers may be fewer. before : what is done first, before
        they hold the cells, and by new workers again; where one is lost in it, it raises.
        """

        def work() -> list[Any]:
            if self._restarts != self.workers.restarts:  # others who use them lost some
                self._forget()
            for step in before:
                step()
            if cells:
                self._deal()
            return self.workers.run(call, arguments())

        return repeat(self.workers, work, self._forget, *said)

    def _deal(self) -> None:
        """Have the workers hold their cells."""
        if not self._dealt:
            shares = deal_shares(self.tensor, self.bounds)
            send_arrays(self.workers, "sent", [{"codes": cells.codes, "counts": cells.counts} for cells in shares])
            self.workers.run(_hold, [(cells.without_rows(),) for cells in shares])
            self._dealt = True

    def need_lockstep(self) -> None:
        """Have the workers hold what lockstep says of their cells; for ``before``."""
        if not self._has_lockstep:
            self._deal()
            self.workers.run(_lockstep, self._lockstep_arguments())
            self._has_lockstep = True

    def _lockstep_arguments(self) -> list[tuple[Any, ...]]:
        return [(self.actor, self.settings, self.workers.threads)] * self.workers.count

    def _forget(self) -> None:
        """New workers hold nothing, and may be fewer."""
        self._dealt = self._has_lockstep = False
        self._restarts = self.workers.restarts
        if len(self.bounds[0]) != self.workers.count + 1:
            self.bounds = cut_entities(self.tensor, self.workers.count)


def _hold(memory: dict[str, Any], peers: Peers, cells: DealtCells) -> None:
    """In a worker: take cells, whose rows came before."""
    memory["cells"] = CellShare.received(peers, cells._replace(**memory.pop("sent")))


def _release(memory: dict[str, Any], peers: Peers, names: Iterable[str]) -> None:
    """In a worker: forget what it holds under some names."""
    for name in names:
        memory.pop(name, None)


def held_cells(memory: dict[str, Any], peers: Peers) -> CellShare:
    """In a worker: the cells that it holds."""
    share: CellShare = memory["cells"]
    share.peers = peers
    return share


def _lockstep(
    memory: dict[str, Any], peers: Peers, actor: int, settings: LockstepSettings | None, threads: int
) -> Lockstep:
    """In a worker: lockstep of its cells and actors."""
    share = held_cells(memory, peers)
    lockstep = find_lockstep(share, settings, actor=actor, threads=threads)
    share.forget()
    memory["lockstep"] = lockstep
    return lockstep.for_driver()


def _start_rows(
    memory: dict[str, Any], peers: Peers, begins: Numbers, rank: int, seed: int, dtype: str
) -> Factors | None:
    """In a worker: rows of its own actors to start a fit from."""
    rows = start_rows(memory["lockstep"], rank, seed, peers, begins)
    return None if rows is None else rows.astype(dtype)
