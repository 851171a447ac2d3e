"""Outputs beside files of others: those that appear at the last moment, of a stopped run, or that are read."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ringleader.cli.app import app
from ringleader.errors import StorageError
from ringleader.evaluation.results import Results
from ringleader.runtime import outputs
from ringleader.runtime.outputs import check_writable, whole_file


def test_a_file_that_appears_behind_the_last_look_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def look(*paths: Any, overwrite: bool = False) -> None:
        check_writable(*paths, overwrite=overwrite)
        looks.append(paths)
        if len(looks) == 2:
            (tmp_path / "x.csv").write_text("of somebody who was faster")

    monkeypatch.setattr(outputs, "check_writable", look)
    with pytest.raises(StorageError, match=r"x\.csv exists already"), whole_file(tmp_path / "x.csv") as temporary:
        temporary.write_text("mine")
    assert (tmp_path / "x.csv").read_text() == "of somebody who was faster"
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_file_system_without_links_takes_outputs(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    with whole_file(tmp_path / "x.csv") as temporary:
        temporary.write_text("mine")
    assert (tmp_path / "x.csv").read_text() == "mine"
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.parametrize("left", ["other.csv", "figures/shrinkage.svg"])
def test_what_a_stopped_benchmark_left_is_refused_before_the_work(left: str, tmp_path: Path) -> None:
    (tmp_path / left).parent.mkdir(exist_ok=True)
    (tmp_path / left).write_text("of an earlier run")
    with pytest.raises(StorageError, match=f"{left} exists already"):
        Results(tmp_path)
    Results(tmp_path, overwrite=True)


def test_a_file_of_the_folder_or_glob_that_is_read_is_never_the_output(tmp_path: Path) -> None:
    text = "reviewer,product\na,b\nc,b\n"
    (tmp_path / "data").mkdir()
    for name in ("x.csv", "y.csv"):
        (tmp_path / "data" / name).write_text(text)
    (tmp_path / "link.csv").symlink_to("data/x.csv")
    reads = (tmp_path / "data", tmp_path / "data" / "*.csv", (tmp_path / "data" / "x.csv").as_uri())
    for source in reads:
        for output in (tmp_path / "data" / "x.csv", tmp_path / "link.csv"):
            words = ("baseline", "degree", source, "--mode", "reviewer", "--overwrite", "--output", output)
            with pytest.raises(StorageError, match="is what this command reads"):
                app([str(word) for word in words], standalone_mode=False)
    assert (tmp_path / "data" / "x.csv").read_text() == text
    beside = ("baseline", "degree", tmp_path / "data" / "y.csv", "--mode", "reviewer", "--output", tmp_path / "z.csv")
    app([str(word) for word in beside], standalone_mode=False)
    assert (tmp_path / "z.csv").exists()
