"""What tastes explain of who meets whom: topics of actors and items, and how far two topics bring people together.

Honest people of one taste meet again and again, and so do the members of a ring. What tells them apart is that honest
people disagree about what they share: how far two topics bring people together is counted from meetings of people who
did *not* rate alike. A ring, however large, hardly has such meetings, so its topic explains none of its lockstep.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.elementary import log
from ringleader.kernels.layout import read_only
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tiles import product
from ringleader.kernels.topic_layout import TopicRows
from ringleader.runtime.executor import Threads
from ringleader.runtime.peers import gather
from ringleader.shares.cells import CellShare, Lookup, as_share
from ringleader.shares.runs import sums_by_code
from ringleader.signals.lockstep.meetings import cuts_on, in_order, ranks
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

SWEEPS = 12
"""Passes of EM over all reviews; forty are hardly better."""

ACTOR_PRIOR = 0.5
"""Reviews' worth of the market's mixture of topics that each actor begins with."""

ITEM_PRIOR = 1.0
"""What each item begins with in every topic, as a share of what it would have if topics were alike."""

MEETINGS_PRIOR = 1000.0
"""Meetings that two topics are believed to have as chance has them, before any is counted."""

NEAR = 100.0
"""Most that an item is near an anchor, against chance."""

SHARED = 400_000
"""Cells from which threads share the work; of fewer they would wait for the interpreter's lock."""

FEW_THREADS = 2
"""Threads up to which one goes through the entries once, for actors and for items; more go through them twice."""

ROWS = 65_536
"""Cells that a thread takes at a time."""


class Topics(NamedTuple):
    """A topic model of actors x items, of those that this process owns.

    shares : (n_actors, K), the topics of each actor, summing to one
    counts : (n_actors, K), reviews of each actor by topic, without the prior
    items  : (n_items, K), the chance of each item within each topic
    mixture : (K,), share of each topic in the reviews of everyone
    """

    shares: Floats
    counts: Floats
    items: Floats
    mixture: Floats


class Tastes(NamedTuple):
    """What tastes explain, of the actors that this process owns and the cells it holds.

    shares : (n_actors, K), see ``Topics``
    boost, attack : (n_actors, K), ``shares`` times how far topics bring people together: with ``shares[i] @ boost[j]``
        chance is multiplied for a pair that meets on that side
    pull : (n_cells,), log of how far the taste of its author draws it to its item, without this review; not below 0
    """

    shares: Floats
    boost: Floats
    attack: Floats
    pull: Floats


def find_tastes(
    cells: SparseTensor | CellShare, actor: int, boost: Bools, attack: Bools, settings: LockstepSettings
) -> Tastes | None:
    """Tastes of all actors; None where nobody disagrees, and so nothing can be said of them.

    cells : all, or those that this process holds. boost, attack : (n_cells,), the two sides.
    """
    home = as_share(cells)
    high = home.count(int(boost.sum()))
    if not settings.topics or high in (0, home.n_cells):
        return None
    item = assign_roles(home.tensor, actor, settings.items).items[0]
    topics = find_topics(home, actor, item, settings.topics)
    met = ((boost, boost), (boost, ~boost), (attack, ~attack))
    alike, *across = attractions(home, actor, topics.shares, met, settings)
    trust = np.clip((np.diag(across[0]) - 1.0) / np.maximum(np.diag(alike) - 1.0, 0.1), 0.0, 1.0)
    drawn = [product(topics.shares, matrix) for matrix in across]
    return Tastes(topics.shares, drawn[0], drawn[1], _pull(home, actor, item, topics, trust))


def find_topics(cells: SparseTensor | CellShare, actor: int, item: int, count: int) -> Topics:
    """``count`` topics of the cells, by EM with a prior on both sides."""
    home = as_share(cells)
    actors, items = home.by(actor), home.by(item)
    what, who = actors.tensor.coordinates[:, item], items.tensor.coordinates[:, actor]
    met = home.lookup(item, what), home.lookup(actor, who)
    what, who = met[0].places(what), met[1].places(who)
    popularity = _popularity(items, item)
    graphs = (
        _graph(actors.own_codes(actor), what, (home.size(actor), met[0].count)),
        _graph(items.own_codes(item), who, (home.size(item), met[1].count)),
    )
    chances = _anchors(home, (actor, item), met, graphs, popularity, count)
    shares = np.full((home.size(actor), count), 1.0 / count)
    of_actors = _entries(actors.own_codes(actor), what, home.size(actor))
    at_once = home.alone and _threads(home.n_cells).count <= FEW_THREADS
    of_items = None if at_once else _entries(items.own_codes(item), who, home.size(item))
    counts, by_item, mixture = np.zeros_like(shares), np.zeros_like(chances), np.zeros(count)
    every_actor, every_item = np.arange(home.size(actor)), np.arange(home.size(item))
    for _ in range(SWEEPS):
        if of_items is None:
            get_backend().topic_counts_of_both(*of_actors, shares, chances, counts, by_item)
        else:
            _divide(*of_actors, shares, met[0].rows(chances), counts)
            _divide(*of_items, chances, met[1].rows(shares), by_item)
        mixture = home.total(actor, every_actor, counts)
        mixture = mixture / max(float(mixture.sum()), 1e-300)
        np.add(counts, ACTOR_PRIOR * mixture, out=shares)
        shares /= counts.sum(axis=1, keepdims=True) + ACTOR_PRIOR
        by_item += (ITEM_PRIOR * home.n_cells / count) * popularity[:, None]
        by_item /= home.total(item, every_item, by_item)
        chances, by_item = by_item, chances  # in place: of a million items each of them takes 192 MB
    return Topics(shares, counts, chances, mixture)


def _threads(cells: int) -> Threads:
    """Those that share work on so many cells."""
    return Threads() if cells >= SHARED else Threads(1)


def _popularity(items: CellShare, item: int) -> Floats:
    """Share of each item that this process owns in all cells."""
    return np.asarray(np.bincount(items.own_codes(item), minlength=items.size(item)) / max(items.n_cells, 1))


def _graph(row: Codes, column: Codes, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)


def _entries(row: Codes, column: Codes, size: int) -> tuple[Numbers, Codes]:
    """Offsets of the rows, and the columns of their entries in ascending order."""
    order = in_order(column, int(column.max(initial=0)) + 1)
    order = order[in_order(row[order], size)]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int64)
    return offsets, np.ascontiguousarray(column[order])


def _divide(offsets: Numbers, columns: Codes, own: Floats, other: Floats, counts: Floats) -> None:
    """Fill ``counts`` (rows, K): entries of each row, divided among topics."""
    pieces = np.linspace(0, offsets[-1], 17)
    edges = np.unique(np.concatenate([[0], np.searchsorted(offsets, pieces[1:-1]), [len(own)]]))

    def fill(span: tuple[int, int]) -> None:
        get_backend().topic_counts(offsets, columns, own, other, counts, span)

    _threads(len(columns)).map(fill, [(int(a), int(b)) for a, b in itertools.pairwise(edges)])


def _anchors(
    home: CellShare,
    modes: tuple[int, int],
    met: tuple[Lookup, Lookup],
    graphs: tuple[sparse.csr_array, sparse.csr_array],
    popularity: Floats,
    count: int,
) -> Floats:
    """Where topics start, (n_items, K): each at an item with many reviewers whom no earlier topic is near.

    Nothing here depends on how accounts are named or numbered, unless two items have the very same weight.

    modes : of actors and items. met : the items that the actors owned here meet, and the actors of the items; graphs
        are over these, actors x items and items x actors.
    """
    (actor, item), (rows, columns) = modes, graphs
    first, item_first = home.own(actor)[0], home.own(item)[0]
    activity = np.maximum(np.asarray(rows.sum(axis=1)).reshape(-1), 1.0)
    weight, left = 1.0 / np.sqrt(activity), np.ones(len(activity))
    weight_met = met[1].rows(weight)
    every = np.arange(len(popularity))
    items = np.empty((len(popularity), count))
    for k in range(count):
        anchor = _first_largest(home, item, np.round(columns @ met[1].rows(weight * left), 9))
        inside = 0 <= anchor - item_first < len(popularity)
        own = slice(*columns.indptr[anchor - item_first : anchor - item_first + 2]) if inside else slice(0)
        known = np.concatenate(gather(home.peers, met[1].named(columns.indices[own])))
        if home.alone:  # who they are is all that counts, and they are few
            near = _sums_of_some(rows, known, weight)
        else:
            near = columns @ np.where(np.isin(met[1].codes, known), weight_met, 0.0)
        near = near / max(float(home.total(item, every, near)), 1e-300)
        items[:, k] = 0.5 * near + 0.5 * popularity
        drawn = (rows @ met[0].rows(np.minimum(near / np.maximum(popularity, 1e-300), NEAR))) / activity
        left = left / (1.0 + 0.5 * drawn)
        left[known[(known >= first) & (known < first + len(left))] - first] = 0.0
    items /= home.total(item, every, items)  # in place: another table would take as much memory again
    return items


def _sums_of_some(rows: sparse.csr_array, some: Numbers | Codes, weight: Floats) -> Floats:
    """The sum of some rows, ascending, times their weights, (m,). Same as: ``rows.T @ weight``, 0 of the others."""
    length = rows.indptr[some + 1] - rows.indptr[some]
    inside = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    where = np.repeat(rows.indptr[some], length) + inside
    values = rows.data[where] * np.repeat(weight[some], length)
    return sums_by_code(rows.indices[where], values, rows.shape[1])


def _first_largest(home: CellShare, mode: int, values: Floats) -> int:
    """The code of the entity with the largest value, the first of several."""
    place = int(np.argmax(values)) if len(values) else 0
    mine = (float(values[place]), -place - home.own(mode)[0]) if len(values) else (-np.inf, 0)
    return -max(gather(home.peers, mine))[1]


class Gatherings(NamedTuple):
    """The cells of the items of one mode, by item and window, and the topics of their authors.

    places : item, and window, as one number: (G,), ascending
    group  : (n_cells,), which of them each cell is at
    author : (n_cells,), the row of its author's topics in ``topics``
    """

    share: CellShare
    places: Numbers
    n_windows: int
    group: Numbers
    author: Codes
    topics: Floats


def attractions(
    cells: SparseTensor | CellShare,
    actor: int,
    shares: Floats,
    pairs: Sequence[tuple[Bools, Bools]],
    settings: LockstepSettings,
) -> list[Floats]:
    """How much oftener than by chance those of topic a and b meet, (K, K), symmetric: cells of one kind with another.

    pairs : of kinds of cells, (n_cells,) each; the same, or apart. Chance is that of their window, whatever the topics.
    """
    home, size = as_share(cells), shares.shape[1]
    threads = _threads(home.n_cells) if home.alone else Threads(1)  # processes talk to each other in one order
    items = assign_roles(home.tensor, actor, settings.items).items
    gathered = threads.map(lambda item: _gather_on(home.by(item), actor, shares, settings), items)
    pieces = [(there, pair) for pair in pairs for there in gathered]
    sums = threads.map(lambda piece: _met_on(piece[0], home, actor, shares, piece[1], settings), pieces)
    made = []
    for at in range(0, len(sums), len(items)):
        met, expected = np.zeros((size, size)), np.zeros((size, size))
        for own, by_chance in sums[at : at + len(items)]:
            met += own + own.T
            expected += by_chance + by_chance.T
        made.append(np.asarray((met + MEETINGS_PRIOR) / (expected + MEETINGS_PRIOR)))
    return made


def _gather_on(share: CellShare, actor: int, shares: Floats, settings: LockstepSettings) -> Gatherings:
    cut = next(cuts_on(share.tensor, actor, share.mode, settings.replace(phases=1)))
    places, group = ranks(share.own_codes(share.mode).astype(np.int64) * cut.n_windows + cut.windows)
    who = share.tensor.coordinates[:, actor]
    lookup = share.lookup(actor, who)
    return Gatherings(share, places, cut.n_windows, group, lookup.places(who), lookup.rows(shares))


def _met_on(
    there: Gatherings,
    home: CellShare,
    actor: int,
    shares: Floats,
    kinds: tuple[Bools, Bools],
    settings: LockstepSettings,
) -> tuple[Floats, Floats]:
    """How often topics a and b met on the items of one mode, and how often by chance, (K, K) each."""
    share, group, same = there.share, there.group, kinds[0] is kinds[1]
    chosen = [home.move(cells, share) for cells in kinds[same:]]
    seats = [np.bincount(group[cells], minlength=len(there.places)) for cells in chosen]
    counts = (seats[0] >= 1 + same) & (seats[-1] >= 1) & (np.maximum(seats[0], seats[-1]) <= settings.max_group)
    numbers = np.cumsum(counts) - 1
    item, window = np.divmod(there.places[counts], there.n_windows)
    sums: list[Floats] = []
    for cells in chosen:
        inside = np.flatnonzero(cells & counts[group])
        kernels = get_backend()
        sums.append(kernels.sums_of_rows(numbers[group[inside]], there.author[inside], there.topics, len(window)))
    left, right = sums[0], sums[-1]
    own = share.products(share.mode, item, left, right)
    pairs = left.sum(axis=1) * right.sum(axis=1)
    if same:  # nobody meets themselves
        cells = np.flatnonzero(chosen[0] & counts[group])
        alone = share.added(actor, share.tensor.coordinates[cells, actor], np.ones(len(cells)))
        own = own - share.products(actor, np.arange(len(shares)), shares * alone[:, None], shares)
        pairs = pairs - left.sum(axis=1)
    in_window = [share.sums(window, one, there.n_windows) for one in sums]
    met_there = share.sums(window, pairs, there.n_windows)
    chance = met_there / np.maximum(in_window[0].sum(axis=1) * in_window[-1].sum(axis=1), 1e-300)
    return own, product((in_window[0] * chance[:, None]).T, in_window[-1])


def _pull(home: CellShare, actor: int, item: int, topics: Topics, trust: Floats) -> Floats:
    """``Tastes.pull``; a topic counts as far as it is trusted to be a taste, (K,)."""
    actors = home.by(actor)
    who, what = actors.own_codes(actor), actors.tensor.coordinates[:, item]
    lookup = home.lookup(item, what)
    chances, popularity = lookup.rows(topics.items), lookup.rows(_popularity(home.by(item), item))
    what = lookup.places(what)
    nearer = chances / np.maximum(popularity, 1e-300)[:, None]
    nearer -= 1.0
    nearer *= trust
    rows = TopicRows(topics.shares, topics.counts, chances, nearer, ACTOR_PRIOR * topics.mixture)
    drawn, author, met = np.empty(len(who)), read_only(who), read_only(what)

    def fill(begin: int) -> None:
        get_backend().drawn_to_items(author, met, rows, drawn, (begin, min(begin + ROWS, len(who))))

    _threads(len(who)).map(fill, range(0, len(who), ROWS))
    return actors.move(log(np.maximum(1.0 + drawn, 1.0)), home)
