"""Ranges of blocks that visit a device in turn, where the tensor is too large for it, of about equally many cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Codes, Numbers
from ringleader.kernels.layout import CHUNK


class BlockRange(NamedTuple):
    """Blocks ``first`` to ``last``, of which positions ``begin`` to ``end`` are there, counted over all blocks.

    Only a long block may lie in several ranges, and is cut between two of its chunks.
    """

    first: int
    last: int
    begin: int
    end: int
    first_chunk: int
    last_chunk: int


def cut_ranges(xp: Any, edges: Any, first_chunk: Any, capacity: int, *, cut_long: bool) -> list[BlockRange]:
    """Ranges of up to ``capacity`` positions; without ``cut_long`` a block that is longer is a range by itself.

    edges : (blocks + 1,), first position of each block. capacity : at least 2 CHUNK.
    """
    count = len(edges) - 1
    ranges: list[BlockRange] = []
    first = begin = chunk = 0
    while first < count:
        target = begin + max(capacity, 2 * CHUNK)
        last = int(xp.searchsorted(edges, target, side="right")) - 1  # the first block that ends behind the target
        if last >= count:
            end, last, upper = int(edges[count]), count, int(first_chunk[count])
        elif cut_long and int(first_chunk[last + 1]) > int(first_chunk[last]):
            whole = (target - int(edges[last])) // CHUNK
            end, upper = int(edges[last]) + whole * CHUNK, int(first_chunk[last]) + whole
            last += whole > 0
        else:
            last = max(last, first + 1)
            end, upper = int(edges[last]), int(first_chunk[last])
        ranges.append(BlockRange(first, last, begin, end, chunk, upper))
        first, begin, chunk = last - (end < int(edges[last])), end, upper
    return ranges


def side_by_side(begins: Numbers, ends: Numbers, cells: Codes) -> tuple[Numbers, Codes]:
    """Lists (begins, ends, cells) with nothing between them: offsets (blocks + 1,) and their cells."""
    length = ends - begins
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    if len(length) and (begins[1:] == ends[:-1]).all():
        return offsets, cells[begins[0] : ends[-1]]
    places = np.repeat(begins - offsets[:-1], length) + np.arange(offsets[-1])
    return offsets, cells[places]
