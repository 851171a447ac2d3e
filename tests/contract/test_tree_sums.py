"""Sums along the fixed tree: whoever adds which part, the bits are those of the whole."""

from __future__ import annotations

import sys

import hypothesis
import numpy as np
import pytest
from backends import every_divisible_backend
from hypothesis import strategies as st
from test_kernels_backends import RULE, blocks_of, random_view

from ringleader.kernels import protocol
from ringleader.kernels.layout import CHUNK, LIKELIHOOD_PIECE, no_statistics, no_terms, plan_blocks
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tree import TreeNodes, join_nodes, tree_sum, whole_nodes
from ringleader.runtime.peers import Alone
from ringleader.shares.order import rank_values
from ringleader.shares.runs import halved_sums, sums_by_code
from ringleader.signals.lockstep.meetings import ranks

numba = get_backend("numba", 1)


def by_definition(leaves: list[float]) -> float:
    """The left half, which is the largest power of two below all, plus the right half."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return by_definition(leaves[:half]) + by_definition(leaves[half:])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64, 100, 1023])
def test_the_tree_is_the_one_that_is_defined(count: int) -> None:
    leaves = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count).clip(0, 12)
    assert float(tree_sum(leaves)) == by_definition(leaves.tolist())


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_leaves_join_to_the_bits_of_the_whole_wherever_they_are_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 70, 9)
    lists = [rng.normal(size=(n, 2)) for n in counts]
    nodes: list[TreeNodes] = []
    cuts = [np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, 3)])) for n in counts]
    for worker in range(4):
        owner, level, place = whole_nodes([c[worker] for c in cuts], [c[worker + 1] for c in cuts])
        sums = [tree_sum(lists[o][p << v : (p + 1) << v]) for o, v, p in zip(owner, level, place, strict=True)]
        nodes.append(TreeNodes(owner, level, place, np.reshape(sums, (len(owner), 2))))
    together = TreeNodes(*(np.concatenate(parts) for parts in zip(*nodes, strict=True)))
    np.testing.assert_array_equal(join_nodes(together, counts), [tree_sum(leaves) for leaves in lists])


def test_a_missing_leaf_is_noticed() -> None:
    with pytest.raises(ValueError, match="lacks"):
        join_nodes(TreeNodes(np.zeros(1, int), np.zeros(1, int), np.ones(1, int), np.ones(1)), [2])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_lists_cut_at_nodes_give_the_moments_of_the_whole(mode: int) -> None:
    view, sizes = random_view(3, 7, cells=60_000, spread=6)
    whole = blocks_of(view, sizes, mode)
    length = (whole.ends - whole.begins) + (whole.drawn_ends - whole.drawn_begins)
    leaves = np.maximum(-(-length // CHUNK), 1)
    middle = leaves // 3
    parts = []
    for first, last in ((np.zeros_like(middle), middle), (middle, leaves)):
        owner, level, place = whole_nodes(first, last)
        begin = place << level
        end = np.minimum((begin + (1 << level)) * CHUNK, length[owner])
        begin = begin * CHUNK
        own = (whole.ends - whole.begins)[owner]
        lists = (
            whole.begins[owner] + np.minimum(begin, own),
            whole.begins[owner] + np.minimum(end, own),
            whole.cells,
        )
        drawn = (
            whole.drawn_begins[owner] + np.maximum(begin - own, 0),
            whole.drawn_begins[owner] + np.maximum(end - own, 0),
            whole.drawn_cells,
        )
        blocks = plan_blocks(mode, whole.entities[owner], lists, drawn)
        gradient, curvature = numba.block_moments(view, blocks, RULE)
        both = np.concatenate([gradient[:, None], curvature], axis=1)
        parts.append(TreeNodes(owner, level, place, both))
    joined = join_nodes(TreeNodes(*(np.concatenate(p) for p in zip(*parts, strict=True))), leaves)
    gradient, curvature = numba.block_moments(view, whole, RULE)
    np.testing.assert_array_equal(joined[:, 0], gradient)
    np.testing.assert_array_equal(joined[:, 1:], curvature)


@pytest.mark.parametrize(("action", "threads"), [(0, 1), (0, 3), (1, 2), (2, 2)])
@every_divisible_backend
def test_a_step_from_given_moments_is_the_sweep(name: str, action: int, threads: int) -> None:
    view, sizes = random_view(3, 6, cells=300 if name == "reference" else 9000, spread=8)
    backend, rule = get_backend(name, threads), RULE._replace(action=action, step=0.05 if action == 1 else 0.8)
    for mode in range(3):
        blocks = blocks_of(view, sizes, mode)
        moved = []
        for given in (False, True):
            mine = view._replace(factors=view.factors.copy())
            statistics = no_statistics(6)
            if action == 2:
                statistics = statistics._replace(second=np.zeros((sizes[mode], 21)), first=np.zeros((sizes[mode], 6)))
            rest = (rule, no_terms(6), statistics, np.zeros((0, 6)))
            if given:
                backend.step_blocks(mine, blocks, *rest, backend.block_moments(view, blocks, rule))  # type: ignore[attr-defined]
            else:
                backend.sweep_blocks(mine, blocks, *rest)
            moved.append(mine.factors)
        np.testing.assert_array_equal(*moved)


def test_likelihoods_and_lambda_of_nodes_join_to_those_of_the_whole() -> None:
    view, _ = random_view(3, 5, cells=70_000)
    cells = np.arange(70_000, dtype=np.int32)
    for size, leaves in ((CHUNK, -(-70_000 // CHUNK)), (LIKELIHOOD_PIECE, -(-70_000 // LIKELIHOOD_PIECE))):
        runs = [whole_nodes(first, last) for first, last in ((0, 7), (7, 11), (11, leaves))]
        owner, level, place = (np.concatenate(parts) for parts in zip(*runs, strict=True))
        spans = [((p << v) * size, min(((p + 1) << v) * size, 70_000)) for v, p in zip(level, place, strict=True)]
        if size == CHUNK:
            found = [numba.lambda_moments(view, cells[a:b], RULE) for a, b in spans]
            sums = np.array([np.vstack([g, f]) for g, f in found])
            gradient, curvature = numba.lambda_moments(view, cells, RULE)
            expected = np.vstack([gradient, curvature])
        else:
            sums = np.array(
                [
                    numba.log_likelihood(view._replace(tuples=view.tuples[a:b], weights=view.weights[a:b]))
                    for a, b in spans
                ]
            )
            expected = np.array(numba.log_likelihood(view))
        np.testing.assert_array_equal(join_nodes(TreeNodes(owner, level, place, sums), [leaves])[0], expected)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(
    st.integers(0, 60), st.integers(1, 9), st.sampled_from([None, 0, 1, 5]), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_sums_by_code_have_the_bits_of_bincount(
    n: int, size: int, width: int | None, ascending: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, size, n).astype(rng.choice([np.int16, np.int32, np.int64]))
    codes = np.sort(codes) if ascending else codes
    values = rng.normal(size=n if width is None else (n, width)) * 10.0 ** rng.integers(-8, 8)
    found = numba.sums_by_code(codes, values, size)
    assert found.shape == (size, *values.shape[1:])
    np.testing.assert_array_equal(found, get_backend("reference").sums_by_code(codes, values, size))
    np.testing.assert_array_equal(found, sums_by_code(codes, values, size))


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_sums_of_rows_and_of_halves_are_added_one_by_one(n: int, size: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, places = rng.normal(size=(7, width)), rng.integers(0, 7, n).astype(rng.choice([np.int32, np.int64]))
    codes = rng.integers(0, size, n)
    scale, finer = 2.0 ** rng.integers(0, 40), 2.0 ** rng.integers(40, 70)
    sums, halves = np.zeros((size, width)), np.zeros((2, size, width))
    for code, place in zip(codes, places, strict=True):
        sums[code] += rows[place]
        upper = np.rint(rows[place] * scale)
        halves[0, code] += upper
        halves[1, code] += np.rint((rows[place] - upper / scale) * finer)
    for backend in (numba, get_backend("reference")):
        np.testing.assert_array_equal(backend.sums_of_rows(codes, places, rows, size), sums)
        np.testing.assert_array_equal(backend.halved_sums(codes, rows[places], size, scale, finer), halves)
    np.testing.assert_array_equal(halved_sums(codes, rows[places], size, scale, finer), halves)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_sums_of_the_largest_have_the_bits_of_sorting(n: int, size: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, values = rng.integers(0, size, n).astype(np.int32), rng.choice(np.append(rng.normal(size=9), 0.0), n)
    found = numba.top_sums(codes, values, size, most)
    np.testing.assert_array_equal(found, get_backend("reference").top_sums(codes, values, size, most))


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9))), st.booleans(), st.integers(0, 3))
def test_distinct_pairs_are_those_of_unique(pairs: list[tuple[int, int]], ascending: bool, more: int) -> None:
    codes = np.array(sorted(pairs) if ascending else pairs, np.int64).reshape(-1, 2)
    unique = np.unique(codes, axis=0, return_inverse=True)
    for backend in (numba, get_backend("reference")):
        found = backend.distinct_pairs(codes[:, 0], codes[:, 1], (7 + more, 10 + more))
        np.testing.assert_array_equal(np.stack(found[:2], axis=1), unique[0])
        np.testing.assert_array_equal(found[2], unique[1].reshape(-1))


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(st.integers(0, 30)), st.integers(31, 40))
def test_ranks_by_a_table_are_those_of_unique(numbers: list[int], size: int) -> None:
    found = numba.dense_ranks(np.array(numbers, np.int64), size)
    expected = get_backend("reference").dense_ranks(np.array(numbers, np.int64), size)
    for own, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, wanted)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1.5]), max_size=60))
def test_places_of_numbers_are_those_of_sorting(numbers: list[float]) -> None:
    expected = get_backend("reference").number_places(np.array(numbers))
    assert expected[1].tolist() == sorted(set(numbers))
    assert expected[0].tolist() == [sum(x < y for x in numbers) + numbers.count(y) / 2 for y in numbers]
    for own, wanted in zip(numba.number_places(np.array(numbers)), expected, strict=True):
        np.testing.assert_array_equal(own, wanted)


@pytest.mark.parametrize("common", [0, 30, 90])
def test_places_of_many_numbers_are_those_of_sorting(common: int) -> None:
    rng = np.random.default_rng(common)
    numbers = np.where(
        rng.integers(0, 100, 20_000) < common, -1.5, np.exp(20 * rng.normal(size=20_000)) * rng.choice([-1, 1], 20_000)
    )
    for own, wanted in zip(numba.number_places(numbers), get_backend("reference").number_places(numbers), strict=True):
        np.testing.assert_array_equal(own, wanted)


def test_without_compiled_kernels_sums_and_ranks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes, values = rng.integers(0, 90, 30_000), rng.normal(size=(30_000, 2))

    def places() -> tuple[np.ndarray, ...]:
        return rank_values(Alone(), np.round(values[:, 0], 3))[:3]

    compiled = sums_by_code(codes, values, 99), sums_by_code(codes, values[:, 0], 99), *ranks(codes), *places()
    monkeypatch.delitem(sys.modules, "ringleader.kernels.numba.backend")
    monkeypatch.setattr(protocol, "_numba", lambda threads: pytest.fail("the kernels were loaded"))
    plain = sums_by_code(codes, values, 99), sums_by_code(codes, values[:, 0], 99), *ranks(codes), *places()
    for found, expected in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_codes_beyond_their_size_are_refused() -> None:
    for codes in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="size 3"):
            numba.sums_by_code(np.array(codes), np.ones(2), 3)
        with pytest.raises(ValueError, match="size 3"):
            numba.distinct_pairs(np.array([0, 0]), np.array(codes), (9, 3))
        with pytest.raises(ValueError, match="size 3"):
            numba.sums_of_rows(np.array(codes), np.array([0, 0]), np.ones((1, 2)), 3)
        with pytest.raises(ValueError, match="size 3"):
            numba.sums_of_rows(np.array([0, 0]), np.array(codes), np.ones((3, 2)), 9)
