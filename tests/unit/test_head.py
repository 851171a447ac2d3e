"""The head: its fit is the mode, its formulas are exact, and no input breaks it."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import rankdata
from small_population import NAMES, F, M, N, fitted, population

from ringleader.errors import LabelError, SettingsError
from ringleader.judge.binary import fit_binary
from ringleader.judge.head import Head, head_table
from ringleader.judge.posterior import (
    ByLabels,
    ByWeights,
    Prior,
    covariance_root,
    fit_logistic,
    gradient,
    left_out,
    log_posterior,
)
from ringleader.judge.prevalence import estimate_prevalence, floor_of, matching_shift, with_floor
from ringleader.judge.priors import HeadSettings
from ringleader.judge.real import fit_real
from ringleader.kernels.logistic import fisher_weight, logistic
from ringleader.kernels.tiles import inverse_factor
from ringleader.runtime.executor import Threads


def problem(seed: int = 0, m: int = 40, p: int = 7) -> tuple[np.ndarray, np.ndarray, Prior]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m, p))
    return rows, (rng.random(m) < 0.4).astype(float), Prior(rng.normal(size=p), rng.uniform(0.1, 3, p))


def test_gradient_is_that_of_the_objective() -> None:
    rows, label, prior = problem()
    weights = np.random.default_rng(1).normal(size=7)
    slope = gradient(rows, label, prior, weights)
    for j in range(7):
        step = 1e-6 * np.eye(7)[j]
        up, down = (log_posterior(rows, label, prior, weights + s) for s in (step, -step))
        assert slope[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("size", [0.0, 30.0])
def test_objective_never_falls_and_ends_where_a_general_optimiser_does(size: float) -> None:
    rows, label, prior = problem()
    trace: list[float] = []
    start = np.full(7, size)  # far out a plain Fisher step overshoots
    made = fit_logistic(rows, label, prior, start, 200, trace)
    assert (np.diff(trace) >= 0).all()
    naive = minimize(
        lambda w: -log_posterior(rows, label, prior, w),
        np.zeros(7),
        jac=lambda w: -gradient(rows, label, prior, w),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    np.testing.assert_allclose(made.weights, naive.x, atol=1e-5)


@pytest.mark.parametrize("m", [20, 400])  # by labels, and by weights
def test_near_the_mode_steps_share_a_curvature_and_the_covariance_is_that_of_the_mode(
    monkeypatch: pytest.MonkeyPatch, m: int
) -> None:
    rows, label, prior = problem(m=m, p=30)
    factorised: list[int] = []

    def counting(block: np.ndarray) -> np.ndarray:
        factorised.append(len(block))
        return inverse_factor(block)

    monkeypatch.setattr("ringleader.judge.posterior.inverse_factor", counting)
    trace: list[float] = []
    made = fit_logistic(rows, label, prior, prior.mean, 100, trace)
    assert made.gap < 1e-7
    assert 2 <= len(factorised) < len(trace)
    exact = ByWeights(rows, fisher_weight(made.fitted), prior)
    np.testing.assert_allclose(made.variance, exact.diagonal(), rtol=1e-6)
    np.testing.assert_allclose(made.leverage, exact.leverage(), rtol=1e-6)
    assert abs(exact.solve(gradient(rows, label, prior, made.weights))).max() < 1e-6


def test_covariance_is_the_inverse_of_the_hessian() -> None:
    rows, label, prior = problem()
    made = fit_logistic(rows, label, prior, prior.mean, 100)
    hessian = np.empty((7, 7))
    for j in range(7):
        step = 1e-5 * np.eye(7)[j]
        up, down = (gradient(rows, label, prior, made.weights + s) for s in (step, -step))
        hessian[j] = (down - up) / 2e-5
    np.testing.assert_allclose(made.variance, np.diag(np.linalg.inv(hessian)), rtol=1e-5, atol=1e-8)


def test_leave_one_out_is_close_to_exact_refits() -> None:
    rows, label, prior = problem(m=60)
    made = fit_logistic(rows, label, prior, prior.mean, 100)
    quick = left_out(made, label)
    others = [np.arange(60) != i for i in range(60)]
    exact = np.array(
        [rows[i] @ fit_logistic(rows[o], label[o], prior, prior.mean, 100).weights for i, o in enumerate(others)]
    )
    naive = made.fitted
    assert np.abs(quick - exact).mean() < 0.15 * np.abs(naive - exact).mean()
    assert np.corrcoef(quick, exact)[0, 1] > 0.99


def test_contributions_and_intercept_sum_to_the_log_odds() -> None:
    head, *_ = fitted()
    parts = head.contributions()
    scores = head.predict()
    assert parts.shape == (N, len(head.names))
    np.testing.assert_allclose(parts.sum(axis=1) + head.intercept, scores.predictor, atol=1e-9)
    np.testing.assert_allclose(parts.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(head.contributions([7, 3]), parts[[7, 3]])


def test_intervals_hold_the_probability_and_the_mean_is_the_prevalence() -> None:
    head, *_ = fitted(prevalence=0.09)
    scores = head.predict()
    assert (scores.lower < scores.value).all()
    assert (scores.value < scores.upper).all()
    assert scores.value.mean() == pytest.approx(0.09, abs=1e-6)
    assert head.prevalence == 0.09
    assert not head.estimated


def test_a_wider_interval_holds_the_narrower() -> None:
    narrow, wide = fitted(interval=0.5)[0].predict(), fitted(interval=0.99)[0].predict()
    assert (wide.lower < narrow.lower).all()
    assert (wide.upper > narrow.upper).all()


def test_no_end_of_an_interval_is_certain() -> None:
    head = fitted()[0]
    judged = dataclasses.replace(head, root=1e4 * head.root, floor=-np.inf).judge()
    assert judged.upper.max() > 1 - 1e-15 and judged.lower.min() < 1e-300
    assert all(((end > 0) & (end < 1)).all() for end in judged)


def test_predicting_the_population_again_gives_the_same() -> None:
    head, x, evidence, _ = fitted()
    np.testing.assert_array_equal(head.predict(x, evidence).predictor, head.predict().predictor)
    with pytest.raises(SettingsError, match="suspicion"):
        head.predict(x)


def test_same_input_same_answer_bit_for_bit_and_label_order_is_nothing() -> None:
    x, evidence, z = population()
    order = np.random.default_rng(3).permutation(M)
    one = fit_binary(head_table(x, NAMES, evidence), np.arange(M), z[:M])
    two = fit_binary(head_table(x, NAMES, evidence), order, z[order])
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.predict().upper, two.predict().upper)


def test_permuting_entities_and_inputs_permutes_scores() -> None:
    x, evidence, z = population()
    base = fit_binary(head_table(x, NAMES, evidence), np.arange(M), z[:M])
    rng = np.random.default_rng(4)
    entities, inputs = rng.permutation(N), rng.permutation(F)
    place = np.argsort(entities)
    other = fit_binary(
        head_table(x[entities][:, inputs], [NAMES[j] for j in inputs], evidence[entities]), place[:M], z[:M]
    )
    np.testing.assert_allclose(other.predict().predictor, base.predict().predictor[entities], atol=1e-6)
    parts = base.contributions(entities)[:, [*inputs, F]]
    np.testing.assert_allclose(other.contributions(), parts, atol=1e-6)


def test_monotone_transformations_change_nothing() -> None:
    x, evidence, z = population()
    base = fit_binary(head_table(x, NAMES, evidence), np.arange(M), z[:M])
    bent = fit_binary(head_table(np.exp(x), NAMES, evidence**3), np.arange(M), z[:M])
    np.testing.assert_array_equal(bent.weights, base.weights)


def test_arrays_give_the_head_back() -> None:
    head, x, evidence, _ = fitted()
    arrays = head.to_arrays()
    assert all(isinstance(a, np.ndarray) and a.dtype != object for a in arrays.values())
    again = Head.from_arrays(arrays)
    assert (again.names, again.kind, again.note) == (head.names, head.kind, head.note)
    np.testing.assert_array_equal(again.predict(x, evidence).upper, head.predict(x, evidence).upper)


@pytest.mark.parametrize(("values", "word"), [([1.0] * 5, "abusive"), ([-1.0] * 5, "good"), ([], "0 labels")])
def test_one_class_falls_back_to_evidence_and_says_so(values: list[float], word: str) -> None:
    x, evidence, _ = population()
    head = fit_binary(head_table(x, NAMES, evidence), np.arange(len(values)), values, HeadSettings(prevalence=0.1))
    assert head.kind == "evidence"
    assert word in head.note
    scores = head.predict()
    np.testing.assert_array_equal(np.argsort(scores.predictor, kind="stable"), np.argsort(evidence, kind="stable"))
    assert scores.value.mean() == pytest.approx(0.1, abs=1e-6)
    assert (scores.lower <= scores.value).all()


def test_without_evidence_the_fallback_says_that_too() -> None:
    x, _, _ = population()
    head = fit_binary(head_table(x, NAMES), [1, 2], [1.0, 1.0])
    assert "no evidence" in head.note
    assert "assumed" in head.note
    scores = head.predict()
    np.testing.assert_allclose(scores.value, 0.1, atol=1e-6)
    assert (scores.lower < 0.03).all() and (scores.upper > 0.3).all(), "what is assumed is not known"


def test_two_labels_keep_the_order_of_the_evidence_roughly() -> None:
    x, evidence, _ = population()
    head = fit_binary(head_table(x, NAMES, evidence), [0, 1], [1.0, -1.0])
    assert head.kind == "additive"
    assert np.corrcoef(rankdata(head.predict().predictor), rankdata(evidence))[0, 1] > 0.9


def test_constant_columns_are_dropped_and_add_nothing() -> None:
    x, evidence, z = population()
    with_constant = np.column_stack([x, np.full(N, 7.0)])
    base = fit_binary(head_table(x, NAMES, evidence), np.arange(M), z[:M])
    head = fit_binary(head_table(with_constant, [*NAMES, "same"], evidence), np.arange(M), z[:M])
    np.testing.assert_allclose(head.predict().predictor, base.predict().predictor, atol=1e-9)
    np.testing.assert_array_equal(head.contributions()[:, F], 0)


@pytest.mark.parametrize("case", ["separable", "duplicates", "wide", "constant", "huge"])
def test_hard_inputs_stay_finite(case: str) -> None:
    x, evidence, z = population()
    m = M
    if case == "separable":
        z = np.where(x[:, 0] > 0, 1.0, -1.0)
    elif case == "duplicates":
        x = np.repeat(x[:, :1], 6, axis=1)
    elif case == "wide":
        x, m = np.random.default_rng(0).normal(size=(N, 80)), 12
    elif case == "constant":
        x = np.ones((N, 3))
    else:
        x = x * 1e300
    head = fit_binary(head_table(x, [str(j) for j in range(x.shape[1])], evidence), np.arange(m), z[:m])
    scores = head.predict()
    assert all(np.isfinite(part).all() for part in scores)
    assert np.isfinite(head.left_out).all()
    if case == "separable":
        assert (scores.value[z > 0].mean()) > (scores.value[z < 0].mean())


@budget(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 5), st.integers(1, 12))
def test_any_small_population_gives_probabilities(seed: int, n: int, f: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, size=(n, f)).astype(float)
    codes = rng.choice(n, min(m, n), replace=False)
    head = fit_binary(head_table(x, [str(j) for j in range(f)], x[:, 0]), codes, rng.choice([-1.0, 1.0], len(codes)))
    scores = head.predict()
    assert (scores.lower >= 0).all()
    assert (scores.upper <= 1).all()
    assert (scores.lower <= scores.upper).all()


def test_bad_input_is_named() -> None:
    x, evidence, z = population()
    x[3, 2] = np.nan
    with pytest.raises(SettingsError, match="'x2' has 1 values"):
        fit_binary(head_table(x, NAMES), np.arange(M), z[:M])
    x[3, 2] = 0
    with pytest.raises(SettingsError, match="evidence prior"):
        fit_binary(head_table(x, NAMES, np.full(N, np.inf)), np.arange(M), z[:M])
    with pytest.raises(SettingsError, match="names"):
        fit_binary(head_table(x, NAMES[:2]), np.arange(M), z[:M])
    with pytest.raises(SettingsError, match="shape"):
        fit_binary(head_table(x, NAMES, evidence[:5]), np.arange(M), z[:M])
    with pytest.raises(LabelError, match="codes from 0"):
        fit_binary(head_table(x, NAMES), [N], [1.0])
    with pytest.raises(LabelError, match="twice"):
        fit_binary(head_table(x, NAMES), [1, 1], [1.0, -1.0])
    with pytest.raises(LabelError, match="target_kind='real'"):
        fit_binary(head_table(x, NAMES), [1, 2], [1.0, 0.5])
    for wrong in ({"prevalence": 1.5}, {"knots": 2}, {"worth": 0.0}, {"linear_variance": -1.0}):
        with pytest.raises(SettingsError):
            fit_binary(head_table(x, NAMES), [1, 2], [1.0, -1.0], HeadSettings(**wrong))


@pytest.mark.parametrize("prevalence", [1e-300, 1e-20, 0.5, 1 - 1e-15])
@pytest.mark.parametrize("unremarkable", [0.0, 0.01, 0.9])
def test_any_prevalence_can_be_matched(prevalence: float, unremarkable: float) -> None:
    log_odds, floor = np.linspace(-9, 9, 50), floor_of(unremarkable, prevalence)
    moved = with_floor(log_odds + matching_shift(log_odds, prevalence, floor), floor)
    assert logistic(moved).mean() == pytest.approx(prevalence, rel=1e-9, abs=0.0)


def test_prevalence_is_found_again_after_a_label_shift() -> None:
    rng = np.random.default_rng(0)
    z = rng.random(20_000) < 0.06
    psi = 2.5 * (z + rng.normal(size=len(z)) / 2.5 * 1.0)  # normal classes one apart: log-odds are linear
    true = 2.5 * psi - 2.5**2 / 2 + np.log(0.25 / 0.75)  # at a share of 1:3
    assert estimate_prevalence(true, 10_000, 0.25, 0.1) == pytest.approx(0.06, abs=0.006)
    assert logistic(true + matching_shift(true, 0.06)).mean() == pytest.approx(0.06, abs=1e-9)


def test_real_targets_are_learned_with_their_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 4))
    want = 10 + 3 * x[:, 0] + 2 * np.sin(2 * x[:, 1])
    seen = want + rng.normal(size=len(want))
    head = fit_real(head_table(x, NAMES), np.arange(300), seen[:300])
    scores = head.predict()
    assert np.corrcoef(scores.value[300:], want[300:])[0, 1] > 0.97
    assert head.noise_variance == pytest.approx(1, rel=0.3)
    covered = ((scores.lower <= want) & (want <= scores.upper)).mean()
    assert 0.75 < covered < 0.99
    np.testing.assert_allclose(head.contributions().sum(axis=1) + head.intercept, scores.value, atol=1e-9)
    error = np.abs(head.left_out - seen[:300]).mean()
    assert error > np.abs(scores.value[:300] - seen[:300]).mean()
    again = Head.from_arrays(head.to_arrays())
    np.testing.assert_array_equal(again.predict(x).value, scores.value)


def test_real_targets_without_spread_are_their_mean() -> None:
    x, evidence, _ = population()
    head = fit_real(head_table(x, NAMES, evidence), [1, 2, 3, 4], [5.0] * 4)
    assert head.kind == "constant"
    scores = head.predict()
    np.testing.assert_allclose(scores.value, 5.0)
    assert (scores.lower < scores.upper).all()


@pytest.mark.parametrize("labels", [1, 7, 40])
def test_the_inverse_by_labels_is_the_inverse_by_weights(labels: int) -> None:
    rng = np.random.default_rng(labels)
    rows, curvature = rng.normal(size=(labels, 20)), rng.random(labels) * np.geomspace(1e-12, 1, labels)
    prior = Prior(np.zeros(20), rng.random(20) + 0.01)
    plain, fast = ByWeights(rows, curvature, prior), ByLabels(rows, curvature, prior)
    slope = rng.normal(size=20)
    np.testing.assert_allclose(fast.solve(slope), plain.solve(slope), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fast.diagonal(), plain.diagonal(), rtol=1e-8)
    np.testing.assert_allclose(fast.leverage(), plain.leverage(), rtol=1e-7)
    root = covariance_root(rows, curvature, prior)
    hessian = rows.T @ (curvature[:, None] * rows) + np.diag(1 / prior.variance)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(hessian), rtol=1e-6, atol=1e-10)


def test_good_accounts_picked_by_volume_give_no_prevalence() -> None:
    """The estimate asks for good accounts like the market's; of its busiest none is made, and the note says so."""
    features, evidence, truth = population(n=1000)
    features[:, 2] = np.abs(features[:, 2])  # how much an account does, which says nothing of abuse
    rng = np.random.default_rng(3)
    bad = rng.choice(np.flatnonzero(truth > 0), 30, replace=False)
    good = np.flatnonzero(truth < 0)
    busiest = good[np.argsort(-features[good, 2])][:90]
    groups = ["other", "other", "volume", "other"]
    for chosen, told in ((busiest, True), (rng.choice(good, 90, replace=False), False)):
        codes = np.concatenate([bad, chosen])
        head = fit_binary(head_table(features, NAMES, evidence, groups), codes, truth[codes])
        assert ("unusually many or few reviews" in head.note) == told
        assert head.estimated != told
        assert (head.prevalence == HeadSettings().assumed_prevalence) == told


def test_threads_that_factorise_different_matrices_do_not_wait_for_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=10)

    def meeting(block: np.ndarray) -> np.ndarray:
        both.wait()
        return inverse_factor(block)

    monkeypatch.setattr("ringleader.judge.posterior.inverse_factor", meeting)
    prior = Prior(np.zeros(2), np.ones(2))
    factors = Threads(2).map(lambda size: ByWeights(np.ones((size, 2)), np.ones(size), prior).factor, (3, 3))
    np.testing.assert_array_equal(*factors)
