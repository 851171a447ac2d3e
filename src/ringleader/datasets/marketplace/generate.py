"""A believable marketplace with known truth: honest buyers, brokers, paid reviewers, and the labels one would have.

``marketplace(100_000, difficulty="medium", seed=0)`` returns the reviews, the known labels and the truth. The parts
are drawn in this order, each from its own stream of the one seed: people and products (``people``), rings and
campaigns (``abuse``), honest reviews (``organic``), and what is known (``protocol``).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ringleader.datasets.marketplace.abuse import commit_abuse
from ringleader.datasets.marketplace.organic import ReviewRows, bursts, everyday, reading_circles
from ringleader.datasets.marketplace.people import draw_catalogue, draw_people
from ringleader.datasets.marketplace.protocol import follow_protocol
from ringleader.datasets.marketplace.settings import LAST_SECOND, WEEK, MarketSettings, settle
from ringleader.errors import SettingsError, StorageError
from ringleader.runtime.outputs import check_writable, reason_of, whole_file

__all__ = ["FILES", "Marketplace", "marketplace"]

FILES = ("reviews.parquet", "labels.csv", "truth.csv")
"""What ``Marketplace.write`` writes."""


@dataclass(frozen=True)
class Marketplace:
    """A generated market.

    reviews : reviewer, product, seller (text), rating (1-5), timestamp (Unix seconds), sorted by time
    labels  : mode, entity, label (1 bad, 0 good), target; the accounts one would know
    truth   : mode, entity, label, target, ring, split (known, test or rest); every account with a review
    settings: every number the generator used
    """

    reviews: pd.DataFrame
    labels: pd.DataFrame
    truth: pd.DataFrame
    settings: dict[str, Any]

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write reviews.parquet, labels.csv and truth.csv into ``folder``, which is made where missing.

        Files of these names that are there are refused, unless they are to be overwritten.
        """
        target = Path(folder)
        paths = [target / name for name in FILES]
        check_writable(*paths, overwrite=overwrite)
        try:
            target.mkdir(parents=True, exist_ok=True)
            with contextlib.ExitStack() as written:  # all three are on disk before the first has its name
                reviews, labels, truth = (
                    written.enter_context(whole_file(path, overwrite=overwrite)) for path in paths
                )
                self.reviews.to_parquet(reviews, index=False)
                for table, path in ((self.labels, labels), (self.truth, truth)):
                    table.to_csv(path, index=False, lineterminator="\n")
        except OSError as error:
            raise StorageError(
                f"cannot write the market into {target}: {reason_of(error)}; choose another folder"
            ) from error
        return target


def marketplace(
    reviews: int = 100_000,
    *,
    difficulty: str = "medium",
    seed: int = 0,
    weeks: int | None = None,
    sellers: int | None = None,
    products: int | None = None,
    reviewers: int | None = None,
    rings: int | None = None,
    abusive: float | None = None,
    unseen_rings: float | None = None,
    attackers: float | None = None,
    clients: float | None = None,
    pool: float | None = None,
    density: float | None = None,
    campaigns: float | None = None,
    camouflage: float | None = None,
    slow_drip: float | None = None,
    three_weeks: float | None = None,
    poor_quality: float | None = None,
    look_alikes: float | None = None,
    clubs: float | None = None,
    waves: float | None = None,
    overlap: float | None = None,
    turnover: float | None = None,
) -> Marketplace:
    """Generate a market of exactly ``reviews`` reviews. The same arguments give the same bytes.

    Sizes (None: in proportion to ``reviews``)
        weeks        : length of the market, 156
        sellers      : 10,000 at one million reviews; those without a review do not appear
        products     : 32,000 at one million
        reviewers    : 130,000 at one million; those without a review do not appear
        rings        : brokers; the abusive sellers over ``clients``, at least three
        abusive      : share of the sellers who buy reviews, 0.09
        unseen_rings : share of the rings of which nobody is known, 0.2
        attackers    : share of the abusive sellers who buy attacks on competitors, 0.25
    Difficulty (None: set by ``difficulty``)
        clients      : abusive sellers per ring
        pool         : paid reviewers per abusive seller
        density      : chance that a member of a pool takes part in a campaign (thinner in larger markets)
        campaigns    : campaigns per abusive seller, on average
        camouflage   : honest reviews per paid one of a paid reviewer
        slow_drip    : share of the campaigns that last 12 to 26 weeks
        three_weeks  : share of the campaigns that last about three weeks; the others last 4 to 10
        poor_quality : how much worse the products of abusive sellers are, in units of liking
        look_alikes  : honest bursts (viral products, launches, deals) per seller
        clubs        : reading circles per ring: honest people who do act in lockstep
        waves        : share of a community's reviews of its niche products that come in one wave of weeks
        overlap      : share of the paid reviewers who serve two brokers
        turnover     : how often a pool is replaced over the life of its ring
    """
    settings = settle(
        reviews,
        difficulty,
        seed,
        sizes={"weeks": weeks, "sellers": sellers, "products": products, "reviewers": reviewers, "rings": rings},
        shares={
            "abusive": abusive,
            "unseen_rings": unseen_rings,
            "attackers": attackers,
            "clients": clients,
            "pool": pool,
            "density": density,
            "campaigns": campaigns,
            "camouflage": camouflage,
            "slow_drip": slow_drip,
            "three_weeks": three_weeks,
            "poor_quality": poor_quality,
            "look_alikes": look_alikes,
            "clubs": clubs,
            "waves": waves,
            "overlap": overlap,
            "turnover": turnover,
        },
    )
    return _generate(settings)


def _generate(settings: MarketSettings) -> Marketplace:
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(settings.seed).spawn(8)]
    people = draw_people(streams[0], settings)
    catalogue = draw_catalogue(streams[1], settings, people.communities)
    abuse, people, catalogue = commit_abuse(streams[2], settings, people, catalogue)
    paid = ReviewRows(*abuse.paid[:5])
    if len(paid.reviewer) > settings.reviews // 2:
        raise SettingsError(
            f"the campaigns alone take {len(paid.reviewer)} of {settings.reviews} reviews; "
            "lower density, campaigns, abusive or sellers, or raise reviews"
        )
    circles = reading_circles(streams[3], settings, people, catalogue, np.unique(paid.reviewer))
    rows = _append(paid, circles, bursts(streams[4], settings, people, catalogue))
    wanted = settings.reviews - len(paid.reviewer)
    for _ in range(8):  # more than needed, because nobody reviews a product twice
        rows = _once_each(_append(rows, everyday(streams[5], settings, people, catalogue, round(1.06 * wanted) + 200)))
        if len(rows.reviewer) >= settings.reviews:
            break
    else:
        raise SettingsError(
            f"{settings.reviewers} reviewers and {settings.products} products leave room for only "
            f"{len(rows.reviewer)} of {settings.reviews} reviews; pass more reviewers or products"
        )
    rows = _trim(streams[6], rows, settings.reviews, len(paid.reviewer))
    names = _names(streams[7], settings)
    labels, truth = follow_protocol(
        streams[7],
        settings,
        abuse,
        np.bincount(rows.seller, minlength=settings.sellers),
        np.bincount(rows.reviewer, minlength=settings.reviewers),
        names,
    )
    return Marketplace(_frame(rows, names, settings), labels, truth, settings.as_dict())


def _append(*parts: ReviewRows) -> ReviewRows:
    return ReviewRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _once_each(rows: ReviewRows) -> ReviewRows:
    """Nobody reviews a product twice: keep the first row of each (reviewer, product), in the order they stand."""
    key = rows.reviewer * (int(rows.product.max()) + 1) + rows.product
    keep = np.sort(np.unique(key, return_index=True)[1])
    return ReviewRows(*(column[keep] for column in rows))


def _trim(rng: np.random.Generator, rows: ReviewRows, size: int, paid: int) -> ReviewRows:
    """``size`` rows by time: all of the first ``paid``, honest ones at random."""
    honest = rng.choice(len(rows.reviewer) - paid, size - paid, replace=False) + paid
    keep = np.concatenate([np.arange(paid), np.sort(honest)])
    order = keep[np.argsort(rows.when[keep], kind="stable")]
    return ReviewRows(*(column[order] for column in rows))


def _names(rng: np.random.Generator, settings: MarketSettings) -> dict[str, npt.NDArray[np.str_]]:
    """Ids in random order, so that they say nothing about the account."""
    sizes = {"reviewer": settings.reviewers, "product": settings.products, "seller": settings.sellers}
    names = {}
    for mode, size in sizes.items():
        width = len(str(size))
        names[mode] = np.array([f"{mode[0].upper()}{code:0{width}d}" for code in rng.permutation(size)])
    names["ring"] = np.array([f"B{code:03d}" for code in range(settings.rings)])
    return names


def _frame(rows: ReviewRows, names: dict[str, npt.NDArray[np.str_]], settings: MarketSettings) -> pd.DataFrame:
    opening = LAST_SECOND - settings.weeks * WEEK
    return pd.DataFrame(
        {
            "reviewer": pd.Series(names["reviewer"]).to_numpy()[rows.reviewer],
            "product": pd.Series(names["product"]).to_numpy()[rows.product],
            "seller": pd.Series(names["seller"]).to_numpy()[rows.seller],
            "rating": rows.rating.astype(np.int64),
            "timestamp": opening + np.floor(rows.when).astype(np.int64),
        }
    )
