"""Entries of cells written out in NumPy: codes, y, weights and design rows. For small data, and for the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.kernels.layout import View


def products(view: View, codes: npt.NDArray[Any], leave: int = -1) -> Floats:
    """lambda * prod over the modes other than ``leave`` of the factor rows, one row per tuple."""
    rows = np.tile(np.asarray(view.component_weights, np.float64), (len(codes), 1))
    for k, start in enumerate(view.starts):
        if k != leave:
            rows *= view.factors[start + codes[:, k]]
    return rows


def entries_of(view: View, cells: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Floats, Floats]:
    """The entries of cells: codes (n, K), y and weight. Each cell is followed by its negatives."""
    modes, width = len(view.starts), view.tuples.shape[1]
    negatives = width - modes
    codes = np.repeat(view.tuples[cells, :modes].astype(np.int64), negatives + 1, axis=0)
    codes[:, view.contrast].reshape(-1, negatives + 1)[:, 1:] = view.tuples[cells, modes:]
    weight = np.repeat(weights_of(view, cells), negatives + 1).reshape(-1, negatives + 1)
    weight[:, 1:] /= max(negatives, 1)
    label = np.zeros_like(weight)
    label[:, 0] = 1
    return codes, label.ravel(), weight.ravel()


def weights_of(view: View, cells: npt.NDArray[Any]) -> Floats:
    return np.full(len(cells), view.weights[0]) if len(view.weights) == 1 else view.weights[cells]
