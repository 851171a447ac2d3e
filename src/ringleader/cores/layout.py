"""Layout: boards made of the cells that a process holds. Whoever holds all of them has boards to search; of several
processes each has the rows of its own actors and items, and answers for them (``BoardHolder``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.cores.board import Board, BoardTables
from ringleader.cores.rows import Ask, Fetcher, OwnTable, RowSource, contains, runs
from ringleader.cores.seeds import loudest, loudest_places, loudness_at
from ringleader.kernels.elementary import log
from ringleader.runtime.peers import gather
from ringleader.shares.cells import CellShare
from ringleader.signals.lockstep import Lockstep, find_sides
from ringleader.signals.lockstep.meetings import cuts_on, ranks
from ringleader.tensor.sparse import SparseTensor, group_codes

CROWD = 2
"""Reviews on the board below which nobody can be in a core."""

LEAST_EXCESS = 0.1
"""Least part of a place's reviews that counts as a burst."""

Group = tuple[int, Numbers, Numbers]
"""An item mode, actors, and places as keys (item x windows + window), both ascending."""


class SearchedReviews(NamedTuple):
    """What cores are looked for in.

    about : a tensor with the modes of the reviews; its cells may be a part of theirs
    boards : one for each side that has lockstep and each mode people meet on, few items first
    codes : rows of cells, with ``codes``, those of all modes
    met   : of each group, reviews of the actors at the places, whatever their ratings
    fetch : has ``codes`` get what it wants
    """

    about: SparseTensor
    n_cells: int
    boards: list[Board]
    codes: RowSource
    met: Callable[[Sequence[Group]], list[int]]
    fetch: Callable[[], None]


class OwnBoard(NamedTuple):
    """The rows of a board that this process has, of n reviews at its own items.

    place : (n,) counted from the first one here; large : (P,) places that may be in a core
    """

    mode: int
    side: int
    n_reviews: int
    calendar: Floats
    tables: tuple[OwnTable, ...]  # in the order of ``BoardTables``
    cells: Codes
    place: Codes
    loud: Floats
    large: Bools

    def loudest(self, most: int) -> tuple[Numbers, Floats]:
        """The places here to begin a search from, and how loud they are."""
        own = self.tables[2]
        facts = own.values["loudness"], own.values["size"], self.large
        places, score = loudest_places(self.place, self.loud, *facts, most)
        return places + own.first, score

    def located(self, cells: Numbers) -> tuple[Numbers, Numbers, Floats]:
        """Which of cells, ascending, are here, their places, and their lockstep."""
        wanted = cells.astype(self.cells.dtype)  # so that no copy of all the others is made
        there = np.flatnonzero(contains(self.cells, wanted))
        at = np.searchsorted(self.cells, wanted[there])
        return there, self.place[at].astype(np.int64) + self.tables[2].first, self.loud[at]


class BoardHolder:
    """Rows of all boards that this process has, and its answers to whoever searches."""

    def __init__(self, share: CellShare, lockstep: Lockstep, least: int) -> None:
        """least : reviews a place needs to be in a core."""
        home, actor = share.home, lockstep.actor
        self.share, self.actors = home, home.by(actor)
        self.lockstep, self._windows = lockstep, dict[int, tuple[Codes, int]]()
        counts = gather(home.peers, home.tensor.n_cells)
        self.first_cell = sum(counts[: home.peers.rank])
        self.codes = OwnTable(self.first_cell, home.tensor.n_cells, home.n_cells, {"codes": home.tensor.coordinates})
        modes = sorted(lockstep.roles(home.tensor).items, key=lambda k: home.shape[k])
        self.boards: list[OwnBoard] = []
        for side, chosen in enumerate(find_sides(home, actor, lockstep.settings)):
            if (lockstep.boost, lockstep.attack)[side].graph.nnz:
                self.boards += self._lay(side, chosen, modes, least)

    def _lay(self, side: int, chosen: Bools, modes: Sequence[int], least: int) -> list[OwnBoard]:
        home, acts, actor = self.share, self.actors, self.lockstep.actor
        mine = np.flatnonzero(home.move(chosen, acts)).astype(np.int32)
        who, (windows, n_windows) = acts.own_codes(actor)[mine], self._cut(acts)
        windows = windows[mine]
        n, first = acts.size(actor), acts.own(actor)[0]
        calendar = home.count(np.bincount(windows, minlength=n_windows)).astype(np.float64)
        people = _people(acts, who, windows, n_windows)
        offsets, order = group_codes(who, n)
        ascend = actor == home.mode  # cells are sorted by their first mode
        numbers = np.arange(self.first_cell, self.first_cell + home.tensor.n_cells, dtype=np.int32)
        laid, reviews = list[OwnBoard](), None
        for mode in modes:
            there = home.by(mode)
            if reviews is None or not home.alone:
                here = np.flatnonzero(home.move(chosen, there)).astype(np.int32)
                reviews = _Reviews(
                    here,
                    self._cut(there)[0][here],
                    home.move(numbers, there)[here],
                    there.tensor.coordinates[here, actor],
                    home.move(self.lockstep.both.direct, there)[here],
                )
            own = _items_and_places(there, mode, reviews, calendar, least)
            met = own.place
            if not home.alone:
                of_cells = np.full(there.tensor.n_cells, -1, np.int32)
                of_cells[reviews.here] = met + np.int32(own.places.first)
                met = there.move(of_cells, acts)[mine]
            members = OwnTable(first, n, home.shape[actor], {}, {"place": met}, offsets, None if ascend else order)
            tables = members, people, own.places, own.reviews, own.items
            fixed = mode, side, int(calendar.sum()), calendar
            laid.append(OwnBoard(*fixed, tables, reviews.cells, own.place, reviews.loud, own.large))
        return laid

    def _cut(self, share: CellShare) -> tuple[Codes, int]:
        """The window of each cell of a share, and how many windows there are."""
        tensor = share.tensor
        if id(tensor) not in self._windows:  # in one process it is the same tensor for all
            # Of several phases the first: a ring fills neighbouring windows.
            cut = next(cuts_on(tensor, self.lockstep.actor, share.mode, self.lockstep.settings))
            self._windows[id(tensor)] = cut.windows, cut.n_windows
        return self._windows[id(tensor)]

    def tidy(self) -> None:
        """Let go of what is needed to lay boards alone."""
        own = id(self.actors.tensor)
        self._windows = {key: cut for key, cut in self._windows.items() if key == own}
        self.share.forget()

    def met(self, groups: Sequence[Group]) -> list[int]:
        """Of each group, reviews of its actors that are here at its places, whatever their ratings."""
        actor, tensor = self.lockstep.actor, self.actors.tensor
        wanted = np.zeros(self.actors.shape[actor], np.bool_)
        for _, actors, _ in groups:
            wanted[actors] = True
        some = np.flatnonzero(wanted[tensor.coordinates[:, actor]])
        some = some[np.argsort(tensor.coordinates[some, actor], kind="stable")]
        who, (windows, n_windows) = tensor.coordinates[some, actor], self._cut(self.actors)
        reviews = []
        for mode, actors, keys in groups:
            begin, end = np.searchsorted(who, actors), np.searchsorted(who, actors, side="right")
            own = some[runs(begin, end - begin)]
            there = tensor.coordinates[own, mode].astype(np.int64) * n_windows + windows[own]
            reviews.append(int(np.count_nonzero(contains(keys, there))))
        return reviews

    # -- one process ----------------------------------------------------------------------------------

    def market(self) -> SearchedReviews:
        """All of it, where this process holds everything."""
        boards = [
            Board(
                mode=own.mode,
                side=own.side,
                n_reviews=own.n_reviews,
                calendar=own.calendar,
                tables=BoardTables(*own.tables),
                loudest=_first_of(own.loudest),
                located=own.located,
                fetch=_nothing,
                apart=False,
            )
            for own in self.boards
        ]
        return SearchedReviews(self.share.tensor, self.share.n_cells, boards, self.codes, self.met, _nothing)

    # -- one of several -------------------------------------------------------------------------------

    def answer(self, question: tuple[Any, ...]) -> Any:
        """What this process has of what another one asks for."""
        kind, *about = question
        if kind == "rows":
            tables = [table for own in self.boards for table in own.tables] + [self.codes]
            return [tables[number].packed(numbers) for number, numbers in about[0]]
        if kind == "loudest":
            return self.boards[about[0]].loudest(about[1])
        if kind == "located":
            return self.boards[about[0]].located(about[1])
        return self.met(about[0])

    def asking(self, ask: Ask) -> SearchedReviews:
        """The market of all processes, of which this one fetches what it needs. Others answer (``answer``)."""
        fetcher = Fetcher(ask)
        boards = []
        for number, own in enumerate(self.boards):
            boards.append(
                Board(
                    mode=own.mode,
                    side=own.side,
                    n_reviews=own.n_reviews,
                    calendar=own.calendar,
                    tables=BoardTables(*(fetcher.table(table.total) for table in own.tables)),
                    loudest=_asked_loudest(ask, number),
                    located=_asked_located(ask, number),
                    fetch=fetcher.fetch,
                    apart=True,
                )
            )
        codes = fetcher.table(self.codes.total)

        def met(groups: Sequence[Group]) -> list[int]:
            return [sum(counts) for counts in zip(*ask(("met", groups)), strict=True)]

        return SearchedReviews(self.share.tensor, self.share.n_cells, boards, codes, met, fetcher.fetch)


def _nothing() -> None:
    """Everything is here."""


def _first_of(own: Callable[[int], tuple[Numbers, Floats]]) -> Callable[[int], Numbers]:
    return lambda most: own(most)[0]


def _asked_loudest(ask: Ask, board: int) -> Callable[[int], Numbers]:
    def asked(most: int) -> Numbers:
        places, score = (np.concatenate(part) for part in zip(*ask(("loudest", board, most)), strict=True))
        # Each gives its own by score: in the order of their numbers they are as in one process.
        order = np.argsort(places, kind="stable")
        return loudest(places[order], score[order], most)[0]

    return asked


def _asked_located(ask: Ask, board: int) -> Callable[[Numbers], tuple[Numbers, Numbers, Floats]]:
    def asked(cells: Numbers) -> tuple[Numbers, Numbers, Floats]:
        which, places, loud = (np.concatenate(part) for part in zip(*ask(("located", board, cells)), strict=True))
        order = np.argsort(which, kind="stable")
        return which[order], places[order], loud[order]

    return asked


class _Reviews(NamedTuple):
    """Reviews of a side at the items of this process, in the order of their cells.

    here : which of the cells at these items they are
    """

    here: Codes
    windows: Codes
    cells: Codes
    who: Codes
    loud: Floats


class _Places(NamedTuple):
    places: OwnTable
    reviews: OwnTable
    items: OwnTable
    place: Codes
    large: Bools


def _items_and_places(share: CellShare, mode: int, reviews: _Reviews, calendar: Floats, least: int) -> _Places:
    """Rows of the items of this process, and of their places, which have numbers behind those of the process before."""
    n_windows, (first_item, _), n_items = len(calendar), share.own(mode), share.size(mode)
    items = share.own_codes(mode)[reviews.here]
    distinct, rank = ranks(items.astype(np.int64) * n_windows + reviews.windows)
    place = rank.astype(np.int32)
    del rank
    numbers = gather(share.peers, len(distinct))
    first, total = sum(numbers[: share.peers.rank]), sum(numbers)
    size = np.bincount(place, minlength=len(distinct)).astype(np.float64)
    large, item = size >= least, distinct // n_windows
    item_size = np.bincount(items, minlength=n_items).astype(np.float64)
    excess = _excess(size, item_size[item], distinct % n_windows, calendar)
    log_share = np.full(len(distinct), -np.inf)
    log_share[large] = log(excess[large] / max(float(share.total(mode, item[large], excess[large])), 1.0))
    facts = {
        "key": distinct + first_item * n_windows,
        "size": size,
        "log_share": log_share,
        "loudness": loudness_at(place, reviews.loud, len(distinct)),
    }
    counts = np.bincount(item, minlength=n_items)
    of_items = {"first": first + np.cumsum(counts) - counts, "count": counts, "size": item_size}
    entries: dict[str, Any] = {"cell": reviews.cells, "who": reviews.who, "loud": reviews.loud}
    return _Places(
        OwnTable(first, len(distinct), total, facts),
        OwnTable(first, len(distinct), total, {}, entries, *group_codes(place, len(distinct))),
        OwnTable(first_item, n_items, share.shape[mode], of_items),
        place,
        large,
    )


def _people(share: CellShare, who: Codes, windows: Codes, n_windows: int) -> OwnTable:
    """Rows ``people`` of the actors of this process, from their reviews. share : that of actors"""
    n = share.size(share.mode)
    busy, count = np.unique(who.astype(np.int64) * n_windows + windows, return_counts=True)
    reviews = np.bincount(who, minlength=n).astype(np.float64)
    within = reviews >= CROWD
    log_share = np.full(n, -np.inf)
    log_share[within] = log(reviews[within] / max(share.count(int(reviews[within].sum())), 1.0))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(busy // n_windows, minlength=n))]).astype(np.int64)
    entries = {"window": (busy % n_windows).astype(np.int32), "count": count.astype(np.int32)}
    return OwnTable(share.own(share.mode)[0], n, share.shape[share.mode], {"log_share": log_share}, entries, offsets)


def _excess(size: Floats, of_item: Floats, window: Numbers, calendar: Floats) -> Floats:
    """Reviews of each place beyond those that its item's other windows let expect; some part of them at least.

    of_item : reviews of the item of each place
    """
    share = (calendar / max(float(calendar.sum()), 1.0))[window]
    usual = (of_item - size + 1.0) * share / np.maximum(1.0 - share, LEAST_EXCESS)
    return np.asarray(np.maximum(size - usual, LEAST_EXCESS * size))
