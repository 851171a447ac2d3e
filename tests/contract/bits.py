"""Prints a checksum of what every operation of the compiled backend computes on a small problem.

Run in processes of their own by ``test_kernels_bits.py``, for different processors and without compilation.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np

from ringleader.counters import stream_key
from ringleader.kernels.burst_layout import ActiveTimes, BurstRule, FoundBursts, ReviewTimes, Rhythms
from ringleader.kernels.layout import (
    Blocks,
    Rule,
    Statistics,
    Terms,
    View,
    no_statistics,
    no_terms,
    plan_blocks,
    read_only,
)
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, PairRule, met_of, nothing_before
from ringleader.kernels.protocol import Backend, DivisibleBackend, get_backend
from ringleader.kernels.topic_layout import TopicRows
from ringleader.kernels.way_layout import ReviewWays

RULE = Rule(0, 0, 0.8, 1.0, True, 1.0, 9.0, 1.0, 0.1, 0.3)


def results(backend: Backend, rank: int, cells: int) -> dict[str, list[np.ndarray]]:
    """What every operation returns or writes, by its name; those of ``DivisibleBackend`` where the backend has them."""
    rng = np.random.default_rng(rank)
    sizes, negatives = (30, 7, 4), 3
    codes = np.stack([np.minimum(rng.geometric(0.2, cells) - 1, n - 1) for n in sizes], axis=1).astype(np.int32)
    tuples = np.zeros((cells, 3 + negatives), np.int32)
    tuples[:, :3] = codes
    made: dict[str, list[np.ndarray]] = {"draw_negatives": [tuples]}
    backend.draw_negatives(tuples, 3, tuples[:, 0].copy(), stream_key(1, 2))
    drawn = backend.group_drawn(tuples, 3, sizes[0])
    made["group_drawn"] = list(drawn)
    factors = np.abs(rng.normal(0.6, 0.4, (sum(sizes), rank)))
    factors[rng.random(factors.shape) < 0.1] = 0.0
    weights = rng.choice([0.0, 1.0, 2.5], cells)
    starts = np.array([0, 30, 37])
    view = View(read_only(tuples), weights, 0, factors, starts, len(factors), rng.normal(1, 0.2, rank))
    made["log_likelihood"] = [np.array(backend.log_likelihood(view))]
    made["log_odds"] = [backend.log_odds(view, tuples[:, :3])]
    every = np.arange(cells, dtype=np.int32)
    made["lambda_moments"] = list(backend.lambda_moments(view, every, RULE))
    made["head_moments"] = list(backend.head_moments(factors[:9], rng.normal(size=9), np.ones(rank + 1), 0.5, RULE))
    fixed = RULE._replace(shape=0.0)
    made["rows_log_prior"] = [np.array([backend.rows_log_prior(factors, (3, 37), rule) for rule in (RULE, fixed)])]
    made["column_squares"] = [backend.column_squares(factors, (3, 37))]
    placed = view._replace(tuples=backend.place_tuples(codes, negatives), factors=backend.place(factors))
    backend.draw_negatives(placed.tuples, 3, placed.tuples[:, 0], stream_key(1, 2))
    made["place_tuples"] = [backend.fetch(placed.tuples)]
    for name in ("block_moments", "leave_one_out", "sweep_blocks", "plan"):
        made[name] = []
    for mode, size in enumerate(sizes):
        order = backend.stable_order(tuples[:, mode], size).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(tuples[:, mode], minlength=size))])
        own = (offsets[:-1], offsets[1:], order)
        behind = (drawn[0][:-1], drawn[0][1:], drawn[1]) if mode == 0 else None
        blocks = plan_blocks(mode, np.arange(size), own, behind)
        grouped = backend.group_drawn(placed.tuples, 3, size) if mode == 0 else None
        there = backend.plan(mode, (offsets, order), grouped)
        made["plan"] += [backend.fetch(part) for part in there[1:7]]
        backend.sweep_blocks(placed, there, RULE, no_terms(rank), no_statistics(rank), np.zeros((0, rank)))
        made["block_moments"] += backend.block_moments(view, blocks, RULE)
        made["leave_one_out"] += backend.leave_one_out(view, blocks, RULE)
        terms = Terms(np.arange(size + 1), np.zeros(size, np.int32), rng.choice([-1.0, 1.0], size),
                      rng.normal(size=(1, rank + 1)), np.zeros(1))  # fmt: skip
        for action, nonnegative in ((0, True), (0, False), (1, True), (2, True), (2, False)):
            statistics = no_statistics(rank)
            if action == 2:
                statistics = Statistics(np.zeros((size, rank * (rank + 1) // 2)), np.zeros((size, rank)))
            moved, cavity = view._replace(factors=factors.copy()), np.zeros((size, rank))
            rule = RULE._replace(action=action, nonnegative=nonnegative, step=0.05 if action == 1 else 0.8)
            backend.sweep_blocks(moved, blocks, rule, terms, statistics, cavity)
            made["sweep_blocks"] += [moved.factors, cavity, *statistics]
        by_entries = plan_blocks(mode, np.arange(size), own, behind, dual=True)  # blocks of few entries are solved so
        moved = view._replace(factors=factors.copy())
        backend.sweep_blocks(moved, by_entries, RULE, no_terms(rank), no_statistics(rank), np.zeros((0, rank)))
        made["sweep_blocks"].append(moved.factors)
        if isinstance(backend, DivisibleBackend):
            for operation, arrays in _divided(backend, view, blocks, terms).items():
                made[operation] = [*made.get(operation, []), *arrays]
    made["place"] = made["fetch"] = [backend.fetch(placed.factors)]  # a whole sweep without coming back
    made["take"] = [backend.take(array, np.array([5, 2])) for array in (factors, placed.factors)]
    topics, counts = rng.random((2, 9, 3)), np.zeros((9, 3))
    columns = rng.integers(0, 9, 27).astype(np.int32)
    backend.topic_counts(np.arange(0, 28, 3), columns, topics[0], topics[1], counts, (0, 9))
    made["topic_counts"] = [counts]
    drawn, who = np.zeros(27), rng.integers(0, 9, 27).astype(np.int32)
    rows = TopicRows(*rng.random((4, 9, 3)), rng.random(3))
    backend.drawn_to_items(who, columns, rows, drawn, (0, 20))
    backend.drawn_to_items(who, columns, rows, drawn, (20, 27))
    made["drawn_to_items"] = [drawn]
    codes, numbers = rng.integers(0, 5, 27).astype(np.int32), rng.normal(size=(27, 3))
    made["sums_by_code"] = [backend.sums_by_code(codes, part, 6) for part in (numbers, numbers[:, 0])]
    made["sums_of_rows"] = [backend.sums_of_rows(codes, rng.integers(0, 27, 27), numbers, 6)]
    made["halved_sums"] = [backend.halved_sums(codes, numbers, 6, 2.0**30, 2.0**60)]
    made["distinct_pairs"] = list(backend.distinct_pairs(codes, rng.integers(0, 4, 27), (6, 4)))
    made["dense_ranks"] = list(backend.dense_ranks(rng.integers(0, 40, 27), 41))
    made["number_places"] = list(backend.number_places(np.round(numbers[:, 0], 1)))
    made["top_sums"] = [backend.top_sums(codes, numbers[:, 0], 6, 3)]
    made["largest_bursts"] = list(_bursts(backend, rng))
    made["stable_order"] = [backend.stable_order(tuples[:, 0], sizes[0])]
    made |= _pairs(backend, rng)
    return made | _signals(backend, rng)


def _signals(backend: Backend, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    codes, others, which = rng.integers(0, 5, 27), rng.integers(0, 4, 27).astype(np.int16), rng.integers(0, 9, 27)
    numbers, weights = rng.normal(size=27), rng.integers(1, 4, 27).astype(float)
    made = {"weighted_sums": [*backend.weighted_sums(codes, others, weights, numbers, (6, 4))]}
    made["counts_of_pairs"] = [backend.counts_of_pairs(codes, others, (6, 4))]
    made["middles"] = [backend.middles(np.sort(codes), numbers, 6)]
    largest = np.zeros(27)
    backend.keep_larger(largest, rng.permutation(27), numbers, which)
    made["keep_larger"] = [largest]
    table, total = rng.normal(size=(8, 3)), np.zeros((2, 27))
    for levels, own in ((codes, total[0]), (codes[:5], total[1, :5])):  # as many as levels, and fewer
        backend.add_curve(numbers[:3], table, np.ascontiguousarray(table.T), 0.3, levels.astype(np.uint16), own)
    made["add_curve"] = [total]
    ways = ReviewWays(*rng.choice([0.0, 0.5, 2.0], (5, 27)), rng.random(27), rng.random(27) < 0.7)
    made["way_sums"] = [*backend.way_sums(ways, (0.3, 1.5), codes, others, (6, 4))]
    around = np.zeros(27)
    backend.add_others(codes, rng.integers(0, 3, 27).astype(np.int8), ways.loud, 6, around)
    made["add_others"] = [around]
    own, other = rng.random((9, 5)), rng.random((6, 5))
    counts = np.zeros((9, 5)), np.zeros((6, 5))
    backend.topic_counts_of_both(np.arange(0, 28, 3), codes.astype(np.int32), own, other, *counts)
    made["topic_counts_of_both"] = [*counts]
    keys, where = np.unique(rng.integers(0, 60, 27), return_inverse=True)
    entity, bins = np.divmod(keys, 12)
    times = ActiveTimes(entity, bins, np.linspace(0, 1, 13))
    made["excess_around"] = [backend.excess_around(times, where, weights, 1, 1.0)]
    seen = np.bincount(where, weights=weights)
    rhythms = Rhythms(*np.zeros((4, 5), np.int64), np.zeros(5), np.zeros(5))
    backend.rhythms(times, seen, np.bincount(entity, weights=seen, minlength=5), rhythms)
    made["rhythms"] = [*rhythms]
    return made


def _divided(backend: DivisibleBackend, view: View, blocks: Blocks, terms: Terms) -> dict[str, list[np.ndarray]]:
    """A step from sums that are given, and draws for some of the cells, by ranges of the entities that were drawn."""
    moved, cavity = view._replace(factors=view.factors.copy()), np.zeros((len(blocks.entities), view.factors.shape[1]))
    moments, statistics = backend.block_moments(view, blocks, RULE), no_statistics(view.factors.shape[1])
    backend.step_blocks(moved, blocks, RULE, terms, statistics, cavity, moments)
    numbers = np.arange(len(view.tuples))[:: 2 + blocks.mode]
    some = view.tuples[numbers]
    some[:, 3:] = -1
    backend.draw_numbered(some, 3, view.tuples[:, 0].copy(), stream_key(1, 2), numbers)
    bounds = np.array([0, 0, 3, 11, 30])  # one owns nothing
    owned = backend.owned_draws(some, 3, bounds)
    grouped = [backend.group_owned(part, *at) for part, *at in zip(owned, bounds, np.diff(bounds), strict=False)]
    return {
        "step_blocks": [moved.factors, cavity],
        "draw_numbered": [some],
        "owned_draws": [array for part in owned for array in part],
        "group_owned": [array for part in grouped for array in part],
    }


def _bursts(backend: Backend, rng: np.random.Generator) -> FoundBursts:
    entity, bins = np.divmod(np.unique(rng.integers(0, 8 * 30, 60)), 30)
    reviews = rng.integers(0, 4, (2, len(entity)))
    running = np.concatenate([np.zeros((2, 1)), np.cumsum(reviews, axis=1)], axis=1)
    volume = np.bincount(entity, weights=reviews.sum(axis=0), minlength=9)
    times = ReviewTimes(entity * 50 + bins, entity, bins, running, volume)
    found = FoundBursts(*np.zeros((3, 2, 9)), np.zeros((2, 9), np.int64))
    backend.largest_bursts(times, BurstRule(rng.random((2, len(bins))), np.array([0.4, 0.3]), 4, 1.0), found)
    return found


def _pairs(backend: Backend, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    member = rng.random((25, 40)) < 0.2
    actor, group = np.nonzero(member)
    by_group = np.argsort(group, kind="stable")
    places = [np.concatenate([[0], np.cumsum(counts)]) for counts in (member.sum(axis=0), member.sum(axis=1))]
    groups = Groups(
        places[0], actor[by_group].astype(np.int32), places[1], group.astype(np.int32), by_group, rng.normal(size=40)
    )
    exposure = Exposure(np.arange(26), np.zeros(25, np.int32), np.full(25, 0.7), 1, np.ones((25, 1)), np.ones((25, 1)))
    scores, lengths = np.zeros(len(actor)), np.zeros(25, np.int64)
    columns, values, _ = backend.lockstep_of_actors(groups, exposure, PairRule(2, 1e-4, 0.3), scores, lengths, (0, 25))
    sizes, again, count = np.zeros(len(actor), np.int64), np.zeros(len(actor)), np.zeros(25, np.int64)
    met = backend.often_met(groups, nothing_before(), 2, sizes, (0, 25))
    listed = met_of(groups, sizes, met, (0, 25))
    others, llr, _ = backend.lockstep_of_met(groups, listed, exposure, PairRule(2, 1e-4, 0.3), again, count, (0, 25))
    row = np.repeat(np.arange(25), lengths)
    dense = np.zeros((25, 25))
    dense[row, columns] = values
    from_lists = np.zeros((25, 25))
    from_lists[np.repeat(np.arange(25), count), others] = llr
    support = np.zeros(len(actor))
    graph = Graph(np.concatenate([[0], np.cumsum(lengths)]), columns, values)
    backend.support_of_groups(groups, graph, support, (0, 40))
    return {
        "lockstep_of_actors": [scores, lengths, dense],
        "often_met": [sizes, met],
        "lockstep_of_met": [again, count, from_lists],
        "support_of_groups": [support],
    }


def checksums(name: str, ranks: list[int], cells: int) -> dict[str, str]:
    backend = get_backend(name, 1)
    digests: dict[str, str] = {}
    for rank in ranks:
        for operation, arrays in results(backend, rank, cells).items():
            # Adding 0.0 makes -0.0 and 0.0 one: they are equal numbers.
            data = b"".join(np.ascontiguousarray(array + 0).tobytes() for array in arrays)
            digests[f"{operation} {rank}"] = hashlib.sha256(data).hexdigest()
    return digests


if __name__ == "__main__":
    for key, digest in checksums(sys.argv[1], [int(rank) for rank in sys.argv[3:]], int(sys.argv[2])).items():
        print(key, digest)
