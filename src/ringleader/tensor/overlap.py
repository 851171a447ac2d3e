"""Overlap: which reviews of one tensor another one has, both in one set of codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools
from ringleader.tensor.merge import rows_of
from ringleader.tensor.sparse import UNKNOWN, SparseTensor, exact_values

Indices = npt.NDArray[np.int64]


class Overlap(NamedTuple):
    """Which of the new reviews the old tensor has.

    known   : bool (n_reviews,) of the new tensor, cell after cell
    by_cell : how many of those are known by their cell alone, since an exact time is held of one of the two at most
    alike   : how many others differ from an old review that no known one stands for in nothing but their exact time
    """

    known: Bools
    by_cell: int
    alike: int


def overlap(old: SparseTensor, new: SparseTensor) -> Overlap:
    """A review is known where the old tensor has one in its cell with the same exact value, as many as there are.

    Where an exact value is not held, it may be any: such a review stands for one that no equal one stands for.
    """
    known = np.zeros(new.n_reviews, np.bool_)
    old_cells, new_cells = _in_both(old, new)
    theirs, ours = rows_of(old_cells, old.counts), rows_of(new_cells, new.counts)
    numbers = np.arange(len(old_cells))
    old_cell = np.repeat(numbers, old.counts[old_cells])
    new_cell = np.repeat(numbers, new.counts[new_cells])
    old_exact, new_exact = exact_values(old)[theirs], exact_values(new)[ours]
    old_timed, new_timed = old_exact != UNKNOWN, new_exact != UNKNOWN
    equal = np.zeros(len(ours), np.bool_)
    equal[new_timed] = _equal(old_cell[old_timed], old_exact[old_timed], new_cell[new_timed], new_exact[new_timed])
    # Of each cell: reviews whose time is held and has no equal on the other side, and those whose time is not held.
    size = len(numbers)
    matched = np.bincount(new_cell[equal], minlength=size)
    old_left = np.bincount(old_cell[old_timed], minlength=size) - matched
    new_left = np.bincount(new_cell[new_timed], minlength=size) - matched
    old_untimed = np.bincount(old_cell[~old_timed], minlength=size)
    new_untimed = np.bincount(new_cell[~new_timed], minlength=size)
    untimed = np.minimum(new_untimed, old_left + old_untimed)
    left = np.minimum(new_left, old_untimed - np.maximum(untimed - old_left, 0))
    by_cell = np.zeros(len(ours), np.bool_)
    for which, most in ((~new_timed, untimed), (new_timed & ~equal, left)):
        by_cell[which] = _numbers_within(new_cell[which]) < most[new_cell[which]]
    known[ours] = equal | by_cell
    known_there = np.bincount(new_cell[equal | by_cell], minlength=size)
    alike = np.minimum(old.counts[old_cells], new.counts[new_cells]) - known_there
    return Overlap(known, int(by_cell.sum()) if new.binned_modes else 0, int(alike.sum()))


def duplicates(tensor: SparseTensor) -> int:
    """How many reviews are exact copies of others of the tensor; what is in one bin is none without its exact value."""
    if tensor.exact is None:
        return 0 if tensor.binned_modes else tensor.n_reviews - tensor.n_cells
    cell = np.repeat(np.arange(tensor.n_cells), tensor.counts)
    timed = tensor.exact != UNKNOWN
    return int(np.count_nonzero(_copies(cell[timed], tensor.exact[timed])))


def without(tensor: SparseTensor, rows: Bools) -> SparseTensor:
    """The tensor without some of its reviews. rows : (n_reviews,), cell after cell."""
    cell = np.repeat(np.arange(tensor.n_cells), tensor.counts)
    counts = np.bincount(cell[~rows], minlength=tensor.n_cells)
    there = counts > 0
    exact = None if tensor.exact is None else tensor.exact[~rows]
    return SparseTensor(tensor.coordinates[there], counts[there], tensor.vocabularies, tensor.report, exact)


def _in_both(old: SparseTensor, new: SparseTensor) -> tuple[Indices, Indices]:
    """The cells that both have, numbered in the old one and in the new one, in the order of their codes."""
    near, there = np.ones(old.n_cells, np.bool_), np.ones(new.n_cells, np.bool_)
    for k in range(len(old.shape)):
        size = max(old.shape[k], new.shape[k])
        near &= _among(new.coordinates[:, k], size)[old.coordinates[:, k]]
        there &= _among(old.coordinates[:, k], size)[new.coordinates[:, k]]
    numbers = np.concatenate([np.flatnonzero(near), np.flatnonzero(there)])
    cells = np.concatenate([old.coordinates[near], new.coordinates[there]])
    order = np.lexsort(cells.T[::-1])  # stable: of two alike the old one is the first
    cells, numbers = cells[order], numbers[order]
    both = np.flatnonzero((cells[1:] == cells[:-1]).all(axis=1))  # each tensor has a cell once
    return numbers[both], numbers[both + 1]


def _equal(old_cell: Indices, old_exact: Indices, new_cell: Indices, new_exact: Indices) -> Bools:
    """Whether each new review has an old one of its own with the same cell and value. Both are sorted by these."""
    cell, exact = np.concatenate([old_cell, new_cell]), np.concatenate([old_exact, new_exact])
    copy = np.concatenate([_copies(old_cell, old_exact), _copies(new_cell, new_exact)])
    order = np.lexsort((copy, exact, cell))
    alike = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in (cell, exact, copy):
        alike &= column[order[1:]] == column[order[:-1]]
    has_own = np.zeros(len(order), np.bool_)
    has_own[order[1:][alike]] = True
    return has_own[len(old_cell) :]


def _copies(cell: Indices, exact: Indices) -> Indices:
    """How many equal reviews are before each one. Both are sorted."""
    begins = np.ones(len(cell), np.bool_)
    begins[1:] = (cell[1:] != cell[:-1]) | (exact[1:] != exact[:-1])
    return _since(begins)


def _numbers_within(cell: Indices) -> Indices:
    """Which one of its cell each is, from 0. Sorted by cell."""
    begins = np.ones(len(cell), np.bool_)
    begins[1:] = cell[1:] != cell[:-1]
    return _since(begins)


def _since(begins: Bools) -> Indices:
    """How far each is from the last that begins."""
    places = np.arange(len(begins))
    return places - np.maximum.accumulate(np.where(begins, places, 0))


def _among(codes: Any, size: int) -> Bools:
    """Whether each of ``size`` codes occurs, (size,)."""
    there = np.zeros(size, np.bool_)
    there[codes] = True
    return there
