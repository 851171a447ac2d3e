"""Suspicion: what the signals say of an entity together, where no label speaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ringleader.arrays import Bools, Floats, frozen
from ringleader.signals.evidence import SHRINK_REVIEWS, ReviewEvidence, entity_evidence, excess
from ringleader.signals.lockstep import Lockstep
from ringleader.tensor.sparse import SparseTensor

EVIDENCE_SHARE = 1 / 9
"""Share of evidence in the suspicion; lockstep has the rest. Who follows a strong taste has evidence too: with a larger
share, honest people of loyal communities come first (docs/detection.md)."""


class Suspicion(NamedTuple):
    """What the reviews alone say of every entity of a mode.

    names : what it is made of. parts : normal scores of each, (n_k,), scaled by its share; their mean is the score.
    """

    names: tuple[str, ...]
    parts: tuple[Floats, ...]

    @property
    def score(self) -> Floats:
        """(n_k,)"""
        return np.asarray(np.mean(self.parts, axis=0), np.float64)


def entity_suspicion(tensor: SparseTensor, mode: int, reviews: ReviewEvidence, lockstep: Lockstep) -> Suspicion:
    """Evidence beyond noise, and lockstep, of every entity of a mode.

    Those who act (the reviewers) answer for all they do, the others only for what does not hurt them.
    """
    acts = mode == lockstep.actor
    beyond = excess(reviews.evidence) * (1.0 if acts else not_attacks(tensor, lockstep))
    together = lockstep.entity_scores(tensor, mode)
    side = "lockstep" if acts else "boost"
    names = ("evidence_excess" if acts else "evidence_boost", f"{side}_mean", f"{side}_top10")
    evidence = entity_evidence(tensor, beyond, mode, shrink=SHRINK_REVIEWS if acts else 0.0)
    values = (evidence, together[names[1]], together[names[2]])
    shares = (EVIDENCE_SHARE, (1 - EVIDENCE_SHARE) / 2, (1 - EVIDENCE_SHARE) / 2)
    parts = tuple(frozen(len(values) * share * normal_scores(part)) for share, part in zip(shares, values, strict=True))
    return Suspicion(names, parts)


def not_attacks(tensor: SparseTensor, lockstep: Lockstep) -> Bools:
    """Which cells are no bad ratings, (n_cells,). Who is attacked is a victim, so these say nothing against it."""
    return ~lockstep.sides(tensor)[1]


def normal_scores(values: Floats) -> Floats:
    """The quantile of the standard normal at each value's rank, so that no scale or outlier rules; ties share."""
    from scipy.stats import rankdata  # half a second to import, and a loaded model has its suspicion

    return np.asarray(ndtri((rankdata(values) - 0.5) / max(len(values), 1)), np.float64)
