"""MultiAspectForensics: spikes in the histograms of CP factors (Maruhashi, Guo, Faloutsos 2011).

The count tensor is decomposed by alternating least squares (CP). Entities that do the same thing get the same factor
value; a group of them shows as a spike in the histogram of a component's log values. Each spike becomes a block: the
group in its own mode, and in every other mode the entities it meets most, as many as make the block most suspicious.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.baselines.blocks import Member, block_scores, most_suspicious, searched_tensor
from ringleader.baselines.crossspot import best_prefix
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed, random_generator
from ringleader.baselines.searched import Searched
from ringleader.settings import Constraint, Number, Whole
from ringleader.tensor.sparse import SparseTensor

NEIGHBOURS = 5
"""Bins on each side that a spike is compared with."""


class MultiAspectForensics(Baseline):
    """Spikes of CP factors.

    Parameters
    ----------
    rank, max_iter, tol : of the CP decomposition; tol on the change of the fit.
    bins_per_decade : of the histograms of log10 factor values.
    least_value : values below this part of a component's largest are left out.
    min_size : fewest entities in a spike. spike : how many times the neighbouring bins' median a spike must reach.
    max_blocks : as many of the most suspicious blocks are reported.

    Attributes
    ----------
    weights_, factors_ : the CP decomposition with unit columns. fits_ : share of the squared norm explained.
    blocks_ : list of DenseBlock, most suspicious first.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "rank": Whole(1),
        "max_iter": Whole(1),
        "tol": Number(above=0),
        "bins_per_decade": Whole(1),
        "least_value": Number(above=0, most=1),
        "min_size": Whole(1),
        "spike": Number(above=0),
        "max_blocks": Whole(1),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        rank: int = 10,
        max_iter: int = 30,
        tol: float = 1e-4,
        bins_per_decade: int = 20,
        least_value: float = 1e-4,
        min_size: int = 5,
        spike: float = 3.0,
        max_blocks: int = 50,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.bins_per_decade = bins_per_decade
        self.least_value = least_value
        self.min_size = min_size
        self.spike = spike
        self.max_blocks = max_blocks
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        self._decompose(tensor, random_generator(self.random_state), callback)
        searched, order = searched_tensor(tensor, None)
        self.blocks_ = most_suspicious(searched, order, self._spikes(searched), self.max_blocks)

    def _spikes(self, searched: Searched) -> Iterator[tuple[float, Member]]:
        """The suspiciousness and the members of the block around each spike."""
        for r in range(self.rank):
            for k, factor in enumerate(self.factors_):
                for group in spikes(factor[:, r], self.bins_per_decade, self.least_value, self.min_size, self.spike):
                    yield block_of_group(searched, k, group)

    def _decompose(self, tensor: SparseTensor, generator: np.random.Generator, callback: Callback) -> None:
        """CP by alternating least squares on the counts."""
        factors = [generator.random((n, self.rank)) for n in tensor.shape]
        weights = np.ones(self.rank)
        norm = float(np.square(tensor.counts.astype(np.float64)).sum())
        self.fits_: list[float] = []
        for iteration in range(self.max_iter):
            for k in range(len(factors)):
                projected = projections(tensor, factors, k)
                gram = np.ones((self.rank, self.rank))
                for m, factor in enumerate(factors):
                    if m != k:
                        gram *= factor.T @ factor
                solved = projected @ np.linalg.pinv(gram)
                weights = np.linalg.norm(solved, axis=0)
                factors[k] = solved / np.where(weights > 0, weights, 1.0)
            last = len(factors) - 1
            full = gram * (factors[last].T @ factors[last])
            explained = 2.0 * float((projected * factors[last] * weights).sum()) - float(weights @ full @ weights)
            self.fits_.append(explained / norm)
            callback(Progress(iteration + 1, self.max_iter, self.fits_[-1]))
            if iteration and abs(self.fits_[-1] - self.fits_[-2]) < self.tol:
                break
        self.weights_: Floats = weights
        self.factors_ = tuple(factors)

    def _scores(self, k: int) -> Floats:
        return block_scores(self.blocks_, k, self.shape_[k])


def projections(tensor: SparseTensor, factors: list[Floats], k: int) -> Floats:
    """The tensor unfolded along mode k times the other modes' factors, (n_k, R); one component at a time."""
    result = np.empty((tensor.shape[k], factors[k].shape[1]))
    for r in range(result.shape[1]):
        weights = tensor.counts.astype(np.float64)
        for m, factor in enumerate(factors):
            if m != k:
                weights *= np.ascontiguousarray(factor[:, r])[tensor.coordinates[:, m]]
        result[:, r] = np.bincount(tensor.coordinates[:, k], weights=weights, minlength=tensor.shape[k])
    return result


def spikes(values: Floats, bins_per_decade: int, least_value: float, min_size: int, factor: float) -> list[Numbers]:
    """Groups of entities whose factor values pile up: runs of bins far above the bins around them."""
    sizes = np.abs(values)
    if sizes.max() <= 0.0:
        return []
    large = np.flatnonzero(sizes >= least_value * sizes.max())
    # Rounding keeps values that differ by noise only in one bin at the edges.
    bins = np.floor(np.round(np.log10(sizes[large] / sizes.max()) * bins_per_decade, 9)).astype(np.int64)
    bins -= bins.min()
    histogram = np.bincount(bins)
    padded = np.pad(histogram, NEIGHBOURS)
    high = np.zeros(len(histogram), np.bool_)
    for b, count in enumerate(histogram):
        around = np.delete(padded[b : b + 2 * NEIGHBOURS + 1], NEIGHBOURS)
        high[b] = count >= min_size and count >= factor * (np.median(around) + 1.0)
    runs = np.cumsum(np.diff(high, prepend=False) & high)  # the number of the run a high bin belongs to
    return [large[high[bins] & (runs[bins] == run)] for run in range(1, int(runs.max(initial=0)) + 1)]


def block_of_group(searched: Searched, k: int, group: Numbers) -> tuple[float, Member]:
    """The block around a group of mode k: in each other mode, in turn, the prefix that is most suspicious."""
    modes = searched.coordinates.shape[1]
    member = np.ones(searched.starts[-1], np.uint8)
    member[searched.starts[k] : searched.starts[k + 1]] = 0
    member[searched.starts[k] + group] = 1
    value = 0.0
    for m in range(modes):
        if m != k:
            chosen, value = best_prefix(searched, member, m)
            member[searched.starts[m] : searched.starts[m + 1]] = 0
            member[searched.starts[m] + chosen] = 1
    return value, member
