"""Two tensors in one set of codes -> one: cells joined, multiplicities added."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleader.tensor.sparse import SparseTensor, exact_values, sort_within_cells

FEW = 1_000
"""New cells up to which each is searched for among the old; more are sorted together with them."""


def merge(old: SparseTensor, new: SparseTensor) -> SparseTensor:
    """The cells of both. ``new`` was encoded with the vocabularies of ``old``, which it may have extended."""
    held = old.exact is not None or new.exact is not None
    if new.n_cells <= FEW:
        return _inserted(old, new, held)
    codes = np.concatenate([old.coordinates, new.coordinates])
    counts = np.concatenate([old.counts, new.counts])
    order = np.lexsort(codes.T[::-1])
    exact = np.concatenate([exact_values(old), exact_values(new)])[rows_of(order, counts)] if held else None
    codes, counts = codes[order], counts[order]
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    counts = np.add.reduceat(counts, starts)
    if exact is not None:
        sort_within_cells(exact, counts)
    return SparseTensor(codes[starts], counts, new.vocabularies, new.report, exact)


def rows_of(cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows of some cells, one cell after the other; counts : rows of every cell.

    Same as: np.concatenate([np.arange(begins[c], begins[c] + counts[c]) for c in cells])
    """
    begins, lengths = np.cumsum(counts) - counts, counts[cells]
    return np.repeat(begins[cells] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def _inserted(old: SparseTensor, new: SparseTensor, held: bool) -> SparseTensor:
    """Each new cell put where it belongs: a copy of the old in the place of a sort. held : whether exact values are."""
    counts, places, fresh, rows = old.counts.copy(), [], [], []
    firsts = np.ascontiguousarray(old.coordinates[:, 0])
    if held:
        begins, known = np.concatenate([[0], np.cumsum(counts)]), exact_values(old)
        new_values = np.split(exact_values(new), np.cumsum(new.counts)[:-1])
    for i, cell in enumerate(new.coordinates):
        low, high = (int(np.searchsorted(firsts, cell[0], side)) for side in ("left", "right"))
        for k, code in enumerate(cell[1:], 1):
            column = old.coordinates[low:high, k]
            low, high = (low + int(np.searchsorted(column, code, side)) for side in ("left", "right"))
        if low < high:
            counts[low] += new.counts[i]
        else:
            places.append(low)
            fresh.append(i)
        if held:
            start, stop = begins[low], begins[high]
            rows.append(start + np.searchsorted(known[start:stop], new_values[i]))
    exact = np.insert(known, np.concatenate(rows), np.concatenate(new_values)) if rows else old.exact
    return SparseTensor(
        np.insert(old.coordinates, places, new.coordinates[fresh], axis=0),
        np.insert(counts, places, new.counts[fresh]),
        new.vocabularies,
        new.report,
        exact,
    )
