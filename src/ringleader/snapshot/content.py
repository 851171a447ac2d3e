"""The content of a model's file, whole in memory, and the tables in it."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Content = npt.NDArray[np.uint8]

TEXTS = 1 << 16
"""Texts of a table that are read at a time."""


def read_content(handle: BinaryIO, most: int) -> Content:
    """The first bytes of a file, at most so many; of one on a disk in memory that NumPy got, in large pages."""
    handle.seek(0)
    if not isinstance(handle, io.BufferedReader):
        return np.frombuffer(handle.read(most), np.uint8)
    content = np.empty(min(most, os.fstat(handle.fileno()).st_size + 1), np.uint8)
    return content[: handle.readinto(content.data)]


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
