"""Crowd: how far the counts around a review exceed what their margins expect, where counts are the signal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.elementary import log
from ringleader.tensor.sparse import SparseTensor

MANY_MODES, FEW_AT_ONCE = 8, 3
"""Where there are more modes than so many, only subsets of so few of them are counted: there are too many of all."""


def review_crowd(tensor: SparseTensor) -> Floats:
    """How crowded the places of each cell are, (n_cells,): mean over the subsets of modes of the root of its surprise.

    A place is where some modes are as in the cell. The margins expect e = N prod(n_k / N) others there, with N in all
    and n_k of each of the entities; of one entity as many as of any other of its mode. The cell itself is there, so
    with c at the place where 1 + e are to be expected its surprise is c log(c / (1 + e)) - (c - 1 - e), 0 where c is
    less: what is there alone is no surprise, however rare. Its root grows as a number of standard deviations does.
    Each subset is taken in units of its own mean over the tensor, so that all count the same and none is chosen. For
    tensors such as connections, views or logins; popularity is not taken out. A rating is an opinion and no place.
    """
    modes = [k for k, v in enumerate(tensor.vocabularies) if v.kind in ("id", "category", "time")]
    total, places, whole = np.zeros(tensor.n_cells), 0, float(tensor.counts.sum())
    if not tensor.n_cells:
        return total
    margins = [np.bincount(tensor.coordinates[:, k], weights=tensor.counts) / whole for k in range(len(tensor.shape))]
    most = FEW_AT_ONCE if len(modes) > MANY_MODES else len(modes)
    for chosen, place in _places(tensor, modes, most, (), np.zeros(tensor.n_cells, np.int64)):
        count = np.bincount(place, weights=tensor.counts)[place]
        if len(chosen) == 1:
            expected = np.full(tensor.n_cells, whole / max(int((margins[chosen[0]] > 0).sum()), 1))
        else:
            expected = np.full(tensor.n_cells, whole)
            for k in chosen:
                expected *= margins[k][tensor.coordinates[:, k]]
        expected += 1.0
        surprise = np.where(count > expected, count * log(count / expected) - (count - expected), 0.0)
        root = np.sqrt(np.maximum(surprise, 0.0))
        mean = float((root * tensor.counts).sum()) / whole
        total += root / mean if mean > 0 else 0.0
        places += 1
    return total / max(places, 1)


def _places(
    tensor: SparseTensor, modes: list[int], most: int, chosen: tuple[int, ...], place: Numbers
) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """Every subset that adds ``most`` of ``modes`` or fewer to ``chosen``, and each cell's place there, (n_cells,)."""
    for at, k in enumerate(modes if most else ()):
        # Numbered anew for each mode: products of many sizes would not fit into 64 bits.
        inner = np.unique(place * tensor.shape[k] + tensor.coordinates[:, k], return_inverse=True)[1].reshape(-1)
        yield (*chosen, k), inner
        yield from _places(tensor, modes[at + 1 :], most - 1, (*chosen, k), inner)
