"""Compiled sums of what speaks against reviews, by entity, and of the loudness of reviews by place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.arrays import Floats
from ringleader.kernels.layout import read_only
from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import fetch, start
from ringleader.kernels.way_layout import ReviewWays

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

PARTS = 5
"""Lockstep, strangers, attack, evidence, campaign."""

AHEAD = 12
"""Reviews by which memory is asked for before it is read."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def _add_ways(ways: ReviewWays, worth: tuple[float, float], codes: Any, others: Any, sums: Any, totals: Any) -> bool:
    for i in range(len(codes)):
        code, other = codes[i], others[i]
        if code < 0 or code >= len(sums) or other < 0 or other >= len(totals):
            return False
        strangers, attack, loud = ways.strangers[i], ways.attack[i], ways.loud[i]
        ratio = max(max(ways.lockstep[i], strangers), attack)
        own = loud * (1.0 + worth[0] * ways.evidence[i])
        around = worth[1] * ways.campaign[i]
        whole = own + around
        by_attack = attack > 0.0 and attack == ratio
        by_strangers = strangers > 0.0 and strangers == ratio
        a = 0.0 if by_strangers or by_attack else loud * whole
        b = loud * whole if by_strangers and not by_attack else 0.0
        c = loud * whole if by_attack else 0.0
        d, e = (own - loud) * whole, around * whole
        totals[other] += a + b + c + d + e
        if ways.fair[i]:
            sums[code, 0] += a
            sums[code, 1] += b
            sums[code, 2] += c
            sums[code, 3] += d
            sums[code, 4] += e
    return True


def way_sums(
    ways: ReviewWays, worth: tuple[float, float], codes: Any, others: Any, sizes: tuple[int, int]
) -> tuple[Floats, Floats]:
    """The parts of the suspicion of the reviews that count, added up by code, (size, PARTS); and all of them, of all
    reviews, by another code, (size,).

    worth : what evidence adds to the loudness of a review, and what a campaign does. sizes : codes are below

    Same as: ``reference.ways.way_sums``.
    """
    sums, totals = np.zeros((sizes[0], PARTS)), np.zeros(sizes[1])
    parts = ReviewWays(*map(read_only, ways))
    if len({len(part) for part in (*ways, codes, others)}) > 1:
        raise ValueError(f"{len(codes)} and {len(others)} codes of {len(ways.loud)} reviews")
    if not _add_ways(parts, worth, read_only(codes), read_only(others), sums, totals):
        raise ValueError(f"codes up to {codes.max()} and {others.max()}, but sizes are {sizes}")
    return sums, totals


@compiled
def _add_places(places: Any, sides: Any, loud: Any, table: Any) -> None:
    """Add to the table: of each place, on either side, how many reviews there are, and their loudness."""
    memory, last = start(table), len(places) - 1
    for i in range(len(places)):
        fetch(memory, places[min(i + AHEAD, last)] * 4)
        if sides[i] < 2:
            at = places[i] * 4 + 2 * sides[i]
            memory[at] += 1.0
            memory[at + 1] += loud[i]


@compiled
def _add_others(places: Any, sides: Any, loud: Any, table: Any, made: Any) -> None:
    memory, last = start(table), len(places) - 1
    for i in range(len(places)):
        fetch(memory, places[min(i + AHEAD, last)] * 4)
        if sides[i] < 2:
            at = places[i] * 4 + 2 * sides[i]
            made[i] += max(memory[at + 1] - loud[i], 0.0) / max(memory[at], 1.0)


def add_others(places: Any, sides: Any, loud: Any, count: int, made: Floats) -> None:
    """Add to each review on a side, 0 or 1, the mean loudness of those at its place on its side, where its own is 0.

    places : (n,), below ``count``. sides : (n,), whole numbers from 0; of 2 and more nothing is asked

    Same as: ``reference.ways.add_others``.
    """
    table = np.zeros((count, 4))
    if len({len(places), len(sides), len(loud), len(made)}) > 1:
        raise ValueError(f"{len(places)} places of {len(loud)} reviews")
    if len(places) and (places.min() < 0 or places.max() >= count or sides.min() < 0):
        raise ValueError(f"places from {places.min()} to {places.max()}, but there are {count}")
    parts = read_only(places), read_only(sides), read_only(loud)
    _add_places(*parts, table)
    _add_others(*parts, table, made)
