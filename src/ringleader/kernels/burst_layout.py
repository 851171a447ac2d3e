"""Arrays that travel together through the search for bursts."""

from __future__ import annotations

from typing import NamedTuple

from ringleader.arrays import Floats, Numbers


class ReviewTimes(NamedTuple):
    """When entities have reviews: distinct (entity, bin), sorted.

    keys    : (rows,) ascending, those of two entities further apart than any window
    running : (kinds, rows + 1) reviews of each kind before each row; whole numbers
    volume  : (n,) all reviews of each entity
    """

    keys: Numbers
    entity: Numbers
    bins: Numbers
    running: Floats
    volume: Floats


class BurstRule(NamedTuple):
    """What is to be expected.

    calm   : (2, rows) share of the market's reviews in the window that begins, and that ends, in the bin of a row
    shares : (kinds,) of the market's reviews that are of each kind
    length : of a window, in bins. prior : see ``largest_bursts``
    """

    calm: Floats
    shares: Floats
    length: int
    prior: float


class FoundBursts(NamedTuple):
    """The largest burst of every entity, of each kind: (kinds, n) each."""

    z: Floats
    seen: Floats  # reviews in the window
    expected: Floats  # reviews to be expected there
    start: Numbers  # first bin of the window


class ActiveTimes(NamedTuple):
    """When entities have reviews: distinct (entity, bin), sorted, and when the whole market has them.

    before : (n_bins + 1,) share of the market's reviews before each bin, and 1
    """

    entity: Numbers  # (rows,)
    bins: Numbers  # (rows,)
    before: Floats


class Rhythms(NamedTuple):
    """How the reviews of each entity lie over its life, (n,) each; zeros where it has none.

    first, last : bins with a review. gap : most bins from one of them to the next. active : how many there are
    together : sum of c (c - 1) over its bins with c reviews
    unsteady : sum of c^2 / e, where its volume, spread like the market's over its life, lets expect e
    """

    first: Numbers
    last: Numbers
    gap: Numbers
    active: Numbers
    together: Floats
    unsteady: Floats
