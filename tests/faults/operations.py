"""What is done to a folder under faults, each operation small: what makes the folder, and what changes it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ringleader as rl
from ringleader import report
from ringleader.cli.app import app
from ringleader.cli.cores import write_cores
from ringleader.cli.rows import put_frame
from ringleader.console.decisions import DecisionStore, Draft
from ringleader.datasets import marketplace
from ringleader.snapshot import folder as store
from ringleader.snapshot import load, pieces, save, take_in, undo

WORDS = pa.table({"w": ["a", "b"]})


class Operation(NamedTuple):
    """prepare : what makes a folder. change : what is done to it. again : what is done after a fault, if another.

    same_bits : whether the folder is then as if there had been no fault, to the bit; else it only works
    """

    prepare: Callable[[Path], Any]
    change: Callable[[Path], Any]
    again: Callable[[Path], Any] | None = None
    same_bits: bool = True


def tiny_save(place: Path, number: int) -> Any:
    """A folder of two parts, one of which changes."""
    state = {"a": np.full(50, float(number))}
    parts = [store.ModelPart("state", state, lambda: state), store.ModelPart("labels", WORDS, lambda: WORDS)]
    return store.save(place, {"complete": True, "number": number}, parts)


def nothing(place: Path) -> None:
    """The start of operations that make their folder."""


def operations(name: str, work: Path) -> Operation:
    if name.startswith("store"):
        if name == "store in pieces":
            pieces.LARGEST = 100
        return Operation(lambda place: tiny_save(place, 1), lambda place: tiny_save(place, 2), same_bits=False)
    market = marketplace(1000, difficulty="easy", seed=3)
    reviews = market.reviews[:400]
    labels = market.labels[(market.labels["mode"] == "seller") & (market.labels["target"] == "abuse")]
    labels = labels[labels["entity"].isin(reviews["seller"])]
    settings = {"rank": 2, "epochs": 1, "threads": 1}
    model = work / "model"
    if name == "generate":
        newer = marketplace(1000, seed=4)
        return Operation(lambda place: market.write(place), lambda place: newer.write(place, overwrite=True))
    detector = rl.RingDetector(**settings).fit(reviews, labels)  # children find the kernels compiled
    detector.scores("seller")
    if name == "fit":
        return Operation(
            nothing,
            lambda place: rl.RingDetector(**settings).fit(reviews, labels, checkpoint=place),
            lambda place: rl.RingDetector(**settings).fit(reviews, labels, checkpoint=place, resume=True),
        )
    detector.save(model)

    def copied(place: Path) -> None:
        shutil.copytree(model, place)

    if name == "fit --overwrite":

        def fit(place: Path, resume: bool) -> None:
            resume = resume and (place / store.UNFINISHED).exists()
            rl.RingDetector(**settings).fit(reviews[:300], checkpoint=place, resume=resume, overwrite=not resume)

        return Operation(copied, lambda place: fit(place, False), lambda place: fit(place, True), same_bits=False)
    if name == "update":
        taken = take_in(load(model)[0], market.reviews[400:500], None)
        taken.snapshot.judge.heads()
        save(taken.snapshot, work / "first")  # what follows is found once

        def update(place: Path) -> None:
            if len(load(place)[0].batches) == 1:  # as the command does: a batch it has seen changes nothing
                save(taken.snapshot, place, load(place)[1])

        return Operation(copied, update)
    if name == "undo":
        changed = rl.load(model).partial_fit(None, labels.assign(label=1 - labels["label"]))
        changed.save(model)

        def back(place: Path) -> None:
            if len(load(place)[0].batches) == 2:
                undo(place)

        return Operation(copied, back)
    if name == "decide":

        def decide(place: Path, number: int) -> None:
            decisions = DecisionStore(place)
            decisions.append([Draft("seller", f"s{number}", "abuse", "bad")], key=f"key-{number}", who="me")
            decisions.close()

        def first(place: Path) -> None:
            place.mkdir()
            decide(place, 1)

        return Operation(first, lambda place: decide(place, 2), same_bits=False)
    if name == "decisions":
        decisions = DecisionStore(model)
        decisions.append([Draft("seller", "s1", "abuse", "bad")], key="key-1", who="me")
        decisions.close()

        def write(place: Path) -> None:
            app(["decisions", str(model), "--output", str(place / "labels.csv"), "--overwrite"], standalone_mode=False)

        return Operation(_a_file("labels.csv"), write)
    if name == "report":
        text = report.page(detector)
        report.page = lambda model, since=None: text
        return Operation(
            _a_file("report.html"),
            lambda place: report.write_report(detector, place / "report.html", overwrite=True),
        )
    if name == "cores":
        sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
        from core_markets import gang
        from core_markets import market as with_gangs
        from test_cores import cores_of

        tensor = with_gangs(gang("ring", (4, 5), 3), gang("mob", (1, 2), 3, first=50, people=11))
        found = cores_of(tensor)
        assert len(found) > 1
        other = with_gangs(gang("gang", (4, 5), 3))
        write_cores(cores_of(other), other, str(work / "old"), raw=False)
        return Operation(
            lambda place: shutil.copytree(work / "old", place),
            lambda place: write_cores(found, tensor, str(place), raw=False, overwrite=True),
        )
    kind = name.removeprefix("score ")
    scores = detector.scores("reviewer")
    return Operation(
        _a_file(f"scores{kind}"),
        lambda place: put_frame(scores, str(place / f"scores{kind}"), raw=False, overwrite=True) and None,
    )


def _a_file(name: str) -> Callable[[Path], None]:
    """Makes a folder with an old file."""

    def prepare(place: Path) -> None:
        place.mkdir()
        (place / name).write_bytes(b"old")

    return prepare
