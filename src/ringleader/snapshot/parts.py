"""The parts of a snapshot in its folder: what is written, what stays as it is on disk, and how it comes back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ringleader.arrays import NamedArrays
from ringleader.errors import ModelBusyError, ModelFileError, RingleaderError
from ringleader.judge import Judge, LabelFree
from ringleader.judge.cluster import HeldSignals
from ringleader.judge.inputs import pack_inputs
from ringleader.known.covariates import UserCovariates
from ringleader.known.labels import Label, Labels, TargetKind
from ringleader.learners.cluster import ClusterLearner
from ringleader.model.config import ModelConfig
from ringleader.model.state import State
from ringleader.runtime.machine import return_memory
from ringleader.signals import Signals
from ringleader.snapshot import folder as model_folder
from ringleader.snapshot.batches import batches_from
from ringleader.snapshot.checks import (
    check_labels,
    check_tensor,
    check_vocabulary,
    refused,
    require,
)
from ringleader.snapshot.folder import KEEP, ModelPart, Stored
from ringleader.snapshot.lock import writing
from ringleader.snapshot.manifest import MANIFEST, UNFINISHED, Manifest
from ringleader.snapshot.meta import check_meta, fault_of
from ringleader.snapshot.packing import (
    pack_head,
    pack_suspicion,
    pack_tensor,
    pack_transfer,
)
from ringleader.snapshot.pieces import files_of
from ringleader.snapshot.place import Place, place_of
from ringleader.snapshot.resume import about_labels, covariates_fingerprint, tensor_fingerprint_once
from ringleader.snapshot.snapshot import Derived, Snapshot
from ringleader.snapshot.stored_derived import with_derived
from ringleader.snapshot.stored_state import check_stored_state, check_when_read, stored_state
from ringleader.snapshot.worker_rows import WorkerRows
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary
from ringleader.wording import json_ready

LARGE = 200_000
"""Entities of a mode above which inputs leave the memory of a fit once they are written: 1 kB an entity."""


class Checkpoint:
    """Writes the snapshots of one fit into a folder, each part when it changed.

    Where the folder holds another model, that one stays until the new fit is complete.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        stored: Stored | None = None,
        keep: int = KEEP,
        learner: ClusterLearner | None = None,
    ) -> None:
        """learner : whose workers write the rows that they hold, where they see the folder."""
        self.folder, self.stored, self.keep = folder, stored, keep
        self.rows = None if learner is None else WorkerRows(learner)
        self.name = stored.name if stored is not None else UNFINISHED if model_folder.is_model(folder) else MANIFEST

    def save(self, snapshot: Snapshot, signals: HeldSignals | None = None) -> None:
        """signals : what workers found and keep of it."""
        if self.rows is not None:
            self.rows.signals = signals
        name = MANIFEST if snapshot.complete else self.name
        self.stored = _write(snapshot, self.folder, self.stored, name, self.keep, self.rows, release=signals is None)

    def without_state(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot whose state was saved, with the evidence it gives; a large state is read when it is asked for."""
        assert self.stored is not None  # it was saved
        if len(files_of(self.stored.files["state"])) == 1:
            return snapshot
        evidence, lockstep = snapshot.signals.reviews, snapshot.signals.lockstep
        signals = Signals(snapshot.tensor, snapshot.config.contrast, lambda: evidence, lambda: lockstep)
        state = self.stored.sources["state"] = stored_state(self.stored)
        derived = Derived(label_free=LabelFree(signals, snapshot.user_columns.modes))
        return replace(snapshot, state=state, derived=derived)

    def saved_state(self) -> State:
        """The state that was saved last, read when something asks for it."""
        assert self.stored is not None  # it was saved
        state = self.stored.sources["state"] = stored_state(self.stored, later=True)
        return state

    def read_back(self, snapshot: Snapshot) -> Snapshot:
        """A complete snapshot that was saved, with what follows from it read from the folder when it is asked for."""
        assert self.stored is not None  # it was saved
        state = snapshot.state
        if not isinstance(state, State):  # it was laid aside; one that is not large is read at once
            state = self.stored.sources["state"] = stored_state(self.stored)
        return _with_derived(replace(snapshot, state=state, derived=Derived()), self.stored)


def save(
    snapshot: Snapshot,
    folder: str | os.PathLike[str],
    before: Stored | None = None,
    *,
    overwrite: bool = False,
    keep: int = KEEP,
    release: bool = False,
) -> Stored:
    """Write a snapshot.

    before    : the model that the snapshot was loaded from or saved to last. Where the folder holds it still, what did
    not change is left as it is; where somebody else replaced it since, the snapshot is refused.
    overwrite : whether it may replace another model, or another generation
    keep      : earlier generations that stay
    release   : whether nobody asks the snapshot for more: of a large one memory is given back behind what was written
    """
    if before is not None and before.folder.key() != place_of(folder).key():
        before = None
    with writing(folder, create=True):
        current = model_folder.readable_manifest(place_of(folder))
        if before is None or current is None or before.digest != current.digest:
            if current is not None and _is_of(snapshot, current):
                return model_folder.load(folder)  # saved already, by a save that was interrupted behind its end
            if not overwrite and model_folder.is_model(folder):
                raise _another(place_of(folder), before)
            before = None
        return _write(snapshot, folder, before, MANIFEST, keep, release=release)


def _is_of(snapshot: Snapshot, current: Manifest) -> bool:
    """Whether a manifest is that of the snapshot."""
    about = json.loads(json.dumps(_about(snapshot, None), default=str))
    return {**about, "generation": current.meta.get("generation")} == current.meta


def _another(folder: Place, before: Stored | None) -> ModelFileError:
    if before is None:
        return ModelFileError(f"{folder} holds another model; choose a new folder, or replace it with overwrite=True")
    return ModelBusyError(
        f"model {folder} was changed by somebody else since it was loaded; load it again and repeat the change, or "
        "replace it with overwrite=True"
    )


def _write(
    snapshot: Snapshot,
    folder: str | os.PathLike[str],
    before: Stored | None,
    name: str,
    keep: int,
    rows: WorkerRows | None = None,
    release: bool = False,
) -> Stored:
    """release : whether what follows from a large snapshot may be given back once it is written."""
    about = _about(snapshot, before)
    fault = fault_of(json.loads(json.dumps(about, default=str)))
    if fault is not None:
        raise ModelFileError(
            f"cannot save the model to {place_of(folder)}: it {fault}, so it could not be opened again"
        )
    parts = [*_data_parts(snapshot), *(_derived_parts(snapshot, release) if snapshot.complete else ())]
    parts = parts if rows is None else rows.written(parts, snapshot.state)
    return model_folder.save(folder, about, parts, before=before, name=name, keep=keep)


def _about(snapshot: Snapshot, before: Stored | None) -> dict[str, Any]:
    """What the manifest says of a snapshot."""
    return {
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
        "batches": [batch.to_dict() for batch in snapshot.batches],
        "device": snapshot.device,
    }


def _data_parts(snapshot: Snapshot) -> Iterator[ModelPart]:
    """What a model was fitted to, and its state. Tables come behind the two (``leftovers``)."""
    tensor = snapshot.tensor
    yield ModelPart("tensor", tensor, partial(pack_tensor, tensor))
    yield ModelPart("state", snapshot.state, lambda: snapshot.state.to_arrays())
    for k, vocabulary in enumerate(tensor.vocabularies):
        yield ModelPart(f"vocabulary-{k}", vocabulary, partial(_vocabulary_table, vocabulary))
    for name, labels in (("labels", snapshot.labels), ("heldout", snapshot.heldout)):
        if labels is not None:
            yield ModelPart(name, labels, partial(_labels_table, labels))
    covariates = snapshot.covariates
    if covariates is not None:
        yield ModelPart("covariates", covariates, lambda: pa.Table.from_pandas(covariates.table, preserve_index=False))


def _derived_parts(snapshot: Snapshot, release: bool) -> Iterator[ModelPart]:
    """What follows from it: found once, kept with the model."""
    signals, judge = snapshot.signals, snapshot.judge
    if release and snapshot.derived.label_free is None:  # else it is known, or the folder has it
        signals.lay_aside()
        snapshot.problem.draws.forget()  # evidence is found
    yield ModelPart("evidence", signals, lambda: dict(signals.reviews._asdict()))
    yield ModelPart("lockstep", signals, lambda: signals.lockstep.to_arrays())
    yield ModelPart("strangers", signals, lambda: dict(signals.strangers._asdict()))
    for k in range(len(snapshot.tensor.shape)):
        yield ModelPart(f"suspicion-{k}", signals, partial(pack_suspicion, signals, k))
        if snapshot.judged and snapshot.target_index(k) is None:
            yield ModelPart(f"transfer-{k}", judge, partial(_transfer_arrays, judge, k))
    if snapshot.judged:
        for place, head in enumerate(judge.heads()):
            yield ModelPart(f"head_{place}", head, partial(pack_head, judge, place))
    for k, vocabulary in enumerate(snapshot.tensor.vocabularies):  # behind all that reads them: they may be given back
        if vocabulary.kind == "id":
            yield ModelPart(f"inputs-{k}", snapshot.label_free, partial(_inputs_arrays, judge, k, release))
    yield ModelPart("cores", signals, partial(_cores_arrays, snapshot))  # which needs the memory


def _vocabulary_table(vocabulary: Vocabulary) -> pa.Table:
    return pa.table({"value": vocabulary.values})


def _labels_table(labels: Labels) -> pa.Table:
    return pa.Table.from_pandas(labels.to_frame(), preserve_index=False)


def is_large(entities: int) -> bool:
    """Whether a model whose largest mode has so many entities gives inputs back once they are written."""
    return entities >= LARGE


def _inputs_arrays(judge: Judge, mode: int, release: bool) -> NamedArrays:
    release = release and is_large(max(judge.signals.tensor.shape))
    if release:
        judge.label_free.forget_ties()  # labels have flowed
        return_memory()  # that of the mode before
    arrays = pack_inputs(judge.label_free.inputs(mode))
    if release:
        judge.release(mode)
        return_memory()
    return arrays


def _cores_arrays(snapshot: Snapshot) -> NamedArrays:
    arrays = snapshot.cores().to_arrays()
    return_memory()  # that of the boards
    return arrays


def _transfer_arrays(judge: Judge, mode: int) -> NamedArrays:
    return pack_transfer(judge.transfer(mode))


def load(folder: str | os.PathLike[str]) -> tuple[Snapshot, Stored]:
    """The snapshot in a folder; a checkpoint counts. What follows from it is read when it is asked for."""
    stored = model_folder.load(folder)
    meta = stored.meta
    check_meta(stored.folder, stored.name, meta)
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
            state=stored_state(stored),
            history=tuple(meta["history"]),
            complete=bool(meta["complete"]) and meta["heads"] is not None,
            batches=batches_from(meta.get("batches", ())),
            device=meta.get("device", "cpu"),
        )
        for known in (snapshot.labels, snapshot.heldout):
            if known is not None:
                check_labels(known, snapshot.tensor)
        check_when_read(
            snapshot.state,
            partial(check_stored_state, stored.folder, stored.name, snapshot.tensor, config.rank, snapshot.targets),
        )
        heads = len(snapshot.targets) if snapshot.judged else 0
        require(not snapshot.complete or meta["heads"] == heads, "it has other heads than the labels ask for")
        snapshot = _with_derived(snapshot, stored)
    except RingleaderError as error:
        if isinstance(error, ModelFileError):
            raise
        raise refused(stored.folder, stored.name, error) from error
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise refused(stored.folder, stored.name, error) from error
    stored.sources.update({part.name: part.source for part in _data_parts(snapshot) if stored.has(part.name)})
    return snapshot, stored


def _with_derived(snapshot: Snapshot, stored: Stored) -> Snapshot:
    return with_derived(snapshot, stored, mapped=is_large(max(snapshot.tensor.shape)))


def _stored_tensor(stored: Stored) -> SparseTensor:
    vocabularies = []
    for k, mode in enumerate(stored.meta["modes"]):
        values = stored.column(f"vocabulary-{k}", "value")
        edges = tuple(mode["edges"]) if mode["edges"] else None
        vocabularies.append(Vocabulary(mode["mode"], mode["kind"], values, mode["bin_seconds"], edges))
        check_vocabulary(vocabularies[-1])
    arrays = stored.arrays("tensor", mapped=is_large(max(map(len, vocabularies), default=0)))
    require(all(array.dtype.kind == "i" for array in arrays.values()), "the tensor has no codes")
    exact = arrays.get("exact")  # which models of earlier versions do not have
    tensor = SparseTensor(arrays["coordinates"], arrays["counts"], tuple(vocabularies), exact=exact)
    check_tensor(tensor)
    return tensor


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
