"""Sweeps on workers: the bits of one process, for any number of workers and any way to deal the modes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from in_process import InProcess, Mortal
from markets import SIZES, small_problem

from ringleader.errors import SettingsError, WorkerLost
from ringleader.learners.cluster import ClusterLearner
from ringleader.learners.loop import SweepInfo, fit_loop, get_learner
from ringleader.model.config import ModelConfig
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.runtime import mapped
from ringleader.shares.deal import Deal, chunk_places, deal_cells, deal_keys, joined_deals
from ringleader.shares.ranges import Ranges, cut_ranges
from ringleader.tensor.sparse import SparseTensor

FITS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {}),
    "default with labels": ("default", {"labels": True}),
    "corrected, without labels": ("corrected", {}),
    "corrected, labels move the factors": ("corrected", {"labels": True, "head_evidence": False}),
    "corrected, heads read evidence": ("corrected", {"labels": True}),
    "held-out reviews, weighted cells, another contrast": (
        "default",
        {"heldout": 0.1, "count_weight": "log", "contrast": 1},
    ),
    "held-out reviews without negatives": ("default", {"heldout": 0.1, "negatives": 0}),
    "weighted cells without negatives": ("default", {"count_weight": "log", "negatives": 0}),
    "online EM": ("corrected", {"labels": True, "learner": "online-em", "head_evidence": False}),
    "batch EM": ("default", {"labels": True, "learner": "batch-em"}),
    "gradients over all entries": ("default", {"learner": "sgd", "batch_size": 0}),
    "single precision without negatives": ("default", {"dtype": "float32", "negatives": 0}),
    "the same negatives in every sweep": ("default", {"redraw": False}),
    "no objective": ("default", {"track_objective": False}),
}


def dealt(problem: Problem, ranges: Ranges, key: int) -> list[Deal]:
    """The cells of one key of each worker."""
    alike = None if problem.weighted else problem.weights
    rounds = list(deal_cells(problem, ranges, key, chunk_places(problem, ranges)))
    return [joined_deals(own, alike) for own in zip(*rounds, strict=True)]


def on_workers(problem: Problem, state: State, workers: Any, dealt_from: int | None) -> tuple[State, list[SweepInfo]]:
    learner = ClusterLearner(workers, get_learner(problem.config.learner), dealt_from)
    return fit_loop(problem, state, learner, measure=learner.likelihoods)


def assert_same(found: tuple[State, list[SweepInfo]], expected: tuple[State, list[SweepInfo]]) -> None:
    for name, array in expected[0].to_arrays().items():
        np.testing.assert_array_equal(found[0].to_arrays()[name], array, err_msg=name)
    assert repr(found[1]) == repr(expected[1])  # every likelihood to its last digit, NaN where there is none


@pytest.mark.parametrize("fit", FITS)
def test_any_number_of_workers_gives_the_bits_of_one_process(fit: str) -> None:
    preset, settings = FITS[fit]
    problem = small_problem(preset, **settings)
    start = start_state(problem)
    expected = fit_loop(problem, start)
    bounds = ((1, 100), (2, 10**9), (2, None)) if fit.startswith("default") else ()
    for workers, dealt_from in ((2, 10), (3, 30), *bounds):
        assert_same(on_workers(problem, start, InProcess(workers), dealt_from), expected)


@pytest.mark.parametrize("fit", ["default", "corrected, labels move the factors"])
def test_blocks_of_few_entries_have_the_same_bits_on_workers(fit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("kernels.host_arrays", "shares.part"):
        monkeypatch.setattr(f"ringleader.{module}.DUAL_FROM", 30)
    preset, settings = FITS[fit]
    problem = small_problem(preset, **settings)
    assert any(problem.blocks(mode).dual for mode in range(problem.modes))
    start = start_state(problem)
    expected = fit_loop(problem, start)
    for workers, dealt_from in ((1, 10), (2, 30), (3, 20)):
        assert_same(on_workers(problem, start, InProcess(workers), dealt_from), expected)


@pytest.mark.parametrize("part", [0.0, 2.0])  # all rows are held, or those alone that are needed
def test_holding_more_rows_than_a_sweep_needs_changes_no_bit(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.shares.table.WHOLE", part)
    for settings in ({"labels": True}, {"heldout": 0.1, "count_weight": "log", "contrast": 1}):
        problem = small_problem(**settings)
        start = start_state(problem)
        expected = fit_loop(problem, start)
        assert_same(on_workers(problem, start, InProcess(3), 10), expected)


def test_rows_that_only_draws_name_stand_behind_those_that_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.shares.table.WHOLE", 2.0)
    problem, workers = small_problem(cells=300, negatives=1), InProcess(4)
    learner = ClusterLearner(workers, get_learner("natural-gradient"), 10)
    state, before = start_state(problem), []
    for _ in range(2):
        state = learner.sweep(problem, state)
        before.append([dict(worker.memory["part"].table.codes) for worker in workers.workers])
    for first, second in zip(*before, strict=True):
        assert all(first[mode] is second[mode] for mode in first)
    tables = [worker.memory["part"].table for worker in workers.workers]
    assert any(table.starts[1] > len(table.codes[0]) for table in tables)  # some were only drawn


def test_more_workers_than_entities_of_a_mode_leave_some_idle() -> None:
    problem = small_problem(labels=True)
    start = start_state(problem)
    assert_same(on_workers(problem, start, InProcess(9), 3), fit_loop(problem, start))


@pytest.mark.parametrize(
    ("negatives", "workers"),
    [
        (0, 20),
        (1, 12),
        *(pytest.param(*other, marks=pytest.mark.slow) for other in ((0, 5), (0, 12), (1, 5), (1, 20))),
    ],
)
def test_workers_with_one_weighted_cell_or_none_have_the_same_bits(negatives: int, workers: int) -> None:
    problem = small_problem(cells=12, heldout=0.1, count_weight="log", negatives=negatives)
    start = start_state(problem)
    assert_same(on_workers(problem, start, InProcess(workers), 30), fit_loop(problem, start))


def test_threads_of_a_worker_do_not_change_a_bit() -> None:
    problem = small_problem("corrected", labels=True, head_evidence=False)
    start = start_state(problem)
    assert_same(on_workers(problem, start, InProcess(2, threads=2), 100), fit_loop(problem, start))


def test_a_fit_goes_on_with_another_number_of_workers() -> None:
    problem = small_problem("corrected", labels=True, head_evidence=False)
    state = start_state(problem)
    expected = fit_loop(problem, state)[0]
    for workers in (3, 1, 2):
        learner = ClusterLearner(InProcess(workers), get_learner(problem.config.learner), 100)
        stored = State.from_arrays(state.to_arrays())  # as from a checkpoint
        state, _ = fit_loop(problem, stored, learner, sweeps=1, measure=learner.likelihoods)
    for name, array in expected.to_arrays().items():
        np.testing.assert_array_equal(state.to_arrays()[name], array, err_msg=name)


@pytest.mark.parametrize(  # while dealing cells and rows out, and in each sweep
    "death", [pytest.param(call, marks=() if call % 2 else pytest.mark.slow) for call in range(1, 10)]
)
def test_a_lost_worker_costs_a_sweep_and_no_bit(death: int) -> None:
    problem = small_problem(labels=True)
    start = start_state(problem)
    with pytest.warns(UserWarning, match=r"worker 1 is gone; new workers do sweep \d again"):
        found = on_workers(problem, start, Mortal(2, {death}), 100)
    assert_same(found, fit_loop(problem, start))


@pytest.mark.filterwarnings("ignore:worker 1 is gone")
def test_workers_that_are_lost_again_and_again_stop_the_fit_with_what_to_do() -> None:
    problem = small_problem()
    learner = ClusterLearner(Mortal(2, set(range(1, 99))), get_learner("natural-gradient"), 100)
    with pytest.raises(WorkerLost, match=r"worker 1 is gone; sweep 1 was tried 3 times; .* continue with resume=True"):
        learner.sweep(problem, start_state(problem))


def test_a_worker_gets_its_share_of_the_cells_and_no_more() -> None:
    problem = small_problem()
    workers = InProcess(4)
    learner = ClusterLearner(workers, get_learner("natural-gradient"), 100)
    learner.sweep(problem, start_state(problem))
    cells = problem.tensor.n_cells
    for worker in workers.workers:
        part = worker.memory["part"]
        for deal in part.deals.values():
            assert deal.own < 0.6 * cells
        # Of a dealt mode it holds rows that its cells name, of the others all.
        assert all(len(part.table.codes[k]) <= SIZES[k] for k in part.table.codes)
        assert set(part.table.codes) == {0, 1}


def test_ranges_cover_every_entity_and_cell_once() -> None:
    tensor = small_problem().tensor
    for workers in (1, 2, 3, 8, 50):
        ranges = cut_ranges(tensor, ModelConfig(), workers, 30)
        assert ranges.dealt == (True, True, True, False, False)
        for mode, size in enumerate(SIZES):
            assert ranges.bounds[mode][0] == 0
            assert ranges.bounds[mode][-1] == size
            assert (np.diff(ranges.bounds[mode]) >= 0).all()
        assert ranges.cells[0] == 0
        assert ranges.cells[-1] == tensor.n_cells


def test_lists_of_few_chunks_are_dealt_out_so_that_no_worker_adds_up_nearly_all() -> None:
    rng = np.random.default_rng(0)
    cells, sizes = 20_000, (2_000, 500, 2)
    skewed = [(size * rng.beta(0.6, 2.0, cells)).astype(np.int32) for size in sizes]
    tensor = SparseTensor.from_arrays(np.stack(skewed, axis=1))
    ranges = cut_ranges(tensor, ModelConfig(), 2)
    assert ranges.dealt == (True, True, False)  # half of the cells name one of the two: its chunks are shared
    problem = build_problem(tensor, (), ModelConfig())

    def most(ranges: Ranges) -> int:
        return max(len(deal.numbers) for key in deal_keys(ranges) for deal in dealt(problem, ranges, key))

    assert most(ranges) < 0.7 * tensor.n_cells
    assert most(cut_ranges(tensor, ModelConfig(), 2, 10**9)) > 0.95 * tensor.n_cells
    assert cut_ranges(tensor, ModelConfig(), 1).dealt == (True, False, False)  # one worker has nobody to share with


def test_cells_behind_a_range_complete_the_chunks_that_begin_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "PIECE", 400)  # 20 cells
    monkeypatch.setattr("ringleader.shares.deal.CHUNK", 16)
    monkeypatch.setattr("ringleader.shares.deal.LIKELIHOOD_PIECE", 16)
    problem = small_problem()
    codes, ranges = problem.tensor.coordinates, cut_ranges(problem.tensor, problem.config, 3, 30)
    for rank, found in enumerate(dealt(problem, ranges, deal_keys(ranges)[0])):
        first, last = ranges.cells[rank : rank + 2].tolist()
        expected = {*range(first, last), *range(last, min(-(-last // 16) * 16, len(codes)))}
        for mode in (3, 4):
            for entity in range(SIZES[mode]):
                own = np.flatnonzero(codes[:, mode] == entity)
                begun = [own[a : a + 16] for a in range(0, len(own), 16) if first <= own[a] < last]
                expected |= {int(cell) for chunk in begun for cell in chunk}
        assert set(found.numbers[: found.own].tolist()) == set(range(first, last))
        assert found.numbers.tolist() == sorted(expected)
        np.testing.assert_array_equal(found.codes, codes[found.numbers])
    for rank, found in enumerate(dealt(problem, ranges, 1)):
        own = np.flatnonzero((codes[:, 1] >= ranges.bounds[1][rank]) & (codes[:, 1] < ranges.bounds[1][rank + 1]))
        np.testing.assert_array_equal(found.numbers, own)
        np.testing.assert_array_equal(found.codes, codes[own])
        assert found.own == len(own)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "gibbs"}, "learner gibbs runs in one process only"),
        ({"learner": "sgd"}, r"batches of 4096 cells \(learner sgd\) run in one process only"),
        ({"backend": "reference"}, "backend reference runs in one process only"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    problem = small_problem(**settings)
    with pytest.raises(SettingsError, match=message):
        on_workers(problem, start_state(problem), InProcess(2), 100)


def test_new_reviews_are_taken_in_by_one_process() -> None:
    problem = small_problem()
    learner = ClusterLearner(InProcess(2), get_learner("natural-gradient"))
    with pytest.raises(SettingsError, match="updates all entities"):
        learner.sweep(problem, start_state(problem), {0: np.ones(1)})
