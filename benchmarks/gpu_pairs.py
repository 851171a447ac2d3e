"""Lockstep's pair counting on a GPU beside the compiled kernel on all threads. Needs a GPU and CuPy.

python benchmarks/gpu_pairs.py --reviews 4000000

What ``find_lockstep`` asks the kernel on a drawn market is noted, and asked of both again; copies to the GPU and back
are included.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ringleader.arrays import Floats
from ringleader.evaluation.speed import benchmark_tensor
from ringleader.kernels.numba.backend import NumbaBackend
from ringleader.kernels.pair_layout import Exposure, Groups, OftenMet, PairRule
from ringleader.kernels.protocol import get_backend
from ringleader.runtime.executor import Threads
from ringleader.runtime.machine import processors
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.sparse import SparseTensor

Asked = tuple[Groups, Exposure, PairRule]


def asked_of_the_kernel(tensor: SparseTensor, threads: int) -> list[Asked]:
    """What ``find_lockstep`` asks the kernel, once for each cut and side."""
    asked: dict[int, Asked] = {}
    kernel = NumbaBackend.lockstep_of_met

    def note(groups: Groups, met: OftenMet, exposure: Exposure, rule: PairRule, *rest: Any) -> Any:
        asked[id(groups)] = (groups, exposure, rule)
        return kernel(groups, met, exposure, rule, *rest)

    NumbaBackend.lockstep_of_met = staticmethod(note)
    try:
        find_lockstep(tensor, threads=threads)
        return list(asked.values())
    finally:
        NumbaBackend.lockstep_of_met = staticmethod(kernel)


def counted(backend: Any, asked: Asked, threads: int) -> tuple[float, Floats]:
    """Seconds of a backend, with the actors dealt to so many threads, and the scores of the memberships."""
    groups, exposure, rule = asked
    n = len(groups.actor_offsets) - 1
    scores, lengths = np.zeros(len(groups.members)), np.zeros(n, np.int64)
    spans = [(0, n)]
    if threads > 1:
        cost = np.append(0, np.cumsum(np.diff(groups.offsets)[groups.actor_groups]))[groups.actor_offsets[1:]]
        edges = np.unique([0, *np.searchsorted(cost, cost[-1] * np.arange(1, 64) / 64), n]).tolist()
        spans = list(itertools.pairwise(edges))
    began = time.perf_counter()
    Threads(threads).map(lambda span: backend.lockstep_of_actors(groups, exposure, rule, scores, lengths, span), spans)
    return time.perf_counter() - began, scores


def seconds_of(call: Callable[[], Any]) -> float:
    """The shorter of two runs."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, default=4_000_000)
    parser.add_argument("--threads", type=int, default=processors())
    given = parser.parse_args()
    tensor, small, gpu = benchmark_tensor(given.reviews), benchmark_tensor(20_000), get_backend("cuda")
    for name in ("numba", "cuda"):
        find_lockstep(small, backend=name)  # compiles
        seconds = seconds_of(lambda name=name: find_lockstep(tensor, threads=given.threads, backend=name))  # type: ignore[misc]
        print(f"find_lockstep of {given.reviews:,} reviews, pairs counted by {name}: {seconds:.2f} s", flush=True)
    host = device = gap = 0.0
    n_pairs = 0
    for asked in asked_of_the_kernel(tensor, given.threads):
        size = np.diff(asked[0].offsets)
        n_pairs += int((size * (size - 1) // 2).sum())
        seconds, expected = min(
            (counted(NumbaBackend(1), asked, given.threads) for _ in range(3)), key=lambda run: run[0]
        )
        runs = [counted(gpu, asked, 1) for _ in range(4)]
        host, device = host + seconds, device + min(run[0] for run in runs)
        gap = max(gap, float((np.abs(runs[0][1] - expected) / (1 + expected)).max()))
        assert np.array_equal(runs[0][1], runs[1][1]), "the same bits from run to run"
    print(f"{n_pairs:,} pairs in groups: {host:.3f} s on {given.threads} threads, {device:.3f} s on {gpu.kind}: "
          f"{host / device:.1f} times as fast; scores differ by {gap:.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
