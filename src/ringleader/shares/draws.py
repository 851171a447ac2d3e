"""Negatives on a worker: those of its own cells, and the cells of others in which its entities were drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.layout import OwnedDraws
from ringleader.kernels.protocol import DivisibleBackend
from ringleader.runtime.peers import Peers
from ringleader.shares.deal import Deal


class DrawnCells(NamedTuple):
    """Cells in which entities of one worker were drawn, in ascending order of cells and draws.

    Some of them are among the cells that the worker has for these entities anyway; the others come behind those.
    """

    codes: list[Codes]  # by worker (n, K): of the others
    weights: Floats  # (n,), or (0,) where all cells weigh the same
    draws: OwnedDraws  # of all: their places among the worker's cells and those behind them, and what they drew


def send_drawn(
    peers: Peers,
    backend: DivisibleBackend,
    bounds: Numbers,
    cells: Deal,
    tuples: Codes,
    weighted: bool,
    held: int | None,
) -> DrawnCells:
    """Send the cells of a worker's range to the owners of the entities drawn for them; returns those sent to it.

    bounds : of the ranges of entities that workers own. tuples : of the cells, what was drawn behind their codes.
    weighted : whether cells weigh differently. held : None where the cells of its range are those that a worker has for
    its own entities; else the number of those.
    """
    messages: list[tuple[Any, ...]] = []
    here = np.zeros(0, np.int32)
    for rank, part in enumerate(backend.owned_draws(tuples[: cells.own], cells.codes.shape[1], bounds)):
        some = part.cells
        if rank == peers.rank and held is None:
            here, some = some, some[:0]
        weights = cells.weights[some] if weighted else np.zeros(0)
        messages.append((cells.codes[some], weights, part.times, part.entities))
    parts = peers.exchange(messages)  # ranges of cells ascend with the number of the worker
    begin = len(cells.numbers) if held is None else held
    places = []
    for rank, (codes, *_) in enumerate(parts):
        own = rank == peers.rank and held is None
        places.append(here if own else np.arange(begin, begin + len(codes), dtype=np.int32))
        begin += len(codes)
    sent, *others = zip(*parts, strict=True)
    weights, times, entities = (np.concatenate(columns) for columns in others)
    return DrawnCells(list(sent), weights, OwnedDraws(np.concatenate(places), times, entities))
