"""Numbers stay finite where the data is too small, too equal or too large."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.known.labels import Target
from ringleader.learners import fit_loop
from ringleader.model.config import PRESETS, ModelConfig
from ringleader.model.posterior import cell_evidence
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.tensor.sparse import SparseTensor

THREE = ("natural-gradient", "sgd", "online-em")


def run(tensor: SparseTensor, targets: tuple[Target, ...], preset: str, learner: str, **settings: object) -> None:
    batch = {"batch_size": 32} if preset == "paper" else {}
    config = ModelConfig.preset(preset, **{"learner": learner, "rank": 6, "sweeps": 6, **batch, **settings})
    problem = build_problem(tensor, targets, config)
    state, history = fit_loop(problem, start_state(problem))
    assert np.isfinite(state.factors).all()
    assert np.isfinite(state.heads).all()
    assert all(np.isfinite(info.log_posterior) for info in history)
    assert all(np.isfinite(column).all() for column in cell_evidence(problem, state))


def tensor_of(cells: int, sizes: tuple[int, ...], *, counts: int = 1) -> SparseTensor:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, n, cells) for n in sizes], 1)
    return SparseTensor.from_arrays(codes, sizes=sizes, counts=np.full(cells, counts))


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("learner", THREE)
class TestEveryLearnerInEveryPreset:
    def test_rank_larger_than_the_data(self, preset: str, learner: str) -> None:
        run(tensor_of(4, (3, 2, 2)), (), preset, learner, rank=32)

    def test_a_single_entity_in_a_mode(self, preset: str, learner: str) -> None:
        run(tensor_of(60, (1, 12, 1)), (), preset, learner)
        run(tensor_of(60, (12, 1)), (), preset, learner, contrast=1)

    def test_a_single_cell(self, preset: str, learner: str) -> None:
        run(tensor_of(1, (1, 1)), (), preset, learner)

    @pytest.mark.parametrize("value", [-1.0, 1.0])
    def test_one_class_only(self, preset: str, learner: str, value: float) -> None:
        some = np.arange(5, dtype=np.int32)
        run(tensor_of(80, (10, 8, 6)), (Target(1, "bad", "binary", some, np.full(5, value)),), preset, learner)

    def test_all_equal_real_labels_and_no_labels_at_all(self, preset: str, learner: str) -> None:
        some = np.arange(5, dtype=np.int32)
        targets = (
            Target(1, "same", "real", some, np.full(5, 1000.0)),
            Target(0, "none", "binary", some[:0], np.zeros(0)),
        )
        run(tensor_of(80, (10, 8, 6)), targets, preset, learner)

    def test_huge_counts(self, preset: str, learner: str) -> None:
        if preset == "paper" and learner == "sgd":
            pytest.skip("the printed gradient steps by the count itself: it leaves the numbers, and says so")
        run(tensor_of(80, (10, 8, 6), counts=10**9), (), preset, learner, count_weight="count")
