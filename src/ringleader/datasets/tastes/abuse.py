"""Abuse of a market of tastes: rings whose members have tastes of their own, and accounts that are used once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Numbers
from ringleader.datasets.tastes.honest import Assortment, Written
from ringleader.datasets.tastes.settings import DAYS, Rings, TasteSettings
from ringleader.errors import SettingsError


class Guilty(NamedTuple):
    """Who abuses: the ring of each, by number of the account."""

    reviewers: dict[int, str]
    sellers: dict[int, str]


def commit(
    rng: np.random.Generator, made: TasteSettings, people: int, catalogue: Assortment
) -> tuple[list[Written], Guilty]:
    """Paid reviews, the honest ones of those who write them, and who is guilty. New accounts follow on ``people``."""
    seller = catalogue.seller
    clients = list(rng.permutation(np.flatnonzero(np.bincount(seller, minlength=catalogue.n_sellers) >= 2)))
    wanted = sum(kind.number * kind.sellers for kind in made.rings) + made.used_once
    if wanted > len(clients):
        raise SettingsError(
            f"the rings need {wanted} sellers with two products or more and there are {len(clients)}; "
            "raise reviews, or choose fewer rings"
        )
    rows: list[Written] = []
    guilty = Guilty({}, {})
    for kind in made.rings:
        for _ in range(kind.number):
            name = f"B{len(set(guilty.reviewers.values())):03d}"
            first = people + len(guilty.reviewers)
            bought = np.flatnonzero(np.isin(seller, [clients.pop() for _ in range(kind.sellers)]))
            rows += _ring(rng, kind, made, first, bought, catalogue, name, guilty)
    for client in (clients.pop() for _ in range(made.used_once)):
        name, first = f"B{len(set(guilty.reviewers.values())):03d}", people + len(guilty.reviewers)
        many = int(rng.integers(made.once_least, made.once_most + 1))
        products = rng.choice(np.flatnonzero(seller == client), many)
        day = rng.uniform(0, DAYS - 60) + rng.uniform(0, made.once_days, many)
        rows.append(Written(np.arange(first, first + many), products, day, rng.normal(2.2, 0.5, many)))
        guilty.reviewers.update(dict.fromkeys(range(first, first + many), name))
        guilty.sellers[int(client)] = name
    return rows, guilty


def _ring(
    rng: np.random.Generator,
    kind: Rings,
    made: TasteSettings,
    first: int,
    bought: Numbers,
    catalogue: Assortment,
    name: str,
    guilty: Guilty,
) -> list[Written]:
    chosen = rng.choice(bought, min(kind.products, len(bought)), replace=False)
    begin = rng.uniform(0, DAYS - kind.span)
    when = begin + rng.uniform(0, kind.span, len(chosen))
    rows = []
    for member in range(first, first + kind.reviewers):
        at = rng.choice(len(chosen), min(kind.jobs, len(chosen)), replace=False)
        campaign = when[at] + rng.uniform(0, kind.campaign or 1, len(at))
        day = campaign if kind.campaign else begin + rng.uniform(0, kind.span, len(at))
        rows.append(Written(np.full(len(at), member), chosen[at], day, rng.normal(2.2, 0.5, len(at))))
        many = rng.poisson(kind.honest)
        other = _tasteful(rng, many, member % made.communities, made.loyalty, catalogue)
        liking = catalogue.quality[other] + rng.normal(0, 1, many)
        rows.append(Written(np.full(many, member), other, rng.uniform(0, DAYS, many), liking))
        guilty.reviewers[member] = name
    guilty.sellers.update(dict.fromkeys(catalogue.seller[chosen].tolist(), name))
    return rows


def _tasteful(rng: np.random.Generator, many: int, community: int, loyalty: float, catalogue: Assortment) -> Numbers:
    """Products that somebody of a community reviews."""
    own, fame = np.flatnonzero(catalogue.home == community), catalogue.fame
    inside = rng.choice(own, many, p=fame[own] / fame[own].sum())
    anywhere = rng.choice(len(fame), many, p=fame / fame.sum())
    return np.where(rng.random(many) < loyalty, inside, anywhere)
