"""Outputs appear whole: what stood under the name stays until then, and nothing is overwritten unasked."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from safetensors import SafetensorError

import ringleader as rl
from ringleader.cli.app import app
from ringleader.datasets import marketplace
from ringleader.errors import ModelFileError, SettingsError, StorageError
from ringleader.evaluation.results import Results
from ringleader.runtime.outputs import whole_file
from ringleader.runtime.temporary import temporary_folder
from ringleader.snapshot.place import Folder

GOLDEN = Path(__file__).parents[1] / "golden" / "model-format-2" / "model"


def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "x.csv", overwrite=True) as temporary:
        temporary.write_text("new")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="modes, links and pipes of Unix")
def test_a_link_is_followed_a_mode_stays_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("real.csv")
    with whole_file(tmp_path / "link.csv", overwrite=True) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"
    assert (tmp_path / "real.csv").stat().st_mode & 0o777 == 0o640
    with whole_file("/dev/null") as temporary:
        temporary.write_text("gone")


def test_a_name_of_255_letters_can_be_written(tmp_path: Path) -> None:
    name = "n" * 251 + ".csv"
    with whole_file(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert (tmp_path / name).read_text() == "x"


FULL = [
    *(("state", "disk"), ("manifest", "disk"), ("inputs", "safetensors")),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (("state", "safetensors"), ("manifest", "safetensors"), ("inputs", "disk"))
    ),
]
"""At which part a disk is full, and who says so."""


@pytest.mark.parametrize(("at", "reason"), FULL)
def test_a_save_on_a_full_disk_leaves_the_model_and_nothing_else(
    at: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(GOLDEN, tmp_path / "model")
    model = rl.load(tmp_path / "model")
    model.save(tmp_path / "model")  # as the version of today writes it
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    write = Folder.write

    def full(place: Folder, name: str, writer: Any) -> Any:
        def fail(path: str) -> None:
            writer(path)
            raise OSError(errno.ENOSPC, "") if reason == "disk" else SafetensorError("I/O error: x (os error 28)")

        return write(place, name, fail if name.startswith(at) else writer)

    labels = pd.DataFrame({"mode": ["seller"], "entity": [model.scores("seller")["entity"].iloc[-1]], "label": [1]})
    row = model.tensor_.decode().iloc[:1].rename(columns={"week": "timestamp"})
    model.partial_fit(row.assign(timestamp=row["timestamp"].astype(str)), labels, again=True)
    with monkeypatch.context() as faulty:
        faulty.setattr(Folder, "write", full)
        said = "No space left on device; the earlier model is unchanged; free some space.*and try again"
        with pytest.raises(StorageError, match=said):
            model.save(tmp_path / "model")
        with pytest.raises(StorageError, match="No space left on device; free some space or choose another folder"):
            model.save(tmp_path / "new")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert not (tmp_path / "new").exists()
    model.save(tmp_path / "model")
    assert rl.load(tmp_path / "model").tensor_.n_reviews == model.tensor_.n_reviews


def run(*words: str | Path) -> None:
    app([str(word) for word in words], standalone_mode=False)


def test_cores_do_not_overwrite_a_review_table(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("reviewer,product\na,b\n")
    with pytest.raises(StorageError, match=r"reviews\.csv exists already"):
        run("cores", GOLDEN, "--output", tmp_path)
    assert (tmp_path / "reviews.csv").read_text() == "reviewer,product\na,b\n"


def test_cores_neither_remove_nor_replace_blocks_of_another_program(tmp_path: Path) -> None:
    for name in ("block_1.tuples", "block_99.attributes"):
        (tmp_path / name).write_text("of M-Zoom")
    with pytest.raises(StorageError, match=r"block_1\.tuples, .*block_99\.attributes exist already.*--overwrite"):
        run("cores", GOLDEN, "--output", tmp_path)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"of M-Zoom"} and len(list(tmp_path.iterdir())) == 2
    run("cores", GOLDEN, "--output", tmp_path, "--overwrite")
    assert not (tmp_path / "block_99.attributes").exists()


def test_generate_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(StorageError, match=r"labels\.csv exists already"):
        run("generate", tmp_path, "--reviews", 1000)
    with pytest.raises(StorageError, match=r"labels\.csv exists already"):
        marketplace(1000).write(tmp_path)
    assert (tmp_path / "labels.csv").read_text() == "mine"
    run("generate", tmp_path, "--reviews", 1000, "--overwrite")
    assert (tmp_path / "labels.csv").read_text() != "mine"


def test_a_market_that_cannot_be_written_to_its_end_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marketplace(1000, seed=1).write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    market = marketplace(1000, seed=2)

    def full(*words: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(market.truth, "to_csv", full, raising=False)
    with pytest.raises(StorageError, match="No space left"):
        market.write(tmp_path, overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


OUTPUTS: dict[str, tuple[str | Path, ...]] = {
    "score": ("score", GOLDEN, "--mode", "seller", "--output", "PLACE.csv"),
    "report": ("report", GOLDEN, "--output", "PLACE.html"),
    "cores": ("cores", GOLDEN, "--output", "PLACE"),
    "decisions": ("decisions", GOLDEN, "--output", "PLACE.csv"),
    "generate": ("generate", "PLACE", "--reviews", "1000"),
}


REASONS = r"File name too long|No such file|File exists|denied|not permitted|[Nn]ot a directory"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc, where nobody may write, is Linux's")
@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize("place", ["too long", "not writable", "below a file"])
def test_a_place_that_cannot_be_written_to_ends_in_a_sentence(command: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    where = {"too long": tmp_path / ("n" * 300), "not writable": "/proc/nowhere", "below a file": tmp_path / "file/x"}
    words = [str(word).replace("PLACE", str(where[place])) for word in OUTPUTS[command]]
    with pytest.raises(StorageError, match=REASONS):
        run(*words)
    assert (tmp_path / "file").read_text() == "mine"


OF_A_FILE = {name: words for name, words in OUTPUTS.items() if name not in ("cores", "generate")}


@pytest.mark.parametrize("command", [*OF_A_FILE, "report by default"])
def test_a_file_that_exists_is_replaced_when_asked(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(word).replace("PLACE", "out") for word in OF_A_FILE.get(command, ("report", GOLDEN))]
    name = words[-1] if command in OF_A_FILE else "report.html"
    (tmp_path / name).write_text("mine")
    with pytest.raises(StorageError, match=rf"^{re.escape(name)} exists already; .*--overwrite$"):
        run(*words)
    assert (tmp_path / name).read_text() == "mine"
    run(*words, "--overwrite")
    written = (tmp_path / name).read_bytes()
    assert written != b"mine"
    with pytest.raises(StorageError, match="exists already"):  # its own file is no exception
        run(*words)
    assert (tmp_path / name).read_bytes() == written and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("command", ["cores", "generate"])
def test_a_folder_of_results_is_replaced_when_asked(command: str, tmp_path: Path) -> None:
    words = [str(word).replace("PLACE", str(tmp_path / "out")) for word in OUTPUTS[command]]
    run(*words)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    with pytest.raises(StorageError, match=r"exist already; .*--overwrite$"):
        run(*words)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    run(*words, "--overwrite")


@pytest.mark.parametrize("command", OUTPUTS)
def test_nothing_is_written_into_the_folder_of_a_model(command: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "model")
    before = sorted(os.listdir(tmp_path / "model"))
    where = tmp_path / "model" if command in ("cores", "generate") else tmp_path / "model" / "x"
    words = [str(word).replace("PLACE", str(where)) for word in OUTPUTS[command]]
    for more in ((), ("--overwrite",)):
        with pytest.raises(StorageError, match="is the folder of a model, where nothing else is written"):
            run(*words, *more)
    assert sorted(os.listdir(tmp_path / "model")) == before


@pytest.mark.parametrize(
    "words", [["cores", GOLDEN, "--output"], ["generate"], ["benchmark", "speed", "--out"], ["demo", "--folder"]]
)
def test_an_address_and_an_empty_name_are_no_folder_of_results(
    words: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"s3://bucket/x/.* is an address; outputs are files of this machine"):
        run(*words, "s3://bucket/x")
    with pytest.raises(SettingsError, match="the folder has no name"):
        run(*words, "")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", OF_A_FILE)
def test_a_folder_an_address_and_a_name_without_a_kind_are_no_output(command: str, tmp_path: Path) -> None:
    *words, place = map(str, OF_A_FILE[command])
    kind = place.removeprefix("PLACE")
    (tmp_path / f"folder{kind}").mkdir()
    with pytest.raises(StorageError, match="is a folder; name a file"):
        run(*words, tmp_path / f"folder{kind}", "--overwrite")
    with pytest.raises(StorageError, match="is an address; outputs are files of this machine"):
        run(*words, f"s3://bucket/out{kind}")
    for name in ("", tmp_path / "out", "-"):
        with pytest.raises(SettingsError, match=r"cannot write .*; name it \."):
            run(*words, name)
    assert os.listdir(tmp_path) == [f"folder{kind}"]


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scores.csv")
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.append((tmp_path / "scores.csv").read_bytes()))
    reader.start()
    run("score", GOLDEN, "--mode", "seller", "--output", tmp_path / "scores.csv")
    reader.join(60)
    assert said[0].startswith(b"rank,entity,score") and stat.S_ISFIFO((tmp_path / "scores.csv").stat().st_mode)


def test_a_table_that_is_read_is_never_the_output(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("reviewer,product\na,b\nc,b\n")
    (tmp_path / "link.csv").symlink_to("r.csv")
    line = ("baseline", "degree", tmp_path / "r.csv", "--mode", "reviewer", "--overwrite", "--output")
    for name in ("r.csv", "link.csv"):
        with pytest.raises(StorageError, match="is what this command reads"):
            run(*line, tmp_path / name)
    assert (tmp_path / "r.csv").read_text() == "reviewer,product\na,b\nc,b\n"


def test_a_file_that_appears_while_another_is_written_stays(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="exists already"), whole_file(tmp_path / "x.csv") as temporary:
        temporary.write_text("mine")
        (tmp_path / "x.csv").write_text("of somebody who was faster")
    assert (tmp_path / "x.csv").read_text() == "of somebody who was faster"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_python_replaces_what_exists_when_asked(tmp_path: Path) -> None:
    model = rl.load(GOLDEN)
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(StorageError, match=r"exists already; .*overwrite=True"):
        model.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "mine"
    assert model.report(tmp_path / "report.html", overwrite=True).read_text(encoding="utf-8") != "mine"


def test_a_benchmark_does_not_overwrite_the_results_of_another(tmp_path: Path) -> None:
    first = Results(tmp_path / "results")
    for number in (1, 2):
        first.keep("markets", {"seed": number})
        first.publish("a machine")
    (tmp_path / "results" / "README.md").write_text("mine")
    with pytest.raises(StorageError, match=r"rows\.json, .*tables\.md, .*markets\.csv exist already"):
        Results(tmp_path / "results")
    for name in ("rows.json", "tables.md"):
        (tmp_path / "results" / name).unlink()
    with pytest.raises(StorageError, match=r"markets\.csv exists already"):  # a run that was stopped left a table alone
        Results(tmp_path / "results")
    Results(tmp_path / "results", overwrite=True).keep("markets", {"seed": 3})
    assert (tmp_path / "results" / "markets.csv").read_text() == "seed\n3\n"
    assert (tmp_path / "results" / "README.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["model", "reviews.parquet", "report.html"])
def test_a_demo_replaces_nothing_but_a_demo(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    if name == "model":
        shutil.copytree(GOLDEN, mine / name)
    else:
        (mine / name).write_text("mine")
    before = sorted(path.name for path in mine.rglob("*"))
    with pytest.raises((StorageError, ModelFileError), match=rf"{name}.*--overwrite"):
        run("demo", "--folder", "mine", "--reviews", 1000)
    assert sorted(path.name for path in mine.rglob("*")) == before


def test_a_signal_while_a_temporary_folder_is_made_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def interrupted(folder: Path, *args: Any, **options: Any) -> None:
        make(folder, *args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
