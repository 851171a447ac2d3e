"""Content: the bytes of a stored file, read or mapped, and checked; and the tables in it.

What is checked is what is read. Of a mapped file only the pages that are looked at are in memory, and these are given
back with those of temporary files (``machine.leave_mapped``): the file has them.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.runtime.machine import MAPPED

Content = npt.NDArray[np.uint8]

TEXTS = 1 << 16
"""Texts of a table that are read at a time."""
CHUNK = 1 << 22
"""Bytes that are read and checked at a time where nothing is kept of them."""


def checked_content(handle: BinaryIO, size: int, checksum: str, *, mapped: bool = False) -> Content | None:
    """The content of a file; None where it has another size or another SHA-256.

    mapped : whether it may be mapped; what is in an object store is read.
    """
    if mapped and size and isinstance(handle, io.BufferedReader):
        return _mapped(handle, size) if _checksum(handle, size) == checksum else None
    content = _read(handle, size + 1)  # a file that grew is not read whole
    return content if len(content) == size and hashlib.sha256(content.data).hexdigest() == checksum else None


def _read(handle: BinaryIO, most: int) -> Content:
    """The first bytes of a file, at most so many; of one on a disk in memory that NumPy got, in large pages."""
    handle.seek(0)
    if not isinstance(handle, io.BufferedReader):
        return np.frombuffer(handle.read(most), np.uint8)
    content = np.empty(min(most, os.fstat(handle.fileno()).st_size + 1), np.uint8)
    return content[: handle.readinto(content.data)]


def _checksum(handle: io.BufferedReader, size: int) -> str | None:
    """Of a file of so many bytes; None where it has more or fewer."""
    handle.seek(0)
    digest, buffer, left = hashlib.sha256(), memoryview(bytearray(min(CHUNK, size))), size
    while left and (count := handle.readinto(buffer[:left])):
        digest.update(buffer[:count])
        left -= count
    return None if left or handle.read(1) else digest.hexdigest()


def _mapped(handle: io.BufferedReader, size: int) -> Content | None:
    try:
        mapping = mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ)
    except ValueError:  # it shrank meanwhile
        return None
    MAPPED.add(mapping)
    return np.frombuffer(mapping, np.uint8)


def table_of(content: Content) -> pa.Table:
    return pq.read_table(_as_file(content))


def _as_file(content: Content) -> pa.BufferReader:
    return pa.BufferReader(pa.py_buffer(content))


def column_of(content: Content, name: str) -> pa.Array:
    file = pq.ParquetFile(_as_file(content))
    field = file.schema_arrow.field(name)
    if not pa.types.is_large_string(field.type) or not file.metadata.num_rows:
        return file.read([name]).column(name).combine_chunks()
    offsets, filled = np.zeros(file.metadata.num_rows + 1, np.int64), 0
    texts: list[npt.NDArray[np.uint8]] = []
    for batch in file.iter_batches(TEXTS, columns=[name]):
        array = batch.column(0)
        if array.null_count:
            return file.read([name]).column(name).combine_chunks()
        _, places, text = array.buffers()
        ends = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
        if ends[-1] > ends[0]:
            texts.append(np.frombuffer(text, np.uint8)[ends[0] : ends[-1]].copy())
        offsets[filled + 1 : filled + 1 + len(array)] = ends[1:] - ends[0] + offsets[filled]
        filled += len(array)
    joined = np.concatenate([np.zeros(0, np.uint8), *texts])
    return pa.Array.from_buffers(field.type, filled, [None, pa.py_buffer(offsets), pa.py_buffer(joined)])
