"""Would lockstep's pair counting be faster on a GPU? The compiled kernel on all threads, beside a prototype.

python benchmarks/gpu_pairs.py --reviews 4000000

The prototype writes the pairs of every group, sorts them, keeps those that met often enough, finds their meetings
again, and computes what the kernel does: log-likelihood ratios and the score of every membership. Sums are in the order
of the groups, none of them atomic. Scores of both are compared.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np

from ringleader.arrays import Floats
from ringleader.evaluation.speed import benchmark_tensor
from ringleader.kernels.numba.backend import NumbaBackend
from ringleader.kernels.pair_layout import Exposure, Groups, PairRule
from ringleader.runtime.executor import Threads
from ringleader.runtime.machine import processors
from ringleader.signals.lockstep import find_lockstep

SOURCE = r"""
typedef long long whole;
typedef unsigned long long Bits;
#define FIRST (blockIdx.x * (whole)blockDim.x + threadIdx.x)
#define EACH(i, n) for (whole i = FIRST; i < (n); i += gridDim.x * (whole)blockDim.x)
__device__ Bits key_of(Bits a, Bits b) { return a < b ? a << 32 | b : b << 32 | a; }
__device__ Bits mixed(Bits x) { return (x ^ x >> 29) * 0x9E3779B97F4A7C15ull >> 36; }  // 28 bits

extern "C" __global__ void write_pairs(const whole* offsets, const int* members, const int* group_of,
                                       const whole* places, whole count, Bits* keys) {
    EACH(q, count) {
        whole place = places[q];
        for (whole r = q + 1; r < offsets[group_of[q] + 1]; r++) keys[place++] = key_of(members[q], members[r]);
    }
}
extern "C" __global__ void mark(const Bits* often, whole count, unsigned* bitmap) {
    EACH(i, count) { Bits bit = mixed(often[i]); atomicOr(bitmap + (bit >> 5), 1u << (bit & 31)); }
}
// The meetings of pairs that met often: how many each membership has with later ones and, where `hits` is given, which.
extern "C" __global__ void find_meetings(const whole* offsets, const int* members, const int* group_of, whole count,
                                         const Bits* often, whole n_often, const unsigned* bitmap, const whole* places,
                                         int* found, int* pair, int* first, int* second) {
    EACH(q, count) {
        int hits = 0;
        for (whole r = q + 1; r < offsets[group_of[q] + 1]; r++) {
            Bits key = key_of(members[q], members[r]), bit = mixed(key);
            if (!(bitmap[bit >> 5] >> (bit & 31) & 1)) continue;
            whole low = 0, high = n_often;
            while (low < high) { whole mid = (low + high) / 2; if (often[mid] < key) low = mid + 1; else high = mid; }
            if (low == n_often || often[low] != key) continue;
            if (places) { pair[places[q] + hits] = low; first[places[q] + hits] = q; second[places[q] + hits] = r; }
            hits++;
        }
        if (!places) found[q] = hits;
    }
}
extern "C" __global__ void judge(const Bits* often, const whole* begins, whole count, const Bits* by_pair,
                                 const int* first, const int* group_of, const double* log_rate,
                                 const whole* exposed, const int* slots,
                                 const double* values, const double* tastes, const double* drawn, int topics,
                                 double floor, double doubt, double* chance, double* beyond, double* rest) {
    EACH(p, count) {
        whole i = often[p] >> 32, j = often[p] & 0xffffffffu;
        double c = begins[p + 1] - begins[p], rates = 0, mu = 0, together = 0;
        for (whole h = begins[p]; h < begins[p + 1]; h++) rates += log_rate[group_of[first[by_pair[h] & 0xffffffffu]]];
        for (whole e = exposed[j]; e < exposed[j + 1]; e++)
            for (whole f = exposed[i]; f < exposed[i + 1]; f++)
                if (slots[e] == slots[f]) mu += values[e] * values[f];
        for (int k = 0; k < topics; k++) together += tastes[i * topics + k] * drawn[j * topics + k];
        double plain = fmax(mu, floor);
        mu = fmax(mu * together, floor);
        chance[p] = c > plain ? fmax(c * log(c / plain) - rates - (c - plain) - doubt, 0.0) : 0.0;
        beyond[p] = c > mu ? fmax(c * log(c / mu) - rates - (c - mu) - doubt, 0.0) : 0.0;
        rest[p] = c - 1 > mu ? (c - 1) * log((c - 1) / mu) - rates - (c - 1 - mu) - doubt : -1e300;
    }
}
extern "C" __global__ void add_up(const whole* begins, const Bits* by_member, whole count, whole meetings,
                                  const int* pair, const int* group_of, const double* log_rate,
                                  const double* rest, double* scores) {
    EACH(q, count) {
        double total = 0;
        for (whole h = begins[q]; h < begins[q + 1]; h++) {
            whole meeting = by_member[h] & 0xffffffffu;
            total += fmax(rest[pair[meeting < meetings ? meeting : meeting - meetings]] + log_rate[group_of[q]], 0.0);
        }
        scores[q] = total;
    }
}
"""


def counted_on_host(groups: Groups, exposure: Exposure, rule: PairRule, threads: int) -> tuple[float, Floats]:
    """Seconds of the compiled kernel alone, and the scores of the memberships."""
    n = len(groups.actor_offsets) - 1
    scores, lengths, backend = np.zeros(len(groups.members)), np.zeros(n, np.int64), NumbaBackend(1)
    cost = np.append(0, np.cumsum(np.diff(groups.offsets)[groups.actor_groups]))[groups.actor_offsets[1:]]
    edges = [0, *np.searchsorted(cost, cost[-1] * np.arange(1, 64) / 64), n]
    spans = [(int(a), int(b)) for a, b in itertools.pairwise(edges) if b > a]
    began = time.perf_counter()
    Threads(threads).map(lambda span: backend.lockstep_of_actors(groups, exposure, rule, scores, lengths, span), spans)
    return time.perf_counter() - began, scores[groups.spots]


class Prototype:
    """Pair counting on the GPU; ``run`` returns the scores of the memberships, on the host."""

    def __init__(self) -> None:
        import cupy

        self.xp: Any = cupy
        self.module = cupy.RawModule(code=SOURCE)

    def _launch(self, kernel: str, *arguments: Any) -> None:
        self.module.get_function(kernel)((1 << 13,), (128,), arguments)

    def run(self, groups: Groups, exposure: Exposure, rule: PairRule) -> tuple[float, Floats, int, int]:
        """Seconds with copies to the device and back, scores, pairs in groups, and pairs that met often enough."""
        xp, began = self.xp, time.perf_counter()
        offsets, members, log_rate = (xp.asarray(part) for part in (groups.offsets, groups.members, groups.log_rate))
        count = np.int64(len(groups.members))
        steps = xp.zeros(int(count) + 1, np.int32)
        steps[offsets[1:-1]] = 1  # no group is empty
        group_of = xp.cumsum(steps[:-1]).astype(np.int32)
        later = offsets[1:][group_of] - 1 - xp.arange(int(count))
        places = xp.cumsum(later) - later
        keys = xp.empty(int(later.sum()), np.uint64)
        self._launch("write_pairs", offsets, members, group_of, places, count, keys)
        keys.sort()
        starts = xp.concatenate([xp.zeros(1, np.int64), xp.flatnonzero(keys[1:] != keys[:-1]) + 1])
        met = xp.diff(xp.append(starts, len(keys)))
        often = keys[starts[met >= rule.min_shared]]
        n_pairs, n_often = len(keys), np.int64(len(often))
        del keys, starts, met
        bitmap = xp.zeros(1 << 23, np.uint32)
        self._launch("mark", often, n_often, bitmap)
        found, none = xp.empty(int(count), np.int32), xp.zeros(0, np.int32)
        known = (offsets, members, group_of, count, often, n_often, bitmap)
        self._launch("find_meetings", *known, np.uint64(0), found, none, none, none)
        ends = xp.cumsum(found.astype(np.int64))
        meetings = int(ends[-1])
        pair, first, second = (xp.empty(meetings, np.int32) for _ in range(3))
        self._launch("find_meetings", *known, ends - found, found, pair, first, second)
        numbers = xp.arange(meetings, dtype=np.uint64)
        by_pair = pair.astype(np.uint64) << np.uint64(32) | numbers
        by_pair.sort()
        begins = self._begins(by_pair, int(n_often))
        values = [xp.empty(int(n_often)) for _ in range(3)]
        exposed = [xp.asarray(part) for part in exposure[:3]]
        tastes = [xp.ascontiguousarray(xp.asarray(part)) for part in (exposure.tastes, exposure.drawn)]
        self._launch(
            "judge", often, begins, n_often, by_pair, first, group_of, log_rate, *exposed, *tastes,
            np.int32(tastes[0].shape[1]), np.float64(rule.floor), np.float64(rule.doubt), *values,
        )  # fmt: skip
        by_member = xp.concatenate([first, second]).astype(np.uint64) << np.uint64(32)
        by_member |= xp.arange(2 * meetings, dtype=np.uint64)
        by_member.sort()
        scores = xp.empty(int(count))
        sums = (self._begins(by_member, int(count)), by_member, count, np.int64(meetings), pair, group_of, log_rate)
        self._launch("add_up", *sums, values[2], scores)
        for part in (often, *values[:2]):
            part.get()
        outcome = scores.get()
        return time.perf_counter() - began, outcome, n_pairs, int(n_often)

    def _begins(self, keys: Any, size: int) -> Any:
        return self.xp.searchsorted(keys, self.xp.arange(size + 1, dtype=np.uint64) << np.uint64(32)).astype(np.int64)


def asked_of_the_kernel(cells: int, threads: int) -> tuple[float, list[tuple[Groups, Exposure, PairRule]]]:
    """Seconds of ``find_lockstep`` on a market of so many reviews, and what it asks the kernel, once for each cut."""
    tensor, asked, kernel = benchmark_tensor(cells), {}, NumbaBackend.lockstep_of_actors

    def note(groups: Groups, exposure: Exposure, rule: PairRule, *rest: Any) -> Any:
        asked[id(groups)] = (groups, exposure, rule)
        return kernel(groups, exposure, rule, *rest)

    NumbaBackend.lockstep_of_actors = staticmethod(note)
    try:
        began = time.perf_counter()
        find_lockstep(tensor, threads=threads)
        return time.perf_counter() - began, list(asked.values())
    finally:
        NumbaBackend.lockstep_of_actors = staticmethod(kernel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, default=4_000_000)
    parser.add_argument("--threads", type=int, default=processors())
    given = parser.parse_args()
    find_lockstep(benchmark_tensor(20_000))  # compiles
    total, asked = asked_of_the_kernel(given.reviews, given.threads)
    gpu, host, device, gap, numbers = Prototype(), 0.0, 0.0, 0.0, np.zeros(2, np.int64)
    for groups, exposure, rule in asked:
        seconds, scores = counted_on_host(groups, exposure, rule, given.threads)
        runs = [gpu.run(groups, exposure, rule) for _ in range(3)]
        host, device = host + seconds, device + min(run[0] for run in runs)
        gap = max(gap, float((np.abs(runs[-1][1] - scores) / (1 + np.abs(scores))).max()))
        assert np.array_equal(runs[0][1], runs[1][1]), "the same bits from run to run"
        numbers += runs[-1][2:]
    print(f"{given.reviews:,} reviews, {numbers[0]:,} pairs in groups, {numbers[1]:,} that met often")
    print(f"find_lockstep on {given.threads} threads: {total:.2f} s, {host:.2f} s of it counting pairs")
    print(f"on the GPU, with copies: {device:.3f} s: {host / device:.1f} times as fast; scores differ by {gap:.1e}")


if __name__ == "__main__":
    main()
