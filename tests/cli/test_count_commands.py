"""Connection logs as a person brings them: --count, which order it is, and why."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
AXES = ["--axis", "src=src", "--axis", "dst=dst", "--axis", "port=port:category"]
FIT = ["--rank", "2", "--epochs", "1"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a flood from one source to one destination, one row for each that are alike."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 20, (1_500, 3)), columns=["src", "dst", "port"])
    rows = "h" + rows.astype(str)
    flood = pd.DataFrame({"src": "bad", "dst": "victim", "port": rows["port"].iloc[:200]})
    table = pd.concat([rows, flood]).value_counts().rename("count").reset_index()
    table.to_csv(tmp_path / "log.csv", index=False)
    table.loc[table.index.repeat(table["count"])].drop(columns="count").to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_counts_are_read_and_sorted_by_crowd(command: Run, log: Path) -> None:
    done = command("fit", "log.csv", *AXES, *FIT, "--count", "count", "--out", "m", cwd=log)
    assert done.returncode == 0, done.stderr
    assert "note: without labels it sorts by crowd, how far the counts around a row exceed" in done.stdout
    assert "column 'count'" not in done.stderr
    first = command("score", "m", "--reviews", "--top", "20", "--json", cwd=log)
    data = json.loads(first.stdout)
    assert data["order"].startswith("crowd, ")
    assert {row["src"] for row in data["rows"][:5]} == {"bad"}
    assert [row["score"] for row in data["rows"]] == [row["crowd"] for row in data["rows"]]
    people = command("score", "m", "--mode", "src", "--top", "3", cwd=log)
    assert "note: sorted by crowd, " in people.stderr
    assert "there are no ratings, and " in people.stderr
    assert people.stdout.splitlines()[1].split()[1] == "bad"
    said = command("explain", "m", "--mode", "src", "bad", cwd=log).stdout
    assert "200 rows, 100% of all it has, are with dst victim" in said
    assert "the suspicion alone, by crowd" in said


def test_counts_are_the_same_as_rows_in_every_command(command: Run, log: Path) -> None:
    for out, table, how in (("m", "log.csv", ["--count", "count"]), ("r", "rows.csv", [])):
        assert command("fit", table, *AXES, *FIT, *how, "--out", out, cwd=log).returncode == 0
    for words in (["--mode", "src"], ["--mode", "dst"], ["--reviews"]):
        one, other = (json.loads(command("score", m, *words, "--json", cwd=log).stdout)["rows"] for m in "mr")
        assert one == other
    one, other = (
        command("baseline", "degree", table, "--mode", "src", *AXES, *how, cwd=log).stdout
        for table, how in (("log.csv", ["--count", "count"]), ("rows.csv", []))
    )
    assert one == other
    checked = json.loads(command("check", "log.csv", *AXES, "--count", "count", "--json", cwd=log).stdout)
    assert (checked["count"], checked["counted"]) == ("count", 1_700)
    assert checked["rows"] == checked["used"] == checked["cells"]
    assert (
        "column 'count' says how often each row counts: 1,700 in all"
        in command("check", "log.csv", *AXES, "--count", "count", cwd=log).stdout
    )


def test_an_update_counts_as_the_fit_did_and_takes_another_name(command: Run, log: Path) -> None:
    command("fit", "log.csv", *AXES, *FIT, "--count", "count", "--out", "m", cwd=log)
    (log / "more.csv").write_text("src,dst,port,hits\nnew,h1,h2,30\n")
    refused = command("update", "m", "more.csv", cwd=log)
    assert refused.returncode == 2
    assert "no column 'count'" in refused.stderr
    assert "or --count COLUMN" in refused.stderr
    done = command("update", "m", "more.csv", "--count", "hits", "--json", cwd=log)
    assert json.loads(done.stdout)["new_reviews"] == 30
    assert (
        "--count names a column of NEW_REVIEWS"
        in command("update", "m", "--labels", "l.csv", "--count", "hits", cwd=log).stderr
    )


def test_a_count_that_is_not_used_and_one_that_is_none_are_said(command: Run, log: Path) -> None:
    done = command("fit", "log.csv", *AXES, *FIT, "--out", "m", cwd=log)
    assert done.stderr.count("note: column 'count' is not used, so every row counts once; --count count") == 1
    (log / "bad.csv").write_text("src,dst,port,count\na,b,c,1\na,b,c,0\na,d,c,1.5\n")
    said = command("fit", "bad.csv", *AXES, *FIT, "--count", "count", "--out", "x", cwd=log).stderr
    assert "1 row left out: count is not a count: below 1, first at bad.csv line 3" in said
    assert "1 row left out: count is not a count: not a whole number, first at bad.csv line 4" in said


def test_without_ratings_reviews_say_their_order_too(command: Run, log: Path) -> None:
    rows = "".join(f"r{i},p{i % 7}\n" for i in range(60))
    (log / "reviews.csv").write_text("reviewer,product\n" + rows)
    command("fit", "reviews.csv", *FIT, "--out", "m", cwd=log)
    said = command("score", "m", "--mode", "reviewer", cwd=log).stderr
    assert "note: sorted by who acts with whom: there are no ratings, and 0% of the rows repeat who met what" in said
