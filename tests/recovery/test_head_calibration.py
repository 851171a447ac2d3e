"""What the head says is so: probabilities are calibrated, intervals cover, more labels do not hurt."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from ringleader.judge.binary import fit_binary
from ringleader.judge.head import head_table
from ringleader.judge.priors import HeadSettings
from ringleader.kernels.logistic import logistic

N = 3000
NAMES = [f"x{j}" for j in range(12)]


def market(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, evidence, true probabilities (about 9% on average) and labels; four of twelve inputs matter."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 12))
    evidence = x[:, 0] + 0.7 * rng.normal(size=N)
    psi = 2 * x[:, 0] + 1.2 * x[:, 1] - 1.5 * np.minimum(x[:, 2], 0) + 1.5 * np.tanh(2 * x[:, 3]) - 5.6
    p = logistic(psi)
    return np.exp(x), evidence, p, (rng.random(N) < p).astype(int)


def one_to_three(label: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    bad, good = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
    few = max(count // 4, 2)
    return np.concatenate([rng.choice(bad, few, replace=False), rng.choice(good, count - few, replace=False)])


def calibration_error(label: np.ndarray, p: np.ndarray) -> float:
    place = np.minimum((p * 10).astype(int), 9)
    return sum(abs(label[place == b].mean() - p[place == b].mean()) * (place == b).mean() for b in np.unique(place))


@pytest.mark.parametrize("given", [True, False])
def test_probabilities_are_calibrated_at_the_markets_prevalence(given: bool) -> None:
    errors, losses, best, prevalences = [], [], [], []
    for seed in range(5):
        x, evidence, p, label = market(seed)
        known = one_to_three(label, 300, np.random.default_rng(seed))
        settings = HeadSettings(prevalence=float(p.mean()) if given else None)
        head = fit_binary(head_table(x, NAMES, evidence), known, 2.0 * label[known] - 1, settings)
        made = head.predict().value
        # A fresh draw of everyone's label: leaving out the labelled would leave too few bad ones.
        fresh = (np.random.default_rng([9, seed]).random(N) < p).astype(int)
        errors.append(calibration_error(fresh, made))
        losses.append(log_loss(fresh, made))
        best.append(log_loss(fresh, p))
        prevalences.append(head.prevalence / p.mean())
    assert np.mean(errors) < (0.03 if given else 0.05)
    assert np.mean(losses) < 1.25 * np.mean(best)
    # The estimate is too high here: 1.28 times the truth on average, 0.80 to 1.52 (docs/head.md).
    assert 0.75 < np.mean(prevalences) < 1.5


@pytest.mark.parametrize("way", ["one to three", "at random"])
def test_intervals_cover_the_truth_on_labels_simulated_from_a_fitted_head(way: str) -> None:
    held = []
    for seed in range(2):
        x, evidence, _, label = market(seed)
        known = one_to_three(label, 300, np.random.default_rng(seed))
        p = fit_binary(head_table(x, NAMES, evidence), known, 2.0 * label[known] - 1).predict().value
        for simulation in range(5):
            rng = np.random.default_rng([seed, simulation])
            drawn = (rng.random(N) < p).astype(int)
            chosen = one_to_three(drawn, 300, rng) if way == "one to three" else rng.choice(N, 300, replace=False)
            settings = HeadSettings(prevalence=float(p.mean()))
            again = fit_binary(head_table(x, NAMES, evidence), chosen, 2.0 * drawn[chosen] - 1, settings).predict()
            held.append(((again.lower <= p) & (p <= again.upper)).mean())
    assert 0.85 <= np.mean(held) <= 0.95


@pytest.mark.slow
def test_intervals_of_thirty_labels_cover_the_truth_although_all_log_odds_have_a_factor() -> None:
    """The factor of few labels is 1.6 and multiplies the noise: as if it did not, they would cover 0.81."""
    held = []
    for seed in range(4):
        x, evidence, _, label = market(seed)
        known = one_to_three(label, 300, np.random.default_rng(seed))
        p = fit_binary(head_table(x, NAMES, evidence), known, 2.0 * label[known] - 1).predict().value
        settings = HeadSettings(prevalence=float(p.mean()))
        for simulation in range(12):
            rng = np.random.default_rng([seed, simulation])
            drawn = (rng.random(N) < p).astype(int)
            chosen = one_to_three(drawn, 30, rng)
            again = fit_binary(head_table(x, NAMES, evidence), chosen, 2.0 * drawn[chosen] - 1, settings).predict()
            held.append(((again.lower <= p) & (p <= again.upper)).mean())
    assert 0.84 <= np.mean(held) <= 0.95


def test_more_labels_do_not_hurt_and_ten_are_not_worse_than_none() -> None:
    table = np.zeros((8, 5))
    for seed in range(8):
        x, evidence, _, label = market(seed)
        for j, count in enumerate((10, 30, 100, 300)):
            known = one_to_three(label, count, np.random.default_rng([seed, count]))
            rest = np.setdiff1d(np.arange(N), known)
            head = fit_binary(head_table(x, NAMES, evidence), known, 2.0 * label[known] - 1)
            table[seed, j + 1] = roc_auc_score(label[rest], head.predict().predictor[rest])
            table[seed, 0] += roc_auc_score(label[rest], evidence[rest]) / 4
    mean = table.mean(axis=0)
    assert (np.diff(mean) > -0.01).all(), mean
    assert mean[1] >= mean[0] - 0.002, mean
    assert mean[4] > mean[0] + 0.05


def test_left_out_log_odds_tell_what_new_labels_would() -> None:
    inside, left, outside = [], [], []
    for seed in range(6):
        x, evidence, _, label = market(seed)
        known = np.sort(one_to_three(label, 100, np.random.default_rng(seed)))
        head = fit_binary(head_table(x, NAMES, evidence), known, 2.0 * label[known] - 1)
        psi = head.predict().predictor
        rest = np.setdiff1d(np.arange(N), known)
        inside.append(roc_auc_score(label[known], psi[known]))
        left.append(roc_auc_score(label[known], head.left_out))
        outside.append(roc_auc_score(label[rest], psi[rest]))
    assert abs(np.mean(left) - np.mean(outside)) < 0.03
    assert abs(np.mean(left) - np.mean(outside)) < abs(np.mean(inside) - np.mean(outside))


def test_misleading_evidence_is_unlearned() -> None:
    x, evidence, _, label = market(0)
    known = one_to_three(label, 300, np.random.default_rng(0))
    rest = np.setdiff1d(np.arange(N), known)
    head = fit_binary(head_table(x, NAMES, -evidence), known, 2.0 * label[known] - 1)
    assert roc_auc_score(label[rest], head.predict().predictor[rest]) > 0.85
