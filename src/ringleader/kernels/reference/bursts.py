"""Plain NumPy of ``bursts``: the specification, and the oracle of the tests. Slow."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats
from ringleader.kernels.burst_layout import ActiveTimes, BurstRule, FoundBursts, ReviewTimes, Rhythms


def largest_bursts(times: ReviewTimes, rule: BurstRule, largest: FoundBursts) -> None:
    """See ``bursts.largest_bursts``: every window of every entity, one after the other."""
    for side, start in enumerate((0, 1 - rule.length)):
        for row, (entity, first) in enumerate(zip(times.entity, times.bins + start, strict=True)):
            mine = np.flatnonzero(times.entity == entity)
            inside = mine[(times.bins[mine] >= first) & (times.bins[mine] < first + rule.length)]
            calm = rule.calm[side, row]
            for kind, share in enumerate(rule.shares):
                seen = np.diff(times.running[kind])[inside].sum()
                others = (times.volume[entity] - 1.0) * (calm * share)
                z = (seen - 1.0 - others) / np.sqrt(others + rule.prior)
                if seen > 1.0 and z > largest.z[kind, entity]:
                    largest.z[kind, entity], largest.seen[kind, entity] = z, seen
                    largest.expected[kind, entity] = times.volume[entity] * calm * share
                    largest.start[kind, entity] = first


def excess_around(times: ActiveTimes, where: Any, weights: Any, half: int, prior: float) -> Floats:
    """See ``bursts.excess_around``: every row against all rows of its entity."""
    seen = np.bincount(where, weights=weights, minlength=len(times.entity))
    excess = np.zeros(len(times.entity))
    for row, (entity, time) in enumerate(zip(times.entity, times.bins, strict=True)):
        mine = np.flatnonzero(times.entity == entity)
        born, died = times.bins[mine].min(), times.bins[mine].max() + 1
        inside = seen[mine[np.abs(times.bins[mine] - time) <= half]].sum()
        around = times.before[min(time + half + 1, died)] - times.before[max(time - half, born)]
        expected = (seen[mine].sum() - 1.0) * around / max(times.before[died] - times.before[born], 1e-300)
        excess[row] = (inside - 1.0 - expected) / np.sqrt(expected + prior)
    return np.asarray(excess[where], np.float64)


def rhythms(times: ActiveTimes, seen: Any, volume: Any, made: Rhythms) -> None:
    """See ``bursts.rhythms``: one entity after the other."""
    for entity in np.unique(times.entity):
        mine = times.entity == entity
        bins, count = times.bins[mine], seen[mine]
        made.first[entity], made.last[entity], made.active[entity] = bins[0], bins[-1], len(bins)
        made.gap[entity] = np.diff(bins).max(initial=0)
        made.together[entity] = np.add.accumulate(count * (count - 1.0))[-1]
        whole = max(times.before[bins[-1] + 1] - times.before[bins[0]], 1e-300)
        expected = volume[entity] * (times.before[bins + 1] - times.before[bins]) / whole
        made.unsteady[entity] = np.add.accumulate(count * count / np.maximum(expected, 1e-300))[-1]
