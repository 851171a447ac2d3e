"""The score of single reviews: what speaks against a review, and against its people."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ringleader.arrays import Floats
from ringleader.signals import Signals
from ringleader.signals.suspicion import normal_scores


def review_scores(signals: Signals, scores: Mapping[int, Floats]) -> Floats:
    """One number per distinct review, (n_cells,), higher is worse: its own suspicion, and the mean of its people's.

    scores : by mode, of the one who acts and of those that are met on, (n_k,) each; their normal scores count, so it is
        the same whether they are probabilities or suspicions. Who is hit by a bad rating has no part in it.

    Where counts are the signal, its own suspicion is its crowd, and ``scores`` are of those modes alone of which labels
    taught something: what crowds say of entities, they say better of each review.
    """
    tensor = signals.tensor
    if signals.counts_lead:
        said = [normal_scores(score)[tensor.coordinates[:, mode]] for mode, score in scores.items()]
        return np.asarray(signals.crowd + np.mean(said, axis=0)) if said else signals.crowd
    own = np.sum(list(signals.ratios.parts().values()), axis=0)
    actor = normal_scores(scores[signals.actor])[tensor.coordinates[:, signals.actor]]
    people = [actor]
    for mode, score in scores.items():
        if mode != signals.actor:
            people.append(np.where(signals.not_attacks, normal_scores(score)[tensor.coordinates[:, mode]], actor))
    return np.asarray(own + np.mean(people, axis=0))
