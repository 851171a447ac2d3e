"""How every factorisation scores an entity: one rule for all, with a correction for popularity as an alternative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.settings import Choice, check_setting

SCORING = Choice("largest", "divergence")
"""The rules there are, see ``factor_scores``."""


class NormalForm(NamedTuple):
    """Components with unit columns: ``weights`` (R,), per mode ``factors`` (n_k, R)."""

    weights: Floats
    factors: tuple[Floats, ...]


def normal_form(weights: Floats, factors: Sequence[Floats]) -> NormalForm:
    """Columns divided by their Euclidean norm, the weights multiplied by it. An empty column stays zero."""
    scaled = np.array(weights, dtype=np.float64)
    columns = []
    for factor in factors:
        norms = np.linalg.norm(factor, axis=0)
        scaled *= norms
        columns.append(factor / np.where(norms > 0, norms, 1.0))
    return NormalForm(scaled, tuple(columns))


def factor_scores(form: NormalForm, k: int, scoring: str = "largest") -> Floats:
    """Scores of the entities of mode k, (n_k,).

    - ``largest``: max_r lambda_r |u[n, r]| / ||u[:, r]||, the largest weighted, column-normalised factor value.
    - ``divergence``: how unlike the market's the entity's mix of components is, sum_r p_nr log(p_nr / p_r) with
      p_nr the share of component r in the entity and p_r in the whole mode. It does not grow with the entity's volume.
    """
    check_setting("scoring", scoring, SCORING)
    values = np.abs(form.factors[k]) * np.abs(form.weights)
    if scoring == "largest":
        return np.asarray(values.max(axis=1))
    totals = values.sum(axis=1, keepdims=True)
    market = values.sum(axis=0) / max(float(values.sum()), np.finfo(float).tiny)
    shares = values / np.where(totals > 0, totals, 1.0)
    lift = np.where(shares > 0, shares, 1.0) / np.where(shares > 0, market, 1.0)
    return np.asarray((shares * np.log(lift)).sum(axis=1))
