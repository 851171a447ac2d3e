"""Who is on the market: reviewers with tastes and habits, sellers with a name, products with a life."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.datasets.marketplace.settings import WEEK, MarketSettings

IN_COMMUNITY = 0.55
"""Share of the reviewers who belong to a taste community; the others buy from the bestseller list."""

DEAL_HUNTERS = 0.06
"""Share of the reviewers who follow a deal site and buy what it announces, whoever sells it."""

NICHE = 0.45
"""Share of the products made for one taste community."""

POWER = 0.01
"""Share of the reviewers who review as a hobby."""


class People(NamedTuple):
    """The reviewers, n of them. Times are seconds since the market opened."""

    activity: Floats  # (n,) expected honest reviews, up to a constant
    community: Numbers  # (n,) taste community, -1 for none
    deal_site: Numbers  # (n,) deal site followed, -1 for none
    joined: Floats  # (n,) first second on the market, negative for those there before
    left: Floats  # (n,) last second
    leniency: Floats  # (n,) shift of their ratings
    communities: int
    deal_sites: int


class Catalogue(NamedTuple):
    """Products (n), their life, their quality and their one to three sellers (m sellers in all)."""

    popularity: Floats  # (n,) expected share of the honest reviews, up to a constant
    community: Numbers  # (n,) whose taste it meets, -1 for everyone's
    category: Numbers  # (n,) where it competes
    born: Floats  # (n,) second of its launch, negative for those launched before
    life: Floats  # (n,) scale of its life cycle in seconds
    quality: Floats  # (n,)
    sellers: Numbers  # (n, 3) seller or -1
    share: Floats  # (n, 3) cumulative share of its sellers in its reviews


class Crowd:
    """People to draw from, in proportion to activity, optionally within one of several groups.

    ``group`` gives each reviewer's group or -1; a draw from group -1 is a draw from everyone.
    """

    def __init__(self, people: People, weight: Floats, group: Numbers, groups: int) -> None:
        self._order = np.argsort(group, kind="stable")
        self._cumulative = np.cumsum(weight[self._order])
        edges = np.searchsorted(group[self._order], np.arange(groups + 1))
        padded = np.concatenate([[0.0], self._cumulative])
        self._low, self._high = padded[edges[:-1]], padded[edges[1:]]
        self._joined, self._left = people.joined, people.left

    def draw(self, rng: np.random.Generator, group: Numbers, when: Floats, rounds: int = 5) -> Numbers:
        """One reviewer for each time, one who was on the market then (after ``rounds`` tries, anyone)."""
        drawn = np.empty(len(when), dtype=np.int64)
        total = self._cumulative[-1]
        open_ = np.arange(len(when))
        for turn in range(rounds):
            g, t = group[open_], when[open_]
            inside = g >= 0 if turn < rounds - 1 else np.zeros(len(g), dtype=bool)
            low = np.where(inside, self._low[g], 0.0)
            high = np.where(inside, self._high[g], total)
            place = low + rng.random(len(g)) * (high - low)
            who = self._order[np.minimum(np.searchsorted(self._cumulative, place, side="right"), len(self._order) - 1)]
            drawn[open_] = who
            open_ = open_[(self._joined[who] > t) | (self._left[who] < t)]
            if not len(open_):
                break
        return drawn


def draw_people(rng: np.random.Generator, settings: MarketSettings) -> People:
    """Reviewers with log-normal activity, one in a hundred of them a power reviewer."""
    n, span = settings.reviewers, settings.weeks * WEEK
    activity = rng.lognormal(0.0, 1.15, n)
    power = rng.random(n) < POWER
    activity[power] *= rng.uniform(4.0, 10.0, int(power.sum()))
    joined = rng.uniform(-0.6, 0.97, n) * span
    stay = (0.08 + rng.exponential(0.6, n)) * span
    joined[power], stay[power] = np.minimum(joined[power], 0.3 * span), np.maximum(stay[power], 0.8 * span)
    left = np.maximum(joined + stay, 0.05 * span)

    communities = max(4, round(n / 160))
    size = rng.lognormal(0.0, 0.8, communities)
    community = rng.choice(communities, n, p=size / size.sum())
    community[rng.random(n) >= IN_COMMUNITY] = -1
    deal_sites = max(2, round(n / 3_000))
    deal_site = rng.integers(0, deal_sites, n)
    deal_site[rng.random(n) >= DEAL_HUNTERS] = -1
    return People(activity, community, deal_site, joined, left, rng.normal(0.0, 0.35, n), communities, deal_sites)


def draw_catalogue(rng: np.random.Generator, settings: MarketSettings, communities: int) -> Catalogue:
    """Products and sellers, both heavy-tailed; every seller has at least one product."""
    n, m, span = settings.products, settings.sellers, settings.weeks * WEEK
    name = rng.lognormal(0.0, 0.9, m)  # how well known each seller is
    lineup = rng.lognormal(0.0, 0.8, m)  # how many products it carries
    first = np.concatenate([rng.permutation(m), rng.choice(m, n - m, p=lineup / lineup.sum())])
    sellers = np.full((n, 3), -1, dtype=np.int64)
    sellers[:, 0] = first
    also = rng.choice(m, (n, 2), p=lineup / lineup.sum())
    how_many = rng.choice(3, n, p=[0.7, 0.22, 0.08])  # sellers beside the first
    second = (how_many >= 1) & (also[:, 0] != first)
    third = (how_many == 2) & second & (also[:, 1] != first) & (also[:, 1] != also[:, 0])
    sellers[second, 1], sellers[third, 2] = also[second, 0], also[third, 1]
    part = rng.gamma(2.0, 1.0, (n, 3)) * np.array([2.5, 1.0, 0.7]) * (sellers >= 0)
    share = np.cumsum(part, axis=1) / part.sum(axis=1, keepdims=True)
    share[(sellers[:, [1, 2, 2]] < 0) & (sellers[:, [1, 1, 2]] < 0)] = 1.0  # the last seller closes the scale

    popularity = rng.lognormal(0.0, 1.25, n) * name[first]
    community = rng.integers(0, communities, n)
    community[rng.random(n) >= NICHE] = -1
    born = rng.uniform(-0.5, 0.93, n) * span
    seller_quality = rng.normal(0.0, 0.5, m)
    return Catalogue(
        popularity=popularity,
        community=community,
        category=rng.integers(0, max(4, n // 60), n),
        born=born,
        life=rng.lognormal(np.log(30.0), 0.6, n) * WEEK,
        quality=seller_quality[first] + rng.normal(0.0, 0.55, n),
        sellers=sellers,
        share=share,
    )
