"""Degree: the number of reviews. The measure of how far mere popularity goes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleader.baselines.method import Baseline, Callback, Labels, Progress, check_choice
from ringleader.tensor.sparse import SparseTensor


class Degree(Baseline):
    """Scores an entity by how much it reviews or is reviewed.

    Parameters
    ----------
    weight : "reviews" counts repeated reviews each time, "cells" once.
    random_state : for the common face; the method uses no chance.
    """

    def __init__(self, *, weight: str = "reviews", random_state: int | None = None) -> None:
        self.weight = weight
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: Labels, callback: Callback) -> None:
        check_choice("weight", self.weight, ("reviews", "cells"))
        weights = tensor.counts.astype(np.float64) if self.weight == "reviews" else np.ones(tensor.n_cells)
        self.degrees_: tuple[npt.NDArray[np.float64], ...] = tuple(
            np.bincount(tensor.coordinates[:, k], weights=weights, minlength=n).astype(np.float64)
            for k, n in enumerate(tensor.shape)
        )
        callback(Progress(1, 1, float("nan")))

    def _scores(self, k: int) -> npt.NDArray[np.float64]:
        return self.degrees_[k]
