"""A tensor, and what follows from a snapshot, as named arrays, and back: bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.judge import Inputs, Judge, Judgement
from ringleader.judge.head import never_certain
from ringleader.judge.transfer import Transfer
from ringleader.signals import Signals, Suspicion
from ringleader.tensor.sparse import SparseTensor

Arrays = dict[str, npt.NDArray[Any]]


def pack_tensor(tensor: SparseTensor) -> Arrays:
    exact = {} if tensor.exact is None else {"exact": tensor.exact}
    return {"coordinates": tensor.coordinates, "counts": tensor.counts, **exact}


def pack_suspicion(signals: Signals, mode: int) -> Arrays:
    suspicion = signals.suspicion(mode)
    about = np.frombuffer(json.dumps(suspicion.names).encode(), np.uint8).copy()
    return {"names": about, "parts": np.stack(suspicion.parts), "evidence": signals.evidence(mode)}


def unpack_suspicion(arrays: Arrays) -> tuple[Suspicion, Floats]:
    names = tuple(json.loads(arrays["names"].tobytes()))
    return Suspicion(names, tuple(arrays["parts"])), arrays["evidence"]


def pack_head(judge: Judge, place: int) -> Arrays:
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
        "judgement": np.stack(said),
        "label_columns": np.ascontiguousarray(inputs.columns_from(first)),
        "label_columns_about": np.frombuffer(json.dumps(about).encode(), np.uint8).copy(),
    }


def unpack_judgement(arrays: Arrays, target_kind: str) -> Judgement:
    """Models of earlier versions may have ends of intervals that are certain."""
    stored = arrays["judgement"]
    return Judgement(*(never_certain(stored) if target_kind == "binary" else stored))


def with_label_columns(label_free: Inputs, arrays: Arrays) -> Inputs:
    about = json.loads(arrays["label_columns_about"].tobytes())
    said, groups = ({name: about[what][name] for name in about["names"]} for what in ("descriptions", "groups"))
    return label_free.with_table(about["names"], said, groups, arrays["label_columns"])


def pack_transfer(transferred: Transfer | None) -> Arrays:
    if transferred is None:
        return {"none": np.ones(1, np.uint8)}
    about = {name: getattr(transferred, name) for name in ("target", "descriptions", "names", "note")}
    return {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8).copy(),
        "parts": np.stack(transferred.parts),
        "neighbours": np.stack(list(transferred.neighbours.values())),
        "neighbour_names": np.frombuffer(json.dumps(list(transferred.neighbours)).encode(), np.uint8).copy(),
    }


def unpack_transfer(arrays: Arrays) -> Transfer | None:
    if "none" in arrays:
        return None
    about: dict[str, Any] = json.loads(arrays["about"].tobytes())
    names = json.loads(arrays["neighbour_names"].tobytes())
    neighbours = dict(zip(names, arrays["neighbours"], strict=True))
    return Transfer(**{**about, "names": tuple(about["names"])}, parts=tuple(arrays["parts"]), neighbours=neighbours)
