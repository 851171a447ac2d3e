"""Burst: the most high-rated reviews of an entity in any three weeks, against what its volume lets expect.

For an entity with V reviews, a window w that holds the share c_w of the market's reviews, and the market's share h of
high ratings, the expectation is m = V c_w h. The score is the largest (seen - m) / sqrt(m + prior) over windows.
Trivial, and enough when rings are bursts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.baselines.method import Baseline, Callback, Labels, Progress, check_positive, check_whole
from ringleader.errors import SettingsError
from ringleader.tables.schema import names_a_rating
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

TIME_NAMES = ("week", "time", "timestamp", "date", "day", "month")


class Market(NamedTuple):
    """What all entities are compared with."""

    bins: npt.NDArray[np.int64]  # (n_cells,), the time bin of each cell, from 0
    n_bins: int
    high: npt.NDArray[np.bool_]  # (n_cells,), rated high
    calendar: npt.NDArray[np.float64]  # (n_bins,), share of the market's reviews in each bin
    high_share: float


class Burst(Baseline):
    """Burst z-score.

    Parameters
    ----------
    window : bins of the time mode that a burst may last.
    high_rating : ratings from here on count; None takes the highest rating only.
    time_mode, rating_mode : names; None finds them by kind, then by name. Without a rating mode every review counts;
        without a time mode there is no burst, and fit says so.
    prior : added to the expectation under the root, so that single reviews of small entities do not win.
    random_state : for the common face; the method uses no chance.

    In the time mode itself a bin is scored by the high ratings of the window that ends there against its reviews.
    """

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

    def _fit(self, tensor: SparseTensor, labels: Labels, callback: Callback) -> None:
        check_whole("window", self.window, 1)
        check_positive("prior", self.prior)
        time = _time(tensor, self.time_mode)
        if time is None:
            raise SettingsError(
                f"a burst needs a time mode, and none of {', '.join(tensor.modes)} is one; name it with time_mode="
            )
        rating = _rating(tensor, self.rating_mode)
        market = self._market(tensor, time, rating)
        self.z_ = []
        for k in range(len(tensor.modes)):
            score = self._time_scores if k == time else self._entity_scores
            self.z_.append(score(tensor, market, k))
            callback(Progress(k + 1, len(tensor.modes), float("nan")))

    def _market(self, tensor: SparseTensor, time: int, rating: int | None) -> Market:
        positions = _positions(tensor.vocabularies[time])
        bins = positions[tensor.coordinates[:, time]]
        n_bins = int(positions.max()) + 1
        high = np.ones(tensor.n_cells, np.bool_)
        if rating is not None:
            values = _numbers(tensor.vocabularies[rating])
            present = values[np.unique(tensor.coordinates[:, rating])]
            least = float(present.max()) if self.high_rating is None else self.high_rating
            if not (present >= least).any():
                raise SettingsError(f"no rating reaches high_rating = {least:g}; the highest is {present.max():g}")
            high = values[tensor.coordinates[:, rating]] >= least
        elif self.high_rating is not None:
            raise SettingsError("high_rating is set, but the tensor has no rating mode; name it with rating_mode=")
        calendar = np.bincount(bins, weights=tensor.counts, minlength=n_bins)
        share = float(tensor.counts[high].sum() / tensor.counts.sum())
        return Market(bins, n_bins, high, calendar / calendar.sum(), share)

    def _entity_scores(self, tensor: SparseTensor, market: Market, k: int) -> npt.NDArray[np.float64]:
        """Largest z over the windows in which the entity has a high-rated review, or 0 for an entity with none."""
        size = tensor.shape[k]
        codes = tensor.coordinates[:, k].astype(np.int64)
        volume = np.bincount(codes, weights=tensor.counts, minlength=size)
        scores = np.zeros(size)
        # A best window can be moved until it begins at one of its reviews, but for the calendar's shape; we look at the
        # windows that end at, or reach beyond, each bin with reviews, so that none with that bin is missed.
        keys, where = np.unique(codes[market.high] * market.n_bins + market.bins[market.high], return_inverse=True)
        seen = np.bincount(where.reshape(-1), weights=tensor.counts[market.high])
        entity, bins = keys // market.n_bins, keys % market.n_bins
        running = np.concatenate([[0.0], np.cumsum(seen)])
        ahead = np.concatenate([[0.0], np.cumsum(market.calendar)])
        for back in range(self.window):
            first = np.maximum(bins - back, 0)
            last = np.minimum(first + self.window, market.n_bins)
            low = np.searchsorted(keys, entity * market.n_bins + first)
            high = np.searchsorted(keys, entity * market.n_bins + last)
            inside = running[high] - running[low]
            expected = volume[entity] * market.high_share * (ahead[last] - ahead[first])
            np.maximum.at(scores, entity, (inside - expected) / np.sqrt(expected + self.prior))
        return scores

    def _time_scores(self, tensor: SparseTensor, market: Market, k: int) -> npt.NDArray[np.float64]:
        counts = np.bincount(market.bins, weights=tensor.counts, minlength=market.n_bins)
        high = np.bincount(market.bins, weights=tensor.counts * market.high, minlength=market.n_bins)
        kernel = np.ones(self.window)
        expected = np.convolve(counts, kernel)[: market.n_bins] * market.high_share
        z = (np.convolve(high, kernel)[: market.n_bins] - expected) / np.sqrt(expected + self.prior)
        return np.asarray(z[_positions(tensor.vocabularies[k])])

    def _scores(self, k: int) -> npt.NDArray[np.float64]:
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


def _positions(vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    """Bin number of each code: from the times where they are known, else from numbers in the names, else the code."""
    if vocabulary.kind == "time":
        starts = np.asarray(vocabulary.values, dtype=np.int64)
        return np.asarray((starts - starts.min()) // (vocabulary.bin_seconds or 1), dtype=np.int64)
    values = _numbers(vocabulary)
    if (values == np.floor(values)).all() and values.max() - values.min() < 100 * len(values) + 1000:
        return np.asarray(values - values.min(), dtype=np.int64)
    return np.arange(len(vocabulary), dtype=np.int64)


def _numbers(vocabulary: Vocabulary) -> npt.NDArray[np.float64]:
    """Value of each code: the number it stands for, else its position."""
    if vocabulary.kind == "number":
        return np.asarray(vocabulary.values, dtype=np.float64)
    texts = vocabulary.text(np.arange(len(vocabulary)))
    numbered = [re.fullmatch(r"(\D*?)(-?\d+(?:\.\d+)?)", text) for text in texts]  # 5, w35, week 7
    if not all(numbered) or len({match[1] for match in numbered if match}) != 1:
        return np.arange(len(vocabulary), dtype=np.float64)
    values = np.array([float(match[2]) for match in numbered if match])
    return values if np.isfinite(values).all() else np.arange(len(vocabulary), dtype=np.float64)
