"""The largest burst: the most high-rated reviews of an entity in any three weeks, against what its volume lets expect.

For an entity with V reviews, a window w that holds the share c_w of the market's reviews, and the market's share h of
high ratings, the expectation is m = V c_w h. The score is the largest (seen - m) / sqrt(m + prior) over windows.
Trivial, and enough when rings are bursts. The calendar and the counts by entity and bin are those of the detector's own
``signals.behaviour``.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed
from ringleader.errors import SettingsError
from ringleader.settings import Constraint, Number, Whole
from ringleader.shares.cells import CellShare
from ringleader.signals.behaviour.time import Calendar, active_weeks, read_calendar, sum_by
from ringleader.tables.schema import names_a_rating
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

TIME_NAMES = ("week", "time", "timestamp", "date", "day", "month")


class HighRatings(NamedTuple):
    """What all entities are compared with: when the market reviews, and how much of it is rated high."""

    bins: Numbers  # (n_cells,), the time bin of each cell, from 0
    calendar: Calendar
    cells: Numbers  # those rated high
    share: float  # of the market's reviews


class LargestBurst(Baseline):
    """Burst z-score.

    Parameters
    ----------
    window : bins of the time mode that a burst may last.
    high_rating : ratings from here on count; None takes the highest rating only.
    time_mode, rating_mode : names; None finds them by kind, then by name. Without a rating mode every review counts;
        without a time mode there is no burst, and fit says so.
    prior : added to the expectation under the root, so that single reviews of small entities do not win.
    random_state : ignored, as the method draws nothing; every baseline has one.

    In the time mode itself a bin is scored by the high ratings of the window that ends there against its reviews.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "window": Whole(1),
        "high_rating": Number(optional=True),
        "prior": Number(above=0),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        window: int = 3,
        high_rating: float | None = None,
        time_mode: str | None = None,
        rating_mode: str | None = None,
        prior: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.window = window
        self.high_rating = high_rating
        self.time_mode = time_mode
        self.rating_mode = rating_mode
        self.prior = prior
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        time = _time(tensor, self.time_mode)
        if time is None:
            raise SettingsError(
                f"a burst needs a time mode, and none of {', '.join(tensor.modes)} is one; name it with time_mode="
            )
        bins, calendar = _calendar(tensor, time)
        cells = np.flatnonzero(self._rated_high(tensor))
        share = float(tensor.counts[cells].sum() / tensor.counts.sum())
        # No window of one entity may reach into the next one's bins.
        high = HighRatings(bins, calendar._replace(windows=(self.window,)), cells, share)
        self.z_ = []
        for k in range(len(tensor.modes)):
            self.z_.append(self._time_scores(tensor, high, k) if k == time else self._entity_scores(tensor, high, k))
            callback(Progress(k + 1, len(tensor.modes), float("nan")))

    def _rated_high(self, tensor: SparseTensor) -> Bools:
        """Which cells count, (n_cells,)."""
        rating = _rating(tensor, self.rating_mode)
        if rating is None:
            if self.high_rating is not None:
                raise SettingsError("high_rating is set, but the tensor has no rating mode; name it with rating_mode=")
            return np.ones(tensor.n_cells, np.bool_)
        values = _numbers(tensor.vocabularies[rating])[tensor.coordinates[:, rating]]
        least = float(values.max()) if self.high_rating is None else self.high_rating
        if not (values >= least).any():
            raise SettingsError(f"no rating reaches high_rating = {least:g}; the highest is {values.max():g}")
        return np.asarray(values >= least)

    def _entity_scores(self, tensor: SparseTensor, high: HighRatings, k: int) -> Floats:
        """Largest z over the windows in which the entity has a high-rated review, or 0 for an entity with none."""
        codes = tensor.coordinates[:, k].astype(np.int64)
        volume = sum_by(codes, tensor.counts.astype(np.float64), tensor.shape[k])
        weeks = active_weeks(codes[high.cells], high.bins[high.cells], high.calendar)
        seen = sum_by(weeks.where, tensor.counts[high.cells].astype(np.float64), len(weeks.keys))
        running = np.concatenate([[0.0], np.cumsum(seen)])
        scores = np.zeros(tensor.shape[k])
        # Every window with a high rating of the entity: the best one need not begin or end at one, as it depends on the
        # calendar too.
        for back in range(self.window):
            first = np.maximum(weeks.bins - back, 0)
            keys = weeks.keys - weeks.bins + first
            low, end = np.searchsorted(weeks.keys, keys), np.searchsorted(weeks.keys, keys + self.window)
            expected = volume[weeks.entity] * high.share * high.calendar.share(first, first + self.window)
            z = (running[end] - running[low] - expected) / np.sqrt(expected + self.prior)
            np.maximum.at(scores, weeks.entity, z)
        return scores

    def _time_scores(self, tensor: SparseTensor, high: HighRatings, k: int) -> Floats:
        """z of the window that ends with each bin; 0 for bins outside the market's time."""
        n_bins = high.calendar.n_bins
        volume = sum_by(high.bins, tensor.counts.astype(np.float64), n_bins)
        seen = sum_by(high.bins[high.cells], tensor.counts[high.cells].astype(np.float64), n_bins)
        kernel = np.ones(self.window)
        expected = np.convolve(volume, kernel)[:n_bins] * high.share
        z = (np.convolve(seen, kernel)[:n_bins] - expected) / np.sqrt(expected + self.prior)
        bin_of = np.full(tensor.shape[k], -1)
        bin_of[tensor.coordinates[:, k]] = high.bins
        return np.where(bin_of >= 0, z[bin_of], 0.0)

    def _scores(self, k: int) -> Floats:
        return self.z_[k]


def _time(tensor: SparseTensor, named: str | None) -> int | None:
    """The mode of times: as named, else the only one of the kind, else the first with a usual name."""
    if named is not None:
        return tensor.mode_index(named)
    times = [k for k, v in enumerate(tensor.vocabularies) if v.kind == "time"]
    if len(times) == 1:
        return times[0]
    return next((k for k, mode in enumerate(tensor.modes) if mode.lower() in TIME_NAMES), None)


def _rating(tensor: SparseTensor, named: str | None) -> int | None:
    """The mode of ratings: as named, else that of the tensor, else one of bare codes with a usual name."""
    if named is not None:
        return tensor.mode_index(named)
    if tensor.rating_mode is not None:
        return tensor.rating_mode
    codes = [k for k, v in enumerate(tensor.vocabularies) if v.kind == "id"]
    return next((k for k in codes if names_a_rating(tensor.modes[k])), None)


def _calendar(tensor: SparseTensor, time: int) -> tuple[Numbers, Calendar]:
    """The bin of each cell and the calendar: from the times where they are known, else from numbers in the names of the
    bins, else from the order of the codes."""
    vocabulary = tensor.vocabularies[time]
    if vocabulary.kind != "time":
        values = _numbers(vocabulary)
        dense = (values == np.floor(values)).all() and np.ptp(values) < 100 * len(values) + 1000
        numbers = values if dense else np.arange(len(vocabulary))
        vocabulary = Vocabulary(vocabulary.mode, "time", pa.array(numbers.astype(np.int64)), bin_seconds=1)
    return read_calendar(CellShare(tensor), time, tensor.counts.astype(np.float64), vocabulary)


def _numbers(vocabulary: Vocabulary) -> Floats:
    """Value of each code: the number it stands for, else its position."""
    if vocabulary.kind == "number":
        return np.asarray(vocabulary.values, dtype=np.float64)
    texts = vocabulary.text(np.arange(len(vocabulary)))
    numbered = [re.fullmatch(r"(\D*?)(-?\d+(?:\.\d+)?)", text) for text in texts]  # 5, w35, week 7
    if not all(numbered) or len({match[1] for match in numbered if match}) != 1:
        return np.arange(len(vocabulary), dtype=np.float64)
    values = np.array([float(match[2]) for match in numbered if match])
    return values if np.isfinite(values).all() else np.arange(len(vocabulary), dtype=np.float64)
