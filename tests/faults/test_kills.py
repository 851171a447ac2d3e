"""A process killed at any moment: the old model or the new one, and resume gives the bits of the run left alone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.datasets import marketplace
from ringleader.snapshot import folder as store
from ringleader.snapshot import history, load

sys.path.insert(0, str(Path(__file__).parent))

from command_server import CommandServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix"),
]
TIMES = 12
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE")
STATUS = {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129, "SIGPIPE": -13}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market")
    made = marketplace(2000, difficulty="easy", seed=3)
    made.write(folder)
    made.reviews[:1500].to_parquet(folder / "old.parquet")
    made.reviews[1500:].to_parquet(folder / "new.parquet")
    return folder


@pytest.fixture(scope="module")
def commands(market: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandServer]:
    running = CommandServer(tmp_path_factory.mktemp("printed"))
    first = tmp_path_factory.mktemp("first") / "model"  # what is compiled is compiled before anything is timed
    run(running, "fit", market / "old.parquet", "--labels", market / "labels.csv", "--out", first, "--epochs", "1")
    run(running, "update", first, market / "new.parquet")
    yield running
    running.close()


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", "from ringleader.cli import main; main()", *map(str, words), "--quiet"]


def parts(folder: Path) -> dict[str, str]:
    """The checksum of every part."""
    return {part: entry["sha256"] for part, entry in store.load(folder).files.items()}


def run(commands: CommandServer, *words: str | Path) -> None:
    """A command that must end well."""
    commands.start([*map(str, words), "--quiet"])
    status, _, said = commands.end()
    assert status == 0, said


def seconds_of(commands: CommandServer, *words: str | Path) -> float:
    """How long a command takes that is left alone."""
    started = time.monotonic()
    run(commands, *words)
    return time.monotonic() - started


def stopped(commands: CommandServer, name: str, moment: float, *words: str | Path) -> bool:
    """Whether a command was stopped by a signal after some seconds; else it had ended, or took no notice any more."""
    process = commands.start([*map(str, words), "--quiet"])
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, getattr(signal, name))
    status, _, said = commands.end()
    assert "Traceback" not in said
    assert "bug" not in said
    # Before the command has taken charge of the signal, its process ends by it.
    assert status in (0, STATUS[name], -int(getattr(signal, name))), said
    return status != 0


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("overwriting", [False, True])
def test_a_stopped_fit_resumes_to_the_same_bits(
    name: str, overwriting: bool, commands: CommandServer, market: Path, tmp_path: Path
) -> None:
    words = ["--labels", market / "labels.csv", "--rank", "4", "--epochs", "4"]
    longest = seconds_of(commands, "fit", market / "reviews.parquet", "--out", tmp_path / "whole", *words)
    run(commands, "fit", market / "old.parquet", "--out", tmp_path / "old", "--epochs", "1")
    expected, chance = parts(tmp_path / "whole"), random.Random(name)
    ended = 0
    for _ in range(TIMES):
        model = tmp_path / "model"
        shutil.rmtree(model, ignore_errors=True)
        if overwriting:
            shutil.copytree(tmp_path / "old", model)
        line = ["fit", market / "reviews.parquet", "--out", model, *words]
        how = ["--overwrite"] if overwriting else []
        ended += not stopped(commands, name, chance.uniform(0, longest), *line, *how)
        if overwriting:
            assert parts(model) in (parts(tmp_path / "old"), expected)
        again = overwriting and not (model / store.UNFINISHED).exists() and parts(model) != expected
        run(commands, *line, "--overwrite" if again else "--resume")
        assert parts(model) == expected
        assert not [path.name for path in model.glob(".*") if path.name != ".lock"]
    print(json.dumps({"signal": name, "stopped": TIMES - ended, "seconds of a fit": round(longest, 2)}))
    assert ended < TIMES


@pytest.mark.parametrize("name", SIGNALS)
def test_a_stopped_update_leaves_the_old_model_or_the_new_one(
    name: str, commands: CommandServer, market: Path, tmp_path: Path
) -> None:
    run(commands, "fit", market / "old.parquet", "--out", tmp_path / "old", "--epochs", "2")
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    longest, chance = seconds_of(commands, "update", tmp_path / "new", market / "new.parquet"), random.Random(name)
    for _ in range(TIMES):
        model = tmp_path / "model"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(tmp_path / "old", model)
        stopped(commands, name, chance.uniform(0, longest), "update", model, market / "new.parquet")
        assert parts(model) in (parts(tmp_path / "old"), parts(tmp_path / "new"))
        run(commands, "update", model, market / "new.parquet")  # a retry counts nothing twice
        assert parts(model) == parts(tmp_path / "new")
        assert [batch.reviews for batch in history(model).batches] == [1500, 500]
        run(commands, "undo", model)
        assert parts(model) == parts(tmp_path / "old")


def test_two_updates_at_once_are_both_taken_in(market: Path, tmp_path: Path) -> None:
    made = marketplace(2000, difficulty="easy", seed=3).reviews
    subprocess.run(command("fit", market / "old.parquet", "--out", tmp_path / "model", "--epochs", "1"), check=True)
    batches = []
    for k in range(4):
        made[1500 + 125 * k : 1625 + 125 * k].to_parquet(tmp_path / f"{k}.parquet")
        batches.append(subprocess.Popen(command("update", tmp_path / "model", tmp_path / f"{k}.parquet", "--wait")))
    assert [process.wait() for process in batches] == [0] * 4
    assert load(tmp_path / "model")[0].tensor.counts.sum() == 2000
    assert len(history(tmp_path / "model").batches) == 5
    both = [
        subprocess.Popen(command("fit", market / "old.parquet", "--out", tmp_path / "one"), stderr=subprocess.PIPE)
        for _ in "ab"
    ]
    assert sorted(process.wait() for process in both) == [0, 2]
    load(tmp_path / "one")


def test_readers_beside_a_writer_see_a_whole_model(market: Path, tmp_path: Path) -> None:
    subprocess.run(command("fit", market / "old.parquet", "--out", tmp_path / "model", "--epochs", "1"), check=True)
    script = (
        "import sys, pandas as pd, ringleader as rl\n"
        "reviews = pd.read_parquet(sys.argv[2])\n"
        "for k in range(12):\n"
        "    model = rl.load(sys.argv[1]).partial_fit(reviews[k * 40 : k * 40 + 40]); model.save(sys.argv[1], keep=0)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "model"), str(market / "new.parquet")])
    read = 0
    while writer.poll() is None:
        store.load(tmp_path / "model").verify()
        read += 1
    assert writer.returncode == 0
    print(json.dumps({"read": read}))
    assert read > 5
