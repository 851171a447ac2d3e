"""The Polya-Gamma identities the model rests on (model.md section 2)."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.kernels.layout import Rule, View, plan_blocks, read_only
from ringleader.kernels.logistic import expected_omega, fisher_weight, log_logistic, logistic
from ringleader.kernels.protocol import get_backend


def polya_gamma_density(omega: np.ndarray, tilt: float, terms: int = 60) -> np.ndarray:
    """Density of PG(1, tilt) by its alternating series: cosh(c/2) exp(-c^2 w / 2) f(w | 1, 0)."""
    n = np.arange(terms)[:, None]
    series = (-1.0) ** n * (2 * n + 1) / np.sqrt(2 * np.pi * omega**3) * np.exp(-((2 * n + 1) ** 2) / (8 * omega))
    return np.cosh(tilt / 2) * np.exp(-(tilt**2) * omega / 2) * series.sum(axis=0)


@pytest.mark.parametrize("tilt", [0.0, 0.005, 0.3, 1.0, 2.5, 6.0])
def test_expected_omega_is_the_mean_of_the_density(tilt: float) -> None:
    grid = np.exp(np.linspace(np.log(1e-4), np.log(12.0), 60_001))
    density = polya_gamma_density(grid, tilt)
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    assert np.trapezoid(grid * density, grid) == pytest.approx(float(expected_omega(tilt)), rel=1e-5)


def test_expected_omega_near_zero_over_thirty_decades() -> None:
    phi = 10.0 ** np.arange(-30, 1.0, 0.25)
    exact = np.tanh(phi / 2) / (2 * phi)
    # tanh(x)/x loses nothing for tiny x in float64, so it is a fair judge everywhere.
    np.testing.assert_allclose(expected_omega(phi), exact, rtol=3e-13)
    np.testing.assert_allclose(expected_omega(-phi), expected_omega(phi), rtol=1e-13)
    assert float(expected_omega(0.0)) == 0.25


def test_augmented_gradient_is_the_logistic_gradient() -> None:
    phi = np.linspace(-40, 40, 2001)
    for y in (0.0, 1.0):
        np.testing.assert_allclose((y - 0.5) - expected_omega(phi) * phi, y - logistic(phi), atol=1e-15)


def test_fisher_weight_is_below_expected_omega_and_exact() -> None:
    phi = np.concatenate([np.linspace(-50, 50, 1001), [-800.0, 800.0]])
    assert (fisher_weight(phi) <= expected_omega(phi) + 1e-16).all()
    sigma = logistic(phi)
    np.testing.assert_allclose(fisher_weight(phi), sigma * logistic(-phi), rtol=1e-12)


def test_nothing_overflows_at_huge_log_odds() -> None:
    phi = np.array([-1e308, -1e4, 1e4, 1e308])
    with np.errstate(over="raise", invalid="raise"):
        assert logistic(phi).tolist() == [0, 0, 1, 1]
        assert log_logistic(phi)[2:].tolist() == [0, 0]
        assert np.isfinite(expected_omega(phi)).all()


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("curvature", [0, 1])
def test_compiled_weights_agree_from_tiny_to_huge(backend: str, curvature: int) -> None:
    """One cell per entity of a rank-one matrix: its log-odds is its factor, its weight is read back."""
    phi = np.concatenate([10.0 ** np.arange(-30, 2.8, 0.2), [0.0, 0.00999, 0.01, 0.01001, 300.0]])
    n = len(phi)
    tuples = np.stack([np.arange(n), np.zeros(n)], axis=1).astype(np.int32)
    factors = np.concatenate([phi, [1.0]])[:, None]
    view = View(read_only(tuples), np.ones(1), 0, factors, np.array([0, n]), len(factors), np.ones(1))
    each = np.arange(n)
    blocks = plan_blocks(0, each, (each, each + 1, each.astype(np.int32)))
    rule = Rule(0, curvature, 1.0, 1.0, False, 1.0, 0.0, 0.0, 0.0, 1.0)
    log_odds, leverage, weight = get_backend(backend).leave_one_out(view, blocks, rule)
    np.testing.assert_allclose(log_odds, phi)
    np.testing.assert_allclose(weight, [expected_omega, fisher_weight][curvature](phi), rtol=1e-12)
    np.testing.assert_allclose(leverage, 1 / (weight + 1))
