"""Batch EM: every block to the optimum of its bound, over all data. The reference for the stochastic learners.

With the same negatives throughout (``redraw=False``) and fixed or learned variances no sweep lowers the log posterior.
"""

from __future__ import annotations

from ringleader.kernels.layout import NEWTON
from ringleader.learners.passes import Move, Touched, complete_pass
from ringleader.model.problem import Problem
from ringleader.model.state import State

name = "batch-em"


def sweep(problem: Problem, state: State, touched: Touched | None = None) -> State:
    return complete_pass(problem, state, Move(NEWTON, 1.0), touched)
