"""check and generate as a person runs them; what an import costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ringleader.datasets.tastes import KINDS

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_check_says_what_is_in_a_table(command: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user_id,asin,overall\na,x,5\nb,x,bad\nb,y,4\n")
    done = command("check", "a.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "column 'user_id' taken as reviewer" in done.stdout
    for role in ("seller", "timestamp"):
        assert f"no column for {role}: left out; where there is one, name it with --column {role}=COLUMN" in done.stdout
    assert "3 rows, 2 used, 2 distinct cells" in done.stdout
    assert "1 rating is not a number" in done.stdout
    assert "a.csv line 3" in done.stdout
    assert done.stderr == ""


def test_check_json_has_the_promised_keys(command: Run, table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "labels.csv").write_text("mode,entity,label\nseller,s1,1\nseller,gone,0\n")
    done = command("check", "a.parquet", "--labels", "labels.csv", "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert {"rows", "used", "cells", "duplicates", "rejected", "modes", "time"} <= set(data)
    assert data["rows"] == data["used"] == 300
    assert data["modes"]["seller"] == 5
    assert set(data["time"]) == {"unit", "first", "last"}
    assert data["labels"]["unknown"] == {"seller": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "absent.csv"], "error: there is no file or folder 'absent.csv'"),
        (["check", "a.csv", "--strict"], "error: 1 of 2 rows cannot be used"),
        (["check", "a.csv", "--column", "product"], "write ROLE=COLUMN"),
        (["check", "a.csv", "--axis", "x=nothing", "--axis", "y=asin"], "has no column 'nothing'"),
        (["check", "a.csv", "--labels", "bad.csv"], "labels name the mode 'shop'"),
        (["check", "a.csv", "--memory-limit", "much"], "memory limit 'much' is invalid"),
        (["check"], "Missing argument"),
        (["chekc", "a.csv"], "No such command 'chekc'"),
        (["generate", "out", "--difficulty", "absurd"], "absurd"),
        (["generate", "out", "--reviews", "-5"], "-5"),
        (["generate", "out", "--tastes", "--kind", "absurd"], "absurd"),
        (["generate", "out", "--tastes", "--difficulty", "hard"], "--kind"),
        (["generate", "out", "--kind", "loyal"], "--tastes"),
    ],
)
def test_bad_usage_is_one_message_and_status_2(command: Run, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "a.csv").write_text("user_id,asin,overall\na,x,5\nb,x,bad\n")
    (tmp_path / "bad.csv").write_text("mode,entity,label\nshop,x,1\n")
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_axes_build_another_tensor(command: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst,when\na,x,1500000000\na,y,1500000061\n")
    words = ["--axis", "src=src", "--axis", "dst=dst:id", "--axis", "minute=when:time=1min"]
    data = json.loads(command("check", "a.csv", *words, "--json", cwd=tmp_path).stdout)
    assert data["modes"] == {"src": 1, "dst": 2, "minute": 2}


def test_hostile_names_are_shown_harmless(command: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user_id,asin,overall\n\x1b[31mred,\u202ex,bad\nb,y,5\n")
    done = command("check", "a.csv", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\u001b[31mred" in done.stdout


def test_generate_makes_markets_of_tastes(command: Run, tmp_path: Path) -> None:
    done = command("generate", "market", "--reviews", 9000, "--tastes", "--kind", "once", "--json", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert summary["reviews"] > 9000 and summary["abusive"]["seller"] == summary["rings"] == 40
    shown = " ".join(command("generate", "--help", cwd=tmp_path).stdout.replace("│", " ").split())
    assert f"{', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}" in shown
    assert "With --tastes, of everyday ones" in shown
    assert sorted(path.name for path in (tmp_path / "market").iterdir()) == sorted(summary["files"])


def test_generate_writes_three_files_that_check_takes(command: Run, tmp_path: Path) -> None:
    done = command("generate", "market", "--reviews", 6000, "--seed", 3, "--difficulty", "easy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in (tmp_path / "market").iterdir()} == {"reviews.parquet", "labels.csv", "truth.csv"}
    data = json.loads(
        command("check", "market/reviews.parquet", "--labels", "market/labels.csv", "--json", cwd=tmp_path).stdout
    )
    assert data["rows"] == data["used"] == 6000
    assert data["rejected"] == {}
    assert data["labels"]["unknown"] == {}
    truth = pd.read_csv(tmp_path / "market" / "truth.csv")
    assert list(truth.columns) == ["mode", "entity", "label", "target", "ring", "split"]


def test_importing_ringleader_imports_nothing_heavy_and_makes_no_folder(tmp_path: Path) -> None:
    heavy = ("duckdb", "torch", "matplotlib", "sklearn", "numba", "ray", "pandas", "pyarrow")
    script = f"import sys, ringleader; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_is_there() -> None:
    import ringleader

    for name in ringleader.__all__:
        assert getattr(ringleader, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ringleader.nonsense
