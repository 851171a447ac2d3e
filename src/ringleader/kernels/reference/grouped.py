"""Plain NumPy of ``grouped`` and ``ranked``: the specification, and the oracle of the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats, Numbers


def sums_by_code(codes: Any, values: Any, size: int) -> Floats:
    """See ``grouped.sums_by_code``."""
    if values.ndim == 1:
        return np.asarray(np.bincount(codes, weights=values, minlength=size), np.float64)
    sums = [np.bincount(codes, weights=column, minlength=size) for column in values.T]
    return np.asarray(np.stack(sums, axis=1) if sums else np.zeros((size, 0)), np.float64)


def weighted_sums(codes: Any, others: Any, weights: Any, values: Any, sizes: tuple[int, int]) -> tuple[Floats, Floats]:
    """See ``grouped.weighted_sums``."""
    weighted = weights * values
    return sums_by_code(codes, weighted, sizes[0]), sums_by_code(others, weighted, sizes[1])


def sums_of_rows(codes: Any, places: Any, rows: Any, size: int) -> Floats:
    """See ``grouped.sums_of_rows``."""
    return sums_by_code(codes, rows[places], size)


def halved_sums(codes: Any, values: Any, size: int, scale: float, finer: float) -> Floats:
    """See ``grouped.halved_sums``."""
    upper = np.rint(values * scale)
    lower = np.rint((values - upper / scale) * finer)
    return np.stack([sums_by_code(codes, part, size) for part in (upper, lower)])


def top_sums(codes: Any, values: Any, size: int, most: int) -> Floats:
    """See ``grouped.top_sums``."""
    loud = np.flatnonzero(values > 0)
    order = loud[np.argsort(values[loud])[::-1]]
    order = order[np.argsort(codes[order], kind="stable")]
    entity = codes[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(entity, minlength=size))])
    largest = np.arange(len(order)) - first[entity] < most
    return np.asarray(np.bincount(entity[largest], weights=values[order[largest]], minlength=size), np.float64)


def counts_of_pairs(first: Any, second: Any, sizes: tuple[int, int]) -> Floats:
    """See ``grouped.counts_of_pairs``."""
    counts = np.bincount(np.asarray(first, np.int64) * sizes[1] + second, minlength=sizes[0] * sizes[1])
    return counts.reshape(sizes).astype(np.float64)


def keep_larger(most: Any, places: Any, values: Any, which: Any) -> None:
    """See ``grouped.keep_larger``."""
    np.maximum.at(most, places, values[which])


def middles(codes: Any, values: Any, size: int) -> Floats:
    """See ``grouped.middles``."""
    made = np.zeros((size, 2))
    for code in np.unique(codes):
        own = np.sort(np.asarray(values, np.float64)[codes == code])
        made[code] = own[(len(own) - 1) // 2], own[len(own) // 2]
    return made


def dense_ranks(numbers: Any, size: int) -> tuple[Numbers, Numbers]:
    """See ``grouped.dense_ranks``."""
    distinct, ranks = np.unique(numbers, return_inverse=True)
    return distinct.astype(np.int64), ranks.reshape(-1).astype(np.int64)


def number_places(values: Any) -> tuple[Floats, Floats, Floats]:
    """See ``ranked.number_places``."""
    distinct, which, sizes = np.unique(np.asarray(values, np.float64) + 0.0, return_inverse=True, return_counts=True)
    places = np.cumsum(sizes) - sizes / 2
    return places[which.reshape(-1)], distinct, places


def distinct_pairs(first: Any, second: Any, sizes: tuple[int, int]) -> tuple[Numbers, Numbers, Numbers]:
    """See ``grouped.distinct_pairs``."""
    keys, where = np.unique(np.asarray(first, np.int64) * sizes[1] + second, return_inverse=True)
    one, two = np.divmod(keys, max(sizes[1], 1))
    return one, two, where.reshape(-1).astype(np.int64)
