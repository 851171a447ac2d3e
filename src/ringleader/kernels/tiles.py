"""Matrix algebra in tiles, so that its bits depend neither on the number of cores nor on who else uses BLAS.

A BLAS library cuts large products among its threads, and other cuts give other last bits. How many threads it uses is
a setting of the whole process, which a thread beside the main one may not even be able to change. So every product
here is made of products of tiles that no library cuts, added up in a fixed order; threads of our own share the tiles.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from ringleader.arrays import Floats
from ringleader.runtime.executor import Threads

TILE = 64
"""Rows and columns of a tile: 64^3 is the most that OpenBLAS leaves to one thread."""

SHARED = 64
"""Products of tiles from which threads share them."""

Tiles = npt.NDArray[np.float64]
"""(I, J, TILE, TILE), the last ones filled up with zeros."""


def _cut(matrix: Floats) -> Tiles:
    rows, columns = (-(-size // TILE) for size in matrix.shape)
    whole = np.zeros((rows * TILE, columns * TILE))
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(whole.reshape(rows, TILE, columns, TILE).transpose(0, 2, 1, 3))


def _joined(tiles: Tiles, rows: int, columns: int) -> Floats:
    whole = tiles.transpose(0, 2, 1, 3).reshape(tiles.shape[0] * TILE, tiles.shape[1] * TILE)
    return np.ascontiguousarray(whole[:rows, :columns])


def _sums(left: Tiles, right: Tiles, at: npt.NDArray[np.int64]) -> Tiles:
    """sum over k of left[i, k] @ right[k, j] for the pairs (i, j) in the rows of ``at``, (len(at), TILE, TILE)."""

    def add_up(pairs: npt.NDArray[np.int64]) -> Tiles:
        total = np.zeros((len(pairs), TILE, TILE))
        for k in range(left.shape[1]):
            total += left[pairs[:, 0], k] @ right[k, pairs[:, 1]]
        return total

    threads = Threads()
    pieces = np.array_split(at, threads.count) if len(at) * left.shape[1] >= SHARED else [at]
    return np.concatenate([np.zeros((0, TILE, TILE)), *threads.map(add_up, pieces)])


def product(left: Floats, right: Floats) -> Floats:
    """left @ right."""
    a, b = _cut(left), _cut(right)

    def add_up(rows: Tiles) -> Tiles:
        total = np.zeros((len(rows), b.shape[1], TILE, TILE))
        for k in range(len(b)):
            total += rows[:, k, None] @ b[k]
        return total

    threads = Threads()
    pieces = np.array_split(a, threads.count) if a.shape[0] * b.shape[0] * b.shape[1] >= SHARED else [a]
    return _joined(np.concatenate(threads.map(add_up, pieces)), left.shape[0], right.shape[1])


def gram(rows: Floats, weight: Floats) -> Floats:
    """rows' diag(weight) rows, symmetric."""
    scaled = rows * np.sqrt(weight)[:, None]
    tiles = _cut(scaled)
    turned = np.ascontiguousarray(tiles.transpose(1, 0, 3, 2))
    at = np.stack(np.triu_indices(tiles.shape[1]), axis=1)
    upper = np.zeros((tiles.shape[1], tiles.shape[1], TILE, TILE))
    upper[at[:, 0], at[:, 1]] = _sums(turned, tiles, at)
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
