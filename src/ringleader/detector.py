"""RingDetector: the estimator people hold. It keeps one snapshot and swaps it for the next; no mathematics here."""

from __future__ import annotations

import copy
import importlib
import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ringleader import snapshot as snapshots
from ringleader.arrays import Floats
from ringleader.cores import Cores, CoreSettings
from ringleader.errors import RingleaderWarning
from ringleader.explain import Explanation
from ringleader.judge import Inputs
from ringleader.learners.loop import Callback
from ringleader.model.config import ModelConfig
from ringleader.runtime.peers import Runtime
from ringleader.signals import ReviewEvidence
from ringleader.signals.lockstep import Lockstep
from ringleader.snapshot import LEARNED, Snapshot
from ringleader.snapshot.parameters import model_config, seed_of
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import html_text

if TYPE_CHECKING:
    import pandas as pd


UNFITTED = "this RingDetector is not fitted yet; call fit with reviews first"


class RingDetector(BaseEstimator):  # type: ignore[misc]
    """Finds groups that act together from reviews and a few known accounts.

    Parameters
    ----------
    preset : "default" is the best detector there is, "corrected" the published model with its cures,
        "paper" the published algorithm with its settings.
    learner : "natural-gradient", "sgd", "online-em"; "batch-em" and "gibbs" for small data.
    rank : components; None for the preset's.
    epochs : sweeps over the data; None for the preset's.
    negatives : contrast negatives per review; None for the preset's.
    contrast : the mode whose entities the negatives replace; the first by default.
    joint : whether labels move the factors; None for the preset's.
    count_weight : what a cell seen c times weighs: "one", "log" (1 + log c) or "count".
    holdout : share of the known accounts kept from training, to evaluate on; they are in ``heldout_``.
    prevalence : share of abusive accounts in the market, or {mode: share}; estimated where None.
    heldout_reviews : share of reviews kept from training, to measure the likelihood on.
    patience : stop after so many sweeps without a better held-out likelihood; 0 never stops.
    settings : other settings of ``ringleader.model.config.ModelConfig``, by name.
    threads : threads to use; all by default. The answer does not depend on it.
    device : "cpu", "cuda" (an NVIDIA GPU; needs ringleader[gpu]), or "auto", which takes one where it pays.
    random_state : seed, a whole number.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        learner: str = "natural-gradient",
        rank: int | None = None,
        epochs: int | None = None,
        negatives: int | None = None,
        contrast: str | None = None,
        joint: bool | None = None,
        count_weight: str | None = None,
        holdout: float = 0.0,
        prevalence: float | Mapping[str, float] | None = None,
        heldout_reviews: float = 0.0,
        patience: int = 0,
        settings: Mapping[str, Any] | None = None,
        threads: int | None = None,
        device: str = "auto",
        random_state: int | None = 0,
    ) -> None:
        self.preset = preset
        self.learner = learner
        self.rank = rank
        self.epochs = epochs
        self.negatives = negatives
        self.contrast = contrast
        self.joint = joint
        self.count_weight = count_weight
        self.holdout = holdout
        self.prevalence = prevalence
        self.heldout_reviews = heldout_reviews
        self.patience = patience
        self.settings = settings
        self.threads = threads
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        reviews: Any,
        labels: Any = None,
        *,
        columns: Mapping[str, str] | None = None,
        covariates: Any = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        runtime: Runtime | None = None,
    ) -> RingDetector:
        """Learns from reviews (a SparseTensor, or anything ``read_reviews`` takes) and labels.

        ``columns`` names columns, as in ``read_reviews``; ``covariates`` is a table of mode, entity and any numbers.
        With ``checkpoint``, the model is saved there after every sweep; with ``resume``, a fit that was stopped goes
        on to the bits of one that was not. ``runtime`` is a cluster to run on, such as ``rl.Ray(workers=4)``: the same
        bits again.
        """
        with nullcontext() if runtime is None else runtime.start() as workers:
            if columns is not None:
                reviews = read_reviews(reviews, columns=columns, runtime=workers)
            self.snapshot_, self._stored = snapshots.learn(
                self.get_params(),
                reviews,
                labels,
                covariates,
                callback=callback,
                checkpoint=checkpoint,
                resume=resume,
                at=_now(),
                runtime=workers,
            )
        return self

    def partial_fit(
        self, reviews: Any = None, labels: Any = None, *, again: bool = False, callback: Callback | None = None
    ) -> RingDetector:
        """Takes new reviews and new labels in, and moves only what they touch; old codes stay, new labels hold.

        Reviews that were taken in before, all of them and no others, change nothing, with a warning; ``again`` counts
        them once more. On an unfitted detector this is ``fit``. Whatever interrupts it, the detector answers as before.
        """
        if "snapshot_" not in self.__dict__:
            return self.fit(reviews, labels, callback=callback)
        taken = snapshots.take_in(
            self.snapshot_, reviews, labels, command="partial_fit", at=_now(), again=again, callback=callback
        )
        if taken.repeated is not None:
            warnings.warn(f"{taken.said()}; again=True counts them once more", RingleaderWarning, stacklevel=2)
        self.snapshot_ = taken.snapshot
        return self

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False, keep: int = snapshots.KEEP) -> None:
        """Writes the model to a folder, with all that follows from it; ``keep`` earlier generations stay there.

        Another model in that folder, or one that somebody else changed since this one was loaded, is refused without
        ``overwrite``.
        """
        before = self.__dict__.get("_stored")
        self._stored = snapshots.save(self._fitted(), folder, before, overwrite=overwrite, keep=keep)

    def report(self, path: str | os.PathLike[str] = "report.html", *, since: RingDetector | None = None) -> Path:
        """Writes one HTML page about the model; with ``since``, what changed against that one."""
        self._fitted()
        page = importlib.import_module("ringleader.report")  # by name: pages know models, not the other way round
        written: Path = page.write_report(self, path, since)
        return written

    def model_config(self, tensor: SparseTensor) -> ModelConfig:
        """The settings of the model that these parameters stand for, on that tensor."""
        return model_config(self.get_params(), tensor, seed_of(self.random_state))

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
        """What each input adds to the scores of entities (all of the mode where None): a row for each, in that order.

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
        """What the head of a target reads of every entity of a mode."""
        return self._fitted().inputs(mode, target)

    def suspicion(self, mode: str) -> Floats:
        """What the reviews alone say of every entity of a mode, (n_k,): evidence and lockstep together."""
        return self._fitted().suspicion(mode)

    def evidence(self, mode: str) -> Floats:
        """Popularity-corrected suspicion of every entity of a mode, (n_k,), from the reviews alone."""
        return self._fitted().evidence(mode)

    def review_evidence(self) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every distinct review."""
        return self._fitted().signals.reviews

    def __getattr__(self, name: str) -> Any:
        """Learned attributes, such as ``tensor_``, ``labels_`` or ``history_``, are those of the snapshot."""
        if name[:-1] in LEARNED and name.endswith("_") and "snapshot_" in self.__dict__:
            return getattr(self.snapshot_, name[:-1])
        if name[:-1] in LEARNED and name.endswith("_"):
            raise NotFittedError(UNFITTED)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self, *args: Any, **options: Any) -> str:
        made: str = super().__repr__(*args, **options)
        return "\n".join([made, *self.snapshot_.lines()]) if self.__sklearn_is_fitted__() else made

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html_text(line)}</p>" for line in repr(self).splitlines())

    def __getstate__(self) -> dict[str, Any]:
        kept = super().__getstate__()
        return {name: kept[name] for name in kept if name not in ("_stored", "_folders")}  # open files

    def __sklearn_is_fitted__(self) -> bool:
        return "snapshot_" in self.__dict__

    def _fitted(self) -> Snapshot:
        """The snapshot as it is now."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(UNFITTED)
        return self.snapshot_


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def load(folder: str | os.PathLike[str]) -> RingDetector:
    """A model that ``save`` (or ``ringleader fit --out``) wrote; a checkpoint counts."""
    snapshot, stored = snapshots.load(folder)
    detector = RingDetector(**copy.deepcopy(dict(snapshot.parameters)))
    detector.snapshot_, detector._stored, detector._folders = snapshot, stored, {Path(folder).resolve()}
    return detector
