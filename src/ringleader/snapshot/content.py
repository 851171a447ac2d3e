"""Content: the bytes of a stored file, read or mapped, and checked; and the columns of tables out of them.

What is checked is what is read. Of a mapped file only the pages that are looked at are in memory, and these are given
back with those of temporary files (``machine.leave_mapped``): the file has them.
"""

from __future__ import annotations

import hashlib
import mmap
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.runtime.machine import MAPPED

TEXTS = 1 << 16
"""Texts of a table that are read at a time."""
CHUNK = 1 << 20
"""Bytes that are read and checked at a time, while they are in the processor's cache."""

Content = bytearray | mmap.mmap


def checked_content(handle: BinaryIO, size: int, checksum: str, *, mapped: bool = False) -> Content | None:
    """The content of a file; None where it has another size or another SHA-256.

    mapped : whether it may be mapped; what is in an object store is read.
    """
    held = None if mapped and size and hasattr(handle, "fileno") else bytearray(size)
    whole, digest, filled = None if held is None else memoryview(held), hashlib.sha256(), 0
    handle.seek(0)
    while chunk := handle.read(min(CHUNK, size + 1 - filled)):  # a file that grew is not read whole
        filled += len(chunk)
        if filled > size:
            return None
        digest.update(chunk)
        if whole is not None:
            whole[filled - len(chunk) : filled] = chunk
    if filled != size or digest.hexdigest() != checksum:
        return None
    if held is not None:
        return held
    try:
        mapping = mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ)
    except ValueError:  # it shrank meanwhile
        return None
    MAPPED.add(mapping)
    return mapping


def column_of(content: Content, name: str) -> pa.Array:
    """A column of a table as one array. Texts are read in batches: millions of them are never in memory twice."""
    file = pq.ParquetFile(pa.BufferReader(content))
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
