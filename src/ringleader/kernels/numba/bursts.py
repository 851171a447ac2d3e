"""Compiled passes over when entities have reviews: their largest bursts, how crowded each time is, their rhythms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.kernels.burst_layout import ActiveTimes, BurstRule, FoundBursts, ReviewTimes, Rhythms
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


@compiled
def _excess(times: ActiveTimes, seen: Any, half: int, prior: float, excess: Any) -> None:
    """Fill ``excess`` of every row. seen : (rows,), reviews of each."""
    rows, begin = len(times.entity), 0
    while begin < rows:
        end, volume = begin, 0.0
        while end < rows and times.entity[end] == times.entity[begin]:
            volume += seen[end]
            end += 1
        born, died = times.bins[begin], times.bins[end - 1] + 1
        whole = max(times.before[died] - times.before[born], 1e-300)
        low, high, inside = begin, begin, 0.0
        for row in range(begin, end):
            time = times.bins[row]
            while high < end and times.bins[high] <= time + half:
                inside += seen[high]  # whole numbers, so that what is taken off again leaves nothing
                high += 1
            while times.bins[low] < time - half:
                inside -= seen[low]
                low += 1
            around = times.before[min(time + half + 1, died)] - times.before[max(time - half, born)]
            expected = (volume - 1.0) * around / whole
            excess[row] = (inside - 1.0 - expected) / np.sqrt(expected + prior)
        begin = end


@compiled
def _add_up(where: Any, weights: Any, seen: Any) -> None:
    for i in range(len(where)):
        seen[where[i]] += weights[i]


@compiled
def _read(where: Any, excess: Any, made: Any) -> None:
    for i in range(len(where)):
        made[i] = excess[where[i]]


def excess_around(times: ActiveTimes, where: Any, weights: Any, half: int, prior: float) -> Any:
    """How far the reviews within ``half`` bins of each cell exceed what is to be expected there, (n_cells,).

    where : (n_cells,), the row of each cell. weights : (n_cells,), its reviews, whole numbers

    Same as: ``reference.bursts.excess_around``.
    """
    seen, excess, made = np.zeros(len(times.entity)), np.empty(len(times.entity)), np.empty(len(where))
    _add_up(where, weights, seen)
    _excess(times, seen, half, prior, excess)
    _read(where, excess, made)
    return made


@compiled
def rhythms(times: ActiveTimes, seen: Any, volume: Any, made: Rhythms) -> None:
    """Fill ``made``, zeros before. seen : (rows,), reviews of each row. volume : (n,), reviews of each entity.

    Same as: ``reference.bursts.rhythms``.
    """
    rows, begin = len(times.entity), 0
    while begin < rows:
        entity, end = times.entity[begin], begin
        while end < rows and times.entity[end] == entity:
            end += 1
        first, last = times.bins[begin], times.bins[end - 1]
        whole = max(times.before[last + 1] - times.before[first], 1e-300)
        gap, together, unsteady = np.int64(0), 0.0, 0.0
        for row in range(begin, end):
            time, count = times.bins[row], seen[row]
            if row > begin:
                gap = max(gap, time - times.bins[row - 1])
            together += count * (count - 1.0)
            expected = volume[entity] * (times.before[time + 1] - times.before[time]) / whole
            unsteady += count * count / max(expected, 1e-300)
        made.first[entity], made.last[entity], made.gap[entity], made.active[entity] = first, last, gap, end - begin
        made.together[entity], made.unsteady[entity] = together, unsteady
        begin = end
