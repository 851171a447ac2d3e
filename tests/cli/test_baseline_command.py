"""``ringleader baseline`` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

import ringleader as rl
from ringleader.baselines.registry import baseline, baseline_names
from ringleader.cli.baseline import command, known_arrays, parse_settings, step_bar
from ringleader.datasets import marketplace
from ringleader.errors import LabelError, RingleaderError, SettingsError

# The command is found as every other one is, also where the list of commands does not name it yet.
LINE = "from ringleader.cli import app; app.COMMANDS.setdefault('baseline', ('baseline', 'Compare.')); app.run()"

app = typer.Typer()
app.command()(command)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marketplace(4_000, difficulty="easy", seed=2).write(tmp_path_factory.mktemp("market"))


def run(*words: object) -> Result:
    """Runs the command in this process; a ``RingleaderError`` goes through."""
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_list_names_every_baseline_and_what_needs_labels() -> None:
    shown = run("--list")
    assert shown.exit_code == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == list(baseline_names())
    data = json.loads(run("--list", "--json").stdout)
    assert all(row["summary"] in shown.stdout for row in data["baselines"]), "a method is told to its end"
    assert {row["name"] for row in data["baselines"] if row["needs_labels"]} == set(baseline_names(needs_labels=True))


def test_it_writes_rank_entity_score_most_suspicious_first(market: Path, tmp_path: Path) -> None:
    words = (
        "burst",
        market / "reviews.parquet",
        "--mode",
        "seller",
        "--output",
        tmp_path / "a.csv",
        "--set",
        "window=2",
    )
    line = [sys.executable, "-c", LINE, "baseline", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "a.csv")
    assert list(frame.columns) == ["rank", "entity", "score"]
    tensor = rl.read_reviews(market / "reviews.parquet")
    assert done.stdout == f"{tensor.shape[2]:,} rows written to {tmp_path / 'a.csv'}\n"
    assert done.stderr == ""  # a bar is for terminals
    expected = baseline("burst", window=2).fit(tensor).scores("seller")
    np.testing.assert_allclose(frame["score"], np.sort(expected)[::-1])
    np.testing.assert_array_equal(frame["rank"], np.arange(1, len(frame) + 1))
    assert frame["entity"][0] == tensor.vocabulary("seller").decode([int(expected.argmax())])[0]


def test_labels_settings_and_seed_reach_the_method(market: Path) -> None:
    words = ("forest", market / "reviews.parquet", "--labels", market / "labels.csv", "--mode", "reviewer", "--json")
    more = ("--seed", 5, "--set", "n_estimators=7", "--set", "columns=all", "--top", 4)
    done = run(*words, *more)
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["baseline"], data["mode"], data["seed"]) == ("forest", "reviewer", 5)
    assert data["settings"] == {"n_estimators": 7, "columns": "all"}
    tensor = rl.read_reviews(market / "reviews.parquet")
    labels = known_arrays(rl.read_labels(market / "labels.csv"), tensor, None, quiet=True)
    model = baseline("forest", n_estimators=7, columns="all", random_state=5).fit(tensor, labels)
    scores = model.scores("reviewer")
    assert [row["score"] for row in data["rows"]] == pytest.approx(np.sort(scores)[::-1][:4].tolist())
    assert [row["rank"] for row in data["rows"]] == [1, 2, 3, 4]


def test_without_a_file_the_first_are_shown(market: Path) -> None:
    done = run("degree", market / "reviews.parquet", "--mode", "reviewer")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["rank", "entity", "score"]
    assert len(lines) == 21
    assert "more; --top N shows more" in done.stderr


def test_hostile_names_are_defused_in_csv_and_kept_in_parquet(tmp_path: Path) -> None:
    rows = [{"reviewer": name, "product": f"p{i % 3}"} for i in range(6) for name in ("=cmd()", "plain", "@x")]
    pd.DataFrame(rows).to_parquet(tmp_path / "r.parquet")
    for name in ("a.csv", "a.parquet"):
        done = run("degree", tmp_path / "r.parquet", "--mode", "reviewer", "--output", tmp_path / name)
        assert done.exit_code == 0, done.stderr
    assert set(pd.read_csv(tmp_path / "a.csv")["entity"]) == {"'=cmd()", "plain", "'@x"}
    assert set(pd.read_parquet(tmp_path / "a.parquet")["entity"]) == {"=cmd()", "plain", "@x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["zoom", "R", "--mode", "seller"], "there is no baseline 'zoom'; there are mzoom"),
        (["mzoom", "R"], "give NAME, REVIEWS and --mode"),
        (["mzoom"], "give NAME, REVIEWS and --mode"),
        (["mzoom", "R", "--mode", "shop"], "there is no mode 'shop'"),
        (["mzoom", "R", "--mode", "seller", "--set", "density"], "write KEY=VALUE"),
        (["mzoom", "R", "--mode", "seller", "--set", "nonsense=1"], "baseline mzoom has density"),
        (["mzoom", "R", "--mode", "seller", "--set", "n_blocks=0"], "n_blocks is 0"),
        (["boosting", "R", "--mode", "seller"], "boosting learns from known accounts; give them with --labels"),
        (["boosting", "R", "--mode", "product", "--labels", "L"], "product has 0 bad and 0 good"),
        (["forest", "R", "--mode", "seller", "--labels", "L", "--target", "theft"], "no target 'theft'"),
        (["degree", "R", "--mode", "seller", "--output", "a.xls"], "name it .csv, .parquet, .jsonl or .xlsx"),
        (["degree", "absent.csv", "--mode", "seller"], "there is no file or folder 'absent.csv'"),
    ],
)
def test_bad_usage_is_one_message(market: Path, words: list[str], message: str) -> None:
    files = {"R": market / "reviews.parquet", "L": market / "labels.csv"}
    done = run(*(files.get(word, word) for word in words))
    assert isinstance(done.exception, RingleaderError)
    assert message in str(done.exception)
    assert done.stdout == ""


def test_a_mistake_ends_with_status_2_and_no_traceback() -> None:
    line = [sys.executable, "-c", LINE, "baseline", "zoom", "reviews.csv", "--mode", "seller"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no baseline 'zoom'")
    assert done.stderr.count("\n") == 1


def test_values_of_settings_are_json_or_text() -> None:
    texts = ["rank=8", "alpha=0.5", "density=geo", "local_search=true", "max_size=null", 'modes=["a","b"]', "x=a=b"]
    assert parse_settings(texts) == {
        "rank": 8,
        "alpha": 0.5,
        "density": "geo",
        "local_search": True,
        "max_size": None,
        "modes": ["a", "b"],
        "x": "a=b",
    }
    assert parse_settings(None) == {}
    with pytest.raises(SettingsError, match="twice"):
        parse_settings(["rank=8", "rank=9"])


def test_labels_of_one_target_are_used(market: Path) -> None:
    tensor, labels = rl.read_reviews(market / "reviews.parquet"), rl.read_labels(market / "labels.csv")
    frame = labels.to_frame()
    for target, expected in ((None, "abuse"), ("boost", "boost")):
        arrays = known_arrays(labels, tensor, target, quiet=True)
        rows = frame[(frame["mode"] == "seller") & (frame["target"] == expected)]
        assert (arrays["seller"] == 1).sum() == (rows["label"] == 1).sum()
        assert (~np.isnan(arrays["seller"])).sum() == len(rows)
    only = rl.read_labels(frame[frame["target"] == "attack"])
    assert set(known_arrays(only, tensor, None, quiet=True)) == {"seller", "reviewer"}
    with pytest.raises(LabelError, match="they have attack"):
        known_arrays(only, tensor, "abuse", quiet=True)


def test_labelled_accounts_that_are_not_there_are_counted(market: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensor = rl.read_reviews(market / "reviews.parquet")
    labels = rl.read_labels(pd.DataFrame({"mode": ["seller"] * 2, "entity": ["gone", "away"], "label": [1, 0]}))
    known_arrays(labels, tensor, None, quiet=False)
    assert "2 sellers of the labels are not in the reviews" in capsys.readouterr().err


def test_the_bar_follows_the_steps_on_a_terminal(market: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes standard error for a terminal then
    tensor = rl.read_reviews(market / "reviews.parquet")
    with step_bar("mzoom", quiet=False) as bar:
        baseline("mzoom", n_blocks=2).fit(tensor, callback=bar)
    printed = capsys.readouterr()
    assert "mzoom" in printed.err and "2/2" in printed.err and "objective" in printed.err
    assert printed.out == ""
    with step_bar("mzoom", quiet=True) as bar:
        baseline("mzoom", n_blocks=1).fit(tensor, callback=bar)
    assert capsys.readouterr().err == ""
