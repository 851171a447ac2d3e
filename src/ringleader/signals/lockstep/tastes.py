"""What tastes explain of who meets whom: topics of actors and items, and how far two topics bring people together.

Honest people of one taste meet again and again, and so do the members of a ring. What tells them apart is that honest
people disagree about what they share: how far two topics bring people together is counted from meetings of people who
did *not* rate alike. A ring, however large, hardly has such meetings, so its topic explains none of its lockstep.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tiles import product
from ringleader.runtime.executor import Threads
from ringleader.signals.lockstep.meetings import cuts
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

ROWS = 4_096
"""Cells at a time where an array of cells x topics is needed: so many stay near the processor."""


class Topics(NamedTuple):
    """A topic model of actors x items.

    shares : (n_actors, K), the topics of each actor, summing to one
    counts : (n_actors, K), reviews of each actor by topic, without the prior
    items  : (n_items, K), the chance of each item within each topic
    """

    shares: Floats
    counts: Floats
    items: Floats


class Tastes(NamedTuple):
    """What tastes explain.

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
    tensor: SparseTensor, actor: int, boost: Bools, attack: Bools, settings: LockstepSettings
) -> Tastes | None:
    """Tastes of all actors; None where nobody disagrees, and so nothing can be said of them.

    boost, attack : (n_cells,), the two sides.
    """
    if not settings.topics or not boost.any() or boost.all():
        return None
    item = assign_roles(tensor, actor, settings.items).items[0]
    who, what = (np.ascontiguousarray(tensor.coordinates[:, k]) for k in (actor, item))
    topics = find_topics(who, what, tensor.shape[actor], tensor.shape[item], settings.topics)
    met = ((boost, boost), (boost, ~boost), (attack, ~attack))
    alike, *across = Threads().map(lambda pair: attraction(tensor, actor, topics.shares, *pair, settings), met)
    trust = np.clip((np.diag(across[0]) - 1.0) / np.maximum(np.diag(alike) - 1.0, 0.1), 0.0, 1.0)
    drawn = [product(topics.shares, matrix) for matrix in across]
    return Tastes(topics.shares, drawn[0], drawn[1], _pull(who, what, topics, trust))


def find_topics(who: Codes, what: Codes, n_actors: int, n_items: int, count: int) -> Topics:
    """``count`` topics of the reviews by ``who`` of ``what``, by EM with a prior on both sides."""
    rows = sparse.csr_array((np.ones(len(who)), (who, what)), shape=(n_actors, n_items))
    columns = sparse.csr_array(rows.T)
    popularity = np.bincount(what, minlength=n_items) / max(len(who), 1)
    items = _anchors(rows, columns, popularity, count)
    shares = np.full((n_actors, count), 1.0 / count)
    of_actors, of_items = _entries(who, what, n_actors), _entries(what, who, n_items)
    counts = np.zeros_like(shares)
    for _ in range(SWEEPS):
        counts, by_item = _divided(*of_actors, shares, items), _divided(*of_items, items, shares)
        mixture = counts.sum(axis=0) / max(counts.sum(), 1e-300)
        np.add(counts, ACTOR_PRIOR * mixture, out=shares)
        shares /= counts.sum(axis=1, keepdims=True) + ACTOR_PRIOR
        items = by_item + (ITEM_PRIOR * len(who) / count) * popularity[:, None]
        items = items / items.sum(axis=0)
    return Topics(shares, counts, items)


def _entries(row: Codes, column: Codes, size: int) -> tuple[Numbers, Codes]:
    """Offsets of the rows, and the columns of their entries in ascending order."""
    order = get_backend().stable_order(column, int(column.max(initial=0)) + 1)
    order = order[get_backend().stable_order(row[order], size)]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int64)
    return offsets, np.ascontiguousarray(column[order])


def _divided(offsets: Numbers, columns: Codes, own: Floats, other: Floats) -> Floats:
    counts = np.zeros_like(own)
    pieces = np.linspace(0, offsets[-1], 17)
    edges = np.unique(np.concatenate([[0], np.searchsorted(offsets, pieces[1:-1]), [len(own)]]))

    def fill(span: tuple[int, int]) -> None:
        get_backend().topic_counts(offsets, columns, own, other, counts, span)

    Threads().map(fill, [(int(a), int(b)) for a, b in itertools.pairwise(edges)])
    return counts


def _anchors(rows: sparse.csr_array, columns: sparse.csr_array, popularity: Floats, count: int) -> Floats:
    """Where topics start, (n_items, K): each at an item with many reviewers whom no earlier topic is near.

    Nothing here depends on how accounts are named or numbered, unless two items have the very same weight.
    """
    activity = np.maximum(np.asarray(rows.sum(axis=1)).reshape(-1), 1.0)
    weight, left = 1.0 / np.sqrt(activity), np.ones(len(activity))
    items = np.empty((len(popularity), count))
    for k in range(count):
        anchor = int(np.argmax(np.round(columns @ (weight * left), 9)))
        reviewers = np.zeros(len(activity))
        reviewers[columns.indices[columns.indptr[anchor] : columns.indptr[anchor + 1]]] = 1.0
        near = columns @ (reviewers * weight)
        near = near / max(near.sum(), 1e-300)
        items[:, k] = 0.5 * near + 0.5 * popularity
        drawn = (rows @ np.minimum(near / np.maximum(popularity, 1e-300), NEAR)) / activity
        left = np.where(reviewers > 0, 0.0, left / (1.0 + 0.5 * drawn))
    return np.asarray(items / items.sum(axis=0))


def attraction(
    tensor: SparseTensor, actor: int, shares: Floats, first: Bools, second: Bools, settings: LockstepSettings
) -> Floats:
    """How much oftener than by chance those of topic a and b meet, (K, K), symmetric: cells ``first`` with ``second``.

    first, second : (n_cells,); the same, or apart. Chance is that of their window, whatever the topics.
    """
    who, size = tensor.coordinates[:, actor], shares.shape[1]
    met, expected = np.zeros((size, size)), np.zeros((size, size))
    same = first is second
    for places in cuts(tensor, actor, settings.replace(phases=1)):
        group = places.items.astype(np.int64) * places.n_windows + places.windows
        seats = [np.bincount(group[cells], minlength=int(group.max()) + 1) for cells in (first, second)[same:]]
        seats = seats * 2 if same else seats
        counts = (seats[0] >= 1 + same) & (seats[1] >= 1) & (np.maximum(*seats) <= settings.max_group)
        place = np.cumsum(counts) - 1
        window = np.flatnonzero(counts) % places.n_windows
        sums: list[Floats] = []
        for cells in (first,) if same else (first, second):
            inside = np.flatnonzero(cells & counts[group])
            table = sparse.csr_array(
                (np.ones(len(inside)), (place[group[inside]], who[inside])), (len(window), len(shares))
            )
            sums.append(table @ shares)
        sums = sums * 2 if same else sums
        own = np.einsum("gi,gj->ij", *sums)
        pairs = sums[0].sum(axis=1) * sums[1].sum(axis=1)
        if same:  # nobody meets themselves
            alone = np.bincount(who[first & counts[group]], minlength=len(shares))
            own -= np.einsum("gi,gj->ij", shares * alone[:, None], shares)
            pairs -= sums[0].sum(axis=1)
        by_window = sparse.csr_array(
            (np.ones(len(window)), (window, np.arange(len(window)))), (places.n_windows, len(window))
        )
        left, right = (by_window @ one for one in sums)
        chance = (by_window @ pairs) / np.maximum(left.sum(axis=1) * right.sum(axis=1), 1e-300)
        by_chance = np.einsum("gi,gj->ij", left * chance[:, None], right)
        met += own + own.T
        expected += by_chance + by_chance.T
    return np.asarray((met + MEETINGS_PRIOR) / (expected + MEETINGS_PRIOR))


def _pull(who: Codes, what: Codes, topics: Topics, trust: Floats) -> Floats:
    """``Tastes.pull``; a topic counts as far as it is trusted to be a taste, (K,)."""
    mixture = topics.counts.sum(axis=0) / max(topics.counts.sum(), 1e-300)
    popularity = np.bincount(what, minlength=len(topics.items)) / max(len(what), 1)
    nearer = trust * (topics.items / np.maximum(popularity, 1e-300)[:, None] - 1.0)
    pull = np.empty(len(who))

    def fill(begin: int) -> None:
        rows = slice(begin, begin + ROWS)
        author, item = who[rows], what[rows]
        own = topics.shares[author] * topics.items[item]
        own /= np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
        left = np.maximum(topics.counts[author] - own, 0.0) + ACTOR_PRIOR * mixture
        drawn = np.einsum("ck,ck->c", left, nearer[item]) / left.sum(axis=1)
        pull[rows] = np.log(np.maximum(1.0 + drawn, 1.0))

    Threads().map(fill, range(0, len(who), ROWS))
    return pull
