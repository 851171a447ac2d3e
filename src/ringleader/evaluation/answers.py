"""How soon a stored model answers: commands, explanations, decisions and new reviews.

The market is generated (medium, a fixed seed) and the model fitted once for each size. Every run is a process of its
own, as it is for people. Figures are medians of several runs; the first is not counted, so that files and compiled
kernels are in the caches.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ringleader.datasets import marketplace
from ringleader.detector import RingDetector, load
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.runtime.machine import share_heap

REPEATS = 6
"""Runs of each figure, the first of which only warms the caches."""
SEED = 77
MODES = ("seller", "reviewer")
COMMAND = "from ringleader.cli import main; main()"
PYTHON = "from ringleader.evaluation.answers import main; main()"
IMPORTED = ("duckdb", "pyarrow.dataset", "pyarrow.parquet", "sklearn.metrics")
"""What the package imports when it first needs it, and a process of a user has done already."""


class SpeedRow(NamedTuple):
    """One line of a table of ``ringleader benchmark speed``."""

    what: str
    value: float
    unit: str
    asked: str = ""  # the aim, in words
    note: str = ""


class StoredModel(NamedTuple):
    """A fitted model on disk, and what to ask it.

    suspects : by mode, the two most suspicious accounts without a label
    reviews  : two new reviews, as rows of a table
    """

    folder: str
    suspects: dict[str, list[str]]
    reviews: list[dict[str, Any]]


def answer_table(sizes: Sequence[int], *, repeats: int = REPEATS) -> Iterator[SpeedRow]:
    """How soon models of so many reviews answer."""
    yield _row("ringleader --help", [command_seconds("--help") for _ in range(repeats)], "at most 0.3")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            stored = store_model(size, Path(folder) / "model")
            for row in model_rows(stored, repeats):
                yield row._replace(what=f"{row.what}, {size:,} reviews")


def store_model(size: int, folder: Path) -> StoredModel:
    """Generates a market of so many reviews, fits a model to it and its labels, and saves it."""
    market = marketplace(size, difficulty="medium", seed=SEED)
    model = RingDetector(random_state=0).fit(market.reviews, market.labels)
    model.save(folder)
    suspects = {}
    for mode in MODES:
        table = model.scores(mode)
        suspects[mode] = [str(name) for name in table.loc[table["label"].isna(), "entity"].head(2)]
    last = market.reviews.iloc[[-1, -1]].assign(reviewer=suspects["reviewer"])
    return StoredModel(str(folder), suspects, json.loads(last.to_json(orient="records")))


def model_rows(stored: StoredModel, repeats: int) -> Iterator[SpeedRow]:
    """Every figure of one model. A decision or a review is the second of its process, or where it says so the first."""
    folder, seller = stored.folder, stored.suspects["seller"][0]
    commands = {
        "score": ("score", folder, "--mode", "seller", "--top", "20"),
        "explain": ("explain", folder, "--mode", "seller", seller),
        "cores": ("cores", folder),
    }
    for name, words in commands.items():
        seconds = [command_seconds(*words) for _ in range(repeats)]
        yield _row(f"ringleader {name}", seconds, "at most 1.5 at 100,000; 3 at 1,000,000")
    runs = _runs(repeats, "explain", folder=folder, mode="seller", entity=seller)
    loading, both = _row("loading", [run[0] for run in runs]), [sum(run) for run in runs]
    row = _row("load and first explain in Python", both, "at most 0.5 at 100,000; 2 at 1,000,000")
    yield row._replace(note=f"{row.note}; loading {loading.value:.2f} s of it")
    asked = "at most 0.5 at 100,000; 3 at 1,000,000"
    for mode, suspects in stored.suspects.items():
        runs = _runs(repeats, "decide", folder=folder, mode=mode, entities=suspects)
        title = f"decision on a {mode} and scores"
        yield _row(title, [second for _, second in runs], asked)
        yield _row(f"first {title}", [first for first, _ in runs])
    runs = _runs(repeats, "review", folder=folder, rows=stored.reviews)
    # Taking it in leaves lockstep and heads to whoever asks for scores, so the aim is for both together.
    title = "new review and scores of sellers"
    yield _row(title, [run[2] + run[3] for run in runs], "at most 1 at 100,000; 5 at 1,000,000")
    yield _row(f"first {title}", [run[0] + run[1] for run in runs])
    yield _row("new review alone", [run[2] for run in runs])
    yield _row("scores of sellers after it", [run[3] for run in runs])


def _row(what: str, seconds: Sequence[float], asked: str = "") -> SpeedRow:
    """The median of the runs; of several, the first does not count."""
    counted = seconds[1:] or seconds
    middle = statistics.median(counted)
    return SpeedRow(what, middle, "s", asked, f"spread {(max(counted) - min(counted)) / middle:.0%}")


def command_seconds(*words: str) -> float:
    """Wall time of a command, the start of its process included."""
    began = time.perf_counter()
    _process(COMMAND, *words)
    return time.perf_counter() - began


def _runs(repeats: int, job: str, **arguments: Any) -> list[list[float]]:
    """The seconds that a job measured, in one process after the other."""
    return [json.loads(_process(PYTHON, job, json.dumps(arguments))) for _ in range(repeats)]


def _process(code: str, *words: str) -> str:
    """What a Python process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:2])} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


# -- what runs in the processes -------------------------------------------------------------------------


def main() -> None:
    """Does the job named on the command line, imports done, and prints the seconds it measured."""
    share_heap()  # as the console does, in which decisions and reviews come
    for name in IMPORTED:
        importlib.import_module(name)
    job, arguments = sys.argv[1:]
    print(json.dumps(JOBS[job](**json.loads(arguments))))


def explain_seconds(folder: str, mode: str, entity: str) -> list[float]:
    """[loading a model, its first explanation]"""
    loading, model = _timed(load, folder)
    return [loading, _timed(model.explain, mode, entity)[0]]


def decision_seconds(folder: str, mode: str, entities: Sequence[str]) -> list[float]:
    """[deciding that an account is bad, and scoring its mode again], for one account after the other."""
    model = load(folder)

    def decide(entity: str) -> pd.DataFrame:
        decision = pd.DataFrame({"mode": [mode], "entity": [entity], "label": [1], "target": [DEFAULT_TARGET]})
        return model.partial_fit(labels=decision).scores(mode)

    measured = []
    for entity in entities:
        seconds, table = _timed(decide, entity)
        if table.loc[table["entity"].astype(str) == entity, "label"].tolist() != [1]:
            raise RuntimeError(f"the decision on {mode} {entity!r} did not reach the scores")
        measured.append(seconds)
    return measured


def review_seconds(folder: str, rows: Sequence[dict[str, Any]]) -> list[float]:
    """[taking in a new review, scoring the sellers again], for one review after the other."""
    model = load(folder)
    measured = []
    for row in rows:
        count = model.tensor_.counts.sum()
        measured.append(_timed(model.partial_fit, pd.DataFrame([row]))[0])
        if model.tensor_.counts.sum() != count + 1:
            raise RuntimeError("the new review did not reach the model")
        measured.append(_timed(model.scores, "seller")[0])
    return measured


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The seconds of a call, and what it returned."""
    began = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - began, answer


JOBS: dict[str, Callable[..., list[float]]] = {
    "explain": explain_seconds,
    "decide": decision_seconds,
    "review": review_seconds,
}
