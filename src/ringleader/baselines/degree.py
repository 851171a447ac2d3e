"""Degree: the number of reviews. The measure of how far mere popularity goes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ringleader.arrays import Floats
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed
from ringleader.settings import Choice, Constraint
from ringleader.tensor.sparse import SparseTensor


class Degree(Baseline):
    """Scores an entity by how much it reviews or is reviewed.

    Parameters
    ----------
    weight : "reviews" counts repeated reviews each time, "cells" once.
    random_state : ignored, as the method draws nothing; every baseline has one.
    """

    constraints: ClassVar[dict[str, Constraint]] = {"weight": Choice("reviews", "cells"), "random_state": Seed()}

    def __init__(self, *, weight: str = "reviews", random_state: int | None = None) -> None:
        self.weight = weight
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        weights = tensor.counts.astype(np.float64) if self.weight == "reviews" else np.ones(tensor.n_cells)
        self.degrees_: tuple[Floats, ...] = tuple(
            np.bincount(tensor.coordinates[:, k], weights=weights, minlength=n).astype(np.float64)
            for k, n in enumerate(tensor.shape)
        )
        callback(Progress(1, 1, float("nan")))

    def _scores(self, k: int) -> Floats:
        return self.degrees_[k]
