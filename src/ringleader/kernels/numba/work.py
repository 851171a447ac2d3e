"""What one task of a kernel works on, its memory, and the design rows of its cells.

Rows go through the four lanes of ``lanes``: a row of rank R is P / 4 steps, where P is R rounded up to
a multiple of four, and the lanes above R hold zeros.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return, arg-type"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.kernels.layout import View
from ringleader.kernels.numba.elementary import INNER
from ringleader.kernels.numba.lanes import after, fetch, fma, lane, load, load_some, spread, start, store, sums

NEAR = 1024  # rows of a mode that the cache next to the processor holds anyway: nobody asks for them ahead
BUFFER = 40  # entries gathered before they are summed, more where one cell brings more


class Work(NamedTuple):
    """What one task works on, in one mode: the view's memory and its own. P is the rank rounded up to fours."""

    factors: Any
    tuples: Any
    weights: Any
    uniform: bool  # one weight for all
    rank: int
    padded: int  # P
    width: int  # K + m, columns of a tuple
    others: int  # modes other than this one and the contrast mode
    per_cell: int  # entries of a cell, with its negatives: 1 + m
    capacity: int  # rows of the buffer
    columns: Any  # (K + m,): columns of a tuple: other modes, contrast mode, negatives
    shifts: Any  # (K + m,): first element of each column's mode
    far: Any  # (2, K + m): columns and shifts of the modes that no cache holds whole, in the same order
    far_others: int  # how many of ``others`` are far
    line: int  # factors in a line of memory
    places: Any  # (K + m,): where the factor rows of the cell at work begin, in elements of the factors
    rows: Any  # (capacity, P): design rows c_i
    weighted: Any  # (capacity, P)
    entries: Any  # (4, capacity): weight, y, weight * curvature, weight * residual
    lambdas: Any  # (P,)
    own: Any  # (P,): x, the entity's row
    curvature: Any  # (P, P), upper triangle
    gradient: Any  # (P,), right behind the curvature


class Memory(NamedTuple):
    """The arrays behind a task's own memory; they must outlive its ``Work``."""

    numbers: Any
    wholes: Any


@njit(**INNER)
def new_memory(view: View) -> Memory:
    rank, width = view.factors.shape[1], view.tuples.shape[1]
    padded, capacity = (rank + 3) // 4 * 4, _capacity(view)
    return Memory(np.zeros((2 * capacity + 3 + padded) * padded + 4 * capacity), np.zeros(5 * width, np.int64))


@njit(**INNER)
def _capacity(view: View) -> int:
    """Rows of the buffer: enough for one cell, and a multiple of four."""
    return int(max(BUFFER, (view.tuples.shape[1] - len(view.starts) + 4) // 4 * 4))


@njit(**INNER)
def work_on(view: View, mode: int, memory: Memory) -> Work:
    """Lay out ``memory`` for blocks of ``mode``; -1 stands for lambda, which leaves no mode out."""
    rank, modes, width = view.factors.shape[1], len(view.starts), view.tuples.shape[1]
    padded, capacity = (rank + 3) // 4 * 4, _capacity(view)
    columns = start(memory.wholes)
    shifts = after(columns, width)
    far = after(columns, 3 * width)
    others, far_others = 0, 0
    for k in range(modes):
        if k != mode and k != view.contrast:
            columns[others] = k
            shifts[others] = view.starts[k] * rank
            others += 1
            if (view.starts[k + 1] if k + 1 < modes else view.rows) - view.starts[k] > NEAR:
                far[far_others] = k
                far[width + far_others] = view.starts[k] * rank
                far_others += 1
    for j in range(width - modes + 1 if mode != view.contrast else 0):
        columns[others + j] = far[far_others + j] = modes + j - 1 if j else view.contrast
        shifts[others + j] = far[width + far_others + j] = view.starts[view.contrast] * rank
    rows = start(memory.numbers)
    weighted = after(rows, capacity * padded)
    entries = after(weighted, capacity * padded)
    lambdas = after(entries, 4 * capacity)
    for r in range(rank):
        lambdas[r] = view.component_weights[r]
    return Work(
        start(view.factors), start(view.tuples), start(view.weights), len(view.weights) == 1,
        rank, padded, width, others, width - modes + 1, capacity,
        columns, shifts, far, far_others, 64 // view.factors.itemsize, after(shifts, width),
        rows, weighted, entries, lambdas,
        after(lambdas, padded), after(lambdas, 2 * padded), after(lambdas, (2 + padded) * padded),
    )  # fmt: skip


@njit(**INNER)
def clear(work: Work) -> None:
    """Curvature and gradient to zero."""
    for s in range(0, (work.padded + 1) * work.padded, 4):
        store(work.curvature, s, spread(0.0))


@njit(**INNER)
def fetch_tuple(work: Work, cell: int) -> None:
    fetch(work.tuples, cell * work.width)
    fetch(work.tuples, cell * work.width + work.width - 1)


@njit(**INNER)
def fetch_row(work: Work, place: int) -> None:
    """Ask for the factor row that begins at element ``place``."""
    for r in range(0, work.rank - 1, work.line):
        fetch(work.factors, place + r)
    fetch(work.factors, place + work.rank - 1)


@njit(**INNER)
def fetch_rows(work: Work, cell: int, negatives: int) -> None:
    """Ask for the far factor rows of a cell: those of other modes, and so many of the contrast mode."""
    codes = after(work.tuples, cell * work.width)
    for c in range(work.far_others + negatives):
        fetch_row(work, work.far[work.width + c] + np.int64(codes[work.far[c]]) * work.rank)


@njit(**INNER)
def locate(work: Work, cell: int, count: int) -> None:
    """Put where the first ``count`` factor rows of a cell begin into ``work.places``."""
    codes = after(work.tuples, cell * work.width)
    for c in range(count):
        work.places[c] = work.shifts[c] + np.int64(codes[work.columns[c]]) * work.rank


@njit(**INNER)
def product(work: Work, count: int, s: int) -> Any:
    """lambda times the first ``count`` located rows, four lanes from s."""
    value = load(work.lambdas, s)
    for c in range(count):
        value = value * load(work.factors, work.places[c] + s)
    return value


@njit(**INNER)
def last_product(work: Work, count: int, s: int) -> Any:
    """The same for the last lanes of a row, of which not all belong to it."""
    value = load(work.lambdas, s)
    for c in range(count):
        value = value * load_some(work.factors, work.places[c] + s, work.rank - s)
    return value


@njit(**INNER)
def design_row(work: Work, count: int, out: Any) -> None:
    """Write lambda times the first ``count`` located rows to ``out``, padded."""
    last = work.padded - 4
    for s in range(0, last, 4):
        store(out, s, product(work, count, s))
    store(out, last, last_product(work, count, last))


@njit(**INNER)
def dot(a: Any, b: Any, count: int) -> float:
    """Sum of the products of ``count`` numbers, a multiple of four: lane by lane, then the lanes in pairs."""
    total = spread(0.0)
    for s in range(0, count, 4):
        total = fma(load(a, s), load(b, s), total)
    return lane(sums(total, total, total, total), 0)
