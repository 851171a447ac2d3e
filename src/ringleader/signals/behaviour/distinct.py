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
    if max(sizes) <= DENSE * (len(first) + 1000):
        return DistinctPairs(*get_backend().distinct_pairs(first, second, sizes))
    distinct, where = np.unique(first * sizes[1] + second, return_inverse=True)
    one = distinct // max(sizes[1], 1)
    return DistinctPairs(one, distinct - one * sizes[1], where.reshape(-1))
