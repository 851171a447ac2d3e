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

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.elementary import log
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.lockstep.meetings import Places, cuts_on, ranks
from ringleader.tensor.sparse import SparseTensor, group_codes

CROWD = 2
"""Reviews on the board below which nobody can be in a core."""

LEAST_EXCESS = 0.1
"""Least part of a place's reviews that counts as a burst."""

LEAST_ORGANIC = 0.2
"""Least share of a place's reviews that are taken for honest ones."""


class BoardRows(NamedTuple):
    """A compressed table: entries of row n are ``entries[offsets[n]:offsets[n + 1]]``."""

    offsets: Numbers
    entries: Numbers | Codes


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
    cells: Codes
    who: Codes
    place: Codes
    size: Floats
    window: Numbers
    item: Numbers
    item_size: Floats
    calendar: Floats
    open: Bools
    of_actor: BoardRows
    of_place: BoardRows
    busy: BoardRows
    busy_count: Codes
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
    modes, laid = lockstep.roles(tensor).items, dict[int, Places]()
    for mode in modes if tensor.n_cells else ():
        # Of several phases the first: a ring fills neighbouring windows.
        cut = next(cuts_on(tensor, lockstep.actor, mode, settings))
        laid[mode] = cut._replace(windows=next(iter(laid.values()), cut).windows)  # the same for all, in memory once
    made = []
    for side, chosen in enumerate(lockstep.sides(tensor)):
        pairs = (lockstep.boost, lockstep.attack)[side]
        if not pairs.graph.nnz:
            continue
        cells = np.flatnonzero(chosen).astype(np.int32)
        who, loud = tensor.coordinates[cells, lockstep.actor], lockstep.both.direct[cells]
        windows, n_windows = laid[modes[0]].windows[cells], laid[modes[0]].n_windows
        reviews = SideReviews(side, cells, who, windows, n_windows, loud, *_of_actors(who, windows, n_windows, n))
        made += [_board(mode, least, reviews, laid[mode]) for mode in sorted(modes, key=lambda k: tensor.shape[k])]
    return made


class SideReviews(NamedTuple):
    """The reviews of one side, which its boards share; fields as those of ``Board``, and the window of each review."""

    side: int
    cells: Codes
    who: Codes
    windows: Codes
    n_windows: int
    loud: Floats
    of_actor: BoardRows
    busy: BoardRows
    busy_count: Codes
    log_actor: Floats


def _of_actors(who: Codes, windows: Codes, n_windows: int, n: int) -> tuple[BoardRows, BoardRows, Codes, Floats]:
    """``of_actor``, ``busy``, ``busy_count`` and ``log_actor`` of a board."""
    busy, count = _counted(who.astype(np.int64) * n_windows + windows)
    reviews = np.bincount(who, minlength=n).astype(np.float64)
    table = BoardRows(_offsets(busy // n_windows, n), (busy % n_windows).astype(np.int32))
    return _rows(who, n), table, count.astype(np.int32), _log_shares(reviews, reviews >= CROWD)


def _board(mode: int, least: int, reviews: SideReviews, cut: Places) -> Board:
    items, n_windows = cut.items[reviews.cells], cut.n_windows
    distinct, rank = ranks(items.astype(np.int64) * n_windows + reviews.windows)
    place = rank.astype(np.int32)
    del rank
    size = np.bincount(place, minlength=len(distinct)).astype(np.float64)
    large = size >= least
    return Board(
        mode=mode,
        side=reviews.side,
        cells=reviews.cells,
        who=reviews.who,
        place=place,
        size=size,
        window=distinct % n_windows,
        item=distinct // n_windows,
        item_size=np.bincount(items).astype(np.float64),
        calendar=np.bincount(reviews.windows, minlength=n_windows).astype(np.float64),
        open=large,
        of_actor=reviews.of_actor,
        of_place=_rows(place, len(distinct)),
        busy=reviews.busy,
        busy_count=reviews.busy_count,
        log_actor=reviews.log_actor,
        log_place=_log_shares(_excess(size, distinct // n_windows, distinct % n_windows), large),
        loud=reviews.loud,
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
    shares[within] = log(weight[within] / max(total, 1.0))
    return shares


def _rows(codes: Codes, size: int) -> BoardRows:
    return BoardRows(*group_codes(codes, size))


def _offsets(codes: Numbers, size: int) -> Numbers:
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=size))]).astype(np.int64)


def _sums(codes: Numbers | Codes, values: npt.NDArray[Any], size: int) -> Floats:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64, copy=False)


def _runs(first: Numbers, length: Numbers) -> Numbers:
    """first[0], first[0] + 1, ... for length[0] numbers, then the same from first[1], and so on."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.repeat(first - ends + length, length) + np.arange(total))


def _counted(values: Numbers | Codes) -> tuple[Numbers, Numbers]:
    distinct, count = np.unique(values, return_counts=True)
    return distinct.astype(np.int64, copy=False), count


def taken(rows: BoardRows, which: Numbers) -> Numbers:
    """Entries of the rows ``which``, one after the other."""
    return rows.entries[spans(rows, which)].astype(np.int64, copy=False)


def spans(rows: BoardRows, which: Numbers) -> Numbers:
    """Positions of the entries of the rows ``which``."""
    return _runs(rows.offsets[which], rows.offsets[which + 1] - rows.offsets[which])


def contains(ascending: Numbers, values: Numbers | Codes) -> Bools:
    """Whether each value is among ``ascending``. Same as: ``np.isin(values, ascending)``."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[at] == values)
