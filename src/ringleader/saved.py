"""What of a detector goes into a model folder beside the state, and how it comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ringleader.covariates_given import GivenCovariates
from ringleader.heads import AnyHead, head_from_arrays
from ringleader.labels import Label, Labels, TargetKind
from ringleader.store import Stored
from ringleader.tensor.sparse import SparseTensor


def stored_heads(stored: Stored) -> tuple[AnyHead, ...]:
    return tuple(head_from_arrays(stored.arrays(f"head_{i}")) for i in range(stored.meta["heads"]))


def labels_of(table: pa.Table, kind: TargetKind) -> Labels:
    frame = table.to_pandas()
    values = frame["label"].astype(float) if kind == "real" else np.where(frame["label"] > 0, 1.0, -1.0)
    rows = zip(frame["mode"], frame["entity"], frame["target"], values, strict=True)
    return Labels(tuple(Label(m, e, t, float(v)) for m, e, t, v in rows), kind)


def covariates_fingerprint(covariates: GivenCovariates | None) -> str | None:
    return None if covariates is None else hashlib.sha256(covariates.table.to_csv().encode()).hexdigest()


def how_it_was_read(tensor: SparseTensor) -> dict[str, Any]:
    """The columns and modes of a tensor, so that new files are read in the same way."""
    assert tensor.report is not None
    modes = []
    for v in tensor.vocabularies:
        kind = {"time": f"time={v.bin_seconds}s", "number": "rating"}.get(v.kind, v.kind)
        modes.append(f"{v.mode}={tensor.report.columns[v.mode]}:{kind}")
    return {"modes": modes}


def labels_fingerprint(labels: Labels | None) -> str | None:
    return None if labels is None else hashlib.sha256(repr((labels.entries, labels.target_kind)).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Values as JSON takes them: no NaN, no NumPy numbers."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
