"""Blocks that are not rows of factors: lambda with its gamma process, and the heads of the targets."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Floats
from ringleader.kernels.elementary import exp, log
from ringleader.kernels.layout import GRADIENT, STATISTICS, Rule, Statistics, Terms, no_terms
from ringleader.kernels.single_block import carry, move_block
from ringleader.kernels.tiles import solve_definite, times_vector
from ringleader.model.problem import Problem
from ringleader.model.state import State


def tau(shrinkage: Floats, floor: float = 0.0) -> Floats:
    """Prior variances of lambda: tau_r = prod_{l <= r} delta_l, at least ``floor``."""
    return np.asarray(np.maximum(exp(np.cumsum(log(shrinkage))), max(floor, 1e-300)))


def gamma_shapes(rank: int) -> Floats:
    """a_r = a_1 + (r - 1) / R with a_1 = 1."""
    return 1.0 + np.arange(rank) / rank


def update_shrinkage(
    component_weights: Floats, shrinkage: Floats, generator: np.random.Generator | None = None
) -> Floats:
    """Each delta_r to its mode given the others, in order (model.md section 3); drawn, where there is a generator."""
    rank = len(shrinkage)
    delta = shrinkage.copy()
    shapes = gamma_shapes(rank)
    squares = np.square(component_weights)
    for r in range(rank):
        inverse = exp(-(np.cumsum(log(delta)) - log(delta[r])))  # prod over l <= h, l != r of 1 / delta_l
        total = 1 + 0.5 * (squares[r:] * inverse[r:]).sum()
        shape = 0.5 * (rank - r) + shapes[r]
        delta[r] = np.clip(total / (shape + 1 if generator is None else generator.gamma(shape)), 1e-100, 1e100)
    return delta


def lambda_step(
    problem: Problem,
    state: State,
    moments: tuple[Floats, Floats],
    rule: Rule,
    scale: tuple[float, float] = (1.0, 1.0),
) -> None:
    """One step of lambda from g and F over the entries of some cells, in place; unconstrained, as published.

    ``scale`` multiplies the sums over entries and the step, like ``scale`` and ``rate`` of other blocks.
    """
    x = state.component_weights
    gradient, curvature = scale[0] * moments[0], scale[0] * moments[1]
    if rule.action == STATISTICS:
        fetch, place = problem.backend.fetch, problem.backend.place
        carried = Statistics(fetch(state.second[-1:]), fetch(state.first[-1:]))
        carry(carried, 0, (gradient, curvature), x, rule.decay)
        state.second[-1:], state.first[-1:] = place(carried.second), place(carried.first)
        upper = np.zeros_like(curvature)
        upper[np.triu_indices(len(x))] = carried.second[0]
        curvature = upper + np.triu(upper, 1).T
        gradient = carried.first[0] - times_vector(curvature, x)
    variance = tau(state.shrinkage, problem.config.tau_floor)
    gradient = gradient - x / variance
    curvature = curvature + np.diag(1 / variance)
    x[:] = move_block(curvature, gradient, x, rule._replace(nonnegative=False), scale[1], solve_definite)


def balance(problem: Problem, state: State) -> None:
    """Hand what |lambda| has above its cap to the factors, in place (model.md section 5, cure 4).

    The log-odds of cells and of heads stay; carried statistics are those of the scaled design rows.
    """
    cap = problem.config.lambda_cap
    if cap <= 0 or not problem.config.learn_lambda:
        return
    excess = np.maximum(np.abs(state.component_weights) / cap, 1.0)
    if not (excess > 1).any():
        return
    share = exp(log(excess) / state.modes)
    state.component_weights[:] /= excess
    place = problem.backend.place
    state.factors[:] *= place(share.astype(state.factors.dtype))
    state.cavities[:] *= share
    state.heads[:, 1:] /= share
    if len(state.first):  # a row's design rows lost its share; lambda's, which have no lambda in them, gained all
        first, second = np.triu_indices(state.rank)
        for rows, scale in ((slice(None, -1), 1 / share), (slice(-1, None), excess)):
            state.first[rows] *= place(scale)
            state.second[rows] *= place((scale[first] * scale[second]).astype(state.second.dtype))


def head_variance(beta: Floats, problem: Problem) -> Floats:
    """Prior variances of one head: rho2 where learned, else ``variance`` with a wide bias."""
    config = problem.config
    if config.learn_variances:
        return (np.square(beta) + 2 * config.b1) / (2 * config.a_c + 3)
    variance = np.full(beta.shape, config.variance)
    variance[0] = config.bias_variance
    return variance


def head_coefficients(state: State, target: int) -> Floats:
    """All of a head as one block, (R + 1,), bias first; (R + 2,), the slope of the evidence last, where it has one."""
    return np.concatenate([state.heads[target], state.evidence_slopes[target : target + 1]])


def labelled_evidence(problem: Problem, state: State, target: int) -> Floats:
    """The evidence that the head of a target reads of its labelled entities, (M,)."""
    return state.evidence_of(problem.targets[target].mode)[problem.targets[target].codes]


def head_inputs(problem: Problem, state: State, target: int, rows: Floats, evidence: Floats | None = None) -> Floats:
    """What the head of a target reads of its labelled entities: their rows (M, R), and their evidence where it does.

    evidence : (M,), where the state does not have it.
    """
    if not len(state.evidence_slopes):
        return rows
    return np.column_stack([rows, labelled_evidence(problem, state, target) if evidence is None else evidence])


def head_step(
    problem: Problem, state: State, target: int, rows: Floats, rule: Rule, evidence: Floats | None = None
) -> None:
    """One step of a target's head on the rows of its labelled entities, and its noise, in place.

    evidence : of the labelled entities, where the state does not have it.
    """
    values = problem.targets[target].values
    if len(values) == 0:
        return
    beta, noise = head_coefficients(state, target), float(state.noise[target])
    inputs = head_inputs(problem, state, target, rows, evidence)
    gradient, curvature = problem.backend.head_moments(inputs, values, beta, noise, rule)
    variance = head_variance(beta, problem)
    gradient -= beta / variance
    curvature[np.diag_indices_from(curvature)] += 1 / variance
    rate = 0.0 if rule.action == GRADIENT and problem.config.carry else 1.0
    beta = move_block(curvature, gradient, beta, rule._replace(nonnegative=False), rate, solve_definite)
    state.heads[target], state.evidence_slopes[target : target + 1] = np.split(beta, [state.rank + 1])
    if noise > 0:
        config = problem.config
        residual = values - beta[0] - times_vector(inputs, beta[1:])
        state.noise[target] = (np.square(residual).sum() + 2 * config.b1) / (len(values) + 2 * config.a_c + 2)


def label_terms(problem: Problem, state: State, mode: int) -> Terms:
    """The label terms of a mode, grouped by entity; none where labels do not move the factors."""
    targets = problem.targets_of(mode)
    if not targets or not problem.config.joint:
        return no_terms(state.rank)
    codes = np.concatenate([problem.targets[t].codes for t in targets])
    order = np.argsort(codes, kind="stable")
    offsets = np.zeros(len(state.rows(mode)) + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=len(offsets) - 1), out=offsets[1:])
    target = np.concatenate([np.full(len(problem.targets[t].codes), t, np.int32) for t in targets])[order]
    value = np.concatenate([problem.targets[t].values for t in targets])[order]
    if not len(state.evidence_slopes):
        return Terms(offsets, target, value, state.heads, state.noise)
    # Evidence is data here: a label has a head of its own, whose bias is beta0 + alpha e.
    heads = state.heads[target]
    heads[:, 0] += state.evidence_slopes[target] * state.evidence_of(mode)[codes[order]]
    return Terms(offsets, np.arange(len(target), dtype=np.int32), value, heads, state.noise[target])


def labelled_rows(problem: Problem, state: State, target: int) -> Floats:
    """A view of ``state.cavities``: one row per label of a target."""
    begin, end = problem.label_offsets[target : target + 2]
    return state.cavities[begin:end]


def refresh_rows(problem: Problem, state: State, mode: int, terms: Terms, cavity: Floats) -> None:
    """Take the rows on which the heads of a mode are fitted: cavity rows where solved (not NaN), else the rows."""
    for t in problem.targets_of(mode):
        codes, rows = problem.targets[t].codes, labelled_rows(problem, state, t)
        if len(cavity):
            solved = cavity[terms.offsets[codes]]
            known = ~np.isnan(solved[:, 0])
            rows[known] = solved[known]
        else:
            rows[:] = problem.backend.take(state.rows(mode), codes)
