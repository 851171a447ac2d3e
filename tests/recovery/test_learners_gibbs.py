"""The sampler is right, and the intervals of the fast path are measured against it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ringleader.errors import SettingsError
from ringleader.kernels.layout import EM, FISHER
from ringleader.kernels.logistic import expected_omega
from ringleader.known.labels import Target
from ringleader.learners import fit_loop, get_learner
from ringleader.learners.gibbs import _above_zero, polya_gamma
from ringleader.model.config import ModelConfig
from ringleader.model.negatives import group_negatives, negatives_of, view_of
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.tensor.sparse import SparseTensor

pytest.importorskip("polyagamma")


def test_draws_have_the_mean_of_the_identity() -> None:
    rng = np.random.default_rng(0)
    for shape, tilt in ((1.0, 0.0), (1.0, 2.0), (0.25, 1.0), (1000.0, 0.5)):
        drawn = polya_gamma(np.full(20_000, shape), np.full(20_000, tilt), rng)
        assert drawn.mean() == pytest.approx(shape * float(expected_omega(tilt)), rel=0.03)


def test_truncated_normals_stay_above_zero_in_the_far_tail() -> None:
    rng = np.random.default_rng(0)
    far = _above_zero(np.full(10_000, -30.0), np.ones(10_000), rng)
    assert (far >= 0).all()
    assert far.mean() == pytest.approx(1 / 30, rel=0.05)
    near = _above_zero(np.full(10_000, 0.0), np.ones(10_000), rng)
    assert near.mean() == pytest.approx(np.sqrt(2 / np.pi), rel=0.05)


def laplace(problem: Problem, state: State, curvature: int) -> np.ndarray:
    """Covariances of the rows of mode 0 given everything else, (n, R, R): inverses of the blocks' curvatures."""
    tuples = negatives_of(problem, state)
    blocks, rule = problem.blocks(0, group_negatives(problem, tuples)), problem.rule(0)._replace(curvature=curvature)
    curvatures = problem.backend.block_moments(view_of(problem, state, tuples), blocks, rule)[1]
    return np.linalg.inv(curvatures + np.eye(state.rank) / problem.config.variance)


@pytest.mark.slow
def test_intervals_of_the_fast_path_against_the_sampler() -> None:
    """Rows of one mode given the others, unconstrained: posterior means and widths.

    Stated tolerance, over entities with 60 or more entries: means within 0.3 of a posterior standard deviation on
    average (the mode of a skewed posterior is not its mean); Fisher widths within 15% on average. The E[omega]
    curvature is larger than the Fisher one, so its widths are too narrow; the test shows that they never exceed
    Fisher's, which is why intervals are to be read from the Fisher curvature.
    """
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, n, 1500) for n in (20, 12, 8)], 1)
    codes[:600] = np.stack([rng.integers(0, n // 2, 600) for n in (20, 12, 8)], 1)
    tensor = SparseTensor.from_arrays(codes)
    target = Target(0, "free", "binary", np.arange(3, dtype=np.int32), np.array([1.0, -1.0, 1.0]))
    config = ModelConfig(rank=3, free_targets=True, redraw=False, sweeps=30)
    problem = build_problem(tensor, (target,), config)
    state = start_state(problem)
    everyone = {0: np.arange(tensor.shape[0])}
    state, _ = fit_loop(problem, state, sweeps=8)
    state, _ = fit_loop(problem, state, sweeps=60, touched=everyone)  # the mode of mode 0 given the others
    means = state.rows(0)
    fisher, em = laplace(problem, state, FISHER), laplace(problem, state, EM)
    width = np.sqrt(np.diagonal(fisher, axis1=1, axis2=2))
    assert (np.sqrt(np.diagonal(em, axis1=1, axis2=2)) <= width * (1 + 1e-9)).all()

    draws = []

    def keep(info: object) -> None:
        draws.append(info.state.rows(0).copy())  # type: ignore[attr-defined]

    quiet = build_problem(tensor, (target,), config.replace(track_objective=False))
    fit_loop(quiet, state.copy(), get_learner("gibbs"), sweeps=1500, callback=keep, touched=everyone)
    kept = np.array(draws[200:])
    true_mean, true_width = kept.mean(axis=0), kept.std(axis=0)
    offset = np.abs(means - true_mean) / true_width
    assert offset.mean() < 0.3
    assert np.abs(width / true_width - 1).mean() < 0.15


def test_the_sampler_agrees_with_a_known_posterior() -> None:
    """Real target, no data to speak of: the head's conditional is plain Bayesian regression."""
    rng = np.random.default_rng(1)
    tensor = SparseTensor.from_arrays(np.stack([np.arange(40), np.arange(40) % 2], 1))
    rows = np.abs(rng.normal(size=(40, 2)))
    values = 1.5 + rows @ np.array([2.0, -1.0]) + 0.5 * rng.normal(size=40)
    target = Target(0, "age", "real", np.arange(40, dtype=np.int32), values)
    config = ModelConfig(rank=2, track_objective=False)
    problem = build_problem(tensor, (target,), config, start_rows={0: rows})
    state = start_state(problem)
    from ringleader.learners.gibbs import _draw_head

    kept = []
    generator = np.random.default_rng(0)
    for _ in range(2000):
        _draw_head(problem, state, 0, generator)
        kept.append(state.heads[0].copy())
    mean = np.array(kept[100:]).mean(axis=0)
    design = np.hstack([np.ones((40, 1)), rows])
    noise = 0.5**2
    ridge = np.linalg.solve(design.T @ design / noise + np.diag([0.01, 1, 1]), design.T @ values / noise)
    np.testing.assert_allclose(mean, ridge, atol=0.15)


def test_without_its_package_the_sampler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polyagamma", None)
    with pytest.raises(SettingsError, match=r"ringleader\[gibbs\]"):
        polya_gamma(np.ones(1), np.zeros(1), np.random.default_rng(0))
