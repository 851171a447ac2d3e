"""Strangers: accounts that came for one item alone, in greater numbers than that item is used to.

Accounts that are bought and used once never meet twice, so lockstep cannot see them. What shows is the item: within a
few weeks more ratings come from people who have reviewed nothing else than its other weeks, and its other customers
of these weeks, let expect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.signals.lockstep.meetings import Places, cuts, ranks
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

WINDOW_WEEKS = 4.0
"""Length of a window, laid in two positions."""

LEAST = 0.5
"""Other customers that every item is believed to have in every window."""


class Strangers(NamedTuple):
    """The crowd of strangers that each review is part of, (n_cells,) each; zeros where it is of none.

    ratios   : log-likelihood ratio of so many strangers against what was to be expected, less a doubt, not below 0
    mode     : of the item they came for; -1 where there is no crowd
    begin    : the first time of the window, in seconds; 0 without times
    number   : strangers of that side of the ratings in the window
    expected : as many as were to be expected
    """

    ratios: Floats
    mode: npt.NDArray[np.int8]
    begin: Numbers
    number: Numbers
    expected: Floats


def find_strangers(
    tensor: SparseTensor, actor: int, boost: Bools, attack: Bools, settings: LockstepSettings
) -> Strangers:
    """Crowds of strangers on either side, over every item mode and every position of the windows.

    With c strangers where e were to be expected a crowd has c log(c / e) - (c - e). The doubt is the log of how many
    places have a stranger at all, over all looks: among so many, one is as surprising as that by chance.
    """
    n = tensor.n_cells
    found = Strangers(np.zeros(n), np.full(n, -1, np.int8), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n))
    roles = assign_roles(tensor, actor, settings.items)
    who = tensor.coordinates[:, actor]
    times = np.zeros(n, np.int64)
    if roles.window_time is not None:
        when = np.asarray(tensor.vocabularies[roles.window_time].values, np.int64)
        times = when[tensor.coordinates[:, roles.window_time]]
    windows = settings.replace(window_weeks=WINDOW_WEEKS, phases=2)
    phases = windows.phases if roles.window_time is not None else 1
    looks = phases * len(roles.items)
    for place, places in enumerate(cuts(tensor, actor, windows)) if n else ():
        mode = roles.items[place // phases]
        alone = came_for_one(who, places.items, tensor.shape[actor])
        first = np.full(places.n_windows, np.iinfo(np.int64).max)
        np.minimum.at(first, places.windows, times)
        distinct, crowds = ranks(places.items.astype(np.int64) * places.n_windows + places.windows)
        for side in (boost, attack):
            cells = np.flatnonzero(side & alone)
            if not len(cells):
                continue
            count, expected = counted(places, distinct, crowds, side, alone)
            ratio = np.where(
                count > expected, count * np.log(np.maximum(count, 1.0) / expected) - (count - expected), 0.0
            )
            ratio = np.maximum(ratio - np.log(looks * (count > 0).sum()), 0.0)[crowds[cells]]
            louder = ratio > found.ratios[cells]
            cells, crowd = cells[louder], crowds[cells[louder]]
            found.ratios[cells], found.mode[cells] = ratio[louder], mode
            found.begin[cells] = first[places.windows[cells]]
            found.number[cells], found.expected[cells] = count[crowd].astype(np.int64), expected[crowd]
    return found


def came_for_one(who: Codes, items: Codes, n_actors: int) -> Bools:
    """Whether the author of each cell has reviewed nothing but its item, (n_cells,)."""
    some = np.zeros(n_actors, np.int64)
    some[who] = items
    elsewhere = np.bincount(who, weights=items != some[who], minlength=n_actors)
    return np.asarray(elsewhere[who] == 0)


def counted(places: Places, distinct: Numbers, crowd: Numbers, side: Bools, alone: Bools) -> tuple[Floats, Floats]:
    """Of each crowd how many strangers it has, and how many were to be expected.

    Expected are those whom the item sees in other windows, scaled by the window's share of all reviews, and the
    market's share of strangers among the item's other customers of the window.

    distinct : item and window of each crowd, as one number. crowd : of each cell, (n_cells,).
    """
    item, window = distinct // places.n_windows, distinct % places.n_windows
    strangers, others = side & alone, side & ~alone
    count = np.asarray(np.bincount(crowd, weights=strangers, minlength=len(distinct)), np.float64)
    customers = np.bincount(crowd, weights=others, minlength=len(distinct))
    share = (np.bincount(places.windows, minlength=places.n_windows) / len(crowd))[window]
    in_all = np.bincount(item, weights=count)[item]
    elsewhere = (in_all - count) * share / np.maximum(1.0 - share, 1e-9)
    odds = strangers.sum() / max(int(others.sum()), 1)
    return count, np.asarray(elsewhere + odds * customers + LEAST * min(odds, 1.0), np.float64)
