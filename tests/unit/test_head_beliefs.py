"""What the head makes of few labels: two beliefs, one factor on all log-odds, a floor, and how sure it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import logit
from scipy.stats import norm
from small_population import NAMES, fitted, population

from ringleader.judge.basis import EVIDENCE, INTERCEPT
from ringleader.judge.binary import blind_likelihood, few_labels_factor, fit_binary
from ringleader.judge.head import Head, head_table
from ringleader.judge.posterior import Prior, error_of_mode
from ringleader.judge.prevalence import matching_shift
from ringleader.judge.priors import HeadSettings
from ringleader.kernels.logistic import logistic


def plain_error(rows: np.ndarray, curvature: np.ndarray, prior: Prior, believed: np.ndarray, s: float) -> np.ndarray:
    """The formula in plain NumPy, (P, P)."""
    noise, held_back = rows.T @ (curvature[:, None] * rows), np.diag(1 / prior.variance)
    inverse = np.linalg.inv(noise + held_back)
    short = (s - 1) * noise - held_back
    middle = s**2 * noise + short @ np.diag(believed) @ short
    return np.asarray(inverse @ middle @ inverse)


@pytest.mark.parametrize("labels", [30, 4])
@pytest.mark.parametrize("factor", [0.9, 1.0, 1.6])
def test_the_error_of_a_mode_is_its_noise_and_what_the_prior_and_the_factor_do_to_it(
    factor: float, labels: int
) -> None:
    """By the formula in plain NumPy, by simulation, and the posterior covariance where the prior is right.

    With more labels than weights, and with fewer.
    """
    rng = np.random.default_rng(5)
    rows, curvature = rng.normal(size=(labels, 6)), 0.5 + rng.random(labels)
    prior, believed = Prior(rng.normal(size=6), np.full(6, 2.0)), np.array([0.1, 0.2, 0.5, 1.0, 2.0, 4.0])
    expected = plain_error(rows, curvature, prior, believed, factor)
    root = error_of_mode(rows, curvature, prior, believed, factor).root
    np.testing.assert_allclose(root @ root.T, expected, rtol=1e-9)
    inverse = np.linalg.inv(rows.T @ (curvature[:, None] * rows) + np.diag(1 / prior.variance))
    truth = prior.mean + rng.normal(size=(200_000, 6)) * np.sqrt(believed)
    seen = truth @ rows.T + rng.normal(size=(200_000, labels)) / np.sqrt(curvature)
    modes = ((seen * curvature) @ rows + prior.mean / prior.variance) @ inverse
    error = prior.mean + factor * (modes - prior.mean) - truth
    np.testing.assert_allclose(error.T @ error / len(error), expected, atol=0.01 * expected.max())
    right = error_of_mode(rows, curvature, prior, prior.variance).root
    np.testing.assert_allclose(right @ right.T, inverse, rtol=1e-9)


@pytest.mark.parametrize("labels", [12, 4])
@pytest.mark.parametrize("factor", [0.9, 1.0, 1.6])
def test_the_error_without_an_own_label_is_that_of_the_other_labels(factor: float, labels: int) -> None:
    """By the formula in plain NumPy from all rows but one, at the same curvature."""
    rng = np.random.default_rng(6)
    rows, curvature = rng.normal(size=(labels, 6)), rng.random(labels)
    curvature[1] = 0.0  # a label that nothing is left to learn from
    prior, believed = Prior(rng.normal(size=6), np.full(6, 2.0)), np.array([0.1, 0.2, 0.5, 1.0, 2.0, 4.0])
    made = error_of_mode(rows, curvature, prior, believed, factor).left_out
    for i, row in enumerate(rows):
        error = plain_error(np.delete(rows, i, axis=0), np.delete(curvature, i), prior, believed, factor)
        assert made[i] == pytest.approx(row @ error @ row, rel=1e-9)


def test_an_interval_is_the_error_of_the_mode_and_that_of_the_factor_at_the_ends_of_the_floor() -> None:
    """From the labels on by SciPy and plain NumPy: mode, factor, error of both, prevalence, floor and ends."""
    x, evidence, z = population()
    settings = HeadSettings(prevalence=0.3, learn_variances=False)
    head = fit_binary(head_table(x, NAMES, evidence), np.arange(120), z[:120], settings)
    rows, everyone, bad = head.layout.rows(head.ranks.levels[:120]), head.layout.rows(head.ranks.levels), z[:120] > 0
    kind, inputs = head.layout.kind, len(NAMES) + 1  # and the suspicion
    mean, wide, proven = (np.zeros(len(kind)), np.full(len(kind), 4 / inputs), np.full(len(kind), 0.1 / inputs))
    mean[kind == EVIDENCE] = 1.5
    for variance in (wide, proven):
        variance[kind == INTERCEPT], variance[kind == EVIDENCE] = 10.0, 0.75**2
    sign = np.where(bad, 1.0, -1.0)

    def loss(x: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (rows @ x)).sum() + ((x - mean) ** 2 / wide).sum() / 2)

    def slope(x: np.ndarray) -> np.ndarray:
        return np.asarray(-rows.T @ (sign / (1 + np.exp(sign * (rows @ x)))) + (x - mean) / wide)

    mode = minimize(loss, mean, jac=slope, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000}).x
    psi = rows @ mode
    weight = 1 / (2 + np.exp(psi) + np.exp(-psi))
    leverage = np.diag(rows @ np.linalg.inv(rows.T @ (weight[:, None] * rows) + np.diag(1 / wide)) @ rows.T)
    blind = psi - leverage * (bad - 1 / (1 + np.exp(-psi))) / (1 - weight * leverage)

    def unlikely(log_factor: float) -> float:
        likelihood = blind_likelihood(np.exp(log_factor) * blind, bad.astype(float), 0.01)
        return float(((log_factor - np.log(1.2)) / 0.15) ** 2 / 2 - likelihood)

    best = minimize_scalar(unlikely, bounds=(-0.5, 0.8), options={"xatol": 1e-8}).x
    curved = (unlikely(best - 0.01) - 2 * unlikely(best) + unlikely(best + 0.01)) / 1e-4
    factor, unsure = np.exp(best), 1 / np.sqrt(curved)
    error = plain_error(rows, weight, Prior(mean, wide), proven, factor)
    said = factor * everyone[:, 1:] @ mode[1:]  # without the intercept, which the prevalence sets
    spread = np.sqrt(((everyone @ error) * everyone).sum(axis=1) + (unsure * said) ** 2)
    floor = np.log(0.01 * 0.3 / 0.7)
    shift = matching_shift(said, 0.3, floor)
    made = head.predict()
    for end, moved in ((made.value, 0.0), (made.lower, -1.0), (made.upper, 1.0)):
        reach = moved * norm.ppf(0.95)
        wanted = np.logaddexp(said + shift + reach * spread, floor + reach * 0.1)
        np.testing.assert_allclose(logit(end), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("says", "margin"), [(2.0, 1.0), (0.0, 0.0), (0.0, 1.0), (-0.5, 1.0), (0.0, 100.0)])
def test_two_beliefs_of_the_evidence_are_averaged_as_they_foretell_the_labels(says: float, margin: float) -> None:
    """By hand from the two heads alone; a doubting one that is ahead by less than the margin is not preferred."""
    x, evidence, z = population()
    codes, bad = np.arange(20), z[:20] > 0

    def head(**settings: float) -> Head:
        asked = HeadSettings(prevalence=0.3, sharpness=1.0, sharpness_spread=1e-6, unremarkable=0.0, **settings)
        return fit_binary(head_table(x, NAMES, evidence + says * z), codes, z[:20], asked)

    def likelihoods(log_odds: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-log_odds - matching_shift(log_odds, float(bad.mean()))))
        return np.log(np.where(bad, p, 1 - p))

    trusting, doubting = head(doubting_labels=0.0), head(evidence_slope=0.0, full_labels=30.0, doubting_labels=0.0)
    # Each alone has the factor of its labels: with a fifth of those for full variances, and with two thirds.
    factors = (20 / 100) ** -0.25, (20 / 30) ** -0.25
    of_trusting = likelihoods(trusting.left_out / factors[0])
    of_doubting = likelihoods(doubting.left_out / factors[1])
    ahead = (of_doubting - of_trusting).sum()
    assert (ahead > 0) == (says <= 0)
    if ahead > 0:
        ahead = max(ahead - margin * np.sqrt(20 * np.var(of_doubting - of_trusting, ddof=1)), 0.0)
    doubt = 1 / (1 + np.exp(-ahead))
    both = head(doubting_labels=30.0, doubting_margin=margin)
    expected = (1 - doubt) * trusting.weights / factors[0] + doubt * doubting.weights / factors[1]
    np.testing.assert_allclose(both.weights[1:] / factors[0], expected[1:], rtol=1e-5)
    assert both.predict().value.mean() == pytest.approx(0.3)
    assert 0.01 < doubt < 0.99, "else the average would be one of them"
    assert (doubt == 0.5) == (margin == 100.0)


def test_all_log_odds_have_the_factor_that_the_left_out_labels_ask_for() -> None:
    """By hand from the head without it, over a grid of factors and a finer one around the best of it."""
    x, evidence, z = population()
    codes, bad = np.arange(120), (z[:120] > 0).astype(float)

    def head(**settings: float) -> Head:
        return fit_binary(head_table(x, NAMES, evidence), codes, z[:120], HeadSettings(prevalence=0.3, **settings))

    plain, sharp = head(sharpness=1.0, sharpness_spread=1e-6), head(sharpness=1.2, sharpness_spread=0.15)
    least, most = 0.8, 1.8
    for _ in range(2):
        factors = np.geomspace(least, most, 81)
        prior = -0.5 * (np.log(factors / 1.2) / 0.15) ** 2
        place = np.argmax(prior + [blind_likelihood(f * plain.left_out, bad, 0.01) for f in factors])
        assert 0 < place < 80
        least, best, most = factors[place - 1 : place + 2]
    np.testing.assert_allclose(sharp.weights[1:], best * plain.weights[1:], rtol=1e-3)
    apart = (sharp.left_out - sharp.left_out.mean()) / best
    np.testing.assert_allclose(apart, plain.left_out - plain.left_out.mean(), rtol=2e-3, atol=1e-3)
    assert sharp.predict().value.mean() == pytest.approx(0.3)
    wider = sharp.predict().upper - sharp.predict().lower
    assert np.isfinite(wider).all() and (wider > 0).all()


def test_some_of_the_abusive_look_like_anybody() -> None:
    """A hundredth of the bad are spread as the good are: the posterior of that mixture, by hand."""
    head, *_ = fitted(prevalence=0.2, unremarkable=0.01)
    predictor, value, lower, upper = head.predict()
    ratio = np.exp(predictor) / 0.25 / 0.99  # of the other bad to the good, at odds of one to four
    np.testing.assert_allclose(value / (1 - value), 0.25 * (0.99 * ratio + 0.01), rtol=1e-9)
    assert value.mean() == pytest.approx(0.2, abs=1e-6)
    assert value.min() > 0.0025 / 1.0025
    assert (np.argsort(value) == np.argsort(predictor)).all()
    assert ((lower < value) & (value < upper)).all()
    assert Head.from_arrays(head.to_arrays()).floor == head.floor


@pytest.mark.parametrize(("centre", "spread"), [(-9.0, 0.5), (-9.0, 2.5), (-5.0, 0.5), (-5.0, 1.5), (0.0, 1.0)])
def test_intervals_know_that_the_share_of_such_abuse_is_not_known_exactly(centre: float, spread: float) -> None:
    """Against draws of both log-odds: no narrower than theirs, and wider only where the two are alike."""
    head, *_ = fitted(prevalence=0.2, unremarkable=0.01, unremarkable_spread=0.5)
    rng = np.random.default_rng(0)
    drawn = np.logaddexp(rng.normal(centre, spread, 200_000), rng.normal(np.log(0.01 * 0.25), 0.5, 200_000))
    _, lower, upper = head._interval(np.array([centre]), np.array([spread]))
    inside = (logistic(drawn) > lower) & (logistic(drawn) < upper)
    assert 0.895 < inside.mean() < 0.98
    assert Head.from_arrays(head.to_arrays()).floor_spread == 0.5
    exact = dataclasses.replace(head, floor_spread=0.0)
    assert (exact.predict().lower > head.predict().lower).all() and (exact.predict().upper < head.predict().upper).all()


def test_the_labelled_are_judged_with_the_interval_of_the_other_labels() -> None:
    """A head of the others alone, whose prior variances and factor differ a little, has nearly that interval."""
    x, evidence, z = population()
    settings = HeadSettings(prevalence=0.3, learn_variances=False, sharpness_spread=1e-6)
    codes = np.arange(120)
    whole = fit_binary(head_table(x, NAMES, evidence), codes, z[:120], settings)
    judged, seen = whole.judge(), whole.predict()
    ends = []
    for i in range(0, 120, 12):
        others = np.delete(codes, i)
        alone = fit_binary(head_table(x, NAMES, evidence), others, z[others], settings).predict()
        ends.append([logit(said.upper[i]) - logit(said.lower[i]) for said in (judged, alone, seen)])
    own, exact, with_own = np.mean(ends, axis=0)
    assert abs(own - exact) < 0.25 * abs(with_own - exact)


def test_left_out_labels_may_be_of_the_bad_who_look_like_anybody() -> None:
    """The likelihood of the mixture by hand, and without such labels that of the log-odds alone."""
    log_odds, bad = np.array([-9.0, -2.0, 1.0, 3.0, -8.0]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    odds = 0.6 / 0.4

    def at(shift: float) -> np.ndarray:
        made = np.exp(log_odds + shift) + 0.01 * odds
        return made / (1 + made)

    shift = brentq(lambda shift: at(shift).mean() - 0.6, -20, 20)
    expected = np.log(np.where(bad > 0, at(shift), 1 - at(shift))).sum()
    assert blind_likelihood(log_odds, bad, 0.01) == pytest.approx(expected, abs=1e-3)
    assert blind_likelihood(log_odds, bad, 0.01) > blind_likelihood(log_odds, bad)


def test_the_factor_of_fewer_than_ten_labels_is_that_of_ten() -> None:
    """Two labels that are as the suspicion says make nobody certain: one label has no factor at all."""
    settings = HeadSettings()
    assert [few_labels_factor(count, settings) for count in (100, 5000)] == [1.0, 1.0]
    assert few_labels_factor(50, settings) == pytest.approx(2**0.25)
    assert few_labels_factor(2, settings) == few_labels_factor(10, settings) == pytest.approx(10**0.25)
    x, evidence, _ = population()
    codes = [int(np.argmax(evidence)), int(np.argmin(evidence))]
    two = fit_binary(head_table(x, NAMES, evidence), codes, [1.0, -1.0], settings.replace(prevalence=0.1))
    one = fit_binary(head_table(x, NAMES, evidence), codes[:1], [1.0], settings.replace(prevalence=0.1))
    assert one.kind == "evidence" and two.kind == "additive"
    assert np.ptp(two.predict().predictor) < 2.5 * np.ptp(one.predict().predictor)


def test_many_labels_need_no_second_belief() -> None:
    x, evidence, z = population()
    for labels, same in ((100, True), (99, False)):
        one, other = (
            fit_binary(head_table(x, NAMES, evidence), np.arange(labels), z[:labels], HeadSettings(doubting_labels=m))
            for m in (0.0, 30.0)
        )
        assert np.array_equal(one.weights, other.weights) == same
