"""What of a detector goes into a model folder beside the state, and how it comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ringleader.judge.targets import AnyHead, head_from_arrays
from ringleader.known.covariates import UserCovariates
from ringleader.known.labels import Label, Labels, TargetKind
from ringleader.model.config import ModelConfig
from ringleader.snapshot.folder import Stored, tensor_fingerprint, tensor_parts
from ringleader.tensor.sparse import SparseTensor

FREE_TO_CHANGE = ("threads", "backend")
"""Settings that do not change the result, so that a fit may be resumed with others."""


Parts = tuple[dict[str, Any], dict[str, pa.Table], dict[str, Any]]


def data_parts(
    tensor: SparseTensor, labels: Labels | None, heldout: Labels | None, covariates: UserCovariates | None
) -> Parts:
    """What a model was fitted to: arrays, tables, and what the manifest says of them."""
    arrays, tables, modes = tensor_parts(tensor)
    known = {"labels": labels, "heldout": heldout}
    frames = {name: found.to_frame() for name, found in known.items() if found is not None}
    if covariates is not None:
        frames["covariates"] = covariates.table
    tables |= {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()}
    return arrays, tables, {"modes": modes, "data": tensor_fingerprint(tensor)}


def about_labels(labels: Labels | None) -> dict[str, Any] | None:
    """What the manifest says of the labels."""
    return None if labels is None else {"kind": labels.target_kind, "fingerprint": labels_fingerprint(labels)}


def stored_heads(stored: Stored) -> tuple[AnyHead, ...]:
    return tuple(head_from_arrays(stored.arrays(f"head_{i}")) for i in range(stored.meta["heads"]))


def labels_of(table: pa.Table, kind: TargetKind) -> Labels:
    frame = table.to_pandas()
    values = frame["label"].astype(float) if kind == "real" else np.where(frame["label"] > 0, 1.0, -1.0)
    rows = zip(frame["mode"], frame["entity"], frame["target"], values, strict=True)
    return Labels(tuple(Label(m, e, t, float(v)) for m, e, t, v in rows), kind)


def covariates_fingerprint(covariates: UserCovariates | None) -> str | None:
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


def what_changed(
    stored: Stored,
    tensor: SparseTensor,
    labels: Labels | None,
    covariates: UserCovariates | None,
    parameters: Mapping[str, Any],
    config: ModelConfig,
) -> list[str]:
    """Why a stored fit is another than one of these data and settings; empty where it is the same."""
    reasons = []
    if stored.meta["data"] != tensor_fingerprint(tensor):
        reasons.append("the reviews changed")
    if (stored.meta["labels"] or {}).get("fingerprint") != labels_fingerprint(labels):
        reasons.append("the labels changed")
    if stored.meta["covariates"] != covariates_fingerprint(covariates):
        reasons.append("the covariates changed")
    told = stored.meta["parameters"]
    moved = [name for name in ("prevalence", "holdout") if told[name] != plain(parameters[name])]
    reasons += [f"{name} was {told[name]} and is {parameters[name]}" for name in moved]
    old, new = stored.meta["config"], config.to_dict()
    changed = [n for n in sorted({*old, *new}) if n not in FREE_TO_CHANGE and old.get(n) != new.get(n)]
    return reasons + [f"{name} was {old.get(name)} and is {new.get(name)}" for name in changed]


def plain(value: Any) -> Any:
    """Values as JSON takes them: no NaN, no NumPy numbers."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
