"""Ids and column names are written by attackers: shown harmless and recognisable, kept exactly where results join."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from ringleader.cli.app import app
from ringleader.wording import FORMULA, HIDDEN, STEERING, defused, harmless

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    '=HYPERLINK("http://evil.example","x")',
    "+1",
    "-rf",
    "@SUM(1)",
    "\ttab",
    "\x1b[31mred\x1b[0m",
    "\x9b31mred",
    "\u202egnp.exe",
    "nul\x00inside",
    "two\nlines",
    "\r\nheader: x",
    "long" * 2_500,
    "../../etc/passwd",
    "'; DROP TABLE reviews; --",
    'com,ma "quoted"',
    "NaN",
    "[bold]rich[/bold]",
]
COLUMNS = {
    "reviewer": "<script>who</script>",
    "product": '=HYPERLINK("what")',
    "seller": "\x1b[31mshop\u202e",
    "rating": "two\nlines",
    "timestamp": "{{7*7}}'; --",
}
TARGET = "<b>\x1b[31mabuse"


def reviews() -> pd.DataFrame:
    """A small market whose sellers have hostile names, and its reviewers too; nine of them act together."""
    rng = np.random.default_rng(5)
    n = 2_400
    honest = pd.DataFrame(
        {
            "reviewer": [HOSTILE[i] if 9 <= i < len(HOSTILE) else f"r{i}" for i in rng.integers(0, 400, n)],
            "product": rng.integers(0, 300, n),
            "rating": rng.integers(1, 6, n),
            "timestamp": 1_400_000_000 + rng.integers(0, 60_000_000, n),
        }
    )
    rings = [
        (name, p, 5, 1_400_000_000 + 9_000_000 * p + int(rng.integers(0, 500_000)))
        for name in HOSTILE[:9]
        for p in range(7)
    ]
    ring = pd.DataFrame(rings, columns=honest.columns)
    whole = pd.concat([honest, ring], ignore_index=True)
    whole["seller"] = [HOSTILE[p % 40] if p % 40 < len(HOSTILE) else f"s{p % 40}" for p in whole["product"]]
    whole["product"] = [f"{HOSTILE[p]}{p}" if p < len(HOSTILE) else f"p{p}" for p in whole["product"]]
    return whole.rename(columns=COLUMNS)


def ask(*words: object) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.stdout, done.stderr, done.exception)
    for text in (done.stdout, done.stderr):
        hidden = {c for c in text.replace("\n", "") if unicodedata.category(c) in HIDDEN}
        assert not hidden, (words, hidden)
        assert "--json" in words or all(len(line) < 2_500 for line in text.splitlines()), words
    return done


def document(name: str, *words: object) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(ask(name, "--json", *words).stdout, parse_constant=refuse)


def csv_rows(path: Path) -> list[list[str]]:
    """The rows of a CSV, after a look for what a spreadsheet would run and what steers a terminal."""
    with path.open(newline="", encoding="utf-8") as handle:
        text = handle.read()
    assert not STEERING.search(text), path
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.reader(handle))
    assert {len(row) for row in rows} == {len(rows[0])}
    number = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?")
    assert [c for row in rows for c in row if c.startswith(FORMULA) and not number.fullmatch(c)] == []
    return rows


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    reviews().to_parquet(folder / "reviews.parquet")
    known = [("seller", name, int(i < 8)) for i, name in enumerate(HOSTILE[:14])]
    known += [("reviewer", name, 1) for name in HOSTILE[:9]] + [("reviewer", f"r{i}", 0) for i in range(20)]
    labels = pd.DataFrame(known, columns=["mode", "entity", "label"]).assign(target=TARGET)
    labels.to_parquet(folder / "labels.parquet")
    truth = [("seller", name, int(i % 2)) for i, name in enumerate(HOSTILE)] + [("seller", "\x1b[31mstranger", 1)]
    pd.DataFrame(truth, columns=["mode", "entity", "label"]).assign(target=TARGET).to_parquet(folder / "truth.parquet")
    return folder


def columns() -> list[str]:
    return [word for role, name in COLUMNS.items() for word in ("--column", f"{role}={name}")]


@pytest.fixture(scope="module")
def model(market: Path) -> Path:
    words = ["--labels", market / "labels.parquet", "--out", market / "model", "--rank", 3, "--epochs", 1]
    done = ask("fit", market / "reviews.parquet", *words, *columns())
    assert harmless(TARGET) in done.stdout
    return market / "model"


def test_check_shows_columns_and_labels_harmless(market: Path) -> None:
    done = ask("check", market / "reviews.parquet", "--labels", market / "labels.parquet", *columns())
    for name in COLUMNS.values():
        assert harmless(name) in done.stdout
    assert harmless(TARGET) in done.stdout
    data = document("check", market / "reviews.parquet", *columns())
    assert set(data["columns"].values()) == set(COLUMNS.values())


def test_modes_with_hostile_names_are_shown_harmless(market: Path) -> None:
    mode = "\x1b[31mred\u202e '; -- {{7*7}}"
    axes = ["--axis", f"{mode}={COLUMNS['reviewer']}", "--axis", f"x={COLUMNS['product']}"]
    assert harmless(mode) in ask("check", market / "reviews.parquet", *axes).stdout
    assert mode in document("check", market / "reviews.parquet", *axes)["modes"]


def test_errors_name_hostile_columns_harmless(market: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(market / "reviews.parquet")])
    assert done.exit_code != 0
    said = harmless(f"error: {done.exception}", limit=4000)
    assert "<script>who</script>" in said and "\x1b" not in said and "\u202e" not in said


@pytest.mark.parametrize("mode", ["reviewer", "seller", "product"])
def test_scores_are_harmless_on_the_terminal(model: Path, mode: str) -> None:
    shown = ask("score", model, "--mode", mode, "--top", 500).stdout
    for name in HOSTILE:
        assert harmless(name if mode != "product" else f"{name}{HOSTILE.index(name)}").rstrip() in shown


@pytest.mark.parametrize("words", [["score", "MODEL"], ["baseline", "degree", "REVIEWS"]], ids=["score", "baseline"])
def test_files_join_back_and_csv_is_harmless(market: Path, model: Path, tmp_path: Path, words: list[str]) -> None:
    line = [{"MODEL": model, "REVIEWS": market / "reviews.parquet"}.get(word, word) for word in words]
    line += ["--mode", "seller", *(columns() if words[0] == "baseline" else [])]
    expected = set(reviews()[COLUMNS["seller"]])
    for kind in ("csv", "parquet", "jsonl"):
        ask(*line, "--output", tmp_path / f"a.{kind}")
    assert set(pd.read_parquet(tmp_path / "a.parquet")["entity"]) == expected
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").split("\n")
    assert {json.loads(line)["entity"] for line in lines if line} == expected
    rows = csv_rows(tmp_path / "a.csv")
    at = rows[0].index("entity")
    assert {row[at] for row in rows[1:]} == {defused(name) for name in expected}
    assert {row["entity"] for row in document(*line)["rows"]} == expected
    ask(*line, "--output", tmp_path / "raw.csv", "--raw")
    with (tmp_path / "raw.csv").open(newline="", encoding="utf-8") as handle:
        assert {row[at] for row in list(csv.reader(handle))[1:]} == expected


def test_reviews_join_back_and_csv_is_harmless(model: Path, tmp_path: Path) -> None:
    table = reviews()
    for kind in ("csv", "parquet", "jsonl"):
        ask("score", model, "--reviews", "--output", tmp_path / f"r.{kind}")
    frame = pd.read_parquet(tmp_path / "r.parquet")
    lines = (tmp_path / "r.jsonl").read_text(encoding="utf-8").split("\n")
    spelt = csv_rows(tmp_path / "r.csv")
    for role in ("reviewer", "product", "seller"):
        expected = set(table[COLUMNS[role]])
        assert set(frame[role]) == expected
        assert {json.loads(line)[role] for line in lines if line} == expected
        assert {row[spelt[0].index(role)] for row in spelt[1:]} == {defused(name) for name in expected}
    ask("score", model, "--reviews")


@pytest.mark.parametrize("name", HOSTILE, ids=[f"name{i}" for i in range(len(HOSTILE))])
def test_explain_finds_the_account_and_shows_it_harmless(model: Path, name: str) -> None:
    shown = ask("explain", model, "--mode", "seller", "--", name).stdout
    assert shown.startswith(f"seller {harmless(name)}: rank")
    assert document("explain", model, "--mode", "seller", "--", name)["entity"] == name


def test_cores_are_harmless_and_no_file_is_named_after_an_account(model: Path, tmp_path: Path) -> None:
    cores = document("cores", model)["cores"]
    members = {m["entity"] for core in cores for m in core["members"] if m["mode"] == "reviewer"}
    assert len(members & set(HOSTILE)) > 5
    ask("cores", model)
    said = ask("cores", model, "--output", tmp_path / "c").stderr
    assert said.count("--raw leaves them") == 1
    named = re.compile(r"(cores|members|reviews)\.csv|block_\d+\.(attributes|tuples)")
    assert [path.name for path in (tmp_path / "c").rglob("*") if not named.fullmatch(path.name)] == []
    rows = csv_rows(tmp_path / "c" / "members.csv")
    spelt = {row[rows[0].index("entity")] for row in rows[1:] if row[rows[0].index("mode")] == "reviewer"}
    assert spelt == {defused(name) for name in members}
    csv_rows(tmp_path / "c" / "reviews.csv")
    csv_rows(tmp_path / "c" / "cores.csv")


def test_evaluate_shows_targets_harmless(market: Path, model: Path) -> None:
    done = ask("evaluate", model, "--truth", market / "truth.parquet")
    assert harmless(TARGET) in done.stdout
    assert document("evaluate", model, "--truth", market / "truth.parquet")["results"][0]["target"] == TARGET


def test_update_takes_new_hostile_names_and_keeps_the_old(market: Path, model: Path, tmp_path: Path) -> None:
    new = [f"{name}, new" for name in HOSTILE]
    table = reviews().tail(len(new)).assign(**{COLUMNS["reviewer"]: new})
    table.to_parquet(tmp_path / "new.parquet")
    copy = tmp_path / "model"
    copy.mkdir()
    for path in model.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    ask("update", copy, tmp_path / "new.parquet")
    ask("score", copy, "--mode", "reviewer", "--output", tmp_path / "a.parquet")
    assert set(pd.read_parquet(tmp_path / "a.parquet")["entity"]) == set(reviews()[COLUMNS["reviewer"]]) | set(new)
