"""Cores on workers: each holds the rows of its own actors and items; the first searches, and asks for what it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ringleader.cores.find import find_cores
from ringleader.cores.listing import Cores
from ringleader.runtime.peers import Peers
from ringleader.shares.rows import send_arrays
from ringleader.signals.cluster import ClusterSignals, held_cells
from ringleader.signals.lockstep import Lockstep


def cores_on_workers(cluster: ClusterSignals, lockstep: Lockstep) -> Cores:
    """The cores of the reviews of a cluster.

    lockstep : as the driver has it
    """
    direct = lockstep.both.direct

    def send() -> None:
        send_arrays(cluster.workers, "direct", [{"direct": direct[cells]} for cells in cluster.cells])

    known = lockstep.for_driver()
    known = replace(known, both=replace(known.both, direct=direct[:0]))

    def arguments() -> list[tuple[Any, ...]]:
        return [(known, cluster.actor)] * cluster.workers.count

    said = "search for cores", "cores were looked for"
    by_worker: list[Cores | None] = cluster.run(_cores, arguments, before=[send], said=said)
    cluster.release()
    assert by_worker[0] is not None  # the first searches
    return by_worker[0]


def _cores(memory: dict[str, Any], peers: Peers, lockstep: Lockstep, actor: int) -> Cores | None:
    """In a worker: all cores, in the first."""
    share = held_cells(memory, peers)
    both = replace(lockstep.both, **memory.pop("direct"))
    cores = find_cores(share, replace(lockstep, both=both), actor=actor)
    return None if peers.rank else cores
