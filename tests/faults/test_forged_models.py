"""Forged models, every checksum right: refused in a sentence or answered in finite numbers, and no process dies."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Container
from pathlib import Path

import pytest

import ringleader as rl
from ringleader.datasets import marketplace

sys.path.insert(0, str(Path(__file__).parent))

from forging import forgeries
from probing import in_a_child, use

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each forgery is tried in a process of its own")
SAMPLED = 90
"""Every so many forgeries are tried on every change; all of them by make test-faults."""
PARTS = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("genuine") / "model"
    market = marketplace(1000, difficulty="easy", seed=5)
    labels = market.labels[(market.labels["mode"] == "seller") & (market.labels["target"] == "abuse")]
    rl.RingDetector(rank=2, epochs=1, threads=1).fit(market.reviews, labels).save(folder)
    return folder


FOUND = {
    "lockstep.crowded_attacks short",
    "lockstep.pull empty",
    "head_0.centre short",
    "head_0.judgement huge",
    "head_0.knots huge",
    "head_0.rank_offsets one huge",
    "head_0.source one huge",
    "inputs-2.burst_0_expected of NaN",
    "inputs-2.burst_0_start huge",
    "inputs-2.calendar_before short",
    "inputs-2.rank_places flat",
    "transfer-0.parts empty",
    "strangers.mode gone",
    "strangers.number of text",
}
"""Forgeries that once ended in an error of Python, or that are like those."""


def outcomes(
    model: Path, place: Path, step: int, first: int = 0, named: Container[str] | None = None
) -> tuple[Counter[str], list[str]]:
    """What became of every so many forgeries, or of those that are named; and which ended in neither way."""
    tried: Counter[str] = Counter()
    wrong = []
    for number, (name, change) in enumerate(forgeries(model)):
        if number % step != first or (named is not None and name not in named):
            continue
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(model, place)
        change(place)
        said = in_a_child(lambda: use(place))
        tried[said.split(":")[0]] += 1
        if not said.startswith(("answered", "refused")):
            wrong.append(f"{name}: {said}")
    return tried, wrong


def test_a_sample_of_forgeries_is_refused_or_answered(model: Path, tmp_path: Path) -> None:
    assert in_a_child(lambda: use(model)) == "answered"
    tried, wrong = outcomes(model, tmp_path / "forged", SAMPLED)
    assert not wrong
    assert tried["refused"] > 0


def test_forgeries_that_were_found_are_refused(model: Path, tmp_path: Path) -> None:
    tried, wrong = outcomes(model, tmp_path / "forged", 1, named=FOUND)
    assert not wrong
    assert tried == {"refused": len(FOUND)}


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("first", range(PARTS))
def test_every_forgery_is_refused_or_answered(first: int, model: Path, tmp_path: Path) -> None:
    tried, wrong = outcomes(model, tmp_path / "forged", PARTS, first)
    print(dict(tried))
    assert not wrong
