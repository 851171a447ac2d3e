"""Every operation of the compiled backend against the reference, over modes, ranks and odd shapes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from ringleader.counters import stream_key
from ringleader.errors import SettingsError
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
from ringleader.kernels.numba import entries as numba_entries
from ringleader.kernels.numba.backend import NumbaBackend
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.reference import blocks as reference

MODES_AND_RANKS = [(2, 1), (2, 24), (3, 4), (3, 64), (4, 7), (5, 10), (5, 24), (6, 33)]
RULE = Rule(0, 0, 0.8, 1.0, True, 1.0, 0.0, 0.0, 0.0, 1.0)


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


def after_sweep(ops_name: str, view: View, blocks: Blocks, rule: Rule, terms: Terms | None = None) -> list[np.ndarray]:
    rank = view.factors.shape[1]
    mine = view._replace(factors=view.factors.copy())
    terms = no_terms(rank) if terms is None else terms
    cavity = np.zeros((len(terms.target), rank))
    statistics = no_statistics(rank)
    if rule.action == 2:
        count = int(blocks.entities.max()) + 1
        rng = np.random.default_rng(3)
        second = np.zeros((count, rank * (rank + 1) // 2))
        upper = np.triu_indices(rank)
        for n in range(0, count, 2):  # every other entity has been seen before
            root = rng.normal(size=(rank, rank))
            second[n] = (root @ root.T)[upper]
        statistics = Statistics(second, rng.normal(size=(count, rank)))
    get_backend(ops_name).sweep_blocks(mine, blocks, rule, terms, statistics, cavity)
    return [mine.factors, cavity, statistics.second, statistics.first]


@pytest.mark.parametrize(("modes", "rank"), MODES_AND_RANKS)
@pytest.mark.parametrize("negatives", [0, 4])
def test_block_and_lambda_moments(modes: int, rank: int, negatives: int) -> None:
    view, sizes = random_view(modes, rank, negatives=negatives, contrast=modes % 3 % modes)
    numba, slow = get_backend("numba"), get_backend("reference")
    for rule in (RULE, RULE._replace(curvature=1, half=0.5)):
        for mode in range(modes):
            blocks = blocks_of(view, sizes, mode)
            for fast, true in zip(
                numba.block_moments(view, blocks, rule), slow.block_moments(view, blocks, rule), strict=True
            ):
                np.testing.assert_allclose(fast, true, rtol=1e-10, atol=1e-12)
        cells = np.arange(len(view.tuples), dtype=np.int32)
        for fast, true in zip(
            numba.lambda_moments(view, cells, rule), slow.lambda_moments(view, cells, rule), strict=True
        ):
            np.testing.assert_allclose(fast, true, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("modes", "rank"), MODES_AND_RANKS)
@pytest.mark.parametrize("action", [0, 1, 2])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_sweeps(modes: int, rank: int, action: int, nonnegative: bool) -> None:
    view, sizes = random_view(modes, rank, seed=rank)
    rule = RULE._replace(action=action, nonnegative=nonnegative, step=0.05 if action == 1 else 0.8, decay=0.3)
    for mode in (0, modes - 1):
        blocks = blocks_of(view, sizes, mode)
        for fast, true in zip(
            after_sweep("numba", view, blocks, rule), after_sweep("reference", view, blocks, rule), strict=True
        ):
            np.testing.assert_allclose(fast, true, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("curvature", [0, 1])
def test_sweeps_with_labels_cavities_and_learned_variances(curvature: int) -> None:
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
    fast, true = after_sweep("numba", view, blocks, rule, terms), after_sweep("reference", view, blocks, rule, terms)
    for a, b in zip(fast, true, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    assert (true[1][::2] != 0).any()
    assert (true[1][1::2] == 0).all()  # one cavity row per entity, at its first label


def test_long_lists_are_summed_in_pieces() -> None:
    view, sizes = random_view(3, 5, cells=9000, spread=6)
    for mode in range(3):
        blocks = blocks_of(view, sizes, mode)
        assert len(blocks.chunks) > 1
        for fast, true in zip(
            get_backend("numba").block_moments(view, blocks, RULE),
            get_backend("reference").block_moments(view, blocks, RULE),
            strict=True,
        ):
            np.testing.assert_allclose(fast, true, rtol=1e-9)


def test_some_entities_can_be_swept_alone() -> None:
    view, sizes = random_view(3, 5)
    for mode in range(3):
        some = np.array([1, 4, 7])
        part = after_sweep("numba", view, blocks_of(view, sizes, mode, some), RULE)[0]
        whole = after_sweep("numba", view, blocks_of(view, sizes, mode), RULE)[0]
        rows = view.starts[mode] + some
        np.testing.assert_array_equal(part[rows], whole[rows])
        part[rows] = view.factors[rows]
        np.testing.assert_array_equal(part, view.factors)


@pytest.mark.parametrize("modes", [2, 5])
def test_likelihood_log_odds_and_leave_one_out(modes: int) -> None:
    view, sizes = random_view(modes, 9, cells=5000)
    numba, slow = get_backend("numba"), get_backend("reference")
    np.testing.assert_allclose(numba.log_likelihood(view), slow.log_likelihood(view), rtol=1e-12)
    codes = view.tuples[:, :modes]
    np.testing.assert_allclose(numba.log_odds(view, codes), slow.log_odds(view, codes), rtol=1e-12)
    for mode in (0, 1):
        blocks = blocks_of(view, sizes, mode)
        for fast, true in zip(
            numba.leave_one_out(view, blocks, RULE), slow.leave_one_out(view, blocks, RULE), strict=True
        ):
            np.testing.assert_allclose(fast, true, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("negatives", [1, 4, 63])
def test_draws_are_the_same_bits_and_grouped_alike(negatives: int) -> None:
    tuples = np.zeros((3000, 3 + negatives), np.int32)
    tuples[:, :3] = np.random.default_rng(0).integers(0, 50, (3000, 3))
    fast, slow = tuples.copy(), tuples.copy()
    key = stream_key(7, 3)
    get_backend("numba").draw_negatives(fast, 3, fast[:, 1].copy(), key)
    get_backend("reference").draw_negatives(slow, 3, slow[:, 1].copy(), key)
    np.testing.assert_array_equal(fast, slow)
    for a, b in zip(
        get_backend("numba").group_drawn(fast, 3, 60), get_backend("reference").group_drawn(fast, 3, 60), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_draws_follow_activity_and_differ_between_sweeps_cells_and_places() -> None:
    tuples = np.zeros((40_000, 6), np.int32)
    tuples[:, 0] = np.random.default_rng(0).geometric(0.2, 40_000)
    ops = get_backend("numba")
    ops.draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(0, 0))
    first = tuples[:, 2:].copy()
    activity = np.bincount(tuples[:, 0], minlength=80) / 40_000
    drawn = np.bincount(first.ravel(), minlength=80) / first.size
    assert np.abs(activity - drawn).max() < 4 * np.sqrt(0.2 * 0.8 / first.size) + 1e-9
    ops.draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(0, 1))
    same = (first == tuples[:, 2:]).mean()
    assert same == pytest.approx((activity**2).sum(), abs=0.01)
    assert np.corrcoef(first[:, 0], first[:, 1])[0, 1] == pytest.approx(0, abs=0.02)
    assert np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1] == pytest.approx(0, abs=0.02)


def test_more_negatives_do_not_change_the_first_ones() -> None:
    few, many = np.zeros((500, 4), np.int32), np.zeros((500, 7), np.int32)
    few[:, 0] = many[:, 0] = np.random.default_rng(0).integers(0, 99, 500)
    for tuples in (few, many):
        get_backend("numba").draw_negatives(tuples, 2, tuples[:, 0].copy(), stream_key(1, 1))
    np.testing.assert_array_equal(few[:, 2:], many[:, 2:4])


@pytest.mark.parametrize("rank", [3, 24])
def test_single_precision_storage_agrees_with_double(rank: int) -> None:
    view, sizes = random_view(5, rank)
    single = view._replace(factors=view.factors.astype(np.float32))
    double = single._replace(factors=single.factors.astype(np.float64))
    for mode in (0, 3):
        blocks = blocks_of(view, sizes, mode)
        fast = after_sweep("numba", single, blocks, RULE)[0]
        np.testing.assert_allclose(fast, after_sweep("numba", double, blocks, RULE)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_number_of_threads_does_not_change_a_bit(threads: int) -> None:
    view, sizes = random_view(5, 12, cells=40_000, spread=400)
    ops, one = NumbaBackend(threads), NumbaBackend(1)
    for mode in (0, 1):
        blocks = blocks_of(view, sizes, mode)
        assert len(blocks.chunks) > 1
        for a, b in zip(ops.block_moments(view, blocks, RULE), one.block_moments(view, blocks, RULE), strict=True):
            np.testing.assert_array_equal(a, b)
    assert ops.log_likelihood(view) == one.log_likelihood(view)


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
    from ringleader.kernels.threads import share_pieces

    def fail(piece: int) -> None:
        raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece"):
        share_pieces(fail, range(4), 2)


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(SettingsError, match="'cuda'"):
        get_backend("cuda")


def test_the_disk_cache_knows_every_file_it_compiles() -> None:
    # numba looks at the file of a kernel alone; a stale cache would run yesterday's helpers.
    folder = Path(numba_blocks.__file__).parent
    sources = b"".join((folder / name).read_bytes() for name in ("lanes.py", "solve.py", "sums.py"))
    checksum = hashlib.sha256(sources).hexdigest()[:12]
    for module in (numba_blocks, numba_entries):
        assert checksum == module.COMPILED_FROM, f"write COMPILED_FROM = {checksum!r} into {module.__name__}"
