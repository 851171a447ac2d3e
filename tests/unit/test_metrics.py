"""Metrics against scikit-learn's and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from ringleader.errors import LabelError
from ringleader.evaluation import metrics

pairs = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(
    lambda rows: len({y for y, _ in rows}) == 2
)


@settings(max_examples=200, deadline=None)
@given(pairs)
def test_auc_and_average_precision_equal_scikit_learns_with_ties(rows: list[tuple[bool, int]]) -> None:
    y, s = np.array(rows, float).T
    assert metrics.auc(y, s) == pytest.approx(roc_auc_score(y, s))
    assert metrics.average_precision(y, s) == pytest.approx(average_precision_score(y, s))


def test_precision_at_a_budget_takes_ties_at_their_mean() -> None:
    assert metrics.precision_at([1, 0, 1, 0], [4, 3, 2, 1], 2) == 0.5
    assert metrics.precision_at([1, 0, 1, 0], [4, 2, 2, 2], 2) == pytest.approx((1 + 1 / 3) / 2)
    assert metrics.precision_at([1, 0], [2, 1], 50) == 0.5


def test_calibration_error_by_hand() -> None:
    assert metrics.calibration_error([1, 0, 1, 1], [0.95, 0.05, 0.95, 0.95]) == pytest.approx(0.05)
    assert metrics.calibration_error([0, 1], [1.0, 0.0]) == 1.0


def test_log_loss_equals_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 100), rng.random(100)
    assert metrics.log_loss(y, p) == pytest.approx(sklearn_log_loss(y, p))


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
