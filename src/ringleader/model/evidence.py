"""Evidence: log-odds of reviews, each without its own effect on it, summed up for entities, and as joint heads read it.

Evidence is leave-one-out: a review moves the row of its entity towards itself, and what that adds to its own log-odds
is taken off (model.md section 6.4), so that people with few reviews do not look guilty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.elementary import exp, log1p
from ringleader.model.posterior import CellEvidence, cell_evidence
from ringleader.model.priors import labelled_rows
from ringleader.model.problem import Problem
from ringleader.model.state import State

LEAST_LEFT = 0.05
"""Least share of an entry's leverage that is left when it is taken out."""
SPREAD = 0.1
"""Added to the variance of a log-odds, so that a certain but small one does not dominate."""


class ReviewEvidence(NamedTuple):
    """One number per distinct cell."""

    log_odds: Floats  # phi: that this reviewer belongs here beyond popularity
    left_out: Floats  # phi without the review's own pull, not below 0
    evidence: Floats  # left_out in units of its uncertainty


def review_evidence(problem: Problem, state: State) -> ReviewEvidence:
    """Log-odds and leave-one-out evidence of every cell."""
    return without_own_pull(cell_evidence(problem, state), problem.weights)


def without_own_pull(cells: CellEvidence, weights: Floats) -> ReviewEvidence:
    """The evidence of cells, from what their entities see of them. weights : of training, (n,) or (1,)."""
    log_odds, leverage, weight = cells
    without = leverage / np.maximum(1 - weight * leverage, LEAST_LEFT)
    # w h_ (1 - sigma(phi)): a cell that did not train its row has no pull on it.
    pull = weights * without / (1 + exp(np.clip(log_odds, -500, 500)))
    left_out = np.maximum(log_odds - pull, 0.0)
    return ReviewEvidence(log_odds, left_out, left_out / np.sqrt(without + SPREAD))


def mean_evidence(total: Floats, number: Numbers, market: float, shrink: float = 0.0) -> Floats:
    """Mean evidence of the cells of each entity, from their sum and number; the market's mean weighs ``shrink`` cells.

    Means, not sums: sums measure activity. An entity without cells gets the market's mean.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (total + shrink * market) / (number + shrink)
    return np.where(number + shrink > 0, mean, market)


def head_evidence(
    problem: Problem, state: State, find: Callable[[Problem, State], ReviewEvidence] = review_evidence
) -> Floats:
    """What joint heads read of every entity beside its row, (sum of n_k,); 0 in modes without targets.

    log(1 + mean left-out log-odds of the entity's reviews), with mean 0 and variance 1 over the mode. Labelled entities
    count with their cavity rows: through rows that their labels pulled, a label would reach its own head as evidence.
    Of the summaries tried it has the best AUC and nearly the least log-loss in both modes (docs/benchmarks.md).

    find : the evidence of the reviews under a state.
    """
    factors = state.factors.copy()
    for t, target in enumerate(problem.targets):
        factors[state.starts[target.mode] + target.codes] = labelled_rows(problem, state, t)
    left_out = find(problem, state.replace(factors=factors)).left_out
    evidence = np.zeros(len(factors))
    for mode in {target.mode for target in problem.targets}:
        codes, size = problem.tensor.coordinates[:, mode], problem.tensor.shape[mode]
        total = np.asarray(np.bincount(codes, weights=left_out, minlength=size), np.float64)
        summary = log1p(mean_evidence(total, np.bincount(codes, minlength=size), float(left_out.mean())))
        spread = float(np.std(summary))
        if spread > 0:
            evidence[state.starts[mode] : state.starts[mode + 1]] = (summary - summary.mean()) / spread
    return evidence
