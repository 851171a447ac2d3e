"""Brokers, their pools of paid reviewers, their clients, and the campaigns these buy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.datasets.marketplace.people import Catalogue, People
from ringleader.datasets.marketplace.settings import WEEK, MarketSettings

BOOST, ATTACK = 0, 1

WILLING = 0.4
"""Share of a pool who also take attacking jobs."""

ATTACK_ONLY = 0.08
"""Share of the attacking clients who boost nothing of their own."""


class Pools(NamedTuple):
    """Memberships of paid reviewers in pools, sorted by ring. Someone who serves two brokers has two rows."""

    ring: Numbers
    reviewer: Numbers
    joined: Floats  # seconds
    left: Floats
    diligence: Floats  # chance to take part in a campaign that runs while a member
    attacks: Numbers  # 1 for those who also take attacking jobs


class Clients(NamedTuple):
    """The sellers who buy reviews."""

    seller: Numbers
    ring: Numbers
    attacks: Numbers  # 0 boosts only, 1 both, 2 attacks only


class Campaigns(NamedTuple):
    """What was bought: who gets reviews, of which kind, when."""

    ring: Numbers
    client: Numbers  # seller who pays
    product: Numbers
    seller: Numbers  # seller who is reviewed: the client, or the victim
    kind: Numbers  # BOOST or ATTACK
    start: Floats
    span: Floats  # seconds


class Paid(NamedTuple):
    """Paid reviews, one row each."""

    reviewer: Numbers
    product: Numbers
    seller: Numbers
    rating: Numbers
    when: Floats
    campaign: Numbers  # row of Campaigns


class Abuse(NamedTuple):
    pools: Pools
    clients: Clients
    campaigns: Campaigns
    paid: Paid


def commit_abuse(
    rng: np.random.Generator, settings: MarketSettings, people: People, catalogue: Catalogue
) -> tuple[Abuse, People, Catalogue]:
    """Plan and carry out every campaign.

    Returns the abuse, and the people and catalogue as the abuse leaves them: paid reviewers with enough honest
    reviews for camouflage, boosted products not launched after their campaign.
    """
    span = settings.weeks * WEEK
    per_ring = _split(rng, settings.bad_sellers, settings.rings, lowest=2, unevenness=0.5)
    length = rng.uniform(0.5, 1.0, settings.rings) * span
    opened = rng.random(settings.rings) * (span - length)
    pools = _recruit(rng, settings, per_ring, opened, length)
    clients = _find_clients(rng, settings, per_ring)
    campaigns = _plan(rng, settings, clients, catalogue, opened, length)
    paid = _carry_out(rng, campaigns, pools)
    return (
        Abuse(pools, clients, campaigns, paid),
        _camouflage(rng, settings, people, pools, paid),
        _adjust_products(settings, catalogue, clients, campaigns),
    )


def _split(rng: np.random.Generator, total: int, parts: int, lowest: int, unevenness: float) -> Numbers:
    """Whole numbers that sum to ``total``, each at least ``lowest``, of log-normal sizes."""
    weight = rng.lognormal(0.0, unevenness, parts)
    extra = rng.multinomial(total - lowest * parts, weight / weight.sum())
    return extra.astype(np.int64) + lowest


def _recruit(
    rng: np.random.Generator, settings: MarketSettings, per_ring: Numbers, opened: Floats, length: Floats
) -> Pools:
    """Pools grow with the square root of the clientele; members come and go; some serve two brokers."""
    weight = np.sqrt(per_ring) * rng.lognormal(0.0, 0.25, len(per_ring))
    size = np.maximum(12, np.round(settings.bad_reviewers * weight / weight.sum())).astype(np.int64)
    ring = np.repeat(np.arange(len(size)), size)
    reviewer = rng.choice(settings.reviewers, len(ring), replace=False)
    second = np.flatnonzero(rng.random(len(ring)) < settings.overlap)
    other = (ring[second] + rng.integers(1, len(size), len(second))) % len(size)
    ring, reviewer = np.concatenate([ring, other]), np.concatenate([reviewer, reviewer[second]])
    order = np.argsort(ring, kind="stable")
    ring, reviewer = ring[order], reviewer[order]

    # The mean stay is 1 / turnover of the ring's life; who joined before the ring is first seen just joins then.
    stay = rng.gamma(4.0, 0.25, len(ring)) * length[ring] / max(settings.turnover, 1e-3)
    joined = opened[ring] + rng.uniform(-0.5, 0.9, len(ring)).clip(0.0) * length[ring]
    at_first = joined <= opened[ring]
    stay[at_first] *= rng.uniform(0.5, 1.0, int(at_first.sum()))
    joined[at_first] = -np.inf  # members from before the first campaign
    left = np.where(at_first, opened[ring], joined) + stay
    spread = 5.0 / settings.density  # some members are keener than others, by about 0.4 of the mean
    diligence = rng.beta(spread * settings.density, spread * (1.0 - settings.density) + 1e-9, len(ring))
    attacks = (rng.random(len(ring)) < WILLING).astype(np.int64)
    return Pools(ring, reviewer, joined, left, diligence, attacks)


def _find_clients(rng: np.random.Generator, settings: MarketSettings, per_ring: Numbers) -> Clients:
    seller = rng.choice(settings.sellers, settings.bad_sellers, replace=False)
    ring = np.repeat(np.arange(len(per_ring)), per_ring)
    attacks = (rng.random(len(seller)) < settings.attackers).astype(np.int64)
    if settings.attackers > 0 and not attacks.any():
        attacks[rng.integers(len(attacks))] = 1
    attacks[(attacks == 1) & (rng.random(len(seller)) < ATTACK_ONLY)] = 2
    if (attacks > 0).any() and not (attacks == 1).any():
        attacks[np.flatnonzero(attacks)[0]] = 1
    return Clients(seller, ring, attacks)


def _plan(
    rng: np.random.Generator,
    settings: MarketSettings,
    clients: Clients,
    catalogue: Catalogue,
    opened: Floats,
    length: Floats,
) -> Campaigns:
    """Each client engages its broker for some months and buys campaigns for its products or against a rival's."""
    number = 1 + rng.poisson(settings.campaigns - 1.0, len(clients.seller))
    number[clients.attacks == 1] = np.maximum(number[clients.attacks == 1], 2)
    client = np.repeat(np.arange(len(number)), number)
    turn = np.arange(len(client)) - np.repeat(np.cumsum(number) - number, number)
    kind = np.where(rng.random(len(client)) < 0.3, ATTACK, BOOST)
    kind[clients.attacks[client] == 0] = BOOST
    kind[clients.attacks[client] == 2] = ATTACK
    both = clients.attacks[client] == 1
    kind[both & (turn == 0)] = BOOST
    kind[both & (turn == 1)] = ATTACK

    pace = rng.random(len(client))
    weeks = np.where(
        pace < settings.three_weeks,
        rng.uniform(2.0, 4.0, len(client)),
        np.where(
            pace < 1.0 - settings.slow_drip, rng.uniform(4.0, 10.0, len(client)), rng.uniform(12.0, 26.0, len(client))
        ),
    )
    ring = clients.ring[client]
    span = np.minimum(weeks * WEEK, 0.5 * length[ring])
    engaged = rng.uniform(0.0, 0.85, len(number))  # when in the ring's life the client comes
    months = rng.uniform(8.0, 26.0, len(client)) * WEEK * rng.random(len(client))
    start = opened[ring] + engaged[client] * length[ring] + months
    start = np.minimum(start, opened[ring] + length[ring] - span)

    product, seller = _choose_products(rng, settings, clients, client, kind, catalogue)
    return Campaigns(ring, clients.seller[client], product, seller, kind, start, span)


def _choose_products(
    rng: np.random.Generator,
    settings: MarketSettings,
    clients: Clients,
    client: Numbers,
    kind: Numbers,
    catalogue: Catalogue,
) -> tuple[Numbers, Numbers]:
    """Own products for a boost; for an attack a rival's offer of the same product or one in the same category."""
    bad = np.zeros(settings.sellers, dtype=bool)
    bad[clients.seller] = True
    listed_product, column = np.nonzero(catalogue.sellers >= 0)
    listed_seller = catalogue.sellers[listed_product, column]
    by_seller = np.argsort(listed_seller, kind="stable")
    offers = np.split(
        listed_product[by_seller], np.searchsorted(listed_seller[by_seller], np.arange(1, settings.sellers))
    )
    honest = ~bad[listed_seller]
    rival_product, rival_seller = listed_product[honest], listed_seller[honest]
    by_category = np.argsort(catalogue.category[rival_product], kind="stable")
    rival_product, rival_seller = rival_product[by_category], rival_seller[by_category]
    categories = catalogue.category[rival_product]

    product = np.empty(len(client), dtype=np.int64)
    seller = np.empty(len(client), dtype=np.int64)
    previous, deck = -1, np.empty(0, dtype=np.int64)
    for row in range(len(client)):
        if client[row] != previous:  # a client goes through its offers before it repeats one
            previous, deck = client[row], rng.permutation(offers[clients.seller[client[row]]])
        own = deck[0]
        deck = np.roll(deck, -1)
        product[row], seller[row] = own, clients.seller[client[row]]
        if kind[row] == ATTACK:
            beside = [s for s in catalogue.sellers[own] if s >= 0 and not bad[s]]
            low, high = np.searchsorted(categories, [catalogue.category[own], catalogue.category[own] + 1])
            if beside and (rng.random() < 0.5 or low == high):
                seller[row] = beside[rng.integers(len(beside))]
            else:
                pick = rng.integers(low, high) if high > low else rng.integers(len(rival_product))
                product[row], seller[row] = rival_product[pick], rival_seller[pick]
    return product, seller


def _carry_out(rng: np.random.Generator, campaigns: Campaigns, pools: Pools) -> Paid:
    """Every member of the pool takes part with its own diligence, nobody reviews a product twice."""
    edges = np.searchsorted(pools.ring, np.arange(int(pools.ring.max()) + 2))
    members: list[Numbers] = []
    for ring, kind, start, span in zip(campaigns.ring, campaigns.kind, campaigns.start, campaigns.span, strict=True):
        low, high = edges[ring], edges[ring + 1]
        middle = start + span / 2
        eager = rng.random(high - low) < pools.diligence[low:high]
        if kind == ATTACK:
            eager &= pools.attacks[low:high] == 1
        there = (pools.joined[low:high] <= middle) & (pools.left[low:high] >= middle)
        taking = np.flatnonzero(eager & there)
        if len(taking) < 4:  # the broker rings up whoever is nearest
            distance = np.maximum(pools.joined[low:high] - middle, middle - pools.left[low:high])
            taking = np.union1d(taking, np.argsort(distance, kind="stable")[:4])
        members.append(taking + low)
    campaign = np.repeat(np.arange(len(members)), [len(m) for m in members])
    member = np.concatenate(members)
    reviewer, product = pools.reviewer[member], campaigns.product[campaign]
    _, first = np.unique(np.stack([reviewer, product]), axis=1, return_index=True)
    first.sort()
    campaign, reviewer, product = campaign[first], reviewer[first], product[first]
    when = campaigns.start[campaign] + campaigns.span[campaign] * rng.beta(1.1, 1.3, len(campaign))
    boost = campaigns.kind[campaign] == BOOST
    rating = np.where(
        boost,
        np.where(rng.random(len(campaign)) < 0.78, 5, 4),
        np.where(rng.random(len(campaign)) < 0.68, 1, 2),
    )
    return Paid(reviewer, product, campaigns.seller[campaign], rating, when, campaign)


def _camouflage(rng: np.random.Generator, settings: MarketSettings, people: People, pools: Pools, paid: Paid) -> People:
    """Give paid reviewers as many honest reviews per paid one as ``camouflage`` says, and an account old enough."""
    members = np.unique(pools.reviewer)
    jobs = np.bincount(paid.reviewer, minlength=settings.reviewers)[members]
    honest = settings.camouflage * (0.5 * jobs + 0.5 * jobs.mean()) * rng.lognormal(-0.25, 0.7, len(members))
    activity = people.activity.copy()
    activity[members] = 0.0
    activity[members] = honest * activity.sum() / max(settings.reviews - honest.sum() - len(paid.reviewer), 1.0)
    joined, left = people.joined.copy(), people.left.copy()
    np.minimum.at(joined, paid.reviewer, paid.when - 4 * WEEK)
    np.maximum.at(left, paid.reviewer, paid.when + 4 * WEEK)
    return people._replace(activity=activity, joined=joined, left=left)


def _adjust_products(
    settings: MarketSettings, catalogue: Catalogue, clients: Clients, campaigns: Campaigns
) -> Catalogue:
    """Nothing is reviewed before its launch, and who buys reviews may need them: ``poor_quality``."""
    born = catalogue.born.copy()
    np.minimum.at(born, campaigns.product, campaigns.start)
    quality = catalogue.quality - settings.poor_quality * np.isin(catalogue.sellers[:, 0], clients.seller)
    return catalogue._replace(born=born, quality=quality)
