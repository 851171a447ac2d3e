"""BNBCP: the beta negative-binomial CP model (Hu, Rai, Chen, Harding, Carin 2015), batch and stochastic.

count of cell i ~ Poisson(sum_r lambda_r prod_k u^k[i_k, r]),  u^k[:, r] ~ Dirichlet(a),
lambda_r ~ Gamma(g, scale p_r / (1 - p_r)),  p_r ~ Beta(c eps, c (1 - eps)).

With s_r the expected count of component r, the best q(lambda_r, p_r) is exact and in closed form:
q(p_r) = Beta(c eps + s_r, c (1 - eps) + g), q(lambda_r | p_r) = Gamma(g + s_r, scale p_r). A component that explains
little keeps little, so a generous ``rank`` is cut down by the data.

With labels (ours; the paper of 2015 has none): every review of a labelled entity also shows the entity's label, with a
rate per component, Beta(b, b) before the data. This is conjugate, so both inferences keep their form, the bound still
never falls, and a labelled mode's score is the label rate of the components that its entities' reviews come from.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, gammaln

from ringleader.arrays import Floats
from ringleader.baselines.bnbcp_kernels import Stochastic, add_rows, batch_statistics
from ringleader.baselines.factor_scores import SCORING, factor_scores, normal_form
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed, random_generator
from ringleader.baselines.poisson import ascend, log_factorials, random_shares, stacked
from ringleader.baselines.poisson_kernels import Gains, empty_gains, mode_statistics, refresh_gains
from ringleader.settings import Choice, Constraint, Number, Whole
from ringleader.tensor.sparse import SparseTensor


class BNBCPPrior(NamedTuple):
    """a, g, c, eps, and b of the labels' rates with the weight of a review's label."""

    concentration: float
    shape: float
    beta: float
    epsilon: float
    label_prior: float
    label_weight: float


class BNBCPState(NamedTuple):
    """The variational posterior: expected counts, and what follows from them. Changed in place."""

    statistics: Floats  # (sum n_k, R)
    totals: Floats  # (K, R), column sums of each mode's statistics
    label_counts: Floats  # (K, 2, R), expected counts of reviews of entities labelled 0 and 1
    label_of: npt.NDArray[np.int8]  # (sum n_k,): 1, 0, or -1
    divergence: Floats  # (K,), the row part of minus the divergence
    gains: Gains


class BNBCP(Baseline):
    """Beta negative-binomial CP factorisation.

    Parameters
    ----------
    rank : most components. ``rank_`` says how many the data need.
    inference : "svi" stochastic over batches of cells, "batch" over all cells.
    concentration : a, of the Dirichlet priors. shape, beta, epsilon : g, c and eps (None: 1 / rank).
    max_iter, tol : batch only, as in BPTF.
    n_epochs, batch_size, delay, decay : svi only; step t has rate (delay + t)^-decay. A batch holds at most
        ``batch_size`` cells and a twentieth of all.
    final_passes : svi only; batch iterations at the end, without which an entity knows only its last visits.
    label_weight : what one review's label weighs against the review itself. label_prior : b.
    prune : a component counts in ``rank_`` when it explains at least this share of the reviews.

    Attributes
    ----------
    weights_ : (R,) E lambda. factors_ : per mode (n_k, R), E u. elbo_ : the bound after each batch iteration.
    label_rates_ : labelled mode -> (R,), expected share of abusive reviews in each component.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "rank": Whole(1),
        "inference": Choice("svi", "batch"),
        "concentration": Number(least=0.01),  # below, the factors leave the finite numbers
        "shape": Number(above=0),
        "beta": Number(above=0),
        "epsilon": Number(above=0, below=1, optional=True),
        "max_iter": Whole(1),
        "tol": Number(above=0),
        "n_epochs": Whole(1),
        "batch_size": Whole(1),
        "delay": Number(above=1),  # with 1 the first step would forget everything, also what it learns
        "decay": Number(above=0, most=1),
        "final_passes": Whole(0),
        "label_weight": Number(above=0),
        "label_prior": Number(above=0),
        "prune": Number(above=0, most=1),
        "scoring": SCORING,
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        rank: int = 10,
        inference: str = "svi",
        concentration: float = 0.1,
        shape: float = 0.1,
        beta: float = 1.0,
        epsilon: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_epochs: int = 5,
        batch_size: int = 16384,
        delay: float = 8.0,
        decay: float = 0.7,
        final_passes: int = 1,
        label_weight: float = 1.0,
        label_prior: float = 1.0,
        prune: float = 1e-3,
        scoring: str = "largest",
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.rank = rank
        self.inference = inference
        self.concentration = concentration
        self.shape = shape
        self.beta = beta
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.delay = delay
        self.decay = decay
        self.final_passes = final_passes
        self.label_weight = label_weight
        self.label_prior = label_prior
        self.prune = prune
        self.scoring = scoring
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        epsilon = 1.0 / max(self.rank, 2) if self.epsilon is None else self.epsilon
        prior = BNBCPPrior(self.concentration, self.shape, self.beta, epsilon, self.label_prior, self.label_weight)
        generator = random_generator(self.random_state)
        state = bnbcp_start(tensor, self.rank, labels, prior, generator)
        self.elbo_: list[float] = []
        if self.inference == "batch":
            self._batch(tensor, state, prior, self.max_iter, callback)
        else:
            self._stochastic(tensor, state, prior, generator, callback)
        counts = state.totals[0]
        success = (prior.beta * prior.epsilon + counts) / (prior.beta + prior.shape + counts)  # E p
        self.weights_ = (prior.shape + counts) * success
        self.rank_ = int(np.count_nonzero(counts >= self.prune * counts.sum()))
        starts = stacked(tensor).starts
        rows = [state.statistics[starts[k] : starts[k + 1]] for k in range(len(tensor.modes))]
        a = prior.concentration
        self.factors_ = tuple((a + s) / (a * len(s) + s.sum(axis=0)) for s in rows)
        self.label_rates_: dict[str, Floats] = {}
        self._labelled: dict[int, Floats] = {}
        market = counts / counts.sum()
        for mode in labels:
            k = tensor.mode_index(mode)
            seen = prior.label_prior + prior.label_weight * state.label_counts[k]
            self.label_rates_[mode] = seen[1] / seen.sum(axis=0)
            # One review of the market's mix is added to each entity's own, so that a single review does not decide.
            mixes = rows[k] + market
            self._labelled[k] = (mixes / mixes.sum(axis=1, keepdims=True)) @ self.label_rates_[mode]

    def _batch(
        self, tensor: SparseTensor, state: BNBCPState, prior: BNBCPPrior, iterations: int, callback: Callback
    ) -> None:
        constant = log_factorials(tensor)
        ascend(
            lambda: bnbcp_step(tensor, state, prior) - constant,
            self.elbo_,
            iterations=iterations,
            tol=self.tol,
            callback=callback,
            method="BNBCP",
        )

    def _stochastic(
        self,
        tensor: SparseTensor,
        state: BNBCPState,
        prior: BNBCPPrior,
        generator: np.random.Generator,
        callback: Callback,
    ) -> None:
        """Epochs over the cells in random order; statistics are a decaying mean of what the batches show."""
        cells = stacked(tensor)
        slots = np.full(len(state.statistics), -1, np.int64)
        mode_of = np.repeat(np.arange(len(tensor.modes)), tensor.shape)
        scale = 1.0
        step = 0
        # At least twenty steps an epoch, however small the tensor.
        size = min(self.batch_size, max(256, tensor.n_cells // 20))
        per_epoch = -(-tensor.n_cells // size)
        for epoch in range(self.n_epochs):
            order = generator.permutation(tensor.n_cells).astype(np.int32)
            for b in range(per_epoch):
                batch = np.sort(order[b * size : (b + 1) * size])  # in the order of memory
                shifts, label_logs = _shifts(tensor, state, prior), _label_logs(state, prior)
                posterior = Stochastic(state.statistics, shifts, state.label_of, label_logs, slots)
                touched, sums = batch_statistics(cells, batch, prior.concentration, scale, posterior)
                rate = (self.delay + step) ** -self.decay
                factor = rate * tensor.n_cells / len(batch)
                scale *= 1.0 - rate
                add_rows(state.statistics, touched, sums, factor / scale)
                # The totals are the same in every mode: each cell of the batch has an entity in each.
                state.totals[:] = (1.0 - rate) * state.totals + factor * sums[touched < tensor.shape[0]].sum(axis=0)
                state.label_counts[:] *= 1.0 - rate
                shown = np.flatnonzero(state.label_of[touched] >= 0)
                if len(shown):
                    where = (mode_of[touched[shown]], state.label_of[touched[shown]])
                    np.add.at(state.label_counts, where, factor * sums[shown])
                if scale < 1e-100:
                    state.statistics[:] *= scale
                    scale = 1.0
                step += 1
            callback(Progress(epoch + 1, self.n_epochs, math.nan))
        state.statistics[:] *= scale
        for k in range(len(tensor.modes)):
            _refresh(tensor, state, prior, k)
        self._batch(tensor, state, prior, self.final_passes, lambda progress: None)

    def _scores(self, k: int) -> Floats:
        if k in self._labelled:
            return self._labelled[k]
        return factor_scores(normal_form(self.weights_, self.factors_), k, self.scoring)


def bnbcp_start(
    tensor: SparseTensor, rank: int, labels: KnownEntities, prior: BNBCPPrior, generator: np.random.Generator
) -> BNBCPState:
    """Every entity's reviews are shared out among the components at random."""
    modes, rows = len(tensor.modes), sum(tensor.shape)
    starts = stacked(tensor).starts
    state = BNBCPState(
        statistics=np.empty((rows, rank)),
        totals=np.empty((modes, rank)),
        label_counts=np.zeros((modes, 2, rank)),
        label_of=np.full(rows, -1, np.int8),
        divergence=np.zeros(modes),
        gains=empty_gains(rows, rank),
    )
    total = float(tensor.counts.sum())
    for k in range(modes):
        shares = random_shares(tensor, k, rank, generator)
        # Equal columns, so that no component starts ahead and all modes have the same totals.
        state.statistics[starts[k] : starts[k + 1]] = shares * (total / rank / shares.sum(axis=0))
        state.totals[k] = total / rank
        values = labels.get(tensor.modes[k])
        if values is not None:
            known = np.flatnonzero(~np.isnan(values))
            state.label_of[starts[k] + known] = values[known].astype(np.int8)
    for k in range(modes):
        _count_labels(tensor, state, k)
        _refresh(tensor, state, prior, k)
    return state


def bnbcp_step(tensor: SparseTensor, state: BNBCPState, prior: BNBCPPrior) -> float:
    """One batch iteration over all modes, in place. Returns the bound of the state before it (without log y!)."""
    cells = stacked(tensor)
    bound = 0.0
    for k in range(len(tensor.modes)):
        rest = _other_terms(tensor, state, prior) if k == 0 else 0.0
        expected, data = mode_statistics(cells, tensor.grouping(k), state.gains)
        if k == 0:
            bound = float(data) + rest
        state.statistics[cells.starts[k] : cells.starts[k + 1]] = expected
        state.totals[k] = expected.sum(axis=0)
        _count_labels(tensor, state, k)
        _refresh(tensor, state, prior, k)
    return bound


def _weight_logs(counts: Floats, prior: BNBCPPrior) -> Floats:
    """E log lambda_r."""
    logs = digamma(prior.shape + counts) + digamma(prior.beta * prior.epsilon + counts)
    return np.asarray(logs - digamma(prior.beta + prior.shape + counts))


def _shifts(tensor: SparseTensor, state: BNBCPState, prior: BNBCPPrior) -> Floats:
    """(K, R), what is subtracted from psi(a + statistics). The weights go with the first mode."""
    sizes = np.array(tensor.shape, np.float64)[:, None]
    shifts: Floats = digamma(prior.concentration * sizes + state.totals)
    shifts[0] -= _weight_logs(state.totals[0], prior)
    return shifts


def _label_logs(state: BNBCPState, prior: BNBCPPrior) -> Floats:
    """(K, 2, R), expected logs of the rates at which a component's reviews show label 0 and 1, times their weight."""
    seen = prior.label_prior + prior.label_weight * state.label_counts
    return np.asarray(prior.label_weight * (digamma(seen) - digamma(seen.sum(axis=1, keepdims=True))))


def _count_labels(tensor: SparseTensor, state: BNBCPState, k: int) -> None:
    """Expected counts of the labelled entities' reviews in mode k, by label and component."""
    start = sum(tensor.shape[:k])
    label_of = state.label_of[start : start + tensor.shape[k]]
    for label in (0, 1):
        state.label_counts[k, label] = state.statistics[start : start + tensor.shape[k]][label_of == label].sum(axis=0)


def _refresh(tensor: SparseTensor, state: BNBCPState, prior: BNBCPPrior, k: int) -> None:
    """Expected logs of mode k; labelled entities' rows also carry the logs of their label's rates."""
    start, stop = sum(tensor.shape[:k]), sum(tensor.shape[: k + 1])
    gains = state.gains
    shift = _shifts(tensor, state, prior)[k]
    state.divergence[k] = refresh_gains(state.statistics[start:stop], prior.concentration, shift, start, gains)
    rows = start + np.flatnonzero(state.label_of[start:stop] >= 0)
    if len(rows):
        gains.logs[rows] += _label_logs(state, prior)[k, state.label_of[rows]]
        gains.peaks[rows] = gains.logs[rows].max(axis=1)
        gains.values[rows, : gains.logs.shape[1]] = np.exp(gains.logs[rows] - gains.peaks[rows, None])


def _other_terms(tensor: SparseTensor, state: BNBCPState, prior: BNBCPPrior) -> float:
    """The bound without its data term.

    Each factor's q is the best for its own statistics, so minus its divergence is the log of its normaliser minus
    statistics times expected logs; the latter are in ``divergence``, for the weights with those of the first mode.
    """
    counts = state.totals[0]
    a, ce = prior.concentration, prior.beta * prior.epsilon
    value = float((gammaln(prior.shape + counts) - gammaln(prior.shape)).sum())
    value += float((betaln(ce + counts, prior.beta - ce + prior.shape) - betaln(ce, prior.beta - ce)).sum())
    for k, size in enumerate(tensor.shape):
        value += float((gammaln(a * size) - size * gammaln(a) - gammaln(a * size + state.totals[k])).sum())
        value += float(state.divergence[k])
    b = prior.label_prior
    seen = b + prior.label_weight * state.label_counts
    value += float((betaln(seen[:, 0], seen[:, 1]) - betaln(b, b)).sum())
    # label_logs carry the weight already, so counts without it go with them.
    return value - float((state.label_counts * _label_logs(state, prior)).sum())
