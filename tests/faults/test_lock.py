"""The lock of a model, whoever forks, moves folders or is another user; and who may read what a save writes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ringleader.errors import ModelBusyError
from ringleader.snapshot import folder as store
from ringleader.snapshot import holder, lock, writing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and users of Unix")
NOBODY = 65534
AS_ROOT = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="becomes another user")

FORKS = """
import os, sys, time
from ringleader.snapshot import writing
with writing(sys.argv[1], "a job with workers"):
    if not os.fork():
        time.sleep(60)
        os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


def part(name: str, content: Any) -> store.ModelPart:
    return store.ModelPart(name, content, lambda: content)


def save(folder: Path, number: int, **how: Any) -> store.Stored:
    content = [part("state", {"a": np.full(number, 1.0)}), part("words", pa.table({"w": ["a"] * number}))]
    return store.save(folder, {"x": number, "complete": True}, content, **how)


def as_nobody(call: Any) -> int:
    """What a call returns in a process of another user, as its exit status."""
    child = os.fork()
    if not child:
        status = 9
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            status = call()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def model_of_all() -> Iterator[Path]:
    """A folder in which everybody may write; those of ``tmp_path`` are below one that is its user's alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        model = Path(folder) / "model"
        model.mkdir()
        model.chmod(0o777)
        yield model


def test_the_lock_dies_with_its_process_though_a_worker_that_it_forked_lives(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ModelBusyError, match="a job with workers"), writing(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert holder(tmp_path) is None
        with writing(tmp_path):
            pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the worker
        process.stdout.close()


def test_a_forked_process_that_leaves_the_block_does_not_give_the_lock_of_its_parent_away(tmp_path: Path) -> None:
    with writing(tmp_path, "the parent"):
        child = os.fork()
        if not child:
            try:
                for held in list(lock._HELD.values()):
                    held.release()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        who = holder(tmp_path)
        assert who is not None and who.command == "the parent"
    assert not (tmp_path / ".lock").exists()


def test_a_lock_is_not_removed_from_a_folder_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    model = tmp_path / "model"
    with writing(model, "the first", create=True):
        model.rename(tmp_path / "moved")
        model.mkdir()
        (model / ".lock").write_text("of somebody else")
    assert (model / ".lock").read_text() == "of somebody else"


@AS_ROOT
def test_another_user_is_told_who_writes_and_takes_over_what_a_killed_one_left(model_of_all: Path) -> None:
    model = model_of_all

    def write() -> int:
        try:
            with writing(model, "the other"):
                return 0
        except ModelBusyError as error:
            return 3 if "the first (process" in str(error) else 4

    with writing(model, "the first"):
        assert as_nobody(write) == 3
    (model / ".lock").write_text("left by a killed process")
    assert stat.S_IMODE((model / ".lock").stat().st_mode) == 0o644
    assert as_nobody(write) == 0
    assert not (model / ".lock").exists()
    model.chmod(0o755)
    (model / ".lock").write_text("left by a killed process")
    assert as_nobody(write) == 9  # who may not write there is refused as before


def test_what_a_save_writes_is_for_those_whom_the_umask_leaves(tmp_path: Path) -> None:
    for umask, mode in ((0o077, 0o600), (0o027, 0o640), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            save(tmp_path / f"{umask}", 2)
            save(tmp_path / f"{umask}", 3)
        finally:
            os.umask(before)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / f"{umask}").iterdir()}
        assert set(modes.values()) == {mode}, modes
        assert "generation-1.json" in modes


def test_an_update_leaves_a_fit_that_was_stopped_and_will_replace_the_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    current = save(model, 2)
    stopped = store.save(model, {"complete": False}, [part("state", {"a": np.ones(9)})], name=store.UNFINISHED)
    current = save(model, 3, before=current)
    assert len(store.load(model, store.UNFINISHED).arrays("state")["a"]) == 9
    save(model, 4, before=current, keep=0)
    assert len(store.load(model, store.UNFINISHED).arrays("state")["a"]) == 9
    save(model, 5, before=stopped)  # the fit is complete
    assert not (model / store.UNFINISHED).exists()
    assert not [path.name for path in model.iterdir() if path.name.startswith("state") and "-2." in path.name]


def test_folders_that_were_made_for_nothing_are_removed_and_others_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(lock, "sync_folder", synced.append)
    (tmp_path / "there").mkdir()
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "there" / "a" / "b" / "c", create=True):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]
    assert not list((tmp_path / "there").iterdir())
    assert synced == [tmp_path / "there", tmp_path / "there" / "a", tmp_path / "there" / "a" / "b"]
    save(tmp_path / "there" / "a" / "b", 2)
    assert store.load(tmp_path / "there" / "a" / "b").meta["x"] == 2


@pytest.mark.parametrize("name", ["generation-0099.json", "generation-٣.json"])
def test_a_file_that_only_looks_like_an_earlier_generation_is_none(name: str, tmp_path: Path) -> None:
    save(tmp_path / "model", 2)
    (tmp_path / "model" / name).write_text("of somebody else")
    save(tmp_path / "model", 3, keep=1)
    save(tmp_path / "model", 4, keep=1)
    place = store.place_of(tmp_path / "model")
    assert len(store.generations(place)) == 1
    assert f"generation-{store.generations(place)[0]}.json" in place.names()
    assert (tmp_path / "model" / name).read_text() == "of somebody else"
