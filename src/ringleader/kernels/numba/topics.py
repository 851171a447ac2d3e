"""Compiled pass of a topic model: how many of its entries each row owes to each topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import after, fetch, lane, load, spread, start, store
from ringleader.kernels.topic_layout import TopicRows

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

AHEAD = 12
"""Entries by which rows are asked for before they are read."""

LINE = 8
"""Numbers of a line of the cache."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def topic_counts(offsets: Any, columns: Any, own: Any, other: Any, counts: Any, span: tuple[int, int]) -> None:
    """Fill ``counts`` (rows, K) of the rows ``span``: entries of a row, each divided among topics.

    An entry of row r and column c belongs to topic k with chance own[r, k] other[c, k] / (own[r] @ other[c]).

    Same as: ``reference.topics.topic_counts``.
    """
    total = np.empty(own.shape[1], np.float64)
    whole = len(total) // 4 * 4
    rows, end = start(other), offsets[span[1]]
    for r in range(span[0], span[1]):
        total[:] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            c = columns[e]
            later = np.int64(columns[min(e + AHEAD, end - 1)]) * len(total)
            for k in range(0, len(total), LINE):
                fetch(rows, later + k)  # type: ignore[arg-type]
            first = second = third = fourth = 0.0  # four sums side by side: one alone would wait for itself
            for k in range(0, whole, 4):
                first += own[r, k] * other[c, k]
                second += own[r, k + 1] * other[c, k + 1]
                third += own[r, k + 2] * other[c, k + 2]
                fourth += own[r, k + 3] * other[c, k + 3]
            for k in range(whole, len(total)):
                first += own[r, k] * other[c, k]
            chance = (first + second) + (third + fourth)
            if chance > 0.0:
                inverse = 1.0 / chance
                for k in range(len(total)):
                    total[k] += other[c, k] * inverse
        for k in range(len(total)):
            counts[r, k] = own[r, k] * total[k]


@compiled
def topic_counts_of_both(offsets: Any, columns: Any, own: Any, other: Any, counts: Any, other_counts: Any) -> None:
    """``topic_counts`` of all rows, and of the entries seen from their columns, (m, K), in one pass.

    Same as: ``reference.topics.topic_counts_of_both``.
    """
    size, last = own.shape[1], len(columns) - 1
    whole = size // 4 * 4
    rows, into, total = start(other), start(other_counts), np.empty(size, np.float64)
    sums = start(total)
    for c in range(len(other)):
        for k in range(size):
            other_counts[c, k] = 0.0
    for r in range(len(own)):
        mine = after(start(own), r * size)
        for k in range(size):
            total[k] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            later = np.int64(columns[min(e + AHEAD, last)]) * size
            for k in range(0, size, LINE):
                fetch(rows, later + k)
                fetch(into, later + k)
            place = np.int64(columns[e]) * size
            there, here = after(rows, place), after(into, place)
            part = spread(0.0)
            for k in range(0, whole, 4):
                part = part + load(mine, k) * load(there, k)
            first = lane(part, 0)
            for k in range(whole, size):
                first += own[r, k] * other[columns[e], k]
            chance = (first + lane(part, 1)) + (lane(part, 2) + lane(part, 3))
            if chance > 0.0:
                inverse = 1.0 / chance
                every = spread(inverse)
                for k in range(0, whole, 4):
                    store(sums, k, load(sums, k) + load(there, k) * every)
                    store(here, k, load(here, k) + load(mine, k) * every)
                for k in range(whole, size):
                    total[k] += other[columns[e], k] * inverse
                    other_counts[columns[e], k] += own[r, k] * inverse
        for k in range(size):
            counts[r, k] = own[r, k] * total[k]
    for c in range(len(other)):
        for k in range(size):
            other_counts[c, k] = other[c, k] * other_counts[c, k]


@compiled
def drawn_to_items(authors: Any, items: Any, topics: TopicRows, drawn: Any, span: tuple[int, int]) -> None:
    """Fill ``drawn`` (n,) of the reviews ``span``: how much likelier than among all their items are by the taste of
    their authors, without these reviews; less 1.

    Same as: ``reference.topics.drawn_to_items``.
    """
    size = len(topics.prior)
    whole = size // 4 * 4
    chances, nearer = start(topics.chances), start(topics.nearer)
    left = np.empty(size, np.float64)
    for i in range(span[0], span[1]):
        later = np.int64(items[min(i + AHEAD, span[1] - 1)]) * size
        for k in range(0, size, LINE):
            fetch(chances, later + k)  # type: ignore[arg-type]
            fetch(nearer, later + k)  # type: ignore[arg-type]
        a, c = authors[i], items[i]
        first = second = third = fourth = 0.0
        for k in range(0, whole, 4):
            first += topics.shares[a, k] * topics.chances[c, k]
            second += topics.shares[a, k + 1] * topics.chances[c, k + 1]
            third += topics.shares[a, k + 2] * topics.chances[c, k + 2]
            fourth += topics.shares[a, k + 3] * topics.chances[c, k + 3]
        for k in range(whole, size):
            first += topics.shares[a, k] * topics.chances[c, k]
        inverse = 1.0 / max((first + second) + (third + fourth), 1e-300)
        for k in range(size):
            own = topics.shares[a, k] * topics.chances[c, k] * inverse
            left[k] = max(topics.counts[a, k] - own, 0.0) + topics.prior[k]
        first = second = third = fourth = 0.0
        total = other = 0.0
        for k in range(0, whole, 4):
            first += left[k] * topics.nearer[c, k]
            second += left[k + 1] * topics.nearer[c, k + 1]
            third += left[k + 2] * topics.nearer[c, k + 2]
            fourth += left[k + 3] * topics.nearer[c, k + 3]
            total += left[k] + left[k + 1]
            other += left[k + 2] + left[k + 3]
        for k in range(whole, size):
            first += left[k] * topics.nearer[c, k]
            total += left[k]
        drawn[i] = ((first + second) + (third + fourth)) / (total + other)
