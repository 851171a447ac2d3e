"""Arrays that travel together through the kernels, and how the work of one mode is cut into pieces."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Floats, Numbers

CHUNK = 1024
"""Positions of one entity that are summed as a piece. Fixed: changing it changes the last bits."""

LIKELIHOOD_PIECE = 4096
"""Cells whose log-likelihoods are summed as a piece. Fixed: changing it changes the last bits of likelihoods."""

TASKS = 64
"""Pieces of about equal cost that the entities of a mode are dealt into."""

SOLVE_COST = 40
"""What solving one block costs, in positions; only the balance of the pieces depends on it."""

Grouped = tuple[Numbers, Codes]
"""The cells of each entity of a mode: those of entity n are ``cells[offsets[n]:offsets[n + 1]]``."""

DEVICE_RANK, DEVICE_MODES = 64, 16
"""The largest rank, and the most modes, that kernels of a GPU take."""

DUAL_FROM = 4_000
"""Entities of a mode above which blocks of few entries are solved through their entries, where the backend can. Below
it the sums of an entity may be all that there is of it in one place (``shares/ranges.py``), and the bits must not
depend on that."""

EM, FISHER = 0, 1
NEWTON, GRADIENT, STATISTICS = 0, 1, 2


class OwnedDraws(NamedTuple):
    """Draws of entities of one range, in ascending order of cells and draws."""

    cells: Codes  # (n,): those that drew some of them
    times: npt.NDArray[np.uint8]  # (n,): how many draws of a cell they are
    entities: Codes  # (sum of times,)


class View(NamedTuple):
    """What the kernels read: the data of one sweep and the factors."""

    tuples: Codes  # (n_cells, K + m): the codes of a cell, then the entities drawn for its negatives
    weights: Floats  # (n_cells,), where 0 leaves a cell and its negatives out; or (1,): all the same
    contrast: int  # the mode that negatives replace
    factors: Factors  # (sum of n_k, R): the rows of all modes, one mode below the other
    starts: Numbers  # (K,): first row of each mode
    rows: int  # sum of n_k: entities that the codes may name
    component_weights: Floats  # lambda, (R,)


class Blocks(NamedTuple):
    """The blocks of one mode that are to be updated, with the cells of each.

    Position p of block e is cell ``cells[begins[e] + p]``. In the contrast mode the negatives in
    which the entity was drawn follow: cell ``drawn_cells[drawn_begins[e] + p - (ends[e] - begins[e])]``.
    """

    mode: int
    entities: Codes  # (E,)
    begins: Numbers  # (E,)
    ends: Numbers  # (E,)
    cells: Codes
    drawn_begins: Numbers  # (E,), all 0 outside the contrast mode
    drawn_ends: Numbers  # (E,)
    drawn_cells: Codes
    scale: Floats  # (E,): multiplies the sums over entries (1: the block has seen all of them)
    rate: Floats  # (E,): multiplies the step; 0 divides a gradient's step by the trace of the curvature
    chunks: Numbers  # (n_chunks, 3): block, first and last position + 1, for blocks longer than CHUNK
    first_chunk: Numbers  # (E + 1,)
    tasks: Numbers  # (n_tasks + 1,): block ranges of about equal cost
    dual: bool = False  # whether blocks of few entries may be solved through their entries (``numba/dual.py``)


class Rule(NamedTuple):
    """How a block moves."""

    action: int  # NEWTON, GRADIENT or STATISTICS
    curvature: int  # EM (E[omega]) or FISHER (N)
    step: float  # gamma
    half: float  # 1, or 0.5 for the printed gradient (model.md section 4.1)
    nonnegative: bool
    variance: float  # prior variance, where it is fixed
    scale: float  # b of the inverse gamma; learned where shape > 0
    shape: float  # a_c, or 0 for a fixed variance
    floor: float  # least prior variance
    decay: float  # share of the new statistics in the carried ones


class Terms(NamedTuple):
    """Label terms of one mode: entity n has terms ``offsets[n]:offsets[n + 1]``; no labels: one offset."""

    offsets: Numbers  # (n_k + 1,) or (1,)
    target: Codes  # (n_terms,)
    value: Floats  # (n_terms,): +1 or -1, or any number for a real target
    beta: Floats  # (T, R + 1): bias first
    noise: Floats  # (T,): noise variance of a real target, 0 for a binary one


class Statistics(NamedTuple):
    """Carried statistics of online EM, one row per entity of the mode (no rows where not in use)."""

    second: Factors  # S1, (n_k, R (R + 1) / 2): upper triangles, row by row
    first: Floats  # S2, (n_k, R)


def no_terms(rank: int) -> Terms:
    """A mode without labels."""
    return Terms(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros((0, rank + 1)), np.zeros(0))


def no_statistics(rank: int, dtype: Any = np.float64) -> Statistics:
    return Statistics(np.zeros((0, rank * (rank + 1) // 2), dtype), np.zeros((0, rank)))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view: one layout and one compiled kernel whatever the caller's flags."""
    flags = array.flags
    if not flags.writeable and flags.c_contiguous and type(array) is np.ndarray:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def plan_blocks(
    mode: int,
    entities: npt.NDArray[Any],
    own: tuple[Numbers, Numbers, Codes],
    drawn: tuple[Numbers, Numbers, Codes] | None = None,
    *,
    scale: Floats | None = None,
    rate: Floats | None = None,
    dual: bool = False,
) -> Blocks:
    """Blocks from lists (begins, ends, cells); ``drawn`` lists the negatives in the contrast mode.

    Cuts depend on the lengths of the lists alone, never on the number of threads.
    """
    count = len(entities)
    begins, ends, cells = own
    none = np.zeros(count, np.int64)
    drawn_begins, drawn_ends, drawn_cells = (none, none, np.zeros(0, np.int32)) if drawn is None else drawn
    length = (ends - begins) + (drawn_ends - drawn_begins)
    chunks, first_chunk = cut_long_lists(length)
    cost = np.cumsum(np.where(length > CHUNK, length // CHUNK, length) + SOLVE_COST)
    cuts = np.zeros(0, np.int64)
    if count:
        pieces = min(TASKS, count)
        cuts = np.searchsorted(cost, cost[-1] * np.arange(1, pieces) / pieces, side="right")
    edges = np.concatenate([[0], cuts, [count]])
    tasks = edges[np.append(True, edges[1:] > edges[:-1])].astype(np.int64)
    ones = np.ones(count)
    return Blocks(
        int(mode),
        read_only(np.asarray(entities, np.int32)),
        read_only(np.asarray(begins, np.int64)),
        read_only(np.asarray(ends, np.int64)),
        read_only(cells),
        read_only(np.asarray(drawn_begins, np.int64)),
        read_only(np.asarray(drawn_ends, np.int64)),
        read_only(drawn_cells),
        read_only(ones if scale is None else scale),
        read_only(ones if rate is None else rate),
        read_only(chunks),
        read_only(first_chunk),
        read_only(tasks),
        dual,
    )


def cut_long_lists(length: Numbers) -> tuple[Numbers, Numbers]:
    """Pieces of the long blocks, and the number of the first piece of each block."""
    if len(length) == 0 or length.max() <= CHUNK:
        return np.zeros((0, 3), np.int64), np.zeros(len(length) + 1, np.int64)
    pieces = np.where(length > CHUNK, -(-length // CHUNK), 0)
    first = np.zeros(len(length) + 1, np.int64)
    np.cumsum(pieces, out=first[1:])
    owner = np.repeat(np.arange(len(length)), pieces)
    start = (np.arange(first[-1]) - first[owner]) * CHUNK
    stop = np.minimum(start + CHUNK, length[owner])
    return np.ascontiguousarray(np.stack([owner, start, stop], axis=1), np.int64), first
