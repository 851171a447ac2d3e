"""Metrics against counting by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.errors import LabelError
from ringleader.evaluation import metrics

rows_with_ties = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(
    lambda rows: len({label for label, _ in rows}) == 2
)
rows_of_probabilities = st.lists(
    st.tuples(st.booleans(), st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5])), min_size=2, max_size=60
).filter(lambda rows: len({label for label, _ in rows}) == 2)


def auc_by_counting(labels: np.ndarray, scores: np.ndarray) -> float:
    """Over all pairs of a bad and a good account: 1 where the bad one is above, one half where they are level."""
    bad, good = scores[labels == 1][:, None], scores[labels == 0]
    return float(((bad > good) + 0.5 * (bad == good)).mean())


def average_precision_by_counting(labels: np.ndarray, scores: np.ndarray) -> float:
    """Over the bad accounts: the share of bad ones among all that score as high or higher."""
    return float(np.mean([labels[scores >= score].mean() for score in scores[labels == 1]]))


def log_loss_by_hand(labels: np.ndarray, probabilities: np.ndarray) -> float:
    p = np.clip(probabilities, 1e-12, 1 - 1e-12)
    return float(-(labels * np.log(p) + (1 - labels) * np.log(1 - p)).mean())


@settings(max_examples=200, deadline=None)
@given(rows_with_ties | rows_of_probabilities)
def test_auc_and_average_precision_take_ties_as_counting_does(rows: list[tuple[bool, float]]) -> None:
    y, s = np.array(rows, float).T
    assert metrics.auc(y, s) == pytest.approx(auc_by_counting(y, s), abs=1e-12)
    assert metrics.average_precision(y, s) == pytest.approx(average_precision_by_counting(y, s), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(rows_of_probabilities)
def test_log_loss_is_the_mean_negative_log_likelihood_also_of_certainties(rows: list[tuple[bool, float]]) -> None:
    y, p = np.array(rows, float).T
    assert metrics.log_loss(y, p) == pytest.approx(log_loss_by_hand(y, p), rel=1e-12, abs=1e-12)


def test_what_scores_only_imports_no_metrics_of_scikit_learn() -> None:
    code = "import sys, ringleader.evaluation.truth; print('sklearn.metrics' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_precision_at_a_budget_takes_ties_at_their_mean() -> None:
    assert metrics.precision_at([1, 0, 1, 0], [4, 3, 2, 1], 2) == 0.5
    assert metrics.precision_at([1, 0, 1, 0], [4, 2, 2, 2], 2) == pytest.approx((1 + 1 / 3) / 2)
    assert metrics.precision_at([1, 0], [2, 1], 50) == 0.5


def test_calibration_error_by_hand() -> None:
    assert metrics.calibration_error([1, 0, 1, 1], [0.95, 0.05, 0.95, 0.95]) == pytest.approx(0.05)
    assert metrics.calibration_error([0, 1], [1.0, 0.0]) == 1.0


def test_matched_auc_is_a_coin_toss_where_activity_is_all_there_is() -> None:
    rng = np.random.default_rng(0)
    activity = rng.integers(1, 11, 20_000)
    y = (rng.random(20_000) < activity / 11).astype(float)
    assert metrics.auc(y, activity) > 0.75
    # A decile may still hold two values of activity.
    assert metrics.matched_auc(y, activity, activity) == pytest.approx(0.5, abs=0.06)
    signal = y + rng.normal(size=20_000)
    assert metrics.matched_auc(y, signal, activity) == pytest.approx(metrics.auc(y, signal), abs=0.03)


@pytest.mark.parametrize(
    ("labels", "scores"), [([1, 1], [1, 2]), ([1, 0], [1]), ([2, 0], [1, 2]), ([1, 0], [np.nan, 1])]
)
def test_what_cannot_be_compared_is_refused(labels: list[float], scores: list[float]) -> None:
    with pytest.raises(LabelError):
        metrics.ranking(labels, scores)
