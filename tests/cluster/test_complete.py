"""Resuming a fit that has ended: it is seen that nothing is left to do before anything is computed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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


@pytest.fixture(scope="module")
def labels(reviews: pd.DataFrame) -> pd.DataFrame:
    entities = reviews["reviewer"].drop_duplicates()[:40]
    return pd.DataFrame({"mode": "reviewer", "entity": entities, "label": np.arange(40) % 2})


@pytest.fixture(scope="module")
def every_name() -> Iterator[list[str]]:
    names: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for module, computing in COMPUTING.items():
            for name in computing:
                place = importlib.import_module(module)
                patch.setattr(place, name, counted(names, name, getattr(place, name)))
        yield names


@pytest.fixture
def computed(every_name: list[str]) -> list[str]:
    """The names of what was computed."""
    every_name.clear()
    return every_name


def counted(names: list[str], name: str, call: Any) -> Any:
    def counting(*arguments: Any, **named: Any) -> Any:
        names.append(name)
        return call(*arguments, **named)

    return counting


def fit(reviews: Any, labels: Any, folder: Path, workers: int | None, **settings: Any) -> rl.RingDetector:
    runtime = None if workers is None else InProcess(workers)
    detector = rl.RingDetector(**{"rank": 3, "epochs": 2, "threads": 1, **settings})
    return detector.fit(reviews, labels, checkpoint=folder, resume=True, runtime=runtime)


class Ended(NamedTuple):
    """A fit that has ended, its folder, and the names of what it computed."""

    model: rl.RingDetector
    folder: Path
    computed: list[str]


@pytest.fixture(scope="module")
def ended(
    reviews: pd.DataFrame, labels: pd.DataFrame, every_name: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int | None, int | None], Ended]:
    """Fits of so many workers and sweeps, each made once: who resumes one that has ended leaves it as it is."""

    @cache
    def fitted(workers: int | None, epochs: int | None) -> Ended:
        every_name.clear()
        folder = tmp_path_factory.mktemp("ended") / "m"
        return Ended(fit(reviews, labels, folder, workers, epochs=epochs), folder, every_name.copy())

    return fitted


@workers
@pytest.mark.parametrize("epochs", [2, None])
def test_nothing_is_computed_where_nothing_is_left_to_do(
    reviews: pd.DataFrame,
    labels: pd.DataFrame,
    ended: Callable[[int | None, int | None], Ended],
    computed: list[str],
    workers: int | None,
    epochs: int | None,
) -> None:
    model, folder, by_fit = ended(workers, epochs)
    assert "fit_loop" in by_fit and model.resumed_from_ is None
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    computed.clear()
    for other in (None, 2):
        again = fit(reviews, labels, folder, other, epochs=epochs)
        assert again.resumed_from_ == model.state_.sweep
        pd.testing.assert_frame_equal(again.scores("reviewer"), model.scores("reviewer"))
    assert computed == []
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@workers
@pytest.mark.parametrize("epochs", [2, None])
def test_other_data_and_settings_are_refused_as_before(
    reviews: pd.DataFrame,
    labels: pd.DataFrame,
    ended: Callable[[int | None, int | None], Ended],
    workers: int | None,
    epochs: int | None,
) -> None:
    folder = ended(workers, epochs).folder
    for data, known, settings, said in (
        (reviews[1:], labels, {}, "the reviews changed"),
        (reviews, labels[1:], {}, "the labels changed"),
        (reviews, labels, {"rank": 4}, "rank was 3 and is 4"),
        (reviews, labels, {"epochs": 3}, "sweeps was . and is 3"),
    ):
        with pytest.raises(ResumeError, match=rf"is complete, and differs from the requested one \({said}\)"):
            fit(data, known, folder, workers, **{"epochs": epochs, **settings})


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
