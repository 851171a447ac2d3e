"""Pair counting on a device: all pairs of all groups written, sorted and counted; those that met often are judged.

A sum is always in the order of the groups, so that the bits are the same from run to run.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.cuda.arguments import INTEGER, LANES, NUMBER, POINTER, WHOLE, Form
from ringleader.kernels.cuda.copies import DeviceCopies, Span
from ringleader.kernels.pair_layout import Exposure, Groups, PairRule
from ringleader.runtime.executor import Threads

FILTER_BITS = 28  # of source/pairs.cu
PAIR_BYTES = 24
"""Bytes that a pair of a group takes at most: its key, the sort of it, and where runs of equal ones begin."""
MOST_MEETINGS = (1 << 31) - 1
PARTS = 64
"""Parts that the actors are dealt into where the host counts."""

Found = tuple[Codes, Floats, Floats]

NO_FORM = Form(1, "double", 0, 0)


class MeetingsArgument(ctypes.Structure):
    _fields_ = (*((name, POINTER) for name in ("offsets", "members", "group_of", "log_rate")), ("count", WHOLE))


class ChanceArgument(ctypes.Structure):
    _fields_ = (
        *((name, POINTER) for name in ("offsets", "slots", "values", "tastes", "drawn")),
        ("topics", INTEGER),
        ("floor", NUMBER),
        ("doubt", NUMBER),
    )


def in_parts(count: Callable[[Span], Found], span: Span) -> Found:
    """``count``, which is of the host, of some actors at a time, in as many threads as may be used."""
    edges = np.unique(np.linspace(*span, PARTS + 1).astype(np.int64)).tolist()
    parts = Threads().map(count, itertools.pairwise(edges if len(edges) > 1 else span))
    columns, values, beyond = (np.concatenate(column) for column in zip(*parts, strict=True))
    return columns, values, beyond


def lockstep_of_actors(
    copies: DeviceCopies, groups: Groups, exposure: Exposure, rule: PairRule, scores: Floats, lengths: Numbers
) -> Found | None:
    """``Backend.lockstep_of_actors`` of all actors; None where the device has not the memory for all pairs."""
    xp, at, count = copies.device.xp, copies.at, len(groups.members)
    offsets, members, log_rate = _copied(copies, groups.offsets, groups.members, groups.log_rate)
    group_of = xp.cumsum(xp.bincount(offsets[1:-1], minlength=count + 1)[:count]).astype(np.int32)
    later = offsets[1:][group_of] - 1 - xp.arange(count)
    spare = copies.device.spare()
    if count > MOST_MEETINGS or (spare is not None and int(later.sum()) * PAIR_BYTES > spare):
        return None
    scores[:], lengths[:] = 0.0, 0
    meetings = MeetingsArgument(at(offsets), at(members), at(group_of), at(log_rate), count)
    often = _often(copies, meetings, later, rule.min_shared)
    if not len(often):
        return np.zeros(0, np.int32), np.zeros(0), np.zeros(0)
    pair, first, second = _meetings_of(copies, meetings, often)
    total, n_often = len(pair), len(often)
    by_pair = _keys(xp, pair)
    begins = _begins(xp, by_pair, n_often)
    values, beyond, rest = (xp.empty(n_often) for _ in range(3))
    known = [*_copied(copies, *exposure[:3]), *(copies.here(part, np.float64) for part in exposure[4:])]
    topics = exposure.tastes.shape[1]
    chance = ChanceArgument(*(at(part) for part in known), topics, float(rule.floor), float(rule.doubt))
    arrays = [POINTER(at(part)) for part in (begins, by_pair, first, values, beyond, rest)]
    _launch(copies, "judge_pairs", n_often, [meetings, chance, POINTER(at(often)), WHOLE(n_often), *arrays])
    by_member = _keys(xp, xp.concatenate([first, second]))
    starts, by_membership = _begins(xp, by_member, count), xp.empty(count)
    arrays = [POINTER(at(part)) for part in (pair, rest, by_membership)]
    arguments = [meetings, POINTER(at(starts)), POINTER(at(by_member)), WHOLE(total), *arrays]
    _launch(copies, "score_memberships", count, arguments)
    placed = xp.empty(count)
    placed[copies.device.array(groups.spots, np.int64)] = by_membership
    scores[:] = copies.device.host(placed)
    return _rows(copies, often, values, beyond, lengths)


def _copied(copies: DeviceCopies, offsets: Any, numbers: Any, values: Any) -> list[Any]:
    parts = ((offsets, np.int64), (numbers, np.int32), (values, np.float64))
    return [copies.device.array(part, kind) for part, kind in parts]


def _often(copies: DeviceCopies, meetings: MeetingsArgument, later: Any, min_shared: int) -> Any:
    """Keys of the pairs that met at least so often, ascending. later : (memberships,), pairs that each begins."""
    xp = copies.device.xp
    places = xp.cumsum(later) - later
    keys = xp.empty(int(later.sum()), np.uint64)
    _launch(copies, "write_pairs", len(later), [meetings, POINTER(copies.at(places)), POINTER(copies.at(keys))])
    keys.sort()
    begun = keys[: max(len(keys) - min_shared + 1, 0)]
    long = keys[min_shared - 1 :] == begun  # the run of equal keys goes on that far
    long[1:] &= begun[1:] != begun[:-1]
    return begun[long]


def _meetings_of(copies: DeviceCopies, meetings: MeetingsArgument, often: Any) -> list[Any]:
    """All meetings of these pairs in the order of the groups: number of the pair, and the two memberships."""
    xp, at, number = copies.device.xp, copies.at, int(meetings.count)
    filter_words = xp.zeros(1 << (FILTER_BITS - 5), np.uint32)
    known = [POINTER(at(often)), WHOLE(len(often))]
    _launch(copies, "mark_pairs", len(often), [*known, POINTER(at(filter_words))])
    counts = xp.empty(number, np.int64)
    arguments = [meetings, *known, POINTER(at(filter_words))]
    nothing = [POINTER(None)] * 3
    _launch(copies, "find_meetings", number, [*arguments, POINTER(None), POINTER(at(counts)), *nothing])
    places = xp.cumsum(counts) - counts
    parts = [xp.empty(int(counts.sum()), np.int32) for _ in range(3)]
    written = [POINTER(at(part)) for part in parts]
    _launch(copies, "find_meetings", number, [*arguments, POINTER(at(places)), POINTER(at(counts)), *written])
    return parts


def _rows(copies: DeviceCopies, often: Any, values: Any, beyond: Any, lengths: Numbers) -> tuple[Codes, Floats, Floats]:
    """The pairs where one of the two LLRs is above 0, as the counterparts of each actor."""
    xp, host = copies.device.xp, copies.device.host
    scored = xp.flatnonzero((values > 0) | (beyond > 0))
    one, other = (often[scored] >> np.uint64(32)).astype(np.int64), often[scored].astype(np.uint32).astype(np.int64)
    actor, column = xp.concatenate([one, other]), xp.concatenate([other, one])
    order = xp.argsort(actor << 32 | column)
    lengths[:] = host(xp.bincount(actor, minlength=len(lengths)))
    twice = xp.concatenate([scored, scored])[order]
    return host(column[order].astype(np.int32)), host(values[twice]), host(beyond[twice])


def _keys(xp: Any, first: Any) -> Any:
    """Sorted keys of numbers and their places: equal numbers as they came."""
    keys = first.astype(np.uint64) << np.uint64(32) | xp.arange(len(first), dtype=np.uint64)
    keys.sort()
    return keys


def _begins(xp: Any, keys: Any, size: int) -> Any:
    return xp.searchsorted(keys, xp.arange(size + 1, dtype=np.uint64) << np.uint64(32)).astype(np.int64)


def _launch(copies: DeviceCopies, kernel: str, items: int, arguments: list[Any]) -> None:
    copies.launch(kernel, NO_FORM, -(-items // LANES), arguments, 0)
