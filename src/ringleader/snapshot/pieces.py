"""Pieces: large arrays of a model cut into ranges of rows, a file each, so that several processes may write them.

Where the cuts are follows from the sizes of the arrays alone, never from who writes: the folder is the same for any
number of workers, and is read with one piece in memory beside the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Array, NamedArrays
from ringleader.errors import ModelFileError
from ringleader.runtime.machine import leave_mapped
from ringleader.runtime.mapped import mapped_array
from ringleader.shares.rows import RowBlocks
from ringleader.snapshot.array_file import write_arrays
from ringleader.snapshot.place import Entry, Place

LARGEST = 1 << 27
"""Bytes of an array above which it is cut."""
PIECE = 1 << 26
"""Bytes of an array in one piece. While a piece is written or read, its arrays are in memory once more."""
BY_COLUMNS = ("ranks", "values")
"""Arrays that are used one column at a time: their pieces are put together so, and not turned in a copy afterwards."""


class Shape(NamedTuple):
    """The size of an array: rows, and bytes of a row."""

    rows: int
    row_bytes: int


class Cuts(NamedTuple):
    """rows : of each array that is cut, how many it has; spans : by piece, the range of rows that it has of each.

    Arrays that are not cut are whole in the first piece.
    """

    rows: dict[str, int]
    spans: list[dict[str, tuple[int, int]]]


def cut(shapes: Mapping[str, Shape], largest: int | None = None) -> Cuts:
    """Where arrays of these sizes are cut. largest : in the place of LARGEST."""
    limit = LARGEST if largest is None else largest
    rows: dict[str, int] = {}
    spans: list[dict[str, tuple[int, int]]] = [{}]
    for name, shape in shapes.items():
        if shape.rows * shape.row_bytes <= limit or shape.rows < 2:
            spans[0][name] = (0, shape.rows)
            continue
        rows[name], step = shape.rows, max(1, min(limit, PIECE) // shape.row_bytes)
        for number, low in enumerate(range(0, shape.rows, step)):
            if number == len(spans):
                spans.append({})
            spans[number][name] = (low, min(low + step, shape.rows))
    return Cuts(rows, spans)


def shapes_of(arrays: NamedArrays) -> dict[str, Shape]:
    """The sizes of arrays; one without axes has one row."""
    return {
        name: Shape(len(array), array.nbytes // max(len(array), 1)) if array.ndim else Shape(1, array.nbytes)
        for name, array in arrays.items()
    }


def file_name(part: str, generation: int, number: int, count: int) -> str:
    """The name of a piece; a part of one piece is a file of its own name."""
    return f"{part}{f'.{number:05d}' if count > 1 else ''}-{generation}.safetensors"


def write_piece(place: Place, name: str, arrays: Mapping[str, Array | RowBlocks]) -> Entry:
    """Writes the arrays of one piece."""
    entry = place.write(name, lambda path: write_arrays(arrays, path))
    leave_mapped()
    return entry


def piece_of(arrays: NamedArrays, span: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
    """The arrays of one piece, cut out of whole ones: views."""
    return {key: arrays[key][low:high] if arrays[key].ndim else arrays[key] for key, (low, high) in span.items()}


def entry_of(cuts: Cuts, entries: Sequence[Entry]) -> Entry:
    """What the manifest says of a part: that of its file, or of its pieces in order."""
    return entries[0] if len(entries) == 1 else {"rows": cuts.rows, "pieces": list(entries)}


def files_of(entry: Mapping[str, Any]) -> list[Entry]:
    """The files of a part, in the order of its pieces."""
    return list(entry["pieces"]) if "pieces" in entry else [dict(entry)]


def file_names(files: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The names of all files of a manifest."""
    return {file["name"] for entry in files.values() for file in files_of(entry)}


def join(
    said: str,
    rows: Mapping[str, int],
    most_bytes: int,
    pieces: Iterable[NamedArrays],
    *,
    mapped: bool = False,
) -> dict[str, Array]:
    """The whole arrays out of their pieces, which are read one after the other.

    said : what an error calls the part; most_bytes : of all files of the part, which its arrays cannot exceed
    mapped : whether those of several pieces are put together in temporary files, and the others stay where they lie
    """
    whole: dict[str, Array] = {}
    filled: dict[str, int] = {}
    for name, piece in _named(pieces):
        if name not in rows:
            if name in whole:
                raise ModelFileError(f"{said} has {name} twice; it is damaged: restore it or fit again")
            whole[name] = piece if mapped else piece.copy()  # a view would hold the pieces of others
            continue
        if name not in whole:
            # An array of no bytes is never cut: one without columns counts as if it had one.
            size = rows[name] * piece.itemsize * math.prod(max(length, 1) for length in piece.shape[1:])
            if not piece.ndim or size > most_bytes:
                raise ModelFileError(f"{name} of {said} is not as large as it should be: restore it or fit again")
            empty = mapped_array if mapped else np.empty
            shape = rows[name], *piece.shape[1:]
            whole[name] = empty(shape[::-1], piece.dtype).T if name in BY_COLUMNS else empty(shape, piece.dtype)
            filled[name] = 0
        low, target = filled[name], whole[name]
        filled[name] = high = low + len(piece)
        if high > len(target) or piece.shape[1:] != target.shape[1:] or piece.dtype != target.dtype:
            raise ModelFileError(f"the pieces of {name} of {said} do not fit together: restore it or fit again")
        target[low:high] = piece
        leave_mapped()
    if any(filled.get(name) != count for name, count in rows.items()):
        raise ModelFileError(f"pieces of {said} are missing: restore it or fit again")
    return whole


def _named(pieces: Iterable[NamedArrays]) -> Iterator[tuple[str, Array]]:
    for piece in pieces:
        yield from piece.items()
