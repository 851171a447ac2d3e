"""The gain from labels: how well the scores rank, beside what the reviews alone say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleader.detector import RingDetector
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.evaluation.truth import known_codes
from ringleader.known.labels import DEFAULT_TARGET, Labels
from ringleader.snapshot.answers import as_of_now


@dataclass(frozen=True)
class Gain:
    """AUC on the accounts of one mode whose labels the model does not have."""

    mode: str
    accounts: int
    bad: int
    without_labels: float
    with_labels: float


def label_gain(detector: RingDetector, truth: Labels, target: str = DEFAULT_TARGET) -> list[Gain]:
    """The gain on every mode with labels and truth; modes whose truth is all bad or all good are left out."""
    detector, gains = as_of_now(detector), []
    for known in truth.align(detector.tensor_).targets:
        mode = detector.tensor_.modes[known.mode]
        if known.name != target or target not in detector.snapshot_.target_names(mode):
            continue
        unseen = ~np.isin(known.codes, known_codes(detector, known.mode))
        codes, bad = known.codes[unseen], (known.values[unseen] > 0).astype(np.float64)
        scores = detector.scores_by_code(mode, target)["score"].to_numpy(np.float64)
        try:
            alone = metrics.auc(bad, detector.suspicion(mode)[codes])
            gains.append(Gain(mode, len(codes), int(bad.sum()), alone, metrics.auc(bad, scores[codes])))
        except LabelError:
            continue
    return gains
