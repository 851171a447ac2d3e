"""Compiled passes over entries: negatives, their grouping, log-odds and likelihoods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, uint64

from ringleader.kernels.blocks import View

FAST = {"reassoc", "contract", "nsz", "arcp"}
OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": FAST, "nogil": True}
INNER: dict[str, Any] = {**OUTER, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(cache=True, error_model="numpy", nogil=True)
def draw_negatives(tuples: Any, codes: Any, modes: int, key: int, span: tuple[int, int]) -> None:
    """Fill columns ``modes:`` of rows ``span``; ``codes`` is the contrast column. Same as: ``reference.draw_negatives``."""
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
def group_drawn(tuples: Any, modes: int, offsets: Any, cells: Any) -> None:
    """Counting sort of the draws by entity. Same as: ``np.argsort(drawn.ravel(), kind="stable") // m``."""
    for i in range(len(tuples)):
        for j in range(modes, tuples.shape[1]):
            offsets[tuples[i, j] + 1] += 1
    for n in range(len(offsets) - 1):
        offsets[n + 1] += offsets[n]
    place = offsets[:-1].copy()
    for i in range(len(tuples)):
        for j in range(modes, tuples.shape[1]):
            entity = tuples[i, j]
            cells[place[entity]] = i
            place[entity] += 1


@njit(**INNER)
def _log_logistic(phi: float) -> float:
    return min(phi, 0.0) - math.log1p(math.exp(-abs(phi)))


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
def log_likelihood(view: View, sums: Any, span: tuple[int, int], size: int) -> None:
    """Weighted log-likelihood of cells and of negatives, in pieces of ``size``. Same as: ``reference.log_likelihood``."""
    modes, width = len(view.starts), view.tuples.shape[1]
    base = np.empty(view.factors.shape[1])
    start = view.starts[view.contrast]
    for c in range(span[0], span[1]):
        own, drawn = 0.0, 0.0
        for i in range(c * size, min((c + 1) * size, len(view.tuples))):
            weight = view.weights[0] if len(view.weights) == 1 else view.weights[i]
            if weight == 0.0:
                continue
            _base(view, view.tuples, i, view.contrast, base)
            own += weight * _log_logistic(_dot(view, base, start + view.tuples[i, view.contrast]))
            total = 0.0
            for j in range(modes, width):
                total += _log_logistic(-_dot(view, base, start + view.tuples[i, j]))
            drawn += weight * total / max(width - modes, 1)
        sums[c, 0] = own
        sums[c, 1] = drawn
