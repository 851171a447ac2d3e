"""BPTF and BNBCP: bounds that never fall, NumPy beside the kernels, planted factors recovered."""

from __future__ import annotations

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.special import betaln, digamma, gammaln
from sklearn.metrics import roc_auc_score

from ringleader.baselines.bnbcp import BNBCP, BNBCPPrior, bnbcp_start, bnbcp_step
from ringleader.baselines.bptf import BPTF, bptf_start, bptf_step
from ringleader.baselines.poisson import stacked
from ringleader.baselines.poisson_kernels import PIECE, empty_gains, mode_statistics
from ringleader.baselines.poisson_kernels import digamma as our_digamma
from ringleader.tensor.sparse import SparseTensor


def random_tensor(seed: int, modes: int = 3, cells: int = 60) -> SparseTensor:
    g = np.random.default_rng(seed)
    sizes = g.integers(2, 12, modes)
    codes = np.stack([g.integers(0, n, cells) for n in sizes], axis=1)
    return SparseTensor.from_arrays(codes, counts=g.integers(1, 5, cells), sizes=[int(n) for n in sizes])


tensors = st.builds(random_tensor, st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 120))


def planted_counts(seed: int = 0, sizes=(60, 48, 21), rank: int = 3, reviews: int = 20_000):
    """A tensor drawn from `rank` components over disjoint groups, with the true group of each entity."""
    g = np.random.default_rng(seed)
    groups = [np.arange(n) % rank for n in sizes]
    component = g.integers(0, rank, reviews)
    codes = np.stack([g.integers(0, n // rank, reviews) * rank + component for n in sizes], axis=1)
    return SparseTensor.from_arrays(codes, ["reviewer", "product", "week"], sizes=list(sizes)), groups


def agreement(factor: np.ndarray, group: np.ndarray) -> float:
    """Share of entities whose largest component is that of their group, under the best naming of components."""
    table = np.zeros((factor.shape[1], group.max() + 1))
    np.add.at(table, (factor.argmax(axis=1), group), 1)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(group))


def test_digamma_is_scipys():
    x = np.concatenate([np.geomspace(1e-4, 1e6, 400), [7.999999, 8.0]])
    ours = np.array([our_digamma(v) for v in x])
    np.testing.assert_allclose(ours, digamma(x), rtol=1e-12, atol=1e-12)


def naive_statistics(tensor, logs, k):
    starts = stacked(tensor).starts
    total = sum(logs[starts[m] + tensor.coordinates[:, m]] for m in range(len(tensor.modes)))
    top = total.max(axis=1, keepdims=True)
    share = np.exp(total - top)
    bound = float((tensor.counts * (top[:, 0] + np.log(share.sum(axis=1)))).sum())
    share /= share.sum(axis=1, keepdims=True)
    result = np.zeros((tensor.shape[k], logs.shape[1]))
    np.add.at(result, tensor.coordinates[:, k], tensor.counts[:, None] * share)
    return result, bound


@pytest.mark.parametrize("spread", [1.0, 300.0])  # at 300 products of rows vanish and logarithms take over
@pytest.mark.parametrize("cells", [500, 3 * PIECE + 17])
def test_statistics_are_those_of_plain_numpy(spread, cells):
    g = np.random.default_rng(1)
    codes = np.stack([g.integers(0, n, cells) for n in (4000, 300, 3)], axis=1)
    tensor = SparseTensor.from_arrays(codes, sizes=(4000, 300, 3), counts=g.integers(1, 4, cells))
    logs = spread * g.standard_normal((4303, 5))
    peaks = logs.max(axis=1)
    gains = empty_gains(*logs.shape)
    gains.values[:, :5], gains.logs[:], gains.peaks[:] = np.exp(logs - peaks[:, None]), logs, peaks
    for k in range(3):
        ours, bound = mode_statistics(stacked(tensor), tensor.grouping(k), gains)
        expected, expected_bound = naive_statistics(tensor, logs, k)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
        assert bound == pytest.approx(expected_bound, rel=1e-12)


def naive_bptf_bound(tensor, state, alpha):
    value, product, expected = 0.0, 1.0, 1.0
    for k in range(len(tensor.modes)):
        shape, rate, beta = alpha + state.statistics[k], state.rates[k], state.betas[k]
        mean, log = shape / rate, digamma(shape) - np.log(rate)
        prior = alpha * np.log(alpha * beta) - gammaln(alpha) + (alpha - 1) * log - alpha * beta * mean
        entropy = shape * np.log(rate) - gammaln(shape) + (shape - 1) * log - shape
        value += float((prior - entropy).sum())
        product = product * np.exp(log)[tensor.coordinates[:, k]]
        expected = expected * mean.sum(axis=0)
    return value + float((tensor.counts * np.log(product.sum(axis=1))).sum() - expected.sum())


@given(tensor=tensors, rank=st.integers(1, 5), alpha=st.sampled_from([0.05, 0.3, 1.0, 2.0]))
@settings(max_examples=30, deadline=None)
def test_bptf_bound_is_the_naive_one_and_never_falls(tensor, rank, alpha):
    state = bptf_start(tensor, rank, alpha, np.random.default_rng(0))
    last = -np.inf
    for _ in range(8):
        naive = naive_bptf_bound(tensor, state, alpha)
        bound = bptf_step(tensor, state, alpha)
        assert bound == pytest.approx(naive, rel=1e-9, abs=1e-8)
        assert bound >= last - 1e-9 * abs(last) if np.isfinite(last) else True
        last = bound


def naive_bnbcp_bound(tensor, state, prior):
    """With q(lambda, p) and each Dirichlet written out by their divergences, not by their normalisers."""
    a, g, c, e = prior.concentration, prior.shape, prior.beta, prior.epsilon
    counts = state.totals[0]
    log_lambda = digamma(g + counts) + digamma(c * e + counts) - digamma(c + g + counts)
    p1, p0 = c * e + counts, c * (1 - e) + g
    log_p, log_1p = digamma(p1) - digamma(p1 + p0), digamma(p0) - digamma(p1 + p0)
    mean_p = p1 / (p1 + p0)
    # E log p(lambda | p) p(p) - E log q, with E_q[lambda (1 - p) / p] = (g + s) E[1 - p]
    prior_term = g * (log_1p - log_p) - gammaln(g) + (g - 1) * log_lambda - (g + counts) * (1 - mean_p)
    prior_term += (c * e - 1) * log_p + (c * (1 - e) - 1) * log_1p - betaln(c * e, c * (1 - e))
    q_term = (g + counts - 1) * log_lambda - (g + counts) * log_p - gammaln(g + counts) - (g + counts)
    q_term += (p1 - 1) * log_p + (p0 - 1) * log_1p - betaln(p1, p0)
    value = float((prior_term - q_term).sum()) - float(((g + counts) * mean_p).sum())
    logs = 0.0
    starts = stacked(tensor).starts
    for k, size in enumerate(tensor.shape):
        shape = a + state.statistics[starts[k] : starts[k + 1]]
        log = digamma(shape) - digamma(shape.sum(axis=0))
        value += float((gammaln(a * size) - size * gammaln(a) + ((a - 1) * log).sum(axis=0)).sum())
        normaliser = gammaln(shape.sum(axis=0)) - gammaln(shape).sum(axis=0)
        value -= float((normaliser + ((shape - 1) * log).sum(axis=0)).sum())
        label = state.label_of[starts[k] : starts[k + 1]]
        seen = prior.label_prior + prior.label_weight * state.label_counts[k]
        rate_log = digamma(seen) - digamma(seen.sum(axis=0))
        if (label >= 0).any():
            b = prior.label_prior
            value += float((((b - seen) * rate_log).sum(axis=0) + betaln(*seen) - betaln(b, b)).sum())
            log = log + np.where((label >= 0)[:, None], prior.label_weight * rate_log[np.maximum(label, 0)], 0.0)
        logs = logs + log[tensor.coordinates[:, k]]
    return value + float((tensor.counts * np.log(np.exp(logs + log_lambda).sum(axis=1))).sum())


@given(tensor=tensors, rank=st.integers(2, 5), labelled=st.booleans(), weight=st.sampled_from([0.3, 1.0]))
@settings(max_examples=30, deadline=None)
def test_bnbcp_bound_is_the_naive_one_and_never_falls(tensor, rank, labelled, weight):
    prior = BNBCPPrior(0.3, 0.5, 1.0, 1.0 / rank, 1.0, weight)
    values = np.full(tensor.shape[1], np.nan)
    values[0], values[-1] = 1.0, 0.0
    labels = {tensor.modes[1]: values} if labelled else {}
    state = bnbcp_start(tensor, rank, labels, prior, np.random.default_rng(0))
    last = -np.inf
    for _ in range(8):
        naive = naive_bnbcp_bound(tensor, state, prior)
        bound = bnbcp_step(tensor, state, prior)
        assert bound == pytest.approx(naive, rel=1e-9, abs=1e-8)
        assert bound >= last - 1e-9 * abs(last) if np.isfinite(last) else True
        last = bound


@pytest.mark.parametrize(
    "model",
    [
        BPTF(rank=3, max_iter=200, tol=1e-8),
        BNBCP(rank=3, inference="batch", max_iter=200, tol=1e-8),
        BNBCP(rank=3, inference="svi", n_epochs=20, batch_size=512),
    ],
)
def test_planted_components_are_recovered(model):
    tensor, groups = planted_counts()
    model.fit(tensor)
    for factor, group in zip(model.factors_, groups, strict=True):
        assert agreement(factor, group) > 0.95


def test_stochastic_inference_comes_near_the_batch_bound():
    tensor, _ = planted_counts()
    batch = BNBCP(rank=5, inference="batch", max_iter=100, tol=1e-9).fit(tensor).elbo_
    svi = BNBCP(rank=5, inference="svi", n_epochs=20, batch_size=512, final_passes=3).fit(tensor).elbo_
    assert svi[-1] > batch[0] + 0.95 * (batch[-1] - batch[0])


def test_rank_is_cut_down_by_the_data():
    tensor, _ = planted_counts()
    model = BNBCP(rank=12, inference="batch", max_iter=300, tol=1e-10, prune=0.02).fit(tensor)
    assert 3 <= model.rank_ < 12


def test_labels_lift_the_score_of_unlabelled_members_of_the_same_group():
    tensor, groups = planted_counts(reviews=4000)
    truth = (groups[1] == 0).astype(float)
    labels = np.full(tensor.shape[1], np.nan)
    labels[:20] = truth[:20]
    frame = pd.DataFrame({"mode": "product", "entity": [str(i) for i in range(20)], "label": truth[:20]})
    for inference in ("batch", "svi"):
        model = BNBCP(rank=6, inference=inference, batch_size=256, n_epochs=10)
        scores = model.fit(tensor, {"product": labels}).scores("product")
        assert roc_auc_score(truth[20:], scores[20:]) > 0.95
        np.testing.assert_array_equal(model.fit(tensor, frame).scores("product"), scores)


@pytest.mark.parametrize("model", [BPTF(max_iter=3), BNBCP(inference="batch", max_iter=3), BNBCP(n_epochs=1)])
def test_answer_does_not_depend_on_the_number_of_threads(model):
    tensor, _ = planted_counts(sizes=(3000, 300, 9), reviews=30_000)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = model.fit(tensor).factors_
        numba.set_num_threads(threads)
        many = model.fit(tensor).factors_
    finally:
        numba.set_num_threads(threads)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)
