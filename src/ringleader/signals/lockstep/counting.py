"""Counting meetings: groups are made where the items are, pairs are counted where the actors are.

The owner of an actor gets the groups that it is in, with all their members; a group has at most ``max_group``. Scores
of memberships go back to the items. How far third parties support a membership is found there, where its group is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, PairRule, met_of, nothing_before
from ringleader.kernels.protocol import Backend, get_backend
from ringleader.runtime.executor import Threads
from ringleader.shares.cells import CellShare, owners
from ringleader.signals.lockstep.carried import MOST_MET, CountedBefore
from ringleader.signals.lockstep.meetings import Meetings, chance_to_meet, cuts_on, expose, groups_of_actors, meet
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles

PIECES = 64
"""Pieces the work is dealt into. The answer does not depend on who takes which, nor on how many there are."""

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


def count_side(
    home: CellShare,
    actor: int,
    chosen: Bools,
    settings: LockstepSettings,
    threads: int,
    tastes: Floats,
    drawn: Floats,
    backend: str = "numba",
    before: NamedCut | None = None,
) -> CountedSide:
    """The largest LLR and the largest score over all cuts of the cells ``chosen``.

    tastes, drawn : of the actors owned here, (n_own, K), see ``Exposure``.
    backend : which one counts the pairs.
    before : what was counted of this side before, and where what is counted now is kept; None to keep nothing.
    """
    n = home.shape[actor]
    graph = sparse.csr_array((home.size(actor), n))
    scores, direct = np.zeros(home.tensor.n_cells), np.zeros(home.tensor.n_cells)
    tally = np.zeros(3, np.int64)
    items = assign_roles(home.tensor, actor, settings.items).items
    for item in items if home.count(int(chosen.sum())) else ():
        there = home.by(item)
        cells = np.flatnonzero(home.move(chosen, there))
        who = there.tensor.coordinates[cells, actor]
        loud, louder = np.zeros(there.tensor.n_cells), np.zeros(there.tensor.n_cells)
        for phase, places in enumerate(cuts_on(there.tensor, actor, item, settings)):
            here = places._replace(items=places.items[cells], windows=places.windows[cells])
            meetings = meet(there, who, n, here, settings)
            cut = None if before is None else (before[0], (*before[1], item, phase, settings.min_shared))
            own, support, pairs = _count(
                there, actor, meetings, settings, threads, tastes, drawn, get_backend(backend), cut
            )
            where = cells[meetings.cells]
            loud[where] = np.maximum(loud[where], own[meetings.seats])
            louder[where] = np.maximum(louder[where], (own + settings.third_parties * support)[meetings.seats])
            graph = pairs if not graph.nnz else sparse.csr_array(graph.maximum(pairs))
            tally += (len(meetings.windows), meetings.skipped_groups, meetings.skipped_memberships)
        scores, direct = np.maximum(scores, there.move(louder, home)), np.maximum(direct, there.move(loud, home))
    graph.sort_indices()
    return CountedSide(graph, scores, direct, tally)


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
