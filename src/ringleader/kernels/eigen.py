"""Eigenvectors of small symmetric matrices, and the leading singular vectors of any, with the same bits everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import sparse

from ringleader.arrays import Floats
from ringleader.counters import stream_key, uniforms
from ringleader.kernels.tiles import product, times_vector, vector_times

SMALL = 16
"""Rows of a matrix up to which rotations run without a compiler."""
SWEEPS = 60
"""Passes of rotations at most; a matrix of a hundred rows takes ten."""
STEPS = 96
"""Lanczos vectors: as many as a small matrix has rows, so that its vectors are exact, and enough for leading ones."""
STREAM = 71
"""Of the numbers that the first vector is made of."""


def rotate(matrix: Floats, vectors: Floats) -> None:
    """Jacobi's rotations until ``matrix``, symmetric, is diagonal; ``vectors`` are turned with it. Both in place."""
    size = len(matrix)
    for _ in range(SWEEPS):
        moved = False
        for p in range(size - 1):
            for q in range(p + 1, size):
                apart = matrix[p, q]
                if abs(apart) <= 1e-17 * (abs(matrix[p, p]) + abs(matrix[q, q])):
                    continue
                moved = True
                ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * apart)
                tangent = 1.0 / (abs(ratio) + np.sqrt(ratio * ratio + 1.0))
                if ratio < 0.0:
                    tangent = -tangent
                cosine = 1.0 / np.sqrt(tangent * tangent + 1.0)
                sine = tangent * cosine
                first, second = matrix[p].copy(), matrix[q].copy()
                matrix[p] = cosine * first - sine * second
                matrix[q] = sine * first + cosine * second
                first, second = matrix[:, p].copy(), matrix[:, q].copy()
                matrix[:, p] = cosine * first - sine * second
                matrix[:, q] = sine * first + cosine * second
                matrix[p, q] = matrix[q, p] = 0.0
                first, second = vectors[p].copy(), vectors[q].copy()
                vectors[p] = cosine * first - sine * second
                vectors[q] = sine * first + cosine * second
        if not moved:
            return


@cache
def _compiled_rotate() -> Callable[[Floats, Floats], None]:
    from ringleader.kernels.numba.matrices import compiled

    return compiled(rotate)


def symmetric_eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (n,), ascending, and eigenvectors (n, n), one a column, as ``np.linalg.eigh`` gives them."""
    left, vectors = np.array(matrix, np.float64), np.eye(len(matrix))
    (rotate if len(left) <= SMALL else _compiled_rotate())(left, vectors)
    values = np.diag(left)
    order = np.argsort(values, kind="stable")
    return values[order], np.ascontiguousarray(vectors[order].T)


def left_vectors(matrix: Floats | sparse.csr_array, count: int) -> Floats:
    """The left singular vectors (m, count) of a matrix (m, n) that have the largest singular values, the first largest.

    Lanczos with every vector made orthogonal to all before it; where they span a space that the matrix does not leave,
    it begins anew outside.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    one, other = (matrix.T, matrix) if tall else (matrix, matrix.T)
    if sparse.issparse(matrix):
        one, other = sparse.csr_array(one), sparse.csr_array(other)
    else:
        one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    size = one.shape[0]
    steps = min(size, STEPS)
    basis, tridiagonal = np.zeros((steps, size)), np.zeros((steps, steps))
    vector = _fresh(basis[:0], 0)
    for k in range(steps):
        basis[k] = vector
        moved = _times(one, _times(other, vector))
        tridiagonal[k, k] = (vector * moved).sum()
        moved = _orthogonal(basis[: k + 1], moved)
        length = np.sqrt(np.square(moved).sum())
        if k + 1 < steps:
            if length <= 1e-12 * np.diag(tridiagonal).max():
                vector = _fresh(basis[: k + 1], k + 1)
            else:
                vector = moved / length
                tridiagonal[k, k + 1] = tridiagonal[k + 1, k] = length
    _, turn = symmetric_eigen(tridiagonal)
    vectors = product(np.ascontiguousarray(turn[:, ::-1][:, : min(count, steps)].T), basis)
    if tall:
        vectors = np.stack([_times(other, vector) for vector in vectors])
    lengths = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
    return np.ascontiguousarray((vectors / np.where(lengths > 0, lengths, 1.0)).T)


def _times(matrix: Floats | sparse.csr_array, vector: Floats) -> Floats:
    return np.asarray(matrix @ vector) if sparse.issparse(matrix) else times_vector(matrix, vector)


def _fresh(basis: Floats, number: int) -> Floats:
    """A vector of length one, orthogonal to the rows of ``basis``, that looks like chance."""
    drawn = uniforms(stream_key(0, STREAM), np.arange(basis.shape[1]), number) - 0.5
    vector = _orthogonal(basis, drawn) if len(basis) else drawn
    return np.asarray(vector / np.sqrt(np.square(vector).sum()))


def _orthogonal(basis: Floats, vector: Floats) -> Floats:
    for _ in range(2):  # what rounding left of the first time
        vector = vector - vector_times(times_vector(basis, vector), basis)
    return vector
