"""What the driver sends: arrays in messages of bounded size, whatever their number, size and type."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess
from model_folders import folder_bytes
from test_cluster_reading import review_files

import ringleader as rl
from ringleader.runtime import mapped
from ringleader.runtime.peers import Peers
from ringleader.shares import rows
from ringleader.shares.rows import send_arrays
from ringleader.snapshot import pieces, place


class Weighed(InProcess):
    """Notes the bytes of the arrays that the driver sends each worker at a time, by the name of the program."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.sent: dict[str, int] = {}

    def run(self, call: Any, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        tasks = list(arguments)
        for task in tasks:
            buffers: list[pickle.PickleBuffer] = []
            pickle.dumps(task, protocol=5, buffer_callback=buffers.append)
            size = sum(buffer.raw().nbytes for buffer in buffers)
            self.sent[call.__name__] = max(size, self.sent.get(call.__name__, 0))
        return super().run(call, tasks)


class Travelling(InProcess):
    """Notes the bytes of the largest message between workers, by the name of the program."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.largest: dict[str, int] = {}

    def run(self, call: Any, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        self.program = call.__name__
        return super().run(call, arguments)

    def _sent(self, value: Any) -> Any:
        if isinstance(value, list):  # the messages of the others to one of them
            sizes = [len(pickle.dumps(message, protocol=5)) for message in value]
            self.largest[self.program] = max([0, self.largest.get(self.program, 0), *sizes])
        return super()._sent(value)


def taken(memory: dict[str, Any], peers: Peers, name: str) -> dict[Any, np.ndarray]:
    return memory.pop(name)


def review_files_in(folder: Path) -> Path:
    (folder / "reviews").mkdir()
    return review_files(folder / "reviews")


def test_workers_hold_the_arrays_that_were_sent_in_small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SENT", 100)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 3))
    arrays: list[dict[Any, np.ndarray]] = [
        {"table": table, ("a", 1): table[:, 1], "none": np.zeros((0, 4), np.int32), "flags": rng.random(70) > 0.5},
        {"number": np.array(7), "codes": rng.integers(0, 99, 9).astype(np.int32)},
        {},
    ]
    workers = Weighed(3)
    send_arrays(workers, "sent", arrays)
    assert 0 < workers.sent["_take_arrays"] <= 100
    for found, expected in zip(workers.run(taken, [("sent",)] * 3), arrays, strict=True):
        assert found.keys() == expected.keys()
        for key, array in expected.items():
            assert found[key].dtype == array.dtype
            np.testing.assert_array_equal(found[key], array)


def test_the_driver_sends_nothing_in_a_fit_that_grows_with_the_reviews_but_in_small_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviews = review_files_in(tmp_path)
    names = rl.read_reviews(reviews).vocabulary("reviewer").decode(np.arange(20))
    known = pd.DataFrame({"mode": "reviewer", "entity": names, "label": np.arange(20) % 2})
    detector = rl.RingDetector(rank=4, epochs=2, threads=1, random_state=3)
    monkeypatch.setattr(place, "sync_file", lambda path: None)
    monkeypatch.setattr(pieces, "LARGEST", 4000)
    detector.fit(reviews, known, checkpoint=tmp_path / "one")
    monkeypatch.setattr(mapped, "PIECE", 1000)
    monkeypatch.setattr(rows, "SENT", 1000)
    workers = Weighed(1)
    detector.fit(reviews, known, checkpoint=tmp_path / "many", runtime=workers)
    assert folder_bytes(tmp_path / "many") == folder_bytes(tmp_path / "one")
    assert 0 < workers.sent.pop("_take_arrays") <= 1000
    assert max(workers.sent.values()) < detector.tensor_.coordinates.nbytes / 4  # where lists of small modes are cut
    assert workers.sent["_hold_rows"] + workers.sent["write_held"] < detector.state_.factors.nbytes / 8


def test_rows_come_to_who_writes_them_in_small_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews, detector = review_files_in(tmp_path), rl.RingDetector(rank=4, epochs=1, threads=1, random_state=3)
    monkeypatch.setattr(place, "sync_file", lambda path: None)
    monkeypatch.setattr(pieces, "LARGEST", 6000)
    detector.fit(reviews, checkpoint=tmp_path / "one")
    monkeypatch.setattr(rows, "SENT", 1000)
    workers = Travelling(3)
    detector.fit(reviews, checkpoint=tmp_path / "many", runtime=workers)
    assert folder_bytes(tmp_path / "many") == folder_bytes(tmp_path / "one")
    for program in ("write_state", "write_held"):
        assert 1000 < workers.largest[program] < 4000  # names and types are in it; pieces have 6 kB of an array
