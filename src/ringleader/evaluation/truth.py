"""How good the scores of a model are on accounts whose truth is known."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ringleader.arrays import Bools, Codes
from ringleader.detector import RingDetector
from ringleader.errors import LabelError, warn_of
from ringleader.evaluation import metrics
from ringleader.known.labels import Labels, Target, read_labels, unmatched
from ringleader.snapshot.answers import as_of_now

if TYPE_CHECKING:
    import pandas as pd


def read_truth(detector: RingDetector, source: str | os.PathLike[str] | Any, *, encoding: str | None = None) -> Labels:
    """The truth: numbers where the model learned numbers, unless all of them are 1 or 0; those are read as labels."""
    if detector.labels_ is None or detector.labels_.target_kind == "binary":
        return read_labels(source, encoding=encoding)
    numbers = read_labels(source, target_kind="real", encoding=encoding)
    yes_or_no = {label.value for label in numbers.entries} <= {0.0, 1.0}
    return read_labels(source, encoding=encoding) if yes_or_no else numbers


def evaluate(detector: RingDetector, truth: Labels, *, include_known: bool = False) -> list[dict[str, Any]]:
    """The figures of every target of every mode that the truth names: of the ranking where the truth is binary, of the
    error where it is real. ``scored_by`` is the target whose scores were measured, ``known_left_out`` counts
    the accounts whose label the model has.
    """
    detector, results = as_of_now(detector), []
    for target in truth.align(detector.tensor_).targets:
        measured = np.ones(len(target.codes), np.bool_)
        if not include_known:
            measured = ~np.isin(target.codes, known_codes(detector, target.mode))
        if measured.any():
            figures = _numbers if target.kind == "real" else _ranking
            names = detector.snapshot_.target_names(target.mode)
            scored = target.name if target.name in names else next(iter(names), None)
            about = {"known_left_out": int((~measured).sum()), "scored_by": scored}
            results.append(figures(detector, target, measured) | about)
    return results


def evaluate_frame(
    model: RingDetector, truth: Any, *, include_known: bool = False, encoding: str | None = None
) -> pd.DataFrame:
    """The figures as a table: a row for each mode and target of the truth.

    truth : Labels, or a table or file of mode, entity, label[, target]. Accounts whose label the model was given are
    left out, unless ``include_known``. encoding : of a text file, as in ``read_labels``.
    """
    import pandas as pd

    model = as_of_now(model)
    labels = truth if isinstance(truth, Labels) else read_truth(model, truth, encoding=encoding)
    warn_of(unmatched(labels, model.tensor_))
    results = evaluate(model, labels, include_known=include_known)
    if not results:
        raise LabelError("no account of the truth can be measured: they are not in the reviews, or all are known")
    return pd.DataFrame(results)


def known_codes(detector: RingDetector, mode: int) -> Codes:
    """Codes of the accounts of a mode that the model has a label of, for any target."""
    return np.concatenate([np.zeros(0, np.int32), *(t.codes for t in detector.snapshot_.targets if t.mode == mode)])


def _numbers(detector: RingDetector, target: Target, measured: Bools) -> dict[str, Any]:
    """How near the values of a real target come to the true ones."""
    from scipy.stats import spearmanr  # slow to import, and commands that only score do without

    mode, (codes, true) = detector.tensor_.modes[target.mode], (target.codes[measured], target.values[measured])
    has = target.name in detector.snapshot_.target_names(mode)
    frame = detector.snapshot_.scores_by_code(mode, target.name if has else None, codes)
    scores = frame["score"].to_numpy(np.float64)
    varies = len(codes) > 1 and np.ptp(scores) > 0 and np.ptp(true) > 0
    return {
        "mode": mode,
        "target": target.name,
        "accounts": len(codes),
        "rank_correlation": float(spearmanr(scores, true).statistic) if varies else None,
        "error": float(np.sqrt(np.mean((scores - true) ** 2))) if has else None,
        "reason": None if varies else "the values, or the scores, are all the same",
    }


def _ranking(detector: RingDetector, target: Target, measured: Bools) -> dict[str, Any]:
    mode = detector.tensor_.modes[target.mode]
    codes, labels = target.codes[measured], (target.values[measured] > 0).astype(float)
    own = target.name if target.name in detector.snapshot_.target_names(mode) else None
    frame = detector.snapshot_.scores_by_code(mode, own, codes)
    scores = frame["score"].to_numpy(np.float64)
    result: dict[str, Any] = {"mode": mode, "target": target.name, "accounts": len(codes), "bad": int(labels.sum())}
    result.update(
        auc=None, matched_auc=None, average_precision=None, precision_at={}, calibration_error=None, reason=None
    )
    try:
        quality = metrics.ranking(labels, scores)
    except LabelError as error:
        result["reason"] = str(error)
        return result
    result.update(quality._asdict())
    try:
        result["matched_auc"] = metrics.matched_auc(labels, scores, frame["reviews"].to_numpy(np.float64))
    except LabelError as error:
        result["reason"] = str(error)
    if "probability" in frame and np.isfinite(frame["probability"]).all():
        result["calibration_error"] = metrics.calibration_error(labels, frame["probability"].to_numpy(np.float64))
    return result
