"""States and problems are values: nothing that is asked of them changes them, nor another's answer."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from ringleader.errors import SettingsError
from ringleader.known.labels import Target
from ringleader.learners import SweepInfo, fit_loop, get_learner
from ringleader.model.config import LEARNERS, ModelConfig
from ringleader.model.negatives import draw_sweep, negatives_of
from ringleader.model.objective import heldout_log_likelihood, log_likelihood
from ringleader.model.posterior import cell_evidence
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import FARTHEST, start_state
from ringleader.tensor.sparse import SparseTensor


def small_problem(**settings: object) -> Problem:
    rng = np.random.default_rng(0)
    tensor = SparseTensor.from_arrays(np.stack([rng.integers(0, n, 300) for n in (40, 15, 5)], axis=1))
    target = Target(1, "bad", "binary", np.arange(6, dtype=np.int32), np.array([1.0, -1.0] * 3))
    chosen = {"rank": 3, "sweeps": 3, "heldout": 0.2, **settings}
    return build_problem(tensor, (target,), ModelConfig.preset("corrected", **chosen))


def bits(state: object) -> list[bytes]:
    return [array.tobytes() for array in state.to_arrays().values()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("batch_size", [0, 64])
@pytest.mark.parametrize("touched", [False, True])
def test_a_fit_leaves_the_state_it_began_with_untouched(learner: str, batch_size: int, touched: bool) -> None:
    problem = small_problem(learner=learner, batch_size=batch_size)
    first = start_state(problem)
    before = bits(first)
    kept: list[tuple[SweepInfo, list[bytes]]] = []

    def keep(info: SweepInfo) -> None:
        kept.append((info, bits(info.state)))

    last, _ = fit_loop(problem, first, callback=keep, touched={0: np.arange(9)} if touched else None)
    assert bits(first) == before
    assert bits(last) != before
    for info, then in kept:  # what a callback keeps stays as it was
        assert bits(info.state) == then
    assert bits(get_learner(learner).sweep(problem, first)) != before
    assert bits(first) == before


@pytest.mark.parametrize("learner", ["natural-gradient", "gibbs"])
def test_the_likelihood_of_a_sweep_is_of_its_negatives_whoever_draws_in_between(learner: str) -> None:
    problem = small_problem(learner=learner)
    _, quiet = fit_loop(problem, start_state(problem))
    states, measured = [], []

    def interrupt(info: SweepInfo) -> None:
        states.append(info.state)
        for earlier in states:  # evidence of other sweeps asks for other draws
            cell_evidence(problem, earlier)
            cell_evidence(problem, earlier, 1)
        draw_sweep(problem, 77)
        measured.append((log_likelihood(problem, info.state), heldout_log_likelihood(problem, info.state)))  # type: ignore[arg-type]

    _, interrupted = fit_loop(problem, start_state(problem), callback=interrupt)
    assert interrupted == quiet
    assert [value for _, value in measured] == [info.heldout_log_likelihood for info in quiet]
    for state, value in zip(states, measured, strict=True):  # and later, in any order
        assert (log_likelihood(problem, state), heldout_log_likelihood(problem, state)) == value


def test_threads_that_ask_for_different_sweeps_each_get_their_own() -> None:
    problem = small_problem()
    alone = {sweep: draw_sweep(small_problem(), sweep).copy() for sweep in range(4)}
    wrong: list[int] = []

    def ask(sweep: int) -> None:
        wrong.extend(sweep for _ in range(50) if not np.array_equal(draw_sweep(problem, sweep), alone[sweep]))

    threads = [threading.Thread(target=ask, args=(sweep,)) for sweep in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not np.array_equal(alone[0], alone[1])


def test_the_sampler_and_its_evidence_use_the_negatives_of_the_first_sweep() -> None:
    problem = small_problem(learner="gibbs")
    state, _ = fit_loop(problem, start_state(problem))
    assert state.sweep == 3
    np.testing.assert_array_equal(negatives_of(problem, state), draw_sweep(problem, 0))
    drawing = small_problem()
    with pytest.raises(SettingsError, match="keeps its negatives"):
        get_learner("gibbs").sweep(drawing, start_state(drawing))


def test_the_arrays_of_a_problem_cannot_be_written_to_and_it_can_be_sent_elsewhere() -> None:
    problem = small_problem()
    for array in (problem.weights, problem.heldout, problem.starts, draw_sweep(problem, 1), draw_sweep(problem, 2)):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    again = pickle.loads(pickle.dumps(problem))
    assert bits(fit_loop(again, start_state(again))[0]) == bits(fit_loop(problem, start_state(problem))[0])


def test_random_rows_end_where_a_logarithm_of_the_c_library_would_enter_them() -> None:
    people = np.arange(30_000)
    tensor = SparseTensor.from_arrays(np.stack([people, people % 7], axis=1))
    rows = start_state(build_problem(tensor, (), ModelConfig(rank=8, start="half-normal"))).factors
    drawn = np.random.default_rng([0, 0x57A27]).standard_normal(rows.shape)
    beyond = np.abs(drawn) > FARTHEST
    assert 30 < beyond.sum() < 100  # of 240,000, one in 3,800
    np.testing.assert_array_equal(rows[~beyond], np.abs(0.5 + 0.3 * drawn)[~beyond])
    assert set(rows[beyond]) == {abs(0.5 - 0.3 * FARTHEST), 0.5 + 0.3 * FARTHEST}
