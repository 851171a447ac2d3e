"""Forged models, every checksum right: refused in a sentence or answered in finite numbers, and no process dies."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Container
from pathlib import Path

import pytest

import ringleader as rl
from ringleader.cli.app import run
from ringleader.datasets import marketplace
from ringleader.errors import ModelFileError
from ringleader.snapshot import history, load, undo
from ringleader.snapshot.meta import PARAMETERS

sys.path.insert(0, str(Path(__file__).parent))

from forging import forgeries, manifest_forgeries
from probing import in_a_child, use

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each forgery is tried in a process of its own")
SAMPLED = 180
"""Every so many forgeries are tried on every change; all of them by make test-faults."""
OPENED = 90
"""Every so many forged manifests are opened, too."""
PARTS = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("genuine") / "model"
    market = marketplace(1000, difficulty="easy", seed=5)
    labels = market.labels[(market.labels["mode"] == "seller") & (market.labels["target"] == "abuse")]
    rl.RingDetector(rank=2, epochs=1, threads=1).fit(market.reviews, labels).save(folder)
    return folder


FOUND = {
    "tensor.coordinates one huge",
    "tensor.coordinates one negative",
    "tensor.counts one negative",
    "vocabulary-0 short",
    "vocabulary-2 short",
    "vocabulary-1 twice",
    "state.factors one infinite",
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
"""Forgeries that once ended in an error of Python or of the processor, or that are like those."""


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


@pytest.fixture(scope="module")
def updated(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model after an update, so that it can be undone, with tables for the commands beside it."""
    work = tmp_path_factory.mktemp("updated")
    shutil.copytree(model, work / "model")
    market = marketplace(1000, difficulty="easy", seed=6)
    market.reviews[:20].to_csv(work / "new.csv", index=False)
    market.labels.to_csv(work / "labels.csv", index=False)
    detector = rl.load(work / "model").partial_fit(market.reviews[20:40])
    detector.save(work / "model")
    detector.tensor_.decode().rename(columns={"week": "timestamp"}).to_csv(work / "all.csv", index=False)
    return work


def refused(call: Callable[[], object]) -> str | None:
    """What a call says that refuses a model; None where it answers."""
    try:
        call()
    except ModelFileError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.faults
def test_every_field_of_a_manifest_is_refused_by_name_or_answered(updated: Path, tmp_path: Path) -> None:
    """By ``history``, which reads nothing but manifests; every so many by ``undo`` and by who opens a model."""
    place = tmp_path / "model"
    shutil.copytree(updated / "model", place)
    genuine = (place / "manifest.json").read_bytes()
    said: dict[str, str | None] = {}
    for number, (name, change) in enumerate(manifest_forgeries(place)):
        (place / "manifest.json").write_bytes(genuine)
        change(place)
        said[name] = refused(lambda: history(place))
        if number % OPENED == 0:
            assert said[name] is None or refused(lambda: load(place)) == said[name]
    for name, message in said.items():
        fields = name.split("=")[0].split()[1].split(".")
        assert message is None or fields[0] in message or fields[-1] in message, f"{name}: {message}"
    never = [name for name in said if name.endswith(("=[[]]", "=[{}]")) and said[name] is None]
    assert all(name.startswith("meta config.") or ".examples" in name for name in never), never
    for name in ("batches={}", "batches=[{}]", "batches.0.reviews=-1", "batches.0.at=-1", "generation=[{}]"):
        assert f"{name.split('=')[0]}" in str(said[f"meta {name}"])
    assert said["meta generation=true"] and said["meta parameters.unknown"] and said["meta heads=true"]


def test_undo_refuses_a_forged_generation_and_goes_back_behind_a_forged_model(updated: Path, tmp_path: Path) -> None:
    place = tmp_path / "model"
    shutil.copytree(updated / "model", place)
    changes = dict(manifest_forgeries(place))
    genuine, number = (place / "manifest.json").read_bytes(), next(place.glob("generation-*.json"))
    earlier = number.read_bytes()
    changes["meta batches=[[]]"](place)
    forged = (place / "manifest.json").read_bytes()
    (place / "manifest.json").write_bytes(genuine)
    number.write_bytes(forged)
    assert "batches" in str(refused(lambda: undo(place)))
    assert history(place).generations == ()
    assert (place / "manifest.json").read_bytes() == genuine
    number.write_bytes(earlier)
    (place / "manifest.json").write_bytes(forged)  # the last update was tampered with; before it all was well
    assert len(undo(place).batches) == 1
    assert (place / "manifest.json").read_bytes() == earlier


def test_the_parameters_that_a_manifest_may_have_are_those_of_a_detector() -> None:
    assert set(PARAMETERS) == set(rl.RingDetector().get_params())


def commands(work: Path, place: Path) -> list[list[str]]:
    """Every command that reads a model, as it is typed."""
    lines = [
        "history {m}",
        "undo {m}",
        "score {m} --mode seller",
        "score {m} --reviews --output {w}/reviews.csv --overwrite",
        "explain {m} --mode seller S14",
        "cores {m}",
        "evaluate {m} --truth {w}/labels.csv",
        "decisions {m} --output {w}/decisions.csv",
        "report {m} --output {w}/report.html",
        "update {m} {w}/new.csv",
        "update {m} --labels {w}/labels.csv",
        "fit {w}/all.csv --out {m} --resume --rank 2 --epochs 1",
    ]
    return [line.format(m=place, w=work).split() for line in lines]


def command_status(words: list[str]) -> str:
    sys.argv = ["ringleader", *words]
    try:
        run()
    except SystemExit as end:
        return {0: "answered", 2: "refused"}.get(int(end.code or 0), f"failed: status {end.code}")
    return "answered"


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("first", range(PARTS))
def test_every_command_refuses_a_forged_manifest_or_answers(first: int, updated: Path, tmp_path: Path) -> None:
    """Each forgery goes through one command in turn, so that every field meets every command."""
    place = tmp_path / "model"
    lines = commands(tmp_path, place)
    for name in ("new.csv", "labels.csv", "all.csv"):
        shutil.copy(updated / name, tmp_path / name)
    for words in lines[:-1] if first == 0 else ():  # a fit of other reviews is refused whatever the manifest says
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(updated / "model", place)
        assert in_a_child(lambda words=words: command_status(words)) == "answered", words
    tried: Counter[str] = Counter()
    wrong = []
    for number, (name, change) in enumerate(manifest_forgeries(updated / "model")):
        if number % PARTS != first:
            continue
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(updated / "model", place)
        change(place)
        words = lines[(number // PARTS) % len(lines)]
        said = in_a_child(lambda words=words: command_status(words))
        tried[f"{words[0]} {said}"] += 1
        if not said.startswith(("answered", "refused")):
            wrong.append(f"{words[0]}, {name}: {said}")
    print(dict(sorted(tried.items())))
    assert not wrong
