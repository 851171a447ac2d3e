"""Compiled curves of inputs: what each adds to the predictor of every entity. Nothing is fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.arrays import Floats
from ringleader.kernels.layout import read_only
from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import after, fetch, load, spread, start, store

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

AHEAD = 8
"""Entities by which memory is asked for before it is read."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def _curve(weights: Any, turned: Any, base: float, curve: Any) -> None:
    """Fill ``curve`` (levels,), of which there are whole fours."""
    count, size = turned.shape
    rows, out, less = start(turned), start(curve), spread(base)
    for level in range(0, size, 4):
        total = spread(0.0)
        for k in range(count):
            total = total + spread(weights[k]) * load(after(rows, k * size), level)
        store(out, level, total - less)


@compiled
def _add_from(curve: Any, levels: Any, total: Any) -> None:
    for i in range(len(levels)):
        total[i] += curve[levels[i]]


@compiled
def _add_each(weights: Any, table: Any, base: float, levels: Any, total: Any) -> None:
    memory, width, last = start(table), table.shape[1], len(levels) - 1
    for i in range(len(levels)):
        fetch(memory, np.int64(levels[min(i + AHEAD, last)]) * width)
        made, level = 0.0, levels[i]
        for k in range(width):
            made += weights[k] * table[level, k]
        total[i] += made - base


def add_curve(weights: Any, table: Any, turned: Any, base: float, levels: Any, total: Floats) -> None:
    """Add to ``total`` (n,) where each of ``levels`` (n,) is on the curve table (L, K) @ weights (K,) - base.

    The curve is found at all levels where there are as many entities, else at theirs alone.

    turned : (K, L), the table by its columns

    Same as: ``reference.ways.add_curve``.
    """
    size = len(table)
    if len(levels) != len(total) or table.shape != (*turned.shape[::-1],) or len(weights) != len(turned):
        raise ValueError(f"{len(levels)} levels and {len(total)} sums; {len(weights)} weights and {table.shape}")
    if len(levels) and levels.max() >= size:
        raise ValueError(f"levels up to {levels.max()} of a curve of {size}")
    own, where = read_only(np.ascontiguousarray(weights)), read_only(np.ascontiguousarray(levels))
    if len(levels) < size or size % 4:
        _add_each(own, read_only(np.ascontiguousarray(table)), base, where, total)
        return
    curve = np.empty(size)
    _curve(own, read_only(np.ascontiguousarray(turned)), base, curve)
    _add_from(read_only(curve), where, total)
