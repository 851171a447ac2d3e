"""The head of yes/no labels: a Bayesian additive logistic model (model.md section 6.7).

The suspicion comes in with a prior that it counts for abuse, so that with few labels it carries and with many it stands
back. ``basis`` makes the columns, ``posterior`` fits them, ``prevalence`` moves the intercept to the market's rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.errors import LabelError
from ringleader.judge.basis import ASSOCIATION, BEND, EVIDENCE, LEVELS, LINEAR, Layout, lay_out
from ringleader.judge.head import Head, HeadTable, checked_labels, mean_variances
from ringleader.judge.posterior import (
    Posterior,
    Prior,
    error_of_mode,
    fit_logistic,
    left_out,
    turn,
)
from ringleader.judge.prevalence import (
    HIGH_PREVALENCE,
    estimate_prevalence,
    floor_of,
    matching_shift,
    picked_by_volume,
    with_floor,
)
from ringleader.judge.priors import HeadSettings, at_strength, learn_prior, prior_of
from ringleader.kernels.elementary import exp, log, logaddexp, softmax
from ringleader.kernels.logistic import fisher_weight
from ringleader.kernels.tiles import product, vector_times
from ringleader.runtime.executor import Threads
from ringleader.wording import counted

ASSOCIATION_GROUPS = ("association", "neighbours")
"""Inputs of these groups are known beforehand to count for abuse: who acts with the bad is like them."""
VOLUME_GROUP = "volume"
"""Inputs of this group say how much an account does."""
LEAST_LABELS = 2
ASSUMED_SPREAD = 1.0
"""Standard deviation of the log-odds of a prevalence that is only assumed: 0.1 may be 0.02 or 0.4."""

FEWEST_LABELS = 10
"""Labels below which the factor on all log-odds grows no more. It makes up for prior variances that are smaller where
labels are few; with fewer still, the mode is mostly what was believed before them, which those priors do not shrink.
One label has no factor at all."""

INTERVAL_ROUNDS = 10
"""Rounds in which the variances of intervals are learned. A hundred labels settle them in four; with a thousand they
go on growing by a percent a round, and no round is the last."""


def fit_binary(
    table: HeadTable, codes: npt.ArrayLike, values: npt.ArrayLike, settings: HeadSettings | None = None
) -> Head:
    """Learn the probability of abuse from the labelled entities of one mode, for one target.

    table : of ALL entities of the mode (``head_table``); the suspicion is what remains where the labels cannot be used
    codes : (M,) the labelled entities; values: +1 abusive, -1 not
    """
    settings = settings or HeadSettings()
    ranks, inputs, groups = table.ranks, table.names, table.groups
    known, values = checked_labels(codes, values, table.population.size)
    if not np.isin(values, (-1.0, 1.0)).all():
        raise LabelError("labels of a binary target must be +1 and -1; read numbers with target_kind='real'")
    flows = [j for j, group in enumerate(groups) if group in ASSOCIATION_GROUPS]
    layout = lay_out(ranks, settings.knots, table.suspicion, flows)
    label = (values > 0).astype(np.float64)
    why = _why_not(label)
    if why:
        prior = prior_of(layout, at_strength(settings, len(known)))
        return _evidence_head(table, why, settings, prior, layout, known, values)
    rows = layout.rows(table.population.levels(known))
    turned = turn(rows)

    def fit(prior: Prior, start: Floats, to_the_end: bool) -> Posterior:
        most = settings.max_iterations if to_the_end else 1
        return fit_logistic(rows, label, prior, start, most, turned=turned)

    def learn(settings: HeadSettings) -> tuple[Posterior, Prior, bool]:
        return learn_prior(fit, layout, settings, groups, len(inputs))

    for_intervals = settings.replace(
        linear_variance=settings.interval_variance,
        spline_variance=settings.interval_variance,
        worth=settings.interval_worth,
        rounds=min(settings.rounds, INTERVAL_ROUNDS),
    )
    beliefs = [at_strength(belief, len(known)) for belief in _beliefs(settings, len(known), table.suspicion)]
    *learned, (_, proven, _) = Threads().map(learn, [*beliefs, for_intervals])
    blind = [left_out(posterior, label) for posterior, _, _ in learned]
    share = belief_shares([blind_likelihoods(log_odds, label, settings.unremarkable) for log_odds in blind], settings)
    weights = vector_times(share, np.stack([posterior.weights for posterior, _, _ in learned]))
    fitted = vector_times(share, np.stack([posterior.fitted for posterior, _, _ in learned]))
    without_own = vector_times(share, np.stack(blind))
    sharpness, unsure = find_sharpness(without_own, label, settings)
    at_labels = matching_shift(sharpness * fitted, float(label.mean()))
    weights = sharpness * weights
    weights[0] += at_labels
    psi = table.population.predictor(layout, weights)
    # How common abuse is, is asked of log-odds without what is added to the factor because labels are few.
    less = 1 / few_labels_factor(len(label), settings)
    cautious = less * (psi - at_labels) + matching_shift(less * sharpness * fitted, float(label.mean()))
    good = table.population.levels(known[label == 0])
    prevalence, doubt = _prevalence(settings, cautious, label, good, groups)
    floor = floor_of(settings.unremarkable, prevalence)
    shift = matching_shift(psi, prevalence, floor)
    weights[0] += shift
    curvature = fisher_weight(fitted)
    errors = [error_of_mode(rows, curvature, prior, proven.variance, sharpness) for _, prior, _ in learned]
    between = _between([sharpness * posterior.weights for posterior, _, _ in learned], share)
    shared = np.column_stack([_slopes(unsure * weights), *between])
    own = vector_times(share, np.stack([error.left_out for error in errors]))
    own += np.square(product(rows, shared)).sum(axis=1)
    return Head(
        target_kind="binary",
        names=inputs,
        kind="additive",
        note=f"additive model of {len(label)} labels, {int(label.sum())} of them abusive{doubt}",
        prevalence=prevalence,
        estimated=settings.prevalence is None and not doubt,
        noise_variance=0.0,
        interval=settings.interval,
        converged=all(posterior.gap < 1e-4 and settled for posterior, _, settled in learned),
        floor=floor,
        floor_spread=settings.unremarkable_spread,
        weights=weights,
        root=np.column_stack([*(np.sqrt(part) * e.root for part, e in zip(share, errors, strict=True)), shared]),
        codes=known,
        values=values,
        left_out=sharpness * without_own + at_labels + shift,
        left_out_spread=np.sqrt(own),
        variances=vector_times(share, np.stack([mean_variances(layout, prior) for _, prior, _ in learned])),
        ranks=ranks,
        layout=layout,
    )


def find_sharpness(log_odds: Floats, label: Floats, settings: HeadSettings) -> tuple[float, float]:
    """The most likely factor on log-odds that were made without the labels, 1 and 0, that they are held against.

    Also the standard deviation of its log (Laplace). Where few labels have only a share of the prior variances, the
    mode lies the nearer to zero and less is known of the factor.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and a loaded model has its heads

    few = few_labels_factor(len(label), settings)
    middle, spread = log(settings.sharpness * few), settings.sharpness_spread * few * few

    def loss(log_factor: float) -> float:
        prior = 0.5 * np.square((log_factor - middle) / spread)
        return float(prior - blind_likelihood(exp(log_factor) * log_odds, label, settings.unremarkable))

    reach = middle + 4 * spread * np.array([-1.0, 1.0])
    best = float(minimize_scalar(loss, bounds=reach, method="bounded", options={"xatol": 1e-6}).x)
    step = 0.1 * spread
    curvature = (loss(best - step) - 2 * loss(best) + loss(best + step)) / (step * step)
    return float(exp(best)), float(min(spread, 1 / np.sqrt(max(curvature, 1e-12))))


def few_labels_factor(labels: int, settings: HeadSettings) -> float:
    """By how much more the mode lies nearer to zero where so few labels have only a share of the prior variances."""
    return 1.0 / math.sqrt(math.sqrt(min(1.0, max(labels, FEWEST_LABELS) / settings.full_labels)))


def blind_likelihoods(log_odds: Floats, label: Floats, unremarkable: float = 0.0) -> Floats:
    """Log-likelihood of each label, 1 or 0, from log-odds that were made without it.

    Taken where the mean of what is said is the share of bad labels, so that the prevalence has no part in it.

    unremarkable : share of the bad who look like anybody
    """
    share = float(label.mean())
    floor = floor_of(unremarkable, share)
    psi = with_floor(log_odds + matching_shift(log_odds, share, floor), floor)
    return np.asarray(-logaddexp(0.0, np.where(label > 0, -psi, psi)))


def blind_likelihood(log_odds: Floats, label: Floats, unremarkable: float = 0.0) -> float:
    """The sum of ``blind_likelihoods``."""
    return float(blind_likelihoods(log_odds, label, unremarkable).sum())


def _prevalence(
    settings: HeadSettings, psi: Floats, label: Floats, good_levels: npt.NDArray[np.uint16], groups: Sequence[str]
) -> tuple[float, str]:
    """The prevalence that probabilities are meant for, and why it is only assumed where it is."""
    if settings.prevalence is not None:
        return settings.prevalence, ""
    prevalence = estimate_prevalence(psi, len(label), float(label.mean()), settings.assumed_prevalence)
    volume = [j for j, group in enumerate(groups) if group == VOLUME_GROUP]
    if prevalence > HIGH_PREVALENCE and picked_by_volume((good_levels[:, volume] + 0.5) / LEVELS):
        prevalence = settings.assumed_prevalence
        return prevalence, (
            "; the known good accounts have unusually many or few reviews, so the share of abuse cannot be estimated: "
            f"prevalence {prevalence:g} is assumed, pass the true one"
        )
    return prevalence, ""


def _beliefs(settings: HeadSettings, labels: int, suspicion: int | None) -> list[HeadSettings]:
    """What may be believed of the suspicion before the labels: that it counts for abuse, or nothing."""
    if suspicion is None or not settings.doubting_labels or labels >= settings.full_labels:
        return [settings]
    return [settings, settings.replace(evidence_slope=0.0, full_labels=settings.doubting_labels)]


def belief_shares(likelihoods: Sequence[Floats], settings: HeadSettings) -> Floats:
    """Share of each belief in the head, the trusting first, from the log-likelihoods of the labels, (M,) each.

    Where the doubting one is ahead, by a sum of M differences, ``doubting_margin`` standard errors of that sum are
    taken off, and no more than there is: what it is ahead by may be luck.
    """
    if len(likelihoods) == 1:
        return np.ones(1)
    difference = np.subtract(*likelihoods)
    error = settings.doubting_margin * float(difference.std(ddof=1)) * np.sqrt(len(difference))
    ahead = float(difference.sum())
    return np.asarray(softmax(np.array([ahead if ahead > 0 else min(ahead + error, 0.0), 0.0])))


def _between(weights: list[Floats], share: Floats) -> list[Floats]:
    """What the disagreement of two beliefs adds to the root of the covariance, as columns; none of one."""
    if len(weights) == 1:
        return []
    return [np.sqrt(share[0] * share[1]) * _slopes(weights[0] - weights[1])]


def _slopes(weights: Floats) -> Floats:
    """The weights without the intercept: the columns have mean 0 in the market and the prevalence sets it."""
    return np.concatenate([[0.0], weights[1:]])


def _why_not(label: Floats) -> str:
    """Why these labels cannot teach the difference; empty where they can."""
    bad = int(label.sum())
    if len(label) < LEAST_LABELS:
        return f"{counted(len(label), 'label')} {'is' if len(label) == 1 else 'are'} too few to learn from"
    if bad in (0, len(label)):
        missing = "accounts at random as good" if bad else "abusive accounts too"
        kind = "abusive" if bad else "good"
        every = "both" if len(label) == 2 else f"all {len(label)}"
        return f"{every} labels are {kind}, so the two cannot be told apart (label some {missing})"
    return ""


def _evidence_head(
    table: HeadTable,
    why: str,
    settings: HeadSettings,
    prior: Prior,
    layout: Layout,
    known: Numbers,
    values: Floats,
) -> Head:
    """What is believed before any label: the suspicion alone, with its prior's width."""
    weights, spread = prior.mean.copy(), np.sqrt(prior.variance)
    prevalence = settings.prevalence if settings.prevalence is not None else settings.assumed_prevalence
    spread[0] = 0.0 if settings.prevalence is not None else ASSUMED_SPREAD
    spread[np.isin(layout.kind, (LINEAR, BEND))] = 0.0
    weights[0] = 0.0
    psi = table.population.predictor(layout, weights)
    floor = floor_of(settings.unremarkable, prevalence)
    weights[0] = matching_shift(psi, prevalence, floor)
    basis = "the score is the evidence alone" if EVIDENCE in layout.kind else "there is no evidence to fall back on"
    if ASSOCIATION in layout.kind:
        basis = "the score is evidence, and association with the known, alone"
    assumed = "" if settings.prevalence is not None else f"; prevalence {prevalence:g} is assumed, pass the true one"
    return Head(
        target_kind="binary",
        names=table.names,
        kind="evidence",
        note=f"{why}; {basis}{assumed}",
        prevalence=prevalence,
        estimated=False,
        noise_variance=0.0,
        interval=settings.interval,
        converged=True,
        floor=floor,
        floor_spread=settings.unremarkable_spread,
        weights=weights,
        root=np.diag(spread),
        codes=known,
        values=values,
        left_out=psi[known] + weights[0],
        left_out_spread=np.sqrt(np.square(layout.rows(table.population.levels(known)) * spread).sum(axis=1)),
        variances=mean_variances(layout, prior),
        ranks=table.ranks,
        layout=layout,
    )
