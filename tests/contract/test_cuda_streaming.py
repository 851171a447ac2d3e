"""A tensor that is larger than the GPU, and several GPUs: the bits of one that holds everything."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ringleader.kernels.cuda.backend import CudaBackend
from ringleader.kernels.cuda.emulated import EmulatedDevice, compiler
from ringleader.kernels.cuda.host_tensor import StreamedTuples
from ringleader.kernels.cuda.ranges import cut_ranges
from ringleader.kernels.layout import CHUNK, plan_blocks
from ringleader.kernels.protocol import get_backend
from ringleader.known.labels import Target
from ringleader.learners import fit_loop
from ringleader.learners.loop import get_learner
from ringleader.model.config import ModelConfig
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.objective import log_likelihood
from ringleader.model.posterior import cell_evidence, cell_log_odds
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.tensor.sparse import SparseTensor

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no g++ or clang++ to compile the emulation with")

CELLS = 9000
LIMIT = 1
"""Bytes: no tensor fits, and ranges are as small as they can be (2 CHUNK positions)."""


def tensor() -> SparseTensor:
    """Entities with one cell, and some with more than a chunk."""
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.geometric(p, CELLS) - 1, n - 1) for p, n in ((0.02, 200), (0.15, 30), (0.3, 10))]
    codes = np.unique(np.stack(columns, axis=1), axis=0)
    counts = rng.integers(1, 5, len(codes))
    made = SparseTensor.from_arrays(codes)
    return dataclasses.replace(made, counts=counts)


def targets(sparse: SparseTensor) -> list[Target]:
    rng = np.random.default_rng(2)
    chosen = rng.choice(sparse.shape[0], 20, replace=False).astype(np.int32)
    return [Target(0, "fraud", "binary", np.sort(chosen), rng.choice([-1.0, 1.0], 20))]


def with_devices(problem: Problem, *devices: EmulatedDevice) -> Problem:
    """The same problem on these devices, with nothing laid out yet."""
    backend = CudaBackend("cuda-emulated", devices, get_backend("numba", 1))
    fresh = {name: type(getattr(problem, name))() for name in ("plans", "draws")}
    return dataclasses.replace(problem, backend=backend, **fresh)


def problem_of(labels: bool = False, **settings: object) -> Problem:
    sparse = tensor()
    options = {"rank": 3, "sweeps": 2, "start": "half-normal", "backend": "cuda-emulated", **settings}
    config = ModelConfig.preset("default", **options)  # type: ignore[arg-type]
    return build_problem(sparse, targets(sparse) if labels else (), config)


def fitted(problem: Problem) -> State:
    return fit_loop(problem, start_state(problem))[0]


def same_state(one: State, other: State) -> None:
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, other.to_arrays()[name], err_msg=name)


SETTINGS: list[dict[str, object]] = [
    {},
    {"contrast": 1},
    {"negatives": 0},
    {"count_weight": "log", "heldout": 0.1},
    {"labels": True, "joint": True},
    {"batch_size": 700, "carry": True},
    {"learner": "sgd"},
    {"learner": "online-em"},
    {"learner": "batch-em", "redraw": False},
]


QUICK = {0: (1, 2), 5: (1, 2)}
"""Numbers of devices by the place of the settings: the default, and batches; others are quick with two devices."""
CASES = [
    pytest.param(
        settings,
        devices,
        marks=() if devices in QUICK.get(place, (2,)) else pytest.mark.slow,
        id="-".join(map(str, [devices, *(settings or ["default"])])),
    )
    for place, settings in enumerate(SETTINGS)
    for devices in (1, 2, 3)
]


@pytest.mark.parametrize(("settings", "devices"), CASES)
def test_a_fit_in_ranges_has_the_bits_of_one_that_is_on_the_device(settings: dict[str, object], devices: int) -> None:
    problem = problem_of(**settings)  # type: ignore[arg-type]
    split = with_devices(problem, *(EmulatedDevice(limit=LIMIT) for _ in range(devices)))
    expected = fitted(with_devices(problem, EmulatedDevice()))
    same_state(fitted(split), expected)
    assert split.backend._streaming._tensors, "the tensor was on the device after all"


def test_every_operation_in_ranges_has_the_same_bits() -> None:
    problem = problem_of(count_weight="log")
    resident, streamed = (with_devices(problem, EmulatedDevice(limit=limit)) for limit in (None, LIMIT))
    state = fitted(resident)
    found = []
    for one in (resident, streamed):
        tuples = draw_sweep(one, 1)
        view, drawn = view_of(one, state, tuples), group_negatives(one, tuples)
        assert drawn is not None
        outcome = [*cell_evidence(one, state), *cell_evidence(one, state, 1), cell_log_odds(one, state)]
        outcome += [np.array(log_likelihood(one, state)), one.backend.fetch(tuples), one.backend.fetch(drawn[0])]
        outcome.append(one.backend.take(tuples, np.array([7, 3, 3])))
        for mode in range(3):
            some = np.array([0, 2, 5])
            for entities in (None, some):
                blocks = one.blocks(mode, drawn if mode == 0 else None, entities)
                outcome += one.backend.block_moments(view, blocks, one.rule(mode))
        outcome += one.backend.lambda_moments(view, np.arange(len(tuples), dtype=np.int32), one.rule(0))
        outcome += one.backend.lambda_moments(view, np.array([4, 1, 2, 900], np.int32), one.rule(0))
        found.append(outcome)
    assert isinstance(draw_sweep(streamed, 1), StreamedTuples)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("devices", [1, 2])
def test_touched_entities_move_to_the_same_bits(devices: int) -> None:
    problem = problem_of()
    touched = {0: np.array([3, 1, 70]), 1: np.array([0, 5]), 2: np.array([0])}
    moved = []
    for one in (
        with_devices(problem, EmulatedDevice()),
        with_devices(problem, *(EmulatedDevice(limit=LIMIT) for _ in range(devices))),
    ):
        learner = get_learner(one.config.learner)
        moved.append(learner.sweep(one, start_state(one), touched))
    same_state(*moved)


@pytest.mark.parametrize("capacity", [2 * CHUNK, 5000, 10**9])
@pytest.mark.parametrize("cut_long", [True, False])
def test_ranges_cover_every_position_once_and_cut_between_chunks_only(capacity: int, cut_long: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        lengths = rng.choice([0, 1, 900, CHUNK, CHUNK + 1, 3 * CHUNK, 9999], rng.integers(1, 12))
        ends = np.cumsum(lengths)
        blocks = plan_blocks(0, np.arange(len(lengths)), (ends - lengths, ends, np.zeros(int(ends[-1]), np.int32)))
        edges = np.concatenate([[0], ends])
        ranges = cut_ranges(np, edges, blocks.first_chunk, capacity, cut_long=cut_long)
        position = chunk = 0
        for place in ranges:
            assert (place.begin, place.first_chunk) == (position, chunk)
            assert edges[place.first] <= place.begin <= place.end <= edges[place.last]
            for edge in (place.begin, place.end):
                inside = edge - edges[np.searchsorted(edges, edge, side="right") - 1]
                assert inside == 0 or (cut_long and inside % CHUNK == 0)
            assert place.end - place.begin <= max(capacity, 2 * CHUNK) or place.last - place.first == 1
            position, chunk = place.end, place.last_chunk
        assert (position, chunk) == (edges[-1], len(blocks.chunks))
        covered = np.concatenate([np.arange(place.first, place.last) for place in ranges])
        assert set(covered) == set(range(len(lengths)))
