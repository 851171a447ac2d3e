"""When things happen: the market's calendar, bursts against it, and how a life is spread over it.

Every array over entities is (n_k,), every array over cells (n_cells,). Weights are multiplicities: how many reviews
fell into a cell. Time is counted in bins from the market's first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.burst_layout import ActiveTimes, BurstRule, FoundBursts, ReviewTimes, Rhythms
from ringleader.kernels.elementary import log
from ringleader.kernels.layout import read_only
from ringleader.kernels.protocol import get_backend
from ringleader.shares.cells import CellShare
from ringleader.shares.runs import sums_by_code
from ringleader.signals.behaviour.distinct import distinct_pairs
from ringleader.tensor.vocabulary import Vocabulary
from ringleader.wording import plural

DAY = 86_400
WINDOW_DAYS = (7, 21, 42)
"""Windows of a burst where bins last a day or more; never less than one bin."""

WINDOW_BINS = (1, 10, 60)
"""Windows where bins are shorter than a day, as in network data."""

LONGEST_TABLE = 1 << 22
"""Bins up to which the calendar is looked up in a table, not searched."""

FEW_BINS = 12
"""Length of a window up to which neighbours are compared one by one, not searched."""

PRIOR = 1.0
"""Added to an expectation under the root, so that two reviews of a small account do not make a burst."""


class Calendar(NamedTuple):
    """When the whole market reviews."""

    occupied: Numbers  # bins with a review, ascending
    before: Floats  # (len(occupied) + 1,), share of the market's reviews before each of them, and 1
    n_bins: int  # from the first to the last bin
    bin_seconds: int
    start: int  # Unix seconds of bin 0
    windows: tuple[int, ...]  # lengths in bins: short, medium, long
    rank: Numbers | None  # (n_bins + 1,), occupied bins before each bin; None where time is too long for a table

    def passed(self, bins: Numbers) -> Numbers:
        """How many occupied bins lie before each bin."""
        if self.rank is None:
            return np.searchsorted(self.occupied, bins)
        return np.asarray(self.rank[np.clip(bins, 0, self.n_bins)])

    def share(self, first: Numbers, end: Numbers) -> Floats:
        """Share of the market's reviews in bins first <= b < end."""
        return np.asarray(self.before[self.passed(end)] - self.before[self.passed(first)])

    def share_around(self, bins: Numbers, start: int, length: int, out: Floats | None = None) -> Floats:
        """Share of the market's reviews in the ``length`` bins from each of ``bins`` + ``start``."""
        made = np.empty(len(bins)) if out is None else out
        if self.n_bins > len(bins):
            made[:] = self.share(bins + start, bins + start + length)
            return made
        first = np.arange(self.n_bins) + start
        return self.share(first, first + length).take(bins, out=made, mode="clip")  # which writes there at once

    def before_each(self) -> Floats | None:
        """(n_bins + 1,), share of the market's reviews before each bin; None where time is too long for a table."""
        return None if self.rank is None else read_only(self.before[self.rank])


class Burst(NamedTuple):
    """The window in which an entity stands out most. Zeros where it has no reviews of the kind.

    z: (seen - 1 - others) / sqrt(others + 1), at least 0; one review is no burst. ``others`` are to be expected beside
    that one: (volume - 1) times the share of the window.
    """

    z: Floats
    seen: Floats  # reviews in the window
    expected: Floats  # reviews to be expected there: volume times the share of the window
    start: Numbers  # first bin of the window
    length: int  # bins


class Weeks(NamedTuple):
    """Distinct (entity, bin), sorted: when each entity is active."""

    keys: Numbers  # entity * stride + bin
    stride: int
    entity: Numbers
    bins: Numbers
    where: Numbers  # (n_cells,), position of each cell


def read_calendar(
    share: CellShare, time: int, weights: Floats, vocabulary: Vocabulary | None = None
) -> tuple[Numbers, Calendar]:
    """The bin of each cell held here, and the calendar that all cells make.

    vocabulary : the times of the codes, where the tensor does not have them.
    """
    vocabulary = share.tensor.vocabularies[time] if vocabulary is None else vocabulary
    codes = share.tensor.coordinates[:, time]
    starts = np.asarray(vocabulary.values, dtype=np.int64)
    width = vocabulary.bin_seconds or _narrowest(starts)
    used = share.used(time)
    first = int(starts[used].min()) if len(used) else 0
    bin_of = (starts - first) // width
    # By code first: there are far fewer of them than cells, and counts are whole numbers, so that no order matters.
    of_codes = share.count(sum_by(codes.astype(np.int64), weights, len(starts)))
    occupied, where = np.unique(bin_of[used], return_inverse=True)
    volume = sum_by(where.reshape(-1), of_codes[used], len(occupied))
    before = np.concatenate([[0.0], np.cumsum(volume)]) / max(float(volume.sum()), 1.0)
    n_bins = int(occupied[-1]) + 1 if len(occupied) else 0
    rank = np.searchsorted(occupied, np.arange(n_bins + 1)) if n_bins <= LONGEST_TABLE else None
    return bin_of[codes], Calendar(occupied, before, n_bins, width, first, windows_for(width), rank)


def windows_for(bin_seconds: int) -> tuple[int, ...]:
    """Short, medium and long window in bins, each longer than the one before."""
    if bin_seconds < DAY:
        return WINDOW_BINS
    lengths: list[int] = []
    for days in WINDOW_DAYS:
        lengths.append(max(round(days * DAY / bin_seconds), lengths[-1] + 1 if lengths else 1))
    return tuple(lengths)


def say_length(bins: int, bin_seconds: int) -> str:
    """A number of bins in words: ``3 weeks``, ``10 minutes``."""
    seconds = bins * bin_seconds
    for unit, size in (("week", 7 * DAY), ("day", DAY), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0:
            number = seconds // size
            return f"{number} {unit if number == 1 else plural(unit)}"
    raise AssertionError("seconds are whole")


def active_weeks(codes: Numbers, bins: Numbers, calendar: Calendar) -> Weeks:
    # Keys of one entity and those of the next are further apart than any window, so that no window reaches over.
    stride = calendar.n_bins + 2 * max(calendar.windows) + 1
    entity, active, where = distinct_pairs(codes, bins, (int(codes.max(initial=0)) + 1, max(calendar.n_bins, 1)))
    return Weeks(entity * stride + active, stride, entity, active, where)


def near_keys(keys: Numbers, length: int) -> tuple[Numbers, Numbers]:
    """How many keys, each with itself, are less than ``length`` behind it, and how many less than that ahead of it.

    keys : ascending, each once, so that there are at most ``length`` on either side.
    """
    position = np.arange(len(keys))
    if length > FEW_BINS:
        behind = position + 1 - np.searchsorted(keys, keys - length + 1)
        return behind, np.searchsorted(keys, keys + length) - position
    behind, ahead = np.ones(len(keys), np.int64), np.ones(len(keys), np.int64)
    for apart in range(1, min(length, len(keys))):
        near = keys[apart:] - keys[:-apart] < length
        behind[apart:] += near
        ahead[:-apart] += near
    return behind, ahead


def running_counts(counted: Sequence[Floats]) -> Floats:
    """Of each kind of review how many there are before each of the ``weeks``, and in all, (kinds, rows + 1).

    counted : for each kind how many there are in each of them.
    """
    running = np.empty((len(counted), len(counted[0]) + 1))
    running[:, 0] = 0.0
    for own, kind in zip(running, counted, strict=True):
        np.cumsum(kind, out=own[1:])
    return running


def largest_bursts(
    weeks: Weeks, running: Floats, shares: Sequence[float], volume: Floats, calendar: Calendar, length: int
) -> list[Burst]:
    """The window with the largest z of every entity, among those that begin or end in a bin where it has reviews.

    running : of each kind of review looked for, see ``running_counts``.
    shares : of the market's reviews that are of each kind. Expected are volume * share * the calendar's share.
    volume : all reviews of each entity, (n,).
    """
    n, kinds = len(volume), len(running)
    calm = np.empty((2, len(weeks.bins)))
    for own, start in zip(calm, (0, 1 - length), strict=True):
        calendar.share_around(weeks.bins, start, length, own)
    z, seen, expected = (np.zeros((kinds, n)) for _ in range(3))  # apart: z is not kept
    largest = FoundBursts(z, seen, expected, np.zeros((kinds, n), np.int64))
    times = ReviewTimes(weeks.keys, weeks.entity, weeks.bins, running, volume)
    get_backend().largest_bursts(times, BurstRule(calm, np.array(shares, np.float64), length, PRIOR), largest)
    return [Burst(largest.z[k], largest.seen[k], largest.expected[k], largest.start[k], length) for k in range(kinds)]


def local_excess(codes: Numbers, n: int, bins: Numbers, weights: Floats, calendar: Calendar) -> Floats:
    """How crowded each review's time is with other reviews of the same entity, (n_cells,).

    Others within half a medium window to either side, against what the entity's volume, spread over the calendar of
    its own life, lets expect: (others - expected) / sqrt(expected + 1). Zero for an entity's only review.
    """
    weeks = active_weeks(codes, bins, calendar)
    half, before = max(calendar.windows[1] // 2, 1), calendar.before_each()
    if before is not None:
        times = ActiveTimes(read_only(weeks.entity), read_only(weeks.bins), before)
        return get_backend().excess_around(times, read_only(weeks.where), read_only(weights), half, PRIOR)
    seen = sum_by(weeks.where, weights, len(weeks.keys))
    volume = sum_by(codes, weights, n)
    first, last = life(weeks, n)
    running = np.concatenate([[0.0], np.cumsum(seen)])
    behind, ahead = near_keys(weeks.keys, half + 1)
    position = np.arange(len(weeks.keys))
    inside = running[position + ahead] - running[position + 1 - behind]
    born, died = first[weeks.entity], last[weeks.entity] + 1
    whole = calendar.share(born, died)
    around = calendar.share(np.maximum(weeks.bins - half, born), np.minimum(weeks.bins + half + 1, died))
    expected = (volume[weeks.entity] - 1.0) * around / np.maximum(whole, 1e-300)
    z = (inside - 1.0 - expected) / np.sqrt(expected + PRIOR)
    return np.asarray(z[weeks.where])


def life(weeks: Weeks, n: int) -> tuple[Numbers, Numbers]:
    """First and last bin of every entity; 0 and 0 where it has no reviews."""
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    last[weeks.entity] = weeks.bins
    first[weeks.entity[::-1]] = weeks.bins[::-1]
    return first, last


def find_rhythms(weeks: Weeks, seen: Floats, volume: Floats, calendar: Calendar) -> Rhythms:
    """How the reviews of every entity lie over its life. seen : reviews of each of ``weeks``."""
    n, before = len(volume), calendar.before_each()
    if before is None:
        return _rhythms_without_table(weeks, seen, volume, calendar)
    first, last, gap, active = np.zeros((4, n), np.int64)
    made = Rhythms(first, last, gap, active, np.zeros(n), np.zeros(n))
    times = ActiveTimes(read_only(weeks.entity), read_only(weeks.bins), before)
    get_backend().rhythms(times, read_only(seen), read_only(volume), made)
    return made


def _rhythms_without_table(weeks: Weeks, seen: Floats, volume: Floats, calendar: Calendar) -> Rhythms:
    """The same where time is too long for a table."""
    n = len(volume)
    first, last = life(weeks, n)
    gap = np.zeros(n, np.int64)
    same = weeks.entity[1:] == weeks.entity[:-1]
    np.maximum.at(gap, weeks.entity[1:][same], np.diff(weeks.bins)[same])
    whole = np.maximum(calendar.share(first, last + 1)[weeks.entity], 1e-300)
    expected = volume[weeks.entity] * calendar.share(weeks.bins, weeks.bins + 1) / whole
    unsteady = sum_by(weeks.entity, seen * seen / np.maximum(expected, 1e-300), n)
    active = np.bincount(weeks.entity, minlength=n)
    return Rhythms(first, last, gap, active, sum_by(weeks.entity, seen * (seen - 1.0), n), unsteady)


def dispersion(rhythms: Rhythms, volume: Floats, calendar: Calendar) -> Floats:
    """log((chi2 + 1) / (bins)) of an entity's bins against the calendar of its own life; 0 as for steady reviewing.

    chi2 = sum over bins of (seen - expected)^2 / expected, with the entity's volume spread like the market's between
    its first and its last review; ``bins`` are those of its life with any review in the market.
    """
    chi2 = rhythms.unsteady - volume
    bins = calendar.passed(rhythms.last + 1) - calendar.passed(rhythms.first)
    return np.asarray(log((np.maximum(chi2, 0.0) + 1.0) / np.maximum(bins, 1)))


def _narrowest(starts: Numbers) -> int:
    """Bin width of a time mode that does not say it: the smallest step between two bins."""
    steps = np.diff(np.unique(starts))
    return int(steps.min()) if len(steps) else 1


def sum_by(codes: Numbers, weights: Floats, n: int) -> Floats:
    """Sum of the weights of each code, (n,)."""
    return sums_by_code(codes, weights, n)
