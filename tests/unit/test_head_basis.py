"""What the head sees of an entity: splines of ranks over the population."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.stats import rankdata
from small_population import population

from ringleader.judge.basis import bend_map, cubic_splines, lay_out, rank_all


def test_splines_are_those_of_scipy() -> None:
    u = np.linspace(0, 1, 101)[:-1]
    knots = np.arange(-3, 8) / 4
    want = BSpline.design_matrix(u, knots, 3).toarray()
    np.testing.assert_allclose(cubic_splines(u, 5), want, atol=1e-12)


def test_bends_hold_no_line_and_unit_variance_together() -> None:
    u = (np.arange(4000) + 0.5) / 4000
    bends = cubic_splines(u, 5) @ bend_map(5)
    np.testing.assert_allclose(bends.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose((u - 0.5) @ bends / len(u), 0, atol=1e-9)
    assert (bends**2).mean(axis=0).sum() == pytest.approx(1)


def test_ranks_average_ties_and_map_new_values() -> None:
    x = np.array([[3.0], [1.0], [1.0], [2.0], [9.0]])
    ranks = rank_all(x)
    u = (ranks.levels[:, 0] + 0.5) / 65536
    np.testing.assert_allclose(u, (rankdata(x[:, 0]) - 0.5) / 5, atol=1e-4)
    np.testing.assert_array_equal(ranks.of(x), ranks.levels)
    assert ranks.of(np.array([[-5.0]])) == ranks.levels[1]


def test_design_columns_are_centred() -> None:
    x, _, _ = population()
    ranks = rank_all(x)
    rows = lay_out(ranks, 5, None).rows(ranks.levels)
    np.testing.assert_allclose(rows[:, 1:].mean(axis=0), 0, atol=1e-10)
