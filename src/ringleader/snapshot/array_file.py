"""Named arrays as a safetensors file, written a piece at a time, and read where they lie: none is in memory once more.

The library writes from bytes, so that a process would have a copy of every array; of arrays in mapped files it would
have all of them in memory. It reads into copies too; here arrays are read where the content of the file is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.runtime.machine import leave_shared
from ringleader.runtime.mapped import pieces
from ringleader.shares.rows import RowBlocks

KINDS = {
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "float32": "F32",
    "uint32": "U32",
    "int32": "I32",
    "float16": "F16",
    "uint16": "U16",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Names of types in the file, in the order in which arrays lie there: the largest numbers first, so that all are
aligned. Arrays of one type are in the order of their names."""
NAMES = {kind: name for name, kind in KINDS.items()}
ALIGNED = 8
LARGE_BLOCK = 2**23
"""Bytes of rows from which the memory in which they may have come is let go of behind them."""


def write_arrays(arrays: Mapping[str, npt.NDArray[Any] | RowBlocks], path: str) -> None:
    """Write a file; an array without axes has one row there.

    Same as: ``safetensors.numpy.save_file({n: np.ascontiguousarray(a) for n, a in arrays.items()}, path)``
    """
    order = list(KINDS)
    arrays = {n: array if isinstance(array, RowBlocks) else np.atleast_1d(array) for n, array in arrays.items()}
    names = sorted(arrays, key=lambda name: (order.index(arrays[name].dtype.name), name))
    about, offset = {}, 0
    for name in names:
        array = arrays[name]
        span = [offset, offset + array.nbytes]
        about[name] = {"dtype": KINDS[array.dtype.name], "shape": list(array.shape), "data_offsets": span}
        offset = span[1]
    header = json.dumps(about, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % ALIGNED)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in names:
            whole = arrays[name]
            for rows in whole.blocks if isinstance(whole, RowBlocks) else [whole]:
                for some in pieces(rows) if rows.size else ():
                    part = np.ascontiguousarray(rows[some], rows.dtype.newbyteorder("<"))
                    file.write(part.reshape(-1).view(np.uint8).data)
                if rows.nbytes >= LARGE_BLOCK:
                    leave_shared()  # in which it came


def read_arrays(content: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file, as views of its content: its memory is theirs. What is no such file is a ``ValueError``.

    Same as: ``safetensors.numpy.load(content.tobytes())``
    """
    size = int.from_bytes(content[:8].tobytes(), "little")
    if len(content) < 8 or size > len(content) - 8:
        raise ValueError("its header is longer than the file")
    about = json.loads(content[8 : 8 + size].tobytes())
    if not isinstance(about, dict):
        raise ValueError("its header names no arrays")
    about.pop("__metadata__", None)
    arrays, end = {}, 0
    for name, array in sorted(about.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        (first, last), shape = array["data_offsets"], array["shape"]
        if not all(type(number) is int and number >= 0 for number in (first, last, *shape)):
            raise ValueError(f"the size of {name} is no whole number")
        kind = np.dtype(NAMES[array["dtype"]]).newbyteorder("<")
        if first != end or last - first != math.prod(shape) * kind.itemsize:
            raise ValueError(f"{name} does not lie where it should")
        part, end = content[8 + size + first : 8 + size + last], last
        # Files of others need not be aligned; what is not would be read slowly, or not at all by compiled kernels.
        part = part if not part.ctypes.data % kind.itemsize else part.copy()
        arrays[name] = part.view(kind).reshape(shape)
    if 8 + size + end != len(content):
        raise ValueError("it does not end where its arrays do")
    return arrays
