"""Where cores are looked for: reviews of one side laid out as actors x places, with what chance alone would put there.

A place is an item (a seller, a product) in one window of weeks. Chance deals the reviewers of a window's reviews anew:
who is how active when, what is popular when, and the ratings stay; who meets whom does not. So the reviews that a set
of actors leaves in a set of places is a sum of hypergeometric counts, one for each window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.kernels.protocol import get_backend
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.lockstep.meetings import Places, cuts
from ringleader.tensor.sparse import SparseTensor

CROWD = 2
"""Reviews on the board below which nobody can be in a core."""

LEAST_EXCESS = 0.1
"""Least part of a place's reviews that counts as a burst."""

LEAST_ORGANIC = 0.2
"""Least share of a place's reviews that are taken for honest ones."""


class BoardRows(NamedTuple):
    """A compressed table: entries of row n are ``entries[offsets[n]:offsets[n + 1]]``."""

    offsets: Numbers
    entries: Numbers


@dataclass(frozen=True, eq=False)
class Board:
    """Reviews of one side as actors x places. n reviews, A actors, P places, W windows, I items.

    cells : (n,) which cells of the tensor they are; who, place : (n,) actor and place of each.
    size : (P,) reviews of each place; window, item : (P,). item_size : (I,) reviews of each item.
    calendar : (W,) reviews of each window.
    open : (P,) places large enough to be in a core.
    of_actor, of_place : numbers of the reviews of each.
    busy : actor x window, as rows of (window, reviews).
    log_actor, log_place : log of the share of each in all reviews (of open places): what naming it costs.
    loud : (n,) score of lockstep of each review.
    laid : item and window of every cell of the tensor, whatever its rating.
    """

    mode: int
    side: int
    cells: Numbers
    who: Numbers
    place: Numbers
    size: Floats
    window: Numbers
    item: Numbers
    item_size: Floats
    calendar: Floats
    open: Bools
    of_actor: BoardRows
    of_place: BoardRows
    busy: BoardRows
    busy_count: Floats
    log_actor: Floats
    log_place: Floats
    loud: Floats
    laid: Places

    @property
    def n_windows(self) -> int:
        return len(self.calendar)

    @property
    def n_actors(self) -> int:
        return len(self.log_actor)

    def sums(self, values: npt.NDArray[Any]) -> Floats:
        """Sum over the reviews of each place, (P,)."""
        return _sums(self.place, values, len(self.size))

    def places_of(self, actors: Numbers) -> tuple[Numbers, Numbers]:
        """Open places of the actors' reviews, ascending, and how many of these each has."""
        places = self.place[taken(self.of_actor, actors)]
        return _counted(places[self.open[places]])

    def actors_at(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Actors of the reviews of places, ascending, and how many reviews each left there."""
        return _counted(self.who[taken(self.of_place, places)])

    def activity(self, actors: Numbers) -> Floats:
        """Reviews of all the actors together in each window, (W,)."""
        at = spans(self.busy, actors)
        return _sums(self.busy.entries[at], self.busy_count[at], self.n_windows)

    def expected_of(self, actors: Numbers, shares: Floats) -> Floats:
        """Reviews each actor is expected to leave in places that hold ``shares`` (W,) of each window."""
        at = spans(self.busy, actors)
        row = np.repeat(np.arange(len(actors)), self.busy.offsets[actors + 1] - self.busy.offsets[actors])
        return _sums(row, self.busy_count[at] * shares[self.busy.entries[at]], len(actors))

    def shares(self, places: Numbers, sizes: Floats) -> Floats:
        """Share of each window's reviews that places of these sizes hold, (W,)."""
        held = np.bincount(self.window[places], weights=sizes, minlength=self.n_windows)
        return np.asarray(held / np.maximum(self.calendar, 1.0))

    def expected_at(self, places: Numbers, sizes: Floats, activity: Floats) -> Floats:
        """Reviews that actors of this activity (W,) are expected to leave at each place."""
        window = self.window[places]
        return np.asarray(activity[window] * sizes / np.maximum(self.calendar[window], 1.0))

    def inside(self, actors: Numbers, places: Numbers) -> Numbers:
        """Numbers of the reviews by these actors at these places, ascending. Both sets ascending."""
        rows = taken(self.of_place, places)
        return np.sort(rows[contains(actors, self.who[rows])])

    def whatever_rating(self, reviews: Numbers, places: Numbers) -> Numbers:
        """Those of these cells of the tensor that are at these places, on this side or another."""
        keys = self.item[places] * self.n_windows + self.window[places]
        there = contains(keys, self.laid.items[reviews].astype(np.int64) * self.n_windows + self.laid.windows[reviews])
        return reviews[there]

    def organic(self, places: Numbers) -> Floats:
        """Honest reviews to expect at each place: those of its item in other windows than these, by the calendar."""
        if self.n_windows == 1:
            return self.size[places]
        items, row = np.unique(self.item[places], return_inverse=True)
        own = self.of_item(items)
        number = np.repeat(np.arange(len(items)), own.offsets[1:] - own.offsets[:-1])
        campaign = contains(places, own.entries)
        calendar = self.calendar / max(float(self.calendar.sum()), 1.0)
        out = np.bincount(number[~campaign], weights=self.size[own.entries[~campaign]], minlength=len(items))
        mass = np.bincount(row, weights=calendar[self.window[places]], minlength=len(items))
        share = calendar[self.window[places]]
        honest = (out[row] + 1.0) * share / np.maximum(1.0 - mass[row] + share, share)
        return np.clip(honest, LEAST_ORGANIC * self.size[places], self.size[places])

    def of_item(self, items: Numbers) -> BoardRows:
        """The places of each item. Places are numbered item by item."""
        low, high = np.searchsorted(self.item, items), np.searchsorted(self.item, items, side="right")
        offsets = np.concatenate([[0], np.cumsum(high - low)])
        return BoardRows(offsets, _runs(low, high - low))


def boards(tensor: SparseTensor, lockstep: Lockstep, least: int) -> list[Board]:
    """A board for each side of the rating scale that has lockstep, and for each mode people meet on, few items first.

    least : reviews a place needs to be in a core.
    """
    settings, n = lockstep.settings, tensor.shape[lockstep.actor]
    modes = lockstep.roles(tensor).items
    laid = list(cuts(tensor, lockstep.actor, settings)) if tensor.n_cells else []
    first = laid[:: max(len(laid) // len(modes), 1)]  # of several phases the first: a ring fills neighbouring windows
    made = []
    for side, chosen in enumerate(lockstep.sides(tensor)):
        pairs = (lockstep.boost, lockstep.attack)[side]
        cells = np.flatnonzero(chosen)
        if not pairs.graph.nnz:
            continue
        who = tensor.coordinates[cells, lockstep.actor].astype(np.int64)
        for mode, cut in sorted(zip(modes, first, strict=True), key=lambda pair: tensor.shape[pair[0]]):
            made.append(_board(Origin(mode, side, n, least), cells, who, cut, lockstep.both.direct[cells]))
    return made


class Origin(NamedTuple):
    mode: int
    side: int
    n_actors: int
    least: int


def _board(origin: Origin, cells: Numbers, who: Numbers, cut: Places, loud: Floats) -> Board:
    laid = Places(cut.items[cells], cut.windows[cells], cut.n_windows)
    key = laid.items.astype(np.int64) * laid.n_windows + laid.windows
    distinct, place = np.unique(key, return_inverse=True)
    place = place.reshape(-1).astype(np.int64)
    size = np.bincount(place, minlength=len(distinct)).astype(np.float64)
    large = size >= origin.least
    reviews = np.bincount(who, minlength=origin.n_actors).astype(np.float64)
    busy, count = _counted(who * laid.n_windows + laid.windows)
    return Board(
        mode=origin.mode,
        side=origin.side,
        cells=cells,
        who=who,
        place=place,
        size=size,
        window=distinct % laid.n_windows,
        item=distinct // laid.n_windows,
        item_size=np.bincount(laid.items).astype(np.float64),
        calendar=np.bincount(laid.windows, minlength=laid.n_windows).astype(np.float64),
        open=large,
        of_actor=_rows(who, origin.n_actors),
        of_place=_rows(place, len(distinct)),
        busy=BoardRows(_offsets(busy // laid.n_windows, origin.n_actors), busy % laid.n_windows),
        busy_count=count.astype(np.float64),
        log_actor=_log_shares(reviews, reviews >= CROWD),
        log_place=_log_shares(_excess(size, distinct // laid.n_windows, distinct % laid.n_windows), large),
        loud=loud,
        laid=cut,
    )


def _excess(size: Floats, item: Numbers, window: Numbers) -> Floats:
    """Reviews of each place beyond those that its item's other windows let expect; some part of them at least."""
    calendar = np.bincount(window, weights=size)
    share = (calendar / max(float(calendar.sum()), 1.0))[window]
    usual = (np.bincount(item, weights=size)[item] - size + 1.0) * share / np.maximum(1.0 - share, LEAST_EXCESS)
    return np.asarray(np.maximum(size - usual, LEAST_EXCESS * size))


def _log_shares(weight: Floats, within: Bools) -> Floats:
    total = float(weight[within].sum())
    shares = np.full(len(weight), -np.inf)
    shares[within] = np.log(weight[within] / max(total, 1.0))
    return shares


def _rows(codes: Numbers, size: int) -> BoardRows:
    return BoardRows(_offsets(codes, size), get_backend().stable_order(codes, size))


def _offsets(codes: Numbers, size: int) -> Numbers:
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=size))]).astype(np.int64)


def _sums(codes: Numbers, values: npt.NDArray[Any], size: int) -> Floats:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64, copy=False)


def _runs(first: Numbers, length: Numbers) -> Numbers:
    """first[0], first[0] + 1, ... for length[0] numbers, then the same from first[1], and so on."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.repeat(first - ends + length, length) + np.arange(total))


def _counted(values: Numbers) -> tuple[Numbers, Numbers]:
    distinct, count = np.unique(values, return_counts=True)
    return distinct, count


def taken(rows: BoardRows, which: Numbers) -> Numbers:
    """Entries of the rows ``which``, one after the other."""
    return rows.entries[spans(rows, which)]


def spans(rows: BoardRows, which: Numbers) -> Numbers:
    """Positions of the entries of the rows ``which``."""
    return _runs(rows.offsets[which], rows.offsets[which + 1] - rows.offsets[which])


def contains(ascending: Numbers, values: Numbers) -> Bools:
    """Whether each value is among ``ascending``. Same as: ``np.isin(values, ascending)``."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[at] == values)
