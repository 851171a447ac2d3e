"""A second, smaller kind of market, made on other assumptions than ``ringleader.datasets``: defaults are tried on both.

Honest people belong to communities and place a share of their reviews in their own; products live and fade; everybody
buys on two sale days; some products go viral; a few honest people review hundreds. Rings work through their clients'
products in campaigns or at leisure, and have tastes of their own. Paid accounts may also be used once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

DAYS, SALES, FIRST_DAY = 730, (327.0, 692.0), "2019-01-03"


class Ring(NamedTuple):
    """Rings of one kind. ``campaign`` is how many days a product is worked on; 0 for the whole time."""

    number: int = 8
    reviewers: int = 25
    sellers: int = 5
    products: int = 15
    jobs: int = 5  # of each reviewer
    honest: float = 6.0  # further reviews of each
    span: float = 250.0
    campaign: float = 45.0


class TasteMarket(NamedTuple):
    """``reviews``: reviewer, product, seller, rating, timestamp. ``bad``: mode -> the abusive."""

    reviews: pd.DataFrame
    bad: dict[str, set[str]]


class _Rows:
    """Reviews as they are written: who, what, which day, how much it was liked."""

    def __init__(self) -> None:
        self.parts: list[pd.DataFrame] = []

    def add(self, reviewer: object, product: object, day: object, liking: object) -> None:
        self.parts.append(pd.DataFrame({"reviewer": reviewer, "product": product, "day": day, "liking": liking}))


def taste_market(
    seed: int,
    *,
    reviews: int = 40_000,
    communities: int = 15,
    loyalty: float = 0.56,
    rings: Ring | None = None,
    used_once: int = 0,
) -> TasteMarket:
    """A market. ``loyalty`` is the mean share of reviews in the own community, ``used_once`` the sellers who buy
    fifteen to forty reviews each from accounts that write no other."""
    rng = np.random.default_rng([seed, 0x7A57E])
    people, products, sellers = reviews // 5, reviews // 13, reviews // 80
    weight = rng.pareto(1.3, sellers) + 0.3
    seller = rng.choice(sellers, products, p=weight / weight.sum())
    home = rng.integers(0, communities, products)
    fame = rng.pareto(1.2, products) + 0.2
    quality = rng.normal(0.6, 0.9, products) + rng.normal(0, 0.4, sellers)[seller]
    rows = _Rows()
    _honest(rng, rows, reviews, people, home, fame, quality, communities, loyalty)

    def tasteful(many: int, community: int) -> np.ndarray:
        own = np.flatnonzero(home == community)
        inside = rng.choice(own, many, p=fame[own] / fame[own].sum())
        anywhere = rng.choice(products, many, p=fame / fame.sum())
        return np.where(rng.random(many) < loyalty, inside, anywhere)

    clients = list(rng.permutation(np.flatnonzero(np.bincount(seller, minlength=sellers) >= 2)))
    bad: dict[str, set[str]] = {"reviewer": set(), "seller": set()}
    next_one = people
    for _ in range(rings.number if rings else 0):
        assert rings is not None
        bought = np.flatnonzero(np.isin(seller, [clients.pop() for _ in range(rings.sellers)]))
        chosen = rng.choice(bought, min(rings.products, len(bought)), replace=False)
        begin = rng.uniform(0, DAYS - rings.span)
        when = begin + rng.uniform(0, rings.span, len(chosen))
        for member in range(next_one, next_one + rings.reviewers):
            at = rng.choice(len(chosen), min(rings.jobs, len(chosen)), replace=False)
            campaign = when[at] + rng.uniform(0, rings.campaign or 1, len(at))
            day = campaign if rings.campaign else begin + rng.uniform(0, rings.span, len(at))
            rows.add(member, chosen[at], day, rng.normal(2.2, 0.5, len(at)))
            many = rng.poisson(rings.honest)
            other = tasteful(many, member % communities)
            rows.add(member, other, rng.uniform(0, DAYS, many), quality[other] + rng.normal(0, 1, many))
            bad["reviewer"].add(str(member))
        next_one += rings.reviewers
        bad["seller"] |= {str(s) for s in seller[chosen]}
    for client in (clients.pop() for _ in range(used_once)):
        many = int(rng.integers(15, 40))
        bought = rng.choice(np.flatnonzero(seller == client), many)
        day = rng.uniform(0, DAYS - 60) + rng.uniform(0, 45, many)
        rows.add(np.arange(next_one, next_one + many), bought, day, rng.normal(2.2, 0.5, many))
        bad["reviewer"] |= {str(i) for i in range(next_one, next_one + many)}
        bad["seller"].add(str(client))
        next_one += many
    return TasteMarket(_table(rng, rows, seller), bad)


def _honest(
    rng: np.random.Generator,
    rows: _Rows,
    reviews: int,
    people: int,
    home: np.ndarray,
    fame: np.ndarray,
    quality: np.ndarray,
    communities: int,
    loyalty: float,
) -> None:
    products = len(home)
    activity = rng.lognormal(0, 1.1, people)
    activity[:5] = activity.max() + 300 * activity.sum() / reviews * rng.uniform(0.5, 1.5, 5)
    taste, bias = rng.integers(0, communities, people), rng.normal(0, 0.6, people)
    share = rng.beta(2.7 * loyalty, 2.7 * (1 - loyalty), people)
    who = rng.choice(people, reviews, p=activity / activity.sum())
    product = rng.choice(products, reviews, p=fame / fame.sum())
    inside = rng.random(reviews) < share[who]
    for community in range(communities):
        own, mine = np.flatnonzero(home == community), np.flatnonzero(inside & (taste[who] == community))
        product[mine] = rng.choice(own, len(mine), p=fame[own] / fame[own].sum())
    launch = np.maximum(rng.uniform(-365, DAYS, products), 0)
    day = launch[product] + rng.exponential(rng.gamma(2, 120, products)[product])
    day = np.where(day < DAYS, day, rng.uniform(launch[product], DAYS))
    day = np.where(rng.random(reviews) < 0.12, rng.choice(SALES, reviews) + rng.normal(0, 2.5, reviews), day)
    for viral in rng.choice(products, 15, replace=False):
        moved = np.flatnonzero((product == viral) & (rng.random(reviews) < 0.7))
        day[moved] = rng.uniform(30, DAYS - 30) + rng.exponential(7, len(moved))
    rows.add(who, product, day, quality[product] + bias[who] + rng.normal(0, 0.8, reviews))


def _table(rng: np.random.Generator, rows: _Rows, seller: np.ndarray) -> pd.DataFrame:
    made = pd.concat(rows.parts, ignore_index=True)
    made = made[made["day"].between(0, DAYS - 1e-4)]
    made = made.iloc[rng.permutation(len(made))].reset_index(drop=True)
    second = np.floor(made["day"].to_numpy() * 86_400).astype(np.int64)
    return pd.DataFrame(
        {
            "reviewer": made["reviewer"].astype(str),
            "product": made["product"].astype(str),
            "seller": seller[made["product"].to_numpy(np.int64)].astype(str),
            "rating": np.clip(np.round(3.4 + made["liking"]), 1, 5).astype(int),
            "timestamp": pd.Timestamp(FIRST_DAY) + pd.to_timedelta(second, unit="s"),
        }
    )
