"""Measures the GPU backend: checks against the reference first, then sweeps of drawn markets. Needs a GPU and CuPy.

python benchmarks/gpu.py --check --reviews 60000000 --repeats 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ringleader.evaluation import device_speed as speed
from ringleader.kernels.cuda import device
from ringleader.kernels.cuda.backend import CudaBackend
from ringleader.kernels.cuda.device import open_device


def check(backend: Any, ranks: list[int], cells: int) -> None:
    """Every operation against the reference."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contract"))
    from bits import results

    from ringleader.kernels.reference.backend import ReferenceBackend

    backend.stable_order = ReferenceBackend.stable_order
    backend.lockstep_of_actors = ReferenceBackend.lockstep_of_actors
    backend.support_of_groups = ReferenceBackend.support_of_groups
    for rank in ranks:
        made, again = results(backend, rank, cells), results(backend, rank, cells)
        expected = results(ReferenceBackend(), rank, cells)
        worst = {}
        for operation, arrays in made.items():
            for a, b, c in zip(arrays, expected[operation], again[operation], strict=True):
                if not np.array_equal(a, c, equal_nan=True):
                    print("DIFFERENT BITS", rank, operation)
                gap = np.abs(np.asarray(a, float) - b) / (np.abs(b) + 1e-1)
                worst[operation] = max(worst.get(operation, 0.0), float(np.nanmax(gap)) if gap.size else 0.0)
        print("check rank", rank, {k: f"{v:.1e}" for k, v in worst.items() if v > 1e-11}, flush=True)


def measure(backend: Any, cells: int, rank: int, negatives: int, repeats: int, dtype: Any) -> None:
    xp = backend.device.xp
    sizes = speed.market_sizes(cells)
    began = time.perf_counter()
    market = speed.draw_market(backend, cells, sizes, rank, dtype)
    sweep = speed.DeviceSweep(backend, market, negatives)
    xp.cuda.Device().synchronize()
    print(
        f"{cells:,} reviews {sizes} rank {rank} {np.dtype(dtype)}: drawn in {time.perf_counter() - began:.1f} s",
        flush=True,
    )
    began = time.perf_counter()
    first = sweep.run()
    print(f"first sweep (compiles) {time.perf_counter() - began:.1f} s wall, {sum(first.values()):.0f} ms", flush=True)
    runs = [sweep.run() for _ in range(repeats)]
    rate = speed.copy_rate(xp)
    total = statistics.median(sum(run.values()) for run in runs)
    spread = (max(sum(r.values()) for r in runs) - min(sum(r.values()) for r in runs)) / total
    for name in runs[0]:
        middle = statistics.median(run[name] for run in runs)
        floor = ""
        if name in speed.NAMES:
            least = speed.gathered_bytes(
                speed.NAMES.index(name), cells, negatives, rank, len(sizes), np.dtype(dtype).itemsize
            )
            floor = f"gather floor {least / rate * 1e3:8.1f} ms = {least / rate * 1e3 / middle:.0%}"
        print(f"{name:20} {middle:9.1f} ms {floor}")
    entries = cells * (1 + negatives)
    sweep_ms = total - statistics.median(run["log-likelihood"] for run in runs)
    pool = xp.get_default_memory_pool()
    free, size = xp.cuda.runtime.memGetInfo()
    print(
        f"TOTAL {cells:,} rank {rank}: {total:.1f} ms with likelihood = {entries / total / 1e3:.0f} M entries/s; sweep alone "
        f"{sweep_ms:.1f} ms = {entries / sweep_ms / 1e3:.0f} M/s; spread {spread:.1%}; copy {rate / 1e12:.2f} TB/s; "
        f"pool {pool.total_bytes() / 2**30:.1f} GiB, in use {pool.used_bytes() / 2**30:.1f}; card {(size - free) / 2**30:.1f}",
        flush=True,
    )
    finite = bool(xp.isfinite(market.factors.sum()))
    print(
        "finite", finite, "mean", float(market.factors.mean()), "zeros", float((market.factors[:1000000] == 0).mean())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--reviews", type=int, nargs="*", default=[])
    parser.add_argument("--rank", type=int, nargs="*", default=[24])
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--warps", type=int, nargs="*", default=[])
    parser.add_argument("--check-ranks", type=int, nargs="*", default=[1, 7, 24, 33, 64])
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--check-cells", type=int, default=2000)
    given = parser.parse_args()
    backend = CudaBackend("cuda", open_device(), _NoPairs())
    print(backend.device.kind, backend.device.xp.__version__, flush=True)
    if given.check:
        check(backend, given.check_ranks, given.check_cells)
    for cells in given.reviews:
        for rank, warps in [(rank, warps) for rank in given.rank for warps in given.warps or [0]]:
            if warps:
                device.warps_wanted = lambda rank, warps=warps: warps  # type: ignore[misc]
                device._compiled.cache_clear()
                print("warps", warps)
            measure(backend, cells, rank, given.negatives, given.repeats, given.dtype)
            backend.device.xp.get_default_memory_pool().free_all_blocks()
    if given.cpu:
        compare_with_cpu(backend, given.cpu, given.rank[0], given.negatives)
    _report()


def compare_with_cpu(backend: Any, cells: int, rank: int, negatives: int) -> None:
    """The same sweeps of one market by the compiled backend, on two threads and on all, and by the GPU."""
    from ringleader.counters import stream_key
    from ringleader.kernels.layout import View, no_statistics, no_terms
    from ringleader.kernels.numba.backend import NumbaBackend
    from ringleader.runtime.machine import processors

    sizes = speed.market_sizes(cells)
    market = speed.draw_market(backend, cells, sizes, rank)
    codes, start = market.codes.get(), market.factors.get()
    grouped = [(offsets.get(), members.get()) for offsets, members in market.grouped]
    entries, nothing = cells * (1 + negatives), (no_terms(rank), no_statistics(rank), np.zeros((0, rank)))
    after = {}
    for threads in (2, processors()):
        cpu = NumbaBackend(threads)
        tuples = cpu.with_room(codes, negatives)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        view = View(tuples, np.ones(1), 0, start.astype(np.float64), starts, len(start), np.ones(rank))
        plans = {k: cpu.plan(k, grouped[k]) for k in range(1, len(sizes))}
        times = []
        for sweep in range(4):
            began = time.perf_counter()
            cpu.draw_negatives(tuples, len(sizes), tuples[:, 0], stream_key(0, sweep))
            for k in range(1, len(sizes)):
                cpu.sweep_blocks(view, plans[k], speed.RULE, *nothing)
            drawn = cpu.group_drawn(tuples, len(sizes), sizes[0])
            cpu.sweep_blocks(view, cpu.plan(0, grouped[0], drawn), speed.RULE, *nothing)
            cpu.log_likelihood(view)
            times.append(time.perf_counter() - began)
            if sweep == 0:
                after[threads] = view.factors.copy()
        middle = statistics.median(times[1:])
        print(
            f"CPU {threads} threads {cells:,} rank {rank}: {middle:.3f} s = {entries / middle / 1e6:.2f} M entries/s",
            flush=True,
        )
    run = speed.DeviceSweep(backend, market, negatives)
    run.run()
    gap = np.abs(market.factors.get() - after[2]) / (np.abs(after[2]) + 1e-2)
    print(
        f"after one sweep: float32 on the GPU against float64 on the CPU, relative: median {np.median(gap):.1e}, "
        f"99.9% {np.quantile(gap, 0.999):.1e}, most {gap.max():.1e}"
    )
    times = [sum(run.run().values()) for _ in range(5)]
    middle = statistics.median(times)
    print(f"GPU {cells:,}: {middle:.1f} ms = {entries / middle / 1e3:.0f} M entries/s", flush=True)


class _NoPairs:
    stable_order = lockstep_of_actors = support_of_groups = None


def _report() -> None:
    for kernel, form in sorted(KERNELS):
        compiled = device._compiled(kernel, form)
        print(
            f"{kernel:16} {form} {compiled.num_regs} registers, {compiled.local_size_bytes} bytes local, {form.shared} shared"
        )


KERNELS: set[Any] = set()


def _remember() -> None:
    launch = device.CupyDevice.launch

    def noted(self: Any, kernel: str, form: Any, *rest: Any, **more: Any) -> None:
        KERNELS.add((kernel, form))
        launch(self, kernel, form, *rest, **more)

    device.CupyDevice.launch = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    _remember()
    main()
