"""Who an entity deals with: how its reviews spread over its counterparts, and what those counterparts are like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.elementary import log, log1p
from ringleader.kernels.protocol import get_backend
from ringleader.shares.cells import Lookup
from ringleader.signals.behaviour.distinct import distinct_pairs
from ringleader.signals.behaviour.market import HIGH, LOW, Covariate, Judged, Market, ratio
from ringleader.signals.behaviour.time import active_weeks, largest_bursts, running_counts, sum_by
from ringleader.wording import plural

FEW = 2
"""Counterparts with at most so many reviews are newcomers or throwaways."""

SHRINK = 1.0
"""Reviews at the market's mean that are added to what others gave, so that one other opinion is not taken for truth."""

CROWDED = 2.0
"""A review came in a crowd where its excess is above this, in standard deviations."""


class Pairs(NamedTuple):
    """Distinct (entity, counterpart) of the entities that are described."""

    entity: Numbers
    other: Numbers  # code of the counterpart
    seen: Floats  # reviews of the pair
    elsewhere: Floats  # reviews of the counterpart with others
    where: Numbers  # (n_cells,), the pair of each cell
    lookup: Lookup  # what the owners of the counterparts know
    place: Numbers  # the counterpart among those looked up


def counterpart_columns(market: Market, judged: Judged, j: int) -> Iterator[Covariate]:
    """What an entity's counterparts of mode j are like, and how its reviews are spread over them."""
    share, w, n = market.share, market.weights, len(judged.volume)
    name, size = share.tensor.modes[j], share.shape[j]
    entity, other, where = distinct_pairs(judged.codes, share.tensor.coordinates[:, j].astype(np.int64), (n, size))
    seen = sum_by(where, w, len(entity))
    lookup = share.lookup(j, other)
    place = lookup.places(other)
    theirs = lookup.rows(share.added(j, other, seen))[place]
    pairs = Pairs(entity, other, seen, theirs - seen, where, lookup, place)
    yield from _concentration(name, pairs, judged.volume)
    busy = log1p(pairs.elsewhere)
    few = (theirs <= FEW).astype(np.float64)
    usual = share.count(int(few.sum())) / max(share.count(len(few)), 1)
    mean, typical = judged.mean_and_usual(w, busy[where])
    group = "counterpart"
    yield Covariate(f"{name}_activity", group, f"Reviews its {plural(name)} have elsewhere (mean logarithm)", mean)
    middle = _median_log(pairs.entity, pairs.elsewhere, n, typical)
    yield Covariate(f"{name}_activity_median", group, f"Reviews its middle {name} has elsewhere (logarithm)", middle)
    number = np.bincount(pairs.entity, minlength=n)
    few_of = ratio(sum_by(pairs.entity, few, n), number, usual)
    yield Covariate(f"{name}_few", group, f"Share of its {plural(name)} with at most {FEW} reviews in all", few_of)
    if market.ratings is not None and judged.mode != market.rating:
        yield from _deviation(name, market, judged, pairs, market.ratings)
    if market.bins is not None and market.calendar is not None and judged.mode != market.time:
        yield from _age(name, market, judged, j, pairs)
        yield from _pair_bursts(name, market, pairs, n)
        if j in market.crowds:
            yield from _crowd(name, market, judged, j, pairs)


def _deviation(name: str, market: Market, judged: Judged, pairs: Pairs, ratings: Floats) -> Iterator[Covariate]:
    """Its ratings against those that its counterparts have with others: all its own are left out."""
    w = market.weights
    own = sum_by(pairs.where, w * ratings, len(pairs.seen))
    opinion = _elsewhere(pairs, own, judged.usual(w, ratings))
    apart = ratings - opinion[pairs.where]
    sentence = f"Its ratings minus those its {plural(name)} have elsewhere (mean)"
    yield Covariate(f"{name}_deviation", "deviation", sentence, judged.mean(w, apart))
    sentence = f"Distance of its ratings from those its {plural(name)} have elsewhere (mean)"
    yield Covariate(f"{name}_disagreement", "deviation", sentence, judged.mean(w, np.abs(apart)))


def _age(name: str, market: Market, judged: Judged, j: int, pairs: Pairs) -> Iterator[Covariate]:
    """How old its counterparts were when they met."""
    assert market.bins is not None  # asked where there are times
    there = market.share.by(j)
    bins = market.share.move(market.bins, there)
    born = np.full(there.size(j), np.iinfo(np.int64).max)
    np.minimum.at(born, there.own_codes(j), bins)
    age = market.bins - pairs.lookup.rows(born)[pairs.place][pairs.where]
    sentence = f"Time since the first review of its {name}, at its reviews (mean logarithm)"
    yield Covariate(f"{name}_age", "age", sentence, judged.mean(market.weights, log1p(age)))
    sentence = f"Share of its reviews that came in the first period of its {name}"
    yield Covariate(f"{name}_newborn", "age", sentence, judged.mean(market.weights, age == 0))


def _pair_bursts(name: str, market: Market, pairs: Pairs, n: int) -> Iterator[Covariate]:
    """The largest burst that an entity had with a single counterpart: a campaign for one product of a large seller."""
    assert market.bins is not None and market.calendar is not None
    kinds = [("boost_burst", "good reviews", HIGH), ("attack_burst", "bad reviews", LOW)]
    kinds = kinds if market.side is not None else [("burst", "reviews", HIGH)]
    total = max(market.reviews(), 1.0)
    chosen = [np.ones(len(pairs.where), np.bool_) if market.side is None else market.side == k for _, _, k in kinds]
    shares = [market.reviews(kind) / total for kind in chosen]
    several = np.flatnonzero(pairs.seen > 1)  # one review is no burst
    number = np.full(len(pairs.seen), -1, np.int32)
    number[several] = np.arange(len(several))
    cells = np.flatnonzero(number[pairs.where] >= 0)
    weeks = active_weeks(number[pairs.where[cells]].astype(np.int64), market.bins[cells], market.calendar)
    weights = market.weights[cells]
    running = running_counts([sum_by(weeks.where, weights * kind[cells], len(weeks.keys)) for kind in chosen])
    length = market.calendar.windows[1]
    bursts = largest_bursts(weeks, running, shares, pairs.seen[several], market.calendar, length)
    for (kind, sentence, _), burst in zip(kinds, bursts, strict=True):
        z = np.zeros(n)
        np.maximum.at(z, pairs.entity[several], burst.z)
        yield Covariate(f"{name}_{kind}", "burst", f"Largest burst of its {sentence} with a single {name}", z)


def _crowd(name: str, market: Market, judged: Judged, j: int, pairs: Pairs) -> Iterator[Covariate]:
    """Whether its reviews come when its counterparts are crowded, and whether these go from crowd to crowd."""
    w, crowd = market.weights, market.crowds[j]
    sentence = f"How unusually many reviews alike its {plural(name)} had around its reviews (mean)"
    yield Covariate(f"{name}_crowd", "crowd", sentence, judged.mean(w, crowd))
    sentence = f"Share of its reviews that came in a crowd of reviews alike of its {name}"
    yield Covariate(f"{name}_crowded", "crowd", sentence, judged.mean(w, crowd > CROWDED))
    others = [market.crowds[i] for i in market.ids if i != j]
    habit = np.mean(others, axis=0) if others else crowd
    own = sum_by(pairs.where, w * habit, len(pairs.seen))
    leaning = _elsewhere(pairs, own, judged.usual(w, habit))[pairs.where]
    sentence = f"How far the other reviews of its {plural(name)} came in crowds (mean)"
    yield Covariate(f"{name}_crowd_elsewhere", "crowd", sentence, judged.mean(w, leaning))
    both = np.maximum(habit, 0.0) * np.maximum(leaning, 0.0)
    sentence = f"How far its reviews in crowds are those of {plural(name)} who go from crowd to crowd (mean)"
    yield Covariate(f"{name}_crowd_again", "crowd", sentence, judged.mean(w, both))


def _elsewhere(pairs: Pairs, own: Floats, usual: float) -> Floats:
    """Mean of a counterpart's reviews with others than the entity, drawn a little to the usual, one per pair.

    own : sum over the reviews of each pair.
    """
    theirs = pairs.lookup.rows(pairs.lookup.added(pairs.other, own))[pairs.place] - own
    return np.asarray((theirs + SHRINK * usual) / (pairs.elsewhere + SHRINK))


def _concentration(name: str, pairs: Pairs, volume: Floats) -> Iterator[Covariate]:
    n = len(volume)
    number = np.bincount(pairs.entity, minlength=n)
    most = np.zeros(n)
    np.maximum.at(most, pairs.entity, pairs.seen)
    twice = sum_by(pairs.entity, pairs.seen * (pairs.seen - 1.0), n)
    share = np.maximum(ratio(pairs.seen, volume[pairs.entity]), 1e-300)
    entropy = -sum_by(pairs.entity, share * log(share), n)
    yield Covariate(f"{name}_number", "volume", f"Number of its {plural(name)} (logarithm)", log1p(number))
    yield Covariate(
        f"{name}_top_share", "concentration", f"Share of its reviews with its main {name}", ratio(most, volume)
    )
    yield Covariate(
        f"{name}_same",
        "concentration",
        f"Chance that two of its reviews have the same {name}",
        ratio(twice, volume * (volume - 1.0)),
    )
    yield Covariate(
        f"{name}_evenness",
        "concentration",
        f"How evenly its reviews are spread over its {plural(name)} (1: evenly)",
        ratio(entropy, log(np.maximum(number, 1)), 1.0),
    )
    yield Covariate(
        f"{name}_repeats",
        "concentration",
        f"Share of its reviews that repeat a {name}",
        ratio(volume - number, volume),
    )


def _median_log(entity: Numbers, counts: Floats, n: int, neutral: float) -> Floats:
    """Median of log(1 + counts) of each entity; entities ascend."""
    middle = get_backend().middles(entity, counts, n)
    result, has = np.full(n, neutral), np.bincount(entity, minlength=n) > 0
    result[has] = 0.5 * (log1p(middle[has, 0]) + log1p(middle[has, 1]))
    return result
