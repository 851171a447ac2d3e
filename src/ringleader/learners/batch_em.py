"""Batch EM: every block to the optimum of its bound, over all data. The reference for the stochastic learners.

With the same negatives throughout (``redraw=False``) and fixed or learned variances no sweep lowers the log posterior.
"""

from __future__ import annotations

from ringleader.kernels.layout import NEWTON
from ringleader.learners.passes import Move, Touched, complete_pass
from ringleader.model.config import ModelConfig
from ringleader.model.problem import Problem
from ringleader.model.state import State

name = "batch-em"


def complete_move(config: ModelConfig, steps: int) -> Move:
    """How every block moves where each sees all its entries, after ``steps`` steps."""
    return Move(NEWTON, 1.0)


def sweep(problem: Problem, state: State, touched: Touched | None = None) -> State:
    return complete_pass(problem, state, complete_move(problem.config, state.steps), touched)
