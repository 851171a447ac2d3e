"""Matrix algebra: right, in the order of operations that is promised, with the same bits in any thread."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from ringleader.kernels.numba import matrices
from ringleader.kernels.tiles import (
    TILE,
    cholesky_factor,
    gram,
    graph_times,
    inverse_factor,
    product,
    row_lengths,
    solve_definite,
    times_vector,
    vector_times,
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 7), st.sampled_from([np.int32, np.int64]), st.integers(0, 99)
)
def test_graphs_times_columns_have_the_bits_of_scipy(n: int, m: int, fours: int, index: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = int(rng.integers(0, 3 * n * m))
    row, column = rng.integers(0, n, entries), rng.integers(0, m, entries)
    graph = sparse.csr_array((rng.normal(size=entries), (row, column)), shape=(n, m))
    graph.indices, graph.indptr = graph.indices.astype(index), graph.indptr.astype(index)
    numbers, back = rng.normal(size=(m, 4 * fours)), rng.normal(size=(n, 4 * fours))
    np.testing.assert_array_equal(graph_times(graph, numbers), graph @ numbers)
    np.testing.assert_array_equal(graph_times(graph.T, back), graph.T @ back)


def test_a_graph_is_not_multiplied_with_numbers_of_another_size() -> None:
    graph = sparse.csr_array(np.eye(3))
    for shape in ((2, 4), (3, 5)):
        with pytest.raises(ValueError, match="shape"):
            graph_times(graph, np.ones(shape))


SIZES = [(1, 1), (5, 3), (64, 64), (130, 24), (65, 130), (200, 301), (700, 250)]


@pytest.mark.parametrize(("m", "p"), SIZES)
def test_they_are_what_numpy_says(m: int, p: int) -> None:
    rng = np.random.default_rng(m + p)
    rows, weight = rng.normal(size=(m, p)), rng.uniform(0.01, 0.25, m)
    np.testing.assert_allclose(gram(rows, weight), (rows * weight[:, None]).T @ rows, atol=1e-10)
    block = gram(rows, weight) + np.eye(p)
    np.testing.assert_allclose(cholesky_factor(block), np.linalg.cholesky(block), atol=1e-9)
    factor = inverse_factor(block)
    np.testing.assert_allclose(factor, np.linalg.inv(np.linalg.cholesky(block)), atol=1e-9)
    assert np.array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(product(rows, factor.T), rows @ factor.T, atol=1e-10)
    lengths = np.sqrt(((rows @ factor.T) ** 2).sum(axis=1))
    single = rows.astype(np.float32)
    np.testing.assert_allclose(row_lengths(lambda part: single[part], m, factor.T), lengths, rtol=1e-5)
    np.testing.assert_allclose(times_vector(rows, factor[0]), rows @ factor[0], atol=1e-10)
    np.testing.assert_allclose(vector_times(weight, rows), weight @ rows, atol=1e-10)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded, and what the rounding left out (Knuth)."""
    made = a + b
    back = made - a
    return made, (a - (made - back)) + (b - back)


def halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of 26 bits whose sum it is (Veltkamp)."""
    large = a * 134_217_729.0
    high = large - (large - a)
    return high, a - high


def fused_step(total: np.ndarray, column: np.ndarray, row: np.ndarray) -> np.ndarray:
    """total + column row', each sum rounded once, by sums that are rounded to odd (Boldo and Melquiond, 2008)."""
    a, b = column[:, None], row[None, :]
    high = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    low = a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)
    upper, lower = two_sum(total, low)
    upper, rest = two_sum(high, upper)
    odd, left = two_sum(lower, rest)
    even = odd.view(np.int64) % 2 == 0
    odd = np.where((left != 0) & even, np.nextafter(odd, np.copysign(np.inf, left)), odd)
    return np.asarray(upper + odd)


def test_a_fused_step_is_rounded_as_fractions_are() -> None:
    rng = np.random.default_rng(0)
    column, row = rng.normal(size=9), rng.normal(size=12)
    total = np.outer(column, row)
    total *= -1 - rng.choice([0.0, 2.0**-52, 2.0**-30, 1.0, 2.0**40], total.shape)
    exact = [[float(Fraction(c) * Fraction(r) + Fraction(t)) for r, t in zip(row, of, strict=True)]
             for c, of in zip(column, total, strict=True)]  # fmt: skip
    np.testing.assert_array_equal(fused_step(total, column, row), exact)


def fused(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left @ right as it is promised: term by term in their order, each product added and the sum rounded once."""
    total = np.zeros((len(left), right.shape[1]))
    for column, row in zip(left.T, right, strict=True):
        total = fused_step(total, column, row)
    return total


@pytest.mark.parametrize(("m", "k", "p"), [(5, 20, 7), (9, 300, 13), (3, 17, 25)])
def test_every_sum_is_added_up_in_one_order(m: int, k: int, p: int) -> None:
    rng = np.random.default_rng(k)
    left, right, weight = rng.normal(size=(m, k)), rng.normal(size=(k, p)), rng.uniform(0.1, 1, k)
    right[: k // 2, : p // 2] = 0.0  # what is skipped changes nothing
    np.testing.assert_array_equal(product(left, right), fused(left, right))
    scaled = right * np.sqrt(weight)[:, None]
    np.testing.assert_array_equal(np.triu(gram(right, weight)), np.triu(fused(scaled.T, scaled)))
    np.testing.assert_array_equal(vector_times(left[0], right), fused(left[:1], right)[0])
    lanes = [fused(left[:, lane::4], right[lane::4, :1])[:, 0] for lane in range(4)]
    np.testing.assert_array_equal(times_vector(left, right[:, 0]), (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))


def tile_by_tile(block: np.ndarray) -> np.ndarray:
    """``inverse_factor`` by products of whole matrices: each tile inverted, and what it leaves of those behind it."""
    size, whole = len(block), -(-len(block) // TILE) * TILE
    left, made = np.eye(whole), np.zeros((whole, whole))
    left[:size, :size] = block
    for begin in range(0, whole, TILE):
        end, own = begin + TILE, slice(begin, begin + TILE)
        inverse = np.empty((TILE, TILE))
        assert matrices.invert_factor(left[own, own], np.zeros((TILE, TILE)), inverse)
        made[own, own] = inverse
        left[end:, own] = product(left[end:, own], np.ascontiguousarray(inverse.T))
        behind = left[end:, own].copy()
        for k in range(TILE):  # the sums go on from what is there, so they are not those of a product by itself
            left[end:, end:] = fused_step(left[end:, end:], -behind[:, k], behind[:, k])
    for begin in range(0, whole, TILE):
        end, own = begin + TILE, slice(begin, begin + TILE)
        made[own, :begin] = -product(made[own, own], made[own, :begin])
        for k in range(begin, end):
            made[end:, :end] = fused_step(made[end:, :end], left[end:, k], made[k, :end])
    return made[:size, :size]


@pytest.mark.parametrize("size", [1, 40, 48, 60, 100])
def test_the_inverse_of_a_factor_is_that_of_its_tiles_one_by_one(size: int) -> None:
    rng = np.random.default_rng(size)
    block = gram(rng.normal(size=(size + 5, size)), rng.uniform(0.1, 1, size + 5)) + np.eye(size)
    np.testing.assert_array_equal(inverse_factor(block), tile_by_tile(block))
    assert not np.signbit(gram(-np.zeros((3, 2)), np.ones(3))).any()


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    for made_of in (cholesky_factor, inverse_factor):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            made_of(-np.eye(60))


def test_a_definite_system_is_solved_and_one_that_rounding_made_singular_too() -> None:
    rng = np.random.default_rng(3)
    matrix, vector = gram(rng.normal(size=(90, 30)), np.ones(90)), rng.normal(size=30)
    np.testing.assert_allclose(solve_definite(matrix, vector), np.linalg.solve(matrix, vector), rtol=1e-9)
    flat = np.full((3, 3), 1.0)
    np.testing.assert_allclose(flat @ solve_definite(flat, np.ones(3)), np.ones(3), rtol=1e-3)
    assert np.isnan(solve_definite(flat * np.nan, np.ones(3))).all()
    with pytest.raises(np.linalg.LinAlgError):
        solve_definite(-flat, np.ones(3))


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
