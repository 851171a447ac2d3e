"""Dealing: the cells that a worker needs, copied out of a problem.

Chunks of sums that begin in a worker's range are added up there, so it also gets the few cells behind its range that
complete the last of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.layout import CHUNK, LIKELIHOOD_PIECE
from ringleader.model.problem import Problem
from ringleader.shares.ranges import Ranges
from ringleader.tensor.sparse import group_codes

RANGE = -1
"""The key of the cells of a worker's range of cells; those of its entities of a mode have the mode as key."""


class Deal(NamedTuple):
    """Some cells in ascending order of their numbers."""

    numbers: Numbers  # (n,): their places among all cells
    own: int  # so many of them, the first ones, lie in the worker's range; the others complete chunks
    codes: Codes  # (n, K)
    weights: Floats  # training weight: (n,), or (1,) where all cells of the fit weigh the same
    heldout: Floats  # (n,) or (0,)


class ChunkPlaces(NamedTuple):
    """Where the cells of a range stand in the lists of the entities of one mode that is not dealt out."""

    first: Numbers  # (n_k,): cells of the entity before the range
    last: Numbers  # (n_k,): the same before the next range
    length: Numbers  # (n_k,): cells of the entity in all


def deal_keys(ranges: Ranges) -> list[int]:
    """The keys of the deals of a worker: its range, and each dealt mode but the first, whose cells are the range."""
    return [RANGE, *(k for k, dealt in enumerate(ranges.dealt) if dealt and k > 0)]


def deal_cells(problem: Problem, ranges: Ranges, rank: int, key: int) -> Deal:
    """The cells of one key for a worker."""
    if key == RANGE:
        first, last = int(ranges.cells[rank]), int(ranges.cells[rank + 1])
        numbers = np.concatenate([np.arange(first, last), _behind(problem, ranges, rank)])
        own = last - first
    else:
        first, last = ranges.own(key, rank)
        column = problem.tensor.coordinates[:, key]
        numbers = np.flatnonzero((column >= first) & (column < last))
        own = len(numbers)
    weights, heldout = problem.weights, problem.heldout
    return Deal(
        numbers,
        own,
        problem.tensor.coordinates[numbers],
        weights[numbers] if problem.weighted else weights,
        heldout[numbers] if len(heldout) else heldout,
    )


def chunk_places(problem: Problem, ranges: Ranges, rank: int) -> dict[int, ChunkPlaces]:
    """For each mode that is not dealt out."""
    places = {}
    for mode, dealt in enumerate(ranges.dealt):
        if not dealt:
            column, size = problem.tensor.coordinates[:, mode], ranges.shape[mode]
            before = np.bincount(column[: ranges.cells[rank]], minlength=size)
            inside = np.bincount(column[ranges.cells[rank] : ranges.cells[rank + 1]], minlength=size)
            places[mode] = ChunkPlaces(before, before + inside, np.bincount(column, minlength=size))
    return places


def _behind(problem: Problem, ranges: Ranges, rank: int) -> Numbers:
    """Cells behind a range that belong to chunks which begin in it, ascending."""
    first, last = ranges.cells[rank : rank + 1], ranges.cells[rank + 1 : rank + 2]
    ends = [int(_end_of_last_chunk(first, last, size)[0]) for size in (CHUNK, LIKELIHOOD_PIECE)]
    behind: list[npt.NDArray[Any]] = [np.arange(int(last[0]), min(max(ends), ranges.n_cells))]
    for mode, places in chunk_places(problem, ranges, rank).items():
        # The cells of an entity behind the range come right behind those in it and before it.
        offsets, cells = group_codes(problem.tensor.coordinates[int(last[0]) :, mode], ranges.shape[mode])
        count = np.minimum(_end_of_last_chunk(places.first, places.last, CHUNK), places.length) - places.last
        behind += [int(last[0]) + cells[offsets[e] : offsets[e] + count[e]] for e in np.flatnonzero(count > 0)]
    return np.unique(np.concatenate(behind)).astype(np.int64)


def _end_of_last_chunk(first: Numbers, last: Numbers, size: int) -> Numbers:
    """Where the last chunk ends that begins at positions ``first`` to below ``last``; ``last`` where none does."""
    start = last // size * size
    return np.where((start >= first) & (start < last), start + size, last)
