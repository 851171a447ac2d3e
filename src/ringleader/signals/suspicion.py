"""Suspicion: what the signals say together where no label speaks, of reviews and of entities.

Every review has a log-likelihood ratio for each way to be bought: with others in lockstep, in a crowd of strangers, in
an attack. It is as suspicious as its most suspicious way, and more where the model's evidence agrees. Entities sum up
their reviews.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ringleader.arrays import Bools, Floats, frozen
from ringleader.signals.behaviour.distinct import distinct_pairs
from ringleader.signals.evidence import ReviewEvidence, excess
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers
from ringleader.tensor.sparse import SparseTensor

FEW = 3.0
"""Unsuspicious reviews that every entity is believed to have besides its own, so that one loud review is not all."""

EVIDENCE_ALONE, EVIDENCE_WITH = 0.1, 0.3
"""What a unit of evidence adds to log(1 + ratio) of a review: by itself, and for each unit that is there already."""

EVIDENCE_MOST = 1.0
"""Most evidence that counts. It agrees with what others say and says nothing alone: the very strongest is a taste's."""

TASTE = 2.0
"""What of the evidence the taste of a review's author takes off, for each unit of its pull."""


class ReviewRatios(NamedTuple):
    """What speaks against each review, (n_cells,) each, not below 0.

    lockstep, strangers, attack : log-likelihood ratios of being bought in each way, each less its own doubt; lockstep
        counts as far as its author is in lockstep with people of several sellers, see ``breadth``
    evidence : what the model says beyond noise and beyond the taste of the author, in units of its uncertainty, at
        most ``EVIDENCE_MOST``
    """

    lockstep: Floats
    strangers: Floats
    attack: Floats
    evidence: Floats

    def ratio(self) -> Floats:
        """The log-likelihood ratio of the most suspicious way."""
        return np.maximum(np.maximum(self.lockstep, self.strangers), self.attack)

    def parts(self) -> dict[str, Floats]:
        """What adds up to the suspicion of each review: log(1 + ratio), given to its way, and what evidence adds."""
        ratio = self.ratio()
        loud = np.log1p(ratio)
        strangers = (self.strangers > 0) & (self.strangers == ratio)
        attack = (self.attack > 0) & (self.attack == ratio)
        return {
            "lockstep": np.where(strangers | attack, 0.0, loud),
            "strangers": np.where(strangers & ~attack, loud, 0.0),
            "attack": np.where(attack, loud, 0.0),
            "evidence": self.evidence * (EVIDENCE_ALONE + EVIDENCE_WITH * loud),
        }


def review_ratios(
    tensor: SparseTensor, reviews: ReviewEvidence, lockstep: Lockstep, strangers: Strangers
) -> ReviewRatios:
    """What speaks against every review."""
    fair = not_attacks(tensor, lockstep)
    attack = np.where(fair, 0.0, np.maximum(lockstep.crowded_attacks, strangers.ratios))
    spread = np.where(
        reviews.evidence > 0, reviews.left_out / np.where(reviews.evidence > 0, reviews.evidence, 1.0), 1.0
    )
    beyond_taste = np.maximum(reviews.left_out - TASTE * lockstep.pull, 0.0) / spread
    together = lockstep.boost.scores * breadth(tensor, lockstep)
    agrees = np.minimum(excess(beyond_taste), EVIDENCE_MOST)
    ratios = together, np.where(fair, strangers.ratios, 0.0), attack, agrees
    return ReviewRatios(*(frozen(np.asarray(part, np.float64)) for part in ratios))


def breadth(tensor: SparseTensor, lockstep: Lockstep) -> Floats:
    """How broad the lockstep of each review's author is, (n_cells,), from 0 to 1: sellers for each review in lockstep.

    Fans come back to one brand, and meet there; who is paid by a broker works for several sellers. Where there is one
    mode to meet on, its items take the place of sellers.
    """
    roles = lockstep.roles(tensor)
    seller = min(roles.items, key=lambda k: tensor.shape[k])
    cells = np.flatnonzero(lockstep.boost.scores > 0)
    who, whom = (tensor.coordinates[cells, k].astype(np.int64) for k in (lockstep.actor, seller))
    n_actors = tensor.shape[lockstep.actor]
    reviews = np.bincount(who, minlength=n_actors)
    sellers = np.bincount(distinct_pairs(who, whom, (n_actors, tensor.shape[seller])).first, minlength=n_actors)
    return np.asarray((sellers / np.maximum(reviews, 1))[tensor.coordinates[:, lockstep.actor]])


class Suspicion(NamedTuple):
    """What the reviews alone say of every entity of a mode.

    names : what it is made of. parts : (n_k,) each, scaled so that their mean is the score, a normal score.
    """

    names: tuple[str, ...]
    parts: tuple[Floats, ...]

    @property
    def score(self) -> Floats:
        """(n_k,)"""
        return np.asarray(np.mean(self.parts, axis=0), np.float64)


def entity_ways(tensor: SparseTensor, mode: int, ratios: ReviewRatios, fair: Bools | None = None) -> dict[str, Floats]:
    """What each way adds to the suspicion of every entity of a mode, (n_k,) each, by name: a sum over its reviews.

    It is divided by their number and ``FEW`` more: sums measure activity.

    fair : (n_cells,), reviews that count; None for all. Those who act answer for all they do, the others only for what
        does not hurt them.
    """
    codes, size = tensor.coordinates[:, mode], tensor.shape[mode]
    reviews = np.bincount(codes, minlength=size) + FEW
    parts = ratios.parts()
    if fair is not None or tensor.rating_mode is None:
        del parts["attack"]  # without ratings there are no bad ones
    if fair is not None:
        parts = {way: part * fair for way, part in parts.items()}
    return {
        f"suspicion_{way}": np.bincount(codes, weights=part, minlength=size) / reviews for way, part in parts.items()
    }


def entity_suspicion(ways: dict[str, Floats]) -> Suspicion:
    """The normal scores of what the ways add up to; each way has of it what it has of the sum."""
    total = np.sum(list(ways.values()), axis=0)
    score = normal_scores(total)
    shares = [np.where(total > 0, part / np.where(total > 0, total, 1.0), 1 / len(ways)) for part in ways.values()]
    return Suspicion(tuple(ways), tuple(frozen(len(ways) * share * score) for share in shares))


def not_attacks(tensor: SparseTensor, lockstep: Lockstep) -> Bools:
    """Which cells are no bad ratings, (n_cells,). Who is attacked is a victim, so these say nothing against it."""
    return ~lockstep.sides(tensor)[1]


def normal_scores(values: Floats) -> Floats:
    """The quantile of the standard normal at each value's rank, so that no scale or outlier rules; ties share."""
    from scipy.stats import rankdata  # half a second to import, and a loaded model has its suspicion

    return np.asarray(ndtri((rankdata(values) - 0.5) / max(len(values), 1)), np.float64)
