"""Eigenvectors and singular vectors: what LAPACK finds, compiled or not, and where values coincide too."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.kernels.eigen import left_vectors, rotate, symmetric_eigen


def symmetric(size: int) -> np.ndarray:
    made = np.random.default_rng(size).normal(size=(size, size))
    return made + made.T


@pytest.mark.parametrize("size", [1, 2, 6, 16, 17, 90])
def test_eigenvectors_are_what_numpy_says(size: int) -> None:
    matrix = symmetric(size)
    values, vectors = symmetric_eigen(matrix)
    expected, theirs = np.linalg.eigh(matrix)
    np.testing.assert_allclose(values, expected, atol=1e-12 * size)
    np.testing.assert_allclose(np.abs((vectors * theirs).sum(axis=0)), 1.0, atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-13)


def test_compiled_rotations_have_the_bits_of_those_that_are_not() -> None:
    matrix = symmetric(20)
    left, vectors = matrix.copy(), np.eye(20)
    rotate(left, vectors)
    order = np.argsort(np.diag(left), kind="stable")
    np.testing.assert_array_equal(symmetric_eigen(matrix)[1], vectors[order].T)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 8), (8, 3), (40, 60), (60, 40), (300, 150), (150, 700)])
def test_leading_singular_vectors_are_what_numpy_says(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    matrix = rng.normal(size=(rows, columns)) + 3 * np.outer(np.sign(rng.normal(size=rows)), np.ones(columns))
    for k, strength in enumerate((9.0, 6.0)):  # as a table with blocks has them
        matrix[k::4, k::3] += strength
    made = left_vectors(matrix, 3)
    expected = np.linalg.svd(matrix, full_matrices=False)[0][:, :3]
    assert made.shape == expected.shape
    np.testing.assert_allclose(np.abs((made * expected).sum(axis=0)), 1.0, atol=1e-8)


def test_singular_values_that_coincide_have_a_vector_each() -> None:
    made = left_vectors(np.kron(np.eye(4), np.ones((3, 5))), 4)
    np.testing.assert_allclose(made.T @ made, np.eye(4), atol=1e-10)
    blocks = made.reshape(4, 3, 4)
    np.testing.assert_allclose(blocks, np.repeat(blocks[:, :1], 3, axis=1), atol=1e-10)


def test_a_table_of_zeros_has_vectors_of_zeros() -> None:
    assert not left_vectors(np.zeros((5, 3)), 2).any()
