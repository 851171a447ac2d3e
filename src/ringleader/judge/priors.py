"""Settings of the head, and the priors that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ringleader.arrays import Floats
from ringleader.judge.basis import ASSOCIATION, EVIDENCE, INTERCEPT, LINEAR, Layout
from ringleader.judge.posterior import Learning, Posterior, Prior, learn_variances
from ringleader.settings import Flag, Number, Settings, Whole


@dataclass(frozen=True)
class HeadSettings(Settings):
    """Settings of the head; the defaults were chosen by benchmarks/head_settings.py.

    knots              : knots of each spline
    linear_variance    : prior variance of the linear terms, all inputs together; each has its share of it
    spline_variance    : the same for the bends
    full_labels        : labels from which these variances have their full size; fewer labels have their share of it,
                         so that ten cannot drown the evidence
    learn_variances    : let the labels move these variances
    worth              : how many inputs' worth the two variances above count when they are learned
    group_worth        : the same for the variance of a group of inputs around the shared one
    own_worth          : the same for one input's own variance around its group's; inf shares one variance
    evidence_slope     : prior mean of the log-odds for each standard deviation of evidence
    evidence_spread    : and its prior standard deviation
    doubting_labels    : with fewer labels than ``full_labels`` the head is averaged with one that trusts no evidence
                         (slope 0) and has its full variances from so many labels on, each as far as it foretells the
                         labels; 0 for the trusting one alone
    doubting_margin    : standard errors of the difference of the two log-likelihoods that this one must be ahead by to
                         be preferred: of ten labels two may be bad, and a belief that is ahead by less is so by luck
    association_slope  : prior mean of the log-odds for each standard deviation of association with the known and of
                         acting with suspected neighbours, all of them together
    association_spread : and the prior standard deviation of each
    association_labels : labels from which these two have their full size; with fewer they grow with the square, as
                         the pairs of labelled accounts do
    intercept_variance : prior variance of the intercept
    sharpness          : prior median of the factor on all log-odds, which the leave-one-out log-odds of the labelled
                         move: the mode of the coefficients lies nearer to zero than the truth
    sharpness_spread   : and its prior standard deviation, of the factor's log. Where the variances above have only a
                         share of their size the median is larger by its fourth root, and the spread by its root,
                         with ten labels and with fewer alike
    unremarkable       : share of the abusive who look like anybody, so that nobody's probability is next to nothing
    unremarkable_spread : standard deviation of the log of that share, which nobody knows exactly, for the intervals
    prevalence         : share of abusive entities in the market; estimated where None
    assumed_prevalence : what is taken where it can be neither given nor estimated, and drawn to with few labels
    interval           : probability mass of the intervals
    interval_variance  : prior variance, all inputs together, from which the variances of the intervals are learned, and
    interval_worth     : how many inputs' worth it counts there. The ranking wants more freedom than the labels prove,
                         and its intervals would cover nearly everything
    """

    knots: Annotated[int, Whole(3)] = 5
    linear_variance: Annotated[float, Number(above=0)] = 4.0
    spline_variance: Annotated[float, Number(above=0)] = 4.0
    full_labels: Annotated[float, Number(above=0)] = 100.0
    learn_variances: Annotated[bool, Flag()] = True
    worth: Annotated[float, Number(least=0.5)] = 100.0  # below 0.5 a variance can lock at zero
    group_worth: Annotated[float, Number(above=0, infinite=True)] = 10.0
    own_worth: Annotated[float, Number(above=0, infinite=True)] = math.inf
    evidence_slope: Annotated[float, Number()] = 1.5
    evidence_spread: Annotated[float, Number(above=0)] = 0.75
    doubting_labels: Annotated[float, Number(least=0)] = 30.0
    doubting_margin: Annotated[float, Number(least=0)] = 1.0
    association_slope: Annotated[float, Number()] = 1.0
    association_spread: Annotated[float, Number(above=0)] = 0.5
    association_labels: Annotated[float, Number(above=0)] = 50.0
    intercept_variance: Annotated[float, Number(above=0)] = 10.0
    sharpness: Annotated[float, Number(above=0)] = 1.2
    sharpness_spread: Annotated[float, Number(above=0)] = 0.15
    unremarkable: Annotated[float, Number(least=0, below=1)] = 0.01
    unremarkable_spread: Annotated[float, Number(least=0)] = 0.1
    prevalence: Annotated[float | None, Number(above=0, below=1, optional=True)] = None
    assumed_prevalence: Annotated[float, Number(above=0, below=1)] = 0.1
    interval: Annotated[float, Number(above=0, below=1)] = 0.90
    interval_variance: Annotated[float, Number(above=0)] = 0.1
    interval_worth: Annotated[float, Number(least=0.5)] = 1.0
    max_iterations: Annotated[int, Whole(1)] = 100
    rounds: Annotated[int, Whole(1)] = 60


def at_strength(settings: HeadSettings, labels: int) -> HeadSettings:
    """The settings with the variances, and the trust in association, that so many labels deserve."""
    share = min(1.0, max(labels, 1) / settings.full_labels)
    root = min(1.0, max(labels, 1) / settings.association_labels)
    trust = root * root
    return settings.replace(
        linear_variance=share * settings.linear_variance,
        spline_variance=share * settings.spline_variance,
        association_slope=trust * settings.association_slope,
        association_spread=root * settings.association_spread,
    )


def prior_of(layout: Layout, settings: HeadSettings) -> Prior:
    """The prior before any label: each input has its share of the two variances; evidence counts for abuse."""
    inputs = max(len(layout.inputs), 1)
    share = np.array([settings.linear_variance, settings.spline_variance]) / inputs
    variance = np.where(layout.kind == LINEAR, share[0], share[1])
    variance[layout.kind == INTERCEPT] = settings.intercept_variance
    variance[layout.kind == EVIDENCE] = np.square(settings.evidence_spread)
    mean = np.where(layout.kind == EVIDENCE, settings.evidence_slope, 0.0)
    flows = layout.kind == ASSOCIATION
    variance[flows] = np.square(settings.association_spread)
    mean[flows] = settings.association_slope / max(int(flows.sum()), 1)
    return Prior(mean, variance)


def learn_prior(
    fit: Callable[[Prior, Floats, bool], Posterior],
    layout: Layout,
    settings: HeadSettings,
    groups: Sequence[str],
    inputs: int,
) -> tuple[Posterior, Prior, bool]:
    """``learn_variances`` of the columns of a layout, from the variances that the settings give.

    groups : the kinds of the inputs, where they are known; inputs : how many there are
    """
    learning = _learning_of(layout, settings, groups or None, inputs)
    return learn_variances(fit, prior_of(layout, settings), layout.kind, layout.source, learning)


def _learning_of(layout: Layout, settings: HeadSettings, groups: Sequence[str] | None, width: int) -> Learning:
    inputs = max(len(layout.inputs), 1)
    group = np.zeros(width, np.int64)
    if groups is not None:
        group[: len(groups)] = np.unique(np.asarray(groups), return_inverse=True)[1]
        group[len(groups) :] = group.max(initial=-1) + 1  # the evidence is of its own kind
    return Learning(
        settings.linear_variance / inputs,
        settings.spline_variance / inputs,
        settings.worth,
        settings.group_worth,
        settings.own_worth,
        group,
        settings.rounds if settings.learn_variances else 0,
    )
