"""Compiled passes over entries: negatives, their grouping, log-odds and likelihoods."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, uint64

from ringleader.kernels.blocks import View
from ringleader.kernels.intrinsics import prefetch

FAST = {"reassoc", "contract", "nsz", "arcp"}
AHEAD = 6  # cells between the one at work and the one being fetched
OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": FAST, "nogil": True}
INNER: dict[str, Any] = {**OUTER, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}


@njit(cache=True, error_model="numpy", nogil=True)
def draw_negatives(tuples: Any, codes: Any, modes: int, key: int, span: tuple[int, int]) -> None:
    """Fill columns ``modes:`` of rows ``span`` from the contrast column. Same as: ``reference.draw_negatives``."""
    count = len(tuples)
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


@njit(**INNER)
def _fetch(view: View, i: int) -> None:
    """Prefetch the factor rows of a cell and of its negatives."""
    if i >= len(view.tuples):
        return
    line = 64 // view.factors.itemsize
    modes = len(view.starts)
    for k in range(view.tuples.shape[1]):
        row = view.starts[k if k < modes else view.contrast] + view.tuples[i, k]
        for r in range(0, view.factors.shape[1], line):
            prefetch(view.factors, row, r)


@njit(**OUTER)
def log_likelihood(view: View, sums: Any, span: tuple[int, int], size: int) -> None:
    """Weighted log-likelihood of cells and negatives, in pieces of ``size``. Same as: ``reference.log_likelihood``."""
    modes, width = len(view.starts), view.tuples.shape[1]
    base = np.empty(view.factors.shape[1])
    start = view.starts[view.contrast]
    for c in range(span[0], span[1]):
        own, drawn = 0.0, 0.0
        for i in range(c * size, min((c + 1) * size, len(view.tuples))):
            _fetch(view, i + AHEAD)
            weight = view.weights[0] if len(view.weights) == 1 else view.weights[i]
            if weight == 0.0:
                continue
            _base(view, view.tuples, i, view.contrast, base)
            phi = _dot(view, base, start + view.tuples[i, view.contrast])
            own += weight * (min(phi, 0.0) - math.log1p(math.exp(-abs(phi))))
            # The logarithm of a product of numbers between 1 and 2, at most 63 of them: one call for all negatives.
            linear, product = 0.0, 1.0
            for j in range(modes, width):
                phi = -_dot(view, base, start + view.tuples[i, j])
                linear += min(phi, 0.0)
                product *= 1.0 + math.exp(-abs(phi))
            drawn += weight * (linear - math.log(product)) / max(width - modes, 1)
        sums[c, 0] = own
        sums[c, 1] = drawn
