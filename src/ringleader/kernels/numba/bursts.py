"""Compiled search for bursts: the window in which the reviews of an entity stand out most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.kernels.burst_layout import BurstRule, FoundBursts, ReviewTimes
from ringleader.kernels.numba.elementary import OUTER

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def largest_bursts(times: ReviewTimes, rule: BurstRule, largest: FoundBursts) -> None:
    """Fill ``largest`` (kinds, n) with the largest z of every entity, and where it is. Zeros where there is none.

    Windows begin or end in a bin where the entity has reviews. With ``seen`` reviews of a kind in a window where
    ``others`` are to be expected beside one, z = (seen - 1 - others) / sqrt(others + prior). Of equal ones the first
    stands, windows that begin in a bin before those that end in one.

    Same as: ``reference.bursts.largest_bursts``.
    """
    rows, length = len(times.keys), rule.length
    for side in range(2):
        begin = 0
        end = 0
        for row in range(rows):
            key = times.keys[row]
            if side == 0:
                begin = row
                while end < rows and times.keys[end] < key + length:
                    end += 1
            else:
                end = row + 1
                while times.keys[begin] <= key - length:
                    begin += 1
            entity = times.entity[row]
            calm = rule.calm[side, row]
            for kind in range(len(rule.shares)):
                seen = times.running[kind, end] - times.running[kind, begin]
                # One review is no burst. Where the prior is 1 or more, z is at most seen - 1.
                if seen > 1.0 and (rule.prior < 1.0 or seen - 1.0 > largest.z[kind, entity]):
                    others = (times.volume[entity] - 1.0) * (calm * rule.shares[kind])
                    z = (seen - 1.0 - others) / np.sqrt(others + rule.prior)
                    if z > largest.z[kind, entity]:
                        largest.z[kind, entity] = z
                        largest.seen[kind, entity] = seen
                        largest.expected[kind, entity] = times.volume[entity] * calm * rule.shares[kind]
                        largest.start[kind, entity] = times.bins[row] + (0 if side == 0 else 1 - length)
