"""Honest reviews of a market of tastes: communities, sale days, viral products, fans, deal sites, passers-by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.datasets.tastes.settings import DAYS, TasteSettings

SALES = (327.0, 692.0)
"""Days on which everybody buys."""

BRAND_PRODUCTS, BRAND_FANS = 3, 40
"""A brand is a seller of at least so many products, and has about so many fans."""

FOLLOWERS, TAKES_PART = 0.012, 0.06
"""Followers of a deal site as a share of all people, and the chance that one takes a deal."""


class Written(NamedTuple):
    """Reviews as they are written, an array of one row each."""

    reviewer: Numbers
    product: Numbers
    day: Floats
    liking: Floats


class Assortment(NamedTuple):
    """The products, (n_products,) each."""

    seller: Numbers
    home: Numbers  # community
    fame: Floats
    quality: Floats
    n_sellers: int


class Lives(NamedTuple):
    """What everyday life decides and others take up."""

    launch: Floats  # (n_products,), days
    bias: Floats  # (n_people,): how kindly each rates


def draw_catalogue(rng: np.random.Generator, reviews: int, communities: int) -> Assortment:
    """Products and their sellers, heavy-tailed."""
    products, sellers = reviews // 13, reviews // 80
    weight = rng.pareto(1.3, sellers) + 0.3
    seller = rng.choice(sellers, products, p=weight / weight.sum())
    home = rng.integers(0, communities, products)
    fame = rng.pareto(1.2, products) + 0.2
    quality = rng.normal(0.6, 0.9, products) + rng.normal(0, 0.4, sellers)[seller]
    return Assortment(seller, home, fame, quality, sellers)


def everyday(
    rng: np.random.Generator, rng_nested: np.random.Generator, reviews: int, catalogue: Assortment, made: TasteSettings
) -> tuple[Written, Lives]:
    """Reviews along each product's life, on sale days and in the rush for a viral product."""
    home, fame, products, people = catalogue.home, catalogue.fame, len(catalogue.home), reviews // 5
    activity = rng.lognormal(0, 1.1, people)
    activity[:5] = activity.max() + 300 * activity.sum() / reviews * rng.uniform(0.5, 1.5, 5)
    taste, bias = rng.integers(0, made.communities, people), rng.normal(0, 0.6, people)
    share = rng.beta(2.7 * made.loyalty, 2.7 * (1 - made.loyalty), people)
    who = rng.choice(people, reviews, p=activity / activity.sum())
    product = rng.choice(products, reviews, p=fame / fame.sum())
    inside = rng.random(reviews) < share[who]
    for community in range(made.communities):
        own, mine = np.flatnonzero(home == community), np.flatnonzero(inside & (taste[who] == community))
        product[mine] = rng.choice(own, len(mine), p=fame[own] / fame[own].sum())
    if made.nested > 1:
        _narrow(rng_nested, product, who, np.flatnonzero(inside), catalogue, made.nested)
    launch = np.maximum(rng.uniform(-365, DAYS, products), 0)
    day = launch[product] + rng.exponential(rng.gamma(2, 120, products)[product])
    day = np.where(day < DAYS, day, rng.uniform(launch[product], DAYS))
    day = np.where(rng.random(reviews) < 0.12, rng.choice(SALES, reviews) + rng.normal(0, 2.5, reviews), day)
    for viral in rng.choice(products, 15, replace=False):
        moved = np.flatnonzero((product == viral) & (rng.random(reviews) < 0.7))
        day[moved] = rng.uniform(30, DAYS - 30) + rng.exponential(7, len(moved))
    liking = catalogue.quality[product] + bias[who] + rng.normal(0, 0.8, reviews)
    return Written(who, product, day, liking), Lives(launch, bias)


def _narrow(
    rng: np.random.Generator, product: Numbers, who: Numbers, inside: Numbers, catalogue: Assortment, nested: int
) -> None:
    """Moves half of the loyal reviews to the narrower taste of their author, within the community."""
    group = catalogue.home * nested + rng.integers(0, nested, len(catalogue.home))
    own = rng.integers(0, nested, int(who.max()) + 1)
    moved = inside[rng.random(len(inside)) < 0.5]
    wanted = catalogue.home[product[moved]] * nested + own[who[moved]]
    for taste in np.unique(wanted):
        of_taste, rows = np.flatnonzero(group == taste), moved[wanted == taste]
        if len(of_taste):
            fame = catalogue.fame[of_taste]
            product[rows] = rng.choice(of_taste, len(rows), p=fame / fame.sum())


def fans(rng: np.random.Generator, people: int, share: float, catalogue: Assortment, lives: Lives) -> Written:
    """Reviews of brands by their fans: soon after a launch, mostly, and better than others find them."""
    size = np.bincount(catalogue.seller, minlength=catalogue.n_sellers)
    brands = np.flatnonzero(size >= BRAND_PRODUCTS)
    count = round(share * people)
    brands = rng.choice(brands, min(max(count // BRAND_FANS, 1), len(brands)), replace=False)
    fan = rng.choice(people, count, replace=False)
    brand = rng.choice(brands, count)
    many = rng.poisson(4.0, count)
    who, of = np.repeat(fan, many), np.repeat(brand, many)
    product = np.zeros(len(who), np.int64)
    for seller in brands:
        rows = np.flatnonzero(of == seller)
        product[rows] = rng.choice(np.flatnonzero(catalogue.seller == seller), len(rows))
    soon = rng.random(len(who)) < 0.6
    day = lives.launch[product] + np.where(soon, rng.exponential(15, len(who)), rng.exponential(200, len(who)))
    liking = catalogue.quality[product] + lives.bias[who] + rng.normal(1.0, 0.8, len(who))
    return Written(who, product, day, liking)


def deals(rng: np.random.Generator, people: int, sites: int, catalogue: Assortment, lives: Lives) -> Written:
    """Reviews by followers of deal sites: one product a week, a few days, ratings like anybody's."""
    parts: list[tuple[Numbers, Numbers, Floats]] = []
    for _ in range(sites):
        followers = rng.choice(people, max(round(FOLLOWERS * people), 2), replace=False)
        for week in np.flatnonzero(rng.random(DAYS // 7) < 0.7):
            there = np.flatnonzero(lives.launch < 7 * week)
            deal = int(rng.choice(there, p=catalogue.fame[there] / catalogue.fame[there].sum())) if len(there) else 0
            takers = followers[rng.random(len(followers)) < TAKES_PART]
            parts.append((takers, np.full(len(takers), deal), 7.0 * week + rng.uniform(0, 5, len(takers))))
    who, product, day = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Written(who, product, day, catalogue.quality[product] + lives.bias[who] + rng.normal(0, 0.8, len(who)))


def passers_by(rng: np.random.Generator, first: int, many: int, catalogue: Assortment, lives: Lives) -> Written:
    """One review each by people who write no other, numbered from ``first``: on what is famous, along its life."""
    product = rng.choice(len(catalogue.fame), many, p=catalogue.fame / catalogue.fame.sum())
    day = lives.launch[product] + rng.exponential(240.0, many)
    day = np.where(day < DAYS, day, rng.uniform(lives.launch[product], DAYS))
    return Written(
        np.arange(first, first + many), product, day, catalogue.quality[product] + rng.normal(0.0, 1.0, many)
    )
