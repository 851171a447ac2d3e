"""Matrix algebra in tiles: right, and with the same bits in any thread and for any number of BLAS threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ringleader.kernels.tiles import gram, inverse_factor, product, row_lengths, times_vector, vector_times

SIZES = [(1, 1), (5, 3), (64, 64), (130, 24), (65, 130), (200, 301), (700, 250)]


@pytest.mark.parametrize(("m", "p"), SIZES)
def test_they_are_what_numpy_says(m: int, p: int) -> None:
    rng = np.random.default_rng(m + p)
    rows, weight = rng.normal(size=(m, p)), rng.uniform(0.01, 0.25, m)
    np.testing.assert_allclose(gram(rows, weight), (rows * weight[:, None]).T @ rows, atol=1e-10)
    block = gram(rows, weight) + np.eye(p)
    factor = inverse_factor(block)
    np.testing.assert_allclose(factor, np.linalg.inv(np.linalg.cholesky(block)), atol=1e-9)
    assert np.array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(product(rows, factor.T), rows @ factor.T, atol=1e-10)
    lengths = np.sqrt(((rows @ factor.T) ** 2).sum(axis=1))
    single = rows.astype(np.float32)
    np.testing.assert_allclose(row_lengths(lambda part: single[part], m, factor.T), lengths, rtol=1e-5)
    np.testing.assert_allclose(times_vector(rows, factor[0]), rows @ factor[0], atol=1e-10)
    np.testing.assert_allclose(vector_times(weight, rows), weight @ rows, atol=1e-10)


def everything() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    rows, weight = rng.normal(size=(900, 330)), rng.uniform(0.01, 0.25, 900)
    block = gram(rows, weight) + np.eye(330)
    factor = inverse_factor(block)
    single = np.tile(rows.astype(np.float32), (3, 1))
    lengths = row_lengths(lambda part: single[part], len(single), factor.T)
    return [block, factor, product(rows, factor.T), lengths, times_vector(rows, factor[0]), vector_times(weight, rows)]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_bits_do_not_depend_on_the_threads_of_blas(count: int) -> None:
    expected = everything()
    with threadpool_limits(count, "blas"):
        assert all(np.array_equal(a, b) for a, b in zip(everything(), expected, strict=True))


def test_nor_on_the_thread_that_asks() -> None:
    expected, results = everything(), []
    with threadpool_limits(1, "blas"):  # after which other threads may not be able to set the number themselves
        pass
    threads = [threading.Thread(target=lambda: results.append(everything())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert all(np.array_equal(a, b) for result in results for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize("unit", [2.0**-300, 2.0**-73, 2.0**73, 2.0**300])
def test_lengths_of_rows_follow_the_unit_to_the_bit(unit: float) -> None:
    rng = np.random.default_rng(0)
    rows, root = rng.normal(size=(200, 90)).astype(np.float32), rng.normal(size=(90, 70))
    plain = row_lengths(lambda part: rows[part], len(rows), root)
    np.testing.assert_allclose(plain, np.linalg.norm(rows @ root, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(row_lengths(lambda part: rows[part], len(rows), root * unit), plain * unit)
