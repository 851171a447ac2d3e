"""The tensor as behaviour covariates see it: which mode plays which role, and what all covariates share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.signals.behaviour.time import Burst, Calendar, local_excess, read_calendar, sum_by
from ringleader.tensor.roles import assign_roles, rating_sides
from ringleader.tensor.sparse import SparseTensor

LOW, MIDDLE, HIGH = 0, 1, 2
"""Sides of the rating scale."""


class Market(NamedTuple):
    """The tensor as covariates see it. Computed once, it serves every mode."""

    weights: Floats  # (n_cells,), reviews in each cell
    ids: tuple[int, ...]  # modes whose entities can be counterparts
    time: int | None
    rating: int | None
    bins: Numbers | None  # (n_cells,)
    calendar: Calendar | None
    ratings: Floats | None  # (n_cells,)
    side: Numbers | None  # (n_cells,), LOW, MIDDLE or HIGH
    scale: tuple[float, float]  # lowest and highest rating in use
    crowds: dict[int, Floats]  # per mode of ids (n_cells,): local_excess of its entity around the review


class Judged(NamedTuple):
    """The mode whose entities are described."""

    mode: int
    codes: Numbers  # (n_cells,)
    volume: Floats  # (n_k,), reviews of each entity

    def mean(self, weights: Floats, values: Floats) -> Floats:
        """Mean over the reviews of each entity; the market's mean for an entity without any."""
        weighted = weights * values
        return ratio(sum_by(self.codes, weighted, len(self.volume)), self.volume, _share(weighted, weights))

    def usual(self, weights: Floats, values: Floats) -> float:
        """Mean over all reviews; 0 where there are none."""
        return _share(weights * values, weights)


def _share(weighted: Floats, weights: Floats) -> float:
    # Not @: BLAS may add in another order with other threads.
    return float(weighted.sum()) / max(float(weights.sum()), 1.0)


class Covariate(NamedTuple):
    """One covariate of every entity, (n_k,), and what it says."""

    name: str
    group: str
    sentence: str
    values: Floats
    burst: Burst | None = None


def read_market(tensor: SparseTensor) -> Market:
    """What all covariates share: roles of the modes, calendar, sides of the rating scale, crowds."""
    roles = assign_roles(tensor)
    ids, time, rating = roles.counterparts, roles.time, roles.rating
    weights = tensor.counts.astype(np.float64)
    bins = calendar = ratings = side = None
    scale = (0.0, 0.0)
    if time is not None:
        bins, calendar = read_calendar(tensor.vocabularies[time], tensor.coordinates[:, time], weights)
    if rating is not None:
        values = np.asarray(tensor.vocabularies[rating].values, np.float64)
        ratings = values[tensor.coordinates[:, rating]]
        if len(ratings):
            low, high = rating_sides(values[np.flatnonzero(np.bincount(tensor.coordinates[:, rating]))])
            side = np.where(ratings >= high, HIGH, np.where(ratings <= low, LOW, MIDDLE)).astype(np.int64)
            scale = (float(ratings.min()), float(ratings.max()))
        else:
            side = np.zeros(0, np.int64)
    crowds = {}
    if bins is not None and calendar is not None:
        for k in ids:
            codes = tensor.coordinates[:, k].astype(np.int64)
            # The same side of the scale: a campaign praises or attacks, a popular week does both.
            n = tensor.shape[k] * (1 if side is None else 3)
            codes = codes if side is None else codes * 3 + side
            crowds[k] = local_excess(codes, n, bins, weights, calendar)
    return Market(weights, ids, time, rating, bins, calendar, ratings, side, scale, crowds)


def ratio(above: Floats | Numbers, below: Floats | Numbers, neutral: float = 0.0) -> Floats:
    """above / below, and ``neutral`` where there is nothing to divide by."""
    result = np.full(len(below), neutral)
    np.divide(above, below, out=result, where=below > 0)
    return result
