"""Counting meetings: groups are made where the items are, pairs are counted where the actors are.

The owner of an actor gets the groups that it is in, with all their members; a group has at most ``max_group``. Scores
of memberships go back to the items. How far third parties support a membership is found there, where its group is.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, PairRule, met_of, nothing_before
from ringleader.kernels.protocol import Backend, get_backend
from ringleader.runtime.executor import Threads
from ringleader.shares.cells import CellShare, owners
from ringleader.signals.lockstep.carried import MOST_MET, CountedBefore
from ringleader.signals.lockstep.meetings import (
    Meetings,
    Places,
    chance_to_meet,
    cuts_on,
    expose,
    groups_of_actors,
    meet,
)
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles

PIECES = 64
"""Pieces the work is dealt into. The answer does not depend on who takes which, nor on how many there are."""

SIDES_AT_ONCE = 4_000_000
"""Cells up to which sides are counted side by side; of more one after the other, so that one at a time has memory."""

T = TypeVar("T")
NamedCut = tuple[CountedBefore, tuple[Hashable, ...]]
"""What was counted before, and how the cut that is counted is called there."""


class Tables(NamedTuple):
    """Groups as they go to the owners of their members."""

    offsets: Numbers  # (G + 1,)
    members: Codes  # (M,)
    windows: Codes  # (G,)
    log_rate: Floats  # (G,)


class CountedSide(NamedTuple):
    """The meetings of one side.

    graph : CSR (actors owned here, all actors), sorted: LLR of every pair that met more often than by chance
    scores, direct : of the cells held here, see ``Side``
    tally : groups counted, groups skipped, members of the skipped, on the items owned here, (3,)
    """

    graph: sparse.csr_array
    scores: Floats
    direct: Floats
    tally: Numbers


class WantedSide(NamedTuple):
    """A side that is to be counted.

    chosen : which of the cells held here are on it
    drawn  : of the actors owned here, (n_own, K), see ``Exposure``
    name   : how its cuts are called in what was counted before
    """

    chosen: Bools
    drawn: Floats
    settings: LockstepSettings
    name: Hashable


class _OnItems:
    """What was counted of one side on the items of one mode: the largest of all cuts, in whatever order they come."""

    def __init__(self, there: CellShare, actor: int, chosen: Bools) -> None:
        self.there, self.cells = there, np.flatnonzero(chosen)
        self.who = there.tensor.coordinates[self.cells, actor]
        self.loud, self.louder = np.zeros(there.tensor.n_cells), np.zeros(there.tensor.n_cells)
        self.graph: sparse.csr_array | None = None
        self.tally = np.zeros(3, np.int64)
        self._lock = threading.Lock()
        self._brought: list[tuple[Meetings, Floats, Floats, sparse.csr_array]] = []

    def add(self, meetings: Meetings, own: Floats, joined: Floats, pairs: sparse.csr_array) -> None:
        """own : scores of the memberships. joined : with third parties.

        A thread that is adding takes what others bring meanwhile, so that none of them waits for it.
        """
        self._brought.append((meetings, own, joined, pairs))
        while self._brought:  # asked again once others can add: they may have brought something at the last moment
            if not self._lock.acquire(blocking=False):
                return
            try:
                while self._brought:
                    self._take(*self._brought.pop())
            finally:
                self._lock.release()

    def _take(self, meetings: Meetings, own: Floats, joined: Floats, pairs: sparse.csr_array) -> None:
        where = self.cells[meetings.cells]
        for most, scores in ((self.loud, own), (self.louder, joined)):
            get_backend().keep_larger(most, where, scores, meetings.seats)
        self.graph = _larger(self.graph, pairs)
        self.tally += (len(meetings.windows), meetings.skipped_groups, meetings.skipped_memberships)


def count_sides(
    home: CellShare,
    actor: int,
    wanted: Sequence[WantedSide],
    threads: int,
    tastes: Floats,
    backend: str = "numba",
    before: CountedBefore | None = None,
) -> list[CountedSide]:
    """Of each side the largest LLR and the largest score over all cuts.

    Threads count the cuts of all sides side by side. Several processes talk to each other in one order, and a GPU has
    the memory for one cut at a time.

    tastes : of the actors owned here, (n_own, K), see ``Exposure``.
    backend : which one counts the pairs.
    before : what was counted before, and where what is counted now is kept; None to keep nothing.
    """
    if len(wanted) > 1 and not (home.alone and home.n_cells <= SIDES_AT_ONCE):
        return [count_sides(home, actor, [side], threads, tastes, backend, before)[0] for side in wanted]
    items = assign_roles(home.tensor, actor, wanted[0].settings.items).items
    cuts: dict[int, list[Places]] = {}
    for item in items:
        there = home.by(item)
        cuts[item] = list(cuts_on(there.tensor, actor, item, wanted[0].settings))
    asked = [side for side in wanted if home.count(int(side.chosen.sum()))]
    counted = {
        (side.name, item): _OnItems(home.by(item), actor, home.move(side.chosen, home.by(item)))
        for side in asked
        for item in items
    }
    kernels = get_backend(backend)

    def count(piece: tuple[WantedSide, int, int]) -> None:
        side, item, phase = piece
        on_items, places, settings = counted[side.name, item], cuts[item][phase], side.settings
        here = places._replace(items=places.items[on_items.cells], windows=places.windows[on_items.cells])
        meetings = meet(on_items.there, on_items.who, home.shape[actor], here, settings)
        cut = None if before is None else (before, (side.name, item, phase, settings.min_shared))
        own, support, pairs = _count(
            on_items.there, actor, meetings, settings, threads, tastes, side.drawn, kernels, cut
        )
        on_items.add(meetings, own, own + settings.third_parties * support, pairs)

    pieces = [(side, item, phase) for side in asked for item in items for phase in range(len(cuts[item]))]
    Threads(threads if home.alone and backend == "numba" else 1).map(count, pieces)
    return [_joined_side(home, actor, [counted[s.name, i] for i in items if (s.name, i) in counted]) for s in wanted]


def _joined_side(home: CellShare, actor: int, parts: Sequence[_OnItems]) -> CountedSide:
    """A side from what was counted on each mode of items; none where nothing was chosen."""
    graph, tally = sparse.csr_array((home.size(actor), home.shape[actor])), np.zeros(3, np.int64)
    scores, direct = np.zeros(home.tensor.n_cells), np.zeros(home.tensor.n_cells)
    for part in parts:
        scores = np.maximum(scores, part.there.move(part.louder, home))
        direct = np.maximum(direct, part.there.move(part.loud, home))
        graph = graph if part.graph is None else _larger(graph, part.graph)
        tally += part.tally
    graph.sort_indices()
    return CountedSide(graph, scores, direct, tally)


def _larger(graph: sparse.csr_array | None, other: sparse.csr_array) -> sparse.csr_array:
    """Of each pair the larger LLR; the same in whatever order cuts come."""
    return other if graph is None or not graph.nnz else sparse.csr_array(graph.maximum(other))


def _count(
    share: CellShare,
    actor: int,
    meetings: Meetings,
    settings: LockstepSettings,
    threads: int,
    tastes: Floats,
    drawn: Floats,
    backend: Backend,
    before: NamedCut | None,
) -> tuple[Floats, Floats, sparse.csr_array]:
    """Score and support of every membership on the items owned here, and the LLR of the pairs of the actors owned."""
    sent = sent_tables(share, actor, meetings)
    tables = joined_tables(sent)
    lookup = share.lookup(actor, tables.members)
    groups = groups_of_actors(tables.offsets, lookup.places(tables.members), tables.log_rate, lookup.count, lookup.own)
    n, first = lookup.count, share.own(actor)[0]
    chance = chance_to_meet(share, meetings)[1]
    whose = np.repeat(np.arange(n, dtype=np.int64), np.diff(groups.actor_offsets))
    out = expose(lookup.named(whose) - first, tables.windows[groups.actor_groups], chance, share.size(actor))
    offsets, slots, values = lookup.lists(*out)
    exposure = Exposure(offsets, slots, values, meetings.n_windows, lookup.rows(tastes), lookup.rows(drawn))
    rule = PairRule(settings.min_shared, float(settings.floor), float(settings.doubt))
    scores, lengths = np.zeros(len(groups.actor_groups)), np.zeros(n, np.int64)
    if backend.kind == "cpu":
        parts = _count_pairs(groups, exposure, rule, scores, lengths, threads, backend, meetings.places, before)
    else:  # a GPU takes all at once
        parts = [backend.lockstep_of_actors(groups, exposure, rule, scores, lengths, (0, n))]
    columns, values, beyond_tastes = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = np.asarray(lookup.named(columns), np.int32)
    length = np.zeros(share.size(actor), np.int64)
    length[lookup.named(np.arange(n)[lookup.own]) - first] = lengths[lookup.own]
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    shape = share.size(actor), share.shape[actor]
    graph, ties = (
        _positive(part, columns, offsets, shape) for part in (values, np.minimum(beyond_tastes, settings.cap))
    )
    own = _returned(share, actor, meetings.members, sent, scores[groups.spots])
    support = np.zeros(len(own))
    if settings.third_parties > 0 and share.count(int(ties.nnz)):
        support = _support(share, actor, meetings, ties, threads)
    graph.sort_indices()
    return own, support, graph


def _count_pairs(
    groups: Groups,
    exposure: Exposure,
    rule: PairRule,
    scores: Floats,
    lengths: Numbers,
    threads: int,
    backend: Backend,
    places: Numbers,
    before: NamedCut | None,
) -> list[tuple[Codes, Floats, Floats]]:
    """``Backend.lockstep_of_actors`` of all actors, in pieces; who met the same as before is not counted again."""
    sizes = np.zeros(len(groups.actor_groups), np.int64)
    known = nothing_before() if before is None else before[0].met_before(before[1], places, groups)

    def count(span: tuple[int, int]) -> tuple[tuple[Codes, Floats, Floats], Codes | None]:
        columns = backend.often_met(groups, known, rule.min_shared, sizes, span)
        met = met_of(groups, sizes, columns, span)
        pairs = backend.lockstep_of_met(groups, met, exposure, rule, scores, lengths, span)
        return pairs, columns if before is not None and len(columns) <= MOST_MET else None

    cost = _total(np.diff(groups.offsets)[groups.actor_groups], groups.actor_offsets)
    parts, lists = zip(*_deal(count, cost, len(lengths), threads), strict=True)
    if before is not None:
        before[0].keep(before[1], places, groups, sizes, list(lists))
    return list(parts)


def sent_tables(share: CellShare, actor: int, meetings: Meetings) -> list[Tables]:
    """Sends every group to the owners of its members; returns those sent here, by who sent them."""
    every = Tables(meetings.offsets, meetings.members, meetings.windows, meetings.log_rate)
    if share.alone:
        return [every]
    owner = owners(share.bounds[actor], meetings.members)
    size = np.diff(meetings.offsets)
    group = np.repeat(np.arange(len(size)), size)
    messages = []
    for rank in range(share.peers.count):
        wanted = np.zeros(len(size), np.bool_)
        wanted[group[owner == rank]] = True
        offsets = np.concatenate([[0], np.cumsum(size[wanted])]).astype(np.int64)
        members = meetings.members[wanted[group]]
        messages.append(Tables(offsets, members, meetings.windows[wanted], meetings.log_rate[wanted]))
    return share.peers.exchange(messages)


def joined_tables(parts: list[Tables]) -> Tables:
    """All groups that came, in the order of their items."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    rest = [np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]]
    return Tables(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), rest[0], rest[1], rest[2])


def _returned(share: CellShare, actor: int, members: Codes, sent: list[Tables], scores: Floats) -> Floats:
    """The scores of all memberships of the groups here, from the owners of the actors.

    sent : what came here; scores : of the memberships in it of actors owned here, in their order.
    """
    if share.alone:
        return scores
    first, last = share.own(actor)
    number = [int(((part.members >= first) & (part.members < last)).sum()) for part in sent]
    received = share.peers.exchange(np.split(scores, np.cumsum(number)[:-1]))
    owner, supports = owners(share.bounds[actor], members), np.zeros(len(members))
    for rank, part in enumerate(received):
        supports[owner == rank] = part
    return supports


def _support(share: CellShare, actor: int, meetings: Meetings, ties: sparse.csr_array, threads: int) -> Floats:
    """How far third parties join each member to its group, (M,).

    ties : LLRs of the actors owned here with all others, capped.
    """
    lookup = share.lookup(actor, meetings.members)
    offsets, columns, values = lookup.lists(ties.indptr.astype(np.int64), ties.indices, ties.data)
    members, n = meetings.members, lookup.count
    if not share.alone:  # members and third parties, counted from 0
        everyone = np.union1d(lookup.codes, columns)
        length = np.zeros(len(everyone), np.int64)
        length[np.searchsorted(everyone, lookup.codes)] = np.diff(offsets)
        offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        members, columns = (np.searchsorted(everyone, codes).astype(np.int32) for codes in (members, columns))
        n = len(everyone)
    graph = Graph(offsets, columns, values)
    spots = np.arange(len(members))
    groups = Groups(meetings.offsets, members, np.zeros(n + 1, np.int64), members[:0], spots, meetings.log_rate)
    support = np.zeros(len(members))

    def add(span: tuple[int, int]) -> None:
        get_backend().support_of_groups(groups, graph, support, span)

    _deal(add, _total(np.diff(offsets)[members] + 1, groups.offsets), n, threads)
    return support


def _positive(values: Floats, columns: Codes, offsets: Numbers, shape: tuple[int, int]) -> sparse.csr_array:
    """The pairs whose value is not 0."""
    graph = sparse.csr_array((values, columns.copy(), offsets.copy()), shape=shape)
    graph.eliminate_zeros()
    return graph


def _total(cost: Numbers, offsets: Numbers) -> Numbers:
    """Cost of everything up to and with each row of ``offsets``."""
    total: Numbers = np.concatenate([[0], np.cumsum(cost)])[offsets[1:]]
    return total


def _deal(call: Callable[[tuple[int, int]], T], cost: Numbers, overhead: int, threads: int) -> list[T]:
    """``call`` on ranges of about equal cost that together are everything.

    cost : running total. overhead : what every call has to clear first, so that small work is not cut up.
    """
    count = len(cost)
    pieces = int(np.clip(cost[-1] // (8 * max(overhead, 1)), 1, PIECES)) if count else 1
    edges = np.searchsorted(cost, cost[-1] * np.arange(1, pieces) / pieces) if pieces > 1 else np.zeros(0, np.int64)
    spans = [(int(a), int(b)) for a, b in itertools.pairwise(np.unique(np.concatenate([[0], edges, [count]])))]
    if not spans:
        spans = [(0, count)]
    return Threads(threads).map(call, spans)
