"""Every operation of every backend against the reference, over modes, ranks, lengths of lists and threads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from backends import every_backend, every_divisible_backend
from bits import results

from ringleader.counters import stream_key
from ringleader.errors import SettingsError
from ringleader.kernels.cuda import arguments
from ringleader.kernels.layout import (
    CHUNK,
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
from ringleader.kernels.numba import blocks as numba_blocks
from ringleader.kernels.numba import bursts as numba_bursts
from ringleader.kernels.numba import curves as numba_curves
from ringleader.kernels.numba import draws as numba_draws
from ringleader.kernels.numba import entries as numba_entries
from ringleader.kernels.numba import graphs as numba_graphs
from ringleader.kernels.numba import grouped as numba_grouped
from ringleader.kernels.numba import logarithms as numba_logarithms
from ringleader.kernels.numba import matrices as numba_matrices
from ringleader.kernels.numba import pairs as numba_pairs
from ringleader.kernels.numba import ranked as numba_ranked
from ringleader.kernels.numba import topics as numba_topics
from ringleader.kernels.numba import ways as numba_ways
from ringleader.kernels.protocol import Backend, DivisibleBackend, get_backend
from ringleader.kernels.reference import blocks as reference

MODES_AND_RANKS = [(2, 1), (2, 24), (3, 4), (3, 64), (4, 7), (5, 10), (5, 24), (6, 33)]
RANKS = (1, 7, 24, 33)
LENGTHS = (0, 1, 31, 33, CHUNK + 1)
RULE = Rule(0, 0, 0.8, 1.0, True, 1.0, 0.0, 0.0, 0.0, 1.0)


def operations_of(protocol: type) -> set[str]:
    return {name for name, member in vars(protocol).items() if callable(member) and not name.startswith("_")}


OPERATIONS, OF_DIVISIBLE = operations_of(Backend), operations_of(DivisibleBackend)


def same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float, atol: float = 0.0) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@every_backend
@pytest.mark.parametrize("rank", RANKS)
def test_every_operation_agrees_with_the_reference(name: str, rank: int) -> None:
    made, expected = (results(get_backend(backend, 1), rank, 400) for backend in (name, "reference"))
    wanted = OPERATIONS | OF_DIVISIBLE if isinstance(get_backend(name, 1), DivisibleBackend) else OPERATIONS
    assert set(made) == wanted, "bits.py must run every operation of the protocol"
    for operation, arrays in made.items():
        same(arrays, expected[operation], 1e-6, 1e-7)


@pytest.mark.parametrize("rank", [7, pytest.param(24, marks=pytest.mark.slow)])
@every_backend
def test_kernels_compiled_for_the_rows_of_an_entry_agree_too(
    name: str, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not name.startswith("cuda"):
        pytest.skip("one form for all numbers of rows")
    monkeypatch.setattr(arguments, "FIXED_FROM", 0)
    made, expected = (results(get_backend(backend, 1), rank, 150) for backend in (name, "reference"))
    for operation, array in made.items():
        same(array, expected[operation], 1e-6, 1e-7)


@every_backend
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("rank", [1, 24])
def test_the_number_of_threads_does_not_change_a_bit(name: str, threads: int, rank: int) -> None:
    cells = {"reference": 300, "cuda-emulated": 3000}.get(name, 30_000)
    one, many = (results(get_backend(name, count), rank, cells) for count in (1, threads))
    for operation in one:
        for a, b in zip(one[operation], many[operation], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=operation)


@every_backend
@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("contrast", [0, 1])
def test_lists_of_every_length(name: str, rank: int, contrast: int) -> None:
    """Entity n of the first mode has LENGTHS[n] cells; in the contrast mode its negatives come on top."""
    rng = np.random.default_rng(rank)
    first = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    codes = np.stack([first, rng.integers(0, 5, len(first))], axis=1)
    drawn = codes[rng.integers(0, len(first), (len(first), 2)), contrast]
    factors = np.abs(rng.normal(0.6, 0.4, (10, rank)))
    tuples = read_only(np.hstack([codes, drawn]).astype(np.int32))
    view = View(tuples, np.ones(1), contrast, factors, np.array([0, 5]), 10, np.ones(rank))
    blocks = blocks_of(view, [5, 5], 0)
    assert tuple(blocks.ends - blocks.begins) == LENGTHS
    backend, oracle = get_backend(name), get_backend("reference")
    same(backend.block_moments(view, blocks, RULE), oracle.block_moments(view, blocks, RULE), 1e-9, 1e-12)
    same(backend.leave_one_out(view, blocks, RULE), oracle.leave_one_out(view, blocks, RULE), 1e-8, 1e-12)
    same(after_sweep(name, view, blocks, RULE), after_sweep("reference", view, blocks, RULE), 1e-6, 1e-7)


def random_view(
    modes: int, rank: int, *, cells: int = 120, negatives: int = 4, contrast: int = 0, seed: int = 0, spread: int = 40
) -> tuple[View, list[int]]:
    """Mode k has up to ``spread`` entities: some without cells, some with one, one with most of them."""
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(spread // 2, spread, modes)]
    codes = np.stack([np.minimum(rng.geometric(0.15, cells) - 1, n - 2) for n in sizes], axis=1)
    drawn = codes[rng.integers(0, cells, (cells, negatives)), contrast]
    factors = np.abs(rng.normal(0.6, 0.4, (sum(sizes), rank)))
    factors[rng.random(factors.shape) < 0.2] = 0.0
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    weights = rng.choice([0.0, 1.0, 2.5], cells)
    tuples = read_only(np.hstack([codes, drawn]).astype(np.int32))
    return View(tuples, weights, contrast, factors, starts, sum(sizes), np.abs(rng.normal(1, 0.2, rank))), sizes


def blocks_of(view: View, sizes: list[int], mode: int, entities: np.ndarray | None = None) -> Blocks:
    chosen = np.arange(sizes[mode]) if entities is None else entities
    codes = view.tuples[:, mode]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=sizes[mode]))])
    own = (offsets[chosen], offsets[chosen + 1], np.argsort(codes, kind="stable").astype(np.int32))
    modes = len(view.starts)
    if mode != view.contrast or view.tuples.shape[1] == modes:
        return plan_blocks(mode, chosen, own)
    offsets, cells = reference.group_drawn(view.tuples, modes, sizes[mode])
    return plan_blocks(mode, chosen, own, (offsets[chosen], offsets[chosen + 1], cells))


def after_sweep(name: str, view: View, blocks: Blocks, rule: Rule, terms: Terms | None = None) -> list[np.ndarray]:
    rank = view.factors.shape[1]
    mine = view._replace(factors=view.factors.copy())
    terms = no_terms(rank) if terms is None else terms
    cavity = np.zeros((len(terms.target), rank))
    statistics = no_statistics(rank, view.factors.dtype)
    if rule.action == 2:
        count = int(blocks.entities.max()) + 1
        rng = np.random.default_rng(3)
        second = np.zeros((count, rank * (rank + 1) // 2))
        upper = np.triu_indices(rank)
        for n in range(0, count, 2):  # every other entity has been seen before
            root = rng.normal(size=(rank, rank))
            second[n] = (root @ root.T)[upper]
        statistics = Statistics(second, rng.normal(size=(count, rank)))
    get_backend(name).sweep_blocks(mine, blocks, rule, terms, statistics, cavity)
    return [mine.factors, cavity, statistics.second, statistics.first]


@pytest.mark.parametrize(("modes", "rank"), MODES_AND_RANKS)
@pytest.mark.parametrize("negatives", [0, 4])
@every_backend
def test_block_and_lambda_moments(name: str, modes: int, rank: int, negatives: int) -> None:
    view, sizes = random_view(modes, rank, negatives=negatives, contrast=modes % 3 % modes)
    backend, oracle = get_backend(name), get_backend("reference")
    for rule in (RULE, RULE._replace(curvature=1, half=0.5)):
        for mode in range(modes):
            blocks = blocks_of(view, sizes, mode)
            same(backend.block_moments(view, blocks, rule), oracle.block_moments(view, blocks, rule), 1e-10, 1e-12)
        cells = np.arange(len(view.tuples), dtype=np.int32)
        same(backend.lambda_moments(view, cells, rule), oracle.lambda_moments(view, cells, rule), 1e-10, 1e-12)


@pytest.mark.parametrize(("modes", "rank"), MODES_AND_RANKS)
@pytest.mark.parametrize("action", [0, 1, 2])
@pytest.mark.parametrize("nonnegative", [True, False])
@every_backend
def test_sweeps(name: str, modes: int, rank: int, action: int, nonnegative: bool) -> None:
    view, sizes = random_view(modes, rank, seed=rank)
    rule = RULE._replace(action=action, nonnegative=nonnegative, step=0.05 if action == 1 else 0.8, decay=0.3)
    for mode in (0, modes - 1):
        blocks = blocks_of(view, sizes, mode)
        same(after_sweep(name, view, blocks, rule), after_sweep("reference", view, blocks, rule), 1e-6, 1e-7)


@pytest.mark.parametrize("curvature", [0, 1])
@every_backend
def test_sweeps_with_labels_cavities_and_learned_variances(name: str, curvature: int) -> None:
    view, sizes = random_view(4, 6, seed=5)
    rng = np.random.default_rng(0)
    rule = RULE._replace(curvature=curvature, nonnegative=False, shape=1.0, scale=0.6, floor=0.1, half=0.5)
    entities = np.sort(rng.choice(sizes[2], 12, replace=False)).repeat(2)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(entities, minlength=sizes[2]))]).astype(np.int64)
    terms = Terms(
        offsets,
        np.tile([0, 1], 12).astype(np.int32),
        np.where(np.arange(24) % 2 == 0, rng.choice([-1.0, 1.0], 24), rng.normal(size=24)),
        rng.normal(size=(2, 7)),
        np.array([0.0, 0.7]),
    )
    blocks = blocks_of(view, sizes, 2)
    true = after_sweep("reference", view, blocks, rule, terms)
    same(after_sweep(name, view, blocks, rule, terms), true, 1e-9, 1e-10)
    assert (true[1][::2] != 0).any()
    assert (true[1][1::2] == 0).all()  # one cavity row per entity, at its first label


CASES_OF_FEW = [
    pytest.param(*size, settings, spread, marks=() if (n + m) % 3 == k else pytest.mark.slow)
    for n, size in enumerate([(2, 1), (2, 7), (3, 24), (5, 24), (4, 33), (3, 64)])
    for m, spread in enumerate([40, 400])
    for k, settings in enumerate([{}, {"nonnegative": False}, {"shape": 1.0, "scale": 0.6, "floor": 0.1}])
]
"""All sizes and spreads with all settings; with one of these in turn they are quick."""


@pytest.mark.parametrize(("modes", "rank", "settings", "spread"), CASES_OF_FEW)
@every_backend
def test_blocks_of_few_entries_are_solved_through_them(
    name: str, modes: int, rank: int, settings: dict[str, float], spread: int
) -> None:
    rng = np.random.default_rng(rank)
    for contrast, seed in ((0, 1), (1, 2)):
        view, sizes = random_view(modes, rank, cells=160, contrast=contrast, seed=seed, spread=spread)
        codes = np.stack([rng.integers(0, size, 160) for size in sizes], axis=1)
        drawn = codes[rng.integers(0, 160, (160, 4)), contrast]
        view = view._replace(tuples=read_only(np.hstack([codes, drawn]).astype(np.int32)))
        blocks = blocks_of(view, sizes, 0)
        rule = RULE._replace(**settings)
        own = np.arange(0, sizes[0] + 1) // 3  # every third entity is labelled
        terms = Terms(own, np.zeros(own[-1], np.int32), np.ones(own[-1]), rng.normal(size=(1, rank + 1)), np.zeros(1))
        for labels in (None, terms):
            expected = after_sweep("reference", view, blocks, rule, labels)
            same(after_sweep(name, view, blocks._replace(dual=True), rule, labels), expected, 1e-9, 1e-11)


def test_few_entries_are_another_way_to_the_same_row() -> None:
    view, sizes = random_view(3, 24, cells=160, spread=400)
    blocks = blocks_of(view, sizes, 1)
    sums, entries = (after_sweep("numba", view, blocks._replace(dual=dual), RULE)[0] for dual in (False, True))
    few = view.starts[1] + np.flatnonzero((blocks.ends > blocks.begins) & (blocks.ends - blocks.begins <= 2))
    assert (sums != entries).any(axis=1)[few].mean() > 0.5, "the last bits of both would not agree everywhere"
    many = view.starts[1] + np.flatnonzero(blocks.ends - blocks.begins > 2)
    np.testing.assert_array_equal(sums[many], entries[many])


@every_backend
def test_long_lists_are_summed_in_pieces(name: str) -> None:
    view, sizes = random_view(3, 5, cells=9000, spread=6)
    for mode in range(3):
        blocks = blocks_of(view, sizes, mode)
        assert len(blocks.chunks) > 1
        expected = get_backend("reference").block_moments(view, blocks, RULE)
        same(get_backend(name).block_moments(view, blocks, RULE), expected, 1e-9)


@every_backend
def test_some_entities_can_be_swept_alone(name: str) -> None:
    view, sizes = random_view(3, 5)
    for mode in range(3):
        some = np.array([1, 4, 7])
        part = after_sweep(name, view, blocks_of(view, sizes, mode, some), RULE)[0]
        whole = after_sweep(name, view, blocks_of(view, sizes, mode), RULE)[0]
        rows = view.starts[mode] + some
        np.testing.assert_array_equal(part[rows], whole[rows])
        part[rows] = view.factors[rows]
        np.testing.assert_array_equal(part, view.factors)


@pytest.mark.parametrize("modes", [2, 5])
@every_backend
def test_likelihood_log_odds_and_leave_one_out(name: str, modes: int) -> None:
    view, sizes = random_view(modes, 9, cells=5000)
    backend, oracle = get_backend(name), get_backend("reference")
    np.testing.assert_allclose(backend.log_likelihood(view), oracle.log_likelihood(view), rtol=1e-12)
    codes = view.tuples[:, :modes]
    np.testing.assert_allclose(backend.log_odds(view, codes), oracle.log_odds(view, codes), rtol=1e-12)
    for mode in (0, 1):
        blocks = blocks_of(view, sizes, mode)
        same(backend.leave_one_out(view, blocks, RULE), oracle.leave_one_out(view, blocks, RULE), 1e-9, 1e-12)


@pytest.mark.parametrize("negatives", [1, 4, 63])
@every_backend
def test_draws_are_the_same_bits_and_grouped_alike(name: str, negatives: int) -> None:
    tuples = np.zeros((3000, 3 + negatives), np.int32)
    tuples[:, :3] = np.random.default_rng(0).integers(0, 50, (3000, 3))
    fast, slow = tuples.copy(), tuples.copy()
    key = stream_key(7, 3)
    get_backend(name).draw_negatives(fast, 3, fast[:, 1].copy(), key)
    get_backend("reference").draw_negatives(slow, 3, slow[:, 1].copy(), key)
    np.testing.assert_array_equal(fast, slow)
    for a, b in zip(
        get_backend(name).group_drawn(fast, 3, 60), get_backend("reference").group_drawn(fast, 3, 60), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("negatives", "threads"), [(0, 2), (1, 3), (4, 1), (4, 2)])
@every_divisible_backend
def test_draws_of_some_cells_are_theirs_among_all_and_each_range_has_its_own(
    name: str, negatives: int, threads: int
) -> None:
    rng = np.random.default_rng(0)
    tuples = np.zeros((70_000, 3 + negatives), np.int32)
    tuples[:, :3] = rng.integers(0, 50, (70_000, 3))
    pool, key, backend = tuples[:, 1].copy(), stream_key(7, 3), get_backend(name, threads)
    assert isinstance(backend, DivisibleBackend)
    backend.draw_negatives(tuples, 3, pool, key)
    numbers = rng.permutation(70_000)[:66_000]
    some = tuples[numbers]
    some[:, 3:] = -1
    backend.draw_numbered(some, 3, pool, key, numbers)
    np.testing.assert_array_equal(some, tuples[numbers])
    bounds = np.array([0, 0, 7, 7, 30, 49, 50])  # some own nothing
    parts = backend.owned_draws(some, 3, bounds)
    assert len(parts) == 6
    for part, first, last in zip(parts, bounds[:-1], bounds[1:], strict=True):
        rows, columns = np.nonzero((some[:, 3:] >= first) & (some[:, 3:] < last))
        np.testing.assert_array_equal(np.repeat(part.cells, part.times), rows)
        np.testing.assert_array_equal(part.cells, np.unique(rows))
        np.testing.assert_array_equal(part.entities, some[:, 3:][rows, columns])
        assert [array.dtype for array in part] == [np.int32, np.uint8, np.int32]
        offsets, cells = backend.group_owned(part, int(first), int(last - first))
        expected = reference.group_drawn(some, 3, 50)
        np.testing.assert_array_equal(offsets, expected[0][first : last + 1] - expected[0][first])
        np.testing.assert_array_equal(cells, expected[1][expected[0][first] : expected[0][last]])
        assert (offsets.dtype, cells.dtype) == (np.int64, np.int32)


@every_backend
def test_draws_follow_activity_and_differ_between_sweeps_cells_and_places(name: str) -> None:
    tuples = np.zeros((40_000, 6), np.int32)
    tuples[:, 0] = np.random.default_rng(0).geometric(0.2, 40_000)
    backend = get_backend(name)
    backend.draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(0, 0))
    first = tuples[:, 2:].copy()
    activity = np.bincount(tuples[:, 0], minlength=80) / 40_000
    drawn = np.bincount(first.ravel(), minlength=80) / first.size
    assert np.abs(activity - drawn).max() < 4 * np.sqrt(0.2 * 0.8 / first.size) + 1e-9
    backend.draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(0, 1))
    same = (first == tuples[:, 2:]).mean()
    assert same == pytest.approx((activity**2).sum(), abs=0.01)
    assert np.corrcoef(first[:, 0], first[:, 1])[0, 1] == pytest.approx(0, abs=0.02)
    assert np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1] == pytest.approx(0, abs=0.02)


@every_backend
def test_more_negatives_do_not_change_the_first_ones(name: str) -> None:
    few, many = np.zeros((500, 4), np.int32), np.zeros((500, 7), np.int32)
    few[:, 0] = many[:, 0] = np.random.default_rng(0).integers(0, 99, 500)
    for tuples in (few, many):
        get_backend(name).draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(1, 1))
    np.testing.assert_array_equal(few[:, 2:], many[:, 2:4])


@pytest.mark.parametrize("rank", [3, 24])
@every_backend
def test_single_precision_storage_agrees_with_double(name: str, rank: int) -> None:
    view, sizes = random_view(5, rank)
    single = view._replace(factors=view.factors.astype(np.float32))
    double = single._replace(factors=single.factors.astype(np.float64))
    for mode in (0, 3):
        blocks = blocks_of(view, sizes, mode)
        stored = after_sweep(name, single, blocks, RULE)[0]
        np.testing.assert_allclose(stored, after_sweep(name, double, blocks, RULE)[0], rtol=1e-6, atol=1e-6)


def test_pieces_cover_every_position_once() -> None:
    lengths = np.array([0, 1, CHUNK, CHUNK + 1, 5 * CHUNK, 3])
    ends = np.cumsum(lengths)
    blocks = plan_blocks(0, np.arange(6), (ends - lengths, ends, np.zeros(int(ends[-1]), np.int32)))
    for e, length in enumerate(lengths):
        pieces = blocks.chunks[blocks.first_chunk[e] : blocks.first_chunk[e + 1]]
        covered = [p for _, a, b in pieces for p in range(a, b)]
        assert covered == (list(range(length)) if length > CHUNK else [])
    assert blocks.tasks[0] == 0
    assert blocks.tasks[-1] == 6


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    from ringleader.runtime.executor import Threads

    def fail(piece: int) -> None:
        raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece"):
        Threads(2).map(fail, range(4))


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(SettingsError, match="'abacus'"):
        get_backend("abacus")


def test_the_disk_cache_knows_every_file_it_compiles() -> None:
    # numba looks at the file of a kernel alone; a stale cache would run yesterday's helpers.
    folder = Path(numba_blocks.__file__).parent
    names = ("dual.py", "elementary.py", "lanes.py", "lanes_compiled.py", "solve.py", "sums.py", "work.py")
    checksum = hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()[:12]
    modules = numba_blocks, numba_bursts, numba_draws, numba_entries, numba_graphs, numba_grouped, numba_logarithms
    for module in (*modules, numba_curves, numba_matrices, numba_pairs, numba_ranked, numba_topics, numba_ways):
        assert checksum == module.COMPILED_FROM, f"write COMPILED_FROM = {checksum!r} into {module.__name__}"
