"""Log-odds of cells and of heads under a state, and the leverage of each cell on its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.kernels.layout import EM, FISHER, Rule, read_only
from ringleader.kernels.logistic import fisher_weight
from ringleader.kernels.single_block import prior_variance
from ringleader.kernels.tiles import inverse_factor, product, times_vector
from ringleader.model.negatives import group_negatives, negatives_of, view_of
from ringleader.model.priors import head_coefficients, head_inputs, head_variance, labelled_rows
from ringleader.model.problem import Problem
from ringleader.model.state import State

ENTITIES = 4096
"""Entities whose curvatures are held at once."""


class CellEvidence(NamedTuple):
    """Every observed cell, seen from its entity of one mode (model.md section 6.4)."""

    log_odds: Floats  # phi, (n_cells,)
    leverage: Floats  # h = c' A^-1 c
    weight: Floats  # the entry's weight in A


def cell_evidence(
    problem: Problem, state: State, mode: int | None = None, *, curvature: str | None = None
) -> CellEvidence:
    """phi, leverage and weight of every observed cell in its entity of ``mode`` (default: the contrast mode)."""
    mode = problem.config.contrast if mode is None else mode
    tuples = negatives_of(problem, state)
    view = view_of(problem, state, tuples)
    contrast = mode == problem.config.contrast
    blocks = problem.blocks(mode, group_negatives(problem, tuples) if contrast else None)
    return CellEvidence(*problem.backend.leave_one_out(view, blocks, _rule(problem, mode, curvature)))


def cell_log_odds(problem: Problem, state: State, codes: npt.ArrayLike | None = None) -> Floats:
    """phi of tuples of codes (n, K); by default of every cell of the tensor."""
    chosen = problem.tensor.coordinates if codes is None else np.asarray(codes, np.int32)
    view = view_of(problem, state, read_only(problem.tensor.coordinates))  # log-odds need no negatives
    return problem.backend.log_odds(view, chosen)


def head_log_odds(state: State, target: int, mode: int, entities: Any = None) -> Floats:
    """psi of the joint head of a target for entities of its mode (default: all), at their rows and their evidence."""
    chosen = slice(None) if entities is None else np.asarray(entities)
    psi = state.heads[target, 0] + times_vector(state.rows(mode)[chosen].astype(np.float64), state.heads[target, 1:])
    if len(state.evidence_slopes):
        psi = psi + state.evidence_slopes[target] * state.evidence_of(mode)[chosen]
    return np.asarray(psi)


def head_deviation(problem: Problem, state: State, target: int) -> Floats:
    """Posterior standard deviation of psi of every entity of a target's mode, (n_k,), to second order at the mode.

    x' F^-1 x of the coefficients at x = (1, row, evidence), and b' A^-1 b of the row; evidence is data. A holds the
    entity's own labels too. Curvatures are Fisher's: E[omega] is above them and would make the deviation too small.
    """
    known, mode = problem.targets[target], problem.targets[target].mode
    rule = problem.rule(mode)._replace(curvature=FISHER)
    beta, noise = head_coefficients(state, target), float(state.noise[target])
    labelled = head_inputs(problem, state, target, labelled_rows(problem, state, target))
    information = problem.backend.head_moments(labelled, known.values, beta, noise, rule)[1]
    information[np.diag_indices_from(information)] += 1 / head_variance(beta, problem)
    root = np.ascontiguousarray(inverse_factor(information).T)  # of the covariance of the coefficients
    slope = state.heads[target, 1:]
    pull = np.zeros((problem.tensor.shape[mode], len(problem.targets)))  # what the labels of an entity weigh in A
    for t in problem.targets_of(mode):
        codes = problem.targets[t].codes
        binary = problem.targets[t].kind == "binary"
        pull[codes, t] = fisher_weight(head_log_odds(state, t, mode, codes)) if binary else 1 / state.noise[t]
    tuples = negatives_of(problem, state)
    view = view_of(problem, state, tuples)
    drawn = group_negatives(problem, tuples) if mode == problem.config.contrast else None
    deviation = np.zeros(len(pull))
    for first in range(0, len(pull), ENTITIES):
        chosen = np.arange(first, min(first + ENTITIES, len(pull)))
        rows = state.rows(mode)[chosen].astype(np.float64)
        inputs = np.column_stack([np.ones(len(rows)), rows, state.evidence_of(mode)[chosen]])
        spread = np.square(product(inputs, root)).sum(axis=1)
        curvature = problem.backend.block_moments(view, problem.blocks(mode, drawn, chosen), rule)[1]
        places = np.arange(state.rank)
        curvature[:, places, places] += 1 / prior_variance(rows, rule)
        for weights, own in zip(pull[chosen].T, state.heads[:, 1:], strict=True):
            curvature += weights[:, None, None] * own[:, None] * own
        deviation[chosen] = np.sqrt(spread + _squared_lengths(curvature, slope))
    return deviation


def _squared_lengths(matrices: Floats, vector: Floats) -> Floats:
    """b' A^-1 b of every A (n, R, R), symmetric and positive definite, by Cholesky, (n,); ``matrices`` are used up."""
    left, total = np.repeat(vector[None], len(matrices), axis=0), np.zeros(len(matrices))
    for k in range(len(vector)):
        pivot = np.sqrt(matrices[:, k, k])
        column, part = matrices[:, k + 1 :, k] / pivot[:, None], left[:, k] / pivot
        matrices[:, k + 1 :, k + 1 :] -= column[:, :, None] * column[:, None, :]
        left[:, k + 1 :] -= column * part[:, None]
        total += np.square(part)
    return total


def _rule(problem: Problem, mode: int, curvature: str | None) -> Rule:
    rule = problem.rule(mode)
    if curvature is None:
        return rule
    return rule._replace(curvature=FISHER if curvature == "fisher" else EM)
