"""Numbers that say how good scores are. Labels are 1 (abusive) and 0; higher scores mean worse.

scikit-learn's metrics take a second to import, so the functions import them: commands that only score do without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.errors import LabelError

BUDGETS = (10, 50, 100)
CALIBRATION_BINS = 10
ACTIVITY_BINS = 10
SMALLEST_PROBABILITY = 1e-12


class RankingQuality(NamedTuple):
    """How good a ranking is."""

    auc: float
    average_precision: float
    precision_at: dict[int, float]


def check(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Labels and scores as arrays; an error where they cannot be compared."""
    y, s = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    if y.shape != s.shape or y.ndim != 1:
        raise LabelError(f"{y.shape} labels and {s.shape} scores; give one score per label")
    if not np.isin(y, (0.0, 1.0)).all():
        raise LabelError("labels to evaluate on must be 1 or 0")
    if not np.isfinite(s).all():
        raise LabelError("scores to evaluate must be finite")
    if len(np.unique(y)) < 2:
        raise LabelError(f"all {len(y)} labels are the same; evaluation needs both bad and good accounts")
    return y, s


def auc(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Chance that a bad account scores above a good one; ties count half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(*check(labels, scores)))


def average_precision(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Mean precision at the places of the bad accounts; ties are taken as one step."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*check(labels, scores)))


def precision_at(labels: npt.ArrayLike, scores: npt.ArrayLike, budget: int) -> float:
    """Share of bad accounts among the ``budget`` first; a tie at the border counts with its mean."""
    y, s = check(labels, scores)
    budget = min(budget, len(y))
    border = np.sort(s)[::-1][budget - 1]
    above = s > border
    left = budget - int(above.sum())
    return float((y[above].sum() + left * y[s == border].mean()) / budget)


def calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, bins: int = CALIBRATION_BINS) -> float:
    """Mean distance of predicted and observed frequency over bins of equal width, weighted by their size."""
    y, p = check(labels, probabilities)
    if p.min() < 0 or p.max() > 1:
        raise LabelError("probabilities must lie between 0 and 1")
    at = np.minimum((p * bins).astype(np.int64), bins - 1)
    size = np.bincount(at, minlength=bins)
    gap = np.abs(np.bincount(at, weights=p, minlength=bins) - np.bincount(at, weights=y, minlength=bins))
    return float(gap[size > 0].sum() / len(y))


def log_loss(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """Mean negative log-likelihood, with probabilities at least 1e-12 from 0 and 1."""
    from sklearn.metrics import log_loss

    y, p = check(labels, probabilities)
    return float(log_loss(y, np.clip(p, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)))


def matched_auc(labels: npt.ArrayLike, scores: npt.ArrayLike, activity: npt.ArrayLike) -> float:
    """AUC within deciles of activity, weighted by the pairs in each: how good scores are among the equally active."""
    y, s = check(labels, scores)
    a = np.asarray(activity, np.float64)
    edges = np.unique(np.quantile(a, np.linspace(0, 1, ACTIVITY_BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, a, side="right")
    total = pairs = 0.0
    for b in np.unique(bins):
        inside = bins == b
        bad = float(y[inside].sum())
        both = bad * (inside.sum() - bad)
        if both:
            total += both * auc(y[inside], s[inside])
            pairs += both
    if not pairs:
        raise LabelError("no decile of activity holds both bad and good accounts")
    return total / pairs


def f1_at(truth: npt.ArrayLike, scores: npt.ArrayLike, prevalence: float) -> float:
    """F1 when the share ``prevalence`` of the accounts is flagged, those with the highest scores."""
    y, s = check(truth, scores)
    flagged = max(1, round(prevalence * len(y)))
    right = precision_at(y, s, flagged) * flagged
    return float(2 * right / (flagged + y.sum()))


def weighted_auc(scores: npt.ArrayLike, bad: npt.ArrayLike, good: npt.ArrayLike) -> float:
    """AUC where a score stands for ``bad`` and ``good`` cases, (n,) each; ties count half."""
    from sklearn.metrics import roc_auc_score

    s, cases = np.asarray(scores, np.float64), np.stack([np.asarray(bad, np.float64), np.asarray(good, np.float64)])
    if s.shape != cases.shape[1:] or not np.isfinite(s).all():
        raise LabelError(f"{s.shape} scores for {cases.shape[1:]} cells; give one finite score each")
    if not (cases.sum(axis=1) > 0).all():
        raise LabelError("all cases are of one kind; evaluation needs both bad and good ones")
    y = np.repeat([1.0, 0.0], len(s))
    return float(roc_auc_score(y, np.tile(s, 2), sample_weight=cases.reshape(-1)))


def ranking(labels: npt.ArrayLike, scores: npt.ArrayLike) -> RankingQuality:
    """All figures of a ranking."""
    y, s = check(labels, scores)
    budgets = {budget: precision_at(y, s, budget) for budget in BUDGETS if budget <= len(y)}
    return RankingQuality(auc(y, s), average_precision(y, s), budgets)
