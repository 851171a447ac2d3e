"""Nodes: how many workers, and with how many threads, the nodes of a cluster have processors for.

A worker runs on one node: what is left over on two nodes makes no worker together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringleader.errors import ClusterError
from ringleader.runtime.machine import memory_limit
from ringleader.wording import counted

Processors = Sequence[int]
"""The processors of each node."""
WORKER_MEMORY = 200 * 10**6
"""Bytes of a worker of its own, before it has any data; pages of libraries, which the processes of a machine share, not
among them."""


def capacity(processors: Processors, threads: int) -> int:
    """Workers of so many threads that fit on the nodes."""
    return sum(count // threads for count in processors)


def most_threads(processors: Processors, workers: int) -> int:
    """The most threads that every one of so many workers can have; 0 where not even one thread fits."""
    fitting = (t for t in range(max(processors, default=0), 0, -1) if capacity(processors, t) >= workers)
    return next(fitting, 0)


def share_out(processors: Processors, workers: int | None, threads: int | None) -> tuple[int, int]:
    """Workers and threads of each: those asked for, or for None as many as fit. Refused where they do not fit."""
    if workers is None:
        workers, threads = capacity(processors, threads or 1), threads or 1
    fitting = most_threads(processors, workers) if threads is None else threads
    there = capacity(processors, fitting or 1)
    if not fitting or not there or there < workers:
        raise ClusterError(_too_few(processors, workers, fitting or 1, there))
    return workers, fitting


def reduced(processors: Processors, workers: int, threads: int | None) -> tuple[int, int]:
    """Workers and threads of each where nodes are gone: as many as fit, up to those asked for. None for 0 workers."""
    there = min(workers, capacity(processors, threads or 1))
    return there, threads or most_threads(processors, max(there, 1))


def check_local(workers: int | None) -> None:
    """Refuses more workers on this machine than it has memory for; None for those of other machines."""
    if workers is None:
        return
    limit = memory_limit()
    most = max(limit // WORKER_MEMORY, 1)
    if workers > most:
        raise ClusterError(
            f"{workers:,} workers need at least {workers * WORKER_MEMORY / 1e9:.1f} GB, and this machine gives "
            f"{limit / 1e9:.1f} GB: ask for at most {most:,} with --workers, or name a larger cluster"
        )


def _too_few(processors: Processors, workers: int, threads: int, there: int) -> str:
    each = "" if threads == 1 else f" of {threads} threads"
    if not there:
        return f"no node has {counted(threads, 'processor')} for a worker: the cluster has {_described(processors)}"
    return (
        f"the cluster has processors for {counted(there, 'worker')}{each}, and {workers:,} were asked for; it has "
        f"{_described(processors)}: ask for at most {there:,} with --workers, or start more nodes"
    )


def _described(processors: Processors) -> str:
    """``20 nodes of 4 processors and 1 node of 8``."""
    nodes = Counter(count for count in processors if count)
    if not nodes:
        return "no node with processors"
    said = [f"{counted(number, 'node')} of {counted(count, 'processor')}" for count, number in sorted(nodes.items())]
    return " and ".join(said)
