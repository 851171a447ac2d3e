"""Contributions: what each input adds to a score, so that the amounts and the intercept sum to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.judge.head import EVIDENCE_NAME, Head
from ringleader.judge.prevalence import with_floor
from ringleader.signals import Suspicion

OWN_LABEL = "own label, left out"
"""Name of what the known lose by being judged without their own label."""


UNREMARKABLE = "abuse that looks like anybody's"
"""Name of what is added because some of the abusive cannot be told: little but where nothing speaks against one."""


class Contributions(NamedTuple):
    """What each input adds to the scores of entities."""

    names: tuple[str, ...]
    amounts: Floats  # (E, F)
    unit: str  # of what they are parts: log-odds, value or suspicion
    intercept: float = 0.0  # what an average entity has; with it the amounts sum to the score in that unit


def head_contributions(head: Head, codes: Numbers, suspicion: Suspicion) -> Contributions:
    """What each input of a head adds for entities; what the suspicion adds is given to its parts.

    Each part adds to the input of the same name what the slope of the suspicion gives it, and of the rest the more the
    further it is from ordinary: an ordinary part adds nothing. Where any of the entities is labelled, the column
    ``OWN_LABEL`` is what leaving out their own label takes away from the labelled, 0 for others. The last column of
    probabilities, ``UNREMARKABLE``, is what the floor of the head adds.
    """
    unit = "log-odds" if head.target_kind == "binary" else "value"
    names, amounts = _by_parts(head, codes, suspicion)
    labelled = np.isin(codes, head.codes)
    if labelled.any():
        without = np.zeros(len(codes))
        at = np.searchsorted(head.codes, codes[labelled])  # the labelled are in the order of their codes
        without[labelled] = head.left_out[at] - head.intercept - amounts[labelled].sum(axis=1)
        names, amounts = (*names, OWN_LABEL), np.column_stack([amounts, without])
    if np.isfinite(head.floor):
        predictor = head.intercept + amounts.sum(axis=1)
        added = with_floor(predictor, head.floor) - predictor
        names, amounts = (*names, UNREMARKABLE), np.column_stack([amounts, added])
    return Contributions(names, amounts, unit, head.intercept)


def _by_parts(head: Head, codes: Numbers, suspicion: Suspicion) -> tuple[tuple[str, ...], Floats]:
    amounts = head.contributions(codes)
    if not head.names or head.names[-1] != EVIDENCE_NAME:
        return head.names, amounts
    names, own = list(head.names[:-1]), amounts[:, :-1].copy()
    scores = np.stack([part[codes] for part in suspicion.parts], axis=1)
    varies = np.flatnonzero(head.layout.inputs == len(names))
    slope = head.weights[1 + varies[0]] if len(varies) else 0.0
    many = scores.shape[1]
    size = np.abs(scores).sum(axis=1, keepdims=True)
    weight = np.where(size > 0, np.abs(scores) / np.where(size > 0, size, 1.0), 1 / many)
    rest = amounts[:, -1:] - slope * scores.mean(axis=1, keepdims=True)
    for name, share in zip(suspicion.names, (slope * scores / many + rest * weight).T, strict=True):
        if name in names:
            own[:, names.index(name)] += share
        else:
            names.append(name)
            own = np.column_stack([own, share])
    return tuple(names), own
