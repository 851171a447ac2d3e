"""Whole fits on workers in this process: the model folder of one process, whatever the preset and the labels."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess
from test_ray import assert_same_folder

import ringleader as rl
from ringleader.datasets import taste_market
from ringleader.judge import basis, judge, population
from ringleader.judge import cluster as judge_cluster
from ringleader.kernels import tiles
from ringleader.model.state import State
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

SETTINGS: dict[str, Any] = {"rank": 4, "epochs": 2, "threads": 1, "random_state": 3}


@pytest.fixture(scope="module")
def market() -> tuple[SparseTensor, rl.Labels]:
    tensor = read_reviews(taste_market(7_500, kind="everything", seed=3, used_once=8).reviews)
    rng = np.random.default_rng(0)
    known = []
    for mode, count in (("reviewer", 60), ("seller", 24)):
        names = tensor.vocabulary(mode).decode(rng.choice(len(tensor.vocabulary(mode)), count, replace=False))
        known += [{"mode": mode, "entity": str(name), "label": int(i % 2)} for i, name in enumerate(names)]
    return tensor, rl.read_labels(pd.DataFrame(known))


@pytest.mark.slow  # on a small one, in every way: test_same_folder.py
@pytest.mark.parametrize(
    ("preset", "labelled", "workers"),
    [
        ("default", False, 3),
        ("corrected", True, 2),
        ("corrected", False, 2),
    ],
)
def test_workers_write_the_model_folder_of_one_process_on_a_market_of_every_kind(
    tmp_path: Path, market: tuple[SparseTensor, rl.Labels], preset: str, labelled: bool, workers: int
) -> None:
    tensor, known = market
    labels = known if labelled else None
    one = rl.RingDetector(preset=preset, **SETTINGS).fit(tensor, labels, checkpoint=tmp_path / "one")
    many = rl.RingDetector(preset=preset, **SETTINGS).fit(
        tensor, labels, checkpoint=tmp_path / "many", runtime=InProcess(workers)
    )
    assert_same_folder(tmp_path / "many", tmp_path / "one")
    assert isinstance(many.state_, State)  # it was laid aside meanwhile
    np.testing.assert_array_equal(many.state_.factors, one.state_.factors)


def test_workers_hold_no_cells_of_other_modes_when_inputs_are_found_and_heads_are_fitted(
    tmp_path: Path, market: tuple[SparseTensor, rl.Labels], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor, known = market
    held: dict[str, list[int]] = {"inputs": [], "heads": []}
    find, begin, fit, here = judge_cluster.label_free_inputs, judge.Judge._fit, judge.fit_together, threading.local()

    def inputs(signals: Any, *about: Any) -> Any:
        held["inputs"].append(len(signals.share._dealt))
        return find(signals, *about)

    def noted(self: judge.Judge, *about: Any) -> Any:
        here.share = self.signals.share
        return begin(self, *about)

    def together(*about: Any) -> Any:
        held["heads"].append(len(here.share._dealt))
        return fit(*about)

    monkeypatch.setattr(judge_cluster, "label_free_inputs", inputs)
    monkeypatch.setattr(judge.Judge, "_fit", noted)
    monkeypatch.setattr(judge, "fit_together", together)
    rl.RingDetector(**SETTINGS).fit(tensor, known, checkpoint=tmp_path / "many", runtime=InProcess(2))
    assert len(held["inputs"]) == 2 * 3 and len(held["heads"]) == 2 * 2
    assert not any(held["inputs"]) and not any(held["heads"])


def test_heads_of_large_modes_are_those_of_one_process(
    tmp_path: Path, market: tuple[SparseTensor, rl.Labels], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed in runs of entities: from 256 of them on, so that the reviewers here are cut."""
    tensor, labels = market
    for module, name in ((basis, "CURVE"), (population, "CURVE"), (tiles, "PART")):
        monkeypatch.setattr(module, name, 256)
    assert tensor.shape[0] > 4 * 256
    rl.RingDetector(**SETTINGS).fit(tensor, labels, checkpoint=tmp_path / "one")
    rl.RingDetector(**SETTINGS).fit(tensor, labels, checkpoint=tmp_path / "many", runtime=InProcess(4))
    assert_same_folder(tmp_path / "many", tmp_path / "one")


@pytest.mark.parametrize(
    ("labelled", "workers"),
    [(False, 2), (True, 3), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((False, 3), (True, 2)))],
)
def test_counts_on_workers_have_the_bits_of_one_process(labelled: bool, workers: int) -> None:
    rng = np.random.default_rng(9)
    rows = np.minimum(rng.geometric([0.05, 0.1, 0.4], (3_000, 3)), 40)
    table = "n" + pd.DataFrame(rows, columns=["src", "dst", "port"]).astype(str)
    tensor = rl.read_reviews(table, modes=["src=src:id", "dst=dst:id", "port=port:category"])
    labels = pd.DataFrame({"mode": "src", "entity": [f"n{i}" for i in range(1, 31)], "label": [0, 1, 1] * 10})
    known = labels if labelled else None
    alone = rl.RingDetector(rank=3, epochs=2).fit(tensor, known)
    assert alone.snapshot_.signals.counts_lead
    together = rl.RingDetector(rank=3, epochs=2).fit(tensor, known, runtime=InProcess(workers))
    for mode in ("src", "dst", "port"):
        pd.testing.assert_frame_equal(together.scores(mode), alone.scores(mode))
