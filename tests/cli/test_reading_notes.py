"""What is odd about the reviews is said by every command that learns from them, once, and not with --quiet."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

EARLY = "most times lie before 1995 when read as seconds; is that the right column and unit?"
DATE = "19990103 looks like a date written as a number"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews of a week in 1970, and some of which all dates but one are written as numbers."""
    rng = np.random.default_rng(0)
    made = tmp_path_factory.mktemp("odd")
    table = pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 40, 300)],
            "product": [f"p{i}" for i in rng.integers(0, 20, 300)],
            "timestamp": 20_000_000 + rng.integers(0, 600_000, 300),
        }
    )
    table.to_csv(made / "early.csv", index=False)
    table[:20].assign(timestamp=[*range(19990103, 19990122), 19990199]).to_csv(made / "dates.csv", index=False)
    return made


def test_fit_and_update_say_once_what_is_odd_about_the_times(command: Run, folder: Path, tmp_path: Path) -> None:
    words = ["fit", folder / "early.csv", "--rank", 2, "--epochs", 1]
    done = command(*words, "--out", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"note: {EARLY}") == 1
    assert EARLY not in done.stdout
    updated = command("update", tmp_path / "model", folder / "dates.csv")
    assert updated.returncode == 0, updated.stderr
    assert updated.stderr.count(f"note: {DATE}") == 1
    assert DATE not in updated.stdout


def test_with_json_what_is_odd_is_in_the_json_alone(command: Run, folder: Path, tmp_path: Path) -> None:
    fit = command("fit", folder / "early.csv", "--rank", 2, "--epochs", 1, "--out", tmp_path / "model", "--json")
    update = command("update", tmp_path / "model", folder / "early.csv", "--json")
    baseline = command("baseline", "degree", folder / "early.csv", "--mode", "product", "--json")
    for done in (fit, update, baseline):
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)["warnings"]
        assert said[0] == EARLY and len(said) == (2 if done is update else 1)  # an update knows these reviews already
        assert EARLY not in done.stderr


def test_rows_that_are_left_out_are_counted_by_every_command_that_learns(command: Run, tmp_path: Path) -> None:
    lines = [f"r{i % 20},p{i % 7},{'bad' if i % 2 else 1 + i % 5}" for i in range(120)]
    (tmp_path / "half.csv").write_text("\n".join(["reviewer,product,rating", *lines]))
    left_out = {"rating is not a number": 60}
    said = "60 rows left out: rating is not a number"
    fit = ["fit", tmp_path / "half.csv", "--rank", 2, "--epochs", 1, "--overwrite", "--out", tmp_path / "model"]
    update = ["update", tmp_path / "model", tmp_path / "half.csv", "--again"]
    for words in (fit, update, ["baseline", "degree", tmp_path / "half.csv", "--mode", "product"]):
        done = command(*words)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(f"note: {said}") == 1 and "rating is not" not in done.stdout
        summary = json.loads(command(*words, "--json").stdout)
        assert summary["rejected"] == left_out and summary["warnings"][0] == said


def test_update_takes_the_options_by_which_a_table_is_read(command: Run, tmp_path: Path) -> None:
    lines = [f"Zoë{i % 20},p{i % 7},{1 + i % 5}" for i in range(120)]
    new = "reviewer,product,rating\nZoë3,p9,1\nMaß,p1,5\nMaß,p2,?\n"
    for name, text in {"old": "\n".join(["reviewer,product,rating", *lines]), "new": new}.items():
        (tmp_path / f"{name}.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "labels.csv").write_bytes("mode,entity,label\nreviewer,Maß,1\nreviewer,Zoë1,0\n".encode("latin-1"))
    (tmp_path / "known.csv").write_bytes("mode,entity,age\nreviewer,Zoë1,3\n".encode("latin-1"))
    model = tmp_path / "model"
    read = ["--encoding", "latin-1", "--memory-limit", "1GB", "--temp-directory", tmp_path, "--threads", 1, "--json"]
    words = ["--covariates", tmp_path / "known.csv", "--rank", 2, "--epochs", 1, "--out", model]
    fit = command("fit", tmp_path / "old.csv", *words, *read)
    assert fit.returncode == 0 and json.loads(fit.stdout)["unknown_covariates"] == {}, fit.stderr
    update = ["update", model, tmp_path / "new.csv", "--labels", tmp_path / "labels.csv", *read]
    refused = command(*update, "--strict")
    assert refused.returncode != 0 and "1 of 3 rows cannot be used" in refused.stderr
    done = command(*update)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["new_entities"] == {"reviewer": 1, "product": 1, "rating": 0} and summary["unknown_labels"] == {}


def test_a_baseline_says_it_and_is_quiet_when_asked(command: Run, folder: Path) -> None:
    words = ["baseline", "degree", folder / "early.csv", "--mode", "product"]
    assert command(*words).stderr.count(f"note: {EARLY}") == 1
    assert EARLY not in command(*words, "--quiet").stderr
