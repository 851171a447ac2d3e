"""The compiled loop of BNBCP's stochastic inference: one batch of cells, reading only the rows it touches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from ringleader.baselines.jit import compiled, compiled_parallel
from ringleader.baselines.poisson_kernels import Cells

ROWS = 512  # rows per piece


class Stochastic(NamedTuple):
    """What one batch reads. The true statistics are ``scale * statistics``, so that their decay costs nothing."""

    statistics: npt.NDArray[np.float64]  # (sum n_k, R)
    shifts: npt.NDArray[np.float64]  # (K, R), subtracted from psi(prior + statistics)
    label_of: npt.NDArray[np.int8]  # (sum n_k,): 1, 0, or -1 for no label
    label_logs: npt.NDArray[np.float64]  # (K, 2, R), expected logs of the labels' rates, weighted
    slots: npt.NDArray[np.int64]  # (sum n_k,), -1 everywhere; scratch


@compiled
def _exp_digamma(x, shift):  # type: ignore[no-untyped-def]
    """exp(psi(x) - shift) for x > 0 with one exponential and no logarithm. Same as: ``np.exp(digamma(x) - shift)``."""
    while x < 6.0:
        shift += 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    tail = 1.0 / 240.0 - square / 132.0
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * tail)))
    return x * math.exp(-0.5 * inverse - series - shift)


@compiled
def _find_rows(cells, batch, slots, touched):  # type: ignore[no-untyped-def]
    """Number the rows that a batch touches, in the order they are met; returns how many there are."""
    coordinates, starts = cells.coordinates, cells.starts
    used = 0
    for i in batch:
        for k in range(coordinates.shape[1]):
            row = starts[k] + coordinates[i, k]
            if slots[row] < 0:
                slots[row] = used
                touched[used] = row
                used += 1
    return used


@compiled
def _row_gains(prior, scale, stochastic, starts, touched, gains, piece):  # type: ignore[no-untyped-def]
    """exp E log of one piece of the touched rows, each divided by its largest."""
    statistics, shifts = stochastic.statistics, stochastic.shifts
    rank = shifts.shape[1]
    least = math.exp(-600.0 / len(shifts))
    for n in range(piece * ROWS, min(len(touched), (piece + 1) * ROWS)):
        row = touched[n]
        k = 0
        while starts[k + 1] <= row:
            k += 1
        label = stochastic.label_of[row]
        peak = 0.0
        for r in range(rank):
            shift = shifts[k, r]
            if label >= 0:
                shift -= stochastic.label_logs[k, label, r]
            gains[n, r] = _exp_digamma(prior + scale * statistics[row, r], shift)
            peak = max(peak, gains[n, r])
        for r in range(rank):
            # The floor keeps products of rows that disagree above zero.
            gains[n, r] = max(gains[n, r] / peak, least)


@compiled_parallel
def _all_row_gains(prior, scale, stochastic, starts, touched, gains):  # type: ignore[no-untyped-def]
    for piece in prange((len(touched) + ROWS - 1) // ROWS):
        _row_gains(prior, scale, stochastic, starts, touched, gains, piece)


@compiled
def _gather(cells, batch, slots, gains, sums):  # type: ignore[no-untyped-def]
    """Add the batch's expected counts by component to the rows it touches."""
    coordinates, counts, starts = cells.coordinates, cells.counts, cells.starts
    modes = coordinates.shape[1]
    padded = gains.shape[1]
    products = np.empty(padded)
    rows = np.empty(modes, np.uint64)  # unsigned: an index that needs no test for its sign
    for i in batch:
        for k in range(modes):
            rows[k] = slots[starts[k] + coordinates[i, k]]
        row = rows[0]
        for r in range(padded):
            products[r] = gains[row, r]
        for k in range(1, modes):
            row = rows[k]
            for r in range(0, padded, 4):
                a0, a1 = products[r] * gains[row, r], products[r + 1] * gains[row, r + 1]
                a2, a3 = products[r + 2] * gains[row, r + 2], products[r + 3] * gains[row, r + 3]
                products[r], products[r + 1], products[r + 2], products[r + 3] = a0, a1, a2, a3
        a0 = a1 = a2 = a3 = 0.0
        for r in range(0, padded, 4):
            a0 += products[r]
            a1 += products[r + 1]
            a2 += products[r + 2]
            a3 += products[r + 3]
        weight = counts[i] / ((a0 + a1) + (a2 + a3))
        for k in range(modes):
            row = rows[k]
            for r in range(0, padded, 4):
                a0, a1 = sums[row, r] + weight * products[r], sums[row, r + 1] + weight * products[r + 1]
                a2, a3 = sums[row, r + 2] + weight * products[r + 2], sums[row, r + 3] + weight * products[r + 3]
                sums[row, r], sums[row, r + 1], sums[row, r + 2], sums[row, r + 3] = a0, a1, a2, a3


def batch_statistics(
    cells: Cells, batch: npt.NDArray[np.int32], prior: float, scale: float, stochastic: Stochastic
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Expected counts by component of the rows that a batch of cells touches.

    Returns
    -------
    touched : rows of the stack, in the order they were met; sums : (len(touched), R).

    Same as: mode_statistics for each mode, on the cells of the batch.
    """
    touched = np.empty(batch.size * cells.coordinates.shape[1], np.int64)
    touched = touched[: _find_rows(cells, batch, stochastic.slots, touched)]
    rank = stochastic.statistics.shape[1]
    gains = np.zeros((len(touched), -(-rank // 4) * 4))  # zeros beyond the rank: the inner loops go by four
    sums = np.zeros_like(gains)
    _all_row_gains(prior, scale, stochastic, cells.starts, touched, gains)
    _gather(cells, batch, stochastic.slots, gains, sums)
    stochastic.slots[touched] = -1
    return touched, sums[:, :rank]


@compiled
def add_rows(statistics, touched, sums, factor):  # type: ignore[no-untyped-def]
    """Same as: ``statistics[touched] += factor * sums``."""
    for n in range(len(touched)):
        for r in range(sums.shape[1]):
            statistics[touched[n], r] += factor * sums[n, r]
