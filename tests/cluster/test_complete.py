"""Resuming a fit that has ended: it is seen that nothing is left to do before anything is computed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess
from typer.testing import CliRunner

import ringleader as rl
from ringleader.cli.app import app
from ringleader.datasets import marketplace
from ringleader.errors import ResumeError

COMPUTING = {
    "ringleader.snapshot.learn": ["find_lockstep", "fit_loop", "build_problem", "ClusterSignals"],
    "ringleader.snapshot.snapshot": ["find_lockstep"],
    "ringleader.learners.cluster": ["ClusterLearner"],
}
"""What begins the work of a fit, or finds signals that a model has stored."""
workers = pytest.mark.parametrize("workers", [None, 2])


@pytest.fixture(scope="module")
def reviews() -> pd.DataFrame:
    return marketplace(1_000, seed=3).reviews


@pytest.fixture
def labels(reviews: pd.DataFrame) -> pd.DataFrame:
    entities = reviews["reviewer"].drop_duplicates()[:40]
    return pd.DataFrame({"mode": "reviewer", "entity": entities, "label": np.arange(40) % 2})


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was computed."""
    names: list[str] = []
    for module, computing in COMPUTING.items():
        for name in computing:
            place = importlib.import_module(module)
            monkeypatch.setattr(place, name, counted(names, name, getattr(place, name)))
    return names


def counted(names: list[str], name: str, call: Any) -> Any:
    def counting(*arguments: Any, **named: Any) -> Any:
        names.append(name)
        return call(*arguments, **named)

    return counting


def fit(reviews: Any, labels: Any, folder: Path, workers: int | None, **settings: Any) -> rl.RingDetector:
    runtime = None if workers is None else InProcess(workers)
    detector = rl.RingDetector(**{"rank": 3, "epochs": 2, "threads": 1, **settings})
    return detector.fit(reviews, labels, checkpoint=folder, resume=True, runtime=runtime)


@workers
@pytest.mark.parametrize("epochs", [2, None])
def test_nothing_is_computed_where_nothing_is_left_to_do(
    reviews: pd.DataFrame,
    labels: pd.DataFrame,
    tmp_path: Path,
    computed: list[str],
    workers: int | None,
    epochs: int | None,
) -> None:
    ended = fit(reviews, labels, tmp_path / "m", workers, epochs=epochs)
    assert "fit_loop" in computed and ended.resumed_from_ is None
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "m").iterdir()}
    computed.clear()
    for other in (None, 2):
        again = fit(reviews, labels, tmp_path / "m", other, epochs=epochs)
        assert again.resumed_from_ == ended.state_.sweep
        pd.testing.assert_frame_equal(again.scores("reviewer"), ended.scores("reviewer"))
    assert computed == []
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "m").iterdir()} == before


@workers
@pytest.mark.parametrize("epochs", [2, None])
def test_other_data_and_settings_are_refused_as_before(
    reviews: pd.DataFrame, labels: pd.DataFrame, tmp_path: Path, workers: int | None, epochs: int | None
) -> None:
    fit(reviews, labels, tmp_path, workers, epochs=epochs)
    for data, known, settings, said in (
        (reviews[1:], labels, {}, "the reviews changed"),
        (reviews, labels[1:], {}, "the labels changed"),
        (reviews, labels, {"rank": 4}, "rank was 3 and is 4"),
        (reviews, labels, {"epochs": 3}, "sweeps was . and is 3"),
    ):
        with pytest.raises(ResumeError, match=rf"is complete, and another than this one would be \({said}\)"):
            fit(data, known, tmp_path, workers, **{"epochs": epochs, **settings})


def test_the_command_computes_nothing_and_ends_well(reviews: pd.DataFrame, tmp_path: Path, computed: list[str]) -> None:
    reviews.to_parquet(tmp_path / "reviews.parquet")
    words = [
        "fit",
        str(tmp_path / "reviews.parquet"),
        "--out",
        str(tmp_path / "m"),
        "--rank",
        "3",
        "--json",
        "--resume",
    ]
    first = CliRunner().invoke(app, words)
    computed.clear()
    second = CliRunner().invoke(app, words)
    assert (first.exit_code, second.exit_code, computed) == (0, 0, [])
    assert json.loads(second.stdout)["resumed_from"] == json.loads(first.stdout)["sweeps"]
