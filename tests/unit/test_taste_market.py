"""Claims about markets of tastes: one seed decides everything, and what a kind promises is in the market."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ringleader.datasets import taste_market
from ringleader.datasets.tastes import KINDS, Rings, TasteSettings
from ringleader.errors import SettingsError

REVIEWS = 10_000


def bad(market: object, mode: str) -> set[str]:
    truth = market.truth
    return set(truth.loc[(truth["mode"] == mode) & (truth["label"] == 1), "entity"])


def test_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        taste_market(REVIEWS, seed=5, rings=(Rings(number=2),), used_once=3).write(tmp_path / name)
    for file in ("reviews.parquet", "labels.csv", "truth.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_table_its_truth_and_both_classes_known_and_tested(kind: str) -> None:
    market = taste_market(40_000, kind=kind, seed=1)
    reviews = market.reviews
    assert list(reviews.columns) == ["reviewer", "product", "seller", "rating", "timestamp"]
    assert 40_000 * 0.99 <= len(reviews) <= 40_000 * 1.5 and reviews["rating"].between(1, 5).all()
    assert (reviews.groupby("product")["seller"].nunique() == 1).all()
    for mode in ("seller", "reviewer"):
        truth = market.truth[market.truth["mode"] == mode]
        assert set(truth["entity"]) == set(reviews[mode]) and not truth["entity"].duplicated().any()
        assert ((truth["ring"] != "") == (truth["label"] == 1)).all()
        for split in ("known", "test"):
            assert set(truth.loc[truth["split"] == split, "label"]) == {0, 1}
    known = market.truth[market.truth["split"] == "known"]
    pd.testing.assert_frame_equal(market.labels, known[["mode", "entity", "label", "target"]].reset_index(drop=True))


def test_a_fifth_of_the_rings_is_unknown() -> None:
    truth = taste_market(40_000, kind="loyal", seed=2).truth
    rings = set(truth["ring"]) - {""}
    seen = set(truth.loc[(truth["split"] == "known") & (truth["label"] == 1), "ring"])
    assert len(rings) == 8 and len(rings - seen) == 2


def test_the_loyal_stay_in_their_community() -> None:
    """Who reviews a product of a community reviews others of it more often than popularity alone makes them."""

    def lift(loyalty: float) -> float:
        market = taste_market(20_000, kind="loyal", seed=3, loyalty=loyalty, rings=())
        table = (pd.crosstab(market.reviews["reviewer"], market.reviews["product"]).to_numpy() > 0).astype(float)
        table = table[table.sum(axis=1) <= 40]
        table = table[:, table.sum(axis=0) >= 30]
        met, size = table.T @ table, table.sum(axis=0)
        ratio = met / (np.outer(size, size) / len(table))
        return float(np.quantile(ratio[np.triu_indices(len(size), 1)], 0.95))

    assert lift(0.86) > 2 * lift(0.17)


def test_accounts_used_once_write_one_good_review_within_the_campaign() -> None:
    market = taste_market(20_000, kind="once", seed=4, used_once=10)
    own = market.reviews[market.reviews["reviewer"].isin(bad(market, "reviewer"))]
    assert (own.groupby("reviewer").size() == 1).all() and (own["rating"] >= 4).mean() > 0.95
    span = own.groupby("seller")["timestamp"].agg(lambda t: t.max() - t.min())
    assert span.max() <= 45 * 86_400 and set(span.index) == bad(market, "seller")


def test_parts_that_are_added_leave_the_others_as_they_were() -> None:
    """Fans and deal sites are honest: with them the same people are bad, and everyday reviews are the same."""
    plain = taste_market(20_000, kind="loyal", seed=6, rings=(Rings(number=3),))
    more = taste_market(20_000, kind="loyal", seed=6, rings=(Rings(number=3),), fans=0.1, deal_sites=3, passers_by=0.1)
    assert bad(plain, "reviewer") == bad(more, "reviewer") and bad(plain, "seller") == bad(more, "seller")
    both = plain.reviews.merge(more.reviews, how="inner").drop_duplicates()
    assert len(both) >= len(plain.reviews.drop_duplicates()) and len(more.reviews) > 1.1 * len(plain.reviews)


def test_fans_buy_one_brand_and_like_it_better_than_others_do() -> None:
    plain = taste_market(20_000, kind="fans", seed=7, fans=0.0, rings=()).reviews
    more = taste_market(20_000, kind="fans", seed=7, fans=0.2, rings=()).reviews
    added = more.merge(plain, how="left", indicator=True).query("_merge == 'left_only'")
    assert len(added) > 1_000 and (added.groupby("reviewer")["seller"].nunique() == 1).all()
    others = plain.groupby("product")["rating"].mean().reindex(added["product"])
    assert (added["rating"].to_numpy() - others.to_numpy())[~others.isna().to_numpy()].mean() > 0.4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "unheard"}, "kind is 'unheard'"),
        ({"loyalty": 1.5}, "loyalty is 1.5"),
        ({"rings": [Rings()]}, "rings is"),
        ({"colour": 1}, "unknown setting colour"),
        ({"used_once": 5000}, "there are"),
        ({"once_least": 9, "once_most": 3}, "once_most is 3"),
        ({"reviews": 10}, "reviews is 10"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        taste_market(**arguments)


def test_settings_of_a_kind_are_checked_when_they_are_made() -> None:
    with pytest.raises(SettingsError, match="span"):
        TasteSettings(rings=(Rings(span=1000.0),))
