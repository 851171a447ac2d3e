"""Where actors meet: cells cut into groups (item, window, side), and what chance alone would make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.elementary import log
from ringleader.kernels.pair_layout import Groups
from ringleader.kernels.protocol import get_backend, loaded_kernels
from ringleader.shares.cells import CellShare
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
    """The groups of one cut of some cells, on the items that this process owns."""

    offsets: Numbers  # (G + 1,): members of group g are members[offsets[g]:offsets[g + 1]]
    members: Codes  # (M,): actors, ascending within a group
    places: Numbers  # (G,): item, counted from the first owned here, and window as one number, ascending
    windows: Codes  # (G,)
    n_windows: int
    log_rate: Floats  # (G,), see ``Groups``
    cells: Numbers  # numbers, among the cells that were cut, of those in a group that counts
    seats: Numbers  # which of the members each of them is
    skipped_groups: int
    skipped_memberships: int


def cuts_on(tensor: SparseTensor, actor: int, item: int, settings: LockstepSettings) -> Iterator[Places]:
    """Every way the cells are cut on an item mode: at each phase of the windows."""
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


def meet(share: CellShare, who: Codes, n_actors: int, places: Places, settings: LockstepSettings) -> Meetings:
    """Groups of the reviews by actors ``who`` at ``places``. An actor is in a group once, however often there.

    share : the cells of the items; who and places are those of some of them.
    """
    here = places._replace(items=places.items - np.int32(share.own(share.mode)[0]))
    place, group = ranks(here.items.astype(np.int64) * places.n_windows + places.windows)
    group, member, which = get_backend().distinct_pairs(group, who, (len(place), n_actors))
    size = np.bincount(group, minlength=len(place))
    fits = (size >= settings.min_group) & (size <= settings.max_group)
    large = size > settings.max_group
    counting = np.flatnonzero(fits[group])
    offsets = np.concatenate([[0], np.cumsum(size[fits])]).astype(np.int64)
    seat = np.full(len(member), -1, np.int64)
    seat[counting] = np.arange(len(counting))
    seats = seat[which]
    cells = np.flatnonzero(seats >= 0)
    return Meetings(
        offsets,
        member[counting].astype(np.int32),
        place[fits],
        (place[fits] % places.n_windows).astype(np.int32),
        places.n_windows,
        _log_rate(share, size[fits], place[fits], here, settings.popularity),
        cells,
        seats[cells],
        int(large.sum()),
        int(size[large].sum()),
    )


def groups_of_actors(offsets: Numbers, members: Codes, log_rate: Floats, n: int, own: slice) -> Groups:
    """The groups, and which of them each of the actors ``own`` of all n is in; ``spots`` are of their memberships."""
    group = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    mine = members
    if own != slice(0, n):
        chosen = np.flatnonzero((members >= own.start) & (members < own.stop))
        mine, group = members[chosen], group[chosen]
    order = in_order(mine, n)
    spots = np.empty(len(order), np.int64)
    spots[order] = np.arange(len(order))
    actor_offsets = np.concatenate([[0], np.cumsum(np.bincount(mine, minlength=n))]).astype(np.int64)
    return Groups(offsets, members, actor_offsets, group[order], spots, log_rate)


def in_order(codes: Codes | Numbers, size: int) -> Numbers:
    """Numbers of the codes in ascending order of the codes, which are below ``size``; equal ones as they came."""
    if size > DENSE * (len(codes) + 1000):
        return np.argsort(codes, kind="stable")
    return get_backend().stable_order(codes, size)


def ranks(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Distinct numbers, ascending, and the rank of each. Same as: ``np.unique(numbers, return_inverse=True)``."""
    most = int(numbers.max(initial=0)) + 1
    if most > DENSE * (len(numbers) + 1000):
        distinct, rank = np.unique(numbers, return_inverse=True)
        return distinct, rank.reshape(-1).astype(np.int64)
    kernels = loaded_kernels()
    if kernels is not None:
        return kernels.dense_ranks(numbers, most)
    seen = np.zeros(most, np.bool_)
    seen[numbers] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[numbers]


def _log_rate(share: CellShare, size: Numbers, place: Numbers, places: Places, popularity: float) -> Floats:
    """Log of how easily two meet in each group, against the mean: to meet where everyone goes says less than elsewhere.

    Half by the size of the group, half by the size its item and its window let expect: a ring that fills a quiet place
    must not make it a popular one.

    places : with items counted from the first that this process owns.
    """
    cells, groups = share.count(len(places.items)), share.count(len(size))
    in_window = share.count(np.bincount(places.windows, minlength=places.n_windows))
    item, window = place // places.n_windows, place % places.n_windows
    of_items = np.bincount(places.items, minlength=1)
    drawn = of_items[item] * (in_window[window] / max(cells, 1))
    ease = size * np.maximum(drawn, LEAST_DRAWN)
    mean = float(share.total(share.mode, item, ease)) / max(groups, 1)
    return np.asarray(popularity * log(ease / mean))


def chance_to_meet(share: CellShare, meetings: Meetings) -> tuple[Floats, Floats]:
    """Of each window its seats S, and sum(s (s - 1)) / (S (S - 1)) over the sizes s of its groups, (n_windows,) each.

    The second is the chance that two of the seats stand at the same table.
    """
    size, n_windows = np.diff(meetings.offsets).astype(np.float64), meetings.n_windows
    seats: Floats = share.count(np.bincount(meetings.windows, weights=size, minlength=n_windows).astype(np.float64))
    pairs = share.count(np.bincount(meetings.windows, weights=size * (size - 1), minlength=n_windows))
    return np.asarray(seats), np.asarray(pairs / np.maximum(seats * (seats - 1), 1.0))


def expose(actor: Numbers, window: Codes, chance: Floats, n: int) -> tuple[Numbers, Codes, Floats]:
    """How often each of n actors is out: offsets, slots and values of ``Exposure``, from its memberships.

    mu = sum over windows of d_i d_j times the chance of the window, with degrees d within it.

    actor, window : of every membership, actors ascending. chance : of each window.
    """
    n_windows = len(chance)
    key, rank = ranks(actor.astype(np.int64) * n_windows + window)
    degree = np.bincount(rank, minlength=len(key))
    slot = (key % n_windows).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(key // n_windows, minlength=n))]).astype(np.int64)
    return offsets, slot, np.asarray(degree * np.sqrt(chance[slot]))
