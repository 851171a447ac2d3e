"""The pair counting of every backend against the reference, on random groups."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.kernels.pair_layout import Exposure, Graph, Groups, MetBefore, PairRule, met_of, nothing_before
from ringleader.kernels.protocol import Backend, backend_names, get_backend, unavailable
from ringleader.kernels.reference.pairs import memberships
from ringleader.shares.cells import CellShare
from ringleader.signals.lockstep import CountedBefore, LockstepSettings
from ringleader.signals.lockstep.meetings import Places, chance_to_meet, groups_of_actors, meet
from ringleader.signals.lockstep.meetings import expose as expose_actors
from ringleader.tensor.sparse import SparseTensor

ORACLE = get_backend("reference")
RUNNABLE = [name for name in backend_names() if unavailable(name) is None]
every_backend = pytest.mark.parametrize("backend", [get_backend(name) for name in RUNNABLE], ids=RUNNABLE)


@st.composite
def reviews(draw: st.DrawFn) -> tuple[np.ndarray, int, Places]:
    """Who was where and when: (who, number of actors, places)."""
    n, items, windows = draw(st.integers(1, 12)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, items - 1), st.integers(0, windows - 1)),
            min_size=1,
            max_size=80,
        )
    )
    who, item, window = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    return who, n, Places(item, window, windows)


class Meetings(NamedTuple):
    """The groups of one cut, and which membership each cell is."""

    groups: Groups
    windows: np.ndarray
    chance: np.ndarray
    cells: np.ndarray
    spots: np.ndarray
    skipped_groups: int
    skipped_memberships: int


def cut(market: tuple[np.ndarray, int, Places], popularity: float = 1.0, max_group: int = 200) -> Meetings:
    who, n, places = market
    share = CellShare(SparseTensor.from_arrays(np.stack([who, places.items], axis=1))).by(1)
    settings = LockstepSettings(popularity=popularity, max_group=max_group)
    met = meet(share, who, n, places, settings)
    groups = groups_of_actors(met.offsets, met.members, met.log_rate, n, slice(0, n))
    chance = chance_to_meet(share, met)[1]
    spots = groups.spots[met.seats]
    return Meetings(groups, met.windows, chance, met.cells, spots, met.skipped_groups, met.skipped_memberships)


def expose(meetings: Meetings, tastes: np.ndarray | None = None, drawn: np.ndarray | None = None) -> Exposure:
    groups, n = meetings.groups, len(meetings.groups.actor_offsets) - 1
    actor = np.repeat(np.arange(n), np.diff(groups.actor_offsets))
    out = expose_actors(actor, meetings.windows[groups.actor_groups], meetings.chance, n)
    unknown = np.ones((n, 1))
    return Exposure(
        *out, len(meetings.chance), unknown if tastes is None else tastes, unknown if drawn is None else drawn
    )


def alike(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Tastes that explain nothing."""
    return np.ones((n, 1)), np.ones((n, 1))


def differing(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tastes of three topics, of which some bring people together and some keep them apart."""
    rng = np.random.default_rng(seed)
    shares, together = rng.dirichlet(np.ones(3), n), rng.uniform(0.1, 9.0, (3, 3))
    return shares, shares @ (together + together.T)


def count(
    backend: Backend, meetings: Meetings, rule: PairRule, tastes: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of the memberships, and the dense LLR matrices by chance alone and beyond tastes."""
    groups: Groups = meetings.groups
    exposure: Exposure = expose(meetings, *(tastes or ()))
    n = len(groups.actor_offsets) - 1
    scores, lengths = np.full(len(groups.members), np.nan), np.full(n, -1, np.int64)
    columns, values, beyond = backend.lockstep_of_actors(groups, exposure, rule, scores, lengths, (0, n))
    dense, dense_beyond = np.zeros((n, n)), np.zeros((n, n))
    row = np.repeat(np.arange(n), lengths)
    dense[row, columns], dense_beyond[row, columns] = values, beyond
    return scores, dense, dense_beyond


@every_backend
@settings(max_examples=150, deadline=None)
@given(
    reviews(),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(2, 3),
    st.sampled_from([1e-4, 0.3]),
    st.sampled_from([0.0, 1.5]),
    st.integers(0, 99),
)
def test_counting_agrees_with_the_oracle(
    backend: Backend,
    market: tuple[np.ndarray, int, Places],
    popularity: float,
    min_shared: int,
    floor: float,
    doubt: float,
    seed: int,
) -> None:
    meetings, tastes = cut(market, popularity), differing(market[1], seed)
    scores, *pairs = count(backend, meetings, PairRule(min_shared, floor, doubt), tastes)
    expected_scores, *expected = count(ORACLE, meetings, PairRule(min_shared, floor, doubt), tastes)
    np.testing.assert_allclose(pairs, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-9, atol=1e-9)
    for dense in pairs:
        np.testing.assert_allclose(dense, dense.T, rtol=1e-9, atol=1e-9)


@every_backend
@settings(max_examples=60, deadline=None)
@given(reviews())
def test_tastes_that_explain_nothing_change_nothing(backend: Backend, market: tuple[np.ndarray, int, Places]) -> None:
    meetings = cut(market)
    _, plain, beyond = count(backend, meetings, PairRule(2, 1e-4, 0.5), alike(market[1]))
    np.testing.assert_array_equal(plain, beyond)


@settings(max_examples=100, deadline=None)
@given(reviews(), st.integers(2, 6))
def test_groups_are_the_distinct_actors_of_each_place(market: tuple[np.ndarray, int, Places], max_group: int) -> None:
    who, n, places = market
    meetings = cut(market, max_group=max_group)
    dense = np.zeros((n, int(places.items.max()) + 1, places.n_windows))
    dense[who, places.items, places.windows] = 1.0
    size = dense.sum(axis=0)
    chosen = (size >= 2) & (size <= max_group)
    member = memberships(meetings.groups)
    np.testing.assert_array_equal(member, dense[:, chosen])
    assert meetings.skipped_groups == (size > max_group).sum()
    assert meetings.skipped_memberships == size[size > max_group].sum()
    cells = np.flatnonzero(chosen[places.items, places.windows])
    np.testing.assert_array_equal(meetings.cells, cells)
    owner = np.repeat(np.arange(n), np.diff(meetings.groups.actor_offsets))
    np.testing.assert_array_equal(owner[meetings.spots], who[cells])
    np.testing.assert_array_equal(owner[meetings.groups.spots], meetings.groups.members)


@every_backend
@settings(max_examples=60, deadline=None)
@given(reviews())
def test_shared_groups_are_the_product_of_memberships(backend: Backend, market: tuple[np.ndarray, int, Places]) -> None:
    """G G' counts meetings: with log rates 0 and mu at a floor f the LLR is c log(c / f) - (c - f)."""
    meetings = cut(market, popularity=0.0)
    groups = meetings.groups
    member = memberships(groups)
    shared = member @ member.T
    n, floor = len(shared), 0.01
    nowhere = Exposure(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), 1, *alike(n))
    scores, lengths = np.zeros(len(groups.members)), np.zeros(n, np.int64)
    columns, values, _ = backend.lockstep_of_actors(groups, nowhere, PairRule(2, floor, 0.0), scores, lengths, (0, n))
    expected = np.where(shared >= 2, shared * np.log(np.maximum(shared, 1) / floor) - (shared - floor), 0.0)
    np.fill_diagonal(expected, 0.0)
    dense = np.zeros((n, n))
    dense[np.repeat(np.arange(n), lengths), columns] = values
    np.testing.assert_allclose(dense, expected, atol=1e-9)


@every_backend
@settings(max_examples=100, deadline=None)
@given(reviews(), st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_third_parties_agree_with_the_oracle(
    backend: Backend, market: tuple[np.ndarray, int, Places], seed: int, density: float
) -> None:
    groups = cut(market).groups
    n = len(groups.actor_offsets) - 1
    rng = np.random.default_rng(seed)
    ties = np.triu(rng.uniform(0.1, 20.0, (n, n)) * (rng.random((n, n)) < density), 1)
    ties += ties.T
    row, column = np.nonzero(ties)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    graph = Graph(offsets, column.astype(np.int32), ties[row, column])
    found, expected = np.zeros(len(groups.members)), np.zeros(len(groups.members))
    span = (0, len(groups.offsets) - 1)
    backend.support_of_groups(groups, graph, found, span)
    ORACLE.support_of_groups(groups, graph, expected, span)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@every_backend
@given(st.lists(st.integers(0, 9), max_size=50))
def test_stable_order_is_a_stable_sort(backend: Backend, codes: list[int]) -> None:
    array = np.array(codes, np.int32)
    np.testing.assert_array_equal(backend.stable_order(array, 10), np.argsort(array, kind="stable"))


@every_backend
@pytest.mark.parametrize("cuts", [[0, 12], [0, 1, 2, 7, 12]])
def test_pieces_of_the_work_add_up(backend: Backend, cuts: list[int]) -> None:
    rng = np.random.default_rng(3)
    market = (
        rng.integers(0, 12, 200).astype(np.int32),
        12,
        Places(*(rng.integers(0, 3, (2, 200)).astype(np.int32)), 3),
    )
    meetings = cut(market)
    whole_scores, whole, _ = count(backend, meetings, PairRule(2, 1e-4, 0.5))
    scores, lengths = np.zeros(len(whole_scores)), np.zeros(12, np.int64)
    parts = [
        backend.lockstep_of_actors(meetings.groups, expose(meetings), PairRule(2, 1e-4, 0.5), scores, lengths, (a, b))
        for a, b in itertools.pairwise(cuts)
    ]
    dense = np.zeros((12, 12))
    dense[np.repeat(np.arange(12), lengths), np.concatenate([p[0] for p in parts])] = np.concatenate(
        [p[1] for p in parts]
    )
    np.testing.assert_array_equal(scores, whole_scores)
    np.testing.assert_array_equal(dense, whole)


@every_backend
@settings(max_examples=150, deadline=None)
@given(reviews(), st.integers(1, 80), st.integers(2, 3), st.integers(2, 6))
def test_whom_actors_met_before_is_carried_over_with_the_bits_of_counting_anew(
    backend: Backend, market: tuple[np.ndarray, int, Places], known: int, min_shared: int, max_group: int
) -> None:
    """Some of the reviews are counted first; groups grow, appear, and become too large by the others."""
    who, n, places = market
    rule, before = PairRule(min_shared, 1e-4, 0.5), CountedBefore()

    def counted(share: slice, actors: int, kept: CountedBefore | None) -> tuple[list[np.ndarray], MetBefore]:
        some = Places(places.items[share], places.windows[share], places.n_windows)
        share_of_cells = CellShare(SparseTensor.from_arrays(np.stack([who[share], some.items], axis=1))).by(1)
        met = meet(share_of_cells, who[share], actors, some, LockstepSettings(max_group=max_group))
        groups = groups_of_actors(met.offsets, met.members, met.log_rate, actors, slice(0, actors))
        listed = nothing_before() if kept is None else kept.met_before("cut", met.places, groups)
        sizes, lengths = np.zeros(len(groups.members), np.int64), np.zeros(actors, np.int64)
        nowhere = Exposure(np.zeros(actors + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), 1, *alike(actors))
        columns = backend.often_met(groups, listed, min_shared, sizes, (0, actors))
        scores = np.zeros(len(sizes))
        pairs = backend.lockstep_of_met(
            groups, met_of(groups, sizes, columns, (0, actors)), nowhere, rule, scores, lengths, (0, actors)
        )
        if kept is not None:
            kept.keep("cut", met.places, groups, sizes, [columns])
        return [sizes, columns, scores, lengths, *pairs], listed

    some = slice(0, min(known, len(who)))
    counted(some, int(who[some].max()) + 1, before)
    carried, listed = counted(slice(None), n, before)
    anew, _ = counted(slice(None), n, None)
    for found, expected in zip(carried, anew, strict=True):
        np.testing.assert_array_equal(found, expected)
    if known >= len(who):  # nothing came
        assert listed.same.all()
