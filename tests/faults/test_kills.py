"""A process killed at any moment: the old model or the new one, and resume gives the bits of the run left alone."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringleader.datasets import marketplace
from ringleader.snapshot import folder as store
from ringleader.snapshot import history, load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix"),
]
TIMES = 12


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market")
    made = marketplace(4000, difficulty="easy", seed=3)
    made.write(folder)
    made.reviews[:3000].to_parquet(folder / "old.parquet")
    made.reviews[3000:].to_parquet(folder / "new.parquet")
    return folder


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", "from ringleader.cli import main; main()", *map(str, words), "--quiet"]


def parts(folder: Path) -> dict[str, str]:
    """The checksum of every part."""
    return {part: entry["sha256"] for part, entry in store.load(folder).files.items()}


def killed(line: list[str], number: signal.Signals, longest: float, chance: random.Random) -> bool:
    """Whether a command was stopped by a signal at a random moment."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(chance.uniform(0.3, longest))
    process.send_signal(number)
    said = process.communicate(timeout=300)[1]
    assert "Traceback" not in said
    assert "bug" not in said
    return process.returncode != 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("overwriting", [False, True])
def test_a_stopped_fit_resumes_to_the_same_bits(
    number: signal.Signals, overwriting: bool, market: Path, tmp_path: Path
) -> None:
    words = ["--labels", market / "labels.csv", "--rank", "4", "--epochs", "6"]
    started = time.monotonic()
    subprocess.run(command("fit", market / "reviews.parquet", "--out", tmp_path / "whole", *words), check=True)
    longest = time.monotonic() - started
    subprocess.run(command("fit", market / "old.parquet", "--out", tmp_path / "old", "--epochs", "1"), check=True)
    expected, chance = parts(tmp_path / "whole"), random.Random(int(number))
    for _ in range(TIMES):
        model = tmp_path / "model"
        shutil.rmtree(model, ignore_errors=True)
        if overwriting:
            shutil.copytree(tmp_path / "old", model)
        line = command("fit", market / "reviews.parquet", "--out", model, *words)
        stopped = killed([*line, "--overwrite"] if overwriting else line, number, longest, chance)
        if overwriting and stopped:
            assert parts(model) in (parts(tmp_path / "old"), expected)
        resuming = overwriting and not (model / store.UNFINISHED).exists() and parts(model) != expected
        subprocess.run([*line, "--overwrite" if resuming else "--resume"], check=True)
        assert parts(model) == expected


def test_a_killed_update_leaves_the_old_model_or_the_new_one(market: Path, tmp_path: Path) -> None:
    subprocess.run(command("fit", market / "old.parquet", "--out", tmp_path / "old", "--epochs", "2"), check=True)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    started = time.monotonic()
    subprocess.run(command("update", tmp_path / "new", market / "new.parquet"), check=True)
    longest, chance = time.monotonic() - started, random.Random(0)
    for _ in range(TIMES * 2):
        model = tmp_path / "model"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(tmp_path / "old", model)
        killed(command("update", model, market / "new.parquet"), signal.SIGKILL, longest, chance)
        assert parts(model) in (parts(tmp_path / "old"), parts(tmp_path / "new"))
        subprocess.run(command("update", model, market / "new.parquet"), check=True)  # a retry counts nothing twice
        assert parts(model) == parts(tmp_path / "new")
        assert [batch.reviews for batch in history(model).batches] == [3000, 1000]
        subprocess.run(command("undo", model), check=True)
        assert parts(model) == parts(tmp_path / "old")


def test_two_updates_at_once_are_both_taken_in(market: Path, tmp_path: Path) -> None:
    made = marketplace(4000, difficulty="easy", seed=3).reviews
    subprocess.run(command("fit", market / "old.parquet", "--out", tmp_path / "model", "--epochs", "1"), check=True)
    batches = []
    for k in range(4):
        made[3000 + 250 * k : 3250 + 250 * k].to_parquet(tmp_path / f"{k}.parquet")
        batches.append(subprocess.Popen(command("update", tmp_path / "model", tmp_path / f"{k}.parquet", "--wait")))
    assert [process.wait() for process in batches] == [0] * 4
    assert load(tmp_path / "model")[0].tensor.counts.sum() == 4000
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
        "    model = rl.load(sys.argv[1]).partial_fit(reviews[k * 50 : k * 50 + 50]); model.save(sys.argv[1], keep=0)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "model"), str(market / "new.parquet")])
    read = 0
    while writer.poll() is None:
        store.load(tmp_path / "model").verify()
        read += 1
    assert writer.returncode == 0
    print(json.dumps({"read": read}))
    assert read > 5
