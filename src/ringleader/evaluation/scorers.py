"""Methods as functions from a tensor to scores, of accounts or of cells: what the real data are measured with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.baselines.registry import baseline
from ringleader.errors import SettingsError
from ringleader.signals.crowd import review_crowd
from ringleader.tensor.sparse import SparseTensor

Scorer = Callable[[SparseTensor, Mapping[str, Floats], str, int], npt.ArrayLike]
"""(tensor, labels, mode, seed) -> scores of the entities of the mode, (n_k,). Labels are NaN where unknown."""
CellScorer = Callable[[SparseTensor, int], npt.ArrayLike]
"""(tensor, seed) -> scores of the cells, (n_cells,)."""


def registered_scorer(name: str, **settings: Any) -> Scorer:
    """A method of the registry as a scorer of accounts."""

    def score(tensor: SparseTensor, labels: Mapping[str, Floats], mode: str, seed: int) -> Floats:
        return baseline(name, **{**settings, "random_state": seed}).fit(tensor, labels).scores(mode)

    return score


def registered_cell_scorer(name: str, **settings: Any) -> CellScorer:
    """A method of the registry as a scorer of cells.

    A block finder scores a cell by its densest block that holds it, a factorisation by the rate it expects there.
    """

    def score(tensor: SparseTensor, seed: int) -> Floats:
        model = baseline(name, **{**settings, "random_state": seed}).fit(tensor)
        scores = np.zeros(tensor.n_cells)
        if hasattr(model, "blocks_"):
            for block in model.blocks_:
                inside = np.ones(tensor.n_cells, np.bool_)
                for k, members in enumerate(block.members):
                    inside &= np.isin(tensor.coordinates[:, k], members)
                scores[inside] = np.maximum(scores[inside], block.density)
            return scores
        if hasattr(model, "factors_"):
            rate = np.broadcast_to(getattr(model, "weights_", 1.0), (model.factors_[0].shape[1],)).copy()
            product = rate * model.factors_[0][tensor.coordinates[:, 0]]
            for k, factor in enumerate(model.factors_[1:], 1):
                product *= factor[tensor.coordinates[:, k]]
            return np.asarray(product.sum(axis=1))
        raise SettingsError(f"{name} has neither blocks nor factors, so it does not score connections")

    return score


def multiplicity(*modes: str) -> CellScorer:
    """The simplest score of a cell: how many connections agree with it in these modes."""

    def score(tensor: SparseTensor, seed: int) -> Floats:
        chosen = [tensor.mode_index(mode) for mode in modes]
        number = np.zeros(tensor.n_cells, np.int64)
        for k in chosen:
            number = number * tensor.shape[k] + tensor.coordinates[:, k]
        _, where = np.unique(number, return_inverse=True)
        return np.bincount(where.reshape(-1), weights=tensor.counts)[where.reshape(-1)].astype(np.float64)

    return score


def crowd(tensor: SparseTensor, seed: int) -> Floats:
    """The detector's score of a connection where counts carry the signal."""
    return review_crowd(tensor)
