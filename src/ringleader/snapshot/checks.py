"""Whether what a model folder says fits together, asked before anything computes with it.

A checksum tells that a part is as it was written, not that it was written by us: codes beyond a vocabulary would make
compiled loops read memory that is not theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringleader.arrays import NamedArrays, unpacked_json
from ringleader.errors import ModelFileError, RingleaderError
from ringleader.known.labels import Labels, Target
from ringleader.model.state import State
from ringleader.runtime.mapped import pieces
from ringleader.snapshot.place import Place
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

Lengths = tuple[str | None, ...]

VALUE_TYPES = {"id": pa.large_string(), "category": pa.large_string(), "number": pa.float64(), "time": pa.int64()}
ASKED_AT_ONCE = 1 << 20
"""Values of a vocabulary that are compared at a time."""
LARGEST_COUNT = 1 << 50
"""Rows of one cell; sums of counts stay within 64 bits."""

LARGEST_NUMBER = 1e30
"""Of a state: products of a few stay finite."""

SHAPES: dict[str, dict[str, Lengths]] = {
    "evidence": {"log_odds": ("cells",), "left_out": ("cells",), "evidence": ("cells",)},
    "suspicion": {"parts": (None, "entities"), "evidence": ("entities",)},
    "inputs": {"values": ("entities", None), "ranks": ("entities", None)},
    "transfer": {"parts": (None, "entities"), "neighbours": (None, "entities")},
    "head": {"judgement": (None, "entities"), "label_columns": ("entities", None), "ranks": ("entities", None)},
    "lockstep": dict.fromkeys(
        ("boost_scores", "boost_direct", "attack_scores", "attack_direct", "pull", "crowded_attacks"), ("cells",)
    ),
    "strangers": dict.fromkeys(("ratios", "mode", "begin", "number", "expected"), ("cells",)),
}
"""By kind of part, the lengths of its arrays: cells and entities are the model's, None is any."""
KINDS = {"ranks": "u", "mode": "i", "begin": "i", "number": "i"}
"""The kinds of their numbers, where they are no floats."""
MOST_KNOTS = 64
"""Of a head's splines."""


class MisfitError(RingleaderError):
    """Something does not hold of a model; whoever knows its place refuses it by name (``refused``)."""


def require(holds: bool | np.bool_, said: str) -> None:
    """Something that must hold of a model."""
    if not holds:
        raise MisfitError(said)


def refused(place: Place, name: str, error: Exception) -> ModelFileError:
    """That the model of a manifest in a place is refused, and why."""
    why = error if isinstance(error, RingleaderError) else repr(error)
    said = f"model {place} ({name}) is damaged or was not written by ringleader"
    return ModelFileError(f"{said}: {why}; restore it or fit again")


def check_vocabulary(vocabulary: Vocabulary) -> None:
    values = vocabulary.values
    said = f"the vocabulary of {vocabulary.mode!r}"
    require(values.type == VALUE_TYPES[vocabulary.kind] or str(values.type) == "string", f"{said} has a wrong type")
    require(values.null_count == 0, f"{said} has empty values")
    require(_ascends(values) or len(values.unique()) == len(values), f"{said} has values twice")


def _ascends(values: pa.Array) -> bool:
    """Whether every value is above the one before, as those of a first fit are: then none is there twice."""
    for start in range(0, len(values) - 1, ASKED_AT_ONCE):
        some = values.slice(start, ASKED_AT_ONCE + 1)
        if not pc.all(pc.less(some[:-1], some[1:]), skip_nulls=False).as_py():
            return False
    return True


def check_tensor(tensor: SparseTensor) -> None:
    require(tensor.n_cells > 0, "the tensor has no cells")
    low, high = tensor.coordinates.min(axis=0), tensor.coordinates.max(axis=0)
    require((low >= 0).all() and (high < np.array(tensor.shape)).all(), "the tensor has codes beyond its vocabularies")
    require(tensor.counts.min() > 0 and tensor.counts.max() < LARGEST_COUNT, "the tensor has impossible counts")
    if tensor.exact is not None and len(tensor.exact) > 1:
        ascends = tensor.exact[1:] >= tensor.exact[:-1]
        ascends[np.cumsum(tensor.counts)[:-1] - 1] = True
        require(bool(tensor.binned_modes) and ascends.all(), "the exact times of the tensor are in no order")


def check_state(state: State, tensor: SparseTensor, rank: int, targets: Sequence[Target]) -> None:
    starts = np.concatenate([[0], np.cumsum(tensor.shape)])
    require(np.array_equal(state.starts, starts), "the state is of other entities than the tensor")
    require(min(state.sweep, state.steps) >= 0, "the state counts its sweeps or steps below zero")
    rows = int(starts[-1])
    shapes: dict[str, tuple[int | None, ...]] = {
        "factors": (rows, rank),
        "component_weights": (rank,),
        "shrinkage": (rank,),
        "heads": (len(targets), rank + 1),
        "noise": (len(targets),),
        "cavities": (sum(len(target.codes) for target in targets), rank),
        "first": (rows + 1 if state.first.size else 0, rank),
        "second": (rows + 1 if state.second.size else 0, None),
        "evidence": (rows if state.evidence.size else 0,),
        "evidence_slopes": (len(targets) if state.evidence_slopes.size else 0,),
    }
    for name, shape in shapes.items():
        array = getattr(state, name)
        fits = array.ndim == len(shape) and all(b is None or a == b for a, b in zip(array.shape, shape, strict=True))
        require(fits and array.dtype.kind == "f", f"{name} of the state has a wrong shape")
        # The extremes are NaN where a number is; a table of all sizes would be a copy of the largest array there is.
        finite = not array.size or (array.max() < LARGEST_NUMBER and array.min() > -LARGEST_NUMBER)
        require(bool(finite), f"{name} of the state has numbers that cannot be computed with")


def check_labels(labels: Labels, tensor: SparseTensor) -> None:
    texts = all(isinstance(text, str) for entry in labels.entries for text in entry[:3])
    require(texts and labels.target_kind in ("binary", "real"), "the labels are not names and targets")
    require(all(np.isfinite(entry.value) for entry in labels.entries), "a label is not a finite number")
    require({entry.mode for entry in labels.entries} <= set(tensor.modes), "a label is of a mode that is not there")


def check_part(part: str, arrays: NamedArrays, tensor: SparseTensor, entities: int) -> None:
    """The arrays of a derived part have the lengths of the model, and their codes are codes of it.

    part : its name, such as ``suspicion-0``; entities : of the mode it is about
    """
    kind = part.split("-")[0].split("_")[0]
    lengths = {"cells": tensor.n_cells, "entities": entities}
    for name, shape in SHAPES.get(kind, {}).items():
        if name not in arrays:
            continue
        array = arrays[name]
        fits = array.ndim == len(shape) and all(
            b is None or a == lengths[b] for a, b in zip(array.shape, shape, strict=True)
        )
        require(fits and array.dtype.kind == KINDS.get(name, "f"), f"{name} of {part} has a wrong shape or type")
        finite = array.dtype.kind != "f" or all(np.isfinite(array[some]).all() for some in pieces(array))
        require(finite, f"{name} of {part} is not finite")
    if kind == "suspicion":
        require(len(arrays["parts"]) == len(unpacked_json(arrays["names"])) > 0, f"{part} lacks some parts")
    if kind == "transfer" and "none" not in arrays:
        names = unpacked_json(arrays["about"])["names"], unpacked_json(arrays["neighbour_names"])
        fits = (len(arrays["parts"]), len(arrays["neighbours"])) == tuple(map(len, names)) and len(names[0]) > 0
        require(fits, f"{part} lacks some parts")
    if kind == "inputs":
        bursts = {name: array for name, array in arrays.items() if name.startswith("burst_")}
        require(all(array.shape == (entities,) for array in bursts.values()), f"bursts of {part} have a wrong shape")
        width = len(unpacked_json(arrays["about"])["names"])
        require(arrays["values"].shape[1] == width, f"values of {part} have a wrong shape")
        if "ranks" in arrays:
            _check_ranks(part, arrays, width)
        if "calendar_occupied" in arrays:
            _check_calendar(part, arrays, bursts)
    if kind == "head":
        _check_head(part, arrays, entities)
    if kind == "cores":
        require(_are_codes(arrays["cells"], tensor.n_cells), "a core has reviews that are not there")
        require(_are_codes(arrays["member_codes"], max(tensor.shape)), "a core has members that are not there")
        require(len(arrays["cells"]) == arrays["cell_lengths"].sum(), "the cores have wrong lengths")
        require(len(arrays["member_codes"]) == arrays["member_lengths"].sum(), "the cores have wrong lengths")
    if kind == "lockstep":
        for side in ("boost", "attack", "single"):
            _check_graph(arrays, side, entities)


def _check_ranks(part: str, arrays: NamedArrays, width: int) -> None:
    """The ranks of some inputs: where the table of each begins and ends, and what is in it."""
    said = f"the ranks of {part} do not fit together"
    offsets, values, places = (arrays[f"rank_{name}"] for name in ("offsets", "values", "places"))
    require(arrays["ranks"].shape[1] == width and arrays["ranks"].dtype == np.uint16, said)
    require(offsets.shape == (width + 1,) and offsets.dtype.kind == "i", said)
    require(offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] == len(values), said)
    require(values.shape == places.shape == (len(values),) and _are_finite(values, places), said)
    for name, means in arrays.items():
        if name.startswith("rank_means_"):
            knots = name.removeprefix("rank_means_")
            fits = knots.isdecimal() and means.shape == (width, 1 + int(knots))
            require(fits and _are_finite(means), said)


def _check_calendar(part: str, arrays: NamedArrays, bursts: NamedArrays) -> None:
    """The calendar of the market: as many shares as occupied bins, and one more; and the bursts, which lie in it."""
    said = f"the calendar of {part} does not fit together"
    occupied, before, rank = (arrays.get(f"calendar_{name}") for name in ("occupied", "before", "rank"))
    require(occupied is not None and occupied.ndim == 1 and occupied.dtype.kind == "i", said)
    require(before is not None and occupied is not None and before.shape == (len(occupied) + 1,), said)
    require(before is not None and _are_finite(before), said)
    bins = unpacked_json(arrays["covariates"])["calendar"]["n_bins"]
    if rank is not None and occupied is not None:
        require(rank.shape == (bins + 1,) and _are_codes(rank, len(occupied) + 1), said)
    for name, burst in bursts.items():
        within = burst.dtype.kind == "i" and (not burst.size or max(-int(burst.min()), int(burst.max())) <= bins)
        require(
            within if name.endswith("_start") else _are_finite(burst), f"{name} of {part} is outside of the calendar"
        )


def _check_head(part: str, arrays: NamedArrays, entities: int) -> None:
    """A head: its columns, the inputs that they are made of, and the labels that it learned from."""
    said = f"{part} does not fit together"
    require(_are_codes(arrays["codes"], entities), f"{part} names entities that are not there")
    labels = arrays["codes"].shape
    width, columns = arrays["ranks"].shape[1] if arrays["ranks"].ndim == 2 else -1, arrays["weights"].shape
    kind, source, knots = arrays["kind"], arrays["source"], arrays["knots"]
    _check_ranks(part, arrays, width)
    require(len(columns) == 1 and kind.shape == source.shape == arrays["centre"].shape == columns, said)
    require(kind.dtype.kind == "i" and source.dtype.kind == "i" and columns[0] > 0, said)
    require(int(source.min()) >= -1 and int(source.max()) < width, said)
    require(knots.shape == (1,) and knots.dtype.kind == "i" and 2 <= int(knots[0]) <= MOST_KNOTS, said)
    varying = len(np.unique(source[source >= 0]))
    require(columns[0] == 1 + varying * (1 + int(knots[0])), said)
    root = arrays["root"]
    require(root.ndim == 2 and root.shape[0] == columns[0], f"root of {part} has a wrong shape")
    of_labels = [arrays[name] for name in ("values", "left_out", "left_out_spread") if name in arrays]
    require(all(array.shape == labels for array in of_labels), said)
    require(_are_finite(*(arrays[name] for name in ("weights", "root", "centre", "variances")), *of_labels), said)
    about = unpacked_json(arrays["about"])
    require(len(about["names"]) == width, said)
    if "judgement" in arrays:
        judgement, names = arrays["judgement"], unpacked_json(arrays["label_columns_about"])["names"]
        require(len(judgement) == 3 and arrays["label_columns"].shape[1] == len(names), said)
        probable = about["target_kind"] == "real" or bool(((judgement >= 0) & (judgement <= 1)).all())
        require(probable, f"{part} gives values that are not probabilities")


def _are_finite(*arrays: npt.NDArray[Any]) -> bool:
    return all(array.dtype.kind == "f" and bool(np.isfinite(array).all()) for array in arrays)


def _check_graph(arrays: NamedArrays, side: str, actors: int) -> None:
    """A graph of actors as compressed rows: nothing points beyond its end."""
    data, indices, pointers = (arrays[f"{side}_{name}"] for name in ("data", "indices", "indptr"))
    said = f"{side} of lockstep is not a graph of the actors"
    rows, columns = arrays[f"{side}_shape"].tolist()
    require(rows == actors and (columns == actors or side == "single"), said)
    require(pointers.shape == (actors + 1,) and pointers.dtype.kind == "i" and indices.ndim == 1, said)
    require(pointers[0] == 0 and (np.diff(pointers) >= 0).all() and pointers[-1] == len(indices), said)
    require(data.shape == indices.shape and np.isfinite(data).all() and _are_codes(indices, columns), said)


def _are_codes(codes: npt.NDArray[Any], size: int) -> bool:
    return codes.dtype.kind == "i" and codes.ndim == 1 and (not codes.size or (codes.min() >= 0 and codes.max() < size))
