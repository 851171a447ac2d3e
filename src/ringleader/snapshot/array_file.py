"""Named arrays as a safetensors file, written a piece at a time, and read where they lie: none is in memory once more.

The library writes from bytes, so that a process would have a copy of every array, and reads into a copy of the file; of
arrays in mapped files it would have all of them in memory.
"""

from __future__ import annotations

import json
import math
import mmap
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


def read_arrays(content: bytes | bytearray | mmap.mmap) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file as views of its content; what is no such file is a ValueError.

    Same as: ``safetensors.numpy.load(content)``
    """
    kinds = {name: np.dtype(kind).newbyteorder("<") for kind, name in KINDS.items()}
    begin = 8 + int.from_bytes(content[:8], "little")
    arrays = {}
    for name, about in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        kind, shape, (low, high) = kinds[about["dtype"]], about["shape"], about["data_offsets"]
        if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != high - low or low < 0:
            raise ValueError(f"{name} does not lie where its shape says")
        arrays[name] = np.frombuffer(content, kind, math.prod(shape), begin + low).reshape(shape)
    return arrays
