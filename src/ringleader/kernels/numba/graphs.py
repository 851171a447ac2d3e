"""Compiled products of sparse graphs with a few columns of numbers, with the bits of SciPy's: nothing is fused."""

# mypy: disable-error-code="no-any-return, arg-type"
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import after, fetch, load, spread, start, store

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

AHEAD, LINE = 16, 8
"""Entries by which rows are asked for before they are read, and numbers of a line of the cache."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def by_rows(offsets: Any, columns: Any, values: Any, numbers: Any, made: Any) -> None:
    """made = graph @ numbers (m, K), K a multiple of 4, of a graph (n, m) by its rows: their offsets (n + 1,), and the
    column and the value of each entry.

    Each sum goes through the entries of its row as they come. Up to twelve columns at a time stay in registers.
    """
    width, last = numbers.shape[1], len(columns) - 1
    memory, out = start(numbers), start(made)
    for c in range(0, width, 12):
        count = min(width - c, 12)
        for row in range(len(offsets) - 1):
            a = b = d = spread(0.0)
            for e in range(offsets[row], offsets[row + 1]):
                later = np.int64(columns[min(e + AHEAD, last)]) * width + c
                fetch(memory, later)
                fetch(memory, later + min(LINE, count - 1))
                there, value = after(memory, np.int64(columns[e]) * width + c), spread(values[e])
                a = a + value * load(there, 0)
                if count > 4:
                    b = b + value * load(there, 4)
                if count > 8:
                    d = d + value * load(there, 8)
            here = after(out, row * width + c)
            store(here, 0, a)
            if count > 4:
                store(here, 4, b)
            if count > 8:
                store(here, 8, d)


@compiled
def by_columns(offsets: Any, rows: Any, values: Any, numbers: Any, made: Any) -> None:
    """made += graph @ numbers of a graph by its columns, as ``by_rows``: their offsets, the row and the value of each
    entry. Each sum goes through the columns as they come.
    """
    width, last = numbers.shape[1], len(rows) - 1
    memory, out = start(numbers), start(made)
    for c in range(0, width, 12):
        count = min(width - c, 12)
        for column in range(len(offsets) - 1):
            there = after(memory, column * width + c)
            a = b = d = load(there, 0)
            if count > 4:
                b = load(there, 4)
            if count > 8:
                d = load(there, 8)
            for e in range(offsets[column], offsets[column + 1]):
                later = np.int64(rows[min(e + AHEAD, last)]) * width + c
                fetch(out, later)
                fetch(out, later + min(LINE, count - 1))
                here, value = after(out, np.int64(rows[e]) * width + c), spread(values[e])
                store(here, 0, load(here, 0) + value * a)
                if count > 4:
                    store(here, 4, load(here, 4) + value * b)
                if count > 8:
                    store(here, 8, load(here, 8) + value * d)


WIDTH = 12
"""Columns that ``through_rows`` takes."""


@compiled
def through_rows(offsets: Any, columns: Any, values: Any, numbers: Any, made: Any) -> None:
    """made += graph' @ (graph @ numbers) (m, WIDTH), of a graph (n, m) by its rows, as ``by_rows`` and ``by_columns``
    make the two: what a row adds up goes out again along it, and is nowhere in memory.
    """
    last = len(columns) - 1
    memory, out = start(numbers), start(made)
    for row in range(len(offsets) - 1):
        a = b = d = spread(0.0)
        for e in range(offsets[row], offsets[row + 1]):
            later = np.int64(columns[min(e + AHEAD, last)]) * WIDTH
            fetch(memory, later)
            fetch(memory, later + LINE)
            fetch(out, later)
            fetch(out, later + LINE)
            there, value = after(memory, np.int64(columns[e]) * WIDTH), spread(values[e])
            a, b, d = a + value * load(there, 0), b + value * load(there, 4), d + value * load(there, 8)
        for e in range(offsets[row], offsets[row + 1]):
            here, value = after(out, np.int64(columns[e]) * WIDTH), spread(values[e])
            store(here, 0, load(here, 0) + value * a)
            store(here, 4, load(here, 4) + value * b)
            store(here, 8, load(here, 8) + value * d)
