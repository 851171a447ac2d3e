"""Share: the interface a sweep is written against: what a process holds, and its part in what all must know.

A pass over the data (``learners/passes.py``) is written against it once. ``WholeShare`` holds everything and asks
nobody.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.layout import Rule, Statistics, Terms, read_only
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.priors import labelled_evidence, labelled_rows
from ringleader.model.problem import Problem
from ringleader.model.state import State


class Share(Protocol):
    """The entities that this process moves, with all they need.

    ``problem`` has the targets of the entities that are moved here, ``state`` the rows that are held here: codes of
    both are places among those rows. ``all_targets`` is the problem with the labels of every process.
    """

    problem: Problem
    all_targets: Problem
    state: State

    def movable(self, mode: int) -> int:
        """How many entities of a mode are moved in this sweep, by all processes together."""

    def sweep(self, mode: int, rule: Rule, rate: float, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
        """Move the entities of a mode, and let everyone who needs their rows have them."""

    def labelled_rows(self, target: int) -> Floats:
        """The rows on which a target's head is fitted, one for each label of all processes."""

    def labelled_evidence(self, target: int) -> Floats:
        """The evidence that a target's head reads, one number for each label of all processes."""

    def lambda_moments(self, rule: Rule) -> tuple[Floats, Floats]:
        """g and F of lambda over all cells."""


class WholeShare:
    """One process that holds everything; with ``touched``, codes of the entities of each mode that are moved."""

    def __init__(self, problem: Problem, state: State, touched: dict[int, Numbers] | None = None) -> None:
        self.problem = self.all_targets = problem
        self.state = state
        self.touched = touched
        self.tuples = draw_sweep(problem, state.sweep)
        self.view = view_of(problem, state, self.tuples)

    def movable(self, mode: int) -> int:
        entities = self._entities(mode)
        return self.problem.tensor.shape[mode] if entities is None else len(entities)

    def sweep(self, mode: int, rule: Rule, rate: float, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
        drawn = group_negatives(self.problem, self.tuples) if mode == self.problem.config.contrast else None
        blocks = self.problem.blocks(mode, drawn, self._entities(mode))
        if rate != 1.0:  # what they are planned with
            blocks = blocks._replace(rate=read_only(np.full(len(blocks.entities), rate)))
        self.problem.backend.sweep_blocks(self.view, blocks, rule, terms, statistics, cavity)

    def labelled_rows(self, target: int) -> Floats:
        return labelled_rows(self.problem, self.state, target)

    def labelled_evidence(self, target: int) -> Floats:
        return labelled_evidence(self.problem, self.state, target)

    def lambda_moments(self, rule: Rule) -> tuple[Floats, Floats]:
        every = np.arange(self.problem.tensor.n_cells, dtype=np.int32)
        return self.problem.backend.lambda_moments(self.view, every, rule)

    def _entities(self, mode: int) -> Any:
        return None if self.touched is None else self.touched[mode]
