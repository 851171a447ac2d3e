"""fit, score and update as a person runs them, interruptions included."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.judge.scores import SCORE_COLUMNS

Run = Callable[..., subprocess.CompletedProcess[str]]
DELAYS = [0.0, pytest.param(0.05, marks=pytest.mark.slow)]
"""Seconds behind a checkpoint. Many more moments: tests/faults/test_kills.py."""


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marketplace(5_000, difficulty="easy", seed=2).write(tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="module")
def model(market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted") / "model"
    detector = rl.RingDetector(rank=4, epochs=2)
    detector.fit(rl.read_reviews(market / "reviews.parquet"), market / "labels.csv", checkpoint=folder)
    return folder


def fit_words(market: Path, out: Path, *more: object) -> list[str]:
    words = ["fit", market / "reviews.parquet", "--labels", market / "labels.csv", "--out", out, "--rank", 4, *more]
    return [str(word) for word in words]


def state_of(folder: Path) -> dict[str, np.ndarray]:
    return rl.load(folder).state_.to_arrays()


def wait_for_sweep(folder: Path, sweep: int) -> None:
    """Until a checkpoint of that sweep (or a later one) is there."""
    for _ in range(3000):
        try:
            if json.loads((folder / "manifest.json").read_text())["meta"]["sweep"] >= sweep:
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.02)
    raise AssertionError("no checkpoint came")


def test_fit_says_what_it_did_and_refuses_to_overwrite(command: Run, market: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    first = command(*fit_words(market, out, "--epochs", 2))
    assert first.returncode == 0, first.stderr
    assert "5,000 distinct reviews" in first.stdout
    assert "2 sweeps" in first.stdout
    again = command(*fit_words(market, out, "--epochs", 2))
    assert again.returncode == 2
    assert "--resume" in again.stderr and "--overwrite" in again.stderr
    resumed = json.loads(command(*fit_words(market, out, "--epochs", 2, "--resume", "--json")).stdout)
    assert resumed["resumed_from"] == 2
    replaced = json.loads(command(*fit_words(market, out, "--epochs", 1, "--overwrite", "--json")).stdout)
    assert (replaced["resumed_from"], replaced["sweeps"]) == (None, 1)


def test_resume_on_nothing_starts_afresh(command: Run, market: Path, tmp_path: Path) -> None:
    done = json.loads(command(*fit_words(market, tmp_path / "m", "--epochs", 1, "--resume", "--json")).stdout)
    assert (done["resumed_from"], done["sweeps"]) == (None, 1)


def test_a_foreign_folder_is_never_overwritten(command: Run, market: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    for flag in ("--overwrite", "--resume"):
        done = command(*fit_words(market, tmp_path / "photos", flag))
        assert done.returncode == 2, flag
        assert "is not a model" in done.stderr
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "meow"
    (tmp_path / "plain").write_text("x")
    assert "is a file" in command(*fit_words(market, tmp_path / "plain")).stderr


@pytest.fixture(scope="module")
def whole(market: Path) -> dict[str, np.ndarray]:
    """The arrays of a fit that nobody stopped."""
    tensor = rl.read_reviews(market / "reviews.parquet")
    return rl.RingDetector(rank=4, epochs=12).fit(tensor, market / "labels.csv").state_.to_arrays()


@pytest.mark.parametrize("delay", DELAYS)
def test_a_kill_at_any_moment_leaves_a_checkpoint_that_resumes_to_the_same_bits(
    commands: Any, market: Path, tmp_path: Path, delay: float, whole: dict[str, np.ndarray]
) -> None:
    words = fit_words(market, tmp_path / "killed", "--epochs", 12)
    number, end = commands.start(*words)
    wait_for_sweep(tmp_path / "killed", 3)
    time.sleep(delay)
    os.kill(number, signal.SIGKILL)
    assert end().returncode == -signal.SIGKILL
    stopped_at = rl.load(tmp_path / "killed").state_.sweep
    assert stopped_at >= 3
    resumed = commands.run(*words, "--resume", "--json")
    assert json.loads(resumed.stdout)["resumed_from"] == stopped_at
    left = state_of(tmp_path / "killed")
    assert all(np.array_equal(left[name], whole[name]) for name in left)


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_sigterm_and_ctrl_c_save_and_exit_cleanly(
    commands: Any, market: Path, tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    number, end = commands.start(*fit_words(market, tmp_path / "m", "--epochs", 400))
    wait_for_sweep(tmp_path / "m", 2)
    os.kill(number, sent)
    done = end()
    assert done.returncode == status
    assert "continue with --resume" in done.stderr
    assert "Traceback" not in done.stderr
    assert rl.load(tmp_path / "m").state_.sweep >= 2


def test_score_ranks_entities(command: Run, model: Path) -> None:
    done = command("score", model, "--mode", "seller", "--top", 5)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == list(SCORE_COLUMNS)
    assert len(lines) == 6
    data = json.loads(command("score", model, "--mode", "seller", "--json").stdout)
    assert data["rows"][0]["rank"] == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_scores_are_written_to_files_that_join_back(command: Run, model: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"scores.{suffix}"
    assert command("score", model, "--mode", "reviewer", "--output", path).returncode == 0
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet, "jsonl": lambda p: pd.read_json(p, lines=True)}
    frame = readers[suffix](path)
    assert set(frame["entity"]) == set(rl.load(model).tensor_.vocabulary("reviewer").values.to_pylist())


def test_score_of_reviews_has_a_row_per_review(command: Run, model: Path, tmp_path: Path) -> None:
    assert command("score", model, "--reviews", "--output", tmp_path / "r.parquet").returncode == 0
    frame = pd.read_parquet(tmp_path / "r.parquet")
    assert len(frame) == 5_000
    ways = ["score", "log_odds", "evidence", "lockstep", "strangers", "crowd", "attack"]
    assert list(frame.columns) == ["rank", "reviewer", "product", "seller", "rating", "week", "count", *ways]
    attack = rl.load(model).snapshot_.signals.ratios.attack
    assert sorted(frame["attack"]) == sorted(attack) and (frame.loc[frame["rating"] > 2, "attack"] == 0).all()
    shown = command("score", model, "--reviews", "--top", 200).stdout
    assert len(shown.splitlines()) == 201 and not re.search(r"\de-\d", shown)


def test_formulas_are_defused_in_csv_alone(command: Run, tmp_path: Path) -> None:
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "plain", "\tx"]
    table = pd.DataFrame({"reviewer": names * 3, "product": [f"p{i % 4}" for i in range(18)]})
    rl.RingDetector(rank=2, epochs=1).fit(table, checkpoint=tmp_path / "m")
    done = command("score", tmp_path / "m", "--mode", "reviewer", "--output", tmp_path / "a.csv")
    assert "--raw leaves them" in done.stderr
    assert sorted(pd.read_csv(tmp_path / "a.csv")["entity"]) == sorted(
        f"'{name}" if name != "plain" else name for name in names
    )
    for name, more in (("b.csv", ["--raw"]), ("b.parquet", []), ("b.jsonl", [])):
        command("score", tmp_path / "m", "--mode", "reviewer", "--output", tmp_path / name, *more)
    assert set(pd.read_csv(tmp_path / "b.csv")["entity"]) == set(names)
    assert set(pd.read_parquet(tmp_path / "b.parquet")["entity"]) == set(names)
    assert set(pd.read_json(tmp_path / "b.jsonl", lines=True)["entity"]) == set(names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mode", "shop"], "there is no mode 'shop'; the modes are reviewer, product, seller, rating, week"),
        (["--mode", "seller", "--target", "x"], "has no target 'x'"),
        ([], "give --mode NAME"),
        (["--mode", "seller", "--reviews"], "not both"),
        (["--mode", "seller", "--output", "a.xls"], "name it .csv, .parquet, .jsonl or .xlsx"),
        (["--mode", "seller", "--output", "/proc/nowhere/a.csv"], "cannot write"),
    ],
)
def test_bad_scoring_is_one_message(command: Run, model: Path, words: list[str], message: str) -> None:
    done = command("score", model, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_scoring_what_is_no_model_is_one_message(command: Run, tmp_path: Path) -> None:
    assert "there is no model" in command("score", tmp_path / "x", "--mode", "seller").stderr
    assert "is not a model" in command("score", tmp_path, "--mode", "seller").stderr


def test_update_takes_new_reviews_in(command: Run, market: Path, tmp_path: Path) -> None:
    reviews = pd.read_parquet(market / "reviews.parquet")
    reviews[:4_000].to_parquet(tmp_path / "old.parquet")
    reviews[4_000:].to_parquet(tmp_path / "new.parquet")
    words = ["fit", tmp_path / "old.parquet", "--out", tmp_path / "m", "--rank", 4, "--epochs", 2]
    assert command(*words).returncode == 0
    done = command("update", tmp_path / "m", tmp_path / "new.parquet", "--labels", market / "labels.csv", "--json")
    summary = json.loads(done.stdout)
    assert (summary["reviews"], summary["new_reviews"]) == (5_000, 1000)
    assert summary["labels"] > 0
    assert rl.load(tmp_path / "m").tensor_.counts.sum() == 5_000
    assert command("score", tmp_path / "m", "--mode", "seller").returncode == 0


def test_update_takes_labels_in_without_reviews(command: Run, market: Path, tmp_path: Path) -> None:
    table = pd.read_csv(market / "labels.csv")
    table[::2].to_csv(tmp_path / "old.csv", index=False)
    strangers = pd.DataFrame({"mode": ["seller"], "entity": ["stranger"], "label": [1], "target": ["abuse"]})
    pd.concat([table[1::2], strangers]).to_csv(tmp_path / "new.csv", index=False)
    detector = rl.RingDetector(rank=4, epochs=2)
    detector.fit(rl.read_reviews(market / "reviews.parquet"), tmp_path / "old.csv", checkpoint=tmp_path / "m")
    shutil.copytree(tmp_path / "m", tmp_path / "copy")
    done = command("update", tmp_path / "m", "--labels", tmp_path / "new.csv")
    assert done.returncode == 0, done.stderr
    new = len(table[1::2]) + 1
    assert done.stdout.startswith(f"{new} labels added\nnote: 1 seller of the labels is not in the reviews\n")
    assert f"holds 5,000 reviews and {len(table)} labels now" in done.stdout
    expected = detector.partial_fit(labels=tmp_path / "new.csv").scores("seller")
    pd.testing.assert_frame_equal(rl.load(tmp_path / "m").scores("seller"), expected)
    summary = json.loads(command("update", tmp_path / "copy", "--labels", tmp_path / "new.csv", "--json").stdout)
    assert (summary["new_reviews"], summary["new_labels"], summary["labels"]) == (0, new, len(table))
    assert set(summary["new_entities"].values()) == {0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is nothing to add; give NEW_REVIEWS, --labels FILE, or both"),
        (["--labels", "LABELS", "--column", "seller=shop"], "--column names a column of NEW_REVIEWS"),
        (["absent.parquet"], "there is no file or folder 'absent.parquet'"),
        (["--labels", "absent.csv"], "absent.csv"),
    ],
)
def test_a_bad_update_is_one_message_and_changes_nothing(
    command: Run, market: Path, model: Path, words: list[str], message: str
) -> None:
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    done = command("update", model, *(market / "labels.csv" if word == "LABELS" else word for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_a_pipe_that_closes_is_no_error(model: Path) -> None:
    line = f'{sys.executable} -c "from ringleader.cli import main; main()" score {model} --reviews --json | head -1'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full, which is a disk without room")
def test_a_full_disk_under_standard_output_is_one_message(model: Path) -> None:
    words = ["--quiet", "score", str(model), "--mode", "seller"]
    line = [sys.executable, "-c", "from ringleader.cli import main; main()", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_models_hold_nothing_that_could_be_unpickled(model: Path) -> None:
    assert {p.suffix for p in model.iterdir()} == {".json", ".safetensors", ".parquet"}
    source = Path(rl.__file__).parent
    for path in source.rglob("*.py"):
        code = path.read_text()
        for word in ("import pickle", "allow_pickle=True", "joblib", "torch.load", "eval("):
            assert word not in code, (path.name, word)
