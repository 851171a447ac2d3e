"""Scores as a table: one row for each entity of a mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringleader.arrays import Floats
from ringleader.judge.scorer import Scorer
from ringleader.known.labels import Target
from ringleader.signals import Signals

if TYPE_CHECKING:
    import pandas as pd

SCORE_COLUMNS = ("rank", "entity", "score", "probability", "lower", "upper", "evidence", "reviews", "label")


def scores_by_code(signals: Signals, mode: int, scorer: Scorer, target: Target | None) -> pd.DataFrame:
    """One row for each entity of a mode, in the order of the codes, without a rank."""
    import pandas as pd

    tensor = signals.tensor
    size = tensor.shape[mode]
    frame = pd.DataFrame({"entity": tensor.vocabularies[mode].decode(np.arange(size))})
    frame["score"] = scorer.score
    said = scorer.judgement
    unknown = np.full(size, np.nan)
    value, lower, upper = said if said is not None else (unknown, unknown, unknown)
    frame["value" if target is not None and target.kind == "real" else "probability"] = value
    frame["lower"], frame["upper"] = lower, upper
    frame["evidence"] = signals.evidence(mode)
    codes = tensor.coordinates[:, mode]
    frame["reviews"] = np.bincount(codes, weights=tensor.counts, minlength=size).astype(np.int64)
    frame["label"] = _label_column(target, size)
    return frame


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows, most suspicious first, with their rank."""
    frame = frame.sort_values(["score", "evidence"], ascending=False, kind="stable").reset_index(drop=True)
    frame.insert(0, "rank", np.arange(1, len(frame) + 1))
    return frame[["value" if name not in frame else name for name in SCORE_COLUMNS]]


def _label_column(target: Target | None, size: int) -> Floats:
    """1 and 0, or the number that is known of an entity; NaN for the unlabelled."""
    column = np.full(size, np.nan)
    if target is not None:
        column[target.codes] = target.values if target.kind == "real" else target.values > 0
    return column
