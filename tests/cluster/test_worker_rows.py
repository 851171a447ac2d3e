"""Workers write the rows that they hold: the folder of one process, whatever their number, and anybody resumes it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess, Mortal
from model_folders import folder_bytes, model_content
from test_cluster_reading import review_files

import ringleader as rl
from ringleader.errors import StorageError, WorkerLost
from ringleader.learners.cluster import ClusterLearner
from ringleader.runtime import mapped
from ringleader.runtime.mapped import is_mapped
from ringleader.runtime.outputs import error_of_worker
from ringleader.shares import rows
from ringleader.snapshot import pieces, place, worker_rows

SETTINGS: dict[str, Any] = {"rank": 4, "epochs": 3, "threads": 1, "random_state": 3}


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGEST", 1500)
        patch.setattr(place, "sync_file", lambda path: None)  # of very many small files
        yield


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return review_files(tmp_path_factory.mktemp("reviews"), files=3, rows=300)


@pytest.fixture(scope="module")
def one(small_pieces: None, reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of one process."""
    folder = tmp_path_factory.mktemp("alone") / "one"
    rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=folder)
    return folder


@pytest.mark.parametrize("count", [2, pytest.param(16, marks=pytest.mark.slow)])
def test_workers_write_the_folder_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Path, one: Path, count: int
) -> None:
    wrote: list[int] = []
    write_rows = ClusterLearner.write_rows

    def counted(self: ClusterLearner, state: Any, spans: Any, write: Any) -> Any:
        wrote.append(len(spans))
        return write_rows(self, state, spans, write)

    monkeypatch.setattr(ClusterLearner, "write_rows", counted)
    workers = InProcess(count)
    rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "many", runtime=workers)
    assert len(wrote) == SETTINGS["epochs"]  # every checkpoint after a sweep
    assert all(number > 2 for number in wrote)
    found, expected = folder_bytes(tmp_path / "many"), folder_bytes(one)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


@pytest.mark.parametrize(("first", "then"), [(2, None), pytest.param(16, 4, marks=pytest.mark.slow)])
def test_what_workers_wrote_is_resumed_by_any_number_and_opened_by_one(
    tmp_path: Path, reviews: Path, one: Path, first: int, then: int | None
) -> None:
    def stop(info: Any) -> None:
        if info.sweep == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "m", callback=stop, runtime=InProcess(first))
    assert rl.load(tmp_path / "m").state_.sweep == 1
    runtime = InProcess(then) if then else None
    resumed = rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "m", resume=True, runtime=runtime)
    assert resumed.resumed_from_ == 1
    assert model_content(tmp_path / "m") == model_content(one)


@pytest.mark.parametrize("reason", ["lost", "unseen"])
def test_the_driver_writes_where_workers_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Path, one: Path, reason: str
) -> None:
    def gone(*arguments: Any) -> Any:
        raise WorkerLost("worker 1 is gone")

    if reason == "lost":
        monkeypatch.setattr(ClusterLearner, "write_rows", gone)
    else:
        monkeypatch.setattr("ringleader.snapshot.worker_rows._sees_lock", _blind)
    rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "two", runtime=InProcess(2))
    assert folder_bytes(tmp_path / "two") == folder_bytes(one)


def test_a_full_disk_of_a_worker_that_writes_is_said_with_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Path
) -> None:
    def full(*arguments: Any) -> Any:
        cause = OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")
        raise error_of_worker(cause, "worker 1 (process 7) on host")

    monkeypatch.setattr(ClusterLearner, "write_rows", full)
    said = r"cannot write the model to .*: No space left on device in worker 1 \(process 7\) on host; "
    with pytest.raises(StorageError, match=said):
        rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "two", runtime=InProcess(2))


@pytest.mark.parametrize(
    "lost",
    [
        "the last",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("_keep_evidence", "_label_free", "_judge", "_cores")),
    ],
)
def test_what_workers_found_and_held_is_found_again_where_one_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Path, lost: str
) -> None:
    made: list[np.ndarray] = []
    with_sizes = worker_rows._with_sizes

    def noted(part: Any, held: dict[str, Any]) -> Any:
        arrays = part.make()
        made.extend(arrays[name] for name in held if name in arrays and arrays[name].size)
        return with_sizes(part, held)

    monkeypatch.setattr(worker_rows, "_with_sizes", noted)

    class Counted(Mortal):
        """Notes the programs that it runs."""

        def run(self, call: Any, arguments: Any) -> list[Any]:
            programs.append(call.__name__)
            return super().run(call, arguments)

    programs: list[str] = []
    detector = rl.RingDetector(**{**SETTINGS, "epochs": 1})
    names = rl.read_reviews(reviews).vocabulary("reviewer").decode(np.arange(20))
    known = pd.DataFrame({"mode": "reviewer", "entity": names, "label": np.arange(20) % 2})
    detector.fit(reviews, known, checkpoint=tmp_path / "one", runtime=Counted(2, set()))
    last = len(programs) - programs[::-1].index("write_held")  # when what was written before is let go of
    call = last if lost == "the last" else programs.index(lost) + 1
    work = {"the last": "write the model", "_judge": "fit the heads", "_cores": "search for cores"}
    again = work.get(lost, "find the signals")
    with pytest.warns(UserWarning, match=f"worker 1 is gone; new workers {again} again"):
        detector.fit(reviews, known, checkpoint=tmp_path / "other", runtime=Mortal(2, {call}))
    assert folder_bytes(tmp_path / "other") == folder_bytes(tmp_path / "one")
    assert len(made) > 20 and not any(any(array.strides) for array in made)  # on the driver they take no memory


def test_a_model_fitted_by_workers_answers_as_that_of_one_process(tmp_path: Path, reviews: Path) -> None:
    alone = rl.RingDetector(**SETTINGS).fit(reviews)
    stored = rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "m", runtime=InProcess(2))
    kept = rl.RingDetector(**SETTINGS).fit(reviews, runtime=InProcess(2))
    name = alone.scores("reviewer")["entity"][0]
    for model in (stored, kept):
        assert model.scores("reviewer").equals(alone.scores("reviewer"))
        assert str(model.explain("reviewer", name)) == str(alone.explain("reviewer", name))
        assert model.snapshot_.signals.strangers.ratios.tolist() == alone.snapshot_.signals.strangers.ratios.tolist()
        assert model.snapshot_.verdicts(model.cores()) == alone.snapshot_.verdicts(alone.cores())


def test_the_driver_has_reviews_and_state_in_files_and_works_on_them_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Path, one: Path
) -> None:
    monkeypatch.setattr(mapped, "PIECE", 2000)
    monkeypatch.setattr(rows, "SENT", 2000)
    states = []
    rl.RingDetector(**SETTINGS).fit(
        reviews, checkpoint=tmp_path / "two", runtime=InProcess(2), callback=lambda info: states.append(info.state)
    )
    assert folder_bytes(tmp_path / "two") == folder_bytes(one)
    assert len(states) == SETTINGS["epochs"]
    assert all(is_mapped(state.factors) for state in states)
    tensor = rl.read_reviews(reviews, runtime=InProcess(2))
    assert all(is_mapped(array) for array in (tensor.coordinates, tensor.counts, tensor.exact))


def _blind(memory: Any, peers: Any, folder: str, content: bytes) -> bool:
    return peers.rank != 1
