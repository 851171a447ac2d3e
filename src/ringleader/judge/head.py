"""Head: a fitted additive model of one target -> probability (or value), interval and contributions of each entity.

Log-odds = intercept + sum of one smooth function for each input (model.md section 6.7). ``binary`` fits the head of
yes/no labels, ``real`` that of numbers; what they give is the same thing with another scale at its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Frozen, Numbers, frozen, packed_json, unpacked_json
from ringleader.errors import LabelError, SettingsError
from ringleader.judge.basis import (
    BEND,
    LINEAR,
    Layout,
    Levels,
    Ranks,
    checked,
    pack,
    rank_all,
    side_by_side,
    unpack,
)
from ringleader.judge.population import RankedPopulation, edges_of, in_whole_parts, moved_rows, whole_parts
from ringleader.judge.posterior import LEAST_LEFT, Prior
from ringleader.judge.prevalence import with_floor
from ringleader.kernels.elementary import ndtri
from ringleader.kernels.logistic import fisher_weight, logistic
from ringleader.kernels.tiles import row_lengths
from ringleader.known.labels import TargetKind

EVIDENCE_NAME = "evidence prior"


class HeadScores(NamedTuple):
    """One number per entity: the additive predictor, what it stands for (a probability, or a value), and its bounds.

    The predictor of a probability is its log-odds before the floor of the head.
    """

    predictor: Floats
    value: Floats
    lower: Floats
    upper: Floats


class Judgement(NamedTuple):
    """What a head says of every entity, (n_k,) each: a probability, or the value of a real target, and its bounds.

    The labelled are judged as if their own label were unknown; what is known of them is in the label column.
    """

    value: Floats
    lower: Floats
    upper: Floats


def never_certain(probability: Floats) -> Floats:
    """Probabilities between 0 and 1: log-odds above 37 round to 1."""
    return np.clip(probability, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)


@dataclass(frozen=True)
class Head(Frozen):
    """A fitted head.

    target_kind    : "binary" (the predictor is log-odds before the floor) or "real" (the value, in the target's unit)
    names          : the inputs, in the order of the contributions; the last is the suspicion where it was an input
    kind           : "additive"; "evidence" or "constant" where the labels could not be used; ``note`` says why
    prevalence     : share of abusive entities the probabilities are meant for; NaN for a real target
    estimated      : whether it was estimated from the population
    noise_variance : of an observed value around what is expected of the entity; 0 for a binary target
    interval       : probability mass of the intervals
    floor          : log-odds that those of the predictor are added to, as odds: of abuse that looks like anybody's
    floor_spread   : and their standard deviation
    weights        : (P,) coefficients, the first one the intercept, at the market's prevalence
    root           : (P, Q) with covariance root root'
    codes, values  : the labelled entities and their labels: +1 and -1, or numbers
    left_out       : (M,) predictor of the labelled, each as if its own label were unknown
    left_out_spread : (M,) and its standard deviation
    variances      : (2,) mean learned prior variance of the linear terms and of the bends
    """

    target_kind: TargetKind
    names: tuple[str, ...]
    kind: Literal["additive", "evidence", "constant"]
    note: str
    prevalence: float
    estimated: bool
    noise_variance: float
    interval: float
    converged: bool
    floor: float
    floor_spread: float
    weights: Floats
    root: Floats
    codes: Numbers
    values: Floats
    left_out: Floats
    left_out_spread: Floats
    variances: Floats
    ranks: Ranks
    layout: Layout

    @property
    def n_labels(self) -> int:
        return len(self.codes)

    @property
    def intercept(self) -> float:
        """Predictor of an average entity."""
        return float(self.weights[0])

    @property
    def quantile(self) -> float:
        """Standard deviations that the interval reaches to either side."""
        return float(ndtri(0.5 + self.interval / 2))

    def predict(self, features: npt.ArrayLike | None = None, suspicion: npt.ArrayLike | None = None) -> HeadScores:
        """Scores of the population, or of other entities with the same inputs (and suspicion, where it was one)."""
        levels = self.ranks.levels if features is None else self._levels_of(features, suspicion)
        centre, spread = moments(levels, self.layout, self.weights, self.root)
        return HeadScores(centre, *self._interval(centre, spread))

    def judge(self) -> Judgement:
        """Every entity of the mode, or those whose ranks are here; the labelled without their own label."""
        centre, spread = self._own_moments()
        codes = self.codes - self.ranks.first
        own = (codes >= 0) & (codes < len(centre))
        centre[codes[own]], spread[codes[own]] = self.left_out[own], self.left_out_spread[own]
        return frozen(Judgement(*self._interval(centre, spread)))

    def _own_moments(self) -> tuple[Floats, Floats]:
        """``moments`` of the population, or of those entities of it whose ranks are here."""
        ranks = self.ranks
        if ranks.peers.count == 1:
            return moments(ranks.levels, self.layout, self.weights, self.root)
        parts = moments(in_whole_parts(ranks), self.layout, self.weights, self.root, ranks.population)
        rows = moved_rows(ranks.peers, np.stack(parts, axis=1), whole_parts(ranks.counts), edges_of(ranks.counts))
        return rows[:, 0].copy(), rows[:, 1].copy()

    def contributions(self, entities: npt.ArrayLike | None = None) -> Floats:
        """What each input adds to the predictor, (E, F), 0 for the average entity; with the intercept its sum."""
        levels = self.ranks.levels if entities is None else self.ranks.levels[np.asarray(entities, np.int64)]
        return self.layout.contributions(levels, self.weights, len(self.names))

    def _interval(self, centre: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
        """What predictors with these standard deviations stand for, and the ends of its interval.

        An end is where both the predictor and the floor are at theirs. Mostly one of them hides the other; where they
        are alike, and their spreads are, 90% intervals cover 98%.
        """
        reach, below = self.quantile * spread, self.quantile * self.floor_spread
        ends = ((centre, 0.0), (centre - reach, -below), (centre + reach, below))
        value, lower, upper = (self._scaled(end, self.floor + moved) for end, moved in ends)
        return value, lower, upper

    def _scaled(self, predictor: Floats, floor: float) -> Floats:
        if self.target_kind != "binary":
            return predictor
        return never_certain(logistic(with_floor(predictor, floor)))

    def _levels_of(self, features: npt.ArrayLike, suspicion: npt.ArrayLike | None) -> Levels:
        reads_suspicion = bool(self.names) and self.names[-1] == EVIDENCE_NAME
        table = checked(features, self.names[:-1] if reads_suspicion else self.names)
        if reads_suspicion:
            if suspicion is None:
                raise SettingsError("this head was fitted with the suspicion; pass suspicion= for new entities too")
            table = np.column_stack([table, checked_suspicion(suspicion, len(table))])
        return self.ranks.of(table)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same head bit for bit."""
        about = {name: getattr(self, name) for name in _WORDS}
        about["prevalence"] = None if np.isnan(self.prevalence) else self.prevalence
        about["floor"] = None if np.isneginf(self.floor) else self.floor
        text = packed_json(about)
        return {"about": text, **{name: getattr(self, name) for name in _ARRAYS}, **pack(self.ranks, self.layout)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Head:
        about: dict[str, Any] = unpacked_json(arrays["about"])
        if "real" in arrays:  # format 1 kept two kinds of heads apart
            real = bool(arrays["real"][0])
            arrays = {**arrays, "left_out": arrays["loo_values" if real else "loo_log_odds"]}
            about = {"target_kind": "real" if real else "binary", "noise_variance": 0.0, "estimated": False, **about}
            about["names"] = [re.sub("^company_", "neighbours_", name) for name in about["names"]]
        about["names"] = tuple(about["names"])
        about["prevalence"] = float("nan") if about.get("prevalence") is None else about["prevalence"]
        about["floor"] = -np.inf if about.get("floor") is None else about["floor"]  # older heads have none
        about.setdefault("floor_spread", 0.0)
        ranks, layout = unpack(arrays)
        if "left_out_spread" not in arrays:  # older heads widened those of the population
            centre, spread = moments(ranks.levels[arrays["codes"]], layout, arrays["weights"], arrays["root"])
            noise = about["noise_variance"]
            known = fisher_weight(centre) if about["target_kind"] == "binary" else 1 / noise if noise > 0 else 0.0
            arrays = {**arrays, "left_out_spread": without_own(spread, known)}
        about |= {name: arrays[name] for name in _ARRAYS}
        return cls(**about, ranks=ranks, layout=layout)


_WORDS = (
    "target_kind",
    "names",
    "kind",
    "note",
    "prevalence",
    "estimated",
    "noise_variance",
    "interval",
    "converged",
    "floor",
    "floor_spread",
)
_ARRAYS = ("weights", "root", "codes", "values", "left_out", "left_out_spread", "variances")


def moments(
    levels: Levels, layout: Layout, weights: Floats, root: Floats, population: int | None = None
) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of the additive predictor, (n,) each; the latter to six digits.

    population : as ``Layout.predictor``
    """
    spread = row_lengths(lambda part: layout.single_rows(levels[part]), len(levels), root)
    return layout.predictor(levels, weights, population), spread


def without_own(spread: Floats, weight: Floats | float) -> Floats:
    """Posterior standard deviations, (M,), without an own label of that weight: h -> h / (1 - N h) (model.md 6.4)."""
    return np.asarray(spread / np.sqrt(np.maximum(1 - weight * np.square(spread), LEAST_LEFT)))


class HeadTable(NamedTuple):
    """What a head is fitted to: all entities of a mode, ranked.

    names     : of the inputs, the suspicion last where there is one
    groups    : (F,) the kind of each input but the suspicion; inputs of a kind tell the labels' worth of one another
    suspicion : its index among the inputs, or None
    population : the entities, whose ranks may lie with several processes
    """

    ranks: Ranks
    names: tuple[str, ...]
    groups: tuple[str, ...]
    suspicion: int | None
    population: RankedPopulation


def head_table(
    features: npt.ArrayLike,
    names: Sequence[str],
    suspicion: npt.ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    ranked: Ranks | None = None,
) -> HeadTable:
    """Rank the inputs of all entities of a mode.

    features : (n, F), any scale, finite. suspicion : (n,) what is believed without labels, higher is worse.
    ranked : ranks of the first of the inputs, where they are known already; ``features`` then has the others.
    """
    first = ranked.levels.shape[1] if ranked is not None else 0
    columns = [checked(features, names[first:])]
    last: int | None = None
    if suspicion is not None:
        columns.append(checked_suspicion(suspicion, len(columns[0]))[:, None])
        names, last = (*names, EVIDENCE_NAME), len(names)
    fresh = rank_all(np.concatenate(columns, axis=1), ranked.peers if ranked is not None else None)
    ranks = side_by_side(ranked, fresh) if ranked is not None else fresh
    return HeadTable(ranks, tuple(names), tuple(groups or ()), last, RankedPopulation(ranks))


def checked_suspicion(suspicion: npt.ArrayLike, n: int) -> Floats:
    values = np.asarray(suspicion, np.float64)
    if values.shape != (n,):
        raise SettingsError(f"suspicion has shape {values.shape}; pass one number for each of {n} entities")
    return checked(values[:, None], (EVIDENCE_NAME,))[:, 0]


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
    """(2,) mean prior variance of the linear terms and of the bends."""
    parts = (prior.variance[layout.kind == LINEAR], prior.variance[layout.kind == BEND])
    return np.array([part.mean() if len(part) else 0.0 for part in parts])
