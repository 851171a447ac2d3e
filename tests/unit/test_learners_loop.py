"""The loop: resuming, stopping, touching a part, growing; every learner in every preset on every backend."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from ringleader.errors import LabelError, ModelFileError, NumericalError, SettingsError
from ringleader.kernels.protocol import backend_names, unavailable
from ringleader.known.labels import Target
from ringleader.learners import SweepInfo, fit_loop, get_learner
from ringleader.model.config import LEARNERS, PRESETS, ModelConfig
from ringleader.model.posterior import cell_evidence, cell_log_odds, head_log_odds
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import fresh_heads, start_state
from ringleader.model.state import State, extend_state
from ringleader.tensor.sparse import SparseTensor


def small_tensor(cells: int = 600, seed: int = 0, sizes: tuple[int, ...] = (40, 25, 10, 5, 8)) -> SparseTensor:
    rng = np.random.default_rng(seed)
    return SparseTensor.from_arrays(np.stack([rng.integers(0, n, cells) for n in sizes], 1), sizes=sizes)


def small_targets(seed: int = 0) -> tuple[Target, ...]:
    rng = np.random.default_rng(seed)
    some = np.arange(8, dtype=np.int32)
    return (
        Target(2, "abusive", "binary", some, rng.choice([-1.0, 1.0], 8)),
        Target(2, "age", "real", some[2:6], rng.normal(size=4)),
        Target(0, "paid", "binary", some * 2, rng.choice([-1.0, 1.0], 8)),
    )


def small_problem(preset: str = "default", **settings: object) -> Problem:
    config = ModelConfig.preset(preset, **{"rank": 4, "sweeps": 3, **settings})
    return build_problem(small_tensor(), small_targets(), config)


def same(one: State, two: State) -> bool:
    mine, other = one.to_arrays(), two.to_arrays()
    return all(np.array_equal(mine[k], other[k]) for k in mine)


SLOW_PAIRS = {("natural-gradient", "paper"), ("natural-gradient", "corrected"), ("sgd", "paper"), ("sgd", "default")}
SLOW_PAIRS |= {("online-em", "default"), ("online-em", "corrected"), ("batch-em", "corrected"), ("batch-em", "paper")}


@pytest.mark.parametrize(
    ("learner", "preset"),
    [
        pytest.param(learner, preset, marks=pytest.mark.slow if (learner, preset) in SLOW_PAIRS else ())
        for learner in LEARNERS
        for preset in PRESETS
    ],
)
def test_every_learner_runs_in_every_preset_on_every_backend(preset: str, learner: str) -> None:
    states = []
    backends = [n for n in backend_names() if unavailable(n) is None and not (learner == "gibbs" and "cuda" in n)]
    for backend in backends:
        settings = {"batch_size": 64} if preset == "paper" else {}
        problem = small_problem(preset, learner=learner, backend=backend, **settings)
        state, history = fit_loop(problem, start_state(problem))
        assert len(history) == state.sweep == 3
        assert all(np.isfinite(info.log_posterior) for info in history)
        states.append(state)
    for backend, state in zip(backends[1:], states[1:], strict=True):
        for name, array in states[0].to_arrays().items():
            same = state.to_arrays()[name]
            np.testing.assert_allclose(array, same, rtol=1e-6, atol=1e-8, err_msg=f"{backend} {name}")


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("learner", LEARNERS)
def test_ten_sweeps_are_four_a_save_a_load_and_six_more(preset: str, learner: str) -> None:
    settings = {"batch_size": 128} if preset == "paper" else {}
    problem = small_problem(preset, learner=learner, sweeps=10, heldout=0.1, **settings)
    whole, _ = fit_loop(problem, start_state(problem))
    part, _ = fit_loop(problem, start_state(problem), sweeps=4)
    stored = {name: array.tobytes() for name, array in part.to_arrays().items()}
    arrays = {
        name: np.frombuffer(stored[name], array.dtype).reshape(array.shape) for name, array in part.to_arrays().items()
    }
    again = small_problem(preset, learner=learner, sweeps=10, heldout=0.1, **settings)
    resumed, history = fit_loop(again, State.from_arrays(arrays))
    assert [info.sweep for info in history] == [5, 6, 7, 8, 9, 10]
    assert same(whole, resumed)


def test_the_callback_sees_every_sweep_and_can_stop() -> None:
    seen: list[SweepInfo] = []

    def watch(info: SweepInfo) -> bool:
        assert info.state is not None
        seen.append(info)
        return info.sweep == 2

    problem = small_problem()
    state, history = fit_loop(problem, start_state(problem), sweeps=9, callback=watch)
    assert [info.sweep for info in seen] == [1, 2]
    assert state.sweep == len(history) == 2
    assert history[0].state is None


def test_early_stopping_watches_the_held_out_likelihood_and_is_off_by_default() -> None:
    noise = small_problem(heldout=0.3, sweeps=40, patience=2, seed=3)
    state, history = fit_loop(noise, start_state(noise))
    assert 2 < state.sweep < 40
    values = [info.heldout_log_likelihood for info in history]
    assert max(values[-2:]) <= max(values[:-2])
    assert ModelConfig().patience == 0


def test_held_out_cells_do_not_move_the_factors() -> None:
    problem = small_problem(heldout=0.3)
    assert 0.2 < (problem.heldout > 0).mean() < 0.4
    state, _ = fit_loop(problem, start_state(problem))
    only = problem.weights > 0
    assert not (only & (problem.heldout > 0)).any()
    # An entity with held-out cells alone falls back to its prior.
    tensor = SparseTensor.from_arrays(np.array([[0, 0], [1, 1]]))
    lone = build_problem(tensor, (), ModelConfig(rank=2, negatives=0, step=1.0))
    for array in (np.array([1.0, 0.0]),):
        held = build_problem(tensor, (), lone.config)
        object.__setattr__(held, "weights", array)
        state, _ = fit_loop(held, start_state(held), sweeps=1)
        assert state.rows(0)[1].tolist() == [0.0, 0.0]


def test_touched_entities_move_and_no_others() -> None:
    problem = small_problem(sweeps=5)
    state, _ = fit_loop(problem, start_state(problem))
    before = state.copy()
    mask = np.zeros(25, bool)
    mask[[3, 4]] = True
    state, _ = fit_loop(problem, state, sweeps=1, touched={0: np.array([7]), 1: mask})
    moved = np.flatnonzero((state.factors != before.factors).any(axis=1))
    allowed = {7, 40 + 3, 40 + 4}
    assert moved.size
    assert set(moved.tolist()) <= allowed
    assert np.array_equal(state.component_weights, before.component_weights)


@pytest.mark.parametrize("learner", ["natural-gradient", "online-em"])
def test_a_state_grows_with_its_vocabularies(learner: str) -> None:
    problem = small_problem(learner=learner)
    state, _ = fit_loop(problem, start_state(problem))
    sizes = (44, 25, 12, 5, 9)
    grown = extend_state(state, sizes, rows={0: np.full((4, 4), 0.25)})
    for mode in range(5):
        np.testing.assert_array_equal(grown.rows(mode)[: problem.tensor.shape[mode]], state.rows(mode))
    assert (grown.rows(0)[40:] == 0.25).all()
    np.testing.assert_allclose(grown.rows(2)[10:], np.tile(state.rows(2).mean(axis=0), (2, 1)))
    larger = build_problem(small_tensor(700, 1, sizes), small_targets(), problem.config)
    grown, _ = fit_loop(larger, fresh_heads(larger, grown), sweeps=2)
    assert np.isfinite(grown.factors).all()
    with pytest.raises(ModelFileError, match="codes must stay"):
        extend_state(state, (3, 25, 12, 5, 9))


def test_leaving_the_finite_numbers_is_an_error_that_says_where() -> None:
    problem = small_problem()
    state = start_state(problem)
    state.factors[0, 0] = np.inf
    with pytest.raises(NumericalError, match=r"sweep 1.*smaller step"), np.errstate(all="ignore"):
        fit_loop(problem, state)


def test_the_seed_decides_and_nothing_else_does() -> None:
    one, two, other = (small_problem(seed=s) for s in (1, 1, 2))
    a, b, c = (fit_loop(p, start_state(p))[0] for p in (one, two, other))
    assert same(a, b)
    assert not same(a, c)


@pytest.mark.parametrize("learner", ["natural-gradient", pytest.param("online-em", marks=pytest.mark.slow)])
def test_threads_give_the_same_bits_in_another_process(learner: str) -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from ringleader.learners import fit_loop\n"
        "from ringleader.model.config import ModelConfig\n"
        "from ringleader.model.problem import build_problem\n"
        "from ringleader.model.start import start_state\n"
        "from ringleader.tensor.sparse import SparseTensor\n"
        "rng = np.random.default_rng(0)\n"
        "codes = np.stack([rng.integers(0, n, 30000) for n in (900, 300, 50, 5, 20)], 1)\n"
        "tensor = SparseTensor.from_arrays(codes)\n"
        "for threads in (1, 2, 4):\n"
        f"    config = ModelConfig.preset('corrected', learner={learner!r}, rank=5, sweeps=2, threads=threads)\n"
        "    problem = build_problem(tensor, (), config)\n"
        "    state, history = fit_loop(problem, start_state(problem))\n"
        "    digest = hashlib.sha256(state.factors.tobytes() + state.component_weights.tobytes())\n"
        "    print(digest.hexdigest(), [i.log_posterior for i in history])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_NUM_THREADS": "4"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.strip().splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1


def test_scores_do_not_depend_on_who_asked_before() -> None:
    problem = small_problem("corrected")
    state, _ = fit_loop(problem, start_state(problem))
    first = cell_evidence(problem, state)
    again = small_problem("corrected")
    loaded = State.from_arrays(state.to_arrays())
    np.testing.assert_array_equal(cell_evidence(again, loaded).leverage, first.leverage)
    np.testing.assert_allclose(cell_log_odds(again, loaded), first.log_odds, rtol=1e-12)
    assert head_log_odds(state, 0, problem.targets[0].mode).shape == (10,)


def test_counts_weigh_as_asked() -> None:
    codes = np.array([[0, 0], [1, 1], [1, 0]])
    tensor = SparseTensor.from_arrays(codes, counts=[1, 5, 2])
    for how, weights in {"one": [1, 1, 1], "log": [1, 1 + np.log(2), 1 + np.log(5)], "count": [1, 2, 5]}.items():
        problem = build_problem(tensor, (), ModelConfig(rank=2, count_weight=how, negatives=1))
        found = np.broadcast_to(problem.weights, 3)
        np.testing.assert_allclose(found, weights)
    # A cell counted twice is the cell given twice.
    problem = build_problem(tensor, (), ModelConfig(rank=2, count_weight="count", negatives=0, step=1.0))
    double = SparseTensor.from_arrays(codes, counts=[2, 10, 4])
    twice = build_problem(double, (), problem.config)
    a, b = start_state(problem), start_state(twice)
    one = problem.backend.block_moments(*_moments_at(problem, a))
    two = twice.backend.block_moments(*_moments_at(twice, b))
    np.testing.assert_allclose(2 * one[0], two[0])
    np.testing.assert_allclose(2 * one[1], two[1])


def _moments_at(problem: Problem, state: State) -> tuple:  # type: ignore[type-arg]
    from ringleader.model.negatives import draw_sweep, view_of

    return view_of(problem, state, draw_sweep(problem, 0)), problem.blocks(1), problem.rule(1)


def test_start_rows_are_taken_and_checked() -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (40, 4))
    problem = build_problem(small_tensor(), (), ModelConfig(rank=4), start_rows={0: rows})
    np.testing.assert_array_equal(start_state(problem).rows(0), rows)
    with pytest.raises(SettingsError, match=r"start rows of mode 0 have shape \(3, 4\)"):
        build_problem(small_tensor(), (), ModelConfig(rank=4), start_rows={0: rows[:3]})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank is 0"),
        ({"rank": 2.5}, "rank is 2.5"),
        ({"step": 1.5}, "step is 1.5"),
        ({"negatives": 64}, "negatives is 64"),
        ({"heldout": 1.0}, "heldout is 1.0"),
        ({"learner": "adam"}, "'adam'"),
        ({"b1": 0.0}, "b1 is 0.0"),
        ({"variance": float("nan")}, "variance is nan"),
        ({"rnak": 3}, "unknown setting rnak"),
        ({"step": True}, "step is True; choose a number above 0 and of at most 1"),
        ({"rank": True}, "rank is True"),
        ({"joint": 1}, "joint is 1; choose True or False"),
        ({"backend": "abacus"}, "backend is 'abacus'; choose numba, reference"),
        ({"patience": 3}, "patience needs the held-out likelihood"),
    ],
)
def test_senseless_settings_are_refused_by_name(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ModelConfig.preset("default", **settings)
    with pytest.raises(SettingsError, match=message):
        ModelConfig().replace(**settings)


def test_presets_and_learners_have_names() -> None:
    with pytest.raises(SettingsError, match="'fancy'"):
        ModelConfig.preset("fancy")
    with pytest.raises(SettingsError, match="'adam'"):
        get_learner("adam")
    config = ModelConfig.preset("paper", seed=3)
    assert ModelConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target(9, "t", "binary", np.array([0]), np.array([1.0])), "mode 9"),
        (Target(2, "t", "binary", np.array([99]), np.array([1.0])), "not among the 10"),
        (Target(2, "t", "binary", np.array([1, 1]), np.array([1.0, 1.0])), "twice"),
        (Target(2, "t", "binary", np.array([1]), np.array([0.5])), r"must be \+1 or -1"),
        (Target(2, "t", "real", np.array([1]), np.array([np.nan])), "not finite"),
        (Target(2, "t", "real", np.array([1, 2]), np.array([1.0])), "give one each"),
    ],
)
def test_labels_that_do_not_fit_are_refused(target: Target, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        build_problem(small_tensor(), (target,), ModelConfig(rank=2))


def test_contrast_can_be_any_mode_but_must_exist() -> None:
    for contrast in range(5):
        problem = small_problem(contrast=contrast)
        state, _ = fit_loop(problem, start_state(problem))
        assert np.isfinite(state.factors).all()
    with pytest.raises(SettingsError, match="contrast is mode 7"):
        small_problem(contrast=7)


def test_single_precision_storage_follows_double() -> None:
    double, single = small_problem(), small_problem(dtype="float32")
    a, _ = fit_loop(double, start_state(double), sweeps=2)
    b, _ = fit_loop(single, start_state(single), sweeps=2)
    assert b.factors.dtype == np.float32
    np.testing.assert_allclose(a.factors, b.factors, atol=2e-4)
