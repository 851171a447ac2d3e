"""Elementary functions: right to the last places, for any number, and with bits that are written down here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from unittest import mock

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import special

from ringleader.kernels import elementary
from ringleader.kernels.protocol import get_backend

RNG = np.random.default_rng(0)
ANY = np.concatenate([np.exp(RNG.uniform(-700, 700, 9000)), RNG.uniform(0.5, 2, 9000), [5e-324, 1e-310, 1.0]])
SMALL = RNG.uniform(-1, 1, 9000) * 10.0 ** RNG.uniform(-12, 0, 9000)
CHANCES = np.concatenate([RNG.uniform(0, 1, 9000), 10.0 ** RNG.uniform(-300, -3, 500), [0.5]])
NUMBERS = np.concatenate([RNG.uniform(-745, 709, 9000), SMALL])
CASES: list[tuple[str, Callable[..., np.ndarray], np.ndarray, float]] = [
    ("log", np.log, ANY, 4e-16),
    ("log1p", np.log1p, np.concatenate([ANY, SMALL]), 6e-16),
    ("exp", np.exp, NUMBERS, 4e-16),
    ("expm1", np.expm1, NUMBERS, 1e-15),
    ("logistic", special.expit, NUMBERS, 1e-15),
    ("log_logistic", special.log_expit, NUMBERS, 1e-15),
    ("ndtri", special.ndtri, CHANCES, 4e-15),
]


@pytest.mark.parametrize(("name", "expected", "numbers", "tolerance"), CASES, ids=[case[0] for case in CASES])
def test_functions_are_right_to_the_last_places(
    name: str, expected: Callable[..., np.ndarray], numbers: np.ndarray, tolerance: float
) -> None:
    made = getattr(elementary, name)(numbers)
    np.testing.assert_allclose(made, expected(numbers), rtol=tolerance, atol=1e-307)


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "expm1"])
def test_ends_of_the_range_are_those_of_numpy(name: str) -> None:
    ends = np.array([0.0, -1.0, np.inf, -np.inf, np.nan, -2.0, 800.0, -800.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(elementary, name)(ends), getattr(np, name)(ends), rtol=1e-15)


def test_functions_of_two_and_of_many() -> None:
    x, y = RNG.normal(size=200) * 50, RNG.normal(size=200) * 50
    np.testing.assert_allclose(elementary.logaddexp(x, y), np.logaddexp(x, y), rtol=1e-15)
    np.testing.assert_array_equal(elementary.logaddexp(np.array([-np.inf, np.inf]), -np.inf), [-np.inf, np.inf])
    np.testing.assert_allclose(elementary.logsumexp(x), special.logsumexp(x), rtol=1e-15)
    np.testing.assert_allclose(elementary.softmax(x), special.softmax(x), rtol=1e-14)
    z = np.exp(RNG.uniform(-5, 15, 500))
    np.testing.assert_allclose(elementary.gammaln(z), special.gammaln(z), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(elementary.betaln(3.5, 60.0), special.betaln(3.5, 60.0), rtol=1e-13)
    p = RNG.uniform(0.001, 0.999, 500)
    np.testing.assert_allclose(elementary.logit(p), special.logit(p), rtol=1e-12, atol=1e-15)


def test_a_number_has_the_bits_that_it_has_in_an_array() -> None:
    made = elementary.log(ANY)
    assert [elementary.log(float(x)) for x in ANY] == made.tolist()
    assert [elementary.log(x) for x in (0.0, np.inf)] == [-np.inf, np.inf]
    assert isinstance(elementary.exp(1.0), float)


def test_neither_the_shape_nor_the_place_in_an_array_changes_a_bit() -> None:
    table = RNG.normal(size=(3000, 7))
    assert table.size > elementary.PIECE
    made = elementary.exp(table)
    assert made.shape == table.shape
    np.testing.assert_array_equal(elementary.exp(table.T), made.T)
    np.testing.assert_array_equal(elementary.exp(table[1::3, 2]), made[1::3, 2])
    assert elementary.log(np.zeros((0, 3))).shape == (0, 3)


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(st.floats(width=64)), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_compiled_logarithms_have_the_bits_of_numpy(odd: list[float], more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.choice(np.concatenate([ANY, SMALL, 1.0 + SMALL, rng.integers(0, 99, 99)]), elementary.MANY + more)
    x[rng.permutation(len(x))[: len(odd)]] = odd
    get_backend()  # loads the kernels
    for name in ("log", "log1p"):
        function = getattr(elementary, name)
        with mock.patch.dict(elementary.KERNELS, clear=True):
            expected = function(x)
        np.testing.assert_array_equal(function(x).view(np.int64), expected.view(np.int64))


def test_the_bits_are_those_that_are_written_down() -> None:
    """The same on every machine: whoever sees this fail has found a processor, or a library, that computes others."""
    places = np.arange(1, 20001) / 20001
    digest = hashlib.sha256()
    for name in ("log", "log1p", "exp", "expm1", "logistic", "log_logistic", "logit", "ndtri", "gammaln"):
        digest.update(getattr(elementary, name)(places).tobytes())
    assert digest.hexdigest()[:16] == "c80692aaeaf2e537"


def test_what_is_built_of_is_exactly_rounded() -> None:
    """NumPy's products, quotients and roots are those of exact arithmetic, rounded once."""
    a, b = RNG.normal(size=200), RNG.normal(size=200)
    assert (a * b).tolist() == [float(Fraction(x) * Fraction(y)) for x, y in zip(a, b, strict=True)]
    assert (a / b).tolist() == [float(Fraction(x) / Fraction(y)) for x, y in zip(a, b, strict=True)]
    assert (a + b).tolist() == [float(Fraction(x) + Fraction(y)) for x, y in zip(a, b, strict=True)]


def test_a_surprise_is_the_log_ratio_of_poisson_likelihoods_above_what_was_expected() -> None:
    count, expected = np.array([0, 1, 2, 3, 9, 9]), np.array([0.5, 1.0, 0.1, 4.0, 8.9, 1e-4])
    ratio = special.xlogy(count, count / expected) - (count - expected)
    np.testing.assert_allclose(elementary.surprise(count, expected), np.where(count > expected, ratio, 0), rtol=1e-12)
    assert elementary.surprise(count, expected)[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0]
