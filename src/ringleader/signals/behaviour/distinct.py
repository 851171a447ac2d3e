"""Distinct pairs of codes, sorted by counting: what ``np.unique`` finds by comparing takes several times as long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Numbers
from ringleader.kernels.protocol import get_backend

DENSE = 16
"""Codes are counted where there are up to so many times as many of them as of cells; else they are compared."""


class DistinctPairs(NamedTuple):
    """Each pair that occurs, in ascending order, and which one every cell has."""

    first: Numbers  # (n_pairs,)
    second: Numbers  # (n_pairs,)
    where: Numbers  # (n_cells,)


def distinct_pairs(first: Numbers, second: Numbers, sizes: tuple[int, int]) -> DistinctPairs:
    """The pairs of two codes of each cell, (n_cells,) int64 each and below ``sizes``.

    Same as: ``np.unique(first * sizes[1] + second, return_inverse=True)``.
    """
    keys = first * sizes[1] + second
    ordered, order = keys, None
    if not (keys[1:] >= keys[:-1]).all():
        order = _order(first, second, sizes) if max(sizes) <= DENSE * (len(keys) + 1000) else np.argsort(keys)
        ordered = keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    distinct, place = ordered[new], np.cumsum(new) - 1
    if order is None:
        where = place
    else:
        where = np.empty(len(keys), np.int64)
        where[order] = place
    one = distinct // max(sizes[1], 1)
    return DistinctPairs(one, distinct - one * sizes[1], where)


def _order(first: Numbers, second: Numbers, sizes: tuple[int, int]) -> Numbers:
    """Numbers of the cells, sorted by both codes."""
    order: Numbers = get_backend().stable_order(second, sizes[1])
    return order[get_backend().stable_order(first[order], sizes[0])]
