"""State -> log-odds of each review -> evidence per entity.

Evidence is leave-one-out: the log-odds of a review without that review's own pull on its entity's
row (model.md section 6.4), so that people with few reviews do not look guilty.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from ringleader.arrays import Floats
from ringleader.model.posterior import cell_evidence
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.lockstep.meetings import sides
from ringleader.tensor.sparse import SparseTensor

LEAST_ROOM = 0.05
"""Least share of an entry's leverage that is left when it is taken out."""
SPREAD = 0.1
"""Added to the variance of a log-odds, so that a certain but small one does not dominate."""
SHRINK_REVIEWS = 20.0
"""Reviews' worth of the market's mean that the contrast mode (the reviewers) is shrunk by."""
NOISE = 1.0
"""Evidence below one unit of its own uncertainty is noise of the drawn negatives. Taking only the excess ties ordinary
entities instead of ordering them by lot; the scores after ten updates then agree with a refit's (docs/online.md)."""
EVIDENCE_SHARE = 1 / 9
"""Share of evidence in the suspicion; lockstep has the rest. Who follows a strong taste has evidence too: with a larger
share, honest people of loyal communities come first (docs/detection.md)."""


class ReviewEvidence(NamedTuple):
    """One number per distinct cell."""

    log_odds: Floats  # phi: that this reviewer belongs here beyond popularity
    left_out: Floats  # phi without the review's own pull, not below 0
    evidence: Floats  # left_out in units of its uncertainty


def review_evidence(problem: Problem, state: State) -> ReviewEvidence:
    """Log-odds and leave-one-out evidence of every cell."""
    log_odds, leverage, weight = cell_evidence(problem, state)
    without = leverage / np.maximum(1 - weight * leverage, LEAST_ROOM)
    # w h_ (1 - sigma(phi)): a cell that did not train its row has no pull on it.
    pull = problem.weights * without / (1 + np.exp(np.clip(log_odds, -500, 500)))
    left_out = np.maximum(log_odds - pull, 0.0)
    return ReviewEvidence(log_odds, left_out, left_out / np.sqrt(without + SPREAD))


def review_crowd(tensor: SparseTensor, actor: int) -> Floats:
    """How crowded the places of each cell are, (n_cells,): mean of log counts over its item, its time, and both.

    For tensors whose counts carry the signal, such as floods of connections: popularity is not taken out.
    """
    modes = [k for k, v in enumerate(tensor.vocabularies) if k != actor and v.kind in ("id", "category", "time")]
    total, places = np.zeros(tensor.n_cells), 0
    for size in range(1, len(modes) + 1):
        for chosen in combinations(modes, size):
            place = np.zeros(tensor.n_cells, np.int64)
            for k in chosen:
                # Numbered anew for each mode: products of many sizes would not fit into 64 bits.
                place = np.unique(place * tensor.shape[k] + tensor.coordinates[:, k], return_inverse=True)[1].reshape(
                    -1
                )
            total += np.log(np.bincount(place, weights=tensor.counts)[place])
            places += 1
    return total / max(places, 1)


def entity_evidence(tensor: SparseTensor, evidence: Floats, mode: int, *, shrink: float = 0.0) -> Floats:
    """Mean evidence of the cells of each entity, (n_k,); the market's mean weighs ``shrink`` cells.

    Means, not sums: sums measure activity. An entity without cells gets the market's mean.
    """
    codes = tensor.coordinates[:, mode]
    total = np.bincount(codes, weights=evidence, minlength=tensor.shape[mode])
    number = np.bincount(codes, minlength=tensor.shape[mode])
    market = float(evidence.mean()) if len(evidence) else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (total + shrink * market) / (number + shrink)
    return np.where(number + shrink > 0, mean, market)


def excess(evidence: Floats) -> Floats:
    """What of the evidence is more than noise."""
    return np.maximum(evidence - NOISE, 0.0)


def not_attacks(tensor: SparseTensor, lockstep: Lockstep) -> npt.NDArray[np.bool_]:
    """Which cells are no bad ratings, (n_cells,). Who is attacked is a victim, so these say nothing against it."""
    return ~sides(tensor, lockstep.actor, lockstep.settings)[1]


def entity_suspicion(tensor: SparseTensor, mode: int, found: ReviewEvidence, lockstep: Lockstep) -> Floats:
    """What the reviews alone say of every entity of a mode, (n_k,): the mean of the suspicion's weighted parts."""
    return np.asarray(np.mean(suspicion_parts(tensor, mode, found, lockstep)[1], axis=0), np.float64)


def suspicion_parts(
    tensor: SparseTensor, mode: int, found: ReviewEvidence, lockstep: Lockstep
) -> tuple[tuple[str, ...], list[Floats]]:
    """Names and normal scores, (n_k,) each, of what counts without labels: evidence beyond noise, and lockstep.

    Each is scaled by its share, so that their mean is the suspicion. Those who act (the reviewers) answer for all they
    do, the others only for what does not hurt them.
    """
    acts = mode == lockstep.actor
    beyond = excess(found.evidence) * (1.0 if acts else not_attacks(tensor, lockstep))
    together = lockstep.entity_scores(tensor, mode)
    side = "lockstep" if acts else "boost"
    names = ("evidence_excess" if acts else "evidence_boost", f"{side}_mean", f"{side}_top10")
    evidence = entity_evidence(tensor, beyond, mode, shrink=SHRINK_REVIEWS if acts else 0.0)
    parts = (evidence, together[names[1]], together[names[2]])
    shares = (EVIDENCE_SHARE, (1 - EVIDENCE_SHARE) / 2, (1 - EVIDENCE_SHARE) / 2)
    return names, [len(parts) * share * normal_scores(part) for share, part in zip(shares, parts, strict=True)]


def normal_scores(values: Floats) -> Floats:
    """The quantile of the standard normal at each value's rank, so that no scale or outlier rules; ties share."""
    return np.asarray(ndtri((rankdata(values) - 0.5) / max(len(values), 1)), np.float64)
