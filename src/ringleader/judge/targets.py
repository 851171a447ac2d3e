"""One head for each target: which inputs it gets, and what it says of every entity of its mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ringleader.arrays import Floats
from ringleader.judge.head import EVIDENCE_NAME, Head, blind_likelihood, fit_head
from ringleader.judge.inputs import Inputs
from ringleader.judge.priors import HeadSettings
from ringleader.judge.real import RealHead, fit_real_head
from ringleader.kernels.logistic import fisher_weight, logistic
from ringleader.known.labels import Target
from ringleader.signals.evidence import LEAST_ROOM

AnyHead = Head | RealHead
OWN_LABEL = "own label, left out"
"""Name of what the known lose by being judged without their own label."""


class Judgement(NamedTuple):
    """What a head says of every entity, (n_k,) each: a probability, or the value of a real target, and its bounds.

    The labelled are judged as if their own label were unknown; what is known of them is in the label column.
    """

    value: Floats
    lower: Floats
    upper: Floats


def fit_target(target: Target, inputs: Inputs, suspicion: Floats, prevalence: float | None) -> AnyHead:
    """The head of one target. ``suspicion`` (n_k,) is what is believed of the entities without any label."""
    groups = [inputs.groups[name] for name in inputs.names]
    if target.kind == "real":
        return fit_real_head(
            inputs.values, inputs.names, target.codes, target.values, fallback=suspicion, groups=groups
        )
    settings = HeadSettings(prevalence=prevalence)
    return fit_head(
        inputs.values, inputs.names, target.codes, target.values, fallback=suspicion, groups=groups, settings=settings
    )


def labels_likelihood(head: AnyHead) -> float:
    """Log-likelihood of the labels, each from the others: what a choice of inputs is judged by.

    NaN where the labels taught nothing.
    """
    if isinstance(head, RealHead) or head.kind != "additive":
        return float("nan")
    return blind_likelihood(head.loo_log_odds, (head.values > 0).astype(np.float64))


def judge(head: AnyHead) -> Judgement:
    """Every entity of the mode, the labelled without their own label."""
    if isinstance(head, RealHead):
        value, _, high = head.predict()
        reach = high - value
        # Values without spread have no noise to weigh against, and taught nothing that could be left out.
        weight = 1 / head.noise_variance if head.noise_variance > 0 else 0.0
        reach[head.codes] *= _wider(reach[head.codes] / _quantile(head), weight)
        value[head.codes] = head.loo_values
        return Judgement(value, value - reach, value + reach)
    centre, _, _, upper = head.predict()
    reach = _log_odds(upper) - centre
    reach[head.codes] *= _wider(reach[head.codes] / _quantile(head), fisher_weight(centre[head.codes]))
    centre[head.codes] = head.loo_log_odds
    return Judgement(logistic(centre), logistic(centre - reach), logistic(centre + reach))


def _quantile(head: AnyHead) -> float:
    return float(ndtri(0.5 + head.interval / 2))


def _wider(spread: Floats, weight: Floats | float) -> Floats:
    """How much wider an interval is without the entity's own label: h -> h / (1 - N h) (model.md section 6.4)."""
    return np.asarray(1 / np.sqrt(np.maximum(1 - weight * spread**2, LEAST_ROOM)))


def _log_odds(probability: Floats) -> Floats:
    held = np.clip(probability, 1e-300, 1 - 1e-16)
    return np.asarray(np.log(held) - np.log1p(-held))


def contributions(
    head: AnyHead, codes: npt.NDArray[Any], parts: tuple[tuple[str, ...], list[Floats]]
) -> tuple[tuple[str, ...], Floats]:
    """Names and amounts, (E, F), of what each input adds for entities; what the suspicion adds is told by its parts.

    ``parts`` are the names and normal scores of its parts. Each adds to the input of the same name what the slope of
    the suspicion gives it, and of the rest the more the further it is from ordinary: an ordinary part adds nothing.
    Where any of the entities is labelled, the last column, ``OWN_LABEL``, is what leaving out their own label takes
    away from the labelled, 0 for others. With the intercept all sum to what ``judge`` says.
    """
    names, amounts = _by_parts(head, codes, parts)
    known = np.isin(codes, head.codes)
    if not known.any():
        return names, amounts
    without = head.loo_values if isinstance(head, RealHead) else head.loo_log_odds
    taken = np.zeros(len(codes))
    at = np.searchsorted(head.codes, codes[known])  # the labelled are in the order of their codes
    taken[known] = without[at] - head.intercept - amounts[known].sum(axis=1)
    return (*names, OWN_LABEL), np.column_stack([amounts, taken])


def _by_parts(
    head: AnyHead, codes: npt.NDArray[Any], parts: tuple[tuple[str, ...], list[Floats]]
) -> tuple[tuple[str, ...], Floats]:
    amounts = head.contributions(codes)
    if not head.names or head.names[-1] != EVIDENCE_NAME:
        return head.names, amounts
    names, own = list(head.names[:-1]), amounts[:, :-1].copy()
    scores = np.stack([score[codes] for score in parts[1]], axis=1)
    varies = np.flatnonzero(head.layout.inputs == len(names))
    slope = head.weights[1 + varies[0]] if len(varies) else 0.0
    many = scores.shape[1]
    size = np.abs(scores).sum(axis=1, keepdims=True)
    weight = np.where(size > 0, np.abs(scores) / np.where(size > 0, size, 1.0), 1 / many)
    rest = amounts[:, -1:] - slope * scores.mean(axis=1, keepdims=True)
    for name, share in zip(parts[0], (slope * scores / many + rest * weight).T, strict=True):
        if name in names:
            own[:, names.index(name)] += share
        else:
            names.append(name)
            own = np.column_stack([own, share])
    return tuple(names), own


def heads_to_arrays(heads: tuple[AnyHead, ...]) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """One part of a model for each head."""
    return {f"head_{i}": {**head.to_arrays(), "real": _flag(head)} for i, head in enumerate(heads)}


def _flag(head: AnyHead) -> npt.NDArray[np.uint8]:
    return np.array([isinstance(head, RealHead)], np.uint8)


def head_from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> AnyHead:
    plain = {name: array for name, array in arrays.items() if name != "real"}
    return RealHead.from_arrays(plain) if arrays["real"][0] else Head.from_arrays(plain)
