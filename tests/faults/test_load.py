"""Load: shapes of markets that would find anything quadratic; ``benchmarks/load.py`` measures them at full size."""

from __future__ import annotations

import itertools
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.arrays import ColumnTable
from ringleader.errors import SettingsError
from ringleader.judge import LabelFree
from ringleader.judge.basis import unpack_ranks
from ringleader.judge.inputs import Inputs
from ringleader.known.labels import Target
from ringleader.model.config import ModelConfig
from ringleader.model.priors import labelled_rows
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.signals import signals
from ringleader.snapshot import folder as store
from ringleader.snapshot import memory, parts, pieces, stored_state
from ringleader.snapshot.learn import settled
from ringleader.snapshot.parameters import RANDOM_SWEEPS
from ringleader.tables.read import open_relation

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from load import SHAPES
from machine import ROOT


def nobody_twice(reviews: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = {mode: [f"{mode[0]}{i}" for i in range(reviews)] for mode in ("reviewer", "product", "seller")}
    times = rng.integers(1_500_000_000, 1_530_000_000, reviews)
    return pd.DataFrame({**names, "rating": rng.integers(1, 6, reviews), "timestamp": times})


def test_a_fit_without_anything_to_learn_ends_when_it_has_settled(tmp_path: Path) -> None:
    whole = rl.RingDetector().fit(nobody_twice())
    assert 2 <= len(whole.history_) < RANDOM_SWEEPS
    assert len(rl.RingDetector(epochs=RANDOM_SWEEPS).fit(nobody_twice()).history_) == RANDOM_SWEEPS  # as it was told

    def stop(info: Any) -> None:
        if info.sweep == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector().fit(nobody_twice(), checkpoint=tmp_path / "m", callback=stop)
    resumed = rl.RingDetector().fit(nobody_twice(), checkpoint=tmp_path / "m", resume=True)
    assert np.array_equal(resumed.state_.factors, whole.state_.factors)
    assert len(resumed.history_) == len(whole.history_)


def test_a_fit_whose_posterior_fell_has_settled() -> None:
    def history(*values: float | None) -> list[dict[str, float | None]]:
        return [{"log_posterior": value} for value in values]

    assert settled(history(-500.0, -300.0, -300.1))  # under another draw of negatives: no sweep lowers its own
    assert settled(history(-300.0, -300.0 + 1e-5))
    assert not settled(history(-300.1, -300.0))
    assert not settled(history(-300.0))
    assert not settled(history(None, -300.0))


def test_labels_of_every_target_have_their_own_rows() -> None:
    tensor = rl.read_reviews(nobody_twice(20))
    rng = np.random.default_rng(0)
    targets = []
    for number, size in enumerate((3, 0, 5, 1)):
        codes = np.sort(rng.choice(20, size, replace=False)).astype(np.int32)
        targets.append(Target(number % 2 * 2, f"t{number}", "binary", codes, np.ones(size)))
    problem = build_problem(tensor, targets, ModelConfig(rank=3))
    state = start_state(problem)
    for number, target in enumerate(targets):
        rows = labelled_rows(problem, state, number)
        assert np.array_equal(rows, state.rows(target.mode)[target.codes])
    assert [problem.targets_of(mode) for mode in range(3)] == [[0, 2], [], [1, 3]]


@pytest.mark.parametrize(("memory", "threads"), [("400MB", 1), ("512MiB", 1), ("900MB", 2), ("8GB", 4)])
def test_little_memory_is_not_shared_by_many_threads(memory: str, threads: int) -> None:
    """Joins of many ids that have less than this each run out of memory, where one thread spills to disk."""
    with open_relation(nobody_twice(10), memory_limit=memory, threads=4) as relation:
        assert relation.rows("SELECT current_setting('threads')")[0][0] == threads


def test_what_cannot_fit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = nobody_twice(100)
    rows = [("seller", f"s{k}", k % 2, f"t{t}") for t in range(2000) for k in range(2)]
    labels = pd.DataFrame(rows, columns=["mode", "entity", "label", "target"])
    monkeypatch.setattr(memory, "memory_limit", lambda: 10**9)
    with pytest.raises(SettingsError, match=r"heads of 2,000 targets need at least 3\.\d GB, and .* use 1\.0 GB"):
        rl.RingDetector().fit(reviews, labels)
    monkeypatch.setattr(memory, "memory_limit", lambda: 10**8)
    with pytest.raises(SettingsError, match=r"a fit of 100 cells needs at least 0\.\d GB"):
        rl.RingDetector().fit(reviews)


def test_inputs_of_large_modes_leave_the_memory_of_a_fit_and_the_model_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rl.RingDetector(epochs=1).fit(nobody_twice(), checkpoint=tmp_path / "whole")
    held: list[int] = []
    release = LabelFree.release

    def released(label_free: LabelFree, mode: int) -> None:
        release(label_free, mode)
        held.append(len(label_free._inputs) + len(label_free.signals._behaviours))

    monkeypatch.setattr(LabelFree, "release", released)
    monkeypatch.setattr(parts, "LARGE", 300)
    given_back = rl.RingDetector(epochs=1).fit(nobody_twice(), checkpoint=tmp_path / "given back")
    assert held == [0, 0, 0]
    files = [store.load(tmp_path / name).files for name in ("whole", "given back")]
    assert files[0] == files[1]
    assert given_back.scores("seller").equals(whole.scores("seller"))
    assert given_back.explain("seller", "s7").to_dict() == whole.explain("seller", "s7").to_dict()


def test_a_large_model_of_few_reviews_is_saved_after_every_fourth_sweep_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = rl.RingDetector(epochs=6)
    whole = detector.fit(nobody_twice(), checkpoint=tmp_path / "whole").state_
    monkeypatch.setattr(parts, "LARGE", 300)
    saved: list[tuple[int, bool]] = []
    save = parts.Checkpoint.save

    def noted(writer: parts.Checkpoint, snapshot: Any, *more: Any) -> None:
        saved.append((snapshot.state.sweep, snapshot.complete))
        save(writer, snapshot, *more)

    def stop(info: Any) -> None:
        if info.sweep == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(parts.Checkpoint, "save", noted)
    with pytest.raises(KeyboardInterrupt):
        detector.fit(nobody_twice(), checkpoint=tmp_path / "stopped", callback=stop)
    assert saved == [(0, False), (4, False)]
    resumed = detector.fit(nobody_twice(), checkpoint=tmp_path / "stopped", resume=True)
    assert saved[2:] == [(6, False), (6, True)]
    assert np.array_equal(resumed.state_.factors, whole.factors)


def test_behaviour_is_a_part_of_the_inputs_and_not_a_copy() -> None:
    model = rl.RingDetector(epochs=1).fit(nobody_twice())
    inputs = model.snapshot_.label_free.inputs(2)
    assert np.shares_memory(inputs.behaviour.values, inputs.values)
    assert model.snapshot_.signals.behaviour(2) is inputs.behaviour


def test_columns_go_to_their_place_in_one_table() -> None:
    columns = np.random.default_rng(0).random((7, 5))
    table = ColumnTable.of(5, capacity=4)
    first = table.put(columns[0])
    assert np.shares_memory(first.values, first.put(columns[1]).values)
    for column in columns:
        table = table.put(column)
    np.testing.assert_array_equal(table.values, columns.T)  # beyond the room that was set aside
    assert all(column.flags.c_contiguous for column in table.values.T)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.values, columns[:1].T)
    assert again.capacity == 1, "memory that nothing was written to does not travel"


def test_a_report_holds_the_inputs_of_one_large_mode_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rl.RingDetector(epochs=1).fit(nobody_twice()).save(tmp_path / "m")
    rl.load(tmp_path / "m").report(tmp_path / "whole.html")
    held: list[set[int]] = []
    find = LabelFree.inputs

    def found(label_free: LabelFree, mode: int) -> Inputs:
        inputs = find(label_free, mode)
        held.append(set(dict.keys(label_free._inputs)))
        return inputs

    monkeypatch.setattr(LabelFree, "inputs", found)
    monkeypatch.setattr(parts, "LARGE", 300)
    rl.load(tmp_path / "m").report(tmp_path / "one by one.html")
    assert all(len(modes) == 1 for modes in held)
    assert len(set.union(*held)) == 3
    assert [a != b for a, b in itertools.pairwise(held)].count(True) == 2, "each mode is read once"
    texts = [(tmp_path / f"{name}.html").read_text() for name in ("whole", "one by one")]
    assert texts[0] == texts[1]


def test_a_report_of_a_large_model_reads_its_state_and_finds_ratios_before_any_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: tuple[list[str], Callable[[Any, str], None]]
) -> None:
    monkeypatch.setattr(pieces, "LARGEST", 1 << 12)
    rl.RingDetector(epochs=1).fit(nobody_twice()).save(tmp_path / "m")
    monkeypatch.setattr(parts, "LARGE", 300)
    order, note = noted
    note(stored_state, "read_state")
    note(signals, "review_ratios")
    note(LabelFree, "inputs")
    model = rl.load(tmp_path / "m")
    model.report(tmp_path / "page.html")
    assert list(dict.fromkeys(order)) == ["read_state", "review_ratios", "inputs"]
    assert (order.count("read_state"), order.count("review_ratios")) == (1, 1)
    assert "_state" not in vars(model.state_)  # its memory was given back
    assert model.state_.factors.shape[1] == model.config_.rank  # and it is read again


def test_ranks_of_a_large_model_are_read_by_columns_and_not_turned_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "LARGEST", 1 << 12)
    monkeypatch.setattr(pieces, "PIECE", 1 << 11)
    model = rl.RingDetector(epochs=1).fit(nobody_twice())
    found = model.snapshot_.label_free.inputs(2)
    model.save(tmp_path / "m")
    stored = store.load(tmp_path / "m")
    assert "pieces" in stored.files["inputs-2"]
    assert found.ranks is not None
    arrays = stored.arrays("inputs-2")
    assert arrays["ranks"].flags.f_contiguous
    assert unpack_ranks(arrays).levels is arrays["ranks"]
    np.testing.assert_array_equal(arrays["ranks"], found.ranks.levels)
    np.testing.assert_array_equal(arrays["values"], found.values)


def test_inputs_that_no_folder_holds_are_not_put_away() -> None:
    model = rl.RingDetector(epochs=1).fit(nobody_twice())
    label_free = model.snapshot_.label_free
    inputs = label_free.inputs(2)
    label_free.put_away(2)
    assert label_free.inputs(2) is inputs


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("shape", [name for name, shape in SHAPES.items() if shape.limit is None])
def test_a_market_of_an_odd_shape_goes_through_the_commands(shape: str) -> None:
    line = [sys.executable, str(ROOT / "benchmarks" / "load.py"), shape, "--scale", "0.1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    for row in map(json.loads, done.stdout.splitlines()):
        print(row)
        assert row["status"] == 0
        assert "bug" not in row["said"]
