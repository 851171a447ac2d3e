"""Settings of the head, and the priors that they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringleader.errors import SettingsError
from ringleader.judge.basis import ASSOCIATION, EVIDENCE, INTERCEPT, LINEAR, Layout
from ringleader.judge.posterior import Learning, Prior


@dataclass(frozen=True)
class HeadSettings:
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
    association_slope  : prior mean of the log-odds for each standard deviation of association with the known and of
                         company with the suspected, all of them together
    association_spread : and the prior standard deviation of each
    association_labels : labels from which these two have their full size; with fewer they grow with the square, as
                         the pairs of labelled accounts do
    intercept_variance : prior variance of the intercept
    prevalence         : share of abusive entities in the market; estimated where None
    assumed_prevalence : what is taken where it can be neither given nor estimated, and drawn to with few labels
    interval           : probability mass of the intervals
    interval_variance  : prior variance, all inputs together, from which the variances of the intervals are learned, and
    interval_worth     : how many inputs' worth it counts there. The ranking wants more freedom than the labels prove,
                         and its intervals would cover nearly everything
    interval_doubt     : variance, all inputs together, added to these: labels do not tell exactly how large they are
    """

    knots: int = 5
    linear_variance: float = 4.0
    spline_variance: float = 4.0
    full_labels: float = 100.0
    learn_variances: bool = True
    worth: float = 100.0
    group_worth: float = 10.0
    own_worth: float = math.inf
    evidence_slope: float = 1.5
    evidence_spread: float = 0.75
    doubting_labels: float = 30.0
    association_slope: float = 1.0
    association_spread: float = 0.5
    association_labels: float = 50.0
    intercept_variance: float = 10.0
    prevalence: float | None = None
    assumed_prevalence: float = 0.1
    interval: float = 0.90
    interval_variance: float = 0.1
    interval_worth: float = 1.0
    interval_doubt: float = 0.8
    max_iterations: int = 100
    rounds: int = 60

    def check(self) -> None:
        for name in (
            "linear_variance",
            "spline_variance",
            "evidence_spread",
            "intercept_variance",
            "group_worth",
            "own_worth",
        ):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not self.worth >= 0.5:
            raise SettingsError(f"worth is {self.worth}; below 0.5 a variance can lock at zero")
        for name in ("prevalence", "assumed_prevalence", "interval"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 1:
                raise SettingsError(f"{name} is {share}; it must lie between 0 and 1")
        if self.knots < 3 or self.max_iterations < 1 or self.rounds < 1:
            raise SettingsError("knots must be at least 3, max_iterations and rounds at least 1")


def at_strength(settings: HeadSettings, labels: int) -> HeadSettings:
    """The settings with the variances, and the trust in association, that so many labels deserve."""
    share = min(1.0, max(labels, 1) / settings.full_labels)
    trust = min(1.0, max(labels, 1) / settings.association_labels) ** 2
    return replace(
        settings,
        linear_variance=share * settings.linear_variance,
        spline_variance=share * settings.spline_variance,
        association_slope=trust * settings.association_slope,
        association_spread=math.sqrt(trust) * settings.association_spread,
    )


def prior_of(layout: Layout, settings: HeadSettings) -> Prior:
    """The prior before any label: each input has its share of the two variances; evidence counts for abuse."""
    inputs = max(len(layout.inputs), 1)
    share = np.array([settings.linear_variance, settings.spline_variance]) / inputs
    variance = np.where(layout.kind == LINEAR, share[0], share[1])
    variance[layout.kind == INTERCEPT] = settings.intercept_variance
    variance[layout.kind == EVIDENCE] = settings.evidence_spread**2
    mean = np.where(layout.kind == EVIDENCE, settings.evidence_slope, 0.0)
    flows = layout.kind == ASSOCIATION
    variance[flows] = settings.association_spread**2
    mean[flows] = settings.association_slope / max(int(flows.sum()), 1)
    return Prior(mean, variance)


def learning_of(layout: Layout, settings: HeadSettings, groups: Sequence[str] | None, width: int) -> Learning:
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
