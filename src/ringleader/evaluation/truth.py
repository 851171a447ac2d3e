"""How good the scores of a model are on accounts whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.detector import RingDetector
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.labels import Labels, Target


def evaluate(detector: RingDetector, truth: Labels, *, include_known: bool = False) -> list[dict[str, Any]]:
    """The figures of every target of every mode that the truth names."""
    results = []
    for target in truth.align(detector.tensor_).targets:
        kept = np.ones(len(target.codes), np.bool_)
        if not include_known:
            kept = ~np.isin(target.codes, _known(detector, target))
        if kept.any():
            results.append(_evaluate(detector, target, kept))
    return results


def _known(detector: RingDetector, target: Target) -> Any:
    return np.concatenate(
        [np.zeros(0, np.int32), *(t.codes for t in detector.problem_.targets if t.mode == target.mode)]
    )


def _evaluate(detector: RingDetector, target: Target, kept: Any) -> dict[str, Any]:
    mode = detector.tensor_.modes[target.mode]
    names = {t.name for t in detector.problem_.targets if t.mode == target.mode}
    frame = detector.scores(mode, target.name if target.name in names else None)
    size = detector.tensor_.shape[target.mode]
    order = detector.tensor_.vocabularies[target.mode].lookup(frame["entity"].to_numpy())
    scores, reviews, probability = np.empty(size), np.empty(size), np.empty(size)
    scores[order], reviews[order] = frame["score"], frame["reviews"]
    probability[order] = frame.get("probability", np.nan)
    codes, labels = target.codes[kept], (target.values[kept] > 0).astype(float)
    result: dict[str, Any] = {"mode": mode, "target": target.name, "accounts": len(codes), "bad": int(labels.sum())}
    result.update(
        auc=None, matched_auc=None, average_precision=None, precision_at={}, calibration_error=None, reason=None
    )
    try:
        found = metrics.ranking(labels, scores[codes])
    except LabelError as error:
        result["reason"] = str(error)
        return result
    result.update(auc=found.auc, average_precision=found.average_precision, precision_at=found.precision_at)
    try:
        result["matched_auc"] = metrics.matched_auc(labels, scores[codes], reviews[codes])
    except LabelError as error:
        result["reason"] = str(error)
    if np.isfinite(probability[codes]).all():
        result["calibration_error"] = metrics.calibration_error(labels, probability[codes])
    return result
