"""The head: evidence, behaviour, lockstep and association -> probability, interval and reasons for each entity.

A Bayesian additive logistic model (model.md section 6.7): log-odds = intercept + sum of one smooth function for each
input. The unsupervised evidence comes in with a prior that it counts for abuse, so that with few labels it carries
and with many it stands back. ``head_basis`` makes the columns, ``head_posterior`` fits them, ``head_real`` is the twin
for real-valued targets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, softmax
from threadpoolctl import threadpool_limits

from ringleader.arrays import Floats, Numbers
from ringleader.errors import LabelError, SettingsError
from ringleader.judge.basis import (
    ASSOCIATION,
    EVIDENCE,
    LEVELS,
    LINEAR,
    ROWS,
    Layout,
    Levels,
    Ranks,
    checked,
    lay_out,
    pack,
    rank_all,
    unpack,
)
from ringleader.judge.posterior import (
    Posterior,
    Prior,
    covariance_root,
    fit_logistic,
    learn_variances,
    left_out,
)
from ringleader.judge.prevalence import HIGH_PREVALENCE, estimate_prevalence, matching_shift, picked_by_volume
from ringleader.judge.priors import HeadSettings, at_strength, learning_of, prior_of
from ringleader.kernels.logistic import fisher_weight, logistic

EVIDENCE_NAME = "evidence prior"
ASSOCIATION_GROUPS = ("association", "company")
"""Inputs of these groups are known beforehand to count for abuse: who acts with the bad is like them."""
VOLUME_GROUP = "volume"
"""Inputs of this group say how much an account does."""
LEAST_LABELS = 2
ASSUMED_SPREAD = 1.0
"""Standard deviation of the log-odds of a prevalence that is only assumed: 0.1 may be 0.02 or 0.4."""


class HeadScores(NamedTuple):
    """One number per entity; lower and upper bound the probability, which is that of the posterior mode."""

    log_odds: Floats
    probability: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Head:
    """A fitted head.

    names        : the inputs, in the order of the contributions; the last is the evidence where it was given
    kind         : "additive", or "evidence" where the labels could not be used; ``note`` says why
    prevalence   : share of abusive entities the probabilities are meant for
    estimated    : whether it was estimated from the population
    weights      : (P,) coefficients, the first one the intercept, at the market's prevalence
    root         : (P, Q) with covariance root root'
    codes, values: the labelled entities and their labels, +1 and -1
    loo_log_odds : (M,) log-odds of the labelled, each as if its own label were unknown
    variances    : (2,) mean learned prior variance of the linear terms and of the bends
    """

    names: tuple[str, ...]
    kind: Literal["additive", "evidence"]
    note: str
    prevalence: float
    estimated: bool
    interval: float
    converged: bool
    weights: Floats
    root: Floats
    codes: Numbers
    values: Floats
    loo_log_odds: Floats
    variances: Floats
    ranks: Ranks
    layout: Layout

    @property
    def n_labels(self) -> int:
        return len(self.codes)

    @property
    def intercept(self) -> float:
        """Log-odds of an average entity."""
        return float(self.weights[0])

    def predict(self, features: npt.ArrayLike | None = None, fallback: npt.ArrayLike | None = None) -> HeadScores:
        """Scores of the population, or of other entities with the same inputs (and evidence, where it was given)."""
        ranks = self.ranks.known if features is None else self._ranked(features, fallback)
        centre, spread = moments(ranks, self.layout, self.weights, self.root)
        reach = ndtri(0.5 + self.interval / 2) * spread
        return HeadScores(centre, logistic(centre), logistic(centre - reach), logistic(centre + reach))

    def contributions(self, entities: npt.ArrayLike | None = None) -> Floats:
        """What each input adds to the log-odds, (E, F); 0 for the average entity. With the intercept they sum to it."""
        codes = np.arange(len(self.ranks.known)) if entities is None else np.asarray(entities, np.int64)
        return contributions(self.ranks.known[codes], self.layout, self.weights, len(self.names))

    def _ranked(self, features: npt.ArrayLike, fallback: npt.ArrayLike | None) -> Levels:
        has_evidence = bool(self.names) and self.names[-1] == EVIDENCE_NAME
        names = self.names[:-1] if has_evidence else self.names
        table = checked(features, names)
        if has_evidence:
            if fallback is None:
                raise SettingsError("this head was fitted with evidence; pass fallback= for new entities too")
            table = _with_evidence(table, fallback)
        return self.ranks.of(table)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same head bit for bit."""
        about = {
            "names": self.names,
            "kind": self.kind,
            "note": self.note,
            "prevalence": self.prevalence,
            "estimated": self.estimated,
            "interval": self.interval,
            "converged": self.converged,
        }
        own = {name: getattr(self, name) for name in _ARRAYS}
        text = np.frombuffer(json.dumps(about).encode(), np.uint8).copy()
        return {"about": text, **own, **pack(self.ranks, self.layout)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Head:
        about: dict[str, Any] = json.loads(np.asarray(arrays["about"], np.uint8).tobytes().decode())
        about["names"] = tuple(about["names"])
        ranks, layout = unpack(arrays)
        about |= {name: arrays[name] for name in _ARRAYS}
        return cls(**about, ranks=ranks, layout=layout)


_ARRAYS = ("weights", "root", "codes", "values", "loo_log_odds", "variances")


def moments(levels: Levels, layout: Layout, weights: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the additive predictor, (n,) each."""
    centre, spread = np.empty(len(levels)), np.empty(len(levels))
    for start in range(0, len(levels), ROWS):
        part = slice(start, start + ROWS)
        rows = layout.rows(levels[part])
        centre[part] = rows @ weights
        spread[part] = np.sqrt(((rows @ root) ** 2).sum(axis=1))
    return centre, spread


def contributions(levels: Levels, layout: Layout, weights: Floats, inputs: int) -> Floats:
    """(n, inputs): what each input adds to the predictor; an input that does not vary adds 0."""
    made = np.zeros((len(levels), inputs))
    for j, curve in zip(layout.inputs, layout.curves(weights), strict=True):
        made[:, j] = curve[levels[:, j]]
    return made


def fit_head(
    features: npt.ArrayLike,
    names: Sequence[str],
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    fallback: npt.ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    settings: HeadSettings | None = None,
) -> Head:
    """Learn the probability of abuse from the labelled entities of one mode, for one target.

    features : (n, F) of ALL entities of the mode, any scale, finite
    codes    : (M,) the labelled entities; values: +1 abusive, -1 not
    fallback : (n,) unsupervised evidence, higher is worse; what remains where the labels cannot be used
    groups   : (F,) the kind of each input; inputs of a kind tell the labels' worth of one another
    """
    settings = settings or HeadSettings()
    settings.check()
    table, inputs, evidence = gathered(features, names, fallback)
    known, values = checked_labels(codes, values, len(table))
    if not np.isin(values, (-1.0, 1.0)).all():
        raise LabelError("labels of a binary target must be +1 and -1; for numbers use fit_real_head")
    ranks = rank_all(table)
    flows = [j for j, group in enumerate(groups or ()) if group in ASSOCIATION_GROUPS]
    layout = lay_out(ranks, settings.knots, evidence, flows)
    label = (values > 0).astype(np.float64)
    why = _why_not(label)
    if why:
        prior = prior_of(layout, at_strength(settings, len(known)))
        return _evidence_head(inputs, why, settings, prior, ranks, layout, known, values)
    rows = layout.rows(ranks.known[known])

    def fit(prior: Prior, start: Floats, to_the_end: bool) -> Posterior:
        return fit_logistic(rows, label, prior, start, settings.max_iterations if to_the_end else 1)

    def learn(settings: HeadSettings) -> tuple[Posterior, Prior, bool]:
        learning = learning_of(layout, settings, groups, len(inputs))
        return learn_variances(fit, prior_of(layout, settings), layout.kind, layout.source, learning)

    with threadpool_limits(1, "blas"):  # matrices this small cost more to share than to do, on a busy machine far more
        found = [learn(at_strength(one, len(known))) for one in _beliefs(settings, len(known), evidence)]
        careful = replace(
            settings,
            linear_variance=settings.interval_variance,
            spline_variance=settings.interval_variance,
            worth=settings.interval_worth,
        )
        proven = learn(careful)[1]
    blind = [left_out(posterior, label) for posterior, _, _ in found]
    share = softmax([blind_likelihood(loo, label) for loo in blind])
    weights = share @ np.stack([posterior.weights for posterior, _, _ in found])
    fitted = share @ np.stack([posterior.fitted for posterior, _, _ in found])
    psi = weights[0] + contributions(ranks.known, layout, weights, len(inputs)).sum(axis=1)
    prevalence, said = settings.prevalence, ""
    if prevalence is None:
        prevalence = estimate_prevalence(psi, len(label), float(label.mean()), settings.assumed_prevalence)
        volume = [j for j, group in enumerate(groups or ()) if group == VOLUME_GROUP]
        places = (ranks.known[known[label == 0]][:, volume] + 0.5) / LEVELS
        if prevalence > HIGH_PREVALENCE and picked_by_volume(places):
            prevalence = settings.assumed_prevalence
            said = (
                "; the known good accounts have unusually many or few reviews, so how common abuse is cannot be told: "
                f"prevalence {prevalence:g} is assumed, pass the real one"
            )
    shift = matching_shift(psi, prevalence)
    weights[0] += shift
    doubt = settings.interval_doubt / max(len(layout.inputs), 1)
    wide = proven.variance + np.where(layout.source >= 0, doubt, 0.0)
    root = covariance_root(rows, fisher_weight(fitted), proven._replace(variance=wide))
    return Head(
        names=inputs,
        kind="additive",
        note=f"additive model of {len(label)} labels, {int(label.sum())} of them abusive{said}",
        prevalence=prevalence,
        estimated=settings.prevalence is None and not said,
        interval=settings.interval,
        converged=all(posterior.gap < 1e-4 and settled for posterior, _, settled in found),
        weights=weights,
        root=np.column_stack([root, *_between([posterior.weights for posterior, _, _ in found], share)]),
        codes=known,
        values=values,
        loo_log_odds=share @ np.stack(blind) + shift,
        variances=share @ np.stack([mean_variances(layout, learned) for _, learned, _ in found]),
        ranks=ranks,
        layout=layout,
    )


def _beliefs(settings: HeadSettings, labels: int, evidence: int | None) -> list[HeadSettings]:
    """What may be believed of the evidence before the labels: that it counts for abuse, or nothing."""
    if evidence is None or not settings.doubting_labels or labels >= settings.full_labels:
        return [settings]
    return [settings, replace(settings, evidence_slope=0.0, full_labels=settings.doubting_labels)]


def _between(weights: list[Floats], share: Floats) -> list[Floats]:
    """What the disagreement of two beliefs adds to the root of the covariance, as columns; none of one.

    The columns of the design have mean 0 in the market and the intercept is set by the prevalence, so it has no part.
    """
    if len(weights) == 1:
        return []
    apart = weights[0] - weights[1]
    apart[0] = 0.0
    return [np.sqrt(share[0] * share[1]) * apart]


def blind_likelihood(log_odds: Floats, label: Floats) -> float:
    """Log-likelihood of the labels, 1 and 0, from log-odds that were made without them.

    Taken where the mean of what is said is the share of bad labels, so that the prevalence has no part in it.
    """
    psi = log_odds + matching_shift(log_odds, float(label.mean()))
    return float(-np.logaddexp(0.0, np.where(label > 0, -psi, psi)).sum())


def gathered(
    features: npt.ArrayLike, names: Sequence[str], fallback: npt.ArrayLike | None
) -> tuple[Floats, tuple[str, ...], int | None]:
    """The inputs with the evidence as the last, their names, and the evidence's place."""
    table = checked(features, names)
    if fallback is None:
        return table, tuple(names), None
    return _with_evidence(table, fallback), (*names, EVIDENCE_NAME), len(names)


def _with_evidence(table: Floats, fallback: npt.ArrayLike) -> Floats:
    evidence = np.asarray(fallback, np.float64)
    if evidence.shape != (len(table),):
        raise SettingsError(f"fallback has shape {evidence.shape}; pass one number for each of {len(table)} entities")
    checked(evidence[:, None], (EVIDENCE_NAME,))
    return np.column_stack([table, evidence])


def checked_labels(codes: npt.ArrayLike, values: npt.ArrayLike, n: int) -> tuple[Numbers, Floats]:
    """Codes and values, sorted by code, so that the order of a label table changes nothing."""
    known, value = np.asarray(codes, np.int64).ravel(), np.asarray(values, np.float64).ravel()
    if len(known) != len(value):
        raise LabelError(f"{len(known)} labelled entities but {len(value)} labels")
    if len(known) and (known.min() < 0 or known.max() >= n):
        raise LabelError(f"labelled entities must be codes from 0 to {n - 1}; saw {known.min()} to {known.max()}")
    if len(np.unique(known)) < len(known):
        raise LabelError("an entity is labelled twice; keep one label for each entity and target")
    if not np.isfinite(value).all():
        raise LabelError("labels must be finite numbers")
    order = np.argsort(known, kind="stable")
    return known[order], value[order]


def mean_variances(layout: Layout, prior: Prior) -> Floats:
    linear, bend = prior.variance[layout.kind == LINEAR], prior.variance[layout.kind == 2]
    return np.array([part.mean() if len(part) else 0.0 for part in (linear, bend)])


def _why_not(label: Floats) -> str:
    """Why these labels cannot teach the difference; empty where they can."""
    bad = int(label.sum())
    if len(label) < LEAST_LABELS:
        return f"{len(label)} labels are too few to learn from"
    if bad in (0, len(label)):
        missing = "accounts at random as good" if bad else "abusive accounts too"
        kind = "abusive" if bad else "good"
        return f"all {len(label)} labels are {kind}, so nothing tells the two apart (label some {missing})"
    return ""


def _evidence_head(
    names: tuple[str, ...],
    why: str,
    settings: HeadSettings,
    prior: Prior,
    ranks: Ranks,
    layout: Layout,
    known: Numbers,
    values: Floats,
) -> Head:
    """What is believed before any label: evidence alone, with its prior's width."""
    weights, spread = prior.mean.copy(), np.sqrt(prior.variance)
    prevalence = settings.prevalence if settings.prevalence is not None else settings.assumed_prevalence
    spread[0] = 0.0 if settings.prevalence is not None else ASSUMED_SPREAD
    spread[layout.kind == LINEAR] = spread[layout.kind == 2] = 0.0
    psi = contributions(ranks.known, layout, weights, len(names)).sum(axis=1)
    weights[0] = matching_shift(psi, prevalence)
    carried = "the score is the evidence alone" if EVIDENCE in layout.kind else "there is no evidence to fall back on"
    if ASSOCIATION in layout.kind:
        carried = "the score is evidence, and association with the known, alone"
    taken = "" if settings.prevalence is not None else f"; prevalence {prevalence:g} is assumed, pass the real one"
    return Head(
        names=names,
        kind="evidence",
        note=f"{why}; {carried}{taken}",
        prevalence=prevalence,
        estimated=False,
        interval=settings.interval,
        converged=True,
        weights=weights,
        root=np.diag(spread),
        codes=known,
        values=values,
        loo_log_odds=psi[known] + weights[0],
        variances=mean_variances(layout, prior),
        ranks=ranks,
        layout=layout,
    )
