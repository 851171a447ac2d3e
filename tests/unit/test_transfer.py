"""Labels of one mode in the scores of another, which has none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation import metrics
from ringleader.judge import Judge
from ringleader.judge.transfer import tellers
from ringleader.known.labels import Target
from ringleader.report.accounts import Accounts
from ringleader.report.ranking import ranking, subjects
from ringleader.signals.lockstep.association import SHARED_PRIOR
from ringleader.signals.suspicion import not_attacks, own_suspicion

BOTH = ("reviewer", "seller")


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(10_000, difficulty="hard", seed=5)


@pytest.fixture(scope="module")
def tensor(market: Marketplace) -> rl.SparseTensor:
    return rl.read_reviews(market.reviews)


def labels_of(market: Marketplace, *modes: str, target: str = "abuse") -> pd.DataFrame:
    """A third of the accounts; what a market's own labels teach would be too little to be seen in small ones."""
    rows = market.truth[(market.truth["target"] == target) & market.truth["mode"].isin(modes)]
    return rows.sample(frac=1 / 3, random_state=0)[["mode", "entity", "label", "target"]]


def fitted(tensor: rl.SparseTensor, labels: pd.DataFrame | rl.Labels | None) -> rl.RingDetector:
    return rl.RingDetector(rank=4, epochs=1, random_state=3).fit(tensor, labels)


@pytest.fixture(scope="module")
def blind(tensor: rl.SparseTensor) -> rl.RingDetector:
    return fitted(tensor, None)


@pytest.fixture(scope="module")
def by_reviewers(tensor: rl.SparseTensor, market: Marketplace) -> rl.RingDetector:
    return fitted(tensor, labels_of(market, "reviewer"))


@pytest.fixture(scope="module")
def by_sellers(tensor: rl.SparseTensor, market: Marketplace) -> rl.RingDetector:
    return fitted(tensor, labels_of(market, "seller"))


@pytest.fixture(scope="module")
def by_both(tensor: rl.SparseTensor, market: Marketplace) -> rl.RingDetector:
    return fitted(tensor, labels_of(market, *BOTH))


def score_of(model: rl.RingDetector, mode: str) -> np.ndarray:
    return model.scores_by_code(mode)["score"].to_numpy()


def test_a_target_without_a_label_in_the_reviews_changes_nothing_for_others() -> None:
    nobody = Target(1, "abuse", "binary", np.zeros(0, np.int32), np.zeros(0))
    known = Target(0, "abuse", "binary", np.arange(4, dtype=np.int32), np.array([1.0, -1.0, 1.0, -1.0]))
    for targets in ([known], [known, nobody], [known, nobody._replace(name="bought")]):
        assert tellers(1, 0, targets) == [0]
        assert Judge(None, targets, seed=0).neighbours("abuse") == (False, True)  # type: ignore[arg-type]
    assert tellers(1, 0, [nobody._replace(mode=0)]) == []


@pytest.mark.parametrize(
    ("known", "mode"), [("reviewer", "seller"), pytest.param("seller", "reviewer", marks=pytest.mark.slow)]
)
def test_labels_of_one_mode_rank_the_other_better(known: str, mode: str) -> None:
    lost, lost_before = np.zeros(3), np.zeros(3)
    for place, seed in enumerate((5, 6, 7)):
        market = marketplace(10_000, difficulty="hard", seed=seed)
        tensor = rl.read_reviews(market.reviews)
        truth = market.truth[(market.truth["mode"] == mode) & (market.truth["target"] == "abuse")]
        for losses, labels in ((lost, labels_of(market, known)), (lost_before, None)):
            scores = fitted(tensor, labels).scores_by_code(mode)
            losses[place] = 1 - metrics.auc(truth.set_index("entity")["label"].loc[scores["entity"]], scores["score"])
    assert lost.sum() < 0.8 * lost_before.sum()  # of what the scores without labels leave to gain


@pytest.mark.parametrize(("given", "mode"), [("by_reviewers", "seller"), ("by_sellers", "reviewer")])
def test_it_is_a_score_and_no_probability(request: pytest.FixtureRequest, given: str, mode: str) -> None:
    table = request.getfixturevalue(given).scores(mode)
    assert table[["probability", "lower", "upper", "label"]].isna().all().all()
    assert table["score"].notna().all() and (table["score"].diff().dropna() <= 0).all()


def test_without_labels_the_score_is_the_suspicion(blind: rl.RingDetector) -> None:
    for mode in blind.tensor_.modes:
        np.testing.assert_array_equal(score_of(blind, mode), blind.suspicion(mode))
        assert "neighbours" not in blind.inputs(mode).groups.values()


def test_the_suspicion_sees_no_label(
    blind: rl.RingDetector, by_reviewers: rl.RingDetector, by_sellers: rl.RingDetector
) -> None:
    for mode in (*BOTH, "product"):
        for model in (by_reviewers, by_sellers):
            np.testing.assert_array_equal(model.suspicion(mode), blind.suspicion(mode))


def test_labelled_modes_are_scored_by_their_own_heads(by_both: rl.RingDetector) -> None:
    assert by_both.heads_ is not None
    for target, head in zip(by_both.problem_.targets, by_both.heads_, strict=True):
        np.testing.assert_array_equal(score_of(by_both, by_both.tensor_.modes[target.mode]), head.judge().value)


def test_one_class_alone_tells_nothing_of_others(tensor: rl.SparseTensor, market: Marketplace) -> None:
    known = labels_of(market, "reviewer")
    model = fitted(tensor, known[known["label"] == 1])
    np.testing.assert_array_equal(score_of(model, "seller"), model.suspicion("seller"))
    assert "the suspicion alone" in model.snapshot_.scorer("seller").note


def test_labels_that_teach_nothing_new_leave_sellers_as_they_are(
    tensor: rl.SparseTensor, blind: rl.RingDetector
) -> None:
    """Labels that are what their reviews say themselves, as those of sellers do: the head cannot order them better."""
    suspicion = own_suspicion(tensor, blind.snapshot_.signals.actor, blind.snapshot_.signals.ratios)
    codes = np.random.default_rng(0).choice(len(suspicion), 60, replace=False)
    bad = (suspicion[codes] > np.median(suspicion[codes])).astype(int)
    names = tensor.vocabulary("reviewer").decode(codes)
    model = fitted(tensor, pd.DataFrame({"mode": "reviewer", "entity": names, "label": bad}))
    assert model.heads_ is not None and model.heads_[0].kind == "additive"
    np.testing.assert_array_equal(score_of(model, "seller"), model.suspicion("seller"))


def test_numbers_tell_nothing_of_others(tensor: rl.SparseTensor, market: Marketplace) -> None:
    known = rl.read_labels(labels_of(market, "reviewer").drop(columns="target"), target_kind="real")
    model = fitted(tensor, known)
    np.testing.assert_array_equal(score_of(model, "seller"), model.suspicion("seller"))


def test_known_sellers_leave_products_as_they_are_and_reviewers_do_not(
    by_sellers: rl.RingDetector, by_both: rl.RingDetector
) -> None:
    np.testing.assert_array_equal(score_of(by_sellers, "product"), by_sellers.suspicion("product"))
    named = [n for n in by_both.contributions("product").columns if n.startswith("neighbours_")]
    assert named == ["neighbours_reviewer"]


def test_the_only_target_there_is_tells_under_its_name(tensor: rl.SparseTensor, market: Marketplace) -> None:
    boost, attack = (labels_of(market, "reviewer", target=target) for target in ("boost", "attack"))
    alone = fitted(tensor, boost)
    assert "neighbours_reviewer_boost" in alone.contributions("seller")
    two = fitted(tensor, pd.concat([boost, attack]))  # neither is the main one
    np.testing.assert_array_equal(score_of(two, "seller"), two.suspicion("seller"))


@pytest.mark.parametrize(("given", "mode"), [("by_reviewers", "seller"), ("by_sellers", "reviewer")])
def test_contributions_sum_to_the_score_and_neighbours_are_among_them(
    request: pytest.FixtureRequest, given: str, mode: str
) -> None:
    model: rl.RingDetector = request.getfixturevalue(given)
    teller = given.removeprefix("by_")
    frame = model.contributions(mode)
    np.testing.assert_allclose(frame.drop(columns="entity").sum(axis=1), score_of(model, mode), atol=1e-12)
    found = model.explain(mode, model.scores(mode)["entity"].iloc[0])
    told = found.contributions.set_index("input").loc[f"neighbours_{teller[:-1]}"]
    assert told["kind"] == "neighbours" and told["sentence"].startswith(f"How suspected the {teller[:-1]} accounts are")
    assert told["above"] > 0.5
    assert f"how suspected its {teller} are" in found.note and "not a probability" in found.note
    assert found.contributions["contribution"].sum() == pytest.approx(found.summary["score"])


def test_the_report_says_how_such_scores_were_made(by_reviewers: rl.RingDetector) -> None:
    (sellers,) = [s for s in subjects(by_reviewers) if s.mode == "seller"]
    page = ranking(by_reviewers, sellers, "x", Accounts(by_reviewers.snapshot_, ()))
    assert "how suspected its reviewers are" in page.note
    said = "reviewers are known bad or at least 50% likely to be bad"
    assert any(said in r.text for row in page.rows for r in row.reasons)


def test_the_neighbours_input_is_the_mean_over_those_met_without_bad_ratings(
    by_reviewers: rl.RingDetector, tensor: rl.SparseTensor
) -> None:
    """By hand for a few sellers: known labels as they are, others as the head believes, attacks apart."""
    assert by_reviewers.heads_ is not None
    (head,) = by_reviewers.heads_
    belief = head.judge().value.copy()
    belief[head.codes] = (head.values > 0).astype(float)
    inputs = by_reviewers.inputs("seller")
    neighbours = inputs.values[:, inputs.names.index("neighbours_reviewer")]
    fair = not_attacks(tensor, by_reviewers.lockstep())
    assert not fair.all()
    seller, reviewer = (tensor.coordinates[:, tensor.mode_index(mode)] for mode in ("seller", "reviewer"))
    for code in range(20):
        met = np.unique(reviewer[fair & (seller == code)])
        mean = (belief[met] - belief.mean()).sum() / (len(met) + SHARED_PRIOR)
        assert neighbours[code] == pytest.approx(mean, abs=1e-12)


def test_such_scores_come_back_from_a_folder(by_reviewers: rl.RingDetector, tmp_path: Path) -> None:
    by_reviewers.save(tmp_path / "m")
    pd.testing.assert_frame_equal(rl.load(tmp_path / "m").scores("seller"), by_reviewers.scores("seller"))


def test_other_presets_are_left_as_they_are(tensor: rl.SparseTensor, market: Marketplace) -> None:
    known = labels_of(market, "reviewer")
    model = rl.RingDetector(preset="corrected", rank=2, epochs=1).fit(tensor, known)
    np.testing.assert_array_equal(score_of(model, "seller"), model.suspicion("seller"))
