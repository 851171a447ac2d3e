"""Crowd: how busy the places of a review are, for tensors whose counts carry the signal."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ringleader.arrays import Floats
from ringleader.tensor.sparse import SparseTensor


def review_crowd(tensor: SparseTensor, actor: int) -> Floats:
    """How crowded the places of each cell are, (n_cells,): mean of log counts over its item, its time, and both.

    For tensors whose counts carry the signal, such as floods of connections: popularity is not taken out.
    """
    modes = [k for k, v in enumerate(tensor.vocabularies) if k != actor and v.kind in ("id", "category", "time")]
    total, places = np.zeros(tensor.n_cells), 0
    for size in range(1, len(modes) + 1):
        for chosen in combinations(modes, size):
            place = np.zeros(tensor.n_cells, np.int64)
            for k in chosen:
                # Numbered anew for each mode: products of many sizes would not fit into 64 bits.
                place = np.unique(place * tensor.shape[k] + tensor.coordinates[:, k], return_inverse=True)[1].reshape(
                    -1
                )
            total += np.log(np.bincount(place, weights=tensor.counts)[place])
            places += 1
    return total / max(places, 1)
