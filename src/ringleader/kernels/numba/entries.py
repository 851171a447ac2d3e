"""Compiled passes over entries: negatives, their grouping, log-odds and likelihoods.

As in ``blocks``, a checksum of the files whose code is compiled here keeps numba's disk cache honest.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, uint64

from ringleader.kernels.layout import View
from ringleader.kernels.numba.lanes import after, load, load_some, size, start, store, sums
from ringleader.kernels.numba.sums import (
    FAST,
    Work,
    design_row,
    exp_minus,
    fetch_row,
    fetch_rows,
    locate,
    new_memory,
    work_on,
)

AHEAD = 6  # cells between the one at work and the one being fetched
BATCH = 64  # cells whose log-odds are computed before their logarithms
OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": FAST, "nogil": True}
INNER: dict[str, Any] = {**OUTER, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}

COMPILED_FROM = "81a042c8393d"
"""Checksum of lanes.py, solve.py and sums.py."""


@njit(cache=True, error_model="numpy", nogil=True)
def draw_negatives(tuples: Any, codes: Any, modes: int, key: int, span: tuple[int, int]) -> None:
    """Fill columns ``modes:`` of rows ``span`` from the pool ``codes``. Same as: ``reference.draw_negatives``."""
    count = len(codes)
    for i in range(span[0], span[1]):
        for j in range(tuples.shape[1] - modes):
            x = uint64(key) + ((uint64(i) << uint64(8)) + uint64(j)) * uint64(0x9E3779B97F4A7C15)
            x ^= x >> uint64(30)
            x *= uint64(0xBF58476D1CE4E5B9)
            x ^= x >> uint64(27)
            x *= uint64(0x94D049BB133111EB)
            x ^= x >> uint64(31)
            picked = np.int64(np.float64(x >> uint64(11)) * 2.0**-53 * count)
            tuples[i, modes + j] = codes[picked]


@njit(cache=True, error_model="numpy", nogil=True)
def count_drawn(tuples: Any, modes: int, counts: Any, span: tuple[int, int]) -> None:
    """How often each part of the cells draws each entity, (parts, n). Same as: ``np.bincount`` of a part's draws."""
    size = -(-len(tuples) // len(counts))
    for part in range(span[0], span[1]):
        for i in range(part * size, min((part + 1) * size, len(tuples))):
            for j in range(modes, tuples.shape[1]):
                counts[part, tuples[i, j]] += 1


@njit(cache=True, error_model="numpy", nogil=True)
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


@njit(cache=True, error_model="numpy", nogil=True)
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
def _base(view: View, codes: Any, i: int, leave: int, base: Any) -> None:
    for r in range(len(base)):
        base[r] = view.component_weights[r]
    for k in range(len(view.starts)):
        if k != leave:
            row = view.starts[k] + codes[i, k]
            for r in range(len(base)):
                base[r] *= view.factors[row, r]


@njit(**INNER)
def _dot(view: View, base: Any, row: int) -> float:
    phi = 0.0
    for r in range(len(base)):
        phi += base[r] * view.factors[row, r]
    return phi


@njit(**OUTER)
def log_odds(view: View, codes: Any, out: Any, span: tuple[int, int]) -> None:
    """phi of rows ``span`` of codes. Same as: ``reference.products(view, codes).sum(axis=1)``."""
    base = np.empty(view.factors.shape[1])
    for i in range(span[0], span[1]):
        _base(view, codes, i, view.contrast, base)
        out[i] = _dot(view, base, view.starts[view.contrast] + codes[i, view.contrast])


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
    """Log-likelihoods of the cells ``span`` and of their negatives; ``numbers`` is room for six per entry.

    ``count`` cells there are in all: rows are fetched ahead past the end of the batch.
    """
    per_cell, rank, padded = work.per_cell, work.rank, work.padded
    modes = work.width - per_cell + 1
    entries = (span[1] - span[0]) * per_cell
    phis = start(numbers)
    decays, partial = after(phis, len(numbers) // 6), after(phis, len(numbers) // 3)
    last, base = padded - 4, work.rows
    for i in range(span[0], span[1]):
        fetch_rows(work, min(i + AHEAD, count - 1), work.others)
        _fetch_contrast(work, min(i + AHEAD, count - 1), first_row, contrast)
        locate(work, i, work.others)
        design_row(work, work.others, base)
        codes = after(work.tuples, i * work.width)
        for j in range(per_cell):
            code = np.int64(codes[modes + j - 1 if j else contrast])
            row = after(work.factors, (first_row + code) * rank)
            total = load(base, last) * load_some(row, last, rank - last)
            for s in range(0, last, 4):
                total = total + load(base, s) * load(row, s)
            store(partial, 4 * ((i - span[0]) * per_cell + j), total)
    for b in range(0, entries, 4):
        phi = sums(load(partial, 4 * b), load(partial, 4 * b + 4), load(partial, 4 * b + 8), load(partial, 4 * b + 12))
        store(phis, b, phi)
        store(decays, b, exp_minus(size(phi)))
    own, drawn = 0.0, 0.0
    for i in range(span[1] - span[0]):
        weight = work.weights[0 if work.uniform else span[0] + i]
        if weight == 0.0:
            continue
        b = i * per_cell
        own += weight * (min(phis[b], 0.0) - math.log1p(decays[b]))
        # The logarithm of a product of numbers between 1 and 2, at most 63 of them: one call for all negatives.
        linear, product = 0.0, 1.0
        for j in range(b + 1, b + per_cell):
            linear += min(-phis[j], 0.0)
            product *= 1.0 + decays[j]
        drawn += weight * (linear - math.log(product)) / max(per_cell - 1, 1)
    return own, drawn


@njit(**INNER)
def _fetch_contrast(work: Work, cell: int, first_row: int, contrast: int) -> None:
    """Ask for the contrast rows of a cell."""
    codes = after(work.tuples, cell * work.width)
    modes = work.width - work.per_cell + 1
    for j in range(work.per_cell):
        fetch_row(work, (first_row + np.int64(codes[modes + j - 1 if j else contrast])) * work.rank)
