"""Contrast negatives of a sweep: draws that depend on (seed, sweep, cell, j) alone."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Codes, Numbers
from ringleader.counters import stream_key
from ringleader.kernels.layout import View, read_only
from ringleader.model.problem import Problem
from ringleader.model.state import State

POOL = 4


def draw_sweep(problem: Problem, sweep: int) -> None:
    """Put the negatives of a sweep into ``problem.tuples``."""
    config = problem.config
    if config.negatives == 0 or problem.fixed_negatives:
        return
    key = stream_key(config.seed, sweep if config.redraw else 0)
    problem.backend.draw_negatives(problem.tuples, problem.modes, _pool(problem), key)


def _pool(problem: Problem) -> Codes:
    """Contrast entities, each as often as its cells weigh: with other shares, phi would measure the weights.

    Where cells weigh alike, this is the contrast column; else a systematic sample of POOL places for each cell.
    """
    column = problem.tuples[:, problem.config.contrast]
    if len(problem.weights) == 1:
        return column
    ends = np.cumsum(problem.weights)
    places = (np.arange(POOL * len(column)) + 0.5) / (POOL * len(column)) * ends[-1]
    return np.asarray(column[np.searchsorted(ends, places)])


def group_negatives(problem: Problem) -> tuple[Numbers, Codes]:
    """The cells in which each contrast entity was drawn."""
    size = problem.tensor.shape[problem.config.contrast]
    return problem.backend.group_drawn(problem.tuples, problem.modes, size)


def view_of(problem: Problem, state: State) -> View:
    """What the kernels read: the negatives drawn last, and the state's own arrays."""
    return View(
        read_only(problem.tuples),
        problem.weights,
        problem.config.contrast,
        state.factors,
        problem.starts,
        problem.rows,
        state.component_weights,
    )
