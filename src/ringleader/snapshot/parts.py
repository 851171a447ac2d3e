"""The parts of a snapshot in its folder: what is written, what stays as it is on disk, and how it comes back."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ringleader.cores import Cores
from ringleader.errors import ModelFileError
from ringleader.judge import Head, Judge, LabelFree
from ringleader.judge.inputs import pack_inputs, unpack_inputs
from ringleader.known.covariates import UserCovariates
from ringleader.known.labels import Label, Labels, TargetKind
from ringleader.model.config import ModelConfig
from ringleader.model.state import State
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers
from ringleader.snapshot import folder as model_folder
from ringleader.snapshot.folder import ModelPart, Stored
from ringleader.snapshot.packing import (
    Arrays,
    pack_head,
    pack_suspicion,
    pack_transfer,
    unpack_judgement,
    unpack_suspicion,
    unpack_transfer,
    with_label_columns,
)
from ringleader.snapshot.resume import about_labels, covariates_fingerprint, tensor_fingerprint_once
from ringleader.snapshot.snapshot import Derived, Snapshot
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary
from ringleader.wording import json_ready

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Checkpoint:
    """Writes the snapshots of one fit into a folder, each part when it changed."""

    def __init__(self, folder: str | os.PathLike[str], stored: Stored | None = None) -> None:
        self.folder = Path(folder)
        self.stored = stored

    def save(self, snapshot: Snapshot) -> None:
        self.stored = save(snapshot, self.folder, self.stored)


def save(snapshot: Snapshot, folder: str | os.PathLike[str], before: Stored | None = None) -> Stored:
    """Write a snapshot. before : what the folder holds, where that is known: what did not change is left as it is."""
    if before is not None and before.folder.resolve() != Path(folder).resolve():
        before = None
    parts = list(_data_parts(snapshot))
    if snapshot.complete:
        parts += _derived_parts(snapshot)
    meta = {
        "modes": [_about_mode(v) for v in snapshot.tensor.vocabularies],
        "data": tensor_fingerprint_once(snapshot.tensor, before),
        "complete": snapshot.complete,
        "heads": len(snapshot.targets) if snapshot.judged else (0 if snapshot.complete else None),
        "sweep": snapshot.state.sweep,
        "parameters": json_ready(snapshot.parameters),
        "config": json_ready(snapshot.config.to_dict()),
        "reading": snapshot.reading,
        "labels": about_labels(snapshot.labels),
        "covariates": covariates_fingerprint(snapshot.covariates),
        "report": snapshot.report,
        "history": json_ready(snapshot.history),
    }
    return model_folder.save(folder, meta, parts, before=before)


def _data_parts(snapshot: Snapshot) -> Iterator[ModelPart]:
    """What a model was fitted to, and its state."""
    tensor = snapshot.tensor
    yield ModelPart("tensor", tensor, lambda: {"coordinates": tensor.coordinates, "counts": tensor.counts})
    for k, vocabulary in enumerate(tensor.vocabularies):
        yield ModelPart(f"vocabulary-{k}", vocabulary, partial(_vocabulary_table, vocabulary))
    for name, labels in (("labels", snapshot.labels), ("heldout", snapshot.heldout)):
        if labels is not None:
            yield ModelPart(name, labels, partial(_labels_table, labels))
    covariates = snapshot.covariates
    if covariates is not None:
        yield ModelPart("covariates", covariates, lambda: pa.Table.from_pandas(covariates.table, preserve_index=False))
    yield ModelPart("state", snapshot.state, snapshot.state.to_arrays)


def _derived_parts(snapshot: Snapshot) -> Iterator[ModelPart]:
    """What follows from it: found once, kept with the model."""
    signals, judge = snapshot.signals, snapshot.judge
    yield ModelPart("evidence", signals, lambda: dict(signals.reviews._asdict()))
    yield ModelPart("lockstep", signals, lambda: signals.lockstep.to_arrays())
    yield ModelPart("strangers", signals, lambda: dict(signals.strangers._asdict()))
    yield ModelPart("cores", signals, lambda: snapshot.cores().to_arrays())
    for k, vocabulary in enumerate(snapshot.tensor.vocabularies):
        yield ModelPart(f"suspicion-{k}", signals, partial(pack_suspicion, signals, k))
        if vocabulary.kind == "id":
            yield ModelPart(f"inputs-{k}", snapshot.label_free, partial(_inputs_arrays, judge, k))
        if snapshot.judged and snapshot.place(k) is None:
            yield ModelPart(f"transfer-{k}", judge, partial(_transfer_arrays, judge, k))
    if snapshot.judged:
        for place, head in enumerate(judge.heads()):
            yield ModelPart(f"head_{place}", head, partial(pack_head, judge, place))


def _vocabulary_table(vocabulary: Vocabulary) -> pa.Table:
    return pa.table({"value": vocabulary.values})


def _labels_table(labels: Labels) -> pa.Table:
    return pa.Table.from_pandas(labels.to_frame(), preserve_index=False)


def _inputs_arrays(judge: Judge, mode: int) -> Arrays:
    return pack_inputs(judge.label_free.inputs(mode))


def _transfer_arrays(judge: Judge, mode: int) -> Arrays:
    return pack_transfer(judge.transfer(mode))


def load(folder: str | os.PathLike[str]) -> tuple[Snapshot, Stored]:
    """The snapshot in a folder; a checkpoint counts. What follows from it is read when it is asked for."""
    stored = model_folder.load(folder)
    meta = stored.meta
    try:
        config = ModelConfig.from_dict(meta["config"])
        labels = _labels_of(stored, "labels") if meta["labels"] is not None else None
        snapshot = Snapshot(
            parameters=meta["parameters"],
            config=config,
            tensor=_stored_tensor(stored),
            labels=labels,
            heldout=_labels_of(stored, "heldout") if stored.has("heldout") else None,
            covariates=UserCovariates(stored.table("covariates").to_pandas()) if stored.has("covariates") else None,
            reading=meta["reading"],
            report=meta["report"],
            state=State.from_arrays(stored.arrays("state")),
            history=tuple(meta["history"]),
            complete=bool(meta["complete"]) and meta["heads"] is not None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelFileError(f"the manifest of model {stored.folder} is damaged: {error!r}; fit again") from error
    snapshot = _with_derived(snapshot, stored)
    stored.sources.update({part.name: part.source for part in _data_parts(snapshot) if stored.has(part.name)})
    return snapshot, stored


class ReadOnce(dict[K, V]):
    """A dictionary that reads what a folder knows when it is first asked for."""

    def __init__(self, keys: Iterable[K], read: Callable[[K], V]) -> None:
        super().__init__()
        self._readable, self._read = frozenset(keys), read

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._readable

    def __missing__(self, key: K) -> V:
        if key not in self._readable:
            raise KeyError(key)
        self[key] = self._read(key)
        return self[key]


def _with_derived(snapshot: Snapshot, stored: Stored) -> Snapshot:
    """The snapshot with what its folder knows of it: nothing in a checkpoint, heads alone in format 1."""
    if not snapshot.complete:
        return snapshot
    modes = range(len(snapshot.tensor.shape))
    signals, finder = snapshot.signals, None
    if stored.has("lockstep"):
        both = ReadOnce(modes, lambda k: unpack_suspicion(stored.arrays(f"suspicion-{k}")))
        suspicions, evidence = ReadOnce(modes, lambda k: both[k][0]), ReadOnce(modes, lambda k: both[k][1])
        signals = Signals(
            snapshot.tensor,
            snapshot.config.contrast,
            lambda: ReviewEvidence(**stored.arrays("evidence")),
            lambda: Lockstep.from_arrays(stored.arrays("lockstep")),
            suspicions=suspicions,
            evidence=evidence,
            find_strangers=(lambda: Strangers(**stored.arrays("strangers"))) if stored.has("strangers") else None,
        )
        finder = cache(lambda: Cores.from_arrays(stored.arrays("cores")))
    readable = [k for k in modes if stored.has(f"inputs-{k}")]
    label_free = LabelFree(
        signals, snapshot.user_columns.modes, ReadOnce(readable, lambda k: unpack_inputs(stored.arrays(f"inputs-{k}")))
    )
    judge = _stored_judge(snapshot, stored, label_free) if snapshot.judged else None
    if finder is not None:
        derived_names = ("evidence", "lockstep", "strangers", "cores", *(f"suspicion-{k}" for k in modes))
        stored.sources.update(dict.fromkeys(filter(stored.has, derived_names), signals))
        stored.sources.update({f"inputs-{k}": label_free for k in readable})
    return replace(snapshot, derived=Derived(label_free=label_free, judge=judge, find_cores=finder))


def _stored_judge(snapshot: Snapshot, stored: Stored, label_free: LabelFree) -> Judge:
    """The judge of a snapshot with the heads, scores and inputs that its folder holds."""
    targets = snapshot.targets
    places = range(len(targets))
    arrays = ReadOnce(places, lambda place: stored.arrays(f"head_{place}"))

    def head(place: int) -> Head:
        name = f"head_{place}"
        read = Head.from_arrays(arrays[place])
        if stored.has("lockstep"):  # one of format 1 is written anew, with what it lacks
            stored.sources[name] = read
        return read

    judge = Judge(
        label_free,
        targets,
        seed=snapshot.config.seed,
        prevalence=snapshot.parameters["prevalence"],
        threads=snapshot.parameters["threads"],
        heads=ReadOnce((place for place in places if stored.has(f"head_{place}")), head),
    )
    if stored.has("lockstep"):
        transfers = [k for k in range(len(snapshot.tensor.shape)) if stored.has(f"transfer-{k}")]
        judge.take_over(
            judgements=ReadOnce(places, lambda place: unpack_judgement(arrays[place])),
            transfers=ReadOnce(transfers, lambda k: unpack_transfer(stored.arrays(f"transfer-{k}"))),
            inputs=ReadOnce(
                places, lambda place: with_label_columns(label_free.inputs(targets[place].mode), arrays[place])
            ),
        )
    return judge


def _stored_tensor(stored: Stored) -> SparseTensor:
    vocabularies = []
    for k, mode in enumerate(stored.meta["modes"]):
        values = stored.table(f"vocabulary-{k}").column("value").combine_chunks()
        edges = tuple(mode["edges"]) if mode["edges"] else None
        vocabularies.append(Vocabulary(mode["mode"], mode["kind"], values, mode["bin_seconds"], edges))
    arrays = stored.arrays("tensor")
    return SparseTensor(arrays["coordinates"], arrays["counts"], tuple(vocabularies))


def _about_mode(vocabulary: Vocabulary) -> dict[str, Any]:
    """What the manifest says of a mode."""
    edges = list(vocabulary.edges) if vocabulary.edges else None
    about = {"mode": vocabulary.mode, "kind": vocabulary.kind, "bin_seconds": vocabulary.bin_seconds}
    return {**about, "edges": edges}


def _labels_of(stored: Stored, part: str) -> Labels:
    kind: TargetKind = stored.meta["labels"]["kind"]
    frame = stored.table(part).to_pandas()
    values = frame["label"].astype(float) if kind == "real" else np.where(frame["label"] > 0, 1.0, -1.0)
    rows = zip(frame["mode"], frame["entity"], frame["target"], values, strict=True)
    return Labels(tuple(Label(m, e, t, float(v)) for m, e, t, v in rows), kind)
