"""Scores as a table: one row for each entity of a mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringleader.arrays import Codes, Floats
from ringleader.judge.scorer import Scorer
from ringleader.known.labels import Target
from ringleader.signals import Signals
from ringleader.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import pandas as pd

BATCH, CELLS_AT_ONCE = 1 << 20, 1 << 22
"""Rows of a table, and cells, that are worked on at a time."""
SCORE_COLUMNS = ("rank", "entity", "score", "probability", "lower", "upper", "evidence", "reviews", "label")


def scores_by_code(
    signals: Signals, mode: int, scorer: Scorer, target: Target | None, codes: Codes | None = None
) -> pd.DataFrame:
    """One row for each entity of a mode, in the order of the codes, without a rank; of some of them by their codes."""
    some = np.arange(signals.tensor.shape[mode]) if codes is None else codes
    frame = score_columns(signals, mode, scorer, target, codes)
    frame.insert(0, "entity", signals.tensor.vocabularies[mode].decode(some))
    return frame


def score_columns(
    signals: Signals, mode: int, scorer: Scorer, target: Target | None, codes: Codes | None = None
) -> pd.DataFrame:
    """The same without the names, which are most of the memory of a table of millions."""
    import pandas as pd

    frame = pd.DataFrame(index=range(signals.tensor.shape[mode] if codes is None else len(codes)))
    for name, column in _columns(signals, mode, scorer, target).items():
        frame[name] = column if codes is None else column[codes]
    return frame


def first_ranked(signals: Signals, mode: int, scorer: Scorer, target: Target | None, named: int) -> pd.DataFrame:
    """``ranked(scores_by_code(...))`` with the names of the first alone; those of the others are None."""
    import pandas as pd

    columns = _columns(signals, mode, scorer, target)
    order = _order(columns)
    frame = pd.DataFrame(index=range(len(order)))
    frame["rank"] = np.arange(1, len(order) + 1)
    names = np.full(len(order), None, object)
    names[:named] = signals.tensor.vocabularies[mode].decode(order[:named])
    frame["entity"] = names
    for name in SCORE_COLUMNS[2:]:
        own = name if name in columns else "value"
        frame[own] = columns[own][order]
    return frame


def _order(columns: dict[str, Floats | npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The codes of the entities, most suspicious first, as ``ranked`` sorts them."""
    return np.lexsort((-columns["evidence"], -columns["score"]))


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
        "reviews": _review_counts(tensor, mode),
        "label": _label_column(target, size),
    }


def ranked_batches(signals: Signals, mode: int, scorer: Scorer, target: Target | None) -> Iterator[pa.Table]:
    """``ranked(scores_by_code(...))`` as Arrow tables, one after the other: for millions of names, without a Python
    object for each, and without a second copy of all."""
    columns = _columns(signals, mode, scorer, target)
    order = _order(columns)
    vocabulary = signals.tensor.vocabularies[mode].values
    names = [name if name in columns or name in ("rank", "entity") else "value" for name in SCORE_COLUMNS]
    for start in range(0, max(len(order), 1), BATCH):
        some = order[start : start + BATCH]
        arrays = {name: pa.array(column[some], from_pandas=True) for name, column in columns.items()}  # NaN: no value
        arrays["rank"] = pa.array(np.arange(start + 1, start + 1 + len(some)))
        arrays["entity"] = vocabulary.take(pa.array(some))
        yield pa.table({name: arrays[name] for name in names})


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows, most suspicious first, with their rank."""
    frame = frame.sort_values(["score", "evidence"], ascending=False, kind="stable").reset_index(drop=True)
    frame.insert(0, "rank", np.arange(1, len(frame) + 1))
    return frame[["value" if name not in frame else name for name in SCORE_COLUMNS]]


def _review_counts(tensor: SparseTensor, mode: int) -> npt.NDArray[np.int64]:
    """Reviews of each entity, (n_k,): whole numbers, so that they may be added in any order."""
    total = np.zeros(tensor.shape[mode], np.int64)
    for start in range(0, tensor.n_cells, CELLS_AT_ONCE):
        some = slice(start, start + CELLS_AT_ONCE)
        codes, counts = tensor.coordinates[some, mode], tensor.counts[some]
        low = int(codes.min())  # of the first mode these are few: its cells are in the order of their codes
        totals = np.bincount(codes - low, weights=counts)
        total[low : low + len(totals)] += totals.astype(np.int64)
    return total


def _label_column(target: Target | None, size: int) -> Floats:
    """1 and 0, or the number that is known of an entity; NaN for the unlabelled."""
    if target is None:
        return np.broadcast_to(np.nan, size)
    column = np.full(size, np.nan)
    column[target.codes] = target.values if target.kind == "real" else target.values > 0
    return column
