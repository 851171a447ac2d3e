"""One method from several random starts, its scores averaged.

A factorisation that starts at random ends in one of many optima: a component is, or is not, a ring. The mean over a few
starts is steadier than any of them, and for heads that give probabilities it is the mean of models.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ringleader.arrays import Floats
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed
from ringleader.settings import Constraint, Whole, check_setting
from ringleader.tensor.sparse import SparseTensor


def start_seeds(seed: Any, starts: int) -> list[Any]:
    """``starts`` seeds, of which the first is ``seed`` itself: one start is the method as it is.

    None (a fresh seed) and a generator (drawn from on and on) serve every start.
    """
    check_setting("starts", starts, Whole(1))
    check_setting("random_state", seed, Seed())
    if not isinstance(seed, (int, np.integer)):
        return [seed] * starts
    further = np.random.SeedSequence(int(seed)).generate_state(starts - 1)
    return [seed, *(int(s) for s in further)]


class AverageOfStarts(Baseline):
    """The mean of the scores of one method, fitted from several starts.

    Parameters
    ----------
    method : an unfitted baseline with a ``random_state``. starts : how many. random_state : seed of the first.
        A method without chance is only fitted several times.

    Attributes
    ----------
    models_ : the fitted ones.
    """

    constraints: ClassVar[dict[str, Constraint]] = {"starts": Whole(1), "random_state": Seed()}

    def __init__(self, method: Baseline, *, starts: int = 3, random_state: Any = 0) -> None:
        self.method = method
        self.starts = starts
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        self.models_: list[Any] = []
        for number, seed in enumerate(start_seeds(self.random_state, self.starts)):
            model = clone(self.method).set_params(random_state=seed)
            self.models_.append(model.fit(tensor, labels, callback=_as_part(callback, number, self.starts)))

    def _scores(self, k: int) -> Floats:
        mode = self.models_[0].modes_[k]
        return np.asarray(np.mean([model.scores(mode) for model in self.models_], axis=0))


def _as_part(callback: Callback, number: int, starts: int) -> Callback:
    """Steps of one start as steps of all."""
    return lambda step: callback(Progress(number * step.total + step.step, starts * step.total, step.objective))
