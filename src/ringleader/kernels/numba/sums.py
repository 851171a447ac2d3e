"""Compiled sums of a block: gather the design rows of its entries, add up its gradient and curvature.

While some cells are at work, the factor rows of those that follow are on their way, and the tuples of those after
them: an entity has too few cells to wait for its own, so the lists are read ahead past its end, where the next entity's
cells lie. numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ringleader.kernels.layout import Rule
from ringleader.kernels.numba.elementary import CALLED, INNER, sigma_and_weight
from ringleader.kernels.numba.lanes import after, fma, load, load_some, spread, store, sums
from ringleader.kernels.numba.work import Work, design_row, fetch_rows, fetch_tuple, last_product, locate, product

AHEAD = 8  # cells between the one at work and the one whose factor rows are asked for
AHEAD_ALONE = 32  # the same in the contrast mode, where a cell is one entry


@njit(**INNER)
def weigh(work: Work, full: int, rule: Rule) -> None:
    """Log-odds of the gathered entries, in the place of their weights, and the weights of curvature and gradient."""
    rows, entries, own, padded, capacity = work.rows, work.entries, work.own, work.padded, work.capacity
    zero, half = spread(0.0), spread(rule.half)
    for b in range(0, full, 4):
        first, second, third, fourth = zero, zero, zero, zero
        place = b * padded
        for s in range(0, padded, 4):
            x = load(own, s)
            first = fma(x, load(rows, place + s), first)
            second = fma(x, load(rows, place + padded + s), second)
            third = fma(x, load(rows, place + 2 * padded + s), third)
            fourth = fma(x, load(rows, place + 3 * padded + s), fourth)
        phi = sums(first, second, third, fourth)
        sigma, omega = sigma_and_weight(phi, rule.curvature)
        weight = load(entries, b)
        store(entries, b, phi)
        store(entries, 2 * capacity + b, weight * omega)
        store(entries, 3 * capacity + b, weight * (load(entries, capacity + b) - sigma) * half)


@njit(**INNER)
def _add_gradient(work: Work, full: int) -> None:
    """Add the entries to the gradient, and leave their rows times the weights of the curvature."""
    rows, weighted, entries, gradient = work.rows, work.weighted, work.entries, work.gradient
    padded, capacity = work.padded, work.capacity
    for s in range(0, padded, 4):
        even, odd = load(gradient, s), spread(0.0)
        for b in range(0, full, 2):
            place = b * padded + s
            c, d = load(rows, place), load(rows, place + padded)
            store(weighted, place, c * spread(entries[2 * capacity + b]))
            store(weighted, place + padded, d * spread(entries[2 * capacity + b + 1]))
            even = fma(c, spread(entries[3 * capacity + b]), even)
            odd = fma(d, spread(entries[3 * capacity + b + 1]), odd)
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
            a0, a1, a2 = fma(x, u, a0), fma(x, v, a1), fma(x, w, a2)
            x = spread(rows[place + r + 1])
            b0, b1, b2 = fma(x, u, b0), fma(x, v, b1), fma(x, w, b2)
            x = spread(rows[place + r + 2])
            c0, c1, c2 = fma(x, u, c0), fma(x, v, c1), fma(x, w, c2)
            x = spread(rows[place + r + 3])
            d0, d1, d2 = fma(x, u, d0), fma(x, v, d1), fma(x, w, d2)
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
            a0, a1 = fma(x, u, a0), fma(x, v, a1)
            x = spread(rows[place + r + 1])
            b0, b1 = fma(x, u, b0), fma(x, v, b1)
            x = spread(rows[place + r + 2])
            c0, c1 = fma(x, u, c0), fma(x, v, c1)
            x = spread(rows[place + r + 3])
            d0, d1 = fma(x, u, d0), fma(x, v, d1)
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
            a0 = fma(spread(rows[place + r]), u, a0)
            b0 = fma(spread(rows[place + r + 1]), u, b0)
            c0 = fma(spread(rows[place + r + 2]), u, c0)
            d0 = fma(spread(rows[place + r + 3]), u, d0)
            a1 = fma(spread(rows[beyond + r]), v, a1)
            b1 = fma(spread(rows[beyond + r + 1]), v, b1)
            c1 = fma(spread(rows[beyond + r + 2]), v, c1)
            d1 = fma(spread(rows[beyond + r + 3]), v, d1)
        a0, b0, c0, d0 = a0 + a1, b0 + b1, c0 + c1, d0 + d1
    store(curvature, at, a0)
    store(curvature, under, b0)
    store(curvature, third, c0)
    store(curvature, fourth, d0)


@njit(**INNER)
def fill_up(work: Work, count: int) -> int:
    """Follow the gathered entries by empty ones, up to a multiple of four; returns how many there are then."""
    full = (count + 3) // 4 * 4
    for b in range(count, full):
        work.entries[b] = 0.0
        for s in range(0, work.padded, 4):
            store(work.rows, b * work.padded + s, spread(0.0))
    return full


@njit(**CALLED)
def _flush(work: Work, count: int, rule: Rule) -> None:
    """Add the gathered entries to the gradient and to the upper triangle of the curvature."""
    padded = work.padded
    full = fill_up(work, count)
    weigh(work, full, rule)
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
def _design_rows(work: Work, filled: int) -> None:
    """Write the rows of a located cell and of its negatives to the buffer from row ``filled`` on."""
    factors, padded = work.factors, work.padded
    rows, places = after(work.rows, filled * padded), after(work.places, work.others)
    last = padded - 4
    for s in range(0, last, 4):
        base = product(work, work.others, s)
        for j in range(work.per_cell):
            store(rows, j * padded + s, base * load(factors, places[j] + s))
    base = last_product(work, work.others, last)
    for j in range(work.per_cell):
        store(rows, j * padded + last, base * load_some(factors, places[j] + last, work.rank - last))


@njit(**CALLED)
def gather_cells(work: Work, cells: Any, end: int, piece: tuple[int, int], rule: Rule) -> int:
    """Gather positions ``piece`` of ``cells``, which ends at ``end``, with their negatives; not in the contrast mode.

    Returns how many entries wait in the buffer. Those that it does not hold are added up on the way.
    """
    entries, capacity, per_cell = work.entries, work.capacity, work.per_cell
    share = 1.0 / max(per_cell - 1, 1)
    filled = 0
    for p in range(piece[0], piece[1]):
        fetch_tuple(work, np.int64(cells[min(p + 2 * AHEAD, end - 1)]))
        fetch_rows(work, np.int64(cells[min(p + AHEAD, end - 1)]), per_cell)
        cell = np.int64(cells[p])
        weight = work.weights[0 if work.uniform else cell]
        if weight == 0.0:
            continue
        locate(work, cell, work.others + per_cell)
        _design_rows(work, filled)
        for j in range(filled, filled + per_cell):
            entries[j] = weight * share
            entries[capacity + j] = 0.0
        entries[filled] = weight
        entries[capacity + filled] = 1.0
        filled += per_cell
        if filled + per_cell > capacity:
            _flush(work, filled, rule)
            filled = 0
    return filled


@njit(**INNER)
def add_cells(work: Work, cells: Any, end: int, piece: tuple[int, int], rule: Rule) -> None:
    """Add positions ``piece`` of ``cells``, which ends at ``end``, with their negatives; not in the contrast mode."""
    filled = gather_cells(work, cells, end, piece, rule)
    if filled:
        _flush(work, filled, rule)


@njit(**CALLED)
def _gather_alone(
    work: Work, cells: Any, end: int, piece: tuple[int, int], filled: int, kind: tuple[float, float], rule: Rule
) -> int:
    """Gather positions ``piece`` of ``cells`` behind ``filled`` entries; ``kind``: their share of the weight, and y."""
    entries, capacity = work.entries, work.capacity
    for p in range(piece[0], piece[1]):
        fetch_tuple(work, np.int64(cells[min(p + 2 * AHEAD_ALONE, end - 1)]))
        fetch_rows(work, np.int64(cells[min(p + AHEAD_ALONE, end - 1)]), 0)
        cell = np.int64(cells[p])
        weight = work.weights[0 if work.uniform else cell]
        if weight == 0.0:
            continue
        locate(work, cell, work.others)
        design_row(work, work.others, after(work.rows, filled * work.padded))
        entries[filled] = weight * kind[0]
        entries[capacity + filled] = kind[1]
        filled += 1
        if filled == capacity:
            _flush(work, filled, rule)
            filled = 0
    return filled


@njit(**INNER)
def gather_contrast_cells(
    work: Work,
    own: tuple[Any, int],
    piece: tuple[int, int],
    drawn: tuple[Any, int],
    drawn_piece: tuple[int, int],
    rule: Rule,
) -> int:
    """Gather cells of ``own`` (y = 1) and negatives from ``drawn`` (y = 0) for a block of the contrast mode.

    Returns how many entries wait in the buffer. Those that it does not hold are added up on the way.
    """
    share = 1.0 / max(work.per_cell - 1, 1)
    filled = _gather_alone(work, own[0], own[1], piece, np.int64(0), (1.0, 1.0), rule)
    return _gather_alone(work, drawn[0], drawn[1], drawn_piece, filled, (share, 0.0), rule)


@njit(**CALLED)
def add_contrast_cells(
    work: Work,
    own: tuple[Any, int],
    piece: tuple[int, int],
    drawn: tuple[Any, int],
    drawn_piece: tuple[int, int],
    rule: Rule,
) -> None:
    """Add cells of ``own`` (y = 1) and negatives from ``drawn`` (y = 0) to a block of the contrast mode."""
    filled = gather_contrast_cells(work, own, piece, drawn, drawn_piece, rule)
    if filled:
        _flush(work, filled, rule)
