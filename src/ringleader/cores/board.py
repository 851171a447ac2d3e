"""Where cores are looked for: reviews of one side laid out as actors x places, with what chance alone would put there.

A place is an item (a seller, a product) in one window of weeks. Chance deals the reviewers of a window's reviews anew:
who is how active when, what is popular when, and the ratings stay; who meets whom does not. So the reviews that a set
of actors leaves in a set of places is a sum of hypergeometric counts, one for each window.

A board answers from rows of actors, places and items (``rows``), wherever they are; ``layout`` makes boards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.cores.rows import RowSource, contains, runs

LEAST_ORGANIC = 0.2
"""Least share of a place's reviews that are taken for honest ones."""


class Reviews(NamedTuple):
    """Reviews by their cells, ascending: who left them, in which place, and how loud lockstep is there."""

    cells: Codes
    who: Codes
    place: Numbers
    loud: Floats

    def of(self, which: Bools) -> Reviews:
        """Some of them."""
        columns: Any = (column[which] for column in self)
        return Reviews(*columns)


class PlaceFacts(NamedTuple):
    """What is known of places.

    size : reviews; log_share : log of the share of each in the reviews of all that may be in a core, -inf where there
    are too few; loudness : sum of that of its reviews (``seeds``)
    """

    window: Numbers
    item: Numbers
    size: Floats
    log_share: Floats
    loudness: Floats

    def of(self, which: Bools) -> PlaceFacts:
        """Those of some of the places."""
        columns: Any = (column[which] for column in self)
        return PlaceFacts(*columns)


class BoardTables(NamedTuple):
    """Rows of a board.

    members : of actors, with entries ``place``, one for each review
    people  : of actors, with ``log_share`` (of each in all reviews: what naming it costs), and with entries ``window``
        and ``count``, the reviews of each window that has some
    places  : with ``key`` (item x windows + window), ``size``, ``log_share`` and ``loudness``
    reviews : of places, with entries ``cell``, ascending, ``who`` and ``loud``
    items   : with ``first``, ``count`` (their places have numbers one after the other) and ``size``, their reviews
    """

    members: RowSource
    people: RowSource
    places: RowSource
    reviews: RowSource
    items: RowSource


@dataclass(frozen=True, eq=False)
class Board:
    """Reviews of one side as actors x places.

    n_reviews : how many; calendar : (W,) reviews of each window.
    loudest : the places to begin a search from, at most so many (``seeds``).
    located : of cells, ascending, which of them are on this board, their places, and how loud lockstep is there.
    fetch : has the tables get what they want; apart : whether that is to ask others.
    """

    mode: int
    side: int
    n_reviews: int
    calendar: Floats
    tables: BoardTables
    loudest: Callable[[int], Numbers]
    located: Callable[[Numbers], tuple[Numbers, Numbers, Floats]]
    fetch: Callable[[], None]
    apart: bool

    @property
    def n_windows(self) -> int:
        return len(self.calendar)

    def places_shared(self, actors: Numbers) -> tuple[Numbers, Numbers]:
        """Places that the actors have more than one review of, ascending, and how many they have."""
        places, count = _counted(self.places_met(actors))
        return places[count > 1], count[count > 1]

    def places_met(self, actors: Numbers) -> Numbers:
        """The place of each review of the actors."""
        return np.asarray(self.tables.members.read(actors).entries("place"), np.int64)

    def actors_at(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Actors of the reviews of places, ascending, and how many reviews each left there."""
        return _counted(self.tables.reviews.read(places).entries("who"))

    def log_actor(self, actors: Numbers) -> Floats:
        """Log of the share of each in all reviews."""
        return self.tables.people.read(actors).values("log_share")

    def activity(self, actors: Numbers) -> Floats:
        """Reviews of all the actors together in each window, (W,)."""
        rows = self.tables.people.read(actors)
        return _sums(rows.entries("window"), rows.entries("count"), self.n_windows)

    def expected_of(self, actors: Numbers, shares: Floats) -> Floats:
        """Reviews each actor is expected to leave in places that hold ``shares`` (W,) of each window."""
        rows = self.tables.people.read(actors)
        row = np.repeat(np.arange(len(actors)), rows.lengths)
        return _sums(row, rows.entries("count") * shares[rows.entries("window")], len(actors))

    def facts(self, places: Numbers) -> PlaceFacts:
        rows = self.tables.places.read(places)
        key = rows.values("key")
        return PlaceFacts(
            key % self.n_windows, key // self.n_windows, *map(rows.values, ("size", "log_share", "loudness"))
        )

    def shares(self, window: Numbers, sizes: Floats) -> Floats:
        """Share of each window's reviews that places of these windows and sizes hold, (W,)."""
        held = np.bincount(window, weights=sizes, minlength=self.n_windows)
        return np.asarray(held / np.maximum(self.calendar, 1.0))

    def expected_at(self, window: Numbers, sizes: Floats, activity: Floats) -> Floats:
        """Reviews that actors of this activity (W,) are expected to leave at places of these windows and sizes."""
        return np.asarray(activity[window] * sizes / np.maximum(self.calendar[window], 1.0))

    def inside(self, actors: Numbers, places: Numbers) -> Reviews:
        """The reviews by these actors at these places. Both sets ascending."""
        return self._reviews(places, actors)

    def reviews_at(self, places: Numbers) -> Reviews:
        """All reviews at these places."""
        return self._reviews(places, None)

    def _reviews(self, places: Numbers, actors: Numbers | None) -> Reviews:
        rows = self.tables.reviews.read(places)
        place = np.repeat(places, rows.lengths)
        chosen = np.arange(len(place)) if actors is None else np.flatnonzero(contains(actors, rows.entries("who")))
        chosen = chosen[np.argsort(rows.entries("cell", chosen), kind="stable")]
        cell, who, loud = (rows.entries(name, chosen) for name in ("cell", "who", "loud"))
        return Reviews(cell, who, place[chosen], loud)

    def count_inside(self, actors: Numbers, places: Numbers) -> int:
        """How many reviews these actors left at these places."""
        return int(np.count_nonzero(contains(actors, self.tables.reviews.read(places).entries("who"))))

    def organic(self, places: Numbers) -> Floats:
        """Honest reviews to expect at each place: those of its item in other windows than these, by the calendar."""
        facts = self.facts(places)
        if self.n_windows == 1:
            return facts.size
        items, row = np.unique(facts.item, return_inverse=True)
        counts, own = self.of_items(items)
        number = np.repeat(np.arange(len(items)), counts)
        campaign = contains(places, own)
        calendar = self.calendar / max(float(self.calendar.sum()), 1.0)
        size = self.facts(own).size
        out = np.bincount(number[~campaign], weights=size[~campaign], minlength=len(items))
        mass = np.bincount(row, weights=calendar[facts.window], minlength=len(items))
        share = calendar[facts.window]
        honest = (out[row] + 1.0) * share / np.maximum(1.0 - mass[row] + share, share)
        return np.clip(honest, LEAST_ORGANIC * facts.size, facts.size)

    def of_items(self, items: Numbers) -> tuple[Numbers, Numbers]:
        """How many places each item has, and these, item after item."""
        rows = self.tables.items.read(items)
        counts = np.asarray(rows.values("count"), np.int64)
        return counts, runs(np.asarray(rows.values("first"), np.int64), counts)

    def item_sizes(self, items: Numbers) -> Floats:
        """Reviews of each item."""
        return self.tables.items.read(items).values("size")


def _sums(codes: Numbers | Codes, values: npt.NDArray[Any], size: int) -> Floats:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64, copy=False)


def _counted(values: Numbers | Codes) -> tuple[Numbers, Numbers]:
    distinct, count = np.unique(values, return_counts=True)
    return distinct.astype(np.int64, copy=False), count
