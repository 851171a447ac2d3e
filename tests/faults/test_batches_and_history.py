"""Updates can be seen and undone; one writer at a time; readers never wait."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import Marketplace
from ringleader.errors import ModelBusyError, ModelFileError, ResumeError, RingleaderWarning, SettingsError
from ringleader.snapshot import folder as store
from ringleader.snapshot import history, holder, undo, writing
from ringleader.snapshot.batches import content_of
from ringleader.snapshot.place import Folder, place_of


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def add(folder: Path, reviews: Any = None, labels: Any = None, **more: Any) -> rl.RingDetector:
    detector = rl.load(folder).partial_fit(reviews, labels)
    detector.save(folder, **more)
    return detector


def test_an_empty_name_of_new_reviews_is_refused(ringleader: Callable[..., Any], model: Path) -> None:
    before = content(model)
    assert "the path is empty" in ringleader("update", model, "", status=2)
    assert content(model) == before


@pytest.mark.parametrize(
    "words", [["score", "--mode", "seller", "--output", "s.parquet"], ["report", "--output", "r.html"]]
)
def test_nothing_else_is_written_into_the_folder_of_a_model(
    ringleader: Callable[..., Any], model: Path, words: list[str]
) -> None:
    before = content(model)
    words = [words[0], str(model), *words[1:-1], str(model / words[-1])]
    assert "is the folder of a model" in ringleader(*words, status=2)
    assert content(model) == before


def test_a_model_with_wide_windows_of_time_is_updated(market: Marketplace) -> None:
    axes = ["seller=seller:id", "rating=rating:rating", "window=timestamp:time=4w"]
    model = rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(market.reviews.iloc[:500], modes=axes))
    model.partial_fit(market.reviews.iloc[500:600])
    assert model.tensor_.counts.sum() == 600


def test_a_file_that_grew_is_refused_without_being_read_whole(model: Path) -> None:
    path = next(model.glob("labels-*.parquet"))
    with open(path, "r+b") as file:
        file.truncate(1 << 40)  # a hole
    with pytest.raises(ModelFileError, match="is damaged"):
        rl.load(model).scores("seller")


def test_labels_that_are_known_change_nothing(model: Path, market: Marketplace) -> None:
    before = content(model)
    add(model, labels=market.labels)
    assert content(model) == before


def test_undo_goes_back_bit_for_bit_and_history_follows(model: Path, market: Marketplace) -> None:
    states = [content(model)]
    for start in (1000, 1100, 1200):
        add(model, market.reviews[start : start + 100])
        states.append(content(model))
    listed = history(model)
    assert [batch.reviews for batch in listed.batches] == [1000, 100, 100, 100]
    assert [len(generation.batches) for generation in listed.generations] == [1, 2, 3]
    for before in reversed(states[:-1]):
        listed = undo(model)
        now = content(model)
        assert now == before
    assert listed.generations == ()
    with pytest.raises(ModelFileError, match="nothing to undo"):
        undo(model)


def test_undo_goes_back_also_from_what_a_killed_save_left(
    model: Path, market: Marketplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in (1000, 1100):
        add(model, market.reviews[first : first + 100])
    write = Folder.write

    def killed(place: Folder, name: str, writer: Any) -> Any:
        if name == "manifest.json":
            raise KeyboardInterrupt
        return write(place, name, writer)

    with monkeypatch.context() as faulty:
        faulty.setattr(Folder, "write", killed)
        faulty.setattr(store, "_clear_up", lambda place: None)  # who is killed clears nothing up
        with pytest.raises(KeyboardInterrupt):
            add(model, market.reviews[1200:1300])
    batches = [len(history(model).batches)]
    while history(model).generations:
        batches.append(len(undo(model).batches))
    assert batches == [3, 2, 1]


def test_what_a_save_wrote_stays_readable_when_another_one_replaces_it(tmp_path: Path) -> None:
    def part(value: float) -> store.ModelPart:
        return store.ModelPart("state", value, lambda: {"a": np.full(3, value)})

    saved = store.save(tmp_path / "m", {"x": 1}, [part(1.0)], keep=0)
    store.save(tmp_path / "m", {"x": 2}, [part(2.0)], keep=0)
    assert not (tmp_path / "m" / "state-1.safetensors").exists()
    assert saved.arrays("state")["a"].tolist() == [1.0] * 3


def test_old_generations_are_pruned(model: Path, market: Marketplace) -> None:
    for start in range(1000, 1300, 100):
        add(model, market.reviews[start : start + 100], keep=2)
    assert len(history(model).generations) == 2
    assert len(history(model).batches) == 4
    rl.load(model).scores("seller")
    add(model, market.reviews[:50].assign(timestamp=market.reviews["timestamp"][:50] + 1), keep=0)
    assert not list(model.glob("generation-*"))
    rl.load(model).scores("seller")


def test_a_generation_that_is_read_stays_readable_while_it_is_pruned(model: Path, market: Marketplace) -> None:
    reader = rl.load(model)
    expected = rl.load(model).scores("seller")
    for start in range(1000, 1300, 100):
        add(model, market.reviews[start : start + 100], keep=0)
    pd.testing.assert_frame_equal(reader.scores("seller"), expected, check_exact=True)
    assert reader.explain("seller", expected["entity"].iloc[0]).to_dict()


def test_a_damaged_generation_is_not_gone_back_to(model: Path, market: Marketplace) -> None:
    add(model, market.reviews[1000:1100])
    before = content(model)
    number = store.generations(place_of(model))[0]
    named = {entry["name"] for entry in json.loads((model / f"generation-{number}.json").read_text())["files"].values()}
    only_old = sorted(named - {entry["name"] for entry in store.load(model).files.values()})
    (model / only_old[0]).write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="damaged"):
        undo(model)
    assert (model / "manifest.json").read_bytes() == before["manifest.json"]


def test_undo_needs_no_space(model: Path, market: Marketplace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(model)
    add(model, market.reviews[1000:1100])

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as faulty:
        faulty.setattr(os, "write", full)
        faulty.setattr(Folder, "write", full)
        undo(model)
    assert content(model) == before


def test_what_others_keep_in_the_folder_stays(model: Path, market: Marketplace) -> None:
    for name in ("decisions.sqlite", "decisions.sqlite-wal", "decisions.sqlite-shm", "notes.txt"):
        (model / name).write_bytes(b"mine")
    add(model, market.reviews[1000:1100], keep=0)
    undo(model) if store.generations(place_of(model)) else None
    add(model, market.reviews[1100:1200])
    undo(model)
    for name in ("decisions.sqlite", "decisions.sqlite-wal", "decisions.sqlite-shm", "notes.txt"):
        assert (model / name).read_bytes() == b"mine"


def test_a_save_over_a_model_that_changed_meanwhile_is_refused(model: Path, market: Marketplace) -> None:
    mine, other = rl.load(model), rl.load(model)
    other.partial_fit(market.reviews[1000:1100]).save(model)
    mine.partial_fit(market.reviews[1100:1200])
    with pytest.raises(ModelBusyError, match="changed by somebody else"):
        mine.save(model)
    assert rl.load(model).tensor_.counts.sum() == 1100
    mine.save(model, overwrite=True)
    assert rl.load(model).tensor_.counts.sum() == 1100
    assert len(history(model).generations) == 2


def test_another_models_folder_is_refused(model: Path, market: Marketplace) -> None:
    other = rl.RingDetector(rank=2, epochs=1).fit(market.reviews[:300])
    with pytest.raises(ModelFileError, match="holds another model"):
        other.save(model)
    other.save(model, overwrite=True)
    assert rl.load(model).tensor_.counts.sum() == 300
    undo(model)
    assert rl.load(model).tensor_.counts.sum() == 1000


HOLD = """
import sys, time
from ringleader.snapshot import writing
with writing(sys.argv[1], "ringleader update"):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_is_told_who_holds_the_lock_and_the_lock_dies_with_its_process(
    model: Path, market: Marketplace, tmp_path: Path, ringleader: Callable[..., Any]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("mode,entity,label\nseller,nobody,1\n")
    process = hold(model)
    try:
        who = holder(model)
        assert who is not None
        assert who.process == process.pid
        message = ringleader("update", model, "--labels", labels, status=2)
        assert f"ringleader update (process {process.pid} on" in message
        assert "since 20" in message
        assert "--wait" in message
        with pytest.raises(ModelBusyError):
            rl.load(model).save(model)
        assert len(rl.load(model).scores("seller"))  # who reads does not wait
        line = [sys.executable, "-c", "from ringleader.cli import main; main()", "undo", str(model), "--wait"]
        waiting = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        assert f"waiting for ringleader update (process {process.pid}" in waiting.stderr.readline()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert "nothing to undo" in waiting.communicate(timeout=60)[1]
    assert holder(model) is None
    with writing(model):
        assert holder(model) is not None
    assert not (model / ".lock").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_saves_at_once_leave_one_of_the_models_whole(model: Path, market: Marketplace, tmp_path: Path) -> None:
    rl.RingDetector(rank=2, epochs=1).fit(market.reviews[:300]).save(tmp_path / "other")
    models = [rl.load(model), rl.load(tmp_path / "other")]
    place, sizes = tmp_path / "both", set()
    for _ in range(8):
        begin, begins = os.pipe()
        children = []
        for k in range(4):
            child = os.fork()
            if not child:
                os.close(begins)
                os.read(begin, 1)  # all begin when the pipe is closed
                with contextlib.suppress(BaseException):
                    try:
                        models[k % 2].save(place, overwrite=True, keep=k % 3)
                        os._exit(0)
                    except ModelBusyError:
                        os._exit(3)
                os._exit(1)
            children.append(child)
        os.close(begin)
        os.close(begins)
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert set(ended) <= {0, 3} and 0 in ended
        stored = store.load(place)
        stored.verify()
        there = {path.name for path in place.iterdir() if path.suffix in (".safetensors", ".parquet", ".partial")}
        for manifest in place.glob("*.json"):
            there -= store.file_names(json.loads(manifest.read_text())["files"])
        assert not there  # nothing is left that no manifest names
        sizes.add(rl.load(place).tensor_.n_reviews)
    assert sizes <= {1000, 300}


def test_a_refused_fit_leaves_no_folder_and_a_lock_no_trace(tmp_path: Path, ringleader: Callable[..., Any]) -> None:
    assert "there is no file" in ringleader("fit", "nowhere.csv", "--out", tmp_path / "m", status=2)
    assert not (tmp_path / "m").exists()
    assert "there is no model" in ringleader("update", tmp_path / "m", "nowhere.csv", status=2)
    assert not (tmp_path / "m").exists()


def test_an_overwriting_fit_leaves_the_old_model_until_it_is_complete(model: Path, market: Marketplace) -> None:
    before, old = content(model), rl.load(model).scores("seller")

    def stop(info: Any) -> None:
        raise KeyboardInterrupt

    settings: dict[str, Any] = {"rank": 2, "epochs": 3}
    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector(**settings).fit(market.reviews[:600], checkpoint=model, callback=stop, overwrite=True)
    assert {name: now for name, now in content(model).items() if name in before} == before
    assert (model / store.UNFINISHED).exists()
    pd.testing.assert_frame_equal(rl.load(model).scores("seller"), old, check_exact=True)
    resumed = rl.RingDetector(**settings).fit(market.reviews[:600], checkpoint=model, resume=True)
    whole = rl.RingDetector(**settings).fit(market.reviews[:600])
    assert np.array_equal(resumed.state_.factors, whole.state_.factors)
    assert not (model / store.UNFINISHED).exists()
    assert rl.load(model).tensor_.counts.sum() == 600
    undo(model)
    assert {name: now for name, now in content(model).items() if name in before} == before


def test_a_fit_replaces_a_model_only_when_asked(model: Path, market: Marketplace) -> None:
    before, other = content(model), rl.RingDetector(rank=2, epochs=2)

    def stop(info: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(ModelFileError, match="exists; continue it with resume=True, or replace it with overwrite=True"):
        other.fit(market.reviews[:600], checkpoint=model)
    with pytest.raises(SettingsError, match="resume=True and overwrite=True exclude each other"):
        other.fit(market.reviews[:600], checkpoint=model, resume=True, overwrite=True)
    assert content(model) == before
    with pytest.raises(KeyboardInterrupt):
        other.fit(market.reviews[:600], checkpoint=model.parent / "stopped", callback=stop)
    stopped = content(model.parent / "stopped")
    with pytest.raises(ModelFileError, match="exists; continue it with resume=True"):
        other.fit(market.reviews[:600], checkpoint=model.parent / "stopped")
    assert content(model.parent / "stopped") == stopped
    other.fit(market.reviews[:600], checkpoint=model, overwrite=True)
    assert rl.load(model).tensor_.n_reviews == 600


def test_a_fit_is_not_resumed_with_reviews_of_other_moments_of_the_same_weeks(
    market: Marketplace, tmp_path: Path
) -> None:
    reviews = market.reviews[:600]
    later = reviews.assign(timestamp=reviews["timestamp"] + (np.arange(600) == 300))
    assert np.array_equal(rl.read_reviews(reviews).coordinates, rl.read_reviews(later).coordinates)
    detector = rl.RingDetector(rank=2, epochs=2)

    def stop(info: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        detector.fit(reviews, checkpoint=tmp_path / "m", callback=stop)
    said = "cannot be resumed: the reviews changed in nothing but their exact times .the week is the same."
    with pytest.raises(ResumeError, match=said):
        detector.fit(later, checkpoint=tmp_path / "m", resume=True)
    resumed = detector.fit(reviews.sample(frac=1, random_state=0), checkpoint=tmp_path / "m", resume=True)
    assert rl.load(tmp_path / "m").batches_[0].content == content_of(rl.read_reviews(reviews))
    with pytest.raises(ResumeError, match=r"its model is complete, and differs from the requested one .*the reviews"):
        detector.fit(later, checkpoint=tmp_path / "m", resume=True)
    with pytest.warns(RingleaderWarning, match="added before"):
        resumed.partial_fit(reviews)


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes by name")
def test_a_manifest_that_is_a_pipe_is_not_waited_for(tmp_path: Path, ringleader: Callable[..., Any]) -> None:
    (tmp_path / "m").mkdir()
    os.mkfifo(tmp_path / "m" / "manifest.json")
    assert "not a regular file" in ringleader("score", tmp_path / "m", "--mode", "seller", status=2)
    assert "is not a model" in ringleader("fit", "x.csv", "--out", tmp_path / "m", "--overwrite", status=2)


def test_a_deeply_nested_manifest_is_refused(tmp_path: Path, ringleader: Callable[..., Any]) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "manifest.json").write_text("[" * 100_000)
    assert "is not a model" in ringleader("fit", "x.csv", "--out", tmp_path / "m", "--overwrite", status=2)
