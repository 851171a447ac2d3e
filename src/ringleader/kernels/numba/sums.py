"""Compiled sums of a block: gather the design rows of its entries, add up its gradient and curvature.

Rows go through the four lanes of ``lanes``: a row of rank R is P / 4 steps, where P is R rounded up to
a multiple of four, and the lanes above R hold zeros. While some cells are at work, the factor rows of those that
follow are on their way, and the tuples of those after them: an entity has too few cells to wait for its own, so the
lists are read ahead past its end, where the next entity's cells lie.

numba's disk cache sees changes of ``blocks`` alone: clear it after a change here.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.kernels.layout import Rule, View
from ringleader.kernels.numba.lanes import (
    after,
    fetch,
    halvings,
    lane,
    less,
    load,
    load_some,
    size,
    spread,
    start,
    store,
    sums,
    whole,
)

BUFFER = 40  # entries gathered before they are summed, more where one cell brings more
AHEAD = 8  # cells between the one at work and the one whose factor rows are asked for
AHEAD_ALONE = 32  # the same in the contrast mode, where a cell is one entry
FAST = {"reassoc", "contract", "nsz", "arcp"}  # never nnan or ninf: they would hide a runaway fit
INNER: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": FAST,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # A function that is called stands once in each kernel, optimised for it, and the process keeps whichever copy it
    # loaded first: the last bits would depend on what ran before. And a call would pass all of ``Work`` by value.
    "forceinline": True,
}


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
    room: int  # rows of the buffer
    columns: Any  # (K + m,): columns of a tuple: other modes, contrast mode, negatives
    shifts: Any  # (K + m,): first element of each column's mode
    places: Any  # (K + m,): where the factor rows of the cell at work begin, in elements of the factors
    rows: Any  # (room, P): design rows c_i
    weighted: Any  # (room, P)
    entries: Any  # (4, room): weight, y, weight * curvature, weight * residual
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
    padded, room = (rank + 3) // 4 * 4, _room(view)
    return Memory(np.zeros((2 * room + 3 + padded) * padded + 4 * room), np.zeros(3 * width, np.int64))


@njit(**INNER)
def _room(view: View) -> int:
    """Rows of the buffer: enough for one cell, and a multiple of four."""
    return int(max(BUFFER, (view.tuples.shape[1] - len(view.starts) + 4) // 4 * 4))


@njit(**INNER)
def work_on(view: View, mode: int, memory: Memory) -> Work:
    """Lay out ``memory`` for blocks of ``mode``; -1 stands for lambda, which leaves no mode out."""
    rank, modes, width = view.factors.shape[1], len(view.starts), view.tuples.shape[1]
    padded, room = (rank + 3) // 4 * 4, _room(view)
    columns = start(memory.wholes)
    shifts = after(columns, width)
    others = 0
    for k in range(modes):
        if k != mode and k != view.contrast:
            columns[others] = k
            shifts[others] = view.starts[k] * rank
            others += 1
    for j in range(width - modes + 1 if mode != view.contrast else 0):
        columns[others + j] = modes + j - 1 if j else view.contrast
        shifts[others + j] = view.starts[view.contrast] * rank
    rows = start(memory.numbers)
    weighted = after(rows, room * padded)
    entries = after(weighted, room * padded)
    lambdas = after(entries, 4 * room)
    for r in range(rank):
        lambdas[r] = view.component_weights[r]
    return Work(
        start(view.factors), start(view.tuples), start(view.weights), len(view.weights) == 1,
        rank, padded, width, others, width - modes + 1, room,
        columns, shifts, after(shifts, width),
        rows, weighted, entries, lambdas,
        after(lambdas, padded), after(lambdas, 2 * padded), after(lambdas, (2 + padded) * padded),
    )  # fmt: skip


@njit(**INNER)
def exp_minus(distance: Any) -> Any:
    """exp(-distance) of four distances from 0 up; beyond 700 as at 700."""
    far = spread(700.0)
    distance = less(far, distance, far, distance)
    # exp(-distance) = 2^-n exp(rest): the library's exp would be one call per entry.
    n = whole(distance * spread(1.4426950408889634))
    rest = n * spread(0.693147180369123816490) - distance + n * spread(1.90821492927058770002e-10)
    decay = spread(1 / 39916800) + rest * spread(1 / 479001600)
    decay = spread(1 / 3628800) + rest * decay
    decay = spread(1 / 362880) + rest * decay
    decay = spread(1 / 40320) + rest * decay
    decay = spread(1 / 5040) + rest * decay
    decay = spread(1 / 720) + rest * decay
    decay = spread(1 / 120) + rest * decay
    decay = spread(1 / 24) + rest * decay
    decay = spread(1 / 6) + rest * decay
    decay = spread(1 / 2) + rest * decay
    decay = spread(1.0) + rest * decay
    return (spread(1.0) + rest * decay) * halvings(n)


@njit(**INNER)
def sigma_and_weight(phi: Any, curvature: int) -> tuple[Any, Any]:
    """sigma(phi), and N (curvature 1) or E[omega] (curvature 0), of four phi."""
    one, distance = spread(1.0), size(phi)
    decay = exp_minus(distance)
    larger = one / (one + decay)
    sigma = less(phi, spread(0.0), decay * larger, larger)
    if curvature == 1:
        return sigma, decay * larger * larger
    square = distance * distance
    near = spread(0.25) - square * (spread(1 / 48) - square * spread(1 / 480))
    small = spread(0.01)
    omega = (larger - spread(0.5)) / less(distance, small, small, distance)
    return sigma, less(distance, small, near, omega)


@njit(**INNER)
def sigma_and_weight_of_one(phi: float, curvature: int) -> tuple[float, float]:
    sigma, weight = sigma_and_weight(spread(phi), curvature)
    return lane(sigma, 0), lane(weight, 0)


@njit(**INNER)
def _weigh(work: Work, full: int, rule: Rule) -> None:
    """Log-odds of the gathered entries, and with them the weights of curvature and gradient."""
    rows, entries, own, padded, room = work.rows, work.entries, work.own, work.padded, work.room
    zero, half = spread(0.0), spread(rule.half)
    for b in range(0, full, 4):
        first, second, third, fourth = zero, zero, zero, zero
        place = b * padded
        for s in range(0, padded, 4):
            x = load(own, s)
            first = first + x * load(rows, place + s)
            second = second + x * load(rows, place + padded + s)
            third = third + x * load(rows, place + 2 * padded + s)
            fourth = fourth + x * load(rows, place + 3 * padded + s)
        sigma, omega = sigma_and_weight(sums(first, second, third, fourth), rule.curvature)
        weight = load(entries, b)
        store(entries, 2 * room + b, weight * omega)
        store(entries, 3 * room + b, weight * (load(entries, room + b) - sigma) * half)


@njit(**INNER)
def _add_gradient(work: Work, full: int) -> None:
    """Add the entries to the gradient, and leave their rows times the weights of the curvature."""
    rows, weighted, entries, gradient = work.rows, work.weighted, work.entries, work.gradient
    padded, room = work.padded, work.room
    for s in range(0, padded, 4):
        even, odd = load(gradient, s), spread(0.0)
        for b in range(0, full, 2):
            place = b * padded + s
            c, d = load(rows, place), load(rows, place + padded)
            store(weighted, place, c * spread(entries[2 * room + b]))
            store(weighted, place + padded, d * spread(entries[2 * room + b + 1]))
            even = even + c * spread(entries[3 * room + b])
            odd = odd + d * spread(entries[3 * room + b + 1])
        store(gradient, s, even + odd)


@njit(**INNER)
def _add_tile(work: Work, full: int, r: int, s: int, width: int) -> None:
    """Add the entries to rows r to r + 3 and columns s to s + width - 1 of the curvature; width is 4, 8 or 12.

    Twelve sums of four lanes fill the registers.
    """
    rows, weighted, curvature = work.rows, work.weighted, work.curvature
    padded = work.padded
    at, under, third, fourth = r * padded + s, (r + 1) * padded + s, (r + 2) * padded + s, (r + 3) * padded + s
    if width == 12:
        a0, a1, a2 = load(curvature, at), load(curvature, at + 4), load(curvature, at + 8)
        b0, b1, b2 = load(curvature, under), load(curvature, under + 4), load(curvature, under + 8)
        c0, c1, c2 = load(curvature, third), load(curvature, third + 4), load(curvature, third + 8)
        d0, d1, d2 = load(curvature, fourth), load(curvature, fourth + 4), load(curvature, fourth + 8)
        for b in range(full):
            place = b * padded
            u, v, w = load(weighted, place + s), load(weighted, place + s + 4), load(weighted, place + s + 8)
            x = spread(rows[place + r])
            a0, a1, a2 = a0 + x * u, a1 + x * v, a2 + x * w
            x = spread(rows[place + r + 1])
            b0, b1, b2 = b0 + x * u, b1 + x * v, b2 + x * w
            x = spread(rows[place + r + 2])
            c0, c1, c2 = c0 + x * u, c1 + x * v, c2 + x * w
            x = spread(rows[place + r + 3])
            d0, d1, d2 = d0 + x * u, d1 + x * v, d2 + x * w
        store(curvature, at + 8, a2)
        store(curvature, under + 8, b2)
        store(curvature, third + 8, c2)
        store(curvature, fourth + 8, d2)
        store(curvature, at + 4, a1)
        store(curvature, under + 4, b1)
        store(curvature, third + 4, c1)
        store(curvature, fourth + 4, d1)
    elif width == 8:
        a0, a1 = load(curvature, at), load(curvature, at + 4)
        b0, b1 = load(curvature, under), load(curvature, under + 4)
        c0, c1 = load(curvature, third), load(curvature, third + 4)
        d0, d1 = load(curvature, fourth), load(curvature, fourth + 4)
        for b in range(full):
            place = b * padded
            u, v = load(weighted, place + s), load(weighted, place + s + 4)
            x = spread(rows[place + r])
            a0, a1 = a0 + x * u, a1 + x * v
            x = spread(rows[place + r + 1])
            b0, b1 = b0 + x * u, b1 + x * v
            x = spread(rows[place + r + 2])
            c0, c1 = c0 + x * u, c1 + x * v
            x = spread(rows[place + r + 3])
            d0, d1 = d0 + x * u, d1 + x * v
        store(curvature, at + 4, a1)
        store(curvature, under + 4, b1)
        store(curvature, third + 4, c1)
        store(curvature, fourth + 4, d1)
    else:
        # Every other entry has sums of its own: four alone would wait for each other.
        a0, b0, c0, d0 = load(curvature, at), load(curvature, under), load(curvature, third), load(curvature, fourth)
        a1 = b1 = c1 = d1 = spread(0.0)
        for b in range(0, full, 2):
            place = b * padded
            beyond = place + padded
            u, v = load(weighted, place + s), load(weighted, beyond + s)
            a0 = a0 + spread(rows[place + r]) * u
            b0 = b0 + spread(rows[place + r + 1]) * u
            c0 = c0 + spread(rows[place + r + 2]) * u
            d0 = d0 + spread(rows[place + r + 3]) * u
            a1 = a1 + spread(rows[beyond + r]) * v
            b1 = b1 + spread(rows[beyond + r + 1]) * v
            c1 = c1 + spread(rows[beyond + r + 2]) * v
            d1 = d1 + spread(rows[beyond + r + 3]) * v
        a0, b0, c0, d0 = a0 + a1, b0 + b1, c0 + c1, d0 + d1
    store(curvature, at, a0)
    store(curvature, under, b0)
    store(curvature, third, c0)
    store(curvature, fourth, d0)


@njit(**INNER)
def _flush(work: Work, count: int, rule: Rule) -> None:
    """Add the gathered entries to the gradient and to the upper triangle of the curvature."""
    padded = work.padded
    full = (count + 3) // 4 * 4
    for b in range(count, full):
        work.entries[b] = 0.0
        for s in range(0, padded, 4):
            store(work.rows, b * padded + s, spread(0.0))
    _weigh(work, full, rule)
    _add_gradient(work, full)
    for r in range(0, padded, 4):
        s = r
        while padded - s > 8:
            _add_tile(work, full, r, s, 12)
            s += 12
        if padded - s == 8:
            _add_tile(work, full, r, s, 8)
        elif padded - s == 4:
            _add_tile(work, full, r, s, 4)


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
    """Ask for the factor row that begins at element ``place``: a line of memory holds eight float64."""
    fetch(work.factors, place)
    for r in range(8, work.rank - 2, 8):
        fetch(work.factors, place + r)
    fetch(work.factors, place + work.rank - 1)


@njit(**INNER)
def fetch_rows(work: Work, cell: int, count: int) -> None:
    """Ask for the first ``count`` factor rows of a cell."""
    codes = after(work.tuples, cell * work.width)
    for c in range(count):
        fetch_row(work, work.shifts[c] + np.int64(codes[work.columns[c]]) * work.rank)


@njit(**INNER)
def locate(work: Work, cell: int, count: int) -> None:
    """Put where the first ``count`` factor rows of a cell begin into ``work.places``."""
    codes = after(work.tuples, cell * work.width)
    for c in range(count):
        work.places[c] = work.shifts[c] + np.int64(codes[work.columns[c]]) * work.rank


@njit(**INNER)
def _product(work: Work, count: int, s: int) -> Any:
    """lambda times the first ``count`` located rows, four lanes from s."""
    value = load(work.lambdas, s)
    for c in range(count):
        value = value * load(work.factors, work.places[c] + s)
    return value


@njit(**INNER)
def _last_product(work: Work, count: int, s: int) -> Any:
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
        store(out, s, _product(work, count, s))
    store(out, last, _last_product(work, count, last))


@njit(**INNER)
def _design_rows(work: Work, filled: int) -> None:
    """Write the rows of a located cell and of its negatives to the buffer from row ``filled`` on."""
    factors, padded = work.factors, work.padded
    rows, places = after(work.rows, filled * padded), after(work.places, work.others)
    last = padded - 4
    for s in range(0, last, 4):
        base = _product(work, work.others, s)
        for j in range(work.per_cell):
            store(rows, j * padded + s, base * load(factors, places[j] + s))
    base = _last_product(work, work.others, last)
    for j in range(work.per_cell):
        store(rows, j * padded + last, base * load_some(factors, places[j] + last, work.rank - last))


@njit(**INNER)
def add_cells(work: Work, cells: Any, end: int, piece: tuple[int, int], rule: Rule) -> None:
    """Add positions ``piece`` of ``cells``, which ends at ``end``, with their negatives; not in the contrast mode."""
    entries, room, per_cell = work.entries, work.room, work.per_cell
    share = 1.0 / max(per_cell - 1, 1)
    filled = 0
    for p in range(piece[0], piece[1]):
        fetch_tuple(work, np.int64(cells[min(p + 2 * AHEAD, end - 1)]))
        fetch_rows(work, np.int64(cells[min(p + AHEAD, end - 1)]), work.others + per_cell)
        cell = np.int64(cells[p])
        weight = work.weights[0 if work.uniform else cell]
        if weight == 0.0:
            continue
        locate(work, cell, work.others + per_cell)
        _design_rows(work, filled)
        for j in range(filled, filled + per_cell):
            entries[j] = weight * share
            entries[room + j] = 0.0
        entries[filled] = weight
        entries[room + filled] = 1.0
        filled += per_cell
        if filled + per_cell > room:
            _flush(work, filled, rule)
            filled = 0
    if filled:
        _flush(work, filled, rule)


@njit(**INNER)
def _add_contrast(
    work: Work, cells: Any, end: int, piece: tuple[int, int], filled: int, kind: tuple[float, float], rule: Rule
) -> int:
    """Gather positions ``piece`` of ``cells`` behind ``filled`` entries; ``kind``: their share of the weight, and y."""
    entries, room = work.entries, work.room
    for p in range(piece[0], piece[1]):
        fetch_tuple(work, np.int64(cells[min(p + 2 * AHEAD_ALONE, end - 1)]))
        fetch_rows(work, np.int64(cells[min(p + AHEAD_ALONE, end - 1)]), work.others)
        cell = np.int64(cells[p])
        weight = work.weights[0 if work.uniform else cell]
        if weight == 0.0:
            continue
        locate(work, cell, work.others)
        design_row(work, work.others, after(work.rows, filled * work.padded))
        entries[filled] = weight * kind[0]
        entries[room + filled] = kind[1]
        filled += 1
        if filled == room:
            _flush(work, filled, rule)
            filled = 0
    return filled


@njit(**INNER)
def add_contrast_cells(
    work: Work,
    own: tuple[Any, int],
    piece: tuple[int, int],
    drawn: tuple[Any, int],
    drawn_piece: tuple[int, int],
    rule: Rule,
) -> None:
    """Add cells of ``own`` (y = 1) and negatives from ``drawn`` (y = 0) to a block of the contrast mode."""
    share = 1.0 / max(work.per_cell - 1, 1)
    filled = _add_contrast(work, own[0], own[1], piece, 0, (1.0, 1.0), rule)
    filled = _add_contrast(work, drawn[0], drawn[1], drawn_piece, filled, (share, 0.0), rule)
    if filled:
        _flush(work, filled, rule)
