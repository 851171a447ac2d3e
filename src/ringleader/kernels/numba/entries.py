"""Compiled passes over entries: which cells drew an entity, log-odds and likelihoods.

As in ``blocks``, a checksum of the files whose code is compiled here keeps numba's disk cache honest.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return, arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ringleader.kernels.layout import View
from ringleader.kernels.numba.elementary import INNER, OUTER, exp_minus, log_one_plus, logarithm
from ringleader.kernels.numba.lanes import after, fma, lane, load, load_some, size, start, store, sums
from ringleader.kernels.numba.work import Work, design_row, fetch_row, fetch_rows, locate, new_memory, work_on

AHEAD = 6  # cells between the one at work and the one being fetched
BATCH = 64  # cells whose log-odds are computed before their logarithms

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""


@njit(**OUTER)
def count_drawn(tuples: Any, modes: int, counts: Any, span: tuple[int, int]) -> None:
    """How often each part of the cells draws each entity, (parts, n). Same as: ``np.bincount`` of a part's draws."""
    size = -(-len(tuples) // len(counts))
    for part in range(span[0], span[1]):
        for i in range(part * size, min((part + 1) * size, len(tuples))):
            for j in range(modes, tuples.shape[1]):
                counts[part, tuples[i, j]] += 1


@njit(**OUTER)
def offsets_of(counts: Any, offsets: Any) -> None:
    """Offsets of each entity; counts become the place of each part's first draw of it. Same as: ``np.cumsum``."""
    total = 0
    for n in range(counts.shape[1]):
        offsets[n] = total
        for part in range(counts.shape[0]):
            count = counts[part, n]
            counts[part, n] = total
            total += count
    offsets[counts.shape[1]] = total


@njit(**OUTER)
def place_drawn(tuples: Any, modes: int, places: Any, cells: Any, span: tuple[int, int]) -> None:
    """Write each part's cells to their places. Same as: ``np.argsort(drawn.ravel(), kind="stable") // m``."""
    size = -(-len(tuples) // len(places))
    for part in range(span[0], span[1]):
        for i in range(part * size, min((part + 1) * size, len(tuples))):
            for j in range(modes, tuples.shape[1]):
                entity = tuples[i, j]
                cells[places[part, entity]] = i
                places[part, entity] += 1


@njit(**INNER)
def _partial_sums(work: Work, base: Any, row: Any) -> Any:
    """Four partial sums of the product of a design row and a factor row."""
    last = work.padded - 4
    total = load(base, last) * load_some(row, last, work.rank - last)
    for s in range(0, last, 4):
        total = fma(load(base, s), load(row, s), total)
    return total


@njit(**OUTER)
def log_odds(view: View, out: Any, span: tuple[int, int]) -> None:
    """phi of cells ``span``. Same as: ``products(view, codes).sum(axis=1)``."""
    memory = new_memory(view)
    work = work_on(view, view.contrast, memory)
    first_row, contrast, count = view.starts[view.contrast], view.contrast, len(view.tuples)
    for i in range(span[0], span[1]):
        fetch_rows(work, min(i + AHEAD, count - 1), 0)
        locate(work, i, work.others)
        design_row(work, work.others, work.rows)
        code = np.int64(work.tuples[i * work.width + contrast])
        total = _partial_sums(work, work.rows, after(work.factors, (first_row + code) * work.rank))
        out[i] = lane(sums(total, total, total, total), 0)
    memory.numbers[0] = 0.0  # keeps it alive until here


@njit(**OUTER)
def log_likelihood(view: View, totals: Any, span: tuple[int, int], piece: int) -> None:
    """Weighted log-likelihood of cells and negatives, in pieces of ``piece``. Same as: ``reference.log_likelihood``."""
    memory = new_memory(view)
    work = work_on(view, view.contrast, memory)
    numbers = np.zeros(6 * (BATCH * work.per_cell + 4))
    for c in range(span[0], span[1]):
        own, drawn = 0.0, 0.0
        end = min((c + 1) * piece, len(view.tuples))
        for first in range(c * piece, end, BATCH):
            batch = (first, min(first + BATCH, end))
            more = _batch(work, view.starts[view.contrast], view.contrast, batch, len(view.tuples), numbers)
            own, drawn = own + more[0], drawn + more[1]
        totals[c, 0] = own
        totals[c, 1] = drawn
    memory.numbers[0] = numbers[0] = 0.0  # keeps both alive until here


@njit(**INNER)
def _batch(
    work: Work, first_row: int, contrast: int, span: tuple[int, int], count: int, numbers: Any
) -> tuple[float, float]:
    """Log-likelihoods of the cells ``span`` and of their negatives; ``numbers`` holds six per entry.

    ``count`` cells there are in all: rows are fetched ahead past the end of the batch.
    """
    per_cell, cells = work.per_cell, span[1] - span[0]
    modes = work.width - per_cell + 1
    entries = cells * per_cell
    phis = start(numbers)
    decays, partial = after(phis, len(numbers) // 6), after(phis, len(numbers) // 3)
    base = work.rows
    for i in range(span[0], span[1]):
        fetch_rows(work, min(i + AHEAD, count - 1), 0)
        _fetch_contrast(work, min(i + AHEAD, count - 1), first_row, contrast)
        locate(work, i, work.others)
        design_row(work, work.others, base)
        codes = after(work.tuples, i * work.width)
        for j in range(per_cell):
            code = np.int64(codes[modes + j - 1 if j else contrast])
            row = after(work.factors, (first_row + code) * work.rank)
            store(partial, 4 * ((i - span[0]) * per_cell + j), _partial_sums(work, base, row))
    for b in range(0, entries, 4):
        phi = sums(load(partial, 4 * b), load(partial, 4 * b + 4), load(partial, 4 * b + 8), load(partial, 4 * b + 12))
        store(phis, b, phi)
        store(decays, b, exp_minus(size(phi)))
    # The partial sums are done with: their place takes what of each cell goes into a logarithm.
    single, product = partial, after(partial, cells + 4)
    for i in range(cells):
        single[i] = decays[i * per_cell]
        # The logarithm of a product of numbers between 1 and 2, at most 63 of them: one call for all negatives.
        product[i] = 1.0
        for j in range(i * per_cell + 1, (i + 1) * per_cell):
            product[i] *= 1.0 + decays[j]
    for i in range(cells, (cells + 3) // 4 * 4):
        single[i], product[i] = 0.0, 1.0
    for i in range(0, cells, 4):
        store(single, i, log_one_plus(load(single, i)))
        store(product, i, logarithm(load(product, i)))
    own, drawn = 0.0, 0.0
    for i in range(cells):
        weight = work.weights[0 if work.uniform else span[0] + i]
        if weight == 0.0:
            continue
        b = i * per_cell
        own += weight * (min(phis[b], 0.0) - single[i])
        linear = 0.0
        for j in range(b + 1, b + per_cell):
            linear += min(-phis[j], 0.0)
        drawn += weight * (linear - product[i]) / max(per_cell - 1, 1)
    return own, drawn


@njit(**INNER)
def _fetch_contrast(work: Work, cell: int, first_row: int, contrast: int) -> None:
    """Ask for the contrast rows of a cell."""
    codes = after(work.tuples, cell * work.width)
    modes = work.width - work.per_cell + 1
    for j in range(work.per_cell):
        fetch_row(work, (first_row + np.int64(codes[modes + j - 1 if j else contrast])) * work.rank)
