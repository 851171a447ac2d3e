"""Partial natural gradient: which step each block takes, x <- x + gamma F^-1 g; the kernels compute it.

Entity-complete by default: every block is solved from all its entries. With a batch size, as published.
"""

from __future__ import annotations

from ringleader.kernels.layout import NEWTON
from ringleader.learners.passes import Move, Touched, batch_pass, complete_pass
from ringleader.learners.schedule import step_size
from ringleader.model.config import ModelConfig
from ringleader.model.problem import Problem
from ringleader.model.state import State

name = "natural-gradient"


def batch_move(config: ModelConfig) -> Move:
    """How a batch moves its blocks, before the step size of its turn."""
    return Move(NEWTON, 1.0)


def complete_move(config: ModelConfig, steps: int) -> Move:
    """How every block moves where each sees all its entries, after ``steps`` steps."""
    return Move(NEWTON, step_size(config, steps))


def sweep(problem: Problem, state: State, touched: Touched | None = None) -> State:
    """One pass over the data, or over the touched entities."""
    if problem.config.batch_size and touched is None:
        return batch_pass(problem, state, batch_move(problem.config))
    return complete_pass(problem, state, complete_move(problem.config, state.steps), touched)
