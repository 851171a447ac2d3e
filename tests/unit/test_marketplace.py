"""Claims about the generated marketplace: what it contains, what is known, and that one seed decides everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import poisson

import ringleader as rl
import ringleader.datasets as datasets
from ringleader.datasets.marketplace import Marketplace, marketplace
from ringleader.datasets.marketplace.abuse import ATTACK, BOOST, Abuse, commit_abuse
from ringleader.datasets.marketplace.people import draw_catalogue, draw_people
from ringleader.datasets.marketplace.settings import PRESETS, settle
from ringleader.errors import SettingsError, StorageError
from ringleader.evaluation.detection import market_truth

DIFFICULTIES = ["easy", "medium", "hard"]
DAY = 86_400


@pytest.fixture(scope="module", params=DIFFICULTIES)
def market(request: pytest.FixtureRequest) -> Marketplace:
    return marketplace(60_000, difficulty=request.param, seed=3)


def abuse_rows(market: Marketplace, mode: str) -> pd.DataFrame:
    truth = market.truth
    return truth[(truth["mode"] == mode) & (truth["target"] == "abuse")].set_index("entity")


def planned(difficulty: str = "medium", reviews: int = 60_000, seed: int = 3) -> Abuse:
    sizes = dict.fromkeys(("weeks", "sellers", "products", "reviewers", "rings"))
    settings = settle(reviews, difficulty, seed, sizes, {})
    rng = np.random.default_rng(seed)
    people = draw_people(rng, settings)
    catalogue = draw_catalogue(rng, settings, people.communities)
    return commit_abuse(rng, settings, people, catalogue)[0]


# One seed decides everything


def test_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        marketplace(8_000, seed=5, difficulty="hard").write(tmp_path / name)
    for file in ("reviews.parquet", "labels.csv", "truth.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_global_random_state_is_neither_read_nor_moved() -> None:
    np.random.seed(1)  # noqa: NPY002
    first = marketplace(3_000)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    second = marketplace(3_000)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    pd.testing.assert_frame_equal(first.reviews, second.reviews)


def test_another_seed_is_another_market_with_other_rings() -> None:
    def ring_sizes(seed: int) -> list[int]:
        sellers = abuse_rows(marketplace(60_000, seed=seed), "seller")
        return sorted(sellers.loc[sellers["ring"] != "", "ring"].value_counts())

    def counts(seed: int) -> np.ndarray:
        return np.sort(marketplace(60_000, seed=seed).reviews.groupby("product").size())[-50:]

    assert ring_sizes(0) != ring_sizes(1)
    assert not np.array_equal(counts(0), counts(1))


# The table


def test_exactly_as_many_reviews_as_asked_with_the_five_columns(market: Marketplace) -> None:
    reviews = market.reviews
    assert list(reviews.columns) == ["reviewer", "product", "seller", "rating", "timestamp"]
    assert len(reviews) == 60_000
    assert reviews["rating"].isin([1, 2, 3, 4, 5]).all()
    assert reviews["timestamp"].dtype == np.int64
    assert reviews["timestamp"].is_monotonic_increasing
    assert reviews["timestamp"].between(1_506_816_000 - 156 * 7 * DAY, 1_506_816_000 - 1).all()
    assert not reviews.isna().any().any()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
@pytest.mark.parametrize("weeks", [52, 156])
def test_no_day_hour_or_second_holds_more_than_its_neighbours_explain(difficulty: str, seed: int, weeks: int) -> None:
    reviews = marketplace(60_000, difficulty=difficulty, seed=seed, weeks=weeks).reviews
    second = reviews["timestamp"].to_numpy() - (1_506_816_000 - weeks * 7 * DAY)
    day = np.bincount(second // DAY, minlength=weeks * 7)
    hour = np.bincount(second // 3_600, minlength=weeks * 7 * 24)
    assert len(day) == weeks * 7 and len(hour) == weeks * 7 * 24

    # The first and the last day, against the two weeks beside them.
    for edge, beside in ((day[0], day[1:15]), (day[-1], day[-15:-1])):
        assert abs(edge - beside.mean()) < 4 * max(beside.std(ddof=1), np.sqrt(beside.mean()))

    # Every hour, against the day around it: one false alarm in 1,000 markets.
    window = np.ones(25)
    hours_around = np.convolve(np.ones(len(hour)), window, "same") - 1
    expected = (np.convolve(hour, window, "same") - hour) / hours_around
    assert (poisson.sf(hour - 1, expected) > 1e-3 / len(hour)).all()

    # Every second, at most by coincidence.
    assert np.bincount(second).max() <= 4


def test_nobody_reviews_a_product_twice(market: Marketplace) -> None:
    assert not market.reviews.duplicated(["reviewer", "product"]).any()


def test_every_product_has_one_to_three_sellers(market: Marketplace) -> None:
    sellers = market.reviews.groupby("product")["seller"].nunique()
    assert sellers.between(1, 3).all()
    assert (sellers == 1).any() and (sellers == 2).any() and (sellers == 3).any()


@pytest.mark.parametrize("mode", ["reviewer", "product", "seller"])
def test_activity_is_heavy_tailed(market: Marketplace, mode: str) -> None:
    counts = np.sort(market.reviews.groupby(mode).size().to_numpy())[::-1]
    assert counts[: len(counts) // 100].sum() > 0.07 * counts.sum()
    assert counts[: len(counts) // 10].sum() > 0.35 * counts.sum()
    assert np.median(counts) < 0.8 * counts.mean()


def test_ratings_are_j_shaped_and_differ_between_products(market: Marketplace) -> None:
    share = market.reviews["rating"].value_counts(normalize=True)
    assert share[5] > share[4] > share[3] > share[2]
    assert share[1] > share[2]
    product = market.reviews.groupby("product")["rating"].agg(["mean", "size"])
    assert product.loc[product["size"] >= 30, "mean"].std() > 0.2


def test_people_of_one_taste_meet_more_often_than_chance() -> None:
    """Honest pairs share three products beyond what activity explains: co-reviewing alone is no crime."""
    market = marketplace(60_000, difficulty="easy", seed=1, look_alikes=0.0, clubs=0.0)
    honest = abuse_rows(market, "reviewer").query("label == 0").index
    rows = market.reviews[market.reviews["reviewer"].isin(honest)]
    busy = rows.groupby("reviewer")["product"].transform("size") > 30
    large = rows.groupby("product")["reviewer"].transform("size") > 80
    rows = rows[~busy & ~large]

    def repeats(table: pd.DataFrame) -> int:
        both = table.merge(table, on="product")
        both = both[both["reviewer_x"] < both["reviewer_y"]]
        return int((both.groupby(["reviewer_x", "reviewer_y"]).size() >= 3).sum())

    pairs = rows[["reviewer", "product"]]
    shuffled = pairs.assign(reviewer=np.random.default_rng(0).permutation(pairs["reviewer"])).drop_duplicates()
    assert repeats(pairs) > 3 * repeats(shuffled)


def test_some_honest_products_have_bursts_of_unrelated_people() -> None:
    market = marketplace(60_000, difficulty="medium", seed=2)
    honest = abuse_rows(market, "seller").query("label == 0").index
    rows = market.reviews[market.reviews["seller"].isin(honest)]
    weekly = rows.groupby(["product", rows["timestamp"] // (7 * DAY)])["rating"].agg(["size", "mean"])
    assert len(weekly[(weekly["size"] >= 12) & (weekly["mean"] > 4.4)]) >= 10


# Abuse


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_campaigns_boost_with_high_and_attack_with_low_ratings(difficulty: str) -> None:
    abuse = planned(difficulty)
    kind = abuse.campaigns.kind[abuse.paid.campaign]
    assert set(abuse.paid.rating[kind == BOOST]) == {4, 5}
    assert set(abuse.paid.rating[kind == ATTACK]) == {1, 2}


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_campaigns_last_from_weeks_to_months(difficulty: str) -> None:
    weeks = planned(difficulty).campaigns.span / (7 * DAY)
    assert weeks.min() < 4.5 and weeks.max() > 12
    assert abs((weeks >= 12).mean() - PRESETS[difficulty]["slow_drip"]) < 0.15


def test_attacks_hit_sellers_who_buy_nothing() -> None:
    abuse = planned()
    attacked = abuse.campaigns.seller[abuse.campaigns.kind == ATTACK]
    assert len(attacked) and not np.isin(attacked, abuse.clients.seller).any()


def test_brokers_serve_several_sellers_and_pools_overlap_and_change() -> None:
    abuse = planned()
    assert np.bincount(abuse.clients.ring).min() >= 2
    rings_served = pd.Series(abuse.pools.ring).groupby(abuse.pools.reviewer).nunique()
    assert (rings_served == 2).any() and (rings_served == 1).mean() > 0.5
    assert np.isinf(abuse.pools.joined).any() and np.isfinite(abuse.pools.joined).any()


@pytest.mark.parametrize("difficulty", ["easy", "medium"])
def test_paid_reviewers_serve_several_clients_of_their_broker(difficulty: str) -> None:
    abuse = planned(difficulty)
    clients = pd.Series(abuse.campaigns.client[abuse.paid.campaign]).groupby(abuse.paid.reviewer).nunique()
    assert clients.median() >= 3


def test_paid_reviewers_are_camouflaged_and_abusive_sellers_have_honest_customers(market: Marketplace) -> None:
    reviewers, sellers = abuse_rows(market, "reviewer"), abuse_rows(market, "seller")
    bad_sellers, bad_reviewers = sellers.query("label == 1").index, reviewers.query("label == 1").index
    of_bad_reviewers = market.reviews[market.reviews["reviewer"].isin(bad_reviewers)]
    of_bad_sellers = market.reviews[market.reviews["seller"].isin(bad_sellers)]
    assert (~of_bad_reviewers["seller"].isin(bad_sellers)).mean() > 0.25
    assert (~of_bad_sellers["reviewer"].isin(bad_reviewers)).mean() > 0.25


def test_review_count_does_not_give_paid_reviewers_away() -> None:
    market = marketplace(100_000, difficulty="medium", seed=0)
    reviewers = abuse_rows(market, "reviewer").query("split == 'test'")
    count = market.reviews.groupby("reviewer").size().loc[reviewers.index].rank()
    bad = reviewers["label"] == 1
    auc = (count[bad].sum() - bad.sum() * (bad.sum() + 1) / 2) / (bad.sum() * (~bad).sum())
    assert 0.4 < auc < 0.7


# The protocol


def test_labels_are_the_known_part_of_the_truth(market: Marketplace) -> None:
    assert list(market.labels.columns) == ["mode", "entity", "label", "target"]
    assert list(market.truth.columns) == ["mode", "entity", "label", "target", "ring", "split"]
    known = market.truth.loc[market.truth["split"] == "known", list(market.labels.columns)]
    pd.testing.assert_frame_equal(market.labels, known.reset_index(drop=True))


def test_truth_has_every_entity_of_the_reviews_once_per_target(market: Marketplace) -> None:
    for mode in ("seller", "reviewer"):
        rows = market.truth[market.truth["mode"] == mode]
        assert set(rows["entity"]) == set(market.reviews[mode])
        assert not rows.duplicated(["entity", "target"]).any()
        assert set(rows["target"]) == {"abuse", "boost", "attack"}
        assert (rows.groupby("entity").size() == 3).all()


def test_abuse_is_boosting_or_attacking_and_both_targets_are_known(market: Marketplace) -> None:
    wide = market.truth.pivot(index=["mode", "entity"], columns="target", values="label")
    assert (wide["abuse"] == np.maximum(wide["boost"], wide["attack"])).all()
    assert (wide["boost"] != wide["attack"]).any() and ((wide["boost"] == 1) & (wide["attack"] == 1)).any()
    for target in ("abuse", "boost", "attack"):
        assert set(market.labels.loc[market.labels["target"] == target, "label"]) == {0, 1}


def test_ring_is_named_for_the_bad_and_empty_for_the_honest(market: Marketplace) -> None:
    abuse = market.truth[market.truth["target"] == "abuse"]
    assert ((abuse["ring"] != "") == (abuse["label"] == 1)).all()
    assert abuse.loc[abuse["mode"] == "reviewer", "ring"].str.contains("|", regex=False).any()


@pytest.mark.parametrize("reviews", [50_000, 200_000])
def test_counts_follow_the_published_protocol_in_proportion(reviews: int) -> None:
    market = marketplace(reviews, seed=1)
    scale = reviews / 1e6
    seller = abuse_rows(market, "seller").groupby(["split", "label"]).size()
    assert seller["known", 0] == 3 * seller["known", 1]
    assert seller["test", 0] == 3 * seller["test", 1]
    assert seller["test"].sum() == pytest.approx(1_500 * scale, rel=0.15)
    reviewer = abuse_rows(market, "reviewer").groupby(["split", "label"]).size()
    assert reviewer["test", 0] == reviewer["test", 1]
    assert reviewer["test"].sum() == pytest.approx(4_200 * scale, rel=0.05)
    bad = reviewer.xs(1, level="label").sum()
    assert reviewer["known", 1] == pytest.approx(0.1 * bad, rel=0.05)
    assert 0.9 <= reviewer["known", 0] / reviewer["known", 1] < 1


def test_bad_test_sellers_are_active_later_than_the_known_ones(market: Marketplace) -> None:
    sellers, reviewers = abuse_rows(market, "seller"), abuse_rows(market, "reviewer")
    paid = market.reviews[market.reviews["reviewer"].isin(reviewers.query("label == 1").index)]
    when = paid.groupby("seller")["timestamp"].median()
    bad = sellers.query("label == 1").index.intersection(when.index)
    split = sellers.loc[bad, "split"]
    assert when[bad][split == "test"].median() > when[bad][split == "known"].median() + 100 * DAY


def test_some_rings_are_unseen_among_the_known_and_yet_tested(market: Marketplace) -> None:
    truth = market.truth[market.truth["target"] == "abuse"]
    rings = truth.assign(ring=truth["ring"].str.split("|")).explode("ring").query("ring != ''")
    known = set(rings.loc[rings["split"] == "known", "ring"])
    tested = set(rings.loc[(rings["split"] == "test") & (rings["mode"] == "seller"), "ring"])
    assert tested - known
    assert tested & known


def test_an_account_of_two_rings_is_unseen_where_nobody_of_either_is_known() -> None:
    accounts = {"a": ("", "known"), "b": ("B1|B2", "known"), "c": ("B2", "test"), "d": ("B2|B3", "test")}
    accounts |= {"e": ("B3|B4", "test"), "f": ("B4", "")}
    truth = pd.DataFrame(
        [("reviewer", name, int(ring != ""), "abuse", ring, split) for name, (ring, split) in accounts.items()],
        columns=["mode", "entity", "label", "target", "ring", "split"],
    )
    reviews = pd.DataFrame({"reviewer": list(accounts), "product": "p"})
    market = Marketplace(reviews=reviews, labels=truth[:2], truth=truth, settings={})
    tensor = rl.read_reviews(reviews, modes=["reviewer", "product"])
    unseen = market_truth(market, tensor, "reviewer").unseen
    assert dict(zip(tensor.vocabulary("reviewer").decode(np.arange(6)), unseen, strict=True)) == {
        **dict.fromkeys("abcd", False),
        **dict.fromkeys("ef", True),
    }


def test_no_unseen_ring_is_forced_when_none_is_wanted() -> None:
    market = marketplace(30_000, unseen_rings=0.0, attackers=0.0)
    assert market.truth.query("target == 'attack'")["label"].sum() == 0


# Sizes


@pytest.mark.parametrize("reviews", [1_000, 2_000, 5_000, 20_000])
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_small_markets_have_rings_and_both_classes_in_known_and_test(reviews: int, difficulty: str, seed: int) -> None:
    market = marketplace(reviews, difficulty=difficulty, seed=seed)
    assert len(market.reviews) == reviews
    for mode in ("seller", "reviewer"):
        counts = abuse_rows(market, mode).groupby(["split", "label"]).size()
        for split in ("known", "test"):
            assert counts.get((split, 0), 0) >= 2 and counts.get((split, 1), 0) >= 2
    sellers = abuse_rows(market, "seller")
    assert (sellers.loc[sellers["ring"] != "", "ring"].value_counts() >= 2).sum() >= 2


def test_sizes_can_be_chosen() -> None:
    market = marketplace(20_000, sellers=300, products=900, reviewers=2_000, rings=4, weeks=60)
    assert market.reviews["seller"].nunique() <= 300
    assert market.reviews["product"].nunique() <= 900
    assert market.reviews["reviewer"].nunique() <= 2_000
    assert market.settings["rings"] == 4
    assert np.ptp(market.reviews["timestamp"]) <= 60 * 7 * DAY


# Arguments and files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reviews": 10}, "reviews is 10; choose a whole number of at least 1,000"),
        ({"reviews": 1e5}, "reviews is 100000.0; choose a whole number"),
        ({"reviews": True}, "whole number"),
        ({"difficulty": "brutal"}, "difficulty is 'brutal'; choose easy, medium, hard"),
        ({"seed": -1}, "seed is -1"),
        ({"density": 1.5}, "density is 1.5; choose a number of at least 0.02 and of at most 1"),
        ({"density": float("nan")}, "density is nan"),
        ({"camouflage": "much"}, "camouflage is 'much'"),
        ({"slow_drip": 0.7, "three_weeks": 0.7}, "must not exceed 1"),
        ({"rings": 400}, "a ring needs two"),
        ({"rings": 2}, "rings is 2; choose a whole number of at least 3"),
        ({"reviewers": 400, "reviews": 50_000}, "pass reviewers="),
        ({"sellers": 90_000}, "fewer than 8 each"),
        ({"products": 10}, "products is 10"),
        ({"reviews": 2_000, "campaigns": 10.0, "density": 1.0, "pool": 20.0, "reviewers": 900}, "campaigns alone take"),
    ],
)
def test_bad_arguments_are_refused_with_what_was_seen(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        marketplace(**arguments)  # type: ignore[arg-type]


def test_written_files_read_back(tmp_path: Path) -> None:
    market = marketplace(3_000)
    folder = market.write(tmp_path / "deep" / "folder")
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "reviews.parquet"), market.reviews)
    labels = pd.read_csv(folder / "labels.csv")
    assert list(labels.columns) == ["mode", "entity", "label", "target"] and len(labels) == len(market.labels)
    truth = pd.read_csv(folder / "truth.csv", keep_default_na=False)
    assert truth.to_numpy().tolist() == market.truth.to_numpy().tolist()


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="choose another folder"):
        marketplace(1_000).write(tmp_path / "file")


def test_the_package_offers_the_function() -> None:
    assert datasets.marketplace is marketplace
    assert isinstance(marketplace(1_000), datasets.Marketplace)


def test_settings_tell_every_number_used() -> None:
    settings = marketplace(2_000, density=0.3, seed=9).settings
    assert settings["density"] == 0.3 and settings["seed"] == 9 and settings["difficulty"] == "medium"
