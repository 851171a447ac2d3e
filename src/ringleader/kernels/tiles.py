"""Matrix algebra in tiles, so that its bits depend neither on the number of cores nor on who else uses BLAS.

A BLAS library cuts large products among its threads, and other cuts give other last bits. How many threads it uses is
a setting of the whole process, which a thread beside the main one may not even be able to change. So every product
here is made of products of tiles that no library cuts, added up in a fixed order; threads of our own share the tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from ringleader.arrays import Floats
from ringleader.runtime.executor import Threads

TILE = 64
"""Rows and columns of a tile: 64^3 is the most that OpenBLAS leaves to one thread."""

SHARED = 64
"""Products of tiles from which threads share them."""

PART = 1024
"""Rows whose lengths are found at a time: with 500 columns they stay in a processor's cache."""

Tiles = npt.NDArray[np.floating]
"""(I, J, TILE, TILE), the last ones filled up with zeros."""


def _cut(matrix: npt.NDArray[np.floating]) -> Tiles:
    rows, columns = (-(-size // TILE) for size in matrix.shape)
    whole = np.zeros((rows * TILE, columns * TILE), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(whole.reshape(rows, TILE, columns, TILE).transpose(0, 2, 1, 3))


def _joined(tiles: Tiles, rows: int, columns: int) -> Floats:
    whole = tiles.transpose(0, 2, 1, 3).reshape(tiles.shape[0] * TILE, tiles.shape[1] * TILE)
    return np.ascontiguousarray(whole[:rows, :columns])


def product(left: Floats, right: Floats) -> Floats:
    """left @ right. Tiles of ``right`` before the first and behind the last that is not zero cost nothing."""
    if max(right.shape) <= TILE:  # one tile, which need not be filled up
        parts = (_stacked(left[begin : begin + TILE * PART]) @ right for begin in range(0, len(left), TILE * PART))
        return np.concatenate([part.reshape(-1, right.shape[1]) for part in parts] or [left @ right])[: len(left)]
    a, b = _cut(left), _cut(right)
    spans = _filled(b)
    threads = Threads()
    pieces = np.array_split(a, threads.count) if a.shape[0] * b.shape[0] * b.shape[1] >= SHARED else [a]
    added = threads.map(lambda rows: _added_up(rows, b, spans), pieces)
    return _joined(np.concatenate(added), left.shape[0], right.shape[1])


def _stacked(rows: Floats) -> Floats:
    """Rows in tiles, (tiles, TILE, columns), the last one filled up with zeros."""
    count, width = -(-len(rows) // TILE), rows.shape[1]
    whole = rows
    if len(rows) < count * TILE:
        whole = np.zeros((count * TILE, width))
        whole[: len(rows)] = rows
    return whole.reshape(count, TILE, width)


def row_lengths(make_rows: Callable[[slice], npt.NDArray[np.float32]], count: int, root: Floats) -> Floats:
    """Length of each row of X @ root, (count,), in single precision; ``make_rows`` gives a part of the rows of X."""
    # In single precision the squares of very large and very small numbers are lost; powers of two cost no bit.
    exponent = math.frexp(float(np.abs(root).max(initial=0.0)))[1]
    b = _cut(np.ldexp(root, -exponent).astype(np.float32))
    spans = _filled(b)

    def lengths(start: int) -> Floats:
        rows = make_rows(slice(start, min(start + PART, count)))
        squares = _added_up(_cut(rows), b, spans) ** 2
        sums = squares.sum(axis=(1, 3), dtype=np.float64).reshape(-1)[: len(rows)]
        return np.asarray(np.ldexp(np.sqrt(sums), exponent))

    return np.concatenate([*Threads().map(lengths, range(0, count, PART)), np.zeros(0)])


def _filled(tiles: Tiles) -> list[slice]:
    """For each row of tiles, from the first to the last that is not zero."""
    spans = []
    for row in tiles:
        filled = np.flatnonzero(row.any(axis=(1, 2)))
        spans.append(slice(int(filled[0]), int(filled[-1]) + 1) if len(filled) else slice(0, 0))
    return spans


def _added_up(a: Tiles, b: Tiles, spans: list[slice]) -> Tiles:
    """The tiles of the product, each added up in the order of the columns of ``a``."""
    total = np.zeros((len(a), b.shape[1], TILE, TILE), a.dtype)
    for k, span in enumerate(spans):
        total[:, span] += a[:, k, None] @ b[k, span]
    return total


def gram(rows: Floats, weight: Floats) -> Floats:
    """rows' diag(weight) rows, symmetric."""
    scaled = rows * np.sqrt(weight)[:, None]
    tiles = _cut(scaled)
    turned = tiles.transpose(1, 0, 3, 2)
    upper = np.zeros((len(turned), len(turned), TILE, TILE))

    def add_up(first: int) -> None:
        for k in range(len(tiles)):
            upper[first, first:] += turned[first, k] @ tiles[k, first:]

    threads = Threads() if len(turned) ** 2 * len(tiles) >= SHARED else Threads(1)
    threads.map(add_up, range(len(turned)))
    whole = np.triu(_joined(upper, rows.shape[1], rows.shape[1]))
    return whole + np.triu(whole, 1).T


def times_vector(matrix: Floats, vector: Floats) -> Floats:
    """matrix @ vector."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def vector_times(vector: Floats, matrix: Floats) -> Floats:
    """vector @ matrix."""
    return np.asarray(np.einsum("i,ij->j", vector, matrix))


def inverse_factor(block: Floats) -> Floats:
    """K, lower triangular, with K' K = block^-1, for a symmetric positive definite block: the inverse of its Cholesky.

    Tile by tile: a column of the factor, then what it leaves of the columns behind it; rows of K likewise.
    """
    size = len(block)
    tiles = _cut(block)
    count = len(tiles)
    filled = np.arange(size - (count - 1) * TILE, TILE)  # what fills up the last tile must not be singular
    tiles[-1, -1, filled, filled] = 1.0
    inverses = np.zeros((count, TILE, TILE))
    for k in range(count):
        inverses[k] = np.tril(dtrtri(np.linalg.cholesky(tiles[k, k]), lower=1)[0])
        behind = np.arange(k + 1, count)
        tiles[behind, k] = tiles[behind, k] @ inverses[k].T
        low, high = (behind[place] for place in np.tril_indices(len(behind)))
        tiles[low, high] -= tiles[low, k] @ tiles[high, k].transpose(0, 2, 1)
    made = np.zeros_like(tiles)
    for row in range(count):
        made[row, row] = inverses[row]
        total = np.zeros((row, TILE, TILE))
        for k in range(row):
            total[: k + 1] += tiles[row, k] @ made[k, : k + 1]
        made[row, :row] = -(inverses[row] @ total)
    return _joined(made, size, size)
