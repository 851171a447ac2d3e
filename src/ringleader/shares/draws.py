"""Negatives on a worker: those of its own cells, and the cells of others in which its entities were drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats
from ringleader.counters import uniforms
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


def draw(cells: Deal, negatives: int, pool: Codes, key: int, threads: int) -> Codes:
    """The entities drawn for cells, (n, m): a function of their numbers. Same as: ``Backend.draw_negatives``."""
    drawn = np.empty((len(cells.numbers), negatives), np.int32)

    def piece(first: int) -> None:
        numbers = cells.numbers[first : first + PIECE]
        for j in range(negatives):
            picked = (uniforms(key, numbers, j) * len(pool)).astype(np.int64)
            drawn[first : first + PIECE, j] = pool[picked]

    Threads(threads).map(piece, range(0, len(drawn), PIECE))
    return drawn


def send_drawn(peers: Peers, ranges: Ranges, contrast: int, cells: Deal, drawn: Codes) -> DrawnCells:
    """Send the cells of a worker's range to the owners of the entities drawn for them; returns those sent to it."""
    codes, entities = cells.codes[: cells.own], drawn[: cells.own]
    weighted = len(cells.weights) > 1
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
