"""Strangers and suspicion: what a crowd is, what it must not be, and that parts add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import taste_market
from ringleader.explain import people
from ringleader.explain.facts import Facts
from ringleader.explain.own import OwnReviews
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from ringleader.signals.strangers import LEAST, find_strangers
from ringleader.signals.suspicion import (
    CAMPAIGN,
    COMES_BACK,
    ELSEWHERE,
    EVIDENCE_MOST,
    EVIDENCE_WITH,
    FEW,
    UNSEEN,
    UNSEEN_NAME,
    broad_lockstep,
    campaigns,
    entity_suspicion,
    normal_scores,
    unexplained,
)
from ringleader.tensor.roles import Roles
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import rounded_percent

WEEK = 7 * 86_400
OPENING = 1_400_000_000


def market(
    *, once: int = 0, at: float = 60.0, weeks: float = 2.0, rating: int | list[int] = 5, seed: int = 0
) -> SparseTensor:
    """People who review now and then, a tenth of them once; and ``once`` accounts that came for one product."""
    rng = np.random.default_rng(seed)
    n = 6_000
    product = rng.choice(200, n, p=(w := rng.lognormal(0, 1, 200)) / w.sum())
    reviewer = np.where(rng.random(n) < 0.1, 5_000 + np.arange(n), rng.integers(0, 700, n))
    table = pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in reviewer],
            "product": [f"p{i}" for i in product],
            "rating": rng.choice([1, 3, 5], n, p=[0.2, 0.2, 0.6]),
            "timestamp": OPENING + rng.integers(0, 150 * WEEK, n),
        }
    )
    when = OPENING + (at + weeks * rng.random(once)) * WEEK
    crowd = {"reviewer": [f"bought{i}" for i in range(once)], "product": "p7", "rating": rating}
    crowd["timestamp"] = when.astype(np.int64)
    return rl.read_reviews(pd.concat([table, pd.DataFrame(crowd)], ignore_index=True))


def strangers_of(tensor: SparseTensor):
    ratings = np.asarray(tensor.vocabulary("rating").values)[tensor.coordinates[:, 2]]
    return find_strangers(tensor, 0, ratings >= 4, ratings <= 2, LockstepSettings())


def bought(tensor: SparseTensor) -> np.ndarray:
    names = tensor.vocabulary("reviewer").decode(tensor.coordinates[:, 0])
    return np.array([str(name).startswith("bought") for name in names])


@pytest.mark.parametrize("rating", [1, 5])
def test_accounts_that_came_for_one_product_are_a_crowd(rating: int) -> None:
    tensor = market(once=20, rating=rating)
    found, crowd = strangers_of(tensor), bought(tensor)
    assert found.ratios[crowd].min() > 10
    assert (found.ratios[~crowd] > 0).mean() < 0.002
    inside = np.flatnonzero(crowd)
    assert set(found.mode[inside]) == {1} and found.number[inside].max() >= 15
    assert (found.expected[inside] < 3).all() and (found.number[inside] > found.expected[inside]).all()
    first = np.asarray(tensor.vocabulary("week").values)[tensor.coordinates[inside, 3]]
    assert (found.begin[inside] <= first).all() and (first - found.begin[inside] <= 4 * WEEK).all()


def test_honest_accounts_with_one_review_have_hardly_any_suspicion() -> None:
    for seed in range(4):
        found = strangers_of(market(seed=seed))
        assert (found.ratios > 0).sum() <= 6  # of six hundred who write one review
        assert found.ratios.max() < 3


def test_a_few_strangers_over_a_year_are_no_crowd() -> None:
    tensor = market(once=12, at=20.0, weeks=100.0)
    assert strangers_of(tensor).ratios[bought(tensor)].max() == 0


def test_the_surprise_is_what_counting_by_hand_gives() -> None:
    """Without times there is one window: a crowd is a product, and its other customers are all that is expected."""
    rng = np.random.default_rng(8)
    rows = [(f"r{rng.integers(0, 60)}", f"p{rng.integers(0, 10)}", 5) for _ in range(400)]
    rows += [(f"one{i}", "p3", 5) for i in range(30)] + [(f"two{i}", f"p{i % 10}", 5) for i in range(10)]
    table = pd.DataFrame(rows, columns=["reviewer", "product", "rating"]).drop_duplicates()
    tensor = rl.read_reviews(table)
    found = find_strangers(
        tensor, 0, np.ones(tensor.n_cells, np.bool_), np.zeros(tensor.n_cells, np.bool_), LockstepSettings()
    )
    alone = table.groupby("reviewer")["product"].transform("nunique") == 1
    count = table[alone].groupby("product").size()
    others = table[~alone].groupby("product").size()
    odds = alone.sum() / (~alone).sum()
    c, e = count["p3"], odds * others["p3"] + LEAST * odds
    wanted = c * np.log(c / e) - (c - e) - np.log(len(count))
    name = tensor.vocabulary("reviewer").decode(tensor.coordinates[:, 0])
    cell = next(i for i in range(tensor.n_cells) if str(name[i]).startswith("one"))
    assert found.ratios[cell] == pytest.approx(wanted)
    assert found.number[cell] == c and found.expected[cell] == pytest.approx(e)


@pytest.fixture(scope="module")
def model() -> rl.RingDetector:
    reviews = taste_market(15_000, kind="everything", seed=3, used_once=8).reviews
    return rl.RingDetector(rank=8, random_state=1).fit(reviews)


def test_a_review_is_as_suspicious_as_its_most_suspicious_way(model: rl.RingDetector) -> None:
    ratios = model.snapshot_.signals.ratios
    loudest = np.max([ratios.lockstep, ratios.strangers, ratios.attack], axis=0)
    np.testing.assert_array_equal(ratios.ratio(), loudest)
    parts = ratios.parts()
    loud = np.log1p(loudest)
    ways = parts["lockstep"] + parts["strangers"] + parts["attack"]
    whole = loud * (1 + EVIDENCE_WITH * ratios.evidence) + CAMPAIGN * ratios.campaign
    np.testing.assert_allclose(np.sum(list(parts.values()), axis=0), whole**2, atol=1e-14)
    np.testing.assert_allclose(ways, loud * whole)
    np.testing.assert_allclose(parts["evidence"], EVIDENCE_WITH * ratios.evidence * ways, atol=1e-14)
    assert all((part > 0).any() for part in parts.values()) and ratios.evidence.max() <= EVIDENCE_MOST


@pytest.mark.parametrize("mode", ["reviewer", "seller", "product"])
def test_parts_of_the_suspicion_add_up_to_it(model: rl.RingDetector, mode: str) -> None:
    signals = model.snapshot_.signals
    k = model.tensor_.mode_index(mode)
    ways = signals.ways(k)
    total = np.sum(list(ways.values()), axis=0)
    suspicion = signals.suspicion(k)
    if mode == "reviewer":  # three reviews more, each with a share of what the market's mean review has
        market = np.mean(np.sum(list(signals.ratios.parts().values()), axis=0))
        total = total + FEW * UNSEEN * market / (model.tensor_.degrees(k) + FEW)
    np.testing.assert_allclose(suspicion.score, normal_scores(np.round(total, 15)), atol=1e-12)
    assert suspicion.names == (*ways, *([UNSEEN_NAME] if mode == "reviewer" else []))
    assert ("suspicion_attack" in ways) == ("suspicion_campaign" in ways) == (mode == "reviewer")


def test_entities_sum_up_their_reviews(model: rl.RingDetector) -> None:
    signals, tensor = model.snapshot_.signals, model.tensor_
    k = tensor.mode_index("reviewer")
    whole = np.sum(list(signals.ratios.parts().values()), axis=0)
    total = np.sum(list(signals.ways(k).values()), axis=0)
    for code in (0, 10, tensor.shape[k] - 1):
        own = whole[tensor.coordinates[:, k] == code]
        assert total[code] == pytest.approx(own.sum() / (len(own) + FEW))


def test_bad_ratings_say_nothing_against_whom_they_hit(model: rl.RingDetector) -> None:
    signals, tensor = model.snapshot_.signals, model.tensor_
    k = tensor.mode_index("product")
    hit = np.bincount(tensor.coordinates[:, k], weights=signals.not_attacks, minlength=tensor.shape[k]) == 0
    assert np.sum(list(signals.ways(k).values()), axis=0)[hit].max(initial=0.0) == 0


def test_lockstep_at_one_seller_counts_less_than_lockstep_at_many(model: rl.RingDetector) -> None:
    """Account by account, in plain Python: breadth, and the doubt of those who come back to one seller."""
    signals, tensor = model.snapshot_.signals, model.tensor_
    broad = broad_lockstep(tensor, signals.lockstep)
    np.testing.assert_array_equal(signals.ratios.lockstep, broad * unexplained(tensor, signals.lockstep))
    table = tensor.decode().assign(score=signals.lockstep.boost.scores, made=broad)
    assert (table.loc[table["score"] == 0, "made"] == 0).all()
    loud, doubted = table[table["score"] > 0], 0
    for _, rows in loud.groupby("reviewer"):
        breadth = rows["seller"].nunique() / len(rows)
        everywhere = np.log1p(rows["score"]).sum()
        for _, own in rows.groupby("seller"):
            factor = 1.0
            if len(own) >= COMES_BACK:
                elsewhere = everywhere - np.log1p(own["score"]).sum()
                factor = (elsewhere + ELSEWHERE) / (everywhere + ELSEWHERE)
                doubted += 1
            wanted = np.log1p(own["score"] * breadth) * factor
            np.testing.assert_allclose(np.log1p(own["made"]), wanted, atol=1e-12)
    assert doubted, "somebody comes back"


def test_who_works_for_several_sellers_of_one_product_is_no_customer_who_comes_back() -> None:
    rows = [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 1, 3], [1, 1, 3]]  # fewer products than sellers
    tensor = SparseTensor.from_arrays(rows, ["reviewer", "product", "seller"])
    lockstep = find_lockstep(tensor, threads=1)
    lockstep = replace(lockstep, boost=replace(lockstep.boost, scores=np.array([5.0, 5.0, 5.0, 0.0])))
    np.testing.assert_allclose(broad_lockstep(tensor, lockstep), lockstep.boost.scores)


def test_lockstep_counts_less_where_many_review_and_where_taste_draws(model: rl.RingDetector) -> None:
    """Review by review, in plain Python: the reviews of its product in its eight weeks, at both positions of these."""
    lockstep, tensor = model.snapshot_.signals.lockstep, model.tensor_
    monday, length = 4 * 86_400, 8 * WEEK
    weeks = np.asarray(tensor.vocabulary("week").values)[tensor.coordinates[:, tensor.mode_index("week")]].tolist()
    products = tensor.coordinates[:, tensor.mode_index("product")].tolist()
    sizes = []
    for begin in (-monday, -monday + length // 2):
        places = [(product, (week + begin) // length) for product, week in zip(products, weeks, strict=True)]
        count = Counter(places)
        sizes.append([count[place] for place in places])
    left = unexplained(tensor, lockstep)
    np.testing.assert_allclose(left, np.exp(-lockstep.pull) / np.sqrt(np.mean(sizes, axis=0)))
    assert left.max() <= 1 and np.max(sizes) > 30


def test_a_review_stands_in_the_campaign_of_the_others_around_it(model: rl.RingDetector) -> None:
    """Review by review, in plain Python: the others of its side in its eight weeks, at both positions of these."""
    signals, tensor = model.snapshot_.signals, model.tensor_
    monday, length = 4 * 86_400, 8 * WEEK
    weeks = np.asarray(tensor.vocabulary("week").values)[tensor.coordinates[:, tensor.mode_index("week")]].tolist()
    ratings = np.asarray(tensor.vocabulary("rating").values)[tensor.coordinates[:, tensor.mode_index("rating")]]
    side = np.select([ratings >= 4, ratings <= 2], ["high", "low"], "neither").tolist()
    loud = signals.ratios.loudness()
    by_item = []
    for mode in ("product", "seller"):
        items, means = tensor.coordinates[:, tensor.mode_index(mode)].tolist(), []
        for begin in (-monday, -monday + length // 2):
            places = [(*of, (week + begin) // length) for *of, week in zip(items, side, weeks, strict=True)]
            count, total = Counter(places), Counter[tuple]()
            for place, own in zip(places, loud.tolist(), strict=True):
                total[place] += own
            means.append([(total[place] - own) / count[place] for place, own in zip(places, loud, strict=True)])
        by_item.append(np.mean(means, axis=0))
    wanted = np.where(np.array(side) == "neither", 0.0, np.max(by_item, axis=0))
    np.testing.assert_allclose(signals.ratios.campaign, wanted, atol=1e-12)
    assert (wanted[loud == 0] > 0.1).any(), "somebody of whom nothing else is known"


def test_a_campaign_needs_others(model: rl.RingDetector) -> None:
    """One loud review says nothing for itself, and the same to every other one at its place."""
    signals, tensor = model.snapshot_.signals, model.tensor_
    alone = np.zeros(tensor.n_cells)
    loudest = int(np.argmax(signals.ratios.campaign))
    alone[loudest] = 1.0
    found = campaigns(tensor, signals.lockstep, alone)
    assert found[loudest] == 0 and 0 < found.max() <= 0.5


def test_who_acts_seldom_stands_above_many_reviews_without_suspicion() -> None:
    """Of the first less is known. Of items nothing is believed: they do not act."""
    ways = {"a": np.array([0.0, 0.0, 1.0])}
    unseen = FEW * UNSEEN / (np.array([1, 50, 1]) + FEW)
    few, many, loud = entity_suspicion(ways, unseen=unseen).score
    assert many < few < loud
    assert len(set(entity_suspicion(ways).score[:2])) == 1


def test_what_is_believed_of_the_unseen_is_told_as_that() -> None:
    """Where nothing else speaks the whole score is of it, and it has its share where something does."""
    ways = {"a": np.array([0.0, 0.0, 3.0, 0.0]), "b": np.array([0.0, 0.0, 0.0, 0.0])}
    suspicion = entity_suspicion(ways, unseen=np.array([1.0, 0.5, 1.0, 0.5]))
    assert suspicion.names == ("a", "b", UNSEEN_NAME)
    a, b, unseen = np.asarray(suspicion.parts) / 3
    silent = [0, 1, 3]
    assert not a[silent].any() and not b.any() and suspicion.score[0] > 0
    np.testing.assert_allclose(unseen[silent], suspicion.score[silent])
    np.testing.assert_allclose([a[2], 3 * unseen[2]], 0.75 * suspicion.score[2])
    nothing = entity_suspicion(ways, unseen=np.zeros(4))
    for part in nothing.parts:
        np.testing.assert_allclose(part[silent], nothing.score[silent])


@pytest.fixture(scope="module")
def quiet() -> rl.RingDetector:
    """A crowd, people who review now and then, as many who came once, and one of twelve reviews, one at the crowd's."""
    rng = np.random.default_rng(0)
    rows = [(f"bought{i}", "p7", "s3", 5, OPENING + 60 * WEEK) for i in range(40)]
    rows += [("visitor", "p7", "s3", 5, OPENING + 60 * WEEK)]
    authors = [f"busy{i}" for i in range(300) for _ in range(6)] + [f"once{i}" for i in range(250)]
    for author in [*authors, *["visitor"] * 11]:
        product, week = rng.integers(0, 3000), int(rng.integers(0, 150))
        rows.append((author, f"p{product}", f"s{product // 2}", 5, OPENING + week * WEEK))
    reviews = pd.DataFrame(rows, columns=["reviewer", "product", "seller", "rating", "timestamp"])
    return rl.RingDetector(rank=4, epochs=1, random_state=1).fit(reviews)


def test_who_has_one_review_without_suspicion_is_told_no_reason_but_that(quiet: rl.RingDetector) -> None:
    """Of most people nothing is suspicious, so those who came once stand above the middle."""
    tensor, signals = quiet.tensor_, quiet.snapshot_.signals
    total, score = np.sum(list(signals.ways(0).values()), axis=0), signals.suspicion(0).score
    names = np.asarray(tensor.vocabulary("reviewer").decode(np.arange(tensor.shape[0])))
    above, below = (names[(total == 0) & (score * sign > 0)] for sign in (1, -1))
    explained = quiet.explain("reviewer", str(above[0]))
    (reason,) = explained.account.reasons_for
    assert reason.kind == "unseen" and reason.amount == pytest.approx(explained.summary["score"])
    more = rounded_percent((tensor.degrees(0) > 1).mean())
    assert reason.sentence == f"It has 1 review; {more} of reviewers have more, and of them more is known"
    table = explained.contributions.set_index("input")
    assert table["contribution"].sum() == pytest.approx(explained.summary["score"])
    assert table.loc[UNSEEN_NAME, "sentence"] != UNSEEN_NAME
    (against,) = quiet.explain("reviewer", str(below[0])).account.reasons_against
    assert (against.kind, against.sentence) == ("unseen", "None of its 6 reviews is suspicious")


def test_campaigns_are_said_of_as_many_reviews_as_there_are(quiet: rl.RingDetector) -> None:
    """Most reviews stand in none, so less than a tenth are the loudest, and so many are to be expected."""
    signals, tensor = quiet.snapshot_.signals, quiet.tensor_
    share = (signals.ratios.campaign > 0).mean()
    assert share < 0.08 < 1 / 12 < 0.1 and np.quantile(signals.ratios.campaign, 0.9) == 0
    own = OwnReviews(tensor, 0, int(quiet.snapshot_.codes("reviewer", ["visitor"])[0]), *roles_of(quiet))
    said = people.campaign(Facts(own, signals, quiet.snapshot_.label_free.inputs(0), {}, None), (), True)
    sentence = "".join(map(str, said.parts))
    assert said.bad and sentence.startswith("1 of its 12 reviews stands where")
    assert f"(the loudest {rounded_percent(share)} of the market); most of all that on product p7" in sentence
    (once,) = (r for r in quiet.explain("reviewer", "bought0").account.reasons_for if r.kind == "campaign")
    assert once.sentence.startswith("Its only review stands where others'") and ": that on product p7" in once.sentence


def test_campaigns_are_no_reason_to_the_contrary(model: rl.RingDetector) -> None:
    """Who stands near the loudest is told how much it is; who stands among them, never that it is less than usual."""
    signals, tensor = model.snapshot_.signals, model.tensor_
    k = tensor.mode_index("reviewer")
    others, score = signals.ratios.campaign, signals.suspicion(k).score
    loud = np.bincount(tensor.coordinates[:, k], weights=others > np.quantile(others, 0.9), minlength=tensor.shape[k])
    part = signals.suspicion(k).parts[signals.suspicion(k).names.index("suspicion_campaign")]
    near = np.flatnonzero((score > 0) & (loud == 0) & (part > 3 * score))[:5]
    among = np.flatnonzero((score < 0) & (loud > 0.1 * tensor.degrees(k)))[:5]
    assert len(near) and len(among)
    for code in (*near, *among):
        account = model.explain("reviewer", tensor.vocabularies[k].decode([code])[0]).account
        for reason in (*account.reasons_for, *account.reasons_against):
            if reason.kind == "campaign":
                begins = "It reviews where others' reviews are suspicious: " if code in near else f"{loud[code]:.0f} of"
                assert reason.sentence.startswith(begins) and "than most" not in reason.sentence


def roles_of(model: rl.RingDetector) -> tuple[Roles, LockstepSettings]:
    lockstep = model.snapshot_.signals.lockstep
    return lockstep.roles(model.tensor_), lockstep.settings


def test_a_product_that_everyone_talks_about_is_no_crowd() -> None:
    """Strangers of all opinions come at once. Those who all praise are a crowd, also where a few disagree."""

    def loudest(disagree: int) -> float:
        tensor = market(once=40, rating=[1] * disagree + [5] * (40 - disagree))
        return float(strangers_of(tensor).ratios[bought(tensor)].max())

    assert loudest(0) > 50 and loudest(2) > 30 and loudest(16) < 5


def test_a_way_has_of_the_score_what_it_has_of_the_sum() -> None:
    suspicion = entity_suspicion({"a": np.array([0.0, 1.0, 3.0]), "b": np.array([0.0, 0.0, 1.0])})
    assert suspicion.parts[1][1] == 0 and suspicion.parts[0][2] == pytest.approx(3 * suspicion.parts[1][2])


def test_a_stored_model_has_the_same_strangers(model: rl.RingDetector, tmp_path) -> None:
    model.save(tmp_path / "model")
    loaded = rl.load(tmp_path / "model").snapshot_.signals
    for one, two in zip(model.snapshot_.signals.strangers, loaded.strangers, strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(model.snapshot_.signals.ratios, loaded.ratios, strict=True):
        np.testing.assert_array_equal(one, two)
