"""What the console serves now: one snapshot with its rankings, swapped as a whole for the next.

Readers take ``Live.served`` once and answer from it; whatever the refit does meanwhile, their page is of one piece.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.console.decisions import Decision, DecisionStore, RunRecord
from ringleader.console.population import Population, Standing
from ringleader.cores import Cores
from ringleader.errors import SettingsError
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.snapshot import Snapshot
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted, harmless, plural

FIRST = 50
"""Accounts at the head of a ranking whose coming and going is told."""
RECENT = 8
"""Rankings before the one that is served whose scores are kept: a page may still show them when somebody decides."""
MANY = 200
"""Decisions made at once that pages are told of one by one."""


def shown_modes(tensor: SparseTensor) -> tuple[int, ...]:
    """The modes whose entities are accounts to look at: those of ids, else those of categories; sellers first."""
    for kind in ("id", "category"):
        modes = [k for k, vocabulary in enumerate(tensor.vocabularies) if vocabulary.kind == kind]
        if modes:
            usual = {"seller": 0, "reviewer": 1, "product": 2}
            return tuple(sorted(modes, key=lambda k: (usual.get(tensor.modes[k], 3), k)))
    return (0,)


@dataclass(frozen=True, eq=False)
class Served:
    """One snapshot as the console serves it.

    number : of the run, from 1. until : the last decision it knows. learned : decisions it was learned from
    standings : the usual ranking of each mode. rose : accounts that came into the first fifty, by mode
    """

    number: int
    snapshot: Snapshot
    until: int
    learned: int
    standings: Mapping[int, Standing]
    populations: Mapping[int, Population]
    rose: Mapping[str, int] = field(default_factory=dict)
    pinned: bool = False
    _others: dict[tuple[int, str], Standing] = field(default_factory=dict, repr=False)

    @property
    def tensor(self) -> SparseTensor:
        return self.snapshot.tensor

    @property
    def cores(self) -> Cores:
        return self.snapshot.cores()

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.tensor.modes[k]: k for k in self.standings}

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes that are shown."""
        return tuple(self._places)

    def mode(self, name: str) -> int:
        """The position of a mode that is shown."""
        if name not in self._places:
            raise SettingsError(f"there is no mode {name[:60]!r} here; choose {', '.join(self.modes)}")
        return self._places[name]

    def standing(self, mode: str, target: str | None = None) -> Standing:
        """The ranking of a mode; for another target than the usual one it is made when it is first asked for."""
        k = self.mode(mode)
        usual = self.standings[k]
        if target is None or target == usual.target or (usual.target is None and target == DEFAULT_TARGET):
            return usual
        if (k, target) not in self._others:
            self._others[k, target] = Standing(self.populations[k], self.snapshot, target)
        return self._others[k, target]

    def shown_scores(self) -> dict[tuple[int, str], Floats]:
        """By mode and target, the scores of the rankings that were made: those that somebody can have seen."""
        usual = {(k, standing.target or DEFAULT_TARGET): standing.score for k, standing in self.standings.items()}
        return {key: standing.score for key, standing in list(self._others.items())} | usual

    def target(self, mode: str, target: str | None = None) -> str:
        """The target that a decision is about, where none is named: the one that is ranked by."""
        return target or self.standings[self.mode(mode)].target or DEFAULT_TARGET

    def first_accounts(self) -> dict[str, list[int]]:
        """Codes at the head of each ranking."""
        return {self.tensor.modes[k]: s.order[:FIRST].tolist() for k, s in self.standings.items()}

    @property
    def sentence(self) -> str:
        """What the snapshot learned, in words."""
        if not self.learned:
            return "Nothing was learned from decisions yet."
        risen = [counted(n, harmless(mode, 30)) for mode, n in self.rose.items() if n]
        names = " and ".join([", ".join(risen[:-1]), risen[-1]] if len(risen) > 1 else risen)
        came = f"{names} rose into the first fifty" if risen else "the first fifty stayed the same"
        return f"Learned from {counted(self.learned, 'decision')}; {came}."


def serve_snapshot(
    snapshot: Snapshot,
    *,
    number: int,
    until: int,
    learned: int,
    before: Served | None = None,
    pinned: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Served:
    """A snapshot with everything that pages read of it. ``check`` is called between the steps, and may raise."""
    modes = shown_modes(snapshot.tensor)
    same = before is not None and before.tensor is snapshot.tensor
    populations = dict(before.populations) if same and before is not None else {}
    standings = {}
    for k in modes:
        if k not in populations:
            populations[k] = Population(snapshot.tensor, k)
        check()
        standings[k] = Standing(populations[k], snapshot)
    _ = snapshot.cores(), snapshot.signals.reviews
    served = Served(number, snapshot, until, learned, standings, populations, pinned=pinned)
    if before is None or not same:
        return served
    old, new = before.first_accounts(), served.first_accounts()
    rose = {mode: len(set(codes) - set(old.get(mode, ()))) for mode, codes in new.items()}
    return Served(number, snapshot, until, learned, standings, populations, rose, pinned)


class Verdicts:
    """What was decided of the accounts of one mode and target, by code; kept up with the log event by event."""

    def __init__(self, store: DecisionStore, population: Population, target: str) -> None:
        self._store, self._population, self._target = store, population, target
        self._lock = threading.Lock()
        self._seen = 0
        self._by_code: dict[int, Decision] = {}

    def by_code(self) -> dict[int, Decision]:
        """The decision that holds for each account. Not to be changed."""
        last = self._store.last
        if last != self._seen:
            with self._lock:
                self._take_in(last)
        return self._by_code

    def _take_in(self, last: int) -> None:
        mode = self._population.name
        touched = {
            event.account
            for event in self._store.since(self._seen)
            if event.mode == mode and event.target == self._target
        }
        changed = dict(self._by_code) if touched else self._by_code
        for account in touched:
            code, holds = self._population.code(account[1]), self._store.holding(account)
            if code is None:
                continue
            if holds is None:
                changed.pop(code, None)
            else:
                changed[code] = holds
        self._by_code, self._seen = changed, last

    def of(self, codes: Numbers) -> npt.NDArray[np.str_]:
        """What was decided of each code; "" where nothing was."""
        known = self.by_code()
        if not known:
            return np.full(len(codes), "", "U6")
        return np.array([known[code].verdict if code in known else "" for code in codes.tolist()], "U6")


class Live:
    """The model that is served, the log of decisions, and who wants to hear of changes.

    folder : of the model
    """

    def __init__(self, folder: str | Path, store: DecisionStore, served: Served) -> None:
        self.folder, self.store = Path(folder), store
        self._served = served
        self._verdicts: dict[tuple[str, str], Verdicts] = {}
        self._recent: dict[int, Mapping[tuple[int, str], Floats]] = {}
        self._listeners: list[Callable[[Mapping[str, Any]], None]] = []
        self._lock = threading.Lock()
        self.refit_state: Mapping[str, Any] = {"state": "idle"}

    @property
    def served(self) -> Served:
        """The snapshot that is served now; take it once for each answer."""
        return self._served

    def swap(self, served: Served) -> None:
        """Serves another snapshot from now on."""
        with self._lock:
            if served.tensor is self._served.tensor:
                before = [*self._recent.items(), (self._served.number, self._served.shown_scores())]
                self._recent = dict(before[-RECENT:])
            else:
                self._verdicts, self._recent = {}, {}
            self._served = served

    def score_seen(self, served: Served, run: int | None, mode: str, code: int, target: str) -> float | None:
        """The score of an account in a run that somebody looked at, the one that is served where none is named; None
        where nobody can have seen one, or it is long gone."""
        shown = served.shown_scores() if run in (None, served.number) else self._recent.get(run or 0, {})
        scores = shown.get((served.mode(mode), target))
        return float(scores[code]) if scores is not None else None

    def verdicts(self, mode: str, target: str) -> Verdicts:
        """What was decided of a mode's accounts."""
        with self._lock:
            if (mode, target) not in self._verdicts:
                population = self._served.populations[self._served.mode(mode)]
                self._verdicts[mode, target] = Verdicts(self.store, population, target)
            return self._verdicts[mode, target]

    # -- events -------------------------------------------------------------------------------------

    def listen(self, listener: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        """Calls the listener on every event from now on, from any thread; what is returned ends that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def tell(self, event: Mapping[str, Any]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(event)

    def tell_decided(self, decisions: Sequence[Decision]) -> None:
        """Tells of decisions that are on disk; of very many only the last, since no page shows them all."""
        for decision in decisions[-MANY:]:
            holds = self.store.holding(decision.account)
            self.tell(
                {
                    "kind": "decision",
                    "id": decision.id,
                    "mode": decision.mode,
                    "entity": decision.entity,
                    "target": decision.target,
                    "verdict": decision.verdict,
                    "holds": holds.verdict if holds is not None else "",
                    "who": decision.who,
                }
            )

    def tell_state(self, state: str, **more: Any) -> None:
        """Tells what the refit does: idle, running, failed."""
        self.refit_state = {"state": state, **more}
        self.tell({"kind": "refit", **self.refit_state})


def run_about(
    served: Served, seconds: float, quality: Mapping[str, Any], decisions: Iterable[Decision]
) -> dict[str, Any]:
    """What the log keeps of a run."""
    people: dict[str, int] = {}
    for decision in decisions:
        people[decision.who] = people.get(decision.who, 0) + 1
    return {
        "learned": served.learned,
        "labels": served.snapshot.aligned.n_labels,
        "seconds": round(seconds, 3),
        "rose": dict(served.rose),
        "first": served.first_accounts(),
        "quality": dict(quality),
        "people": people,
        "sentence": served.sentence,
    }


def since_last_look(served: Served, run: RunRecord | None) -> list[str]:
    """What came into the first fifty of each mode since a run, in words."""
    if run is None or run.id == served.number:
        return []
    lines = []
    for mode, codes in served.first_accounts().items():
        came = len(set(codes) - set(run.about.get("first", {}).get(mode, codes)))
        if came:
            lines.append(f"{came} {plural(mode) if came != 1 else mode} came into the first fifty")
    return lines
