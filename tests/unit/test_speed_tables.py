"""The tables of ``ringleader benchmark speed``, on a tensor too small for its figures to mean anything."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ringleader.cli import benchmark
from ringleader.evaluation import answers, speed
from ringleader.evaluation.results import Results


def test_every_table_has_rows_that_are_said_as_they_come(monkeypatch):
    monkeypatch.setattr(speed, "has_pyttb", lambda: False)
    said: list[str] = []
    report = speed.speed_report(1_000, say=said.append)
    assert list(report) == ["speed"]
    rows = report["speed"]
    assert all(list(row) == ["what", "value", "unit", "asked", "note"] for row in rows)
    assert all(np.isfinite(row["value"]) for row in rows)
    assert [text for text in said if "pyttb" not in text] == [
        f"{row['what']}: {row['value']:,.2f} {row['unit']}" for row in rows
    ]
    titles = [row["what"] for row in rows]
    assert titles[0].startswith("compilation") and titles[-1] == "peak memory"
    assert rows[titles.index("two threads over one, rank 24")]["asked"] == "at least 1.8"
    assert any("pyttb is not installed" in text for text in said)


@pytest.mark.slow
def test_a_model_is_asked_everything_in_processes_of_their_own():
    rows = list(answers.answer_table([3_000], repeats=1))
    assert [row.what.removesuffix(", 3,000 reviews") for row in rows] == [
        "ringleader --help",
        "ringleader score",
        "ringleader explain",
        "ringleader cores",
        "load and first explain in Python",
        "decision on a seller and scores",
        "first decision on a seller and scores",
        "decision on a reviewer and scores",
        "first decision on a reviewer and scores",
        "new review and scores of sellers",
        "first new review and scores of sellers",
        "new review alone",
        "scores of sellers after it",
    ]
    assert all(row.value > 0 and row.unit == "s" for row in rows)


def test_the_first_of_several_runs_does_not_count():
    row = answers._row("load", [100.0, 1.0, 4.0, 2.0])
    assert row.value == 2.0
    assert row.note == "spread 150%"


def test_a_command_that_fails_is_an_error_that_says_so(tmp_path):
    with pytest.raises(RuntimeError, match=r"score .*nowhere ended with status 2: .*nowhere"):
        answers.command_seconds("score", str(tmp_path / "nowhere"), "--mode", "seller")


def test_decisions_are_about_accounts_without_a_label_and_must_reach_the_scores(tmp_path):
    stored = answers.store_model(3_000, tmp_path / "model")
    labelled = answers.load(stored.folder).labels_.to_frame()
    for mode, suspects in stored.suspects.items():
        assert len(suspects) == 2
        assert not set(suspects) & set(labelled.loc[labelled["mode"] == mode, "entity"])
    with pytest.raises(RuntimeError, match="no-such-seller"):
        answers.decision_seconds(stored.folder, "seller", ["no-such-seller"])


@pytest.mark.parametrize(
    ("reviews", "large", "sizes"),
    [(1_000_000, 0, [100_000]), (5_000, 0, [5_000]), (1_000_000, 10_000_000, [100_000, 1_000_000])],
)
def test_both_tables_are_stored_with_the_machine(tmp_path, monkeypatch, reviews, large, sizes):
    def report(cells, *, large, answers, say):
        return {
            "speed": [{"what": f"fit of {cells}", "value": 1.0}],
            "answers": [{"what": f"answer of {size}", "value": 2.0} for size in answers],
        }

    monkeypatch.setattr(speed, "speed_report", report)
    frame = benchmark._speed(Results(tmp_path), reviews, large, "cpu", print)
    assert frame["what"].tolist() == [f"fit of {reviews}", *(f"answer of {size}" for size in sizes)]
    stored = json.loads((tmp_path / "rows.json").read_text())
    assert "cores" in stored["about"]
    assert [row["what"] for row in stored["tables"]["answers"]] == [f"answer of {size}" for size in sizes]
    assert {path.name for path in tmp_path.glob("*.csv")} == {"speed.csv", "answers.csv"}


def test_a_large_market_of_the_same_size_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "has_pyttb", lambda: False)
    rows = {row.what: row.value for row in speed.fit_table(300, large=300, say=lambda text: None)}
    assert not any("300 to 300" in what for what in rows)
    assert np.isfinite(list(rows.values())).all()
