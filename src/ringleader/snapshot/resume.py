"""Where a fit may be written, and whether a stored one may be resumed: fingerprints of its data, and what differs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ringleader.errors import ModelFileError, SettingsError
from ringleader.kernels.protocol import unavailable
from ringleader.known.covariates import UserCovariates
from ringleader.known.labels import Labels
from ringleader.model.config import ModelConfig
from ringleader.runtime.mapped import pieces
from ringleader.runtime.stores import local_path
from ringleader.snapshot import folder as model_folder
from ringleader.snapshot.batches import batch_with, batches_from
from ringleader.snapshot.folder import Stored
from ringleader.snapshot.manifest import MANIFEST, UNFINISHED
from ringleader.snapshot.meta import check_meta
from ringleader.snapshot.place import place_of
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import harmless, json_ready

FREE_TO_CHANGE = ("threads",)
"""Settings that do not change the result, so that a fit may be resumed with others."""
INTERCHANGEABLE = ("numba", "cuda", "cuda-emulated")
"""Backends that go on with each other's fits; the last bits of the result then differ."""


def check_place(folder: str | os.PathLike[str], *, resume: bool, overwrite: bool) -> None:
    """Refuses a folder for a fit that holds anything that is not meant to go."""
    if resume and overwrite:
        raise SettingsError("--resume and --overwrite exclude each other")
    if model_folder.is_free(folder):
        return
    path = local_path(folder)
    if path is not None and not os.path.isdir(path):
        raise ModelFileError(f"{folder} is a file; give a folder for the model")
    if overwrite:
        if not model_folder.is_model(folder):
            raise ModelFileError(f"{folder} is not a model, so it is not overwritten; choose another folder")
    elif not resume:
        if not model_folder.is_model(folder):
            raise ModelFileError(f"{folder} contains other files than a model; choose another folder")
        raise ModelFileError(f"{folder} exists; continue it with --resume, or replace it with --overwrite")


def resumable(folder: str | os.PathLike[str]) -> Stored | None:
    """The checkpoint in a folder, first the one of a fit that is to replace the model; None where there is none yet."""
    if model_folder.is_free(folder):
        return None
    name = UNFINISHED if place_of(folder).has(UNFINISHED) else MANIFEST
    stored = model_folder.load(folder, name)
    check_meta(stored.folder, stored.name, stored.meta)
    return stored


def at_its_device(config: ModelConfig, stored: Stored, device: str) -> ModelConfig:
    """The settings for going on with a fit: its own type of numbers and, where any device will do, its own backend."""
    before = stored.meta["config"]
    if config.backend == before["backend"] or not {config.backend, before["backend"]} <= set(INTERCHANGEABLE):
        return config
    if device == "auto" and unavailable(before["backend"]) is None:
        config = config.replace(backend=before["backend"])
    return config.replace(dtype=before["dtype"])


def has_checkpoint(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a fit that was stopped."""
    names = (UNFINISHED, MANIFEST)
    readable = [m for m in (model_folder.readable_manifest(place_of(folder), name) for name in names) if m is not None]
    return any(not manifest.meta.get("complete") for manifest in readable)


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
    batches = batches_from(stored.meta.get("batches", ()))
    if stored.meta["data"] != tensor_fingerprint(tensor):
        reasons.append("the reviews changed")
    elif len(batches) == 1 and batches[0].content is not None and batch_with(batches, tensor) is None:
        bins = " and ".join(map(harmless, tensor.binned_modes))
        reasons.append(f"the reviews changed in nothing but their exact times (the {bins} is the same)")
    if (stored.meta["labels"] or {}).get("fingerprint") != labels_fingerprint(labels):
        reasons.append("the labels changed")
    if stored.meta["covariates"] != covariates_fingerprint(covariates):
        reasons.append("the covariates changed")
    before = stored.meta["parameters"]
    moved = [name for name in ("prevalence", "holdout") if before[name] != json_ready(parameters[name])]
    reasons += [f"{name} was {before[name]} and is {parameters[name]}" for name in moved]
    old, new = stored.meta["config"], config.to_dict()
    free = {*FREE_TO_CHANGE}
    if {old.get("backend"), new["backend"]} <= set(INTERCHANGEABLE):
        free.add("backend")
    changed = [n for n in sorted({*old, *new}) if n not in free and old.get(n) != new.get(n)]
    return reasons + [f"{name} was {old.get(name)} and is {new.get(name)}" for name in changed]


def about_labels(labels: Labels | None) -> dict[str, Any] | None:
    """What the manifest says of the labels."""
    return None if labels is None else {"kind": labels.target_kind, "fingerprint": labels_fingerprint(labels)}


def labels_fingerprint(labels: Labels | None) -> str | None:
    return None if labels is None else hashlib.sha256(repr((labels.entries, labels.target_kind)).encode()).hexdigest()


def covariates_fingerprint(covariates: UserCovariates | None) -> str | None:
    return None if covariates is None else hashlib.sha256(covariates.table.to_csv().encode()).hexdigest()


def tensor_fingerprint(tensor: SparseTensor) -> str:
    """A hash of everything a tensor says; equal data give equal fingerprints."""
    digest = hashlib.sha256()
    for v in tensor.vocabularies:
        digest.update(json.dumps([v.mode, v.kind, len(v), v.bin_seconds, v.edges]).encode())
        digest.update(pa.record_batch([v.values], names=["value"]).serialize())
    for array in (tensor.coordinates, tensor.counts):
        for piece in pieces(array):
            digest.update(np.ascontiguousarray(array[piece]).data)
    return digest.hexdigest()


def tensor_fingerprint_once(tensor: SparseTensor, before: Stored | None) -> str:
    """The tensor's fingerprint; that of the folder where it holds the same tensor."""
    if before is not None and before.sources.get("tensor") is tensor:
        known: str = before.meta["data"]
        return known
    return tensor_fingerprint(tensor)
