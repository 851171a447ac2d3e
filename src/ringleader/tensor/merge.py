"""Two tensors in one set of codes -> one: cells joined, multiplicities added."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleader.tensor.sparse import SparseTensor

FEW = 1_000
"""New cells up to which each is searched for among the old; more are sorted together with them."""


def merge(old: SparseTensor, new: SparseTensor) -> SparseTensor:
    """The cells of both. ``new`` was encoded with the vocabularies of ``old``, which it may have extended."""
    if new.n_cells <= FEW:
        codes, counts = _inserted(old, new)
        return SparseTensor(codes, counts, new.vocabularies, new.report)
    codes = np.concatenate([old.coordinates, new.coordinates])
    counts = np.concatenate([old.counts, new.counts])
    order = np.lexsort(codes.T[::-1])
    codes, counts = codes[order], counts[order]
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return SparseTensor(codes[starts], np.add.reduceat(counts, starts), new.vocabularies, new.report)


def _inserted(old: SparseTensor, new: SparseTensor) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Coordinates and counts of both, each new cell put where it belongs: a copy of the old in the place of a sort."""
    counts, places, fresh = old.counts.copy(), [], []
    firsts = np.ascontiguousarray(old.coordinates[:, 0])
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
    return (
        np.insert(old.coordinates, places, new.coordinates[fresh], axis=0),
        np.insert(counts, places, new.counts[fresh]),
    )
