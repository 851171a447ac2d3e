"""Negatives on a worker: those of its own cells, and the cells of others in which its entities were drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats
from ringleader.counters import GOLDEN, uniforms
from ringleader.kernels.protocol import Backend
from ringleader.runtime.executor import Threads
from ringleader.runtime.peers import Peers
from ringleader.shares.deal import Deal
from ringleader.shares.ranges import Ranges

PIECE = 1 << 15
"""Cells whose negatives are drawn at a time."""


class DrawnCells(NamedTuple):
    """Cells in which entities of one worker were drawn, in ascending order of cells and draws."""

    codes: Codes  # (n, K): distinct cells
    weights: Floats  # (n,), or (0,) where all cells weigh the same
    times: npt.NDArray[np.uint8]  # (n,): how many of the draws of a cell are entities of the worker
    entities: Codes  # (sum of times,): those entities


def draw(backend: Backend, cells: Deal, in_a_row: int, pool: Codes, key: int, drawn: Codes, threads: int) -> None:
    """Fill ``drawn`` (n, m) with the entities drawn for cells: a function of their numbers.

    The numbers of the first ``in_a_row`` cells follow each other: the kernel counts from zero, so the key is shifted.
    """
    if in_a_row:
        shifted = (key + (int(cells.numbers[0]) << 8) * int(GOLDEN)) % 2**64
        backend.draw_negatives(drawn[:in_a_row], 0, pool, shifted)

    def piece(first: int) -> None:
        numbers = cells.numbers[first : first + PIECE]
        for j in range(drawn.shape[1]):
            picked = (uniforms(key, numbers, j) * len(pool)).astype(np.int64)
            drawn[first : first + PIECE, j] = pool[picked]

    Threads(threads).map(piece, range(in_a_row, len(drawn), PIECE))


def send_drawn(peers: Peers, ranges: Ranges, contrast: int, cells: Deal, drawn: Codes, weighted: bool) -> DrawnCells:
    """Send the cells of a worker's range to the owners of the entities drawn for them; returns those sent to it."""
    codes, entities = cells.codes[: cells.own], drawn[: cells.own]
    messages: list[DrawnCells] = []
    for rank in range(peers.count):
        first, last = ranges.own(contrast, rank)
        theirs = (entities >= first) & (entities < last)
        times = theirs.sum(axis=1, dtype=np.uint8)
        some = np.flatnonzero(times)
        weights = cells.weights[some] if weighted else np.zeros(0)
        messages.append(DrawnCells(codes[some], weights, times[some], entities[theirs]))
    parts = peers.exchange(messages)  # ranges of cells ascend with the number of the worker
    return DrawnCells(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def group_draws(backend: Backend, drawn: DrawnCells, first: int, size: int) -> tuple[Any, Codes]:
    """Offsets of the entities ``first`` to below ``first + size`` and the places of their cells, ascending."""
    offsets, order = backend.group_drawn(np.ascontiguousarray(drawn.entities[:, None] - first), 0, size)
    cell = np.repeat(np.arange(len(drawn.times), dtype=np.int32), drawn.times)
    return offsets, cell[order]
