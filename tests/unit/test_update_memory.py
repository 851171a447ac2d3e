"""What an update lets go of: the model before it takes no memory beside the next one, nor what was written of that."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

import pytest

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.runtime.mapped import is_mapped
from ringleader.signals import signals
from ringleader.snapshot import load, parts, pieces, place, save, take_in


def test_the_model_before_an_update_is_free_before_python_looks_for_circles() -> None:
    market = marketplace(2000, difficulty="easy", seed=1)
    model = rl.RingDetector(rank=4, epochs=1, random_state=0).fit(market.reviews, market.labels)
    model.scores("seller")
    before = model.snapshot_
    held = [before, before.signals, before.label_free, before.judge, before.signals.lockstep, before.problem]
    held += [before.label_free.inputs(mode) for mode in (0, 1, 2)]
    known = [weakref.ref(part) for part in held]
    del before, held
    gc.disable()
    try:
        model.partial_fit(market.reviews.iloc[[5]].assign(reviewer="somebody else"))
        assert [part() for part in known] == [None] * len(known)
    finally:
        gc.enable()


def test_an_update_that_nobody_asks_for_more_lets_go_behind_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = marketplace(2000, difficulty="easy", seed=1)
    monkeypatch.setattr(parts, "LARGE", 100)
    monkeypatch.setattr(signals, "SIDE_BY_SIDE", 100)
    monkeypatch.setattr(pieces, "LARGEST", 1 << 15)
    monkeypatch.setattr(pieces, "PIECE", 1 << 15)
    monkeypatch.setattr(place, "sync_file", lambda path: None)
    rl.RingDetector(rank=4, epochs=1, random_state=0).fit(market.reviews, market.labels).save(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "released")
    label = market.labels.iloc[[0]].assign(label=1 - market.labels["label"].iloc[0])
    new = market.reviews.iloc[[5]].assign(reviewer="somebody else")
    written = {}
    for name, release in (("whole", False), ("released", True)):
        snapshot, stored = load(tmp_path / name)
        after = take_in(snapshot, new, label).snapshot
        assert "_state" not in vars(snapshot.state), "the state before was put away"
        save(after, tmp_path / name, stored, release=release)
        written[name] = {file.name: file.read_bytes() for file in (tmp_path / name).glob("*-*.*")}
    assert written["whole"] == written["released"]
    assert "ties" not in vars(after.label_free)
    assert not any(dict.keys(inputs) for inputs in (after.label_free._inputs, after.judge._inputs))
    found = after.signals
    for array in (*found.reviews, *found.strangers, found.lockstep.pull, found.lockstep.single.data):
        assert is_mapped(array), "what is known of every review was laid aside"
    assert not after.problem.draws._results
