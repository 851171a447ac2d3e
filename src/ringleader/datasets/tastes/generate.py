"""``taste_market``: a market where honest people have structure too, with known truth."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ringleader.arrays import Bools
from ringleader.datasets.marketplace import Marketplace
from ringleader.datasets.tastes.abuse import Guilty, commit
from ringleader.datasets.tastes.honest import Written, deals, draw_catalogue, everyday, fans, passers_by
from ringleader.datasets.tastes.settings import DAYS, KINDS
from ringleader.settings import Choice, Whole, check_setting

FIRST_SECOND = 1_546_473_600
"""3 January 2019, 00:00 UTC: every market begins here."""

SMALLEST = 5_000
"""Reviews below which a market has too few sellers for its rings."""

KNOWN_BAD, GOOD_PER_BAD, UNSEEN = 0.25, 3, 0.2
"""Share of the bad who are known, known good for each, and share of the rings of which nobody is known."""


def taste_market(reviews: int = 40_000, *, kind: str = "everything", seed: int = 0, **changes: Any) -> Marketplace:
    """A market of about ``reviews`` reviews. The same arguments give the same bytes.

    Parameters
    ----------
    reviews : everyday reviews; fans, deal sites, passers-by and rings add theirs.
    kind : a name of ``KINDS``: what the market is made of.
    changes : settings of ``TasteSettings`` that differ from those of the kind, by name.
    """
    check_setting("reviews", reviews, Whole(SMALLEST))
    check_setting("seed", seed, Whole(0))
    check_setting("kind", kind, Choice(*KINDS))
    made = KINDS[kind].replace(**changes)
    rng = np.random.default_rng([seed, 0x7A57E])
    # Each part that a market may lack draws from a stream of its own, so that the others stay as they are.
    others = [np.random.default_rng(child) for child in np.random.SeedSequence([seed, 0x7A57F]).spawn(5)]
    people = reviews // 5
    catalogue = draw_catalogue(rng, reviews, made.communities)
    usual, lives = everyday(rng, others[0], reviews, catalogue, made)
    paid, guilty = commit(rng, made, people, catalogue)
    rows = [usual, *paid]
    if made.fans:
        rows.append(fans(others[1], people, made.fans, catalogue, lives))
    if made.deal_sites:
        rows.append(deals(others[2], people, made.deal_sites, catalogue, lives))
    if made.passers_by:
        first = people + len(guilty.reviewers)
        rows.append(passers_by(others[3], first, round(made.passers_by * reviews), catalogue, lives))
    table = _table(rng, rows, catalogue.seller)
    truth = _truth(others[4], table, guilty)
    labels = truth.loc[truth["split"] == "known", ["mode", "entity", "label", "target"]].reset_index(drop=True)
    return Marketplace(table, labels, truth, {"reviews": reviews, "kind": kind, "seed": seed, **asdict(made)})


def _table(rng: np.random.Generator, rows: list[Written], seller: npt.NDArray[np.int64]) -> pd.DataFrame:
    made = Written(*(np.concatenate(column) for column in zip(*rows, strict=True)))
    within = np.flatnonzero((made.day >= 0) & (made.day <= DAYS - 1e-4))
    order = within[rng.permutation(len(within))]
    product = made.product[order]
    return pd.DataFrame(
        {
            "reviewer": made.reviewer[order].astype(str),
            "product": product.astype(str),
            "seller": seller[product].astype(str),
            "rating": np.clip(np.round(3.4 + made.liking[order]), 1, 5).astype(np.int64),
            "timestamp": FIRST_SECOND + np.floor(made.day[order] * 86_400).astype(np.int64),
        }
    )


def _truth(rng: np.random.Generator, table: pd.DataFrame, guilty: Guilty) -> pd.DataFrame:
    """mode, entity, label, target, ring, split: every account with a review."""
    rings = sorted(set(guilty.reviewers.values()))
    unseen = set(rng.permutation(rings)[: round(UNSEEN * len(rings))].tolist())
    parts = []
    for mode, ring_of in (("seller", guilty.sellers), ("reviewer", guilty.reviewers)):
        names = np.unique(table[mode].to_numpy(object))
        ring = np.array([ring_of.get(int(name), "") for name in names], dtype=object)
        bad = ring != ""
        split = _split(rng, bad, np.isin(ring, list(unseen)))
        part = pd.DataFrame({"mode": mode, "entity": names, "label": bad.astype(np.int64), "target": "abuse"})
        parts.append(part.assign(ring=ring, split=split))
    return pd.concat(parts, ignore_index=True)


def _split(rng: np.random.Generator, bad: Bools, unseen: Bools) -> npt.NDArray[np.object_]:
    """Who is known: a quarter of the bad, and as many good as go with them. Everyone else is tested."""
    split = np.full(len(bad), "test", dtype=object)
    known = rng.permutation(np.flatnonzero(bad & ~unseen))[: round(KNOWN_BAD * bad.sum())]
    good = rng.permutation(np.flatnonzero(~bad))[: GOOD_PER_BAD * len(known)]
    split[known], split[good] = "known", "known"
    return split
