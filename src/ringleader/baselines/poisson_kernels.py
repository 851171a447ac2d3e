"""Compiled loops of the Poisson factorisations (BPTF, BNBCP).

Rows of all modes are stacked: entity n of mode k is row ``starts[k] + n``. A sum that crosses threads is cut into
pieces of fixed length, whatever the number of threads, and the pieces are added in order: same answer, bit for bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from ringleader.baselines.jit import compiled, compiled_parallel
from ringleader.tensor.sparse import Grouping

PIECE = 8192  # cells per piece
BATCH = 64  # cells whose rows are read together
ROWS = 1024  # rows per piece
TINY = 1e-250  # below this a sum of products is done again with logarithms


class Cells(NamedTuple):
    """The tensor with its modes stacked."""

    coordinates: npt.NDArray[np.int32]  # (n_cells, K)
    counts: npt.NDArray[np.int64]  # (n_cells,)
    starts: npt.NDArray[np.int64]  # (K + 1,)


class Gains(NamedTuple):
    """exp E log of the factors, each row divided by its largest: ``values = exp(logs - peaks[:, None])``.

    ``values`` has columns of zeros up to a multiple of four, which the inner loops take in one step.
    """

    values: npt.NDArray[np.float64]  # (sum n_k, padded R)
    logs: npt.NDArray[np.float64]  # (sum n_k, R)
    peaks: npt.NDArray[np.float64]  # (sum n_k,)


def empty_gains(rows: int, rank: int) -> Gains:
    """Gains to be filled by ``refresh_gains``."""
    return Gains(np.zeros((rows, -(-rank // 4) * 4)), np.empty((rows, rank)), np.empty(rows))


@compiled
def digamma(x):  # type: ignore[no-untyped-def]
    """psi(x) for x > 0, to about 1e-14. Same as: ``scipy.special.digamma(x)``."""
    shift = 0.0
    while x < 8.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    tail = 1.0 / 240.0 - square * (1.0 / 132.0 - square * 691.0 / 32760.0)
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square * tail)))
    return shift + math.log(x) - 0.5 * inverse - series


@compiled
def _stable(rows, logs, c, products):  # type: ignore[no-untyped-def]
    """Shares of the components in a cell by logarithms, where products of rows vanish. Returns the log of the sum."""
    modes = len(rows)
    rank = logs.shape[1]
    top = -np.inf
    for r in range(rank):
        value = 0.0
        for m in range(modes):
            value += logs[rows[m, c], r]
        products[c, r] = value
        top = max(top, value)
    total = 0.0
    for r in range(rank):
        products[c, r] = math.exp(products[c, r] - top)
        total += products[c, r]
    for r in range(rank):
        products[c, r] /= total
    return top + math.log(total)


@compiled
def _entity_at(offsets, position):  # type: ignore[no-untyped-def]
    """The entity whose cells hold a position. Same as: ``np.searchsorted(offsets, position, side="right") - 1``."""
    low, high = 0, len(offsets) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= position:
            low = middle
        else:
            high = middle
    # Entities without cells share an offset with the next; take the last of them.
    while offsets[low + 1] <= position:
        low += 1
    return low


@compiled
def _piece(cells, grouping, gains, piece, statistics, edges):  # type: ignore[no-untyped-def]
    """Statistics of one piece of the grouped cells; returns its part of the bound.

    Entities that begin before the piece go to ``edges[piece, 0]``, those that end after it to ``edges[piece, 1]``.
    """
    offsets, grouped = grouping
    coordinates, counts, starts = cells.coordinates, cells.counts, cells.starts
    values, logs, peaks = gains.values, gains.logs, gains.peaks
    modes = coordinates.shape[1]
    padded = values.shape[1]
    rank = logs.shape[1]
    low = piece * PIECE
    high = min(len(grouped), low + PIECE)
    entity = _entity_at(offsets, low)
    gathered = np.zeros(padded)
    products = np.zeros((BATCH, padded))
    log_totals = np.empty(BATCH)
    rows = np.empty((modes, BATCH), np.uint64)  # unsigned: an index that needs no test for its sign
    weights = np.empty(BATCH)
    bound = 0.0
    # Batches, one array after the other: reads that do not wait for one another hide the memory's latency.
    for base in range(low, high, BATCH):
        width = min(BATCH, high - base)
        for c in range(width):
            i = grouped[base + c]
            weights[c] = counts[i]
            for m in range(modes):
                rows[m, c] = starts[m] + coordinates[i, m]
        for c in range(width):
            row = rows[0, c]
            log_totals[c] = peaks[row]
            for r in range(0, padded, 4):
                a0, a1, a2, a3 = values[row, r], values[row, r + 1], values[row, r + 2], values[row, r + 3]
                products[c, r], products[c, r + 1], products[c, r + 2], products[c, r + 3] = a0, a1, a2, a3
        for m in range(1, modes):
            for c in range(width):
                row = rows[m, c]
                log_totals[c] += peaks[row]
                for r in range(0, padded, 4):
                    a0 = values[row, r] * products[c, r]
                    a1 = values[row, r + 1] * products[c, r + 1]
                    a2 = values[row, r + 2] * products[c, r + 2]
                    a3 = values[row, r + 3] * products[c, r + 3]
                    products[c, r], products[c, r + 1], products[c, r + 2], products[c, r + 3] = a0, a1, a2, a3
        for c in range(width):
            while offsets[entity + 1] <= base + c:
                for r in range(rank):
                    if offsets[entity] < low:
                        edges[piece, 0, r] = gathered[r]
                    else:
                        statistics[entity, r] = gathered[r]
                    gathered[r] = 0.0
                entity += 1
            a0 = a1 = a2 = a3 = 0.0
            for r in range(0, padded, 4):
                a0 += products[c, r]
                a1 += products[c, r + 1]
                a2 += products[c, r + 2]
                a3 += products[c, r + 3]
            total = (a0 + a1) + (a2 + a3)
            if total > TINY:
                bound += weights[c] * (log_totals[c] + math.log(total))
                total = weights[c] / total
            else:
                bound += weights[c] * _stable(rows, logs, c, products)
                total = weights[c]
            for r in range(0, padded, 4):
                a0 = gathered[r] + total * products[c, r]
                a1 = gathered[r + 1] + total * products[c, r + 1]
                a2 = gathered[r + 2] + total * products[c, r + 2]
                a3 = gathered[r + 3] + total * products[c, r + 3]
                gathered[r], gathered[r + 1], gathered[r + 2], gathered[r + 3] = a0, a1, a2, a3
    for r in range(rank):
        if offsets[entity] < low:
            edges[piece, 0, r] = gathered[r]
        elif offsets[entity + 1] > high:
            edges[piece, 1, r] = gathered[r]
        else:
            statistics[entity, r] = gathered[r]
    return bound


@compiled_parallel
def _pieces(cells, grouping, gains, statistics, edges, bounds):  # type: ignore[no-untyped-def]
    """Every piece, each by one thread."""
    for piece in prange(len(bounds)):
        bounds[piece] = _piece(cells, grouping, gains, piece, statistics, edges)


@compiled
def _join(offsets, n, statistics, edges):  # type: ignore[no-untyped-def]
    """Give entities that lie across pieces their parts, in the order of the pieces."""
    for piece in range(len(edges)):
        low = piece * PIECE
        high = min(n, low + PIECE)
        first = _entity_at(offsets, low)
        last = _entity_at(offsets, high - 1)
        for r in range(edges.shape[2]):
            if offsets[first] < low:
                statistics[first, r] += edges[piece, 0, r]
            if offsets[last] >= low and offsets[last + 1] > high:
                statistics[last, r] += edges[piece, 1, r]


def mode_statistics(cells: Cells, grouping: Grouping, gains: Gains) -> tuple[npt.NDArray[np.float64], float]:
    """Expected counts of each entity of a mode by component, and the data term of the bound.

    Parameters
    ----------
    grouping : the cells of the mode's entities.

    Returns
    -------
    statistics : (n_k, R), sum over the entity's cells of count times responsibility.
    bound : sum over cells of count * log sum_r prod_k exp E log.

    Same as: ``p = prod(exp(logs[starts[m] + coordinates[:, m]]))``, ``z = p / p.sum(1)``,
    ``np.add.at(statistics, coordinates[:, k], counts * z)``, ``(counts * log(p.sum(1))).sum()``.
    """
    rank = gains.logs.shape[1]
    n = len(grouping.cells)
    pieces = -(-n // PIECE)
    statistics = np.zeros((len(grouping.offsets) - 1, rank))
    edges = np.zeros((pieces, 2, rank))
    bounds = np.zeros(pieces)
    order = (grouping.offsets, np.asarray(grouping.cells))
    _pieces(cells, order, gains, statistics, edges, bounds)
    _join(grouping.offsets, n, statistics, edges)
    return statistics, float(bounds.sum())


@compiled
def _refresh_piece(statistics, prior, shift, start, gains, piece):  # type: ignore[no-untyped-def]
    size, rank = statistics.shape
    values, logs, peaks = gains.values, gains.logs, gains.peaks
    part = 0.0
    for n in range(piece * ROWS, min(size, (piece + 1) * ROWS)):
        peak = -np.inf
        for r in range(rank):
            shape = prior + statistics[n, r]
            log = digamma(shape) - shift[r]
            logs[start + n, r] = log
            peak = max(peak, log)
            part += math.lgamma(shape) - statistics[n, r] * log
        peaks[start + n] = peak
        for r in range(rank):
            values[start + n, r] = math.exp(logs[start + n, r] - peak)
    return part


@compiled_parallel
def _refresh_pieces(statistics, prior, shift, start, gains, sums):  # type: ignore[no-untyped-def]
    for piece in prange(len(sums)):
        sums[piece] = _refresh_piece(statistics, prior, shift, start, gains, piece)


def refresh_gains(
    statistics: npt.NDArray[np.float64], prior: float, shift: npt.NDArray[np.float64], start: int, gains: Gains
) -> float:
    """Expected logs of one mode's factors, written into rows ``start`` onwards of ``gains``.

    E log = psi(prior + statistics) - shift, shift (R,): the log rate of a gamma, psi of the total of a Dirichlet.

    Returns
    -------
    sum of log Gamma(prior + statistics) - statistics * E log, the part of minus the divergence that runs over rows.

    Same as: ``logs = digamma(prior + statistics) - shift``, ``values = exp(logs - logs.max(1, keepdims=True))``.
    """
    sums = np.zeros(-(-len(statistics) // ROWS))
    _refresh_pieces(statistics, float(prior), shift, start, gains, sums)
    return float(sums.sum())
