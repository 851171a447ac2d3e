"""The worker: each snapshot follows from the base and the decisions, the newest wins, and nobody waits for it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringleader.console.deciding import Console
from ringleader.console.decisions import DecisionStore, Draft
from ringleader.console.guard import Keys
from ringleader.console.live import Live
from ringleader.console.refit import NICENESS, CancelledError, Refitter, derive, open_live
from ringleader.errors import LabelError
from ringleader.signals.lockstep import association
from ringleader.snapshot import load, preparations, update


@pytest.fixture
def parts(model_folder: Path, tmp_path: Path) -> tuple[DecisionStore, Live, Refitter]:
    shutil.copytree(model_folder, tmp_path / "model")
    store = DecisionStore(tmp_path / "model")
    live, worker = open_live(str(tmp_path / "model"), store)
    return store, live, worker


def decide(store: DecisionStore, entity: str, verdict: str, mode: str = "seller") -> None:
    store.append([Draft(mode, entity, "abuse", verdict)], key=f"{entity}{verdict}{store.last}", who="ada")  # type: ignore[arg-type]


def test_a_refit_is_an_update_of_the_base_with_all_that_was_decided(
    parts: tuple[DecisionStore, Live, Refitter],
) -> None:
    store, live, worker = parts
    for entity, verdict in (("rings5", "bad"), ("s3", "bad"), ("s3", "good"), ("s4", "unsure")):
        decide(store, entity, verdict)
    decide(store, "r30", "good", "reviewer")
    served = worker.refit_now()
    simple = update(load(live.folder)[0], labels=store.labels())
    for mode in ("seller", "reviewer", "product"):
        assert np.array_equal(served.standing(mode).score, np.asarray(simple.scores_by_code(mode)["score"]))
        table = simple.scores(mode)
        assert served.standing(mode).population.entities(served.standing(mode).order) == table["entity"].tolist()
    assert (served.learned, served.until) == (3, 5)


def test_what_is_taken_back_leaves_no_trace_in_the_ranking(parts: tuple[DecisionStore, Live, Refitter]) -> None:
    store, live, worker = parts
    before = live.served.standing("seller").score
    decide(store, "s3", "bad")
    assert not np.array_equal(worker.refit_now().standing("seller").score, before)
    store.revert(1, key="z", who="ada")
    assert np.array_equal(worker.refit_now().standing("seller").score, before)


def test_a_decision_that_says_what_the_label_said_changes_nothing_and_one_that_differs_holds(
    parts: tuple[DecisionStore, Live, Refitter],
) -> None:
    store, live, worker = parts
    labels = live.served.snapshot.labels
    assert labels is not None
    known = next(e for e in labels.entries if e.mode == "seller" and e.value > 0)
    before = live.served.standing("seller").score
    decide(store, known.entity, "bad")
    assert np.array_equal(worker.refit_now().standing("seller").score, before)
    decide(store, known.entity, "good")
    after = worker.refit_now()
    assert after.standing("seller").label[after.standing("seller").population.code(known.entity)] == 0


def test_a_page_that_began_before_the_swap_is_of_one_piece(parts: tuple[DecisionStore, Live, Refitter]) -> None:
    store, live, worker = parts
    held = live.served
    order = held.standing("seller").order.copy()
    decide(store, "rings5", "bad")
    worker.refit_now()
    assert live.served is not held and live.served.number == held.number + 1
    assert np.array_equal(held.standing("seller").order, order) and held.learned == 0


def test_a_refit_that_nobody_wants_any_more_is_given_up(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, live, worker = parts
    decide(store, "rings5", "bad")

    def turned(base: object, labels: object) -> object:
        worker.roll_back(0)
        return derive(base, labels)  # type: ignore[arg-type]

    monkeypatch.setattr("ringleader.console.refit.derive", turned)
    with pytest.raises(CancelledError):
        worker.refit_now()
    assert live.served.learned == 0


def test_many_decisions_at_once_are_learned_together(parts: tuple[DecisionStore, Live, Refitter]) -> None:
    store, live, worker = parts
    done = threading.Event()
    live.listen(lambda event: done.set() if live.served.until >= 12 else None)
    worker.start()
    for i in range(12):
        decide(store, f"s{i + 10}", "bad" if i % 2 else "good")
        worker.wake()
    assert done.wait(120)
    worker.stop()
    assert live.served.learned == 12 and len(store.runs()) < 8


def test_a_restart_serves_what_was_served_and_notes_no_new_run(
    parts: tuple[DecisionStore, Live, Refitter],
) -> None:
    store, live, worker = parts
    decide(store, "rings5", "bad")
    served = worker.refit_now()
    again, _ = open_live(str(live.folder), DecisionStore(live.folder))
    assert (again.served.number, again.served.learned) == (served.number, 1)
    assert np.array_equal(again.served.standing("seller").score, served.standing("seller").score)
    worker.roll_back(0)
    worker.refit_now()
    pinned, _ = open_live(str(live.folder), DecisionStore(live.folder))
    assert pinned.served.pinned and pinned.served.learned == 0


def test_runs_say_what_they_learned_from_and_how_good_they_were(parts: tuple[DecisionStore, Live, Refitter]) -> None:
    store, _, worker = parts
    decide(store, "s20", "good")
    worker.refit_now()
    newest, oldest = store.runs()
    assert newest.about["people"] == {"ada": 1} and oldest.about["learned"] == 0
    assert 0 <= newest.about["quality"]["reviewer"]["auc"] <= 1
    assert len(newest.about["first"]["reviewer"]) == 50


def test_a_model_that_is_left_half_written_is_reported_once_and_followed_when_it_is_whole(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, live, worker = parts
    monkeypatch.setattr("ringleader.console.refit.LOOK_SECONDS", 0.02)
    errors, failed, done = list[str](), threading.Semaphore(0), threading.Event()
    worker.on_error = errors.append

    def look(event: Mapping[str, Any]) -> None:
        if event["kind"] == "refit" and event["state"] == "failed":
            failed.release()
        if live.served.until == 1:
            done.set()

    live.listen(look)
    manifest = live.folder / "manifest.json"
    whole = manifest.read_bytes()
    worker.start()
    manifest.write_bytes(whole[: len(whole) // 2])
    for _ in range(3):
        assert failed.acquire(timeout=60)
    assert len(errors) == 1
    manifest.write_bytes(whole)
    decide(store, "rings5", "bad")
    worker.wake()
    assert done.wait(60)
    worker.stop()


def test_a_refit_begins_at_once_and_rests_behind_another(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, worker = parts
    waited: list[float] = []
    monkeypatch.setattr(worker._condition, "wait", lambda seconds: waited.append(seconds) or worker._turn(None))
    worker.wake()
    assert worker._wait() and waited == []
    worker._rested = time.monotonic() + 30
    worker.wake()
    assert worker._wait() and 20 < waited[0] <= 30


def test_a_decision_does_not_wait_for_preparations(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, live, worker = parts
    prepared, done = list[int](), threading.Event()

    def arrive(piece: int) -> None:
        prepared.append(piece)
        if piece == 1:
            decide(store, "rings5", "bad")
            worker.wake()

    pieces = [partial(arrive, piece) for piece in range(4)]
    monkeypatch.setattr("ringleader.console.refit.preparations", lambda *arguments: pieces)
    live.listen(lambda event: done.set() if live.served.until == 1 else None)
    worker.start()
    assert done.wait(60)
    worker.stop()
    assert prepared == [0, 1]


@pytest.mark.parametrize("fault", [ValueError("odd numbers"), LabelError("odd labels")])
def test_preparations_that_fail_are_told_and_the_worker_goes_on(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    store, live, worker = parts
    errors, failed, done = list[str](), threading.Event(), threading.Event()

    def fail(*arguments: Any) -> Any:
        raise fault

    def look(event: Mapping[str, Any]) -> None:
        if event["kind"] == "refit" and event["state"] == "failed":
            failed.set()
        if live.served.until == 1:
            done.set()

    monkeypatch.setattr("ringleader.console.refit.preparations", fail)
    worker.on_error = errors.append
    live.listen(look)
    worker.start()
    assert failed.wait(60) and len(errors) == 1 and str(fault) in errors[0]
    decide(store, "rings5", "bad")
    worker.wake()
    assert done.wait(60)
    worker.stop()


def test_a_model_that_was_replaced_leaves_the_memory(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, live, worker = parts
    monkeypatch.setattr("ringleader.console.refit.LOOK_SECONDS", 0.02)
    old, done = weakref.ref(worker.base.signals), threading.Event()
    prepared, manifest = threading.Event(), live.folder / "manifest.json"
    monkeypatch.setattr(worker, "_warm_up", prepared.set)
    live.listen(lambda event: done.set() if event["kind"] == "run" else None)
    worker.start()
    assert prepared.wait(60)
    os.utime(manifest, (1, 1))
    assert done.wait(60)
    worker.stop()
    assert old() is None and worker.base.signals is not None


def test_preparations_leave_no_label_to_flow_that_is_known_already(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, live, worker = parts
    decide(store, "rings5", "bad")
    unprepared = derive(load(live.folder)[0], store.labels())
    for prepare in preparations(worker.base, "abuse", [0]):
        prepare()
    flowed = list[int]()
    original = association.spread_labels

    def count(walk: Any, own: Any, *arguments: Any, **settings: Any) -> Any:
        flowed.append(own.total)
        return original(walk, own, *arguments, **settings)

    monkeypatch.setattr(association, "spread_labels", count)
    served = worker.refit_now()
    sellers = served.tensor.shape[served.mode("seller")]
    assert flowed and set(flowed) == {sellers}  # those of reviewers are as they were
    for mode in ("seller", "reviewer"):
        assert np.array_equal(served.standing(mode).score, np.asarray(unprepared.scores_by_code(mode)["score"]))


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_the_refit_comes_behind_the_pages(
    parts: tuple[DecisionStore, Live, Refitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, worker = parts
    seen: list[int] = []

    def look() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        started = threading.Thread(
            target=lambda: seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        )
        started.start()
        started.join()

    monkeypatch.setattr(worker, "_warm_up", look)
    worker.start()
    worker.stop()
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert seen == [min(own + NICENESS, 19)] * 2


def test_the_score_that_a_decision_notes_is_of_its_target_and_of_the_run_that_was_seen(
    parts: tuple[DecisionStore, Live, Refitter],
) -> None:
    store, live, worker = parts
    for name, verdict in (("rings1", "bad"), ("s3", "good"), ("s4", "good")):
        store.append([Draft("seller", name, "bought", verdict)], key=name, who="ada")  # type: ignore[arg-type]
    served = worker.refit_now()
    console = Console(live, worker, Keys(), 1)
    code = served.standing("seller").population.code("s9")
    seen = served.standing("seller").score[code]
    assert console.draft(served, "seller", "s9", "bad").score_seen == seen
    assert console.draft(served, "seller", "s9", "bad", target="bought").score_seen is None  # nobody has seen one yet
    bought = served.standing("seller", "bought").score[code]
    assert bought != seen and console.draft(served, "seller", "s9", "bad", target="bought").score_seen == bought
    decide(store, "s9", "good")
    newer = worker.refit_now()
    assert newer.standing("seller").score[code] != seen
    drafts = [console.draft(newer, "seller", "s9", "bad", run=run) for run in (served.number, newer.number, 99)]
    assert [(d.score_seen, d.snapshot_seen) for d in drafts] == [
        (seen, str(served.number)),
        (newer.standing("seller").score[code], str(newer.number)),
        (None, "99"),
    ]
    assert console.draft(newer, "seller", "s9", "bad", target="bought", run=served.number).score_seen == bought
