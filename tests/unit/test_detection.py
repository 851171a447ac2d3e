"""From labels to probabilities, reasons and cores: the scoring half of the detector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.errors import InputError, LabelError, SettingsError
from ringleader.evaluation import metrics
from ringleader.evaluation.truth import evaluate
from ringleader.judge.contributions import OWN_LABEL, head_contributions
from ringleader.judge.neighbours import reads_neighbours
from ringleader.known.covariates import read_covariates
from ringleader.signals import Suspicion


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(20_000, difficulty="easy", seed=11)


@pytest.fixture(scope="module")
def tensor(market: Marketplace) -> rl.SparseTensor:
    return rl.read_reviews(market.reviews)


@pytest.fixture(scope="module")
def known(market: Marketplace) -> pd.DataFrame:
    return market.labels[market.labels["target"] == "abuse"]


@pytest.fixture(scope="module")
def model(tensor: rl.SparseTensor, known: pd.DataFrame) -> rl.RingDetector:
    return rl.RingDetector(rank=8, random_state=1).fit(tensor, known)


def truth_of(market: Marketplace, mode: str, split: str) -> pd.Series:
    rows = market.truth[(market.truth["mode"] == mode) & (market.truth["target"] == "abuse")]
    rows = rows[rows["split"] == split]
    return rows.set_index("entity")["label"]


def test_labels_give_probabilities_with_intervals_around_them(model: rl.RingDetector) -> None:
    table = model.scores("seller")
    assert table[["probability", "lower", "upper"]].notna().all().all()
    assert ((table["lower"] <= table["probability"]) & (table["probability"] <= table["upper"])).all()
    assert (table["score"].diff().dropna() <= 0).all()


def test_other_sellers_are_ranked_well(model: rl.RingDetector, market: Marketplace) -> None:
    truth = truth_of(market, "seller", "test")
    score = model.scores("seller").set_index("entity")["score"]
    assert metrics.auc(truth, score[truth.index]) > 0.9


def test_a_mode_without_labels_has_no_probability_but_a_score(model: rl.RingDetector) -> None:
    table = model.scores("product")
    assert table["probability"].isna().all()
    assert table["score"].notna().all()


def test_the_labelled_are_judged_without_their_own_label(
    model: rl.RingDetector, tensor: rl.SparseTensor, known: pd.DataFrame
) -> None:
    flipped = known.copy()
    victim = known[known["mode"] == "seller"].iloc[0]
    flipped.loc[victim.name, "label"] = 1 - victim["label"]
    other = rl.RingDetector(rank=8, random_state=1).fit(tensor, flipped)
    scores = [made.scores("seller").set_index("entity")["score"] for made in (model, other)]
    # Its own label is left out to first order; through what the others teach about it, little remains.
    logits = [np.log(s[victim["entity"]] / (1 - s[victim["entity"]])) for s in scores]
    assert abs(logits[0] - logits[1]) < 1.0


def test_one_class_alone_falls_back_to_evidence_and_says_so(tensor: rl.SparseTensor, known: pd.DataFrame) -> None:
    bad = known[(known["label"] == 1) & (known["mode"] == "seller")]
    model = rl.RingDetector(rank=8, random_state=1).fit(tensor, bad)
    assert model.heads_ is not None
    assert model.heads_[0].kind == "evidence"
    assert "abusive" in model.heads_[0].note
    score = model.scores("seller").set_index("entity")["score"]
    suspicion = pd.Series(model.suspicion("seller"), tensor.vocabulary("seller").decode(np.arange(len(score))))
    suspicion = suspicion[score.index]
    above = suspicion > suspicion.min()  # a quarter of the sellers share the lowest suspicion
    assert score[above].corr(suspicion[above], method="spearman") > 0.99
    assert score[~above].max() < score[above].median()


def test_the_given_prevalence_is_the_mean_probability(tensor: rl.SparseTensor, known: pd.DataFrame) -> None:
    model = rl.RingDetector(rank=8, random_state=1, prevalence={"seller": 0.2}).fit(tensor, known)
    assert model.heads_ is not None
    shares = {t.mode: h for t, h in zip(model.problem_.targets, model.heads_, strict=True)}
    seller = shares[tensor.mode_index("seller")]
    assert seller.predict()[1].mean() == pytest.approx(0.2, abs=1e-6)


def test_heads_come_back_from_a_folder(model: rl.RingDetector, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = rl.load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.scores("seller"), model.scores("seller"))
    pd.testing.assert_frame_equal(again.scores("reviewer"), model.scores("reviewer"))


def test_held_out_labels_train_nothing(tensor: rl.SparseTensor, known: pd.DataFrame) -> None:
    labels = rl.read_labels(known)
    model = rl.RingDetector(rank=8, random_state=1, holdout=0.25).fit(tensor, labels)
    assert model.heldout_ is not None and model.labels_ is not None
    held = {(e.mode, e.entity) for e in model.heldout_.entries}
    kept = {(e.mode, e.entity) for e in model.labels_.entries}
    assert not held & kept
    assert held | kept == {(e.mode, e.entity) for e in labels.entries}
    rows = evaluate(model, model.heldout_)
    assert {row["mode"] for row in rows} == set(labels.modes)
    assert sum(row["accounts"] for row in rows) == len(held)


def test_a_share_too_small_for_the_labels_is_refused() -> None:
    few = rl.read_labels(pd.DataFrame({"mode": ["seller"], "entity": ["a"], "label": [1]}))
    with pytest.raises(LabelError, match="too few"):
        few.split(0.2)


def test_the_users_own_numbers_are_used(tensor: rl.SparseTensor) -> None:
    # Labels that follow nothing but a number the reviews do not hold.
    rng = np.random.default_rng(0)
    sellers = tensor.vocabulary("seller").decode(np.arange(len(tensor.vocabulary("seller"))))
    tips = rng.normal(size=len(sellers))
    labels = pd.DataFrame({"mode": "seller", "entity": sellers, "label": (tips > 0).astype(int)})
    told = pd.DataFrame({"mode": "seller", "entity": sellers, "tips": tips})
    half = len(labels) // 2
    aucs = []
    for covariates in (None, told):
        model = rl.RingDetector(rank=8, random_state=1).fit(tensor, labels[:half], covariates=covariates)
        score = model.scores("seller").set_index("entity")["score"]
        aucs.append(metrics.auc(labels["label"][half:], score[labels["entity"][half:]]))
    assert aucs[0] < 0.7
    assert aucs[1] > 0.9
    assert model.inputs("seller").groups["tips"] == "given"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"mode": ["seller"], "entity": ["a"]}), "no column beside"),
        (pd.DataFrame({"mode": ["seller"], "entity": ["a"], "x": ["many"]}), "not a number"),
        (pd.DataFrame({"mode": ["seller"] * 2, "entity": ["a"] * 2, "x": [1, 2]}), "repeats"),
        (pd.DataFrame({"mode": ["seller"], "entity": ["a"], "x": [np.inf]}), "infinite"),
        (pd.DataFrame({"mode": ["seller"], "entity": ["a"], "x": [-1e300]}), "too large"),
    ],
)
def test_bad_covariates_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_covariates(table)


@pytest.mark.parametrize("mode", ["seller", "reviewer"])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("place", [0, -1])
def test_contributions_and_intercept_add_up_to_the_log_odds_of_the_probability(
    model: rl.RingDetector, mode: str, labelled: bool, place: int
) -> None:
    scores = model.scores(mode)
    entity = scores[scores["label"].notna() == labelled].iloc[place]["entity"]
    found = model.explain(mode, entity)
    total = found.summary["intercept"] + found.contributions["contribution"].sum()
    assert total == pytest.approx(logit(found.summary["probability"]), abs=1e-9)
    assert "evidence prior" not in set(found.contributions["input"])
    assert (OWN_LABEL in set(found.contributions["input"])) == labelled


def test_a_part_of_the_suspicion_that_is_ordinary_adds_nothing(model: rl.RingDetector) -> None:
    """Evidence is no reason where there is none, however loud the lockstep."""
    assert model.heads_ is not None
    k = model.tensor_.mode_index("seller")
    head = next(h for t, h in zip(model.problem_.targets, model.heads_, strict=True) if t.mode == k)
    code = int(np.argmax(head.predict()[0]))
    names, flat = ("x", "y", "z"), np.zeros(model.tensor_.shape[k])
    loud = flat.copy()
    loud[code] = 3.0
    parts = head_contributions(head, np.array([code]), Suspicion(names, (flat, loud, loud)))
    added = dict(zip(parts.names, parts.amounts[0], strict=True))
    assert added["x"] == 0 and added["y"] == added["z"] > 0
    assert added["y"] + added["z"] == pytest.approx(head.contributions([code])[0, -1], abs=1e-12)


@pytest.mark.parametrize("mode", ["seller", "reviewer"])
def test_contributions_of_many_add_up_and_are_those_of_the_explanation(model: rl.RingDetector, mode: str) -> None:
    scores = model.scores(mode).set_index("entity")
    frame = model.contributions(mode)
    total = frame.drop(columns="entity").sum(axis=1)
    np.testing.assert_allclose(total, logit(scores.loc[frame["entity"], "probability"]), atol=1e-8)
    some = [scores.index[3], scores.index[0]]
    told = model.contributions(mode, some)
    assert list(told["entity"]) == some
    one = model.explain(mode, some[0]).contributions.set_index("input")["contribution"]
    np.testing.assert_allclose(told.iloc[0][list(one.index)].to_numpy(float), one)
    with pytest.raises(rl.RingleaderError, match="there is no"):
        model.contributions(mode, ["nobody"])


def test_contributions_without_labels_add_up_to_the_score(model: rl.RingDetector) -> None:
    found = model.explain("product", model.scores("product").iloc[0]["entity"])
    assert found.contributions["contribution"].sum() == pytest.approx(found.summary["score"])
    assert found.summary["intercept"] == 0


def test_an_explanation_as_data_keeps_the_number_of_reviews(model: rl.RingDetector) -> None:
    row = model.scores("rating").iloc[0]  # all its columns are numbers, and some of them whole
    data = model.explain("rating", row["entity"]).to_dict()
    assert (data["review_count"], data["rank"]) == (row["reviews"], 1)
    assert isinstance(data["review_count"], int) and isinstance(data["rank"], int)
    assert len(data["reviews"]) == 10


def test_shared_weeks_are_told_by_their_first_day(model: rl.RingDetector, market: Marketplace) -> None:
    """By hand: the weeks in which people whom two sellers share reviewed both of them."""
    scores, table = model.scores("seller"), market.reviews
    week = pd.to_datetime(table["timestamp"], unit="s").dt.to_period("W-SUN").dt.start_time.dt.date.astype(str)
    told = 0
    for entity in scores["entity"][:8]:
        for near in model.explain("seller", entity).neighbours.to_dict("records"):
            mine, theirs = table["seller"] == entity, table["seller"] == near["entity"]
            both = set(table["reviewer"][mine]) & set(table["reviewer"][theirs])
            assert near["shared"] == len(both) and set(near["accounts"]) <= both
            shared = table["reviewer"].isin(both)
            weeks = set(week[mine & shared]) & set(week[theirs & shared])
            assert set(near["times"]) <= weeks and len(near["times"]) == min(len(weeks), 5)
            told += len(weeks)
    assert told


def test_an_explanation_names_reviews_cores_and_known_neighbours(model: rl.RingDetector, market: Marketplace) -> None:
    ring = market.truth[(market.truth["mode"] == "seller") & (market.truth["label"] == 1)]
    known_rings = set(ring[ring["split"] == "known"]["ring"])
    member = ring[(ring["split"] != "known") & ring["ring"].isin(known_rings)].iloc[0]["entity"]
    found = model.explain("seller", member)
    assert (found.reviews["seller"] == member).all()
    assert len(found.reviews) == min(10, found.summary["reviews"])
    assert set(found.neighbours["entity"]) <= set(
        market.labels[(market.labels["mode"] == "seller") & (market.labels["label"] == 1)]["entity"]
    )
    assert (found.neighbours["shared"] > found.neighbours["expected"]).all()
    assert found.to_dict()["entity"] == member


@pytest.mark.parametrize("mode", ["reviewer", "product", "rating", "week"])
def test_any_mode_can_be_explained(model: rl.RingDetector, mode: str) -> None:
    entity = model.scores(mode).iloc[0]["entity"]
    found = model.explain(mode, entity)
    assert found.summary["mode"] == mode
    assert len(found.contributions)


def test_the_other_presets_explain_by_components(tensor: rl.SparseTensor, known: pd.DataFrame) -> None:
    model = rl.RingDetector(preset="corrected", rank=4, epochs=2).fit(tensor, known)
    entity = model.scores("seller").iloc[0]["entity"]
    names = {f"component {r}" for r in range(1, 5)}
    assert set(model.explain("seller", entity).contributions["input"]) == {*names, "log_odds_mean"}
    printed = rl.RingDetector(preset="paper", rank=4, epochs=2).fit(tensor, known)
    assert set(printed.explain("seller", entity).contributions["input"]) == names


@pytest.fixture(scope="module")
def unrated(market: Marketplace) -> rl.SparseTensor:
    return rl.read_reviews(market.reviews.drop(columns="rating")[:3000])


def test_without_ratings_nothing_is_said_about_good_ones(unrated: rl.SparseTensor) -> None:
    model = rl.RingDetector(rank=2, epochs=1).fit(unrated)
    sentences = model.explain("seller", model.scores("seller").iloc[0]["entity"]).contributions["sentence"]
    assert len(sentences) == 3 and not sentences.str.contains("good").any()
    assert sentences.str.contains("come from people who act in lockstep").sum() == 1
    table = model.explain("reviewer", model.scores("reviewer").iloc[0]["entity"]).contributions
    assert table["sentence"].str.startswith("It and others act in lockstep").sum() == 1
    assert not table["sentence"].str.contains("bad").any()
    assert {f"suspicion_{way}" for way in ("lockstep", "strangers", "evidence", "campaign", "unseen")} == set(
        table["input"]
    )


def test_numbers_without_spread_are_scored_by_their_mean(unrated: rl.SparseTensor) -> None:
    sellers = unrated.vocabulary("seller").values.to_pylist()[:9]
    known = rl.read_labels(pd.DataFrame({"mode": "seller", "entity": sellers, "label": 2.0}), target_kind="real")
    scores = rl.RingDetector(rank=2, epochs=1).fit(unrated, known).scores("seller")
    assert (scores["value"] == 2).all()
    assert ((scores["lower"] < 2) & (scores["upper"] > 2)).all()


def test_numbers_of_strangers_are_refused_before_anything_is_learned(unrated: rl.SparseTensor, tmp_path: Path) -> None:
    known = rl.read_labels(pd.DataFrame({"mode": ["seller"], "entity": ["x"], "label": [2.5]}), target_kind="real")
    with pytest.raises(LabelError, match="none of the labelled sellers is in the reviews"):
        rl.RingDetector(rank=2, epochs=1).fit(unrated, known, checkpoint=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_columns_of_the_user_may_be_called_like_ours_and_none_is_lost(unrated: rl.SparseTensor) -> None:
    sellers = unrated.vocabulary("seller").values.to_pylist()
    table = pd.DataFrame({"mode": "seller", "entity": sellers, "reviews": np.arange(len(sellers)), "given_reviews": 1})
    known = pd.DataFrame({"mode": "seller", "entity": sellers[:4], "label": [1, 0, 1, 0]})
    inputs = rl.RingDetector(rank=2, epochs=1).fit(unrated, known, covariates=table).inputs("seller")
    mine = [name for name in inputs.names if inputs.groups[name] == "given"]
    assert mine == ["given_given_reviews", "given_reviews"] and len(set(inputs.names)) == len(inputs.names)
    np.testing.assert_array_equal(inputs.values[:, inputs.names.index(mine[0])], np.arange(len(sellers)))


def test_columns_that_are_called_like_what_labels_say_are_the_users_own(unrated: rl.SparseTensor) -> None:
    sellers = unrated.vocabulary("seller").values.to_pylist()
    own = ["association_seller", "neighbours_count", "shared_with"]
    table = pd.DataFrame({"mode": "seller", "entity": sellers, **{name: np.arange(len(sellers)) for name in own}})
    known = pd.DataFrame({"mode": "seller", "entity": sellers[:4], "label": [1, 0, 1, 0]})
    model = rl.RingDetector(rank=2, epochs=1).fit(unrated, known, covariates=table)
    inputs = model.inputs("seller")
    assert len(set(inputs.names)) == len(inputs.names)
    assert {name for name in inputs.names if inputs.groups[name] == "given"} == {f"given_{name}" for name in own}
    assert inputs.descriptions["given_association_seller"] == "given_association_seller, as given"
    assert model.heads_ is not None and not reads_neighbours(model.heads_[0].names)


def test_an_unknown_account_cannot_be_explained(model: rl.RingDetector) -> None:
    with pytest.raises(SettingsError, match="no seller 'nobody'"):
        model.explain("seller", "nobody")


def test_cores_hold_paid_reviewers(model: rl.RingDetector, market: Marketplace, tensor: rl.SparseTensor) -> None:
    cores = model.cores()
    assert len(cores)
    paid = market.truth[(market.truth["mode"] == "reviewer") & (market.truth["label"] == 1)]["entity"]
    people = tensor.vocabulary("reviewer").decode(cores[0].members["reviewer"].codes)
    assert np.isin(people, paid).mean() > 0.8
