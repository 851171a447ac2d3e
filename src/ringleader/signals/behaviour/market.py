"""The tensor as behaviour covariates see it: which mode plays which role, and what all covariates share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.behaviour.time import Burst, Calendar, local_excess, read_calendar, sum_by
from ringleader.tensor.roles import assign_roles, rating_sides
from ringleader.tensor.sparse import SparseTensor

LOW, MIDDLE, HIGH = 0, 1, 2
"""Sides of the rating scale."""


class Market(NamedTuple):
    """The tensor as covariates see it. Computed once, it serves every mode."""

    share: CellShare  # whose cells the arrays over cells are of
    weights: Floats  # (n_cells,), reviews in each cell
    ids: tuple[int, ...]  # modes whose entities can be counterparts
    time: int | None
    rating: int | None
    bins: Numbers | None  # (n_cells,)
    calendar: Calendar | None
    ratings: Floats | None  # (n_cells,)
    side: Numbers | None  # (n_cells,), LOW, MIDDLE or HIGH
    scale: tuple[float, float]  # lowest and highest rating in use
    crowds: Mapping[int, Floats]  # per mode of ids (n_cells,): local_excess of its entity around the review

    def by(self, mode: int) -> Market:
        """The same with the cells of the entities of a mode that this process owns."""
        there = self.share.by(mode)
        if there.alone or there is self.share:
            return self._replace(share=there)
        arrays = {name: getattr(self, name) for name in ("weights", "bins", "ratings", "side")}
        moved: dict[str, Any] = {name: self.share.move(a, there) for name, a in arrays.items() if a is not None}
        crowds = {k: self.share.move(crowd, there) for k, crowd in self.crowds.items()}
        return self._replace(share=there, crowds=crowds, **moved)

    def reviews(self, chosen: Bools | None = None) -> float:
        """How many reviews there are in all cells, or in those chosen."""
        weights = self.weights if chosen is None else self.weights[chosen]
        return float(self.share.count(int(weights.sum())))


class Judged(NamedTuple):
    """The entities that are described: those of a mode that this process owns."""

    mode: int
    share: CellShare  # their cells
    codes: Numbers  # (n_cells,), counted from the first of them
    volume: Floats  # (n_k,), reviews of each entity
    reviews: float  # of everybody

    def mean(self, weights: Floats, values: Floats | Bools) -> Floats:
        """Mean over the reviews of each entity; the market's mean for an entity without any."""
        return self.mean_and_usual(weights, values)[0]

    def mean_and_usual(self, weights: Floats, values: Floats | Bools) -> tuple[Floats, float]:
        """The same, and the mean over all reviews."""
        sums, total = self.share.weighted_sums(self.codes, weights, values, len(self.volume))
        usual = total / max(self.reviews, 1.0)
        return ratio(sums, self.volume, usual), usual

    def usual(self, weights: Floats, values: Floats) -> float:
        """Mean over all reviews; 0 where there are none."""
        return float(self.share.cell_total(weights * values)) / max(self.reviews, 1.0)


def judged_entities(market: Market, mode: int) -> Judged:
    """The entities of a mode that this process owns; the market must have their cells (``Market.by``)."""
    codes = market.share.own_codes(mode).astype(np.int64)
    volume = sum_by(codes, market.weights, market.share.size(mode))
    return Judged(mode, market.share, codes, volume, market.reviews())


class Covariate(NamedTuple):
    """One covariate of every entity, (n_k,), and what it says."""

    name: str
    group: str
    sentence: str
    values: Floats
    burst: Burst | None = None


def read_market(cells: SparseTensor | CellShare) -> Market:
    """What all covariates share: roles of the modes, calendar, sides of the rating scale, crowds."""
    share = as_share(cells)
    tensor = share.tensor
    roles = assign_roles(tensor)
    time, rating = roles.time, roles.rating
    weights = tensor.counts.astype(np.float64)
    bins = calendar = ratings = side = None
    scale = (0.0, 0.0)
    if time is not None:
        bins, calendar = read_calendar(share, time, weights)
    if rating is not None:
        values = np.asarray(tensor.vocabularies[rating].values, np.float64)
        ratings = values[tensor.coordinates[:, rating]]
        side = np.zeros(len(ratings), np.int64)
        used = values[share.used(rating)]
        if len(used):
            low, high = rating_sides(used)
            side = np.where(ratings >= high, HIGH, np.where(ratings <= low, LOW, MIDDLE)).astype(np.int64)
            scale = (float(used.min()), float(used.max()))
    market = Market(share, weights, roles.counterparts, time, rating, bins, calendar, ratings, side, scale, {})
    if calendar is None:
        return market
    return market._replace(crowds={k: _crowds(market.by(k), k, calendar) for k in market.ids})


def _crowds(market: Market, mode: int, calendar: Calendar) -> Floats:
    """``local_excess`` of the entities of a mode, of the cells that this process holds."""
    assert market.bins is not None  # there is a calendar
    there, side = market.share, market.side
    codes, n = there.own_codes(mode).astype(np.int64), there.size(mode)
    if side is not None:  # the same side of the scale: a campaign praises or attacks, a popular week does both
        codes, n = codes * 3 + side, n * 3
    crowd = local_excess(codes, n, market.bins, market.weights, calendar)
    return np.asarray(there.move(crowd, there.home), np.float64)


def ratio(above: Floats | Numbers, below: Floats | Numbers, neutral: float = 0.0) -> Floats:
    """above / below, and ``neutral`` where there is nothing to divide by."""
    result = np.full(len(below), neutral)
    np.divide(above, below, out=result, where=below > 0)
    return result
