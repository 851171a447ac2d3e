"""Signals on workers: what the reviews alone say, found where the cells are, with the bits of one process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ringleader.errors import WorkerLost
from ringleader.runtime.peers import Peers, Workers, repeat
from ringleader.shares.cells import CellShare, DealtCells, cut_entities, deal_shares
from ringleader.signals.lockstep import Lockstep, find_lockstep, joined_lockstep
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.sparse import SparseTensor


class ClusterSignals:
    """The signals of a tensor, found by workers; each of them holds the cells of a range of the first mode's entities.

    A worker that is lost costs the signal that was being found: new workers get the cells, and do it again.
    """

    def __init__(self, workers: Workers, tensor: SparseTensor, actor: int) -> None:
        self.workers, self.tensor, self.actor = workers, tensor, actor
        self.bounds = cut_entities(tensor, workers.count)
        self._dealt = False

    def lockstep(self, settings: LockstepSettings | None = None) -> Lockstep:
        """``find_lockstep``"""
        given = self.actor, settings, self.workers.threads
        return joined_lockstep(self.run(_lockstep, lambda: [given] * self.workers.count))

    @property
    def cells(self) -> list[slice]:
        """Which cells each worker holds."""
        places = np.searchsorted(self.tensor.coordinates[:, 0], self.bounds[0]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(places)]

    def release(self) -> None:
        """Give back the memory of the workers."""
        self._dealt = False
        with suppress(WorkerLost):  # whoever needs the workers next starts new ones
            self.workers.run(_release, [()] * self.workers.count)

    def run(self, call: Callable[..., Any], arguments: Callable[[], Sequence[tuple[Any, ...]]]) -> list[Any]:
        """``call(memory, peers, *arguments()[p])`` in every worker p, which holds its cells (``held_cells``).

        Arguments are asked for when the cells are dealt: new workers may be fewer.
        """

        def work() -> list[Any]:
            if not self._dealt:
                self.bounds = cut_entities(self.tensor, self.workers.count)
                self.workers.run(_hold, [(cells,) for cells in deal_shares(self.tensor, self.bounds)])
                self._dealt = True
            return self.workers.run(call, arguments())

        return repeat(self.workers, work, self._forget, "find the signals", "the signals were looked for")

    def _forget(self) -> None:
        """New workers hold nothing."""
        self._dealt = False


def _hold(memory: dict[str, Any], peers: Peers, cells: DealtCells) -> None:
    """In a worker: take cells."""
    memory["cells"] = CellShare.received(peers, cells)


def _release(memory: dict[str, Any], peers: Peers) -> None:
    """In a worker: forget the cells."""
    memory.pop("cells", None)


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
    found = find_lockstep(share, settings, actor=actor, threads=threads)
    share.forget()
    return found
