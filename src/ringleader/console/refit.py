"""The worker that learns: from the decisions it derives the next snapshot beside the one that is served.

Each snapshot follows from the base (the model as its folder holds it) and all decisions up to one, newest first to
hold. So a run is repeated from two numbers, and rolling back is deriving from fewer decisions.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from ringleader.console.decisions import DecisionStore, RunRecord
from ringleader.console.live import Live, Served, run_about, serve_snapshot
from ringleader.errors import LabelError, RingleaderError
from ringleader.evaluation import metrics
from ringleader.known.labels import DEFAULT_TARGET, Labels
from ringleader.snapshot import Snapshot, load, preparations, update

REST, LONGEST_REST = 0.5, 0.4
"""A refit begins at once where none ran just now. Behind one there is a rest, so long as this part of it and at most so
many seconds, in which pages have the processor and decisions gather."""
NICENESS = 5
"""How far behind the pages the refit comes where both want the processor, as ``nice`` counts."""
LOOK_SECONDS = 2.0
"""How often the model's folder is looked at: another command may have updated it."""


class CancelledError(RingleaderError):
    """A refit whose result nobody waits for any more."""


def step_back() -> None:
    """Lets other threads have the processor before this one and those it starts; where threads have priorities."""
    if sys.platform == "linux":
        own = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + NICENESS)


def derive(base: Snapshot, decided: Labels | None) -> Snapshot:
    """The base with what was decided on top; where both know an account, the decision holds."""
    return base if decided is None else update(base, labels=decided)


def can_learn(base: Snapshot) -> str:
    """Why decisions teach this model nothing; empty where they do."""
    if base.labels is not None and base.labels.target_kind == "real":
        return "The labels of this model are numbers, so decisions are kept but not learned from."
    if not base.complete:
        return "The fit of this model was stopped before its end, so decisions are kept but not learned from."
    return ""


def heldout_quality(snapshot: Snapshot) -> dict[str, Any]:
    """AUC on the accounts that were held out of the fit and not decided since, by mode; without where none can be."""
    if snapshot.heldout is None or snapshot.heldout.target_kind == "real":
        return {}
    quality: dict[str, Any] = {}
    for target in snapshot.heldout.align(snapshot.tensor).targets:
        mode = snapshot.tensor.modes[target.mode]
        if mode in quality or target.name not in (snapshot.target_names(target.mode)[:1] or [target.name]):
            continue
        scores = np.asarray(snapshot.scorer(target.mode).score, np.float64)[target.codes]
        try:
            auc = metrics.auc((target.values > 0).astype(float), scores)
        except LabelError:
            continue
        quality[mode] = {"auc": round(auc, 4), "accounts": len(target.codes), "bad": int((target.values > 0).sum())}
    return quality


def open_live(folder: str, store: DecisionStore) -> tuple[Live, Refitter]:
    """The model of a folder, served as its decisions left it. The worker is not started yet."""
    base, _ = load(folder)
    runs = store.runs(limit=1)
    pinned = runs[0] if runs and runs[0].pinned else None
    served = serve_snapshot(base, number=0, until=0, learned=0)
    live = Live(folder, store, served)
    worker = Refitter(live, base, pinned)
    worker.refit_now()
    return live, worker


class Refitter:
    """One thread that refits: debounced, the newest decisions win, cancellable; it never holds up a reader."""

    def __init__(self, live: Live, base: Snapshot, pinned: RunRecord | None = None) -> None:
        self.live, self.base = live, base
        self._pinned = pinned.until if pinned is not None else None
        self._condition = threading.Condition()
        self._wanted = False
        self._rested = 0.0
        self._generation = 0
        self._stopped = False
        self._replaced = False  # whether the model that is frozen is one that was served before
        self._thread: threading.Thread | None = None
        self._manifest = self._manifest_time()
        self.on_error: Callable[[str], None] = lambda text: None

    # -- from other threads -------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="refit", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the worker; what it is at is given up at the next step."""
        with self._condition:
            self._stopped = True
            self._generation += 1
            self._condition.notify()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def wake(self) -> None:
        """Something was decided."""
        with self._condition:
            self._wanted = True
            self._condition.notify()

    def roll_back(self, until: int) -> None:
        """Serves what the decisions up to one say; newer ones are kept and wait."""
        self._turn(until)

    def follow(self) -> None:
        """Learns from all decisions again."""
        self._turn(None)

    @property
    def pinned(self) -> int | None:
        """The decision that was rolled back to; None where all count."""
        return self._pinned

    def _turn(self, until: int | None) -> None:
        with self._condition:
            self._pinned = until
            self._generation += 1  # what is being derived is not wanted any more
            self._wanted, self._rested = True, 0.0
            self._condition.notify()

    # -- the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        step_back()
        try:
            self._warm_up()
        except Exception as error:  # a refit may find more than this did, so the thread goes on
            self._tell_failure(error)
        gc.freeze()  # what stays is looked through no more: that took 100 ms of everybody, every few seconds
        while self._wait():
            started = time.monotonic()
            try:
                self._reload_if_changed()
                self.refit_now()
                self._let_go()
            except CancelledError:
                continue
            except Exception as error:  # the console goes on with the snapshot it has, and says so
                self._tell_failure(error)
                rest = LOOK_SECONDS
            else:
                rest = min(REST * (time.monotonic() - started), LONGEST_REST)
            self._rested = time.monotonic() + rest
        gc.unfreeze()

    def _tell_failure(self, error: Exception) -> None:
        """Once for each: a model that another command left half written is tried again and again."""
        text = str(error) if isinstance(error, RingleaderError) else f"{type(error).__name__}: {error}"
        if self.live.refit_state.get("detail") != text:
            self.on_error(traceback.format_exc())
        self.live.tell_state("failed", detail=text)

    def _warm_up(self) -> None:
        """Finds what refits share, so that the first decision need not wait for it; ends when there is a decision."""
        served = self.live.served
        if can_learn(self.base):
            return
        target = next(iter(served.standings.values())).target or DEFAULT_TARGET
        for prepare in preparations(served.snapshot, target, list(served.standings)):
            if self._wanted or self._stopped:
                return
            prepare()

    def _wait(self) -> bool:
        """Sleeps until there is something to learn; False at the end."""
        with self._condition:
            while not self._stopped:
                left = self._rested - time.monotonic()
                if not self._wanted and self._manifest_time() == self._manifest:
                    self._condition.wait(LOOK_SECONDS)
                elif left > 0:
                    self._condition.wait(left)
                else:
                    self._wanted = False
                    return True
            return False

    def refit_now(self) -> Served:
        """Derives a snapshot from the decisions there are, and serves it."""
        generation, store, before = self._generation, self.live.store, self.live.served
        started = time.perf_counter()
        until = store.last if self._pinned is None else self._pinned
        labels = None if can_learn(self.base) else store.labels(until)
        learned = len(labels) if labels is not None else 0
        self.live.tell_state("running", decisions=learned)

        def check() -> None:
            if generation != self._generation:
                raise CancelledError("another refit was requested")

        snapshot = derive(self.base, _known_to(self.base, labels))
        check()
        pinned = self._pinned is not None
        served = serve_snapshot(
            snapshot,
            number=before.number + 1,
            until=until,
            learned=learned,
            before=before if before.number else None,
            pinned=pinned,
            check=check,
        )
        quality = heldout_quality(snapshot)
        check()
        served = self._recorded(served, time.perf_counter() - started, quality)
        self.live.swap(served)
        self.live.tell_state("idle", seconds=round(time.perf_counter() - started, 3))
        self.live.tell(
            {
                "kind": "run",
                "run": served.number,
                "decisions": learned,
                "rose": dict(served.rose),
                "until": until,
                "sentence": served.sentence,
            }
        )
        return served

    def _recorded(self, served: Served, seconds: float, quality: dict[str, Any]) -> Served:
        """The run in the log, and with the number it has there. The same run again, at a restart, is noted once."""
        store = self.live.store
        decisions = list(store.current(served.until).values())
        about = run_about(served, seconds, quality, decisions)
        last = store.runs(limit=1)
        if last and (last[0].until, last[0].pinned) == (served.until, served.pinned) and _same(last[0].about, about):
            record = last[0]
        else:
            record = store.record_run(served.until, served.pinned, about)
        return Served(
            record.id,
            served.snapshot,
            served.until,
            served.learned,
            served.standings,
            served.populations,
            served.rose,
            served.pinned,
        )

    def _reload_if_changed(self) -> None:
        """Takes the model anew where another command wrote it."""
        moment = self._manifest_time()
        if moment != self._manifest:
            self.base, _ = load(self.live.folder)
            self._manifest = moment
            self._replaced = True

    def _let_go(self) -> None:
        """Gives back the memory of a model that was replaced: it was frozen, and has references to itself."""
        if self._replaced:
            self._replaced = False
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    def _manifest_time(self) -> int:
        try:
            return (self.live.folder / "manifest.json").stat().st_mtime_ns
        except OSError:
            return 0


def _known_to(base: Snapshot, labels: Labels | None) -> Labels | None:
    """The labels whose modes the model has: the log may be older than the model."""
    if labels is None:
        return None
    entries = tuple(e for e in labels.entries if e.mode in base.tensor.modes)
    return Labels(entries, labels.target_kind) if entries else None


def _same(before: Any, after: dict[str, Any]) -> bool:
    return all(before.get(name) == after[name] for name in ("labels", "first"))
