"""Partners: with whom an account acts, how often they met, and how often was to be expected.

Accounts that act (reviewers) meet where both review the same item within a window of weeks on the same side of the
rating scale. Other accounts (sellers, products) meet in the reviewers they share. No label enters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.explain.own import OwnReviews, gathered
from ringleader.kernels.elementary import expm1, log1p, surprise

LEAST = 2
"""Meetings below which two accounts are no partners."""
BY_CHANCE = 3.0
"""Surprise up to which two accounts are no partners: chance alone gives as many meetings about once in twenty times."""

LEAST_EXPECTED = 1e-4
"""Meetings that are to be expected of any two."""


class Met(NamedTuple):
    """Whom an account met, one row for each of a mode.

    codes    : of the others
    mode     : theirs
    via      : the mode in whose entities they were counted
    meetings : how many distinct entities of ``via`` both have, near one another; reviews where ``via`` is ``mode``
    expected : the same, as activity and popularity predict it
    of       : how many entities of ``via`` (or reviews) the account has
    """

    codes: Numbers
    mode: int
    via: int
    meetings: Numbers
    expected: Floats
    of: int

    @property
    def surprise(self) -> Floats:
        """c log(c / mu) - (c - mu), 0 where no more were met than expected."""
        return surprise(self.meetings, np.maximum(self.expected, LEAST_EXPECTED))

    def chosen(self, rows: Numbers) -> Met:
        """Some of the rows, in the order given."""
        return self._replace(codes=self.codes[rows], meetings=self.meetings[rows], expected=self.expected[rows])

    def strongest(self, most: int, least: int = LEAST, beyond: float = 0.0) -> Met:
        """Those that surprise most, of those that surprise more than ``beyond``."""
        surprise = self.surprise
        order = np.lexsort((self.codes, -surprise))
        return self.chosen(order[(surprise[order] > beyond) & (self.meetings[order] >= least)][:most])


def alike(own: OwnReviews) -> Met:
    """Others of its own mode."""
    return companions(own, own.through) if own.acts else _sharing(own)


def companions(own: OwnReviews, via: int) -> Met:
    """Those who act near it, at the entities of a mode of items.

    Expected: a share of an actor's reviews, that of all others' which fall near its own.
    """
    tensor = own.tensor
    other = (own.near if via == own.through else own.near_through(via))[1]
    who, item = own.codes(own.mode, other), own.codes(via, other)
    theirs = who != own.code
    pairs = np.unique(who[theirs] * tensor.shape[via] + item[theirs])
    codes, meetings = np.unique(pairs // tensor.shape[via], return_counts=True)
    near = len(np.unique(other[theirs]))
    share = near / max(tensor.n_cells - len(own.cells), 1)
    expected = tensor.degrees(own.mode)[codes] * share
    return Met(codes, own.mode, via, meetings, expected, len(np.unique(own.codes(via))))


def _sharing(own: OwnReviews) -> Met:
    """Those who have the same counterparts. Expected: that each of these, with as many reviews elsewhere, comes there.

    A counterpart with e other reviews comes to an account with a share q of all others' with chance 1 - (1 - q)^e.
    """
    tensor, via = own.tensor, own.through
    shared_by = np.unique(own.codes(via))
    grouping = tensor.grouping(via)
    cells = gathered(grouping.offsets, grouping.cells, shared_by)
    who, counterpart = own.codes(own.mode, cells), own.codes(via, cells)
    theirs = who != own.code
    pairs = np.unique(who[theirs] * tensor.shape[via] + counterpart[theirs])
    codes, meetings = np.unique(pairs // tensor.shape[via], return_counts=True)
    elsewhere = np.bincount(np.searchsorted(shared_by, counterpart[theirs]), minlength=len(shared_by))
    share = tensor.degrees(own.mode)[codes] / max(tensor.n_cells - len(own.cells), 1)
    expected, log_away = np.zeros(len(codes)), log1p(-share)
    for many, count in zip(*np.unique(elsewhere[elsewhere > 0], return_counts=True), strict=True):
        expected -= count * expm1(many * log_away)
    return Met(codes, own.mode, via, meetings, expected, len(shared_by))


def counterparts(own: OwnReviews, mode: int) -> Met:
    """Accounts of another mode by the reviews it has with them; expected by the volume of both."""
    codes, reviews = np.unique(own.codes(mode), return_counts=True)
    expected = len(own.cells) * own.tensor.degrees(mode)[codes] / max(own.tensor.n_cells, 1)
    return Met(codes, mode, mode, reviews, expected, len(own.cells))


def shared_cells(own: OwnReviews, met: Met, code: int) -> tuple[Numbers, Numbers]:
    """The cells of the account, and those of another it met, in which they met."""
    if met.mode != own.mode:
        mine = own.cells[own.codes(met.mode) == code]
        return mine, mine
    if own.acts:
        here, there = own.near
        both = own.codes(own.mode, there) == code
        return np.unique(here[both]), np.unique(there[both])
    grouping = own.tensor.grouping(own.mode)
    theirs = gathered(grouping.offsets, grouping.cells, np.array([code]))
    common = np.intersect1d(own.codes(met.via), own.codes(met.via, theirs))
    return own.cells[np.isin(own.codes(met.via), common)], theirs[np.isin(own.codes(met.via, theirs), common)]
