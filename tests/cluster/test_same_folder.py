"""Whole fits on 1 to 4 workers, with and without labels, by every preset and learner for large data: one folder."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess
from model_folders import folder_bytes

import ringleader as rl
from ringleader.judge import basis, population
from ringleader.kernels import tiles
from ringleader.model.state import State
from ringleader.snapshot import pieces, place
from ringleader.tensor.sparse import SparseTensor

PRESETS = ("default", "corrected")
LEARNERS = ("natural-gradient", "online-em", "batch-em", "sgd")
WORKERS = (1, 2, 3, 4)
WEEK = 604_800
TIMES = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
"""Products in the field of four numbers, whose sums are ``^``: what orthogonal arrays are made of."""


class Fit(NamedTuple):
    """large : arrays are cut into pieces and runs as those of large data are."""

    workers: int
    learner: str
    preset: str
    labelled: bool
    large: bool

    def __str__(self) -> str:
        labels, sizes = "labels" if self.labelled else "no labels", "large" if self.large else "small"
        return f"{self.workers}, {self.learner}, {self.preset}, {labels}, {sizes}"


def covering(apart: Sequence[int] = range(4)) -> list[Fit]:
    """Sixteen fits in which any two values of two fields meet; with two of ``apart`` eight, each value as often."""
    return [
        Fit(WORKERS[i], LEARNERS[j], PRESETS[(i ^ j) % 2], (i ^ TIMES[2][j]) % 2 == 0, (i ^ TIMES[3][j]) % 2 == 0)
        for i, j in itertools.product(range(4), range(4))
        if i ^ j in apart
    ]


def product() -> list[Fit]:
    """All but those of ``covering``."""
    every = itertools.starmap(Fit, itertools.product(WORKERS, LEARNERS, PRESETS, (True, False), (True,)))
    return [fit for fit in every if fit not in covering()]


def small_market() -> pd.DataFrame:
    """620 reviews; ten accounts praise six products together, each product in a week of its own."""
    rng = np.random.default_rng(5)
    rows = 560
    who, where = (part.ravel() for part in np.meshgrid(np.arange(300, 310), np.arange(6)))
    reviewer = np.append(np.minimum(rng.geometric(0.012, rows), 280), who)
    product = np.append(np.minimum(rng.geometric(0.03, rows), 90), 100 + 5 * where)
    week = np.append(rng.integers(0, 20, rows), 3 + 3 * where)
    rating = np.append(rng.choice(5, rows, p=[0.1, 0.05, 0.1, 0.25, 0.5]) + 1, np.full(len(who), 5))
    return pd.DataFrame(
        {
            "reviewer": [f"u{n}" for n in reviewer],
            "product": [f"p{n}" for n in product],
            "seller": [f"s{n % 23}" for n in product],
            "rating": rating,
            "timestamp": 1_600_000_000 + WEEK * week + rng.integers(0, 400_000, len(week)),
        }
    )


class Fits:
    """The folders of one process, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tensor = folder, rl.read_reviews(small_market())
        names = self.tensor.vocabulary("reviewer").decode(np.arange(0, 190, 8)).tolist()
        names += [f"u{n}" for n in range(300, 304)]
        known = [
            {"mode": "reviewer", "entity": str(n), "label": int(n in names[-4:] or i % 5 == 0)}
            for i, n in enumerate(names)
        ]
        known += [{"mode": "seller", "entity": f"s{n}", "label": n % 2} for n in range(9)]
        self.labels = rl.read_labels(pd.DataFrame(known))
        self.alone: dict[Fit, State] = {}

    def fit(self, fit: Fit, out: Path, **how: Any) -> Any:
        settings = {"batch_size": 0} if fit.learner == "sgd" else {}
        detector = rl.RingDetector(
            preset=fit.preset, learner=fit.learner, rank=3, epochs=2, threads=1, random_state=3, settings=settings
        )
        return detector.fit(self.tensor, self.labels if fit.labelled else None, checkpoint=out, **how)

    def of_one_process(self, fit: Fit) -> tuple[Path, State]:
        key = fit._replace(workers=0)
        out = self.folder / "-".join(map(str, key))
        if key not in self.alone:
            self.alone[key] = self.fit(fit, out).state_
        return out, self.alone[key]


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Fits:
    return Fits(tmp_path_factory.mktemp("alone"))


def assert_workers_write_the_folder_of_one_process(
    fits: Fits, fit: Fit, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "sync_file", lambda path: None)  # of many small files
    if fit.large:
        monkeypatch.setattr(pieces, "LARGEST", 3000)
        for module, name in ((basis, "CURVE"), (population, "CURVE"), (tiles, "PART")):
            monkeypatch.setattr(module, name, 32)
    alone, state = fits.of_one_process(fit)
    model = fits.fit(fit, out, runtime=InProcess(fit.workers))
    found, expected = folder_bytes(out), folder_bytes(alone)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    assert any(".00001-" in name for name in found) == fit.large
    if not fit.large:
        assert isinstance(model.state_, State)  # it was laid aside meanwhile
    np.testing.assert_array_equal(model.state_.factors, state.factors)


def test_the_market_has_what_fits_look_for(fits: Fits) -> None:
    tensor: SparseTensor = fits.tensor
    assert tensor.shape[0] > 4 * 32  # reviewers are cut where sizes are those of large data
    (core,) = rl.RingDetector(rank=3, epochs=2, threads=1, random_state=3).fit(tensor).cores()
    names = tensor.vocabulary("reviewer").decode(core.members["reviewer"].codes)
    assert {str(name) for name in names} <= {f"u{n}" for n in range(300, 310)}


def test_any_two_values_of_two_fields_meet_in_a_fit() -> None:
    for one, other in itertools.combinations(range(len(Fit._fields)), 2):
        met = {(fit[one], fit[other]) for fit in covering()}
        assert len(met) == len({fit[one] for fit in covering()}) * len({fit[other] for fit in covering()})
    assert len(covering((0, 1))) == 8
    assert all(len({fit[k] for fit in covering((0, 1))}) == len({fit[k] for fit in covering()}) for k in range(5))
    assert len({fit[:4] for fit in covering() + product()}) == len(WORKERS) * len(LEARNERS) * len(PRESETS) * 2


def quick(fits: Sequence[Fit]) -> list[Any]:
    """The first of them that have a value of a field which none before had; make test-slow runs the others."""
    marked: list[Any] = []
    met: set[tuple[int, Any]] = set()
    for fit in fits:
        new = set(enumerate(fit)) - met
        met |= new
        marked.append(pytest.param(fit, marks=() if new else pytest.mark.slow))
    return marked


@pytest.mark.parametrize("fit", quick(covering((0, 1))), ids=str)
def test_workers_write_the_folder_of_one_process(
    fits: Fits, fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_workers_write_the_folder_of_one_process(fits, fit, tmp_path / "many", monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("fit", covering((2, 3)) + product(), ids=str)
def test_workers_write_the_folder_of_one_process_in_every_other_way(
    fits: Fits, fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_workers_write_the_folder_of_one_process(fits, fit, tmp_path / "many", monkeypatch)
