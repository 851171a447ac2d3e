"""What the Poisson factorisations (BPTF, BNBCP) share: layout of the tensor, start, loop over iterations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from ringleader.arrays import Floats
from ringleader.baselines.method import Callback, Progress
from ringleader.baselines.poisson_kernels import Cells
from ringleader.errors import NumericalError
from ringleader.tensor.sparse import SparseTensor

START_SHAPE = 3.0
"""Shape of the gamma noise in the start values: large is even, small is wild."""


def stacked(tensor: SparseTensor) -> Cells:
    """The tensor as the kernels want it: the entities of all modes numbered in one sequence."""
    starts = np.concatenate([[0], np.cumsum(tensor.shape)]).astype(np.int64)
    return Cells(tensor.coordinates, tensor.counts, starts)


def log_factorials(tensor: SparseTensor) -> float:
    """sum of log y! over the cells, the constant of a Poisson likelihood."""
    return float(gammaln(tensor.counts + 1.0).sum())


def random_shares(tensor: SparseTensor, k: int, rank: int, generator: np.random.Generator) -> Floats:
    """The reviews of every entity of mode k shared out among the components at random, (n_k, R)."""
    size = tensor.shape[k]
    mass = np.bincount(tensor.coordinates[:, k], weights=tensor.counts, minlength=size)
    noise = generator.gamma(START_SHAPE, size=(size, rank))
    return np.asarray(mass[:, None] * noise / noise.sum(axis=1, keepdims=True))


def ascend(
    step: Callable[[], float], bounds: list[float], *, iterations: int, tol: float, callback: Callback, method: str
) -> None:
    """Iterate until the bound rises by less than ``tol`` of itself, at most ``iterations`` times.

    step : does one iteration and returns the bound. bounds : takes the bound of every iteration.
    """
    for iteration in range(1, iterations + 1):
        bound = step()
        if not math.isfinite(bound):
            raise NumericalError(f"{method} is no longer finite in iteration {iteration}; lower the rank")
        bounds.append(bound)
        callback(Progress(iteration, iterations, bound))
        if iteration > 1 and bound - bounds[-2] < tol * abs(bounds[-2]):
            break
