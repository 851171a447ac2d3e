"""Signals on workers: what the reviews alone say, found where the cells are, with the bits of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringleader.errors import RunWarning, WorkerLost, warn_of
from ringleader.learners.cluster import ATTEMPTS
from ringleader.runtime.peers import Peers, Workers
from ringleader.shares.cells import CellShare, DealtCells, cut_entities, deal_shares
from ringleader.signals.behaviour import Covariates, behaviour, joined_covariates, read_market
from ringleader.signals.lockstep import Lockstep, find_lockstep, find_sides, joined_lockstep
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.signals.strangers import Strangers, find_strangers
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
        return joined_lockstep(self._run(_lockstep, self.actor, settings, self.workers.threads))

    def strangers(self, settings: LockstepSettings) -> Strangers:
        """``find_strangers``"""
        parts = self._run(_strangers, self.actor, settings)
        return Strangers(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def behaviour(self, modes: Sequence[int]) -> dict[int, Covariates]:
        """``behaviour`` of each of some modes."""
        parts = self._run(_behaviour, tuple(modes))
        return {mode: joined_covariates(of_mode) for mode, of_mode in zip(modes, zip(*parts, strict=True), strict=True)}

    def release(self) -> None:
        """Give back the memory of the workers."""
        self._dealt = False
        self.workers.run(_release, [()] * self.workers.count)

    def _run(self, call: Callable[..., Any], *arguments: Any) -> list[Any]:
        for attempt in range(ATTEMPTS):
            try:
                if not self._dealt:
                    self.workers.run(_hold, [(cells,) for cells in deal_shares(self.tensor, self.bounds)])
                    self._dealt = True
                return self.workers.run(call, [arguments] * self.workers.count)
            except WorkerLost as error:
                if attempt == ATTEMPTS - 1:
                    raise
                warn_of([f"{error}; new workers find the signals again"], RunWarning)
                self._dealt = False
                self.workers.restart()
        raise AssertionError("work ends or fails")


def _hold(memory: dict[str, Any], peers: Peers, cells: DealtCells) -> None:
    """In a worker: take cells."""
    memory["cells"] = CellShare.received(peers, cells)


def _release(memory: dict[str, Any], peers: Peers) -> None:
    """In a worker: forget the cells."""
    memory.pop("cells", None)


def _held(memory: dict[str, Any], peers: Peers) -> CellShare:
    share: CellShare = memory["cells"]
    share.peers = peers
    return share


def _lockstep(
    memory: dict[str, Any], peers: Peers, actor: int, settings: LockstepSettings | None, threads: int
) -> Lockstep:
    """In a worker: lockstep of its cells and actors."""
    share = _held(memory, peers)
    found = find_lockstep(share, settings, actor=actor, threads=threads)
    share.forget()
    return found


def _strangers(memory: dict[str, Any], peers: Peers, actor: int, settings: LockstepSettings) -> Strangers:
    """In a worker: the crowds of its cells."""
    share = _held(memory, peers)
    found = find_strangers(share, actor, *find_sides(share, actor, settings), settings)
    share.forget()
    return found


def _behaviour(memory: dict[str, Any], peers: Peers, modes: tuple[int, ...]) -> list[Covariates]:
    """In a worker: what its entities of each mode do."""
    share = _held(memory, peers)
    market = read_market(share)
    found = [behaviour(share, mode, market=market) for mode in modes]
    share.forget()
    return found
