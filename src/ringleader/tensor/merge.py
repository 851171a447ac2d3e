"""Two tensors in one set of codes -> one: cells joined, multiplicities added."""

from __future__ import annotations

import numpy as np

from ringleader.tensor.sparse import SparseTensor


def merge(old: SparseTensor, new: SparseTensor) -> SparseTensor:
    """The cells of both. ``new`` was encoded with the vocabularies of ``old``, which it may have extended."""
    codes = np.concatenate([old.coordinates, new.coordinates])
    counts = np.concatenate([old.counts, new.counts])
    order = np.lexsort(codes.T[::-1])
    codes, counts = codes[order], counts[order]
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return SparseTensor(codes[starts], np.add.reduceat(counts, starts), new.vocabularies, new.report)
