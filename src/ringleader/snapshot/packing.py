"""A tensor, and what follows from a snapshot, as named arrays, and back: bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats, NamedArrays, packed_json, unpacked_json
from ringleader.judge import Inputs, Judge, Judgement
from ringleader.judge.head import never_certain
from ringleader.judge.transfer import Transfer
from ringleader.runtime.mapped import mapped_stack
from ringleader.signals import Signals, Suspicion
from ringleader.tensor.sparse import SparseTensor


def pack_tensor(tensor: SparseTensor) -> NamedArrays:
    exact = {} if tensor.exact is None else {"exact": tensor.exact}
    return {"coordinates": tensor.coordinates, "counts": tensor.counts, **exact}


def pack_suspicion(signals: Signals, mode: int) -> NamedArrays:
    suspicion = signals.suspicion(mode)
    about = packed_json(suspicion.names)
    return {"names": about, "parts": mapped_stack(suspicion.parts), "evidence": signals.evidence(mode)}


def unpack_suspicion(arrays: NamedArrays) -> tuple[Suspicion, Floats]:
    names = tuple(unpacked_json(arrays["names"]))
    return Suspicion(names, tuple(arrays["parts"])), arrays["evidence"]


def pack_head(judge: Judge, place: int) -> NamedArrays:
    """A head, what it says of everybody, and the inputs that labels entered."""
    target, head, said = judge.targets[place], judge.head(place), judge.judgement(place)
    inputs, first = judge.head_inputs(place), len(judge.label_free.inputs(target.mode).names)
    names = inputs.names[first:]
    about = {
        "names": names,
        "descriptions": {name: inputs.descriptions[name] for name in names},
        "groups": {name: inputs.groups[name] for name in names},
    }
    return {
        **head.to_arrays(),
        "judgement": mapped_stack(said),
        "label_columns": inputs.columns_from(first),
        "label_columns_about": packed_json(about),
    }


def unpack_judgement(arrays: NamedArrays, target_kind: str) -> Judgement:
    """Models of earlier versions may have ends of intervals that are certain."""
    stored = arrays["judgement"]
    return Judgement(*(never_certain(stored) if target_kind == "binary" else stored))


def with_label_columns(label_free: Inputs, arrays: NamedArrays) -> Inputs:
    about = unpacked_json(arrays["label_columns_about"])
    said, groups = ({name: about[what][name] for name in about["names"]} for what in ("descriptions", "groups"))
    return label_free.with_table(about["names"], said, groups, arrays["label_columns"])


def pack_transfer(transferred: Transfer | None) -> NamedArrays:
    if transferred is None:
        return {"none": np.ones(1, np.uint8)}
    about = {name: getattr(transferred, name) for name in ("target", "descriptions", "names", "note")}
    return {
        "about": packed_json(about),
        "parts": mapped_stack(transferred.parts),
        "neighbours": mapped_stack(list(transferred.neighbours.values())),
        "neighbour_names": packed_json(list(transferred.neighbours)),
    }


def unpack_transfer(arrays: NamedArrays) -> Transfer | None:
    if "none" in arrays:
        return None
    about: dict[str, Any] = unpacked_json(arrays["about"])
    names = unpacked_json(arrays["neighbour_names"])
    neighbours = dict(zip(names, arrays["neighbours"], strict=True))
    return Transfer(**{**about, "names": tuple(about["names"])}, parts=tuple(arrays["parts"]), neighbours=neighbours)
