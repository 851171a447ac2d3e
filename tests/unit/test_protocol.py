"""The paper's protocol and the real data: who is known, who is tested, what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.baselines.registry import baseline, baseline_names
from ringleader.datasets import marketplace
from ringleader.errors import InputError, LabelError, SettingsError
from ringleader.evaluation import metrics, protocol, real, scorers
from ringleader.evaluation.protocol import Row, Split
from ringleader.tensor.sparse import SparseTensor


@pytest.fixture(scope="module")
def market() -> tuple[SparseTensor, pd.DataFrame]:
    made = marketplace(15_000, difficulty="easy", seed=4)
    return rl.read_reviews(made.reviews), made.truth


@pytest.fixture(scope="module")
def split(market) -> Split:
    return protocol.market_split(*market, "seller")


# -- who is labelled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["seller", "reviewer"])
def test_the_split_of_a_market_is_the_one_it_came_with(market, mode):
    tensor, truth = market
    split = protocol.market_split(tensor, truth, mode)
    rows = truth[(truth["mode"] == mode) & (truth["target"] == "abuse")].set_index("entity")
    names = tensor.vocabulary(mode).decode(np.arange(len(split.known)))
    expected = rows["label"].where(rows["split"] == "known").loc[names].to_numpy(float)
    np.testing.assert_array_equal(split.known, expected)
    assert set(names[split.test]) == set(rows.index[rows["split"] == "test"])
    np.testing.assert_array_equal(split.truth, rows.loc[names[split.test], "label"])
    assert np.isnan(split.known[split.test]).all()
    np.testing.assert_array_equal(split.activity, tensor.degrees(mode)[split.test])


def test_targets_have_splits_of_their_own(market):
    tensor, truth = market
    attack = protocol.market_split(tensor, truth, "seller", "attack")
    assert attack.truth.sum() < protocol.market_split(tensor, truth, "seller").truth.sum()
    with pytest.raises(LabelError, match="0 rows for target 'theft'"):
        protocol.market_split(tensor, truth, "seller", "theft")
    with pytest.raises(LabelError, match="no column split"):
        protocol.market_split(tensor, truth.drop(columns="split"), "seller")


def test_negatives_come_from_the_lowest_scores_and_never_from_the_test(market):
    split = protocol.market_split(*market, "reviewer")
    scores = np.random.default_rng(0).random(len(split.known))
    scores[split.test] = -1.0  # the lowest of all, and yet not taken
    changed = protocol.lowest_negatives(split, scores)
    negatives = np.flatnonzero(changed.known == 0)
    assert len(negatives) == round(0.95 * (split.known == 1).sum())
    assert not np.isin(negatives, split.test).any()
    np.testing.assert_array_equal(changed.known == 1, split.known == 1)
    left = np.setdiff1d(np.flatnonzero(split.known != 1), np.union1d(negatives, split.test))
    assert scores[negatives].max() <= scores[left].min()


def test_few_labels_are_one_bad_to_three_good_of_those_known():
    known = np.array([1.0] * 30 + [0.0] * 200 + [np.nan] * 50)
    few = protocol.few_labels(known, 40, np.random.default_rng(0))
    shown = ~np.isnan(few)
    assert ((few == 1).sum(), (few == 0).sum()) == (10, 30)
    np.testing.assert_array_equal(few[shown], known[shown])
    assert not np.array_equal(few, protocol.few_labels(known, 40, np.random.default_rng(1)), equal_nan=True)
    fewest = protocol.few_labels(known, 5, np.random.default_rng(0))
    assert ((fewest == 1).sum(), (fewest == 0).sum()) == (2, 3)
    everyone = protocol.few_labels(known, 1000, np.random.default_rng(0))
    np.testing.assert_array_equal(everyone, known)


# -- what is measured -----------------------------------------------------------------------------------


def test_n_counts_the_tested_accounts_in_mzooms_top_two_blocks(market, split):
    tensor, _ = market
    budget = protocol.block_budget(tensor, [split], max_size=600)
    blocks = baseline("mzoom", n_blocks=5, max_size=600).fit(tensor).blocks_[:2]
    members = set(blocks[0].members[2]) | set(blocks[1].members[2])
    assert budget == {"seller": len(members & set(split.test))}
    assert 0 < budget["seller"] < len(split.test)


def test_figures_by_hand():
    known = np.full(8, np.nan)
    split = Split("seller", known, np.array([0, 1, 2, 3, 4, 5]), np.array([1.0, 0, 1, 0, 0, 1]), np.ones(6))
    scores = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 99.0, 99.0]  # the last two are not tested
    row = protocol.figures(split, scores, 2, method="m", seed=7, seconds=1.5)
    assert (row.precision, row.recall) == (0.5, pytest.approx(1 / 3))
    assert row.auc == pytest.approx(5 / 9)
    assert row.matched_auc == pytest.approx(row.auc)  # all are equally active
    assert row[:5] == ("m", "seller", 7, 6, 2)
    whole = protocol.figures(split, scores, 100, method="m")
    assert (whole.n, whole.precision, whole.recall) == (6, 0.5, 1.0)
    with pytest.raises(LabelError, match="gave"):
        protocol.figures(split, scores[:6], 2, method="m")


def test_matched_auc_is_missing_where_activity_tells_all():
    split = Split("seller", np.full(4, np.nan), np.arange(4), np.array([1.0, 1, 0, 0]), np.array([9.0, 9, 1, 1]))
    row = protocol.figures(split, [4.0, 3, 2, 1], 2, method="m")
    assert np.isnan(row.matched_auc)
    assert row.auc == 1.0


def rows() -> list[Row]:
    return [
        Row("a", "seller", 0, 10, 2, 0.5, 0.2, 0.8, 0.7, 0.6, 1.0),
        Row("a", "seller", 1, 10, 2, 0.7, 0.4, 0.6, 0.7, 0.6, 3.0),
        Row("b", "seller", 0, 10, 2, 0.3, 0.1, 0.9, float("nan"), 0.3, 1.0),
        Row("a", "reviewer", 0, 10, 2, 0.4, 0.1, 0.5, 0.5, 0.5, 1.0),
    ]


def test_summary_is_mean_and_spread_over_seeds():
    table = protocol.summary(rows()).set_index(["mode", "method"])
    a = table.loc[("seller", "a")]
    assert (a["seeds"], a["precision"], a["auc"]) == (2, pytest.approx(0.6), pytest.approx(0.7))
    assert a["auc_sd"] == pytest.approx(np.std([0.8, 0.6], ddof=1))
    assert np.isnan(table.loc[("seller", "b"), "auc_sd"])
    assert list(table.index) == [("seller", "a"), ("seller", "b"), ("reviewer", "a")]


def test_relative_makes_the_best_of_each_mode_a_hundred():
    table = protocol.relative(protocol.summary(rows())).set_index(["mode", "method"])
    assert table.loc[("seller", "b"), "auc"] == 100
    assert table.loc[("seller", "a"), "auc"] == pytest.approx(100 * 0.7 / 0.9)
    assert table.loc[("reviewer", "a"), "auc"] == 100
    assert table.loc[("seller", "a"), "matched_auc"] == 100
    assert np.isnan(table.loc[("seller", "b"), "matched_auc"])


def test_the_printed_tables_are_relative_and_of_methods_we_have():
    assert set(protocol.PRINTED) <= set(baseline_names())
    for mode in ("seller", "reviewer"):
        columns = zip(*(by_mode[mode] for by_mode in protocol.PRINTED.values()), strict=True)
        assert [max(value for value in column if value is not None) for column in columns] == [100.0] * 3
    assert protocol.PRINTED["ss-sgd"]["seller"][1] == 94.9
    assert [protocol.PRINTED["mzoom"][mode][2] for mode in ("seller", "reviewer")] == [None, None]


# -- real data ------------------------------------------------------------------------------------------


def toy_data(name: str = "otc", n: int = 60) -> real.RealData:
    g = np.random.default_rng(0)
    codes = np.stack([np.arange(n), g.integers(0, 5, n)], axis=1)
    truth = np.full(n, np.nan)
    truth[: n - 10] = g.random(n - 10) < 0.4
    return real.RealData(name, SparseTensor.from_arrays(codes, ["reviewer", "product"]), "reviewer", truth)


def test_folds_ask_about_every_labelled_account_once_and_hide_it():
    data = toy_data()
    drawn = real.folds(data, 5, seed=0)
    asked = np.concatenate([fold.test for fold in drawn])
    np.testing.assert_array_equal(np.sort(asked), np.flatnonzero(~np.isnan(data.truth)))
    for fold in drawn:
        assert np.isnan(fold.known[fold.test]).all()
        shown = np.flatnonzero(~np.isnan(fold.known))
        np.testing.assert_array_equal(fold.known[shown], data.truth[shown])
        assert len(shown) + len(fold.test) == 50


def test_shares_show_a_share():
    (fold,) = real.shares(toy_data(), 0.1, seed=0)
    assert (~np.isnan(fold.known)).sum() == 5
    assert len(fold.test) == 45
    with pytest.raises(SettingsError, match="share"):
        real.shares(toy_data(), 1.5, seed=0)


def test_every_method_sees_the_same_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(real, "load_otc", lambda folder: toy_data())
    seen: dict[str, list[np.ndarray]] = {"first": [], "second": []}
    truth = toy_data().truth

    def spy(name):
        def score(tensor, labels, mode, seed):
            assert mode == "reviewer"
            seen[name].append(labels[mode].copy())
            labels[mode][:] = 0  # a careless method spoils nothing for the next
            return np.nan_to_num(truth, nan=0.5) if name == "first" else np.zeros(len(truth))

        return score

    rows = list(real.real_rows(tmp_path, {n: spy(n) for n in seen}, repeats=2, data=("otc",)))
    assert len(seen["first"]) == 20
    for a, b in zip(seen["first"], seen["second"], strict=True):
        np.testing.assert_array_equal(a, b)
    ours = {row.method: row for row in rows if not row.published}
    assert ours["first"].auc == 1.0 and ours["second"].auc == 0.5
    assert ours["first"].repeats == 2 and ours["first"].auc_sd == 0.0
    others = {row.method: row.auc for row in rows if row.published}
    assert others["REV2"] == 0.90 and others["SpEagle"] == 0.69


def test_missing_files_are_named(tmp_path):
    for load, name in (
        (real.load_otc, "bitcoin_otc_ratings.parquet, bitcoin_otc_labels.csv"),
        (real.load_xu, "amazon_xu_ratings.parquet"),
        (real.load_darpa, "darpa_tcp_connections.parquet"),
    ):
        with pytest.raises(InputError, match=name):
            load(tmp_path)
    with pytest.raises(SettingsError, match="no data set yelp"):
        list(real.real_rows(tmp_path, {}, data=("yelp",)))
    with pytest.raises(SettingsError, match="repeats"):
        list(real.real_rows(tmp_path, {}, repeats=0))


def test_weighted_auc_is_the_auc_of_the_cases():
    g = np.random.default_rng(0)
    scores, bad, good = g.integers(0, 4, 30), g.integers(0, 4, 30), g.integers(0, 4, 30)
    labels = np.concatenate([np.ones(bad.sum()), np.zeros(good.sum())])
    each = np.concatenate([np.repeat(scores, bad), np.repeat(scores, good)])
    assert metrics.weighted_auc(scores, bad, good) == pytest.approx(metrics.auc(labels, each))
    with pytest.raises(LabelError, match="one kind"):
        metrics.weighted_auc(scores, bad, np.zeros(30))


def test_f1_flags_the_share_that_is_bad_among_the_shown():
    truth, scores = [1, 1, 0, 0, 1, 0], [6, 5, 4, 3, 2, 1]
    assert metrics.f1_at(truth, scores, 0.5) == pytest.approx(2 / 3)
    assert metrics.f1_at(truth, scores, 1 / 3) == pytest.approx(2 * 2 / (2 + 3))


def test_cells_are_scored_by_blocks_by_factors_and_by_counting():
    codes = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [2, 2, 1], [3, 2, 2]])
    tensor = SparseTensor.from_arrays(codes, ["src", "dst", "minute"], counts=[50, 50, 50, 50, 1, 1])
    for name, settings in (("mzoom", {"n_blocks": 1}), ("bptf", {"rank": 2})):
        scores = scorers.registered_cell_scorer(name, **settings)(tensor, 0)
        assert scores[:4].min() > scores[4:].max()
    np.testing.assert_array_equal(scorers.multiplicity("dst")(tensor, 0), [100, 100, 100, 100, 2, 2])
    np.testing.assert_array_equal(scorers.multiplicity("src", "minute")(tensor, 0), [100, 100, 100, 100, 1, 1])
    with pytest.raises(SettingsError, match="neither blocks nor factors"):
        scorers.registered_cell_scorer("degree")(tensor, 0)


def test_otc_and_xu_load_as_their_readme_says(real_data: Path):
    otc, xu = real.load_otc(real_data), real.load_xu(real_data)
    assert ((otc.truth == 1).sum(), (otc.truth == 0).sum()) == (115, 125)
    assert ((xu.truth == 1).sum(), (xu.truth == 0).sum()) == (1907, 2995)
    assert (len(real.protocols(otc)["10-fold"](0)), len(real.protocols(xu)["5-fold"](0))) == (10, 5)
    assert list(real.protocols(xu)) == [
        "5-fold",
        "1% of labels",
        "5% of labels",
        "10% of labels",
        "50% of labels",
    ]
    # The mean rating alone: 0.796, says the README.
    ratings = np.asarray(xu.tensor.vocabulary("rating").values, float)[xu.tensor.coordinates[:, 2]]
    who = xu.tensor.coordinates[:, 0]
    mean = np.bincount(who, ratings * xu.tensor.counts) / np.bincount(who, xu.tensor.counts)
    assert max(metrics.auc(xu.truth, mean), metrics.auc(xu.truth, -mean)) == pytest.approx(0.796, abs=0.001)


def test_propagation_beats_rev2_on_the_same_folds(real_data: Path):
    methods = {"propagation": scorers.registered_scorer("propagation")}
    aucs = {row.method: row.auc for row in real.real_rows(real_data, methods, repeats=1, data=("otc",))}
    assert aucs["propagation"] > aucs["REV2"]


def test_counting_connections_gives_what_the_readme_says(real_data: Path):
    counts = {"cell": ("src", "dst", "minute"), "dst, minute": ("dst", "minute"), "dst": ("dst",), "src": ("src",)}
    methods = {name: scorers.multiplicity(*modes) for name, modes in counts.items()}
    rows = real.real_rows(real_data, {}, cell_methods=methods, repeats=1, data=("darpa",))
    aucs = {row.method: row.auc for row in rows if not row.published}
    assert aucs == {
        "cell": pytest.approx(0.915, abs=6e-4),
        "dst, minute": pytest.approx(0.938, abs=6e-4),
        "dst": pytest.approx(0.945, abs=6e-4),
        "src": pytest.approx(0.783, abs=6e-4),
    }
