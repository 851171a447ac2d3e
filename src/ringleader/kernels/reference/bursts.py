"""Plain NumPy of ``bursts``: the specification, and the oracle of the tests. Slow."""

from __future__ import annotations

import numpy as np

from ringleader.kernels.burst_layout import BurstRule, FoundBursts, ReviewTimes


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
