"""What commands print and write: names of any kind, what was left out, and what could not be used."""

from __future__ import annotations

import csv
import inspect
import json
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

import ringleader as rl
from ringleader.cli import evaluate as evaluate_command
from ringleader.cli import score
from ringleader.cli.evaluate import show
from ringleader.cli.explain import _contribution
from ringleader.cli.explain import command as explain
from ringleader.cli.fit import _prevalence, _show, _unused
from ringleader.cli.models import open_snapshot
from ringleader.cli.reading import ReadingOptions
from ringleader.cli.terminal import print_json, print_table
from ringleader.errors import SettingsError
from ringleader.evaluation.truth import evaluate, read_truth
from ringleader.wording import cell, json_ready

HOSTILE = ["a\r=1", "\r=1", "new\nline", "\n=1", "com,ma", 'q"uote', "plain"]


@pytest.fixture(scope="module")
def reviews() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 400
    return pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 60, n)],
            "product": [f"p{i}" for i in rng.integers(0, 30, n)],
            "seller": [f"s{i}" for i in rng.integers(0, 20, n)],
            "timestamp": 1_500_000_000 + rng.integers(0, 10_000_000, n),
        }
    )


def labels(entities: list[str], values: list[float], target: str = "abuse") -> pd.DataFrame:
    return pd.DataFrame({"mode": "seller", "entity": entities, "label": values, "target": target})


@pytest.fixture(scope="module")
def model(reviews: pd.DataFrame) -> rl.RingDetector:
    known = labels(["s0", "s1", "s2", "s3"], [1, 0, 1, 0])
    return rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(reviews), known)


@pytest.mark.parametrize("raw", [True, False])
def test_any_name_stays_in_its_row_of_a_csv(tmp_path: Path, raw: bool) -> None:
    score.write_frame(pd.DataFrame({"entity": HOSTILE, "score": 0.5}), str(tmp_path / "a.csv"), raw=raw)
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.reader(handle))[1:]
    assert [row[1:] for row in rows] == [["0.5"]] * len(HOSTILE)
    defused = [name.replace("\r", "\\u000d") if name[0] != "\n" else f"'{name}" for name in HOSTILE]
    assert [row[0] for row in rows] == (HOSTILE if raw else defused)


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_no_probability_becomes_certain_in_a_file(kind: str, tmp_path: Path) -> None:
    shares = [np.finfo(float).tiny, 3.9e-15, 0.12345678901234567, 1 - np.finfo(float).epsneg]
    score.write_frame(pd.DataFrame({"probability": shares}), str(tmp_path / f"a{kind}"), raw=False)
    read = {
        ".csv": partial(pd.read_csv, float_precision="round_trip"),
        ".parquet": pd.read_parquet,
        ".xlsx": pd.read_excel,
    }.get(kind)
    if read is not None:
        back = list(read(tmp_path / f"a{kind}")["probability"])
    else:
        back = [json.loads(line)["probability"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert all(0 < share < 1 for share in back)
    assert back == pytest.approx(shares, rel=1e-14, abs=0)
    assert kind == ".xlsx" or back == shares  # a spreadsheet has 16 digits


def test_every_kind_of_value_is_one_of_json(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["a\u2028/é", None], "n": pd.array([1, None], "Int64"), "x": [1.5, float("inf")]})
    frame = frame.assign(yes=[True, False], at=pd.to_datetime(["2026-03-02T04:05:06Z", None]), label=[1, None])
    score.write_frame(frame, str(tmp_path / "a.jsonl"), raw=False)
    first, second = (json.loads(line) for line in (tmp_path / "a.jsonl").read_text().split("\n")[:-1])
    assert first == {"name": "a\u2028/é", "n": 1, "x": 1.5, "yes": True, "at": first["at"], "label": 1}
    assert first["at"].startswith("2026-03-02T04:05:06")
    assert second == {"name": None, "n": None, "x": None, "yes": False, "at": None, "label": None}
    score.write_frame(frame[:0], str(tmp_path / "none.jsonl"), raw=False)
    assert (tmp_path / "none.jsonl").read_text() == ""


def test_small_numbers_stay_above_nought_in_jsonl(tmp_path: Path) -> None:
    score.write_frame(pd.DataFrame({"probability": [3e-12]}), str(tmp_path / "a.jsonl"), raw=False)
    assert json.loads((tmp_path / "a.jsonl").read_text())["probability"] == pytest.approx(3e-12)


def test_reviews_of_modes_called_like_our_columns_are_ranked(reviews: pd.DataFrame) -> None:
    modes = ["rank=reviewer", "evidence=product", "count=seller"]
    model = rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(reviews, modes=modes))
    frame = score.review_frame(model.snapshot_)
    assert len(set(frame.columns)) == len(frame.columns)
    assert frame["rank_"].tolist() == list(range(1, len(frame) + 1))
    assert (
        frame["score"].is_monotonic_decreasing
        and "evidence_" in frame
        and frame["rank"].isin(set(reviews["reviewer"])).all()
    )


def test_times_in_json_are_iso(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"week": pd.Timestamp("2016-03-28")})
    assert json.loads(capsys.readouterr().out) == {"week": "2016-03-28T00:00:00"}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (pd.NaT, None),
        (np.datetime64("2016-03-28", "ns"), "2016-03-28T00:00:00"),
        (np.array([1.0, np.nan]), [1.0, None]),
        ((1, "a"), [1, "a"]),
        ({3: {"deep": [np.nan]}}, {"3": {"deep": [None]}}),
    ],
)
def test_what_json_cannot_hold_is_made_ready(value: object, written: object) -> None:
    ready = json_ready(value)
    assert ready == written and type(ready) is type(written)
    json.dumps(ready, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (float("nan"), ""),
        (pd.NaT, ""),
        (0.123456, "0.1235"),
        (0.99999, "0.9999"),
        (0.99994, "0.9999"),
        (1.0, "1"),
        (1.00001, "1"),
        (np.float32(0.5), "0.5"),
        (12_000, "12000"),
        (True, "True"),
        (pd.Timestamp("2016-03-28"), "2016-03-28"),
        (np.datetime64("2016-03-28T10:30:00", "ns"), "2016-03-28T10:30:00"),
        (["a", 0.25, None], "a, 0.25, "),
    ],
)
def test_a_value_has_one_way_to_be_shown(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_whole_numbers_are_grouped_where_it_is_asked() -> None:
    assert [cell(n, thousands=True) for n in (12_000, np.int64(1_234_567), 0.5)] == ["12,000", "1,234,567", "0.5"]


@pytest.mark.parametrize("digits", [".3g", ".4g", ".2f", ",.3f"])
def test_what_is_below_one_is_never_shown_as_one(digits: str) -> None:
    assert float(cell(1 - 1e-9, digits)) == 1 - 10.0 ** -int(digits[-2])


def test_columns_stand_below_each_other_also_with_wide_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["entity", "score"], [["大大大大", 1.0], ["b" * 200, 10.0]], limit=300)
    lines = capsys.readouterr().out.splitlines()
    assert {cell_len(line) for line in lines} == {200 + 2 + len("score")}
    assert lines[2].endswith("b     10") and "b" * 200 in lines[2]


def test_the_commands_that_learn_share_the_options_for_reading() -> None:
    names = {field.name for field in fields(ReadingOptions)}
    for name, without in (("fit", set()), ("check", set()), ("baseline", set()), ("update", {"axis"})):
        options = inspect.signature(import_module(f"ringleader.cli.{name}").command).parameters
        assert names & set(options) == names - without and "reading" not in options


def test_sentences_are_told_to_their_end(
    model: rl.RingDetector, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "m")
    explain(str(tmp_path / "m"), "s0", mode="seller")
    printed, contributions = capsys.readouterr().out, model.explain("seller", "s0").contributions
    assert contributions["sentence"][:10].str.len().max() > 60
    for sentence in contributions["sentence"][:10]:
        assert sentence in printed


def test_nobody_stands_above_all_of_those_it_is_one_of() -> None:
    record = {"value": 1.0, "contribution": 1.0, "sentence": "much"}
    assert [_contribution({**record, "above": share})["than others"] for share in (0.9993, 0.985, 0.0)] == [
        "above 99%",
        "above 98%",
        "above 0%",
    ]


def test_a_value_is_told_with_its_target_and_interval(
    reviews: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = labels([f"s{i}" for i in range(12)], [float(i) for i in range(12)], target="loss")
    fitted = rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(reviews), rl.read_labels(known, target_kind="real"))
    fitted.save(tmp_path / "m")
    explain(str(tmp_path / "m"), "s15", mode="seller")
    row = fitted.scores("seller").set_index("entity").loc["s15"]
    expected = f"value of loss {row['value']:.4g} (90% interval {row['lower']:.4g} to {row['upper']:.4g})\n"
    assert expected in capsys.readouterr().out


def test_a_table_is_written_into_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    score.write_frame(pd.DataFrame({"entity": ["a"]}), str(tmp_path / "new" / "deep" / "a.csv"), raw=False)
    assert (tmp_path / "new" / "deep" / "a.csv").read_text().splitlines() == ["entity", "a"]


def test_a_fit_that_was_stopped_is_said_to_be_one(
    reviews: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(info: object) -> None:
        raise KeyboardInterrupt

    known = labels(["s0", "s1"], [1, 0])
    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector(rank=2, epochs=2).fit(rl.read_reviews(reviews), known, checkpoint=tmp_path, callback=stop)
    stopped = open_snapshot(str(tmp_path))
    assert "was stopped after sweep 0; its labels count for nothing yet" in capsys.readouterr().err
    assert "no head was learned from its labels" in stopped.explain("seller", "s0").note


def test_evaluation_says_who_is_left_out_and_whose_scores_they_are(
    model: rl.RingDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"s{i}" for i in range(2, 12)] + ["stranger"]
    truth = labels(rows, [i % 2 for i in range(11)])
    other = truth.assign(target="other", label=np.where(truth["entity"] == "s5", np.nan, truth["label"]))
    pd.concat([truth, other]).to_csv(tmp_path / "truth.csv", index=False)
    monkeypatch.setattr(evaluate_command, "open_detector", lambda _: model)
    evaluate_command.command("model", str(tmp_path / "truth.csv"))
    said = capsys.readouterr().err
    assert "seller abuse: 2 left out" in said and "seller other: the model has no such target" in said
    assert "1 seller of the truth is not in the reviews" in said and "1 row of the truth skipped" in said
    evaluate_command.command("model", str(tmp_path / "truth.csv"), as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert [(r["target"], r["known_left_out"], r["scored_by"]) for r in data["results"]] == [
        ("abuse", 2, "abuse"),
        ("other", 2, "abuse"),
    ]
    assert data["unknown"] == {"seller": 1} and data["skipped"] == {"no label": 1}


def test_numbers_held_out_are_measured_as_numbers(reviews: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    tensor = rl.read_reviews(reviews)
    values = [float(10 + i) for i in range(20)]
    known = rl.read_labels(labels([f"s{i}" for i in range(20)], values), target_kind="real")
    fitted = rl.RingDetector(rank=2, epochs=1, holdout=0.4).fit(tensor, known)
    assert fitted.heldout_ is not None
    (result,) = evaluate(fitted, fitted.heldout_)
    held = {label.entity: label.value for label in fitted.heldout_.entries}
    said = fitted.scores("seller").set_index("entity")["value"][list(held)]
    assert result["error"] == pytest.approx(np.sqrt(np.mean((said - list(held.values())) ** 2)))
    ranks = said.rank().corr(pd.Series(held).rank())
    assert result["rank_correlation"] == pytest.approx(ranks) and result["accounts"] == 8
    show([result])
    assert "rank correlation" in capsys.readouterr().out
    numbers = read_truth(fitted, labels(["s0", "s1"], [3.5, 2.0]))
    assert numbers.target_kind == "real" and read_truth(fitted, labels(["s0", "s1"], [1, 0])).target_kind == "binary"


def test_what_is_given_and_not_used_is_said(reviews: pd.DataFrame) -> None:
    tensor, known = rl.read_reviews(reviews), labels(["s0", "s1"], [1, 0])
    table = pd.DataFrame({"mode": ["seller", "product"], "entity": ["s0", "p0"], "same": 1.5, "none": np.nan})
    fitted = rl.RingDetector(rank=2, epochs=1, prevalence={"product": 0.1}).fit(tensor, known, covariates=table)
    said = " | ".join(_unused(fitted))
    for words in ("'none' of the covariates is empty", "'same' of the covariates is the same for every seller"):
        assert words in said
    assert "covariates of product: no product is labelled" in said and "--prevalence product" in said
    fitted = rl.RingDetector(preset="paper", rank=2, epochs=1, prevalence=0.1).fit(tensor, known, covariates=table)
    assert len(_unused(fitted)) == 2
    assert _unused(rl.RingDetector(rank=2, epochs=1).fit(tensor, known)) == []


@pytest.mark.parametrize("texts", [["0.1", "0.2"], ["seller=0.1", "seller=0.2"]])
def test_a_prevalence_given_twice_is_refused(texts: list[str]) -> None:
    with pytest.raises(SettingsError, match="twice"):
        _prevalence(texts)


def test_reviews_have_no_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "open_snapshot", lambda _: SimpleNamespace())
    with pytest.raises(SettingsError, match="--target goes with --mode"):
        score.command("model", reviews=True, target="x")


def test_scores_of_one_of_several_targets_say_which(
    reviews: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = pd.concat([labels(["s0", "s1"], [1, 0], target) for target in ("../x", "abuse", "later")])
    fitted = rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(reviews), known)
    monkeypatch.setattr(score, "open_snapshot", lambda _: fitted.snapshot_)
    score.command("model", mode="seller", as_json=True)
    said = capsys.readouterr()
    assert json.loads(said.out)["target"] == "abuse"
    assert "scores for abuse; --target gives those for ../x, later" in said.err
    score.command("model", mode="seller", target="later", as_json=True)
    said = capsys.readouterr()
    assert (json.loads(said.out)["target"], said.err) == ("later", "")


def test_names_of_targets_and_modes_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["\x1b[31mmode"], [["\x1b[31mred"]])
    head = {"mode": "seller", "target": "\x1b[31mred", "note": "additive"}
    counts = {
        "cells": 1,
        "labels": 1,
        "sweeps": 1,
        "rank": 1,
        "seconds": 1.0,
        "effective_rank": None,
        "model": "m",
        "device": "cpu",
        "order": None,
    }
    lists = {"unknown_labels": {}, "unknown_covariates": {}, "unused": [], "holdout": [], "resumed_from": None}
    _show({**counts, **lists, "modes": {"reviewer": 3, "product": 2}, "heads": [head]})
    said = capsys.readouterr().out
    assert "\x1b" not in said and said.count("\\u001b[31m") == 3
    assert "ringleader score m --mode reviewer" in said
