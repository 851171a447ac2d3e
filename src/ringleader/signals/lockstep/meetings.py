"""Where actors meet: cells cut into groups (item, window, side), and what chance alone would make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.pair_layout import Exposure, Groups
from ringleader.kernels.protocol import get_backend
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

WEEK = 7 * 86_400
MONDAY = 4 * 86_400
"""The first Monday of Unix time, in seconds: windows begin on Mondays, wherever the data begin."""

LEAST_DRAWN = 0.5
"""Least size of a group that its item and window let expect."""

DENSE = 16
"""Numbers up to so many times their count are ranked by a table, others by sorting."""


class Places(NamedTuple):
    """Where and when each cell is: one way to cut the cells into groups."""

    items: Codes  # (n_cells,)
    windows: Codes  # (n_cells,), from 0
    n_windows: int


class Meetings(NamedTuple):
    """The groups of one cut of some cells, and which membership each cell is."""

    groups: Groups
    windows: Codes  # (G,)
    n_windows: int
    cells: Numbers  # numbers, among the cells that were cut, of those in a group that counts
    spots: Numbers  # their memberships, as positions in groups.actor_groups
    skipped_groups: int
    skipped_memberships: int


def cuts(tensor: SparseTensor, actor: int, settings: LockstepSettings) -> Iterator[Places]:
    """Every way the cells are cut: each item mode, at each phase of the windows."""
    for item in assign_roles(tensor, actor, settings.items).items:
        yield from cuts_on(tensor, actor, item, settings)


def cuts_on(tensor: SparseTensor, actor: int, item: int, settings: LockstepSettings) -> Iterator[Places]:
    """The same for one item mode."""
    time = assign_roles(tensor, actor, settings.items).window_time
    codes = np.ascontiguousarray(tensor.coordinates[:, item])
    if time is None:
        yield Places(codes, np.zeros(tensor.n_cells, np.int32), 1)
        return
    length = max(round(settings.window_weeks * WEEK), 1)
    start = np.asarray(tensor.vocabularies[time].values, np.int64) - MONDAY
    for phase in range(settings.phases):
        window = (start + phase * length // settings.phases) // length
        distinct, rank = np.unique(window, return_inverse=True)
        number = np.asarray(rank.reshape(-1), np.int32)
        yield Places(codes, number[tensor.coordinates[:, time]], max(len(distinct), 1))


def meet(who: Codes, n_actors: int, places: Places, settings: LockstepSettings) -> Meetings:
    """Groups of the reviews by actors ``who`` at ``places``. An actor is in a group once, however often there."""
    place, group = ranks(places.items.astype(np.int64) * places.n_windows + places.windows)
    order = get_backend().stable_order(who, n_actors)
    order = order[get_backend().stable_order(group[order], len(place))]
    group, member = group[order], who[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(group) != 0) | (np.diff(member) != 0)
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    group, member = group[new], np.ascontiguousarray(member[new], np.int32)
    size = np.bincount(group, minlength=len(place))
    fits = (size >= settings.min_group) & (size <= settings.max_group)
    large = size > settings.max_group
    counting = np.flatnonzero(fits[group])
    offsets = np.concatenate([[0], np.cumsum(size[fits])]).astype(np.int64)
    members = member[counting]
    member_group = (np.cumsum(fits) - 1)[group[counting]].astype(np.int32)
    order = get_backend().stable_order(members, n_actors)
    spots = np.empty(len(order), np.int64)
    spots[order] = np.arange(len(order))
    actor_offsets = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=n_actors))]).astype(np.int64)
    log_rate = _log_rate(size[fits], place[fits], places, settings.popularity)
    groups = Groups(offsets, members, actor_offsets, member_group[order], spots, log_rate)
    back = np.full(len(member), -1, np.int64)
    back[counting] = spots
    spot = back[which]
    cells = np.flatnonzero(spot >= 0)
    windows = (place[fits] % places.n_windows).astype(np.int32)
    return Meetings(groups, windows, places.n_windows, cells, spot[cells], int(large.sum()), int(size[large].sum()))


def ranks(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Distinct numbers, ascending, and the rank of each. Same as: ``np.unique(numbers, return_inverse=True)``."""
    most = int(numbers.max(initial=0)) + 1
    if most > DENSE * (len(numbers) + 1000):
        distinct, rank = np.unique(numbers, return_inverse=True)
        return distinct, rank.reshape(-1).astype(np.int64)
    seen = np.zeros(most, np.bool_)
    seen[numbers] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[numbers]


def _log_rate(size: Numbers, place: Numbers, places: Places, popularity: float) -> Floats:
    """Log of how easily two meet in each group, against the mean: to meet where everyone goes says less than elsewhere.

    Half by the size of the group, half by the size its item and its window let expect: a ring that fills a quiet place
    must not make it a popular one.
    """
    if not len(size):
        return np.zeros(0)
    item, window = place // places.n_windows, place % places.n_windows
    drawn = np.bincount(places.items)[item] * (np.bincount(places.windows)[window] / len(places.items))
    ease = size * np.maximum(drawn, LEAST_DRAWN)
    return np.asarray(popularity * np.log(ease / ease.mean()))


def expose(meetings: Meetings, tastes: Floats | None = None, drawn: Floats | None = None) -> Exposure:
    """mu = sum over windows of d_i d_j sum(s (s - 1)) / (S (S - 1)), degrees d and sizes s within the window.

    The last factor is the chance that two of the S seats of a window stand at the same table.

    tastes, drawn : (n_actors, K), see ``Exposure``; None where nothing is known of tastes.
    """
    groups, n_windows = meetings.groups, meetings.n_windows
    n = len(groups.actor_offsets) - 1
    size = np.diff(groups.offsets).astype(np.float64)
    seats = np.bincount(meetings.windows, weights=size, minlength=n_windows)
    pairs = np.bincount(meetings.windows, weights=size * (size - 1), minlength=n_windows)
    chance = pairs / np.maximum(seats * (seats - 1), 1.0)
    actor = np.repeat(np.arange(n, dtype=np.int64), np.diff(groups.actor_offsets))
    key, rank = ranks(actor * n_windows + meetings.windows[groups.actor_groups])
    degree = np.bincount(rank, minlength=len(key))
    slot = (key % n_windows).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(key // n_windows, minlength=n))]).astype(np.int64)
    tastes = np.ones((n, 1)) if tastes is None else tastes
    drawn = np.ones((n, 1)) if drawn is None else drawn
    return Exposure(offsets, slot, degree * np.sqrt(chance[slot]), n_windows, tastes, drawn)
