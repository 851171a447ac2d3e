"""Cores on a worker: the driver of a cluster sends it the reviews, and loads no compiled code itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ringleader.cores.find import find_cores
from ringleader.cores.listing import Cores
from ringleader.runtime.peers import Peers
from ringleader.shares.cells import DealtCells, deal_shares
from ringleader.shares.rows import send_rows
from ringleader.signals.cluster import ClusterSignals
from ringleader.signals.lockstep import Lockstep, joined_lockstep
from ringleader.tensor.sparse import SparseTensor


def cores_on_worker(cluster: ClusterSignals, lockstep: Lockstep) -> Cores:
    """The cores of the reviews of a cluster, found by its first worker.

    lockstep : as the driver has it
    """
    tensor = cluster.tensor
    (cells,) = deal_shares(tensor, tuple(np.array([0, size]) for size in tensor.shape))
    rows = cells.codes, cells.counts, lockstep.both.direct

    def send() -> None:
        others = [tuple(array[:0] for array in rows)] * (cluster.workers.count - 1)
        send_rows(cluster.workers, "all_cells", [rows, *others])

    known = lockstep.for_driver()
    first = cells.without_rows(), replace(known, both=replace(known.both, direct=rows[2][:0])), cluster.actor

    def arguments() -> list[tuple[Any, ...]]:
        return [first, *[(None, None, cluster.actor)] * (cluster.workers.count - 1)]

    by_worker: list[Cores] = cluster.run(_cores, arguments, before=[send], cells=False)
    return by_worker[0]


def _cores(
    memory: dict[str, Any], peers: Peers, cells: DealtCells | None, lockstep: Lockstep | None, actor: int
) -> Cores | None:
    """In a worker: all cores, where it is the one that has the reviews."""
    codes, counts, direct = memory.pop("all_cells")
    if cells is None or lockstep is None:
        return None
    tensor = SparseTensor(codes, counts, cells.vocabularies)
    whole = joined_lockstep([replace(lockstep, both=replace(lockstep.both, direct=direct))], tensor.n_cells)
    return find_cores(tensor, whole, actor=actor)
