"""What is known and what is tested: the published label protocol, and the truth beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.datasets.marketplace.abuse import ATTACK, BOOST, Abuse
from ringleader.datasets.marketplace.settings import WEEK, MarketSettings

TARGETS = ("abuse", "boost", "attack")
REST, KNOWN, TEST = 0, 1, 2
SPLITS = np.array(["rest", "known", "test"])

# Counts at one million reviews.
KNOWN_BAD_SELLERS = 300
TEST_BAD_SELLERS = 375
GOOD_PER_BAD_SELLER = 3
TEST_BAD_REVIEWERS = 2_100
KNOWN_SHARE_OF_BAD_REVIEWERS = 0.1
GOOD_PER_KNOWN_BAD_REVIEWER = 0.95

AUDIT_BIAS = 1.0
"""Honest reviewers come to the protocol's notice in proportion to (reviews)^AUDIT_BIAS: auditors meet busy people."""

SELLER_REVIEWS, REVIEWER_REVIEWS = 10, 3
"""Honest accounts with fewer reviews are not audited."""


class ModeTruth(NamedTuple):
    """The truth about one mode, an array of n entities each."""

    names: npt.NDArray[np.str_]
    present: Bools  # has a review
    boost: Bools
    attack: Bools
    ring: npt.NDArray[np.object_]  # "" for the honest
    split: Numbers


def follow_protocol(
    rng: np.random.Generator,
    settings: MarketSettings,
    abuse: Abuse,
    seller_reviews: Numbers,
    reviewer_reviews: Numbers,
    names: dict[str, npt.NDArray[np.str_]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(labels, truth): ``labels`` holds the known rows of ``truth`` without ring and split."""
    clients, campaigns, paid = abuse.clients, abuse.campaigns, abuse.paid
    payer = campaigns.client[paid.campaign]
    discovered = _discovered(rng, settings, clients.seller, payer, paid.when)
    unseen = _unseen_rings(rng, settings, clients.ring, discovered)
    split, cut = _split_sellers(rng, settings, clients.seller, unseen[clients.ring], discovered, seller_reviews)

    kind = campaigns.kind[paid.campaign]
    ring = campaigns.ring[paid.campaign]
    seller_rings = _join_rings(settings.sellers, clients.seller, clients.ring, names["ring"])
    sellers = ModeTruth(
        names["seller"],
        seller_reviews > 0,
        _marked(settings.sellers, payer[kind == BOOST]),
        _marked(settings.sellers, payer[kind == ATTACK]),
        seller_rings,
        split,
    )
    sees_unseen = _marked(settings.reviewers, paid.reviewer[unseen[ring]])
    early = _marked(settings.reviewers, paid.reviewer[paid.when < cut])
    reviewers = ModeTruth(
        names["reviewer"],
        reviewer_reviews > 0,
        _marked(settings.reviewers, paid.reviewer[kind == BOOST]),
        _marked(settings.reviewers, paid.reviewer[kind == ATTACK]),
        _join_rings(settings.reviewers, paid.reviewer, ring, names["ring"]),
        _split_reviewers(
            rng, settings, _marked(settings.reviewers, paid.reviewer), early & ~sees_unseen, reviewer_reviews
        ),
    )
    truth = pd.concat([_table("seller", sellers), _table("reviewer", reviewers)], ignore_index=True)
    labels = truth.loc[truth["split"] == "known", ["mode", "entity", "label", "target"]].reset_index(drop=True)
    return labels, truth


def _discovered(
    rng: np.random.Generator, settings: MarketSettings, seller: Numbers, payer: Numbers, when: Floats
) -> Floats:
    """When each client is found out: some weeks after the middle of what it paid for."""
    total = np.bincount(payer, weights=when, minlength=settings.sellers)
    number = np.bincount(payer, minlength=settings.sellers)
    middle: Floats = total[seller] / np.maximum(number[seller], 1)
    return middle + rng.exponential(4.0, len(seller)) * WEEK


def _unseen_rings(rng: np.random.Generator, settings: MarketSettings, ring: Numbers, discovered: Floats) -> Bools:
    """Rings of which nobody is known: a share of all, among those with a client found late."""
    late = np.unique(ring[discovered > np.median(discovered)])
    number = min(round(settings.unseen_rings * settings.rings), settings.rings - 2, len(late))
    number = max(number, 1) if settings.unseen_rings > 0 else 0
    unseen = np.zeros(settings.rings, dtype=bool)
    unseen[rng.choice(late, number, replace=False)] = True
    return unseen


def _split_sellers(
    rng: np.random.Generator,
    settings: MarketSettings,
    seller: Numbers,
    hidden: Bools,
    discovered: Floats,
    reviews: Numbers,
) -> tuple[Numbers, float]:
    """Splits of all sellers, and the second of the last known bad one: bad test sellers are found after it."""
    honest = np.ones(settings.sellers, dtype=bool)
    honest[seller] = False
    audited = np.flatnonzero(honest & (reviews >= SELLER_REVIEWS))
    most = len(audited) // (2 * GOOD_PER_BAD_SELLER)
    present = reviews[seller] > 0
    known_bad = max(3, min(round(KNOWN_BAD_SELLERS * settings.scale), len(seller) // 3, most))
    test_bad = max(3, min(round(TEST_BAD_SELLERS * settings.scale), int(0.42 * len(seller)), most))

    by_discovery = np.argsort(discovered, kind="stable")
    by_discovery = by_discovery[present[by_discovery]]
    early = by_discovery[:-test_bad]  # the last ones are kept for the test, so that it has them at any size
    early = early[~hidden[early]][: round(1.35 * known_bad)]
    known = rng.permutation(early)[:known_bad]
    cut = float(discovered[known].max())
    test = rng.permutation(by_discovery[discovered[by_discovery] > cut])[:test_bad]
    split = np.zeros(settings.sellers, dtype=np.int64)
    split[seller[known]], split[seller[test]] = KNOWN, TEST

    good = rng.permutation(audited)
    n_known, n_test = GOOD_PER_BAD_SELLER * len(known), GOOD_PER_BAD_SELLER * len(test)
    split[good[:n_known]] = KNOWN
    split[good[n_known : n_known + n_test]] = TEST
    return split, cut


def _split_reviewers(
    rng: np.random.Generator, settings: MarketSettings, bad: Bools, may_be_known: Bools, reviews: Numbers
) -> Numbers:
    split = np.zeros(settings.reviewers, dtype=np.int64)
    number = int(bad.sum())
    known = rng.permutation(np.flatnonzero(may_be_known))[: max(3, round(KNOWN_SHARE_OF_BAD_REVIEWERS * number))]
    split[known] = KNOWN
    free = np.flatnonzero(bad & (split == REST))
    test_bad = max(3, min(round(TEST_BAD_REVIEWERS * settings.scale), int(0.75 * number)))
    test = rng.permutation(free)[:test_bad]
    split[test] = TEST

    audited = np.flatnonzero(~bad & (reviews >= REVIEWER_REVIEWS))
    # Weighted sampling without replacement: the largest of (log u) / weight (Efraimidis and Spirakis).
    key = np.log(rng.random(len(audited))) / reviews[audited] ** AUDIT_BIAS
    good = audited[np.argsort(-key, kind="stable")]
    n_known = max(3, round(GOOD_PER_KNOWN_BAD_REVIEWER * len(known)))
    picked = rng.permutation(good[: n_known + len(test)])
    split[picked[:n_known]] = KNOWN
    split[picked[n_known:]] = TEST
    return split


def _marked(size: int, members: Numbers) -> Bools:
    marks = np.zeros(size, dtype=bool)
    marks[members] = True
    return marks


def _join_rings(size: int, member: Numbers, ring: Numbers, names: npt.NDArray[np.str_]) -> npt.NDArray[np.object_]:
    """The ring of every entity, ``B1|B2`` for who serves two, empty for the honest."""
    joined = np.full(size, "", dtype=object)
    who, which = np.unique(np.stack([member, ring]), axis=1)
    for entity, code in zip(who, which, strict=True):
        joined[entity] = f"{joined[entity]}|{names[code]}" if joined[entity] else str(names[code])
    return joined


def _table(mode: str, truth: ModeTruth) -> pd.DataFrame:
    """Three rows for each entity with a review: any abuse, boosting, attacking. Sorted by entity."""
    rows = np.flatnonzero(truth.present)
    rows = rows[np.argsort(truth.names[rows], kind="stable")]
    flags = np.stack([truth.boost | truth.attack, truth.boost, truth.attack], axis=1)[rows]
    entity = np.repeat(rows, len(TARGETS))
    return pd.DataFrame(
        {
            "mode": np.full(len(entity), mode),
            "entity": truth.names[entity],
            "label": flags.ravel().astype(np.int64),
            "target": np.tile(np.array(TARGETS), len(rows)),
            "ring": truth.ring[entity],
            "split": SPLITS[truth.split[entity]],
        }
    )
