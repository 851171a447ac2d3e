"""Would lockstep's pair counting be faster on a GPU? The compiled kernel on all threads, beside a sort of all pairs.

python benchmarks/gpu_pairs.py --reviews 4000000

The GPU's part is the least it would have to do: write the pairs of every group, sort them, and keep those that met
often enough. What the kernel does besides (expected meetings, log-likelihood ratios, the score of every membership)
is not in it, so the ratio is an upper bound.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from ringleader.evaluation.speed import benchmark_tensor
from ringleader.kernels.pair_layout import Exposure, Groups, PairRule
from ringleader.runtime.machine import processors
from ringleader.signals.lockstep import LockstepSettings, find_lockstep, pairs
from ringleader.signals.lockstep.meetings import cuts, expose, meet

PAIRS = r"""
extern "C" __global__ void pairs(const long long* offsets, const int* members, const int* group_of,
                                 const long long* places, long long count, unsigned long long* keys) {
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long q = blockIdx.x * (long long)blockDim.x + threadIdx.x; q < count; q += step) {
        unsigned long long own = members[q];
        long long place = places[q];
        for (long long r = q + 1; r < offsets[group_of[q] + 1]; r++) {
            unsigned long long other = members[r];
            keys[place++] = own < other ? own << 32 | other : other << 32 | own;
        }
    }
}
"""


def counted_on_host(groups: Groups, exposure: Exposure, settings: LockstepSettings, threads: int) -> float:
    """Seconds of the compiled kernel alone: scores of memberships and pairs, without the third parties."""
    alone = LockstepSettings(**{**vars(settings), "third_parties": 0.0})
    began = time.perf_counter()
    pairs._count(groups, exposure, alone, threads)
    return time.perf_counter() - began


def counted_on_device(groups: Groups, rule: PairRule) -> tuple[float, int, int]:
    """Seconds of the pairs, their sort and their counts on the GPU; pairs, and pairs that met often enough."""
    import cupy

    size = np.diff(groups.offsets)
    group_of = np.repeat(np.arange(len(size), dtype=np.int32), size)
    later = groups.offsets[1:][group_of] - 1 - np.arange(len(group_of))
    places = np.concatenate([[0], np.cumsum(later)]).astype(np.int64)
    here = [cupy.asarray(part) for part in (groups.offsets, groups.members, group_of, places)]
    kernel = cupy.RawKernel(PAIRS, "pairs")
    keys = cupy.empty(int(places[-1]), np.uint64)
    times, often = [], 0
    for _ in range(3):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        kernel((1 << 14,), (128,), (*here, np.int64(len(group_of)), keys))
        keys.sort()
        starts = cupy.flatnonzero(keys[1:] != keys[:-1])
        met = cupy.diff(starts)
        often = int((met >= rule.min_shared).sum())
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
    return min(times), len(keys), often


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, default=4_000_000)
    parser.add_argument("--threads", type=int, default=processors())
    given = parser.parse_args()
    settings, tensor = LockstepSettings(), benchmark_tensor(given.reviews)
    find_lockstep(benchmark_tensor(20_000), settings)  # compiles
    began = time.perf_counter()
    find_lockstep(tensor, settings, threads=given.threads)
    total = time.perf_counter() - began
    roles = pairs.assign_roles(tensor, 0, settings.items)
    host = device = 0.0
    n_pairs = n_often = 0
    for chosen in pairs._sides(tensor, roles, settings):
        cells = np.flatnonzero(chosen)
        who: Any = tensor.coordinates[cells, 0]
        for place in cuts(tensor, 0, settings):
            here = place._replace(items=place.items[cells], windows=place.windows[cells])
            meetings = meet(who, tensor.shape[0], here, settings)
            exposure = expose(meetings, None, None)
            host += counted_on_host(meetings.groups, exposure, settings, given.threads)
            rule = PairRule(settings.min_shared, settings.floor, settings.doubt)
            seconds, number, often = counted_on_device(meetings.groups, rule)
            device, n_pairs, n_often = device + seconds, n_pairs + number, n_often + often
    print(f"{given.reviews:,} reviews, {n_pairs:,} pairs in groups, {n_often:,} that met often")
    print(f"find_lockstep on {given.threads} threads: {total:.2f} s, {host:.2f} s of it counting pairs")
    print(f"pairs written, sorted and counted on the GPU: {device:.3f} s; at most {host / device:.1f} times as fast")


if __name__ == "__main__":
    main()
