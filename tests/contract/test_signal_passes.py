"""Compiled passes of the signals and heads have the bits of what they stand for, step by step."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from ringleader.judge.basis import LEVELS, lay_out, rank_all
from ringleader.kernels.burst_layout import ActiveTimes, Rhythms
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tiles import gram, graph_through, graph_times
from ringleader.kernels.way_layout import ReviewWays
from ringleader.shares.runs import MANY_VALUES
from ringleader.signals import suspicion
from ringleader.signals.behaviour import time
from ringleader.signals.behaviour.time import Calendar, active_weeks, find_rhythms, local_excess
from ringleader.signals.suspicion import ReviewRatios, believed_unseen, entity_ways
from ringleader.tensor.sparse import SparseTensor

numba, reference = get_backend("numba"), get_backend("reference")
SEEDS = st.integers(0, 2**32 - 1)


def calendar(n_bins: int, rng: np.random.Generator, *, table: bool = True) -> Calendar:
    before = np.concatenate([[0.0], np.cumsum(rng.integers(1, 9, n_bins))])
    rank = np.arange(n_bins + 1) if table else None
    return Calendar(np.arange(n_bins), before / before[-1], n_bins, 7 * time.DAY, 0, (1, 3, 6), rank)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.integers(1, 60), st.integers(1, 9), SEEDS)
def test_times_looked_up_in_a_table_say_what_times_that_are_searched_for_say(n: int, size: int, seed: int) -> None:
    codes, bins, weights = np.random.default_rng(seed).integers(0, size, (3, n))
    made = []
    for table in (True, False):
        when = calendar(size, np.random.default_rng(seed), table=table)
        weeks = active_weeks(codes, bins, when)
        seen = np.bincount(weeks.where, weights=weights + 1.0)
        volume = np.bincount(codes, weights=weights + 1.0, minlength=size)
        excess = local_excess(codes, size, bins, weights + 1.0, when)
        made.append([excess, *find_rhythms(weeks, seen, volume, when)])
    for looked_up, searched in zip(*made, strict=True):
        np.testing.assert_array_equal(looked_up, searched)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 11)), min_size=1), st.integers(1, 4), SEEDS)
def test_crowding_and_rhythms_are_those_of_the_reference(met: set[tuple[int, int]], half: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entity, bins = np.array(sorted(met), np.int64).T.copy()
    times = ActiveTimes(entity, bins, np.sort(rng.random(13)))
    where = np.concatenate([np.arange(len(entity)), rng.integers(0, len(entity), 9)])
    weights = rng.integers(1, 4, len(where)).astype(np.float64)
    found, expected = (b.excess_around(times, where, weights, half, 1.0) for b in (numba, reference))
    np.testing.assert_array_equal(found, expected)
    seen = np.bincount(where, weights=weights)
    both = [Rhythms(*np.zeros((4, 6), np.int64), np.zeros(6), np.zeros(6)) for _ in range(2)]
    for backend, made in zip((numba, reference), both, strict=True):
        backend.rhythms(times, seen, np.bincount(entity, weights=seen, minlength=6), made)
    for own, wanted in zip(*both, strict=True):
        np.testing.assert_array_equal(own, wanted)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.integers(1, 60), SEEDS)
def test_sums_counts_and_maxima_by_code_are_those_of_the_reference(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, others = rng.integers(0, 6, n), rng.integers(0, 4, n).astype(np.int16)
    weights, numbers = rng.normal(size=(2, n))
    for values in (numbers, numbers > 0):
        found, expected = (b.weighted_sums(codes, others, weights, values, (7, 4)) for b in (numba, reference))
        for own, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, wanted)
    found, expected = (b.counts_of_pairs(codes, others, (6, 5)) for b in (numba, reference))
    np.testing.assert_array_equal(found, expected)
    largest = np.tile(rng.normal(size=2 * n), (2, 1))
    places, which = rng.permutation(2 * n)[:n], rng.integers(0, n, n)
    for backend, own in zip((numba, reference), largest, strict=True):
        backend.keep_larger(own, places, numbers, which)
    np.testing.assert_array_equal(*largest)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.lists(st.integers(0, 9), min_size=1, max_size=120), st.integers(1, 40), SEEDS)
def test_the_middle_ones_are_those_of_sorting(values: list[int], size: int, seed: int) -> None:
    codes = np.sort(np.random.default_rng(seed).integers(0, size, len(values)))
    found, expected = (b.middles(codes, np.array(values, np.float64), size) for b in (numba, reference))
    np.testing.assert_array_equal(found, expected)
    for code in np.unique(codes):
        assert found[code].mean() == np.median(np.array(values)[codes == code])


@pytest.mark.parametrize("count", [24, 25, 1000, 4001])
def test_the_middle_ones_of_values_in_any_order_are_those_of_sorting(count: int) -> None:
    up, halves = np.arange(float(count)), np.abs(np.arange(count) - count / 2)
    for values in (up, up[::-1], halves, -halves, up % 2, up % 7, np.zeros(count), np.sort(halves)):
        found, expected = (b.middles(np.zeros(count, np.int64), values, 1) for b in (numba, reference))
        np.testing.assert_array_equal(found, expected)


def test_codes_and_lengths_that_do_not_fit_are_refused() -> None:
    codes, numbers = np.array([0, 3]), np.ones(2)
    with pytest.raises(ValueError, match="size 3"):
        numba.weighted_sums(codes, codes, numbers, numbers, (3, 9))
    with pytest.raises(ValueError, match="values"):
        numba.weighted_sums(codes, codes[:1], numbers, numbers, (9, 9))
    with pytest.raises(ValueError, match="size 3"):
        numba.counts_of_pairs(codes, codes, (9, 3))
    with pytest.raises(ValueError, match="size 3"):
        numba.middles(codes, numbers, 3)
    with pytest.raises(ValueError, match="size 3"):
        numba.keep_larger(np.zeros(3), codes, numbers, np.zeros(2, np.int64))
    ways = ReviewWays(*np.ones((6, 2)), np.ones(2, np.bool_))
    with pytest.raises(ValueError, match="sizes"):
        numba.way_sums(ways, (0.3, 1.5), codes, codes, (3, 9))
    with pytest.raises(ValueError, match="there are 3"):
        numba.add_others(codes, np.zeros(2, np.int8), numbers, 3, np.zeros(2))
    with pytest.raises(ValueError, match="curve of 3"):
        numba.add_curve(np.ones(1), np.ones((3, 1)), np.ones((1, 3)), 0.0, codes.astype(np.uint16), np.zeros(2))


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 11), SEEDS)
def test_topics_counted_in_one_pass_are_those_of_two(rows: int, columns: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, column = np.sort(rng.integers(0, rows, 60)), rng.integers(0, columns, 60).astype(np.int32)
    offsets, ends = (
        np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n))])
        for codes, n in ((row, rows), (column, columns))
    )
    own, other = rng.random((rows, size)) * (rng.random((rows, 1)) < 0.9), rng.random((columns, size))
    once = np.zeros((rows, size)), np.full((columns, size), 7.0)
    numba.topic_counts_of_both(offsets, column, own, other, *once)
    twice = np.zeros((rows, size)), np.zeros((columns, size))
    numba.topic_counts(offsets, column, own, other, twice[0], (0, rows))
    order = np.argsort(column, kind="stable")
    numba.topic_counts(ends, row[order].astype(np.int32), other, own, twice[1], (0, columns))
    for found, expected in zip(once, twice, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [4, 12, 24])
def test_through_a_graph_in_one_pass_is_there_and_back(width: int) -> None:
    rng = np.random.default_rng(width)
    graph = sparse.csr_array(rng.random((70, 30)) * (rng.random((70, 30)) < 0.2))
    numbers = rng.normal(size=(30, width))
    found = graph_through(graph, numbers)
    np.testing.assert_array_equal(found, graph_times(graph.T, graph_times(graph, numbers)))
    np.testing.assert_array_equal(found, graph.T @ (graph @ numbers))


def test_a_matrix_of_rows_that_were_turned_over_before_has_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(90, 40)), rng.random(90)
    np.testing.assert_array_equal(gram(rows, weight), gram(rows, weight, np.ascontiguousarray(rows.T)))


@pytest.mark.parametrize("n", [5_000, LEVELS + 7])
def test_a_predictor_has_the_bits_of_its_curves(n: int) -> None:
    rng = np.random.default_rng(n)
    ranks = rank_all(np.round(rng.normal(size=(n, 3)), 2))
    layout = lay_out(ranks, 5, None)
    weights = rng.normal(size=len(layout.kind))
    expected = np.full(n, weights[0])
    for _, amounts in layout._curves(ranks.levels, weights):
        expected += amounts
    np.testing.assert_array_equal(layout.predictor(ranks.levels, weights), expected)


def test_what_speaks_against_entities_has_the_bits_of_the_parts_of_reviews(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, MANY_VALUES + 5_000) for size in (900, 300)], axis=1)
    tensor = SparseTensor.from_arrays(codes, ("reviewer", "product"))
    n = tensor.n_cells
    assert n >= MANY_VALUES
    ratios = ReviewRatios(*(rng.choice([0.0, 0.0, *rng.exponential(size=9)], n) for _ in range(5)))
    fair = rng.random(n) < 0.8
    place, side, loud = rng.integers(0, 4_000, n), rng.integers(0, 3, n).astype(np.int8), rng.random(n)

    def find() -> list[np.ndarray]:
        others = np.zeros(n)
        suspicion._add_others(place, side, loud, 4_000, others)
        ways = [*entity_ways(tensor, 0, ratios).values(), *entity_ways(tensor, 1, ratios, fair).values()]
        return [others, *ways, believed_unseen(tensor, 0, ratios)]

    compiled = find()
    monkeypatch.setattr(suspicion, "loaded_kernels", lambda: None)
    for found, expected in zip(compiled, find(), strict=True):
        np.testing.assert_array_equal(found, expected)
