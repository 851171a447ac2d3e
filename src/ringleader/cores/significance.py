"""How surprising a block is: against chance, against taste, and after so many looks.

Against chance (``evidence``): the reviewers of each window's reviews are dealt anew, so the count C of a given block is
a sum of independent hypergeometric counts, itself a sum of independent yes-or-no draws with mean E; for it P(C or more)
<= exp(-(C log(C / E) - (C - E))), whatever the margins (Chernoff, Hoeffding).

After so many looks (``naming_cost``): every block of actors and places has a weight, k! times the product of its
members' shares in all reviews, for actors and for places, over k (k + 1) each. The weights of all blocks sum to at most
one, so the chance that *any* block at all reaches evidence - cost = x is at most exp(-x), however the block was found.

Against taste (``taste``): given how often the members review each item at all, do they do so in the same windows, where
its other customers spread over the calendar?
"""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import lru_cache

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores.board import Board
from ringleader.kernels.elementary import gammaln, log, log1p, logaddexp

CUSTOM = 5.0
"""Reviews' worth of the market's calendar in the calendar of an item's other customers."""

DISSENT = 0.05
"""Part of a ring's reviews that may be on the other side of the rating scale."""

THEIRS = 0.2
"""Chance, beforehand, that an item the members share is one they meet on."""


def evidence(reviews: float, expected: float) -> float:
    """Minus the log of the Chernoff bound on P(reviews or more), for a sum of draws with mean ``expected``."""
    if reviews <= expected or reviews <= 0:
        return 0.0
    return float(reviews * log(reviews / max(expected, 1e-12)) - (reviews - expected))


def naming_cost(*members: Floats) -> float:
    """Minus the log of the weight of a block: the price of having looked at every other one.

    members : of its actors, and of its places, the log of the share of each (``log_share``)
    """
    cost = 0.0
    for log_share in members:
        k = len(log_share)
        cost += float(-log_share.sum() - _log_factorial(k) + log(k * (k + 1)) if k else math.inf)
    return cost


@lru_cache(maxsize=4096)
def _log_factorial(k: int) -> float:
    return gammaln(k + 1)


def taste(board: Board, actors: Numbers) -> float:
    """Evidence that these actors share weeks and not just items; infinite without windows.

    For every item that two or more of their reviews are of, the windows of these are weighed: do they keep to few
    windows of their own (Dirichlet-multinomial, concentration one), or do they come as its other customers do, whose
    calendar is known as far as they and the market's calendar tell it? An item is one of theirs with chance THEIRS.
    Where taste is all they share, the product of the ratios has mean one, so it exceeds exp(x) with chance exp(-x) at
    most, for actors given beforehand and items whose calendars scatter about the market's as CUSTOM says.
    """
    if board.n_windows == 1:
        return math.inf
    met, count = np.unique(board.places_met(actors), return_counts=True)
    facts = board.facts(met)
    items, number = np.unique(facts.item, return_inverse=True)
    total = np.bincount(number, weights=count, minlength=len(items))
    shared = total[number] > 1
    count, facts, items, total = count[shared], facts.of(shared), items[total > 1], total[total > 1]
    number = np.searchsorted(items, facts.item)
    calendar = board.calendar[facts.window] / board.calendar.sum()
    custom = facts.size - count + CUSTOM * calendar  # its other customers, and the market
    weight = board.item_sizes(items) - total + CUSTOM
    ratio = _spread(number, count, custom / weight[number], np.ones(len(items)))
    ratio -= _spread(number, count, custom, weight)
    return float(logaddexp(log1p(-THEIRS), log(THEIRS) + ratio).sum())


def taste_rows(board: Board, actors: Numbers) -> Generator[None, None, None]:
    """Have the rows that ``taste`` reads; yields where some are to be fetched."""
    if board.n_windows == 1:
        return
    if board.tables.members.lacks(actors):
        yield
    met = np.unique(board.places_met(actors))
    if board.tables.places.lacks(met):
        yield
    if board.tables.items.lacks(np.unique(board.facts(met).item)):
        yield


def _spread(number: Numbers, count: Numbers, weight: Floats, total: Floats) -> Floats:
    """Log of the Dirichlet-multinomial chance of each item's counts, but for the multinomial coefficient."""
    reviews = np.bincount(number, weights=count, minlength=len(total))
    windows = np.bincount(number, weights=gammaln(weight + count) - gammaln(weight), minlength=len(total))
    return np.asarray(windows + gammaln(total) - gammaln(total + reviews))


def agree(same: int, reviews: int, usual: float) -> bool:
    """Whether ratings of which ``same`` of ``reviews`` are on one side are likelier agreed upon than honest.

    Those who agreed dissent by DISSENT at most; honest people are on this side as ``usual``, like everyone.
    """
    usual = min(usual, 1.0 - DISSENT)
    other = reviews - same
    return other * log(DISSENT / (1.0 - usual)) + same * log((1.0 - DISSENT) / max(usual, 1e-12)) >= 0.0
