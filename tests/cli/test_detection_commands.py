"""explain, cores and the options of fit that speak of labels, as a person runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ringleader.datasets import marketplace

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = marketplace(12_000, difficulty="easy", seed=4)
    folder = made.write(tmp_path_factory.mktemp("market"))
    abuse = made.labels[made.labels["target"] == "abuse"]
    abuse.to_csv(folder / "labels.csv", index=False)
    numbers = pd.DataFrame({"mode": "seller", "entity": abuse[abuse["mode"] == "seller"]["entity"], "tickets": 1.5})
    numbers = pd.concat([numbers, pd.DataFrame({"mode": ["seller"], "entity": ["nobody"], "tickets": [2.0]})])
    numbers.to_csv(folder / "numbers.csv", index=False)
    return folder


@pytest.fixture
def fitted(command: Run, market: Path) -> Path:
    out = market / "model"
    if not out.exists():
        words = ["fit", market / "reviews.parquet", "--labels", market / "labels.csv", "--out", out, "--rank", 4]
        more = ["--holdout", 0.25, "--covariates", market / "numbers.csv", "--prevalence", "seller=0.1"]
        done = command(*words, *more)
        assert done.returncode == 0, done.stderr
        assert "on the labels held out" in done.stdout
        assert "1 seller of the covariates is not in the reviews" in done.stdout
    return out


def test_explain_prints_why_and_gives_it_as_data(command: Run, fitted: Path) -> None:
    first = json.loads(command("score", fitted, "--mode", "seller", "--top", 1, "--json").stdout)["rows"][0]["entity"]
    shown = command("explain", fitted, "--mode", "seller", first)
    assert shown.returncode == 0, shown.stderr
    for words in (
        "rank 1 of",
        "probability of abuse",
        "Speaks for it",
        "Speaks against it",
        "strongest reviews",
        "Cores",
        "Partners",
    ):
        assert words in shown.stdout
    data = json.loads(command("explain", fitted, "--mode", "seller", first, "--json").stdout)
    assert data["entity"] == first
    assert {"contributions", "reviews", "cores", "neighbours", "note", "reasons", "partners"} <= data.keys()
    assert {reason["speaks"] for reason in data["reasons"]} <= {"for", "against"}
    for reason in data["reasons"]:
        assert reason["sentence"] in shown.stdout


def test_explain_of_a_stranger_is_one_clear_sentence(command: Run, fitted: Path) -> None:
    done = command("explain", fitted, "--mode", "seller", "nobody")
    assert done.returncode == 2
    assert "no seller 'nobody'" in done.stderr
    assert "Traceback" not in done.stderr


def test_cores_are_listed_and_written(command: Run, fitted: Path, tmp_path: Path) -> None:
    listed = json.loads(command("cores", fitted, "--json").stdout)["cores"]
    done = command("cores", fitted, "--output", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "c" / "cores.csv")) == len(listed)
    blocks = list((tmp_path / "c").glob("block_*.tuples"))
    assert len(blocks) == len(listed)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prevalence", "2"], "between 0 and 1"),
        (["--prevalence", "seller=many"], "between 0 and 1"),
        (["--prevalence", "0.1", "--prevalence", "seller=0.1"], "one or the other"),
        (["--holdout", "1.5"], "between 0 and 1"),
    ],
)
def test_bad_options_are_refused(command: Run, market: Path, tmp_path: Path, words: list[str], message: str) -> None:
    line = ["fit", market / "reviews.parquet", "--labels", market / "labels.csv", "--out", tmp_path / "m", *words]
    done = command(*line)
    assert done.returncode == 2
    assert message in done.stderr
