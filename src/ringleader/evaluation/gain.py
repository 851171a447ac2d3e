"""What labels gained: how well the scores rank, beside what the reviews alone say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleader.detector import RingDetector
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.labels import DEFAULT_TARGET, Labels


@dataclass(frozen=True)
class Gain:
    """AUC on the accounts of one mode whose truth the model was not given."""

    mode: str
    accounts: int
    bad: int
    without_labels: float
    with_labels: float


def label_gain(detector: RingDetector, truth: Labels, target: str = DEFAULT_TARGET) -> list[Gain]:
    """The gain on every mode that the truth names and labels trained; modes without both kinds are left out."""
    gains = []
    for known in truth.align(detector.tensor_).targets:
        mode = detector.tensor_.modes[known.mode]
        trained = [t for t in detector.problem_.targets if t.mode == known.mode]
        if known.name != target or target not in {t.name for t in trained}:
            continue
        kept = ~np.isin(known.codes, np.concatenate([t.codes for t in trained]))
        codes, bad = known.codes[kept], (known.values[kept] > 0).astype(np.float64)
        frame = detector.scores(mode, target)
        scores = np.empty(len(frame))
        scores[detector.tensor_.vocabulary(mode).lookup(frame["entity"].to_numpy())] = frame["score"]
        try:
            alone = metrics.auc(bad, detector.suspicion(mode)[codes])
            gains.append(Gain(mode, len(codes), int(bad.sum()), alone, metrics.auc(bad, scores[codes])))
        except LabelError:
            continue
    return gains
