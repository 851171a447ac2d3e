"""Arrays in temporary files: the driver of a cluster has the reviews and the state there, and little of them in memory.

A file has no name, and its space comes back when the last view of its array goes. What a process has read or written of
it counts as its memory until it lets go of it (``machine.leave_mapped``); it is in the file, and comes back when it is
used.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Array, frozen
from ringleader.errors import StorageError
from ringleader.runtime.machine import MAPPED, leave_mapped, leave_shared, reserve

PIECE = 1 << 24
"""Bytes of an array that are worked on at a time."""


def mapped_array(shape: tuple[int, ...], kind: npt.DTypeLike, folder: str | os.PathLike[str] | None = None) -> Array:
    """An array of zeros in a file of its own; ``folder`` is the system's folder for temporary files by default."""
    dtype = np.dtype(kind)
    if 0 in shape:
        return np.zeros(shape, dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    try:
        with tempfile.TemporaryFile(prefix="ringleader-", dir=folder) as handle:
            reserve(handle, size)
            mapping = mmap.mmap(handle.fileno(), size)
    except OSError as error:
        raise StorageError(
            f"cannot keep {size / 1e6:,.0f} MB in a temporary file: {error.strerror or error}; free some space, or "
            "choose another folder with --temp-directory or the variable TMPDIR"
        ) from error
    MAPPED.add(mapping)
    return np.frombuffer(mapping, dtype).reshape(shape)


def is_mapped(array: object) -> bool:
    """Whether an array is one of these, or a view of it."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)


def mapped_rows(parts: Sequence[Array], folder: str | os.PathLike[str] | None = None) -> Array:
    """Arrays one below the other, in a file. Same as: ``np.concatenate(parts)``."""
    whole = mapped_array((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype, folder)
    first = 0
    for part in parts:
        copy_rows(part, whole[first : first + len(part)])
        first += len(part)
    return whole


def in_file(array: Array) -> Array:
    """A copy of an array in a file, which nobody writes to; one that is in a file is itself."""
    return array if is_mapped(array) else frozen(mapped_rows([array]))


def mapped_stack(arrays: Sequence[Array]) -> Array:
    """Arrays of one shape as rows of one, which is in a file where they are. Same as: ``np.stack(arrays)``."""
    if not any(map(is_mapped, arrays)):
        return np.stack(arrays)
    whole = mapped_array((len(arrays), *arrays[0].shape), np.result_type(*arrays))
    for row, array in zip(whole, arrays, strict=True):
        copy_rows(array, row)
    return whole


def copy_rows(rows: Array, to: Array) -> None:
    """Copies rows a piece at a time, and lets go of shared memory and files behind each. Same as: ``to[:] = rows``"""
    for piece in pieces(rows):
        to[piece] = rows[piece]
        leave_shared()


def pieces(array: Array, size: int | None = None) -> Iterator[slice]:
    """Ranges of rows of an array, at most ``size`` bytes each; behind each, mapped files are let go of."""
    apart = max(array.nbytes // max(len(array), 1), abs(array.strides[0]), 1)  # a column is read with its neighbours
    step = max(1, (PIECE if size is None else size) // apart)
    for first in range(0, len(array), step):
        yield slice(first, min(first + step, len(array)))
        leave_mapped()
