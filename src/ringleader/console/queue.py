"""Which accounts to look at next: the most suspicious, the least certain, the most different, or any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Literal, get_args

import numpy as np
from scipy.spatial.distance import cdist

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.console.live import Served
from ringleader.console.population import Standing, without
from ringleader.errors import SettingsError

Order = Literal["top", "uncertain", "diverse", "random"]
ORDERS: tuple[str, ...] = get_args(Order)
CANDIDATES = 300
"""The most suspicious accounts that ``diverse`` chooses from."""
LEASE_SECONDS = 120.0
"""How long an account that was handed out is kept from the queues of others."""
BLOCK = 4_096
"""Accounts that are looked at together in the order of chance."""
COMPARED = 200
"""Known accounts that ``diverse`` keeps away from, the newest."""
AHEAD = 100
"""Accounts of an order that are found at once, for all who work it until the next ranking."""


class Leases:
    """Who looks at which account: what the queue handed to one session, it hands to no other for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], dict[int, tuple[str, float]]] = {}
        self._lock = threading.Lock()

    def others(self, about: tuple[str, str], holder: str) -> list[int]:
        """Codes of a (mode, target) that other sessions look at."""
        now = self._clock()
        with self._lock:
            held = {code: lease for code, lease in self._held.get(about, {}).items() if lease[1] > now}
            self._held[about] = held
            return [code for code, (who, _) in held.items() if who != holder]

    def take(self, about: tuple[str, str], code: int, holder: str) -> None:
        with self._lock:
            self._held.setdefault(about, {})[code] = (holder, self._clock() + LEASE_SECONDS)


class Ahead:
    """The next accounts of each order, found once for a ranking: whoever asks gets the first that is still open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: Served | None = None
        self._found: dict[tuple[str, str, str | None], list[int]] = {}

    def next(
        self, served: Served, mode: str, by: str, decided: Collection[int], passed: Collection[int], target: str | None
    ) -> list[int]:
        """The code of the next account that is not decided, labelled or passed; none at the end.

        ``top`` and ``random`` read an order that is there already. The other two look at many accounts for one.
        """
        if by in ("uncertain", "diverse"):
            with self._lock:
                if self._served is not served:
                    self._served, self._found = served, {}
                if (mode, by, target) not in self._found:
                    self._found[mode, by, target] = upcoming(served, mode, by, decided, AHEAD, target)
                order = self._found[mode, by, target]
            out = {*decided, *passed}
            first = next((code for code in order if code not in out), None)
            if first is not None:
                return [first]
        return upcoming(served, mode, by, [*decided, *passed], 1, target)


def upcoming(
    served: Served, mode: str, by: str, decided: Collection[int], count: int, target: str | None = None
) -> list[int]:
    """Codes of the next accounts to decide, without those that are decided, skipped or labelled already.

    decided : codes that were, in the order of time where it is known
    """
    if by not in ORDERS:
        raise SettingsError(f"the queue cannot be ordered by {by[:40]!r}; choose {', '.join(ORDERS)}")
    standing = served.standing(mode, target)
    unlabelled = np.isnan(standing.label)
    out = without(decided)

    def open_(codes: Numbers) -> Bools:
        return np.asarray(unlabelled[codes] & out(codes))

    if by == "uncertain" and standing.has_probability:
        return _uncertain(standing, open_, count)
    if by == "diverse":
        return _diverse(served, mode, standing, open_, list(decided), count)
    if by == "random":
        return _random(standing, open_, count)
    return standing.first(open_, count)


def _uncertain(standing: Standing, keep: Callable[[Numbers], Bools], count: int) -> list[int]:
    """Nearest to even odds; of equals the one with the wider interval."""
    codes = np.flatnonzero(keep(np.arange(standing.population.size)))
    distance = np.abs(standing.probability[codes] - 0.5)
    if len(codes) > count:
        near = distance <= np.partition(distance, count - 1)[count - 1]
        codes, distance = codes[near], distance[near]
    width = (standing.upper - standing.lower)[codes]
    return [int(code) for code in codes[np.lexsort((codes, -np.nan_to_num(width), distance))][:count]]


def _random(standing: Standing, keep: Callable[[Numbers], Bools], count: int) -> list[int]:
    """In an order that chance fixed once, so that the queue of today goes on tomorrow."""
    shuffled, chosen = standing.population.shuffled, list[int]()
    for start in range(0, len(shuffled), BLOCK):
        codes = shuffled[start : start + BLOCK]
        chosen += codes[keep(codes)].tolist()
        if len(chosen) >= count:
            break
    return chosen[:count]


def _diverse(
    served: Served,
    mode: str,
    standing: Standing,
    keep: Callable[[Numbers], Bools],
    decided: list[int],
    count: int,
) -> list[int]:
    """Among the most suspicious the one least like those that are known or chosen already, over and over.

    Likeness is the distance of what the score reads of two accounts, each input as a rank among those compared. The
    nearer to the head of the ranking, the less different an account need be.
    """
    candidates = np.array(standing.first(keep, max(CANDIDATES, count)), np.int64)
    if not len(candidates):
        return []
    known = [*np.flatnonzero(~np.isnan(standing.label)).tolist(), *decided][-COMPARED:]
    everyone = np.concatenate([candidates, np.array(known, np.int64)])
    blocks = served.snapshot.scorer(mode, standing.target).inputs.blocks
    table = _ranks(np.concatenate([block[everyone] for block in blocks], axis=1))
    own, others = table[: len(candidates)], table[len(candidates) :]
    distance = np.full(len(candidates), np.inf)
    if len(others):
        distance = cdist(own, others, "cityblock").min(axis=1) / own.shape[1]
    weight = 1.0 / (1.0 + np.arange(len(candidates)) / 50.0)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        best = int(np.argmax(weight * np.minimum(distance, 1.0)))
        chosen.append(int(candidates[best]))
        np.minimum(distance, np.abs(own - own[best]).mean(axis=1), out=distance)
        weight[best] = -1.0
    return chosen


def _ranks(values: Floats) -> Floats:
    """Each column as ranks from 0 to 1."""
    order = np.argsort(np.argsort(np.nan_to_num(values), axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(order / max(len(values) - 1, 1))
