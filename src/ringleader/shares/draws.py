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
    """Cells in which entities of one worker were drawn, in ascending order of cells and draws.

    Some of them are among the cells that the worker has for these entities anyway; the others come behind those.
    """

    codes: Codes  # (n, K): of the others
    weights: Floats  # (n,), or (0,) where all cells weigh the same
    places: Codes  # (N,): of all, their places among the worker's cells and those behind them
    times: npt.NDArray[np.uint8]  # (N,): how many of the draws of a cell are entities of the worker
    entities: Codes  # (sum of times,): those entities


def draw(
    backend: Backend, cells: Deal, in_a_row: int, pool: Codes, key: int, tuples: Codes, modes: int, threads: int
) -> None:
    """Fill ``tuples`` (n, K + m) behind its first ``modes`` columns with the entities drawn for cells: a function of
    their numbers.

    The numbers of the first ``in_a_row`` cells follow each other: the kernel counts from zero, so the key is shifted.
    """
    if in_a_row:
        shifted = (key + (int(cells.numbers[0]) << 8) * int(GOLDEN)) % 2**64
        backend.draw_negatives(tuples[:in_a_row], modes, pool, shifted)

    def piece(first: int) -> None:
        numbers = cells.numbers[first : first + PIECE]
        for j in range(tuples.shape[1] - modes):
            picked = (uniforms(key, numbers, j) * len(pool)).astype(np.int64)
            tuples[first : first + PIECE, modes + j] = pool[picked]

    Threads(threads).map(piece, range(in_a_row, len(tuples), PIECE))


def send_drawn(
    peers: Peers, ranges: Ranges, contrast: int, cells: Deal, drawn: Codes, weighted: bool, held: int | None
) -> DrawnCells:
    """Send the cells of a worker's range to the owners of the entities drawn for them; returns those sent to it.

    held : None where the cells of its range are those that a worker has for its own entities; else the number of those
    """
    codes, entities = cells.codes[: cells.own], drawn[: cells.own]
    messages: list[tuple[Any, ...]] = []
    here = np.zeros(0, np.int32)
    for rank in range(peers.count):
        first, last = ranges.own(contrast, rank)
        theirs = (entities >= first) & (entities < last)
        times = np.zeros(len(theirs), np.uint8)
        for column in theirs.T:
            times += column
        some = np.flatnonzero(times)
        own, times = entities[theirs], times[some]
        if rank == peers.rank and held is None:
            here, some = some.astype(np.int32), some[:0]
        messages.append((codes[some], cells.weights[some] if weighted else np.zeros(0), times, own))
    parts = peers.exchange(messages)  # ranges of cells ascend with the number of the worker
    begin = len(cells.numbers) if held is None else held
    places = []
    for rank, part in enumerate(parts):
        places.append(here if rank == peers.rank and held is None else np.arange(begin, begin + len(part[0])))
        begin += len(part[0])
    sent, weights, times, own = (np.concatenate(part) for part in zip(*parts, strict=True))
    return DrawnCells(sent, weights, np.concatenate(places).astype(np.int32), times, own)


def group_draws(backend: Backend, drawn: DrawnCells, first: int, size: int) -> tuple[Any, Codes]:
    """Offsets of the entities ``first`` to below ``first + size`` and the places of their cells, ascending."""
    offsets, order = backend.group_drawn(np.ascontiguousarray(drawn.entities[:, None] - first), 0, size)
    return offsets, np.repeat(drawn.places, drawn.times)[order]
