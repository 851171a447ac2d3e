"""Gibbs sampling with true Polya-Gamma draws, over all data. For small data: the yardstick of intervals.

Each block is drawn from its exact conditional given omega; omega from PG(weight, phi). Draws depend on
(seed, sweep) alone, so a chain can be resumed. Negatives are those of the first sweep throughout: they are data here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats
from ringleader.errors import SettingsError
from ringleader.kernels.entries import entries_of, products
from ringleader.kernels.layout import View
from ringleader.kernels.single_block import prior_variance
from ringleader.learners.passes import Touched
from ringleader.model.evidence import head_evidence
from ringleader.model.negatives import draw_sweep, view_of
from ringleader.model.posterior import head_log_odds
from ringleader.model.priors import head_coefficients, head_inputs, head_variance, tau, update_shrinkage
from ringleader.model.problem import Problem
from ringleader.model.state import State

name = "gibbs"


def sweep(problem: Problem, state: State, touched: Touched | None = None) -> State:
    """One draw of every block; with ``touched``, of the modes it names alone (lambda and heads stay)."""
    if problem.redraws:
        raise SettingsError(
            "the Gibbs sampler keeps its negatives; build the problem with learner='gibbs' or redraw=False"
        )
    generator = np.random.default_rng([problem.config.seed, state.sweep, 0x61BB5])
    state = state.copy()
    view = view_of(problem, state, draw_sweep(problem, state.sweep))
    entries = entries_of(view, np.arange(problem.tensor.n_cells))
    for mode in range(problem.modes):
        if touched is None or mode in touched:
            _draw_rows(problem, state, view, entries, mode, generator)
    if touched is None:
        if problem.config.learn_lambda:
            _draw_lambda(problem, state, view, entries, generator)
        if problem.reads_evidence:
            state = state.replace(evidence=head_evidence(problem, _drawn_rows(problem, state)))
        for t in range(len(problem.targets)):
            _draw_head(problem, state, t, generator)
    return state.replace(sweep=state.sweep + 1, steps=state.steps + 1)


def polya_gamma(shape: Floats, tilt: Floats, generator: np.random.Generator) -> Floats:
    """Draws from PG(shape, tilt); the shape is an entry's weight."""
    try:
        from polyagamma import random_polyagamma
    except ImportError as error:
        raise SettingsError(
            "the Gibbs sampler needs the package polyagamma; install ringleader[gibbs] or choose another learner"
        ) from error
    drawn = np.zeros(len(shape))
    used = shape > 0
    drawn[used] = random_polyagamma(shape[used], tilt[used], random_state=generator)
    return drawn


def _draw_rows(
    problem: Problem, state: State, view: View, entries: tuple[Any, Floats, Floats], mode: int, generator: Any
) -> None:
    """All rows of one mode given the others: they are independent of each other."""
    codes, label, weight = entries
    rows = state.rows(mode)
    design = products(view, codes, mode)
    own = codes[:, mode]
    omega = polya_gamma(weight, (design * rows[own]).sum(axis=1), generator)
    count, rank = rows.shape
    precision, linear = np.zeros((count, rank, rank)), np.zeros((count, rank))
    np.add.at(linear, own, (weight * (label - 0.5))[:, None] * design)
    for r in range(rank):
        np.add.at(precision[:, r], own, (omega * design[:, r])[:, None] * design)
    rule = problem.rule(mode)
    variance = prior_variance(rows.astype(np.float64), rule)
    if rule.shape > 0:
        drawn = _inverse_gamma(rule.shape + 0.5, rule.scale + rows.astype(np.float64) ** 2 / 2, generator)
        variance = np.maximum(drawn, rule.floor)
    precision[:, np.arange(rank), np.arange(rank)] += 1 / variance
    if problem.config.joint:
        for t in problem.targets_of(mode):
            _add_labels(problem, state, t, precision, linear, generator)
    rows[:] = _gaussian(precision, linear, rows.astype(np.float64), problem.nonnegative(mode), generator)


def _add_labels(problem: Problem, state: State, t: int, precision: Floats, linear: Floats, generator: Any) -> None:
    target, slope = problem.targets[t], state.heads[t, 1:]
    rows = state.rows(target.mode)[target.codes].astype(np.float64)
    psi = head_log_odds(state, t, target.mode, target.codes)
    rest = psi - rows @ slope  # bias and evidence, which the row does not move
    if target.kind == "binary":
        nu = polya_gamma(np.ones(len(psi)), psi, generator)
        pull = target.values / 2 - nu * rest
    else:
        nu = np.full(len(target.codes), 1 / state.noise[t])
        pull = (target.values - rest) * nu
    precision[target.codes] += nu[:, None, None] * np.outer(slope, slope)
    linear[target.codes] += pull[:, None] * slope


def _gaussian(precision: Floats, linear: Floats, now: Floats, nonnegative: bool, generator: Any) -> Floats:
    """Draws from N(P^-1 l, P^-1), one per block; where non-negative, one coordinate after the other."""
    if not nonnegative:
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, linear[..., None])
        noise = np.linalg.solve(np.swapaxes(root, 1, 2), generator.standard_normal(linear.shape)[..., None])
        return np.asarray((mean + noise)[..., 0])
    drawn = now.copy()
    for r in range(drawn.shape[1]):
        rest = np.einsum("ns,ns->n", precision[:, r], drawn) - precision[:, r, r] * drawn[:, r]
        deviation = 1 / np.sqrt(precision[:, r, r])
        drawn[:, r] = _above_zero((linear[:, r] - rest) / precision[:, r, r], deviation, generator)
    return drawn


def _above_zero(mean: Floats, deviation: Floats, generator: Any) -> Floats:
    """Normal draws kept above zero, by the inverse of the tail function (in logarithms, so that far tails work)."""
    from scipy.special import log_ndtr, ndtri_exp

    tail = log_ndtr(mean / deviation) + np.log(1 - generator.uniform(size=len(mean)))
    return np.asarray(np.maximum(mean - deviation * ndtri_exp(tail), 0.0))


def _inverse_gamma(shape: float, scale: Floats, generator: Any) -> Floats:
    return np.asarray(scale / generator.gamma(shape, size=scale.shape))


def _draw_lambda(
    problem: Problem, state: State, view: View, entries: tuple[Any, Floats, Floats], generator: Any
) -> None:
    codes, label, weight = entries
    design = products(view._replace(component_weights=np.ones(state.rank)), codes)
    omega = polya_gamma(weight, design @ state.component_weights, generator)
    variance = tau(state.shrinkage, problem.config.tau_floor)
    precision = (design * omega[:, None]).T @ design + np.diag(1 / variance)
    linear = (weight * (label - 0.5)) @ design
    state.component_weights[:] = _gaussian(precision[None], linear[None], linear[None], False, generator)[0]
    state.shrinkage[:] = update_shrinkage(state.component_weights, state.shrinkage, generator)


def _drawn_rows(problem: Problem, state: State) -> State:
    """The state with the rows as they are in the place of cavity rows, which a sampler has none of."""
    rows = [state.rows(t.mode)[t.codes].astype(np.float64) for t in problem.targets]
    return state.replace(cavities=np.concatenate(rows))


def _draw_head(problem: Problem, state: State, t: int, generator: Any) -> None:
    target, beta = problem.targets[t], head_coefficients(state, t)
    if len(target.codes) == 0:
        return
    rows = state.rows(target.mode)[target.codes].astype(np.float64)
    design = np.hstack([np.ones((len(rows), 1)), head_inputs(problem, state, t, rows)])
    if target.kind == "binary":
        nu = polya_gamma(np.ones(len(rows)), design @ beta, generator)
        linear = (target.values / 2) @ design
    else:
        residual = target.values - design @ beta
        shape, scale = problem.config.a_c + len(rows) / 2, problem.config.b1 + residual @ residual / 2
        state.noise[t] = scale / generator.gamma(shape)
        nu = np.full(len(rows), 1 / state.noise[t])
        linear = (target.values * nu) @ design
    variance = head_variance(beta, problem)
    if problem.config.learn_variances:
        variance = _inverse_gamma(problem.config.a_c + 0.5, problem.config.b1 + beta**2 / 2, generator)
    precision = (design * nu[:, None]).T @ design + np.diag(1 / variance)
    drawn = _gaussian(precision[None], linear[None], linear[None], False, generator)[0]
    state.heads[t], state.evidence_slopes[t : t + 1] = np.split(drawn, [state.rank + 1])
