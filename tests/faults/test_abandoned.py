"""Files and folders that a killed process left: its next one removes them, and nobody those of another machine."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ringleader.runtime import machine, outputs, temporary
from ringleader.runtime.outputs import whole_file
from ringleader.runtime.temporary import temporary_folder


def as_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process ran on another machine, where numbers of processes of this one are nobody's."""
    monkeypatch.setattr(machine, "process_space", lambda: "of another machine")
    monkeypatch.setattr(outputs, "is_alive", lambda process: False)


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(os.name == "nt", reason="whether a process lives cannot be asked there")
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom ringleader.runtime.outputs import whole_file\n"
        "from ringleader.runtime.temporary import temporary_folder\n"
        "with whole_file(sys.argv[1]) as t, temporary_folder(sys.argv[2]) as f:\n"
        "    t.write_text('half'); (f / 'x').write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "temporary").mkdir()
    line = [sys.executable, "-c", script, str(tmp_path / "x.csv"), str(tmp_path / "temporary")]
    assert subprocess.run(line).returncode == -9
    assert not (tmp_path / "x.csv").exists()
    assert len(list(tmp_path.glob(".x.csv.*.partial"))) == 1
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    with whole_file(tmp_path / "x.csv") as temporary:
        temporary.write_text("whole")
    with temporary_folder(tmp_path / "temporary") as mine, temporary_folder(tmp_path / "temporary"):
        assert mine.exists()  # one in use is left alone
        assert len(list((tmp_path / "temporary").iterdir())) == 2
    assert not list(tmp_path.glob(".x.csv.*"))
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="nothing is removed there")
def test_a_folder_without_a_mark_is_removed_when_it_is_old_and_its_process_is_gone(tmp_path: Path, dead: int) -> None:
    token = "0" * 32
    with temporary_folder(tmp_path) as mine:
        here = mine.name.partition(f"-{os.getpid()}-")[0]
    gone = [f"{here}-{dead}-{token}", f"{here}-{dead}-{'1' * 32}"]
    stays = [f"{here}-{os.getpid()}-{token}", f"{here}-{dead}-{'2' * 32}", "ringleader-notes", "other"]
    # A process of another machine that shares the folder, or of one whose name does not say, may live.
    stays += [f"ringleader-0123abcd-{dead}-{token}", f"ringleader-{dead}-{token}", f"ringleader-{token}"]
    hour = time.time() - temporary.OLD - 60
    for name in (*gone, *stays):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "half").write_text("half")
        os.utime(tmp_path / name, (hour, hour))
    (tmp_path / gone[1] / ".in-use").write_text("")  # killed before the mark had its name
    os.utime(tmp_path / gone[1], (hour, hour))
    (tmp_path / stays[1] / "just").write_text("now")  # it may be about to be marked
    (tmp_path / f"ringleader-{'3' * 32}").symlink_to(tmp_path / "other")  # a planted link is not followed
    (tmp_path / "other" / "in-use").write_text("")
    with temporary_folder(tmp_path) as mine:
        assert {path.name for path in tmp_path.iterdir()} == {*stays, f"ringleader-{'3' * 32}", mine.name}
    assert (tmp_path / "other" / "half").exists()


@pytest.mark.skipif(os.name == "nt", reason="nothing is removed there")
def test_a_folder_that_cannot_be_locked_stays_while_its_process_lives_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def unsupported(*args: Any) -> None:
        raise OSError(errno.ENOTSUP, "")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    opened = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    hour = time.time() - temporary.OLD - 60
    with temporary_folder(tmp_path) as living:
        if opened:
            assert len(os.listdir("/proc/self/fd")) == opened  # what could not be locked is closed
        os.utime(living, (hour, hour))
        as_on_another_machine(monkeypatch)
        with temporary_folder(tmp_path) as mine:
            assert {path.name for path in tmp_path.iterdir()} == {living.name, mine.name}


@pytest.mark.skipif(os.name == "nt", reason="nothing is removed there")
def test_a_folder_whose_removal_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import os, shutil, sys\nfrom ringleader.runtime.temporary import temporary_folder\n"
        "with temporary_folder(sys.argv[1]) as folder:\n"
        "    [(folder / str(n)).mkdir() for n in range(9)]\n"
        "    shutil.rmtree = lambda path, **_: os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == -9
    (left,) = tmp_path.iterdir()
    assert (left / "in-use").exists()  # the mark goes last
    with temporary_folder(tmp_path):
        assert not left.exists()


@pytest.mark.skipif(os.name == "nt", reason="nothing is removed there")
def test_a_file_that_a_process_of_another_machine_writes_is_left_alone(
    tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machine.process_space_checksum()
    assert here
    gone = [f".x.csv.{here}-{dead}-{'0' * 8}.partial"]
    # One that lives, of another machine or boot, one whose name says nothing (earlier versions), one of another name.
    stays = [f".x.csv.{here}-{os.getpid()}-{'0' * 8}.partial", f".x.csv.0123abcd-{dead}-{'0' * 8}.partial"]
    stays += [f".x.csv.{dead}-{'0' * 8}.partial", f".y.csv.{here}-{dead}-{'0' * 8}.partial"]
    for name in (*gone, *stays):
        (tmp_path / name).write_text("half")
    with whole_file(tmp_path / "x.csv") as written:
        assert {path.name for path in tmp_path.iterdir()} == {*stays, written.name}
        written.write_text("here")
        with monkeypatch.context() as elsewhere:
            as_on_another_machine(elsewhere)
            with whole_file(tmp_path / "x.csv") as theirs:
                theirs.write_text("there")
                assert written.read_text() == "here"  # this process writes to it still
            (tmp_path / "x.csv").unlink()
    assert (tmp_path / "x.csv").read_text() == "here"


@pytest.mark.parametrize("letter", ["n", "ü", "評", "🙂"])
def test_every_name_that_a_file_may_have_can_be_written(letter: str, tmp_path: Path) -> None:
    name = letter * (255 // len(letter.encode()))
    try:
        (tmp_path / name).write_text("")
    except OSError:
        pytest.skip("no file can have this name here")
    with whole_file(tmp_path / name, overwrite=True) as written:
        written.write_text("whole")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "whole")]
