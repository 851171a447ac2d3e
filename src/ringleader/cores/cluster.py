"""Cores on a worker: the driver of a cluster sends it the reviews, and loads no compiled code itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.cores.find import find_cores
from ringleader.cores.listing import Cores
from ringleader.runtime.peers import Peers
from ringleader.shares.cells import CellShare, DealtCells, deal_shares
from ringleader.signals.cluster import ClusterSignals
from ringleader.signals.lockstep import Lockstep, joined_lockstep


def cores_on_worker(cluster: ClusterSignals, lockstep: Lockstep) -> Cores:
    """The cores of the reviews of a cluster, found by its first worker.

    lockstep : as the driver has it
    """
    tensor = cluster.tensor
    (cells,) = deal_shares(tensor, tuple(np.array([0, size]) for size in tensor.shape))
    first = cells, lockstep.for_driver(), cluster.actor

    def arguments() -> list[tuple[Any, ...]]:
        return [first, *[(None, None, cluster.actor)] * (cluster.workers.count - 1)]

    by_worker: list[Cores] = cluster.run(_cores, arguments, cells=False)
    return by_worker[0]


def _cores(
    memory: dict[str, Any], peers: Peers, cells: DealtCells | None, lockstep: Lockstep | None, actor: int
) -> Cores | None:
    """In a worker: all cores, where it is the one that has the reviews."""
    if cells is None or lockstep is None:
        return None
    tensor = CellShare.received(peers, cells).tensor
    return find_cores(tensor, joined_lockstep([lockstep], tensor.n_cells), actor=actor)
