"""Log-odds of cells and of heads under a state, and those of a cell without its own pull."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.kernels.layout import EM, FISHER, Rule, read_only
from ringleader.model.negatives import group_negatives, negatives_of, view_of
from ringleader.model.problem import Problem
from ringleader.model.state import State


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
    """psi of the linear head of a target for entities of its mode (default: all), at their factor rows."""
    rows = state.rows(mode)
    chosen = rows if entities is None else rows[np.asarray(entities)]
    return np.asarray(state.heads[target, 0] + chosen.astype(np.float64) @ state.heads[target, 1:])


def _rule(problem: Problem, mode: int, curvature: str | None) -> Rule:
    rule = problem.rule(mode)
    if curvature is None:
        return rule
    return rule._replace(curvature=FISHER if curvature == "fisher" else EM)
