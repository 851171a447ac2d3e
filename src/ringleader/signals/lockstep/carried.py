"""What was counted before: whom actors met often, carried over to the groups of whom nothing has changed.

A new review changes few groups. Whoever is in none of them has met the same people in the same groups as before,
whatever became of chance and tastes, which are found anew.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Bools, Codes, Numbers
from ringleader.kernels.pair_layout import Groups, MetBefore, OftenMet, nothing_before

MOST_MET = 1 << 20
"""Counterparts of the memberships of one piece of the work up to which they are kept."""


class CountedCut(NamedTuple):
    """The groups of a cut, and the counterparts of all their memberships."""

    places: Numbers  # (G,): of each group its item and window as one number, ascending
    offsets: Numbers
    members: Codes
    actor_offsets: Numbers  # as in ``Groups``
    met: OftenMet


class CountedBefore:
    """Counted cuts, handed on from one set of reviews to the next.

    What is taken from here is compared with the groups there are, so that it says what counting anew would say,
    whoever counted last.
    """

    def __init__(self) -> None:
        self._cuts: dict[Hashable, CountedCut] = {}

    def __reduce__(self) -> tuple[type[CountedBefore], tuple[()]]:
        return CountedBefore, ()

    def met_before(self, key: Hashable, places: Numbers, groups: Groups) -> MetBefore:
        """The counterparts of the actors all of whose groups are as they were, in the cut of that key."""
        cut = self._cuts.get(key)
        if cut is None:
            return nothing_before()
        same = unchanged_actors(cut, places, groups.offsets, groups.members)
        return MetBefore(same, cut.actor_offsets, *cut.met)

    def keep(self, key: Hashable, places: Numbers, groups: Groups, sizes: Numbers, lists: list[Codes | None]) -> None:
        """Keeps a counted cut; ``lists`` are the counterparts, piece by piece, None of a piece that has too many."""
        self._cuts.pop(key, None)
        parts = [part for part in lists if part is not None]
        if len(parts) == len(lists):
            offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            met = OftenMet(offsets, np.concatenate([np.zeros(0, np.int32), *parts]))
            self._cuts[key] = CountedCut(places, groups.offsets, groups.members, groups.actor_offsets, met)


def unchanged_actors(before: CountedCut, places: Numbers, offsets: Numbers, members: Codes) -> Bools:
    """Which of the actors of before are in the same groups, with the same members, as then, (n_before,)."""
    same = np.ones(len(before.actor_offsets) - 1, np.bool_)
    alike = np.array_equal(places, before.places) and np.array_equal(offsets, before.offsets)
    if alike and np.array_equal(members, before.members):
        return same
    old, new = _alike(before, places, offsets, members)
    for changed, begins, who in ((~old, before.offsets, before.members), (~new, offsets, members)):
        gone = who[np.repeat(changed, np.diff(begins))]
        same[gone[gone < len(same)]] = False
    return same


def _alike(before: CountedCut, places: Numbers, offsets: Numbers, members: Codes) -> tuple[Bools, Bools]:
    """Of each group of before, and of each there is now, whether the other has the same members at that place."""
    _, then, now = np.intersect1d(before.places, places, assume_unique=True, return_indices=True)
    size_then, size_now = np.diff(before.offsets), np.diff(offsets)
    fits = size_then[then] == size_now[now]
    then, now = then[fits], now[fits]
    size = size_now[now]
    inside = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    here, there = (
        np.repeat(begins[which], size) + inside for begins, which in ((offsets, now), (before.offsets, then))
    )
    differ = np.repeat(np.arange(len(size)), size)[members[here] != before.members[there]]
    equal = np.ones(len(size), np.bool_)
    equal[differ] = False
    old, new = np.zeros(len(size_then), np.bool_), np.zeros(len(size_now), np.bool_)
    old[then[equal]], new[now[equal]] = True, True
    return old, new
