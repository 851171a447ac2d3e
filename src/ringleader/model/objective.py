"""What a fit maximises, and what shows how it goes: log posterior, held-out likelihood, effective rank."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Floats
from ringleader.kernels.elementary import exp, log
from ringleader.kernels.logistic import log_logistic
from ringleader.kernels.protocol import Backend
from ringleader.kernels.single_block import column_squares
from ringleader.model.negatives import negatives_of, view_of
from ringleader.model.posterior import head_log_odds
from ringleader.model.priors import gamma_shapes, head_coefficients, tau
from ringleader.model.problem import Problem
from ringleader.model.state import State


def log_likelihood(problem: Problem, state: State) -> float:
    """Weighted log-likelihood of the training cells and of the negatives of the state's last sweep."""
    own, drawn = problem.backend.log_likelihood(view_of(problem, state, negatives_of(problem, state)))
    return own + drawn


def heldout_log_likelihood(problem: Problem, state: State) -> float:
    """Mean log-likelihood of a held-out cell with its negatives; NaN where nothing is held out."""
    total = float(problem.heldout.sum())
    if total == 0:
        return float("nan")
    view = view_of(problem, state, negatives_of(problem, state))
    own, drawn = problem.backend.log_likelihood(view._replace(weights=problem.heldout))
    return (own + drawn) / total


def label_log_likelihood(problem: Problem, state: State) -> float:
    """Log-likelihood of all targets at the factor rows, up to constants."""
    total = 0.0
    for t, target in enumerate(problem.targets):
        psi = head_log_odds(state, t, target.mode, target.codes)
        if target.kind == "binary":
            total += float(log_logistic(target.values * psi).sum())
        else:
            noise = state.noise[t]
            total -= float(np.square(target.values - psi).sum() / (2 * noise) + 0.5 * len(psi) * log(noise))
    return total


def log_prior(problem: Problem, state: State) -> float:
    """Log prior of factors, lambda and heads, up to constants, at the modes of learned variances."""
    config = problem.config
    prior, edges = problem.backend.rows_log_prior, [int(edge) for edge in state.starts]
    total = sum(prior(state.factors, (edges[k], edges[k + 1]), problem.rule(k)) for k in range(problem.modes))
    variance = tau(state.shrinkage, config.tau_floor)
    if config.learn_lambda:
        total -= float((np.square(state.component_weights) / variance + log(variance)).sum()) / 2
        total -= float(((gamma_shapes(state.rank) + 1) * log(state.shrinkage) + 1 / state.shrinkage).sum())
    for t, target in enumerate(problem.targets if config.joint else ()):  # else labels do not count either
        beta = head_coefficients(state, t)
        if config.learn_variances:
            total -= (config.a_c + 1.5) * float(log(np.square(beta) + 2 * config.b1).sum())
        else:
            total -= float(np.square(beta[1:]).sum() / config.variance + np.square(beta[0]) / config.bias_variance) / 2
        if target.kind == "real":
            total -= float((config.a_c + 1) * log(state.noise[t]) + config.b1 / state.noise[t])
    return total


def log_posterior(problem: Problem, state: State, likelihood: float | None = None) -> float:
    """Log posterior up to a constant. Labels count where they move the factors."""
    total = log_prior(problem, state) + (log_likelihood(problem, state) if likelihood is None else likelihood)
    return total + label_log_likelihood(problem, state) if problem.config.joint else total


def component_sizes(state: State, backend: Backend | None = None) -> Floats:
    """How large each component is in the tensor, (R,): |lambda_r| times the root mean squares of its columns."""
    size = np.abs(state.component_weights)
    for k in range(state.modes):
        span = int(state.starts[k]), int(state.starts[k + 1])
        squares = column_squares(state.rows(k)) if backend is None else backend.column_squares(state.factors, span)
        size = size * np.sqrt(squares / max(span[1] - span[0], 1))
    return size


def effective_rank(state: State, backend: Backend | None = None) -> float:
    """exp(entropy) of the components' shares in the size of the tensor: R where all are equal, 1 where one rules."""
    size = component_sizes(state, backend)
    if not np.isfinite(size).all() or size.sum() <= 0:
        return 0.0
    share = size[size > 0] / size.sum()
    return float(exp(-(share * log(share)).sum()))
