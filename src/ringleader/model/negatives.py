"""Contrast negatives of a sweep: draws that depend on (seed, sweep, cell, j) alone, and the kernels' view of them."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Codes, Numbers
from ringleader.counters import stream_key
from ringleader.errors import ModelFileError
from ringleader.kernels.layout import View, read_only
from ringleader.model.problem import Problem
from ringleader.model.state import State

POOL = 4
"""Places of the pool for each cell, where cells weigh differently."""


def draw_sweep(problem: Problem, sweep: int) -> Codes:
    """The codes of every cell, followed by the negatives of a sweep: (n_cells, K + m), read-only.

    A function of the problem and the sweep alone; the last one asked for is remembered.
    """
    config = problem.config
    if config.negatives == 0:
        return read_only(problem.tensor.coordinates)
    stream = sweep if problem.redraws else 0
    return problem.draws.get(stream, lambda: _drawn(problem, stream))


def negatives_of(problem: Problem, state: State) -> Codes:
    """``draw_sweep`` of the last sweep that a state has seen; before the first one, of the first."""
    return draw_sweep(problem, max(state.sweep - 1, 0))


def _drawn(problem: Problem, stream: int) -> Codes:
    modes = problem.modes
    tuples = problem.backend.place_tuples(problem.tensor.coordinates, problem.config.negatives)
    if problem.fixed_negatives is None:
        pool, key = negative_pool(problem, tuples), stream_key(problem.config.seed, stream)
        problem.backend.draw_negatives(tuples, modes, pool, key)
    else:
        tuples[:, modes:] = problem.backend.place(problem.fixed_negatives)
    return read_only(tuples) if type(tuples) is np.ndarray else tuples


def negative_pool(problem: Problem, tuples: Codes) -> Codes:
    """Contrast entities, each as often as its cells weigh: with other shares, phi would measure the weights.

    Where cells weigh alike, this is the contrast column; else a systematic sample of POOL places for each cell.
    """
    if len(problem.weights) == 1:
        return tuples[:, problem.config.contrast]
    column = problem.tensor.coordinates[:, problem.config.contrast]
    ends = np.cumsum(problem.weights)
    places = (np.arange(POOL * len(column)) + 0.5) / (POOL * len(column)) * ends[-1]
    return np.asarray(column[np.searchsorted(ends, places)])


def group_negatives(problem: Problem, tuples: Codes) -> tuple[Numbers, Codes] | None:
    """The cells in which each contrast entity was drawn; None where there are no negatives."""
    if problem.config.negatives == 0:
        return None
    size = problem.tensor.shape[problem.config.contrast]
    return problem.backend.group_drawn(tuples, problem.modes, size)


def view_of(problem: Problem, state: State, tuples: Codes) -> View:
    """What the kernels read: tuples of ``draw_sweep``, and the state's own arrays."""
    _check_fit(problem, state)
    return View(
        tuples,
        problem.weights,
        problem.config.contrast,
        state.factors,
        problem.starts,
        problem.rows,
        state.component_weights,
    )


def _check_fit(problem: Problem, state: State) -> None:
    """A state of other entities or of another rank is refused."""
    expected = (problem.rows, state.rank)
    same_modes = np.array_equal(state.starts, [*problem.starts, problem.rows])
    if state.factors.shape != expected or not same_modes or state.component_weights.shape != (state.rank,):
        raise ModelFileError(
            f"the state has {len(state.factors):,} factor rows for {state.modes} modes and does not fit its problem "
            f"of {problem.rows:,} entities in {problem.modes} modes; extend it to new entities, or load it again"
        )
