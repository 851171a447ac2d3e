"""Dealing: the cells that a worker needs, copied out of a problem.

Chunks of sums that begin in a worker's range are added up there, so it also gets the few cells behind its range that
complete the last of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.layout import CHUNK, LIKELIHOOD_PIECE
from ringleader.model.problem import Problem
from ringleader.runtime.mapped import pieces
from ringleader.shares.ranges import Ranges
from ringleader.tensor.sparse import SparseTensor, group_codes

RANGE = -1
"""The key of the cells of a worker's range of cells; those of its entities of a mode have the mode as key."""


class Deal(NamedTuple):
    """Some cells in ascending order of their numbers."""

    numbers: Numbers  # (n,): their places among all cells
    own: int  # so many of them, the first ones, lie in the worker's range; the others complete chunks
    codes: Codes  # (n, K)
    weights: Floats  # training weight: (n,), or (1,) where all cells of the fit weigh the same; then (0,) of a piece
    heldout: Floats  # (n,) or (0,)


class ChunkPlaces(NamedTuple):
    """Where the cells of a range stand in the lists of the entities of one mode that is not dealt out."""

    first: Numbers  # (n_k,): cells of the entity before the range
    last: Numbers  # (n_k,): the same before the next range
    length: Numbers  # (n_k,): cells of the entity in all


def deal_keys(ranges: Ranges) -> list[int]:
    """The keys of the deals of a worker: its range, and each dealt mode but the first, whose cells are the range."""
    return [RANGE, *(k for k, dealt in enumerate(ranges.dealt) if dealt and k > 0)]


def deal_cells(
    problem: Problem, ranges: Ranges, key: int, chunks: Sequence[dict[int, ChunkPlaces]]
) -> Iterator[list[Deal]]:
    """The cells of one key for every worker, a piece of the tensor at a time; ``joined_deals`` puts them together.

    chunks : ``chunk_places``
    """
    codes = problem.tensor.coordinates
    behind = [_behind(problem, ranges, rank, own) for rank, own in enumerate(chunks)] if key == RANGE else []
    for piece in pieces(codes):
        deals = []
        for rank in range(ranges.workers):
            first, last = (ranges.cells[rank], ranges.cells[rank + 1]) if key == RANGE else ranges.own(key, rank)
            if key == RANGE:
                numbers = np.arange(max(first, piece.start), max(first, piece.start, min(last, piece.stop)))
                own = len(numbers)
                some = slice(*np.searchsorted(behind[rank], [piece.start, piece.stop]))
                numbers = np.concatenate([numbers, behind[rank][some]])
            else:
                column = codes[piece, key]
                numbers = piece.start + np.flatnonzero((column >= first) & (column < last))
                own = len(numbers)
            weights = problem.weights[numbers] if problem.weighted else problem.weights[:0]
            heldout = problem.heldout[numbers] if len(problem.heldout) else problem.heldout
            deals.append(Deal(numbers, own, codes[numbers], weights, heldout))
        yield deals


def joined_deals(deals: Sequence[Deal], weights: Floats | None) -> Deal:
    """The cells of a worker from those of the pieces, in order. weights : (1,) where all cells weigh alike"""
    numbers, codes, own_weights, heldout = (
        np.concatenate([getattr(deal, name) for deal in deals]) for name in ("numbers", "codes", "weights", "heldout")
    )
    own = sum(deal.own for deal in deals)
    return Deal(numbers, own, codes, own_weights if weights is None else weights, heldout)


def chunk_places(problem: Problem, ranges: Ranges) -> list[dict[int, ChunkPlaces]]:
    """For each worker, of each mode that is not dealt out."""
    places: list[dict[int, ChunkPlaces]] = [{} for _ in range(ranges.workers)]
    for mode in (mode for mode, dealt in enumerate(ranges.dealt) if not dealt):
        until = [np.zeros(ranges.shape[mode], np.int64)]
        for first, last in itertools.pairwise(ranges.cells.tolist()):
            until.append(until[-1] + problem.tensor.cells_of_each(mode, first, last))
        for rank, (before, behind) in enumerate(itertools.pairwise(until)):
            places[rank][mode] = ChunkPlaces(before, behind, until[-1])
    return places


def _behind(problem: Problem, ranges: Ranges, rank: int, chunks: dict[int, ChunkPlaces]) -> Numbers:
    """Cells behind a range that belong to chunks which begin in it, ascending."""
    first, last = ranges.cells[rank : rank + 1], ranges.cells[rank + 1 : rank + 2]
    ends = [int(_end_of_last_chunk(first, last, size)[0]) for size in (CHUNK, LIKELIHOOD_PIECE)]
    behind: list[npt.NDArray[Any]] = [np.arange(int(last[0]), min(max(ends), ranges.n_cells))]
    for mode, places in chunks.items():
        # The cells of an entity behind the range come right behind those in it and before it.
        count = np.minimum(_end_of_last_chunk(places.first, places.last, CHUNK), places.length) - places.last
        behind += _first_cells(problem.tensor, mode, int(last[0]), count)
    return np.unique(np.concatenate(behind)).astype(np.int64)


def _first_cells(tensor: SparseTensor, mode: int, start: int, count: Numbers) -> list[Numbers]:
    """From cell ``start`` on the first ``count[e]`` cells of each entity e of a mode; all of them are there."""
    codes, left, some = tensor.coordinates[start:], count.copy(), []
    for piece in pieces(codes):
        if not left.any():
            break
        offsets, cells = group_codes(np.ascontiguousarray(codes[piece, mode]), len(left))
        here = np.minimum(np.diff(offsets), left)
        some += [start + piece.start + cells[offsets[e] : offsets[e] + here[e]] for e in np.flatnonzero(here)]
        left -= here
    return some


def _end_of_last_chunk(first: Numbers, last: Numbers, size: int) -> Numbers:
    """Where the last chunk ends that begins at positions ``first`` to below ``last``; ``last`` where none does."""
    start = last // size * size
    return np.where((start >= first) & (start < last), start + size, last)
