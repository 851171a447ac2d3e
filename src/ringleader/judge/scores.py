"""Scores as a table: one row for each entity of a mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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

    frame = pd.DataFrame({"entity": signals.tensor.vocabularies[mode].decode(np.arange(signals.tensor.shape[mode]))})
    for name, column in _columns(signals, mode, scorer, target).items():
        frame[name] = column
    return frame


def _columns(
    signals: Signals, mode: int, scorer: Scorer, target: Target | None
) -> dict[str, Floats | npt.NDArray[np.int64]]:
    """What is said of every entity of a mode, by the name of its column, (n_k,) each."""
    tensor = signals.tensor
    size = tensor.shape[mode]
    said = scorer.judgement
    unknown = np.broadcast_to(np.nan, size)
    value, lower, upper = said if said is not None else (unknown, unknown, unknown)
    return {
        "score": scorer.score,
        "value" if target is not None and target.kind == "real" else "probability": value,
        "lower": lower,
        "upper": upper,
        "evidence": signals.evidence(mode),
        "reviews": np.bincount(tensor.coordinates[:, mode], weights=tensor.counts, minlength=size).astype(np.int64),
        "label": _label_column(target, size),
    }


def ranked_table(signals: Signals, mode: int, scorer: Scorer, target: Target | None) -> pa.Table:
    """``ranked(scores_by_code(...))`` as an Arrow table: for millions of names, without a Python object for each."""
    columns = _columns(signals, mode, scorer, target)
    order = np.lexsort((-columns["evidence"], -columns["score"]))
    names = signals.tensor.vocabularies[mode].values
    arrays = {"rank": pa.array(np.arange(1, len(order) + 1)), "entity": names.take(pa.array(order))}
    for name in list(columns):
        arrays[name] = pa.array(columns.pop(name)[order], from_pandas=True)  # NaN is no value, as in the table
    return pa.table({name: arrays["value" if name not in arrays else name] for name in SCORE_COLUMNS}).rename_columns(
        ["value" if name not in arrays else name for name in SCORE_COLUMNS]
    )


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
