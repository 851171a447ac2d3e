"""Answers: what can be asked of whoever holds a fitted snapshot."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from ringleader.arrays import Floats
from ringleader.cores import Cores, CoreSettings
from ringleader.explain import Explanation
from ringleader.judge import Inputs
from ringleader.signals import ReviewEvidence
from ringleader.signals.lockstep import Lockstep
from ringleader.snapshot.snapshot import LEARNED, Snapshot
from ringleader.wording import html_text

if TYPE_CHECKING:
    import pandas as pd


class Answers(ABC):
    """Questions to a model; each is answered by the snapshot that is held when it is asked."""

    @abstractmethod
    def _fitted(self) -> Snapshot:
        """The snapshot as it is now; an error where there is none."""

    def scores(self, mode: str, target: str | None = None) -> pd.DataFrame:
        """One row per entity of a mode, most suspicious first.

        ``score`` is what to sort by: the head's probability where labels trained one, else the suspicion, and with it
        how suspected its neighbours are where another mode has labels. ``evidence`` is the model's alone.
        """
        return self._fitted().scores(mode, target)

    def scores_by_code(self, mode: str, target: str | None = None) -> pd.DataFrame:
        """The same rows in the order of the codes, without a rank: for what is joined to arrays of the mode."""
        return self._fitted().scores_by_code(mode, target)

    def explain(self, mode: str, entity: Any, target: str | None = None) -> Explanation:
        """Why an entity has its score: contributions, strongest reviews, cores, the known bad it resembles."""
        return self._fitted().explain(mode, entity, target)

    def contributions(self, mode: str, entities: Any = None, target: str | None = None) -> pd.DataFrame:
        """What each input adds to the scores of entities (all of the mode if None): a row for each, in that order.

        Columns are entity, intercept and the inputs, which sum to the log-odds of the probability, to the value of a
        number, or to the score where the mode has no labels.
        """
        return self._fitted().contribution_table(mode, entities, target)

    def cores(self, settings: CoreSettings | None = None) -> Cores:
        """Groups that act in lockstep: members, window, density, significance, reviews; the most significant first."""
        return self._fitted().cores(settings)

    def lockstep(self) -> Lockstep:
        """Who acts together with whom beyond chance."""
        return self._fitted().signals.lockstep

    def inputs(self, mode: str, target: str | None = None) -> Inputs:
        """The inputs of a target's head for every entity of a mode."""
        return self._fitted().inputs(mode, target)

    def suspicion(self, mode: str) -> Floats:
        """Suspicion of every entity of a mode, (n_k,), from the reviews alone: all signs of paid reviews combined."""
        return self._fitted().suspicion(mode)

    def evidence(self, mode: str) -> Floats:
        """Popularity-corrected suspicion of every entity of a mode, (n_k,), from the reviews alone."""
        return self._fitted().evidence(mode)

    def review_evidence(self) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every distinct review."""
        return self._fitted().signals.reviews

    def __getattr__(self, name: str) -> Any:
        """Learned attributes, such as ``tensor_``, ``labels_`` or ``history_``, are those of the snapshot."""
        if name.endswith("_") and name[:-1] in LEARNED:
            return getattr(self._fitted(), name[:-1])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html_text(line)}</p>" for line in repr(self).splitlines())


A = TypeVar("A", bound=Answers)


def as_of_now(model: A) -> A:
    """A copy that keeps the snapshot which the model holds now: for who asks several questions and wants the answers
    of one model, whatever another thread has it learn meanwhile.
    """
    return copy.copy(model)
