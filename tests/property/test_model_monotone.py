"""Properties over random problems: EM never loses, names do not matter, sums do not depend on order."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.kernels.layout import NEWTON
from ringleader.kernels.single_block import move_block, solve_block
from ringleader.known.labels import Target
from ringleader.learners import fit_loop
from ringleader.learners.passes import Move, _move_mode
from ringleader.model.config import ModelConfig
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.objective import log_posterior
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.tensor.sparse import SparseTensor

RELAXED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    modes = draw(st.integers(2, 5))
    sizes = [draw(st.integers(1, 9)) for _ in range(modes)]
    cells = draw(st.integers(1, 80))
    codes = np.stack([rng.integers(0, n, cells) for n in sizes], axis=1)
    tensor = SparseTensor.from_arrays(codes, sizes=sizes, counts=rng.integers(1, 9, cells))
    config = ModelConfig(
        rank=draw(st.integers(1, 9)),
        negatives=draw(st.sampled_from([0, 1, 4])),
        contrast=draw(st.integers(0, modes - 1)),
        step=draw(st.sampled_from([0.1, 0.8, 1.0])),
        joint=draw(st.booleans()),
        free_targets=draw(st.booleans()),
        learn_variances=draw(st.booleans()),
        count_weight=draw(st.sampled_from(["one", "log", "count"])),
        variance=draw(st.sampled_from([0.1, 1.0, 30.0])),
        redraw=False,
        seed=seed,
    )
    mode = draw(st.integers(0, modes - 1))
    some = np.arange(sizes[mode], dtype=np.int32)
    targets = (
        Target(mode, "bad", "binary", some, rng.choice([-1.0, 1.0], len(some))),
        Target(mode, "age", "real", some[:3], rng.normal(size=len(some[:3]))),
    )
    return build_problem(tensor, targets, config)


@RELAXED
@given(problem=problems(), scale=st.sampled_from([0.3, 1.0, 3.0]))
def test_an_em_sweep_of_a_mode_never_lowers_the_log_posterior(problem: Problem, scale: float) -> None:
    """Negatives, lambda and heads held fixed; non-negative or free factors move by any step in (0, 1]."""
    state = start_state(problem)
    state.factors[:] *= scale
    state.heads[:] = np.random.default_rng(0).normal(size=state.heads.shape)
    view = view_of(problem, state, draw_sweep(problem, 0))
    before = log_posterior(problem, state)
    for mode in [*problem.sweep_order(), *problem.sweep_order()]:
        contrast = mode == problem.config.contrast and problem.config.negatives > 0
        blocks = problem.blocks(mode, group_negatives(problem, draw_sweep(problem, 0)) if contrast else None)
        _move_mode(problem, state, view, blocks, Move(NEWTON, problem.config.step))
        after = log_posterior(problem, state)
        assert after >= before - 1e-9 * (1 + abs(before))
        before = after
        assert not problem.nonnegative(mode) or state.rows(mode).min() >= 0


@RELAXED
@given(problem=problems())
def test_batch_em_never_lowers_the_log_posterior(problem: Problem) -> None:
    """All blocks, lambda, its shrinkage and the heads included, with the heads fitted on the rows themselves."""
    config = problem.config.replace(cavity=False, learn_lambda=True, joint=True, learner="batch-em", sweeps=4)
    problem = build_problem(problem.tensor, problem.targets, config)
    _, history = fit_loop(problem, start_state(problem))
    values = np.array([info.log_posterior for info in history])
    assert (np.diff(values) >= -1e-9 * (1 + np.abs(values[:-1]))).all()


@RELAXED
@given(seed=st.integers(0, 10_000), rank=st.integers(1, 12), step=st.sampled_from([0.1, 0.8, 1.0]))
def test_a_nonnegative_step_gains_and_the_solver_finds_the_optimum(seed: int, rank: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rank, rank))
    curvature = root @ root.T + 0.1 * np.eye(rank)
    gradient, x = 3 * rng.normal(size=rank), np.maximum(rng.normal(size=rank), 0)
    best = solve_block(curvature, gradient, x, True)
    slope = gradient - curvature @ (best - x)
    assert best.min() >= 0
    assert (slope <= 1e-7).all()
    assert np.abs(slope * best).max() < 1e-6
    from ringleader.kernels.layout import Rule

    moved = move_block(curvature, gradient, x, Rule(0, 0, step, 1.0, True, 1.0, 0.0, 0.0, 0.0, 1.0), 1.0)
    change = moved - x
    assert change @ (gradient - 0.5 * curvature @ change) >= -1e-12


@RELAXED
@given(problem=problems(), seed=st.integers(0, 1000))
def test_permuting_ids_permutes_the_result(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensor, contrast = problem.tensor, problem.config.contrast
    sizes = tensor.shape
    renamed = [rng.permutation(n) for n in sizes]
    drawn = rng.integers(0, sizes[contrast], (tensor.n_cells, problem.config.negatives))
    start = {k: np.abs(rng.normal(0.5, 0.3, (n, problem.config.rank))) for k, n in enumerate(sizes)}
    first = build_problem(tensor, problem.targets, problem.config, start_rows=start, drawn=drawn)

    codes = np.stack([renamed[k][tensor.coordinates[:, k]] for k in range(len(sizes))], axis=1)
    order = np.lexsort(codes.T[::-1])
    other = SparseTensor.from_arrays(codes, sizes=sizes, counts=tensor.counts)
    back = {k: np.empty_like(rows) for k, rows in start.items()}
    for k, rows in start.items():
        back[k][renamed[k]] = rows
    targets = tuple(t._replace(codes=renamed[t.mode][t.codes]) for t in problem.targets)
    second = build_problem(other, targets, problem.config, start_rows=back, drawn=renamed[contrast][drawn][order])
    one, _ = fit_loop(first, start_state(first), sweeps=3)
    two, _ = fit_loop(second, start_state(second), sweeps=3)
    for k in range(len(sizes)):
        np.testing.assert_allclose(two.rows(k)[renamed[k]], one.rows(k), rtol=1e-5, atol=1e-6)
