"""Every gradient and every Fisher block against finite differences of the log posterior."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.kernels import single_block
from ringleader.known.labels import Target
from ringleader.learners.passes import Move, complete_pass
from ringleader.model.config import ModelConfig
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.objective import log_posterior
from ringleader.model.priors import head_variance, label_terms, tau, update_shrinkage
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.tensor.sparse import SparseTensor

EPSILON = 1e-5


def small_problem(modes: int, *, kind: str = "binary", seed: int = 0, **settings: object) -> tuple[Problem, State]:
    """A random problem with two targets on the last mode and one on the first, at a random state."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, modes)
    tensor = SparseTensor.from_arrays(np.stack([rng.integers(0, n, 40) for n in sizes], 1), sizes=sizes.tolist())

    def target(mode: int, name: str) -> Target:
        codes = np.arange(tensor.shape[mode] - 1, dtype=np.int32)
        values = rng.choice([-1.0, 1.0], len(codes)) if kind == "binary" else rng.normal(size=len(codes))
        return Target(mode, name, kind, codes, values)  # type: ignore[arg-type]

    targets = (target(modes - 1, "a"), target(modes - 1, "b"), target(0, "c"))
    base = {"rank": 3, "negatives": 2, "joint": True, "free_targets": True, "curvature": "fisher", "learn_lambda": True}
    config = ModelConfig(**{**base, **settings})  # type: ignore[arg-type]
    problem = build_problem(tensor, targets, config)
    state = start_state(problem)
    state.factors[:] = rng.normal(0.5, 0.5, state.factors.shape)
    state.component_weights[:] = rng.normal(1, 0.3, 3)
    state.heads[:] = rng.normal(size=state.heads.shape)
    return problem, state


def numeric(problem: Problem, state: State, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of the log posterior with respect to a block of the state, by differences."""

    def value(shift: np.ndarray) -> float:
        block[:] = start + shift
        return log_posterior(problem, state)

    start = block.copy()
    each = np.eye(len(block)) * EPSILON
    gradient = np.array([(value(d) - value(-d)) / (2 * EPSILON) for d in each])
    wide = np.eye(len(block)) * 1e-3
    hessian = np.array([
        [(value(a + b) - value(a - b) - value(b - a) + value(-a - b)) / (4e-6) for b in wide] for a in wide
    ])  # fmt: skip
    block[:] = start
    return gradient, hessian


@pytest.mark.parametrize("modes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("where", ["contrast with target", "plain", "two targets"])
def test_factor_block(modes: int, kind: str, where: str) -> None:
    if where == "plain" and modes == 2:
        pytest.skip("both modes of a matrix have targets here")
    problem, state = small_problem(modes, kind=kind)
    mode = {"contrast with target": 0, "plain": 1, "two targets": modes - 1}[where]
    rule = problem.rule(mode)
    drawn = group_negatives(problem, draw_sweep(problem, 0)) if mode == 0 else None
    gradients, curvatures = problem.backend.block_moments(
        view_of(problem, state, draw_sweep(problem, 0)), problem.blocks(mode, drawn), rule
    )
    terms = label_terms(problem, state, mode)
    for entity in range(problem.tensor.shape[mode]):
        x = state.rows(mode)[entity]
        g, f = gradients[entity] - x, curvatures[entity] + np.eye(3)
        if len(terms.target):
            more = single_block.label_moments(terms, entity, x, rule)
            g, f = g + more[0], f + more[1]
        gradient, hessian = numeric(problem, state, x)
        np.testing.assert_allclose(g, gradient, atol=1e-5)
        np.testing.assert_allclose(f, -hessian, atol=1e-4)


@pytest.mark.parametrize("modes", [2, 3, 6])
def test_lambda_block(modes: int) -> None:
    problem, state = small_problem(modes)
    cells = np.arange(problem.tensor.n_cells, dtype=np.int32)
    g, f = problem.backend.lambda_moments(view_of(problem, state, draw_sweep(problem, 0)), cells, problem.rule(0))
    variance = tau(state.shrinkage)
    gradient, hessian = numeric(problem, state, state.component_weights)
    np.testing.assert_allclose(g - state.component_weights / variance, gradient, atol=1e-5)
    np.testing.assert_allclose(f + np.diag(1 / variance), -hessian, atol=1e-4)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_head_block(kind: str) -> None:
    problem, state = small_problem(3, kind=kind)
    for t, target in enumerate(problem.targets):
        beta = state.heads[t]
        rows = state.rows(target.mode)[target.codes]
        g, f = problem.backend.head_moments(rows, target.values, beta, float(state.noise[t]), problem.rule(target.mode))
        variance = head_variance(beta, problem)
        gradient, hessian = numeric(problem, state, beta)
        np.testing.assert_allclose(g - beta / variance, gradient, atol=1e-5)
        np.testing.assert_allclose(f + np.diag(1 / variance), -hessian, atol=1e-4)


def test_the_printed_half_gradient_is_half_of_the_data_gradient() -> None:
    for mode in (0, 1, 2):
        found = []
        for half in (False, True):
            problem, state = small_problem(3, half_gradient=half)
            drawn = group_negatives(problem, draw_sweep(problem, 0)) if mode == 0 else None
            view, rule = view_of(problem, state, draw_sweep(problem, 0)), problem.rule(mode)
            terms = label_terms(problem, state, mode)
            labels = single_block.label_moments(terms, 0, state.rows(mode)[0], rule)[0] if len(terms.target) else 0.0
            found.append(problem.backend.block_moments(view, problem.blocks(mode, drawn), rule)[0][0] + labels)
        np.testing.assert_allclose(found[1], found[0] / 2)


def test_noise_of_a_real_target_is_the_mode_of_its_posterior() -> None:
    problem, state = small_problem(3, kind="real", joint=False, cavity=False)
    state = complete_pass(problem, state, Move(0, 1.0))
    joint = build_problem(problem.tensor, problem.targets, problem.config.replace(joint=True))
    for t in range(len(joint.targets)):
        best = log_posterior(joint, state)
        for factor in (0.99, 1.01):
            kept = state.noise[t]
            state.noise[t] = kept * factor
            assert log_posterior(joint, state) < best
            state.noise[t] = kept


def test_each_shrinkage_is_the_mode_given_the_others() -> None:
    problem, state = small_problem(3, learn_variances=True)
    for _ in range(200):
        state.shrinkage[:] = update_shrinkage(state.component_weights, state.shrinkage)
    best = log_posterior(problem, state)
    for r in range(3):
        for factor in (0.99, 1.01):
            kept = state.shrinkage[r]
            state.shrinkage[r] = kept * factor
            assert log_posterior(problem, state) < best
            state.shrinkage[r] = kept


def test_learned_variances_follow_the_student_t_that_they_imply() -> None:
    """With mu2 at its mode, the gradient of the profile is the gradient at that mu2."""
    problem, state = small_problem(3, learn_variances=True)
    rule = problem.rule(1)
    g = problem.backend.block_moments(view_of(problem, state, draw_sweep(problem, 0)), problem.blocks(1), rule)[0]
    x = state.rows(1)[2]
    gradient, _ = numeric(problem, state, x)
    np.testing.assert_allclose(g[2] - x / single_block.prior_variance(x, rule), gradient, atol=1e-5)
