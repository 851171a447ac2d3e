"""Which blocks there are and how long lists are cut, computed where the lists are; and sums of pieces added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.kernels.cuda.arguments import POINTER, WHOLE, Form
from ringleader.kernels.cuda.copies import DeviceCopies
from ringleader.kernels.layout import CHUNK, Blocks, cut_long_lists

FOLD = 32
"""Sums that are added up as one, in order, before the next level. Fixed: changing it changes the last bits."""


def plan(xp: Any, mode: int, entities: Any, own: tuple[Any, Any, Any], drawn: tuple[Any, Any, Any] | None) -> Blocks:
    """Blocks from lists (begins, ends, cells) on the device. Same as: ``plan_blocks``, with one task."""
    begins, ends, cells = own
    count = len(entities)
    none = xp.zeros(count, np.int64)
    drawn_begins, drawn_ends, drawn_cells = (none, none, xp.zeros(0, np.int32)) if drawn is None else drawn
    length = (ends - begins) + (drawn_ends - drawn_begins)
    long = xp.flatnonzero(length > CHUNK)
    chunks, _ = cut_long_lists(_numpy(length[long]))
    chunks[:, 0] = _numpy(long)[chunks[:, 0]]
    first_chunk = xp.zeros(count + 1, np.int64)
    xp.cumsum(xp.where(length > CHUNK, -(-length // CHUNK), 0), out=first_chunk[1:])
    ones = xp.ones(count)
    lists = (begins, ends, cells, drawn_begins, drawn_ends, drawn_cells)
    return Blocks(mode, entities, *lists, ones, ones, xp.asarray(chunks), first_chunk, np.array([0, count]))


def fold_levels(xp: Any, chunks: Any, first_chunk: Any) -> list[tuple[Any, Any]]:
    """How sums of pieces are added up until no block has more than FOLD: for each level the first place of each
    group among the sums (groups + 1,), and the first group of each block (blocks + 1,)."""
    levels = []
    owner = chunks[:, 0]
    while len(owner) and int((first_chunk[1:] - first_chunk[:-1]).max()) > FOLD:
        places = xp.arange(len(owner))
        starts = xp.flatnonzero((places - first_chunk[owner]) % FOLD == 0)
        folded = xp.zeros(len(first_chunk), np.int64)
        xp.cumsum(-(-(first_chunk[1:] - first_chunk[:-1]) // FOLD), out=folded[1:])
        levels.append((xp.concatenate([starts, xp.asarray([len(owner)])]), folded))
        owner, first_chunk = owner[starts], folded
    return levels


def fold(copies: DeviceCopies, form: Form, sums: Any, blocks: Blocks) -> tuple[Any, Any]:
    """Sums (chunks, SUMS) added up level by level: what is left of them, and the place of each block's first one."""
    xp, at = copies.device.xp, copies.at
    places = blocks.first_chunk
    for groups, first in fold_levels(xp, blocks.chunks, blocks.first_chunk):
        folded = xp.empty((len(groups) - 1, form.sums))
        arguments = [*(POINTER(at(part)) for part in (sums, groups, folded)), WHOLE(len(folded))]
        copies.launch("fold_sums", form, len(folded), arguments)
        sums, places = folded, first
    return sums, places


def _numpy(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)
