"""What people use today: boosting, forest, propagation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ringleader as rl
from ringleader.baselines.behaviour import PLAIN_GROUPS, mode_features
from ringleader.baselines.registry import baseline
from ringleader.datasets import marketplace
from ringleader.errors import LabelError, SettingsError
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.protocol import Split, market_split
from ringleader.signals.behaviour import behaviour
from ringleader.tensor.sparse import SparseTensor

SMALL = {"boosting": {"max_iter": 40}, "forest": {"n_estimators": 60}}


@pytest.fixture(scope="module")
def market() -> tuple[SparseTensor, dict[str, Split]]:
    made = marketplace(40_000, difficulty="easy", seed=4)
    tensor = rl.read_reviews(made.reviews)
    return tensor, {mode: market_split(tensor, made.truth, mode) for mode in ("seller", "reviewer")}


def auc_of(split: Split, scores: np.ndarray) -> float:
    return auc(split.truth, scores[split.test])


# -- boosting and forest --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boosting", "forest"])
def test_behaviour_finds_paid_reviewers_it_was_not_shown(market, name):
    tensor, splits = market
    split = splits["reviewer"]
    model = baseline(name, **SMALL[name]).fit(tensor, split.labels)
    assert auc_of(split, model.scores("reviewer")) > 0.8


@pytest.mark.parametrize("name", ["boosting", "forest"])
def test_labels_that_say_nothing_teach_nothing(market, name):
    tensor, splits = market
    split = splits["reviewer"]
    features = {"columns": "none", "extra": mode_features(tensor, ["reviewer"])}
    known = np.flatnonzero(~np.isnan(split.known))
    lost = []
    for seed in range(10):  # one shuffle of thirty labels may still tell one ring from another
        shuffled = split.known.copy()
        shuffled[known] = np.random.default_rng(seed).permutation(split.known[known])
        model = baseline(name, **SMALL[name], **features).fit(tensor, {"reviewer": shuffled})
        lost.append(auc_of(split, model.scores("reviewer")))
    assert 0.35 < np.mean(lost) < 0.65


def test_plain_columns_are_what_each_account_does_and_all_adds_who_acts_together(market):
    tensor, _ = market
    covariates = behaviour(tensor, "seller")
    names, values = mode_features(tensor, ["seller"], "plain")["seller"]
    assert names == tuple(n for n in covariates.names if covariates.groups[n] != "crowd")
    np.testing.assert_array_equal(values, covariates.values[:, [covariates.names.index(n) for n in names]])
    everything, _ = mode_features(tensor, ["seller"], "all")["seller"]
    added = set(everything) - set(names)
    assert {n for n in added if "crowd" in n} == {n for n in covariates.names if covariates.groups[n] == "crowd"}
    assert {n for n in added if "crowd" not in n} == {
        f"{side}_{part}" for side in ("lockstep", "boost", "attack") for part in ("mean", "top10")
    }


def test_every_group_of_covariates_is_plain_or_crowd(market):
    tensor, _ = market
    groups = {g for mode in ("seller", "reviewer") for g in behaviour(tensor, mode).groups.values()}
    assert groups == {*PLAIN_GROUPS, "crowd"}


@pytest.mark.parametrize("name", ["boosting", "forest"])
def test_only_the_given_columns_are_used_where_asked(market, name):
    tensor, splits = market
    split = splits["seller"]
    answer = np.zeros((tensor.shape[2], 2))
    answer[split.test, 0] = split.truth
    answer[:, 0] = np.where(split.known == 1, 1.0, answer[:, 0])
    settings = {**SMALL[name], "columns": "none", "extra": {"seller": (["answer", "nothing"], answer)}}
    if name == "forest":
        settings["max_features"] = 1.0
    model = baseline(name, **settings).fit(tensor, split.labels)
    assert model.names_ == {"seller": ("answer", "nothing")}
    assert auc_of(split, model.scores("seller")) == 1.0
    beside = baseline(name, **{**settings, "columns": "plain"}).fit(tensor, split.labels)
    assert beside.names_["seller"][-2:] == ("answer", "nothing")
    assert len(beside.names_["seller"]) > 20


def test_a_mode_is_learned_from_its_own_labels_only(market):
    tensor, splits = market
    both = {**splits["seller"].labels, **splits["reviewer"].labels}
    alone = baseline("boosting", max_iter=10).fit(tensor, splits["seller"].labels)
    together = baseline("boosting", max_iter=10).fit(tensor, both)
    np.testing.assert_array_equal(alone.scores("seller"), together.scores("seller"))
    with pytest.raises(LabelError, match="reviewer has 0 bad and 0 good"):
        alone.scores("reviewer")


def test_one_kind_of_label_is_not_enough(market):
    tensor, splits = market
    bad_only = np.where(splits["seller"].known == 1, 1.0, np.nan)
    count = int((bad_only == 1).sum())
    with pytest.raises(LabelError, match=f"seller has {count} bad and 0 good; label at least one of each"):
        baseline("forest").fit(tensor, {"seller": bad_only})
    # The mode that has both is learned all the same.
    model = baseline("boosting", max_iter=5).fit(tensor, {"seller": bad_only, **splits["reviewer"].labels})
    assert model.scores("reviewer").shape == (tensor.shape[0],)
    with pytest.raises(LabelError, match="0 good"):
        model.scores("seller")


def test_the_seed_decides_the_forest(market):
    tensor, splits = market
    first, again, other = (
        baseline("forest", n_estimators=10, random_state=seed).fit(tensor, splits["seller"].labels).scores("seller")
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": "some"}, "columns is 'some'; choose simple, plain, all, none"),
        ({"columns": "none"}, "extra has nothing for seller"),
        ({"extra": {"seller": (["a"], np.zeros((3, 1)))}}, "one row for each of"),
        ({"extra": {"shop": (["a"], np.zeros((3, 1)))}}, "no mode 'shop'"),
        ({"extra": 5}, "mapping of mode"),
        ({"max_iter": 0}, "max_iter"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_settings_without_sense_are_refused(market, settings, message):
    tensor, splits = market
    with pytest.raises(SettingsError, match=message):
        baseline("boosting", **settings).fit(tensor, splits["seller"].labels)


def test_extra_columns_must_be_finite(market):
    tensor, splits = market
    holes = np.full((tensor.shape[2], 1), np.nan)
    with pytest.raises(SettingsError, match="not finite"):
        baseline("boosting", extra={"seller": (["a"], holes)}).fit(tensor, splits["seller"].labels)


# -- propagation ----------------------------------------------------------------------------------------


def random_tensor(seed: int = 0, sizes: tuple[int, ...] = (12, 9, 5)) -> SparseTensor:
    g = np.random.default_rng(seed)
    codes = np.stack([g.integers(0, n, 40) for n in sizes], axis=1)
    return SparseTensor.from_arrays(codes, ["reviewer", "seller", "product"], counts=g.integers(1, 4, 40), sizes=sizes)


def sparse_labels(size: int, seed: int) -> np.ndarray:
    g = np.random.default_rng(seed)
    values = np.full(size, np.nan)
    chosen = g.permutation(size)[:6]
    values[chosen] = [1, 0, 1, 0, 0, 0]
    return values


@pytest.mark.parametrize("normalisation", ["mean", "symmetric"])
@pytest.mark.parametrize("prior", [0.0, 5.0])
def test_beliefs_are_the_fixed_point_of_a_direct_solve(normalisation, prior):
    tensor = random_tensor()
    known = {"reviewer": sparse_labels(12, 1), "seller": sparse_labels(9, 2)}
    settings = {"normalisation": normalisation, "prior": prior, "alpha": 0.9, "tol": 1e-13}
    model = baseline("propagation", **settings, sources="both").fit(tensor, known)
    assert model.converged_
    graph = np.zeros((12, 9))
    np.add.at(graph, (tensor.coordinates[:, 0], tensor.coordinates[:, 1]), tensor.counts)
    joined = np.block([[np.zeros((12, 12)), graph], [graph.T, np.zeros((9, 9))]])
    degree = joined.sum(axis=1) + prior
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    left, right = (inverse, np.ones(21)) if normalisation == "mean" else (np.sqrt(inverse), np.sqrt(inverse))
    y = np.concatenate([_signed(known["reviewer"]), _signed(known["seller"])])
    exact = np.linalg.solve(np.eye(21) - 0.9 * left[:, None] * joined * right, 0.1 * y)
    np.testing.assert_allclose(model.scores("reviewer"), exact[:12], atol=1e-10)
    np.testing.assert_allclose(model.scores("seller"), exact[12:], atol=1e-10)


def _signed(known: np.ndarray) -> np.ndarray:
    return np.where(known == 1, 1.0, np.where(known == 0, -(known == 1).sum() / (known == 0).sum(), 0.0))


@pytest.mark.parametrize("normalisation", ["mean", "symmetric"])
def test_it_converges_where_neighbours_are_nearly_all_that_counts(market, normalisation):
    tensor, splits = market
    model = baseline("propagation", alpha=0.98, normalisation=normalisation, max_iter=2000)
    model.fit(tensor, splits["seller"].labels)
    assert model.converged_
    assert model.n_iter_ < 1000
    assert np.abs(model.beliefs_[1]).max() <= 1.0 + 1e-9


def test_neighbours_of_the_bad_are_worse_than_neighbours_of_the_good():
    # Reviewer 0 and 1 review seller 0, 2 and 3 seller 1; nobody knows seller 2.
    codes = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2]]
    tensor = SparseTensor.from_arrays(codes, ["reviewer", "seller"])
    scores = baseline("propagation").fit(tensor, {"seller": [1, 0, np.nan]}).scores("reviewer")
    assert scores[0] == scores[1] > 0 > scores[2] == scores[3]
    assert scores[4] == 0


def test_propagation_finds_bad_accounts_it_was_not_shown():
    areas: dict[str, list[float]] = {"seller": [], "reviewer": []}
    for seed in (3, 4, 5, 6):  # a market of this size has about twenty bad sellers to test
        made = marketplace(40_000, difficulty="easy", seed=seed)
        tensor = rl.read_reviews(made.reviews)
        for mode in areas:
            split = market_split(tensor, made.truth, mode)
            areas[mode].append(auc_of(split, baseline("propagation").fit(tensor, split.labels).scores(mode)))
    assert np.mean(areas["seller"]) > 0.75 and np.mean(areas["reviewer"]) > 0.75


def test_permuting_ids_permutes_scores():
    tensor = random_tensor()
    order = np.random.default_rng(3).permutation(12)
    moved = tensor.coordinates.copy()
    moved[:, 0] = order[tensor.coordinates[:, 0]]
    other = SparseTensor.from_arrays(moved, tensor.modes, counts=tensor.counts, sizes=tensor.shape)
    known = sparse_labels(12, 1)
    shifted = np.full(12, np.nan)
    shifted[order] = known
    first = baseline("propagation").fit(tensor, {"reviewer": known}).scores("reviewer")
    second = baseline("propagation").fit(other, {"reviewer": shifted}).scores("reviewer")
    np.testing.assert_allclose(second[order], first, atol=1e-7)


def test_own_labels_score_a_mode_and_both_add_up():
    tensor = random_tensor()
    reviewers, sellers = {"reviewer": sparse_labels(12, 1)}, {"seller": sparse_labels(9, 2)}
    alone, other = (baseline("propagation").fit(tensor, known).scores("seller") for known in (sellers, reviewers))
    own = baseline("propagation").fit(tensor, {**reviewers, **sellers}).scores("seller")
    both = baseline("propagation", sources="both").fit(tensor, {**reviewers, **sellers}).scores("seller")
    np.testing.assert_allclose(own, alone, atol=1e-6)
    np.testing.assert_allclose(both, alone + other, atol=1e-6)
    assert not np.allclose(own, both)


def test_other_modes_take_the_mean_belief_of_their_reviewers():
    tensor = random_tensor()
    model = baseline("propagation", prior=0.0).fit(tensor, {"reviewer": sparse_labels(12, 1)})
    beliefs = model.scores("reviewer")
    table = pd.DataFrame({"product": tensor.coordinates[:, 2], "w": tensor.counts})
    table["belief"] = beliefs[tensor.coordinates[:, 0]] * table["w"]
    by = table.groupby("product")
    np.testing.assert_allclose(model.scores("product"), by["belief"].sum() / by["w"].sum())


def test_any_two_modes_make_the_graph():
    tensor = random_tensor()
    model = baseline("propagation", modes=["product", "seller"]).fit(tensor, {"product": [1, 0, np.nan, np.nan, 1]})
    assert model.pair_ == (2, 1)
    # Products reach each other through sellers, so the reviewers between them do not matter.
    shuffled = tensor.coordinates.copy()
    shuffled[:, 0] = np.random.default_rng(0).permutation(shuffled[:, 0])
    other = SparseTensor.from_arrays(shuffled, tensor.modes, counts=tensor.counts, sizes=tensor.shape)
    again = baseline("propagation", modes=["product", "seller"]).fit(other, {"product": [1, 0, np.nan, np.nan, 1]})
    np.testing.assert_allclose(again.scores("seller"), model.scores("seller"), atol=1e-7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1.0}, "a number between 0 and 1"),
        ({"alpha": 0.0}, "alpha"),
        ({"modes": ["reviewer", "reviewer"]}, "two different modes"),
        ({"modes": 7}, "two different modes"),
        ({"modes": ["reviewer", "shop"]}, "no mode 'shop'"),
        ({"normalisation": "none"}, "normalisation"),
        ({"sources": "all"}, "sources"),
        ({"weight": "money"}, "weight"),
        ({"prior": -1.0}, "prior"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_propagation_refuses_what_makes_no_sense(settings, message):
    with pytest.raises(SettingsError, match=message):
        baseline("propagation", **settings).fit(random_tensor(), {"reviewer": sparse_labels(12, 1)})


def test_propagation_says_which_labels_it_lacks():
    with pytest.raises(LabelError, match="a label of a reviewer or seller"):
        baseline("propagation").fit(random_tensor(), {"product": [1, 0, 1, 0, 1]})


def test_couplings_never_amplify():
    for normalisation in ("mean", "symmetric"):
        forth, back = baseline("propagation", normalisation=normalisation, prior=0.0)._couplings(random_tensor(), 0, 1)
        joined = sparse.block_array([[None, forth], [back, None]]).toarray()
        assert np.abs(np.linalg.eigvals(joined)).max() <= 1.0 + 1e-12
