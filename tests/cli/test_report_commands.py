"""report and demo as a person runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import ringleader as rl
from ringleader.cli import report
from ringleader.errors import SettingsError

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


def test_demo_tells_the_whole_story_and_writes_a_report(command: Run, demo: Path) -> None:
    done = command("demo", "--reviews", 6000, cwd=demo)
    assert done.returncode == 0, done.stderr
    parts = ("The ten most suspicious sellers", "90% interval", "main reason", "are in fact abusive", "groups that act")
    assert "labels, the others are held out for evaluation" in done.stdout
    for part in (*parts, "What the labels gained", "without labels", "with labels", "report.html"):
        assert part in done.stdout, part
    page = (demo / "ringleader-demo" / "report.html").read_text(encoding="utf-8")
    assert "Ringleader report on reviews.parquet" in page


def test_demo_runs_again_in_the_same_folder_and_prints_one_json(command: Run, demo: Path) -> None:
    done = command("demo", "--reviews", 6000, "--json", cwd=demo)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    story = json.loads(done.stdout)
    assert len(story["sellers"]) == 10
    first = story["sellers"][0]
    assert first["lower"] <= first["probability"] <= first["upper"]
    assert first["abusive"] in (True, False) and first["reason"]
    assert {gain["mode"] for gain in story["gain"]} == {"seller", "reviewer"}
    assert all(0 <= gain[key] <= 1 for gain in story["gain"] for key in ("without_labels", "with_labels"))
    assert (demo / story["report"]).is_file()
    model = rl.load(demo / story["model"])
    assert model.scores("seller")["entity"][0] == first["entity"]


def test_demo_does_not_write_over_other_peoples_files(command: Run, tmp_path: Path) -> None:
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "cat.jpg").write_text("meow")
    done = command("demo", "--reviews", 6000, "--folder", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "other files than a model" in done.stderr
    assert [p.name for p in (tmp_path / "mine").rglob("*")] == ["model", "cat.jpg"]


def test_report_writes_the_page_the_demo_wrote(command: Run, demo: Path) -> None:
    done = command("report", "ringleader-demo/model", "--output", "again.html", "--json", cwd=demo)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["bytes"] == (demo / "again.html").stat().st_size < 2_000_000
    assert summary["complete"] is True
    assert (demo / "again.html").read_bytes() == (demo / "ringleader-demo" / "report.html").read_bytes()


def test_report_says_what_is_wrong(command: Run, tmp_path: Path) -> None:
    done = command("report", "nowhere", "--output", "r.html", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "there is no model at nowhere; name the folder that fit --out wrote" in done.stderr
        and "Traceback" not in done.stderr
    )
    with pytest.raises(SettingsError, match=r"name it \.html"):
        report.command("nowhere", output="r.pdf")
    assert list(tmp_path.iterdir()) == []
