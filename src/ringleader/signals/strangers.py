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
from ringleader.kernels.elementary import log, surprise
from ringleader.kernels.protocol import loaded_kernels
from ringleader.runtime.peers import gather
from ringleader.shares.cells import CellShare, as_share
from ringleader.shares.runs import MANY_VALUES
from ringleader.signals.lockstep.meetings import Places, cuts_on, ranks
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

WINDOW_WEEKS = 4.0
"""Length of a window, laid in two positions."""

LEAST = 0.5
"""Other customers that every item is believed to have in every window."""

NOISE = 2.0
"""Standard deviations above what was to be expected up to which strangers of other opinions say nothing."""


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
    cells: SparseTensor | CellShare, actor: int, boost: Bools, attack: Bools, settings: LockstepSettings
) -> Strangers:
    """Crowds of strangers on either side, over every item mode and every position of the windows.

    With c strangers where e were to be expected a crowd has c log(c / e) - (c - e). The doubt is the log of how many
    places have a stranger at all, over all looks: among so many, one is as surprising as that by chance.

    cells : all, or those that this process holds; boost, attack and the result are of the cells held here.
    """
    home = as_share(cells)
    crowds = _nobody(home.tensor.n_cells)
    roles = assign_roles(home.tensor, actor, settings.items)
    windows = settings.replace(window_weeks=WINDOW_WEEKS, phases=2 if roles.window_time is not None else 1)
    for mode in roles.items if home.n_cells else ():
        there, actors = home.by(mode), home.by(actor)
        alone = came_for_one(actors.own_codes(actor), actors.tensor.coordinates[:, mode], actors.size(actor))
        alone, on_sides = actors.move(alone, there), [home.move(side, there) for side in (boost, attack)]
        loudest = _loudest(there, actor, alone, on_sides, windows, windows.phases * len(roles.items))
        seen = Strangers(*(there.move(column, home) for column in loudest))
        louder = seen.ratios > crowds.ratios
        for name, column in crowds._asdict().items():
            column[louder] = getattr(seen, name)[louder]
    return crowds


def _nobody(n: int) -> Strangers:
    return Strangers(np.zeros(n), np.full(n, -1, np.int8), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n))


def _loudest(
    share: CellShare, actor: int, alone: Bools, on_sides: list[Bools], settings: LockstepSettings, looks: int
) -> Strangers:
    """The loudest crowd of each cell on the items whose cells are held here, over the positions of the windows.

    alone, on_sides : (n_cells,) each. looks : in how many ways crowds are looked for.
    """
    tensor, n = share.tensor, share.tensor.n_cells
    time = assign_roles(tensor, actor, settings.items).window_time
    times = np.zeros(n, np.int64)
    if time is not None:
        times = np.asarray(tensor.vocabularies[time].values, np.int64)[tensor.coordinates[:, time]]
    loudest = _nobody(n)
    strangers = [np.flatnonzero(side & alone) for side in on_sides]
    kinds = sum((side.astype(np.int64) << k for k, side in enumerate(on_sides)), np.int64(0)) * 2 + alone
    for places in cuts_on(tensor, actor, share.mode, settings):
        first = np.full(places.n_windows, np.iinfo(np.int64).max)
        np.minimum.at(first, places.windows, times)
        first = np.minimum.reduce(gather(share.peers, first))
        distinct, crowds = ranks(places.items.astype(np.int64) * places.n_windows + places.windows)
        crowded = _crowds(share, places, distinct, crowds, kinds, 2 << len(on_sides))
        for k, cells in enumerate(strangers):
            if not share.count(len(cells)):
                continue
            count, expected = counted(share, crowded, k)
            doubt = log(looks * share.count(int((count > 0).sum())))
            ratio = np.maximum(surprise(count, expected) - doubt, 0.0)[crowds[cells]]
            louder = ratio > loudest.ratios[cells]
            cells, crowd = cells[louder], crowds[cells[louder]]
            loudest.ratios[cells], loudest.mode[cells] = ratio[louder], share.mode
            loudest.begin[cells] = first[places.windows[cells]]
            loudest.number[cells], loudest.expected[cells] = count[crowd].astype(np.int64), expected[crowd]
    return loudest


def _added_up(numbers: Floats, rows: Bools) -> Floats:
    """The sum of some rows of whole numbers, none of which is copied."""
    total = np.zeros(numbers.shape[1])
    for row in np.flatnonzero(rows):
        total += numbers[row]
    return total


def came_for_one(who: Codes, items: Codes, n_actors: int) -> Bools:
    """Whether the author of each cell has reviewed nothing but its item, (n_cells,)."""
    some = np.zeros(n_actors, np.int64)
    some[who] = items
    elsewhere = np.bincount(who, weights=items != some[who], minlength=n_actors)
    return np.asarray(elsewhere[who] == 0)


class Crowds(NamedTuple):
    """The items of each window, where reviews stand together.

    numbers : (kinds, n_crowds) whole numbers: reviews by 2 x side + (whether of a stranger); sides as bits of a number
    item    : (n_crowds,), from that of this process. of_all : share of all reviews in its window
    """

    numbers: Floats
    item: Numbers
    of_all: Floats


def _crowds(share: CellShare, places: Places, distinct: Numbers, crowd: Numbers, kinds: Numbers, size: int) -> Crowds:
    """distinct : item and window of each crowd, as one number. crowd, kinds : of each cell, (n_cells,); below size."""
    item, window = np.divmod(distinct, places.n_windows)
    in_window = share.count(np.bincount(places.windows, minlength=places.n_windows))
    kernels = loaded_kernels() if len(crowd) >= MANY_VALUES else None
    if kernels is not None:
        numbers = kernels.counts_of_pairs(kinds, crowd, (size, len(distinct)))
    else:
        counts = np.bincount(kinds * len(distinct) + crowd, minlength=size * len(distinct))
        numbers = counts.reshape(size, len(distinct)).astype(np.float64)
    return Crowds(numbers, item - share.own(share.mode)[0], (in_window / share.n_cells)[window])


def counted(share: CellShare, crowds: Crowds, side: int) -> tuple[Floats, Floats]:
    """Of each crowd how many strangers of a side it has, and how many were to be expected.

    Expected are those whom the item sees in other windows, scaled by the window's share of all reviews, and the
    market's share of strangers among the item's other customers of the window. Whatever brings strangers of other
    opinions, in greater numbers than these are expected, brings some of this side as well: as many for each as there
    are in the market. So a product that everyone talks about is no crowd, and one that is praised by all is.
    """
    of_side = (np.arange(len(crowds.numbers)) >> (side + 1)) & 1 == 1
    count, expected, alike = _counted_alike(share, crowds, of_side)
    others, usual, different = _counted_alike(share, crowds, ~of_side)
    odds = alike / max(different, 1)
    return count, expected + odds * np.maximum(others - usual - NOISE * np.sqrt(usual), 0.0)


def _counted_alike(share: CellShare, crowds: Crowds, kinds: Bools) -> tuple[Floats, Floats, int]:
    """The same of some kinds, without those of other opinions; and how many strangers of these kinds there are."""
    strange = np.arange(len(kinds)) & 1 == 1
    count, customers = (_added_up(crowds.numbers, kinds & chosen) for chosen in (strange, ~strange))
    in_all = np.bincount(crowds.item, weights=count)[crowds.item]
    elsewhere = (in_all - count) * crowds.of_all / np.maximum(1.0 - crowds.of_all, 1e-9)
    strangers, others = (share.count(int(part.sum())) for part in (count, customers))
    odds = strangers / max(others, 1)
    return count, np.asarray(elsewhere + odds * customers + LEAST * min(odds, 1.0), np.float64), strangers
