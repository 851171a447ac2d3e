"""BPTF: Bayesian Poisson tensor factorisation (Schein, Paisley, Blei, Wallach 2015).

count of cell i ~ Poisson(sum_r prod_k theta^k[i_k, r]),  theta^k[n, r] ~ Gamma(alpha, rate alpha beta^k).

Mean-field variational inference with q(theta) = Gamma(shape, rate). An iteration goes through the modes; for each it
takes the expected counts by component, then the mode's rates, then beta^k = 1 / mean E theta^k. Each of these steps
maximises the evidence lower bound over its own part, so the bound never falls.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.baselines.factor_scores import SCORING, factor_scores, normal_form
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Seed, random_generator
from ringleader.baselines.poisson import ascend, log_factorials, random_shares, stacked
from ringleader.baselines.poisson_kernels import Gains, empty_gains, mode_statistics, refresh_gains
from ringleader.settings import Constraint, Number, Whole
from ringleader.tensor.sparse import SparseTensor


class BPTFState(NamedTuple):
    """The variational posterior. Arrays are changed in place by ``bptf_step``."""

    statistics: list[Floats]  # per mode (n_k, R); shape = alpha + statistics
    rates: Floats  # (K, R)
    betas: Floats  # (K,)
    sums: Floats  # (K, R), column sums of E theta
    divergence: Floats  # (K,), the row part of minus the divergence
    gains: Gains


class BPTF(Baseline):
    """Bayesian Poisson tensor factorisation by batch variational inference.

    Parameters
    ----------
    rank : number of components.
    alpha : shape of the gamma priors; below 1 is sparse.
    max_iter : most iterations; tol : stop when the bound rises by less than this part of itself.
    scoring : "largest" or "divergence", see factor_scores.

    Attributes
    ----------
    factors_ : per mode (n_k, R), E theta.
    elbo_ : the bound after each iteration.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "rank": Whole(1),
        "alpha": Number(above=0, most=1e6),
        "max_iter": Whole(1),
        "tol": Number(above=0),
        "scoring": SCORING,
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        rank: int = 10,
        alpha: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-5,
        scoring: str = "largest",
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.scoring = scoring
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        state = bptf_start(tensor, self.rank, self.alpha, random_generator(self.random_state))
        self.elbo_: list[float] = []
        constant = log_factorials(tensor)
        ascend(
            # The data term of a step is that of its start, so the bound belongs to the state before it.
            lambda: bptf_step(tensor, state, self.alpha) - constant,
            self.elbo_,
            iterations=self.max_iter,
            tol=self.tol,
            callback=callback,
            method="BPTF",
        )
        self.factors_ = tuple((self.alpha + s) / state.rates[k] for k, s in enumerate(state.statistics))

    def _scores(self, k: int) -> Floats:
        return factor_scores(normal_form(np.ones(self.rank), self.factors_), k, self.scoring)


def bptf_start(tensor: SparseTensor, rank: int, alpha: float, generator: np.random.Generator) -> BPTFState:
    """Every entity's reviews are shared out among the components at random."""
    modes = len(tensor.modes)
    state = BPTFState(
        statistics=[],
        rates=np.ones((modes, rank)),
        betas=np.ones(modes),
        sums=np.ones((modes, rank)),
        divergence=np.zeros(modes),
        gains=empty_gains(sum(tensor.shape), rank),
    )
    total = float(tensor.counts.sum())
    for k, size in enumerate(tensor.shape):
        state.statistics.append(random_shares(tensor, k, rank, generator))
        # Scales such that the expected total over all cells is the observed one, evenly over modes and components.
        state.sums[k] = (total / rank) ** (1.0 / modes)
        state.rates[k] = (alpha * size + state.statistics[k].sum(axis=0)) / state.sums[k]
        state.betas[k] = size * rank / state.sums[k].sum()
        _refresh(tensor, state, k, alpha)
    return state


def bptf_step(tensor: SparseTensor, state: BPTFState, alpha: float) -> float:
    """One iteration over all modes, in place. Returns the bound of the state before it (without log y!)."""
    bound = 0.0
    cells = stacked(tensor)
    for k in range(len(tensor.modes)):
        rest = _other_terms(state, alpha, tensor.shape) if k == 0 else 0.0
        expected, data = mode_statistics(cells, tensor.grouping(k), state.gains)
        if k == 0:
            bound = float(data) + rest
        state.statistics[k] = expected
        others = np.prod(np.delete(state.sums, k, axis=0), axis=0)
        state.rates[k] = alpha * state.betas[k] + others
        state.sums[k] = (alpha * tensor.shape[k] + expected.sum(axis=0)) / state.rates[k]
        state.betas[k] = tensor.shape[k] * state.sums.shape[1] / state.sums[k].sum()
        _refresh(tensor, state, k, alpha)
    return bound


def _refresh(tensor: SparseTensor, state: BPTFState, k: int, alpha: float) -> None:
    """Expected logs of mode k from its statistics and rates."""
    start = sum(tensor.shape[:k])
    state.divergence[k] = refresh_gains(state.statistics[k], alpha, np.log(state.rates[k]), start, state.gains)


def _other_terms(state: BPTFState, alpha: float, shape: tuple[int, ...]) -> float:
    """The bound without its data term: minus the expected total, minus the divergence from the prior."""
    value = -float(np.prod(state.sums, axis=0).sum())
    rank = state.sums.shape[1]
    for k, size in enumerate(shape):
        rates, beta = state.rates[k], state.betas[k]
        shapes = state.sums[k] * rates  # column sums of the shapes
        value += size * rank * (alpha * math.log(alpha * beta) - math.lgamma(alpha))
        value += float((shapes - shapes * np.log(rates) - alpha * beta * state.sums[k]).sum())
        value += float(state.divergence[k])
    return value
