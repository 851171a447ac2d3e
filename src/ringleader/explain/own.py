"""OwnReviews: the reviews of one account, and what they are counted from. Only its own cells are touched."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.signals.lockstep import LockstepSettings
from ringleader.tensor.roles import Roles, rating_sides
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import say_time

WEEK = 7 * 86_400

NAMED = 5
"""Accounts, items and weeks that a list names."""
LOW, MIDDLE, HIGH = -1, 0, 1
"""Sides of the rating scale."""


@dataclass(frozen=True, eq=False)
class OwnReviews:
    """One account of a tensor.

    mode, code : which. roles : who acts on what. settings : what a meeting is.
    """

    tensor: SparseTensor
    mode: int
    code: int
    roles: Roles
    settings: LockstepSettings
    _joined: dict[int, tuple[Numbers, Numbers]] = field(default_factory=dict, repr=False)

    @cached_property
    def cells(self) -> Numbers:
        """Its distinct reviews, (m,), as numbers of cells, ascending."""
        return cells_of(self.tensor, self.mode, self.code)

    @property
    def weights(self) -> Numbers:
        """Reviews in each of its cells, (m,)."""
        return self.tensor.counts[self.cells]

    @property
    def volume(self) -> int:
        """How many reviews it has."""
        return int(self.weights.sum())

    def codes(self, mode: int, cells: Numbers | None = None) -> Numbers:
        """Codes of a mode at its cells, or at others."""
        chosen = self.cells if cells is None else cells
        return np.asarray(self.tensor.coordinates[chosen, mode], np.int64)

    @property
    def acts(self) -> bool:
        """Whether it is of the mode that acts."""
        return self.mode == self.roles.actor

    @property
    def through(self) -> int:
        """The mode whose entities it shares with others of its own."""
        return self.roles.rarest_partner(self.mode)

    @cached_property
    def starts(self) -> Numbers:
        """Unix seconds at which each time begins, by code; empty without times."""
        time = self.roles.time
        return np.zeros(0, np.int64) if time is None else np.asarray(self.tensor.vocabularies[time].values, np.int64)

    def times(self, cells: Numbers) -> Numbers:
        """When cells happened, in Unix seconds; zeros without times."""
        if self.roles.time is None:
            return np.zeros(len(cells), np.int64)
        return np.asarray(self.starts[self.codes(self.roles.time, cells)])

    @cached_property
    def rating_values(self) -> Floats:
        """The rating of each code; empty without ratings."""
        rating = self.roles.rating
        return np.zeros(0) if rating is None else np.asarray(self.tensor.vocabularies[rating].values, np.float64)

    @cached_property
    def side_of_rating(self) -> Numbers:
        """Side of each rating, by code: LOW, MIDDLE or HIGH."""
        low, high = rating_sides(self.rating_values)
        low = low if self.settings.low is None else self.settings.low
        high = high if self.settings.high is None else self.settings.high
        return np.where(self.rating_values >= high, HIGH, np.where(self.rating_values <= low, LOW, MIDDLE))

    def sides(self, cells: Numbers) -> Numbers:
        """Side of the rating scale of cells: LOW, MIDDLE or HIGH; all HIGH without ratings."""
        if self.roles.side_rating is None:
            return np.full(len(cells), HIGH, np.int64)
        return np.asarray(self.side_of_rating[self.codes(self.roles.side_rating, cells)])

    def joined(self, mode: int) -> tuple[Numbers, Numbers]:
        """Every pair of one of its cells and a cell of the same entity of a mode: (own, other), its own too."""
        if mode not in self._joined:
            grouping = self.tensor.grouping(mode)
            chosen = self.codes(mode)
            length = grouping.offsets[chosen + 1] - grouping.offsets[chosen]
            self._joined[mode] = np.repeat(self.cells, length), gathered(grouping.offsets, grouping.cells, chosen)
        return self._joined[mode]

    @cached_property
    def near(self) -> tuple[Numbers, Numbers]:
        """Pairs of ``joined`` through items that are within a window of one another and on the same side."""
        return self.near_through(self.through)

    def near_through(self, mode: int) -> tuple[Numbers, Numbers]:
        """The same through the entities of another mode."""
        own, other = self.joined(mode)
        window = max(round(self.settings.window_weeks * WEEK), 1)
        close = np.abs(self.times(own) - self.times(other)) < window
        close &= self.sides(own) == self.sides(other)
        return own[close], other[close]


def cells_of(tensor: SparseTensor, mode: int, code: int) -> Numbers:
    """The cells of one entity, ascending."""
    grouping = tensor.grouping(mode)
    return np.asarray(grouping.cells[grouping.offsets[code] : grouping.offsets[code + 1]], np.int64)


def gathered(offsets: Numbers, cells: npt.NDArray[Any], chosen: npt.NDArray[Any]) -> Numbers:
    """The cells of several entities, one after the other."""
    length = offsets[chosen + 1] - offsets[chosen]
    start = np.repeat(offsets[chosen] - np.cumsum(length) + length, length)
    return np.asarray(cells[start + np.arange(int(length.sum()))], np.int64)


def commonest(tensor: SparseTensor, mode: int, cells: Numbers, most: int = NAMED) -> list[str]:
    """The entities of a mode that cells name most often, as text."""
    codes, count = np.unique(tensor.coordinates[cells, mode], return_counts=True)
    first, vocabulary = codes[np.lexsort((codes, -count))][:most], tensor.vocabularies[mode]
    return [say_time(at) for at in vocabulary.decode(first)] if vocabulary.kind == "time" else vocabulary.text(first)
