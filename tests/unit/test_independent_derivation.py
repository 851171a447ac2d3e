"""The model derived anew: densities of scipy.stats, finite differences and brute force, none of the code's formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.stats import invgamma, multivariate_normal, norm

from ringleader.judge.basis import LINEAR
from ringleader.judge.posterior import ByLabels, ByWeights, Learning, Posterior, Prior, fit_linear, learn_variances
from ringleader.kernels.layout import no_statistics
from ringleader.kernels.single_block import prior_variance
from ringleader.known.labels import Target
from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.priors import head_step, label_terms, lambda_step, update_shrinkage
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.signals.evidence import review_evidence
from ringleader.tensor.sparse import SparseTensor

RANK = 3


def small_problem(seed: int = 0, **settings: object) -> tuple[Problem, State]:
    """Three modes, weighted cells, a binary and a real target on the first and the second mode."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, 40) for n in (6, 5, 4)], 1)
    tensor = SparseTensor.from_arrays(codes, sizes=(6, 5, 4), counts=rng.integers(1, 9, 40))
    targets = tuple(
        Target(mode, kind, kind, np.arange(4, dtype=np.int32), values)  # type: ignore[arg-type]
        for mode in (0, 1)
        for kind, values in (("binary", rng.choice([-1.0, 1.0], 4)), ("real", rng.normal(size=4)))
    )
    base = {"rank": RANK, "negatives": 2, "joint": True, "curvature": "fisher", "count_weight": "log"}
    problem = build_problem(tensor, targets, ModelConfig(**{**base, **settings}))  # type: ignore[arg-type]
    state = start_state(problem)
    state.factors[:] = np.abs(rng.normal(0.5, 0.5, state.factors.shape))
    state.component_weights[:] = rng.normal(1, 0.3, RANK)
    state.shrinkage[:] = rng.uniform(0.5, 2, RANK)
    state.heads[:] = rng.normal(size=state.heads.shape)
    return problem, state


def log_joint(problem: Problem, state: State, *, labels: bool = True) -> float:
    """log p(y, z, u, lambda, beta) up to a constant, with variances given."""
    codes, drawn = problem.tensor.coordinates, draw_sweep(problem, 0)[:, 3:]
    weight, total = 1 + np.log(problem.tensor.counts), 0.0
    for sign, who, share in [(1, codes[:, 0], 1.0), *((-1, d, 1 / drawn.shape[1]) for d in drawn.T)]:
        rows = state.rows(0)[who] * state.rows(1)[codes[:, 1]] * state.rows(2)[codes[:, 2]]
        total -= share * weight @ np.logaddexp(0, -sign * (rows @ state.component_weights))
    for t, target in enumerate(problem.targets if labels else ()):
        psi = state.heads[t, 0] + state.rows(target.mode)[target.codes] @ state.heads[t, 1:]
        noise, real = state.noise[t], target.kind == "real"
        total -= ((target.values - psi) ** 2 / (2 * noise) if real else np.logaddexp(0, -target.values * psi)).sum()
    lambdas = (state.component_weights**2 / np.cumprod(state.shrinkage)).sum()
    heads = (state.heads**2 / np.append(100.0, np.ones(RANK))).sum()  # the bias has a wide prior
    return float(total - (lambdas + heads + (state.factors**2).sum()) / 2)


def taylor(value: Callable[[], float], block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and negative Hessian of ``value()`` in a block of the state, by differences."""
    start, steps = block.copy(), 1e-3 * np.eye(len(block))

    def at(shift: np.ndarray) -> float:
        block[:] = start + shift
        return value()

    gradient = np.array([8 * (at(d) - at(-d)) - at(2 * d) + at(-2 * d) for d in steps]) / 12e-3
    hessian = np.array([[at(a + b) - at(a - b) - at(b - a) + at(-a - b) for b in steps] for a in steps]) / 4e-6
    block[:] = start
    return gradient, -hessian


def highest(log_density: Callable[[float], float]) -> float:
    """Where a density of a positive number has its mode."""
    found = minimize_scalar(lambda x: -log_density(float(np.exp(x))), bounds=(-12, 12), options={"xatol": 1e-10})
    return float(np.exp(found.x))


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_fisher_step_is_newtons_step_on_the_joint_density(backend: str, mode: int) -> None:
    problem, state = small_problem(backend=backend, free_targets=True)
    newton = state.rows(mode).copy()
    for n in range(len(newton)):
        g, f = taylor(lambda: log_joint(problem, state), state.rows(mode)[n])
        newton[n] += 0.1 * np.linalg.solve(f, g)
    blocks = problem.blocks(mode, group_negatives(problem, draw_sweep(problem, 0)) if mode == 0 else None)
    terms, rule = label_terms(problem, state, mode), problem.rule(mode, step=0.1)
    problem.backend.sweep_blocks(
        view_of(problem, state, draw_sweep(problem, 0)), blocks, rule, terms, no_statistics(RANK), np.zeros((0, RANK))
    )
    inside = (newton.min(axis=1) > 0) | (not problem.nonnegative(mode))
    assert inside.any()
    np.testing.assert_allclose(state.rows(mode)[inside], newton[inside], atol=5e-6)


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("free", [True, False])
def test_a_cavity_row_is_the_optimum_without_the_labels(backend: str, free: bool) -> None:
    problem, state = small_problem(backend=backend, free_targets=free)
    terms = label_terms(problem, state, 1)
    wanted = []
    for n in range(4):
        row = state.rows(1)[n]
        g, f = taylor(lambda: log_joint(problem, state, labels=False), row)
        root, aim = np.linalg.cholesky(f), g + f @ row
        wanted.append(np.linalg.solve(f, aim) if free else nnls(root.T, np.linalg.solve(root, aim))[0])
    cavity, blocks = np.full((len(terms.target), RANK), np.nan), problem.blocks(1)
    problem.backend.sweep_blocks(
        view_of(problem, state, draw_sweep(problem, 0)), blocks, problem.rule(1), terms, no_statistics(RANK), cavity
    )
    np.testing.assert_allclose(cavity[terms.offsets[:4]], wanted, atol=2e-5)


def test_steps_of_lambda_and_heads_are_newtons_and_variances_are_modes() -> None:
    problem, state = small_problem()
    g, f = taylor(lambda: log_joint(problem, state), state.component_weights)
    newton = state.component_weights + np.linalg.solve(f, g)
    cells = np.arange(problem.tensor.n_cells, dtype=np.int32)
    view = view_of(problem, state, draw_sweep(problem, 0))
    lambda_step(problem, state, problem.backend.lambda_moments(view, cells, problem.rule(0)), problem.rule(0))
    np.testing.assert_allclose(state.component_weights, newton, atol=1e-5)
    for t, target in enumerate(problem.targets):
        rows = state.rows(target.mode)[target.codes]
        g, f = taylor(lambda: log_joint(problem, state), state.heads[t])
        newton = state.heads[t] + np.linalg.solve(f, g)
        head_step(problem, state, t, rows, problem.rule(target.mode))
        np.testing.assert_allclose(state.heads[t], newton, atol=1e-5)
        if target.kind == "real":
            miss = target.values - newton[0] - rows @ newton[1:]
            mode = highest(lambda v, e=miss: norm.logpdf(e, 0, v**0.5).sum() + invgamma.logpdf(v, 1, scale=0.6))
            assert state.noise[t] == pytest.approx(mode, rel=1e-4)
    rule = problem.rule(2)._replace(shape=1.0, scale=9.0)
    mode = highest(lambda v: norm.logpdf(2.0, 0, v**0.5) + invgamma.logpdf(v, 1, scale=9.0))
    assert prior_variance(np.array([2.0]), rule)[0] == pytest.approx(mode, rel=1e-4)
    delta = state.shrinkage.copy()

    def density(value: float, r: int) -> float:
        deviation = np.sqrt(np.cumprod(np.where(np.arange(RANK) == r, value, delta)))
        return float(invgamma.logpdf(value, 1 + r / RANK) + norm.logpdf(state.component_weights, 0, deviation).sum())

    for r in range(RANK):  # each given those before it, already moved, and those after it
        delta[r] = highest(lambda value, r=r: density(value, r))
    np.testing.assert_allclose(update_shrinkage(state.component_weights, state.shrinkage), delta, rtol=1e-4)


def test_learned_head_variances_maximise_the_marginal_likelihood_and_both_inverses_agree() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 12))
    value = rows @ rng.normal(0, 0.7, 12) + 0.5 * rng.normal(size=30)
    prior, group, worth, mode = Prior(np.zeros(12), np.full(12, 2.0)), np.zeros(12, np.int64), 3.0, 2.0
    learning = Learning(mode, mode, worth, np.inf, np.inf, group, 500, 1e-9)

    def fit(prior: Prior, _start: np.ndarray, _to_the_end: bool) -> Posterior:
        return fit_linear(rows, value, prior, 0.25)

    def marginal(v: float) -> float:
        cover = v * rows @ rows.T + 0.25 * np.eye(30)
        return float(multivariate_normal.logpdf(value, np.zeros(30), cover) - worth / 2 * (np.log(v) + mode / v))

    _, learned, settled = learn_variances(fit, prior, np.full(12, LINEAR), np.arange(12), learning)
    assert settled
    np.testing.assert_allclose(learned.variance, highest(marginal), rtol=1e-4)
    weight, wide = rng.uniform(0.01, 0.25, 30), Prior(np.zeros(12), rng.uniform(0.1, 3, 12))
    plain = np.linalg.inv(rows.T @ (weight[:, None] * rows) + np.diag(1 / wide.variance))
    for made in (ByLabels(rows, weight, wide), ByWeights(rows, weight, wide)):
        np.testing.assert_allclose(made.solve(rows[0]), plain @ rows[0])
        np.testing.assert_allclose(made.diagonal(), np.diag(plain))
        np.testing.assert_allclose(made.leverage(), np.diag(rows @ plain @ rows.T))


@pytest.mark.parametrize("counted", ["one", "log", "count"])
def test_evidence_leaves_a_review_out_as_a_refit_does(counted: str) -> None:
    """Non-negative rows, Fisher, also where counts weigh."""
    rng = np.random.default_rng(0)
    blocks = [np.stack([rng.integers(b * n, b * n + n, 120) for n in (12, 4, 2)], 1) for b in range(3)]
    noise = np.stack([rng.integers(0, n, 500) for n in (60, 20, 8)], 1)
    tensor = SparseTensor.from_arrays(np.concatenate([*blocks, noise]), counts=rng.integers(1, 6, 860))
    config = ModelConfig(rank=4, redraw=False, curvature="fisher", count_weight=counted, sweeps=8)
    problem = build_problem(tensor, (), config)
    state, _ = fit_loop(problem, start_state(problem))
    state, _ = fit_loop(problem, state, sweeps=40, touched={0: np.arange(60)})
    made, cells, drawn = review_evidence(problem, state), tensor.coordinates, draw_sweep(problem, 0)[:, 3:]
    weight = {"one": np.ones(len(cells)), "log": 1 + np.log(tensor.counts), "count": tensor.counts}[counted]
    rows = state.component_weights * state.rows(1)[cells[:, 1]] * state.rows(2)[cells[:, 2]]
    some, exact = np.arange(0, len(cells), 6), []
    for i in some:
        own = weight * (cells[:, 0] == cells[i, 0]) * (np.arange(len(cells)) != i)
        against = weight * (drawn == cells[i, 0]).mean(axis=1)

        def lost(x: np.ndarray, own: np.ndarray = own, against: np.ndarray = against) -> float:
            return float(own @ np.logaddexp(0, -rows @ x) + against @ np.logaddexp(0, rows @ x) + x @ x / 2)

        exact.append(rows[i] @ minimize(lost, state.rows(0)[cells[i, 0]], bounds=[(0, None)] * 4).x)
    naive = np.abs(made.log_odds[some] - exact).mean()
    assert np.abs(made.left_out[some] - exact).mean() < 0.15 * naive


def test_negatives_are_drawn_as_often_as_cells_weigh() -> None:
    """Else the log-odds of independent reviews would measure how much their cells weigh."""
    rng = np.random.default_rng(3)
    codes = np.unique(rng.integers(0, 40, (900, 3)), axis=0)
    counts = np.where(codes[:, 0] < 20, 1, 5)
    tensor = SparseTensor.from_arrays(codes, counts=counts)
    config = ModelConfig.preset("default", rank=2, negatives=60, count_weight="count", start="half-normal", contrast=0)
    problem = build_problem(tensor, (), config)
    drawn = np.bincount(draw_sweep(problem, 0)[:, 3:].ravel(), minlength=40) / (60 * tensor.n_cells)
    weight = np.bincount(tensor.coordinates[:, 0], weights=tensor.counts, minlength=40) / tensor.counts.sum()
    np.testing.assert_allclose(drawn, weight, atol=0.003)
