"""RingDetector: the estimator people hold. It keeps one snapshot and swaps it for the next; no mathematics here."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ringleader import snapshot as snapshots
from ringleader.errors import RingleaderWarning
from ringleader.learners.loop import Callback
from ringleader.model.config import ModelConfig
from ringleader.runtime.machine import now
from ringleader.runtime.workers import Runtime, started
from ringleader.snapshot import Snapshot
from ringleader.snapshot.answers import Answers
from ringleader.snapshot.parameters import model_config, seed_of
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor


class RingDetector(Answers, BaseEstimator):  # type: ignore[misc]
    """Finds groups that act together from reviews and a few known accounts.

    Parameters
    ----------
    preset : "default" is the most accurate detector, "corrected" the published model with corrections,
        "paper" the published algorithm with its settings.
    learner : "natural-gradient", "sgd", "online-em"; "batch-em" and "gibbs" for small data.
    rank : components; None for the preset's.
    epochs : sweeps over the data; None for the preset's.
    negatives : contrast negatives per review; None for the preset's.
    contrast : the mode whose entities the negatives replace; the first by default.
    joint : whether labels change the factors; None for the preset's.
    count_weight : the weight of a cell with count c: "one", "log" (1 + log c) or "count"; None: one, and log in
        the default preset where counts are the signal.
    holdout : share of the known accounts held out for evaluation; they are in ``heldout_``.
    prevalence : share of abusive accounts in the market, or {mode: share}; estimated where None.
    heldout_reviews : share of reviews held out to measure the likelihood.
    patience : stop after this many sweeps without a better held-out likelihood; 0 never stops.
    settings : other settings of ``ringleader.model.config.ModelConfig``, by name.
    threads : threads to use; all by default. The result does not depend on it.
    device : "cpu", "cuda" (an NVIDIA GPU; needs ringleader[gpu]), or "auto", which uses one where it is faster.
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
        count: str | None = None,
        covariates: Any = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        runtime: Runtime | None = None,
    ) -> RingDetector:
        """Learns from reviews (a SparseTensor, or anything ``read_reviews`` takes) and labels.

        ``columns`` and ``count`` name columns, as in ``read_reviews``; ``covariates`` is a table of mode, entity and
        numbers. With ``checkpoint``, the model is saved there after every sweep, one with many accounts and few reviews
        after every fourth; ``resume`` continues it. An existing model is replaced only with ``overwrite``;
        it stays in use until the new one is complete. ``runtime`` is a cluster, such as ``rl.Ray()``: same bits.
        """
        with started(runtime) as workers:
            if columns is not None or count is not None:
                reviews = read_reviews(reviews, columns=columns, count=count, runtime=workers)
            learned = snapshots.learn(
                self.get_params(),
                reviews,
                labels,
                covariates,
                callback=callback,
                checkpoint=checkpoint,
                resume=resume,
                overwrite=overwrite,
                at=now(),
                runtime=workers,
            )
        self.__dict__.update(snapshot_=learned[0], _stored=learned[1])  # both or neither, whatever interrupts it
        return self

    def partial_fit(
        self, reviews: Any = None, labels: Any = None, *, again: bool = False, callback: Callback | None = None
    ) -> RingDetector:
        """Adds new reviews and labels and updates only what they affect; codes stay, new labels replace old ones.

        Reviews that the model has (same in all modes, same rating, same time) are left out, with a warning; ``again``
        counts them again. On an unfitted detector this is ``fit``. If it is interrupted, the model is unchanged.
        """
        if "snapshot_" not in self.__dict__:
            return self.fit(reviews, labels, callback=callback)
        taken = snapshots.take_in(
            self._fitted(), reviews, labels, command="partial_fit", at=now(), again=again, callback=callback
        )
        known = taken.said("again=True") if taken.left_out else None
        for said in (known, taken.said_of_alike(), taken.said_of_duplicates()):
            if said is not None:
                warnings.warn(said, RingleaderWarning, stacklevel=2)
        self.snapshot_ = taken.snapshot
        return self

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False, keep: int = snapshots.KEEP) -> None:
        """Writes the model and everything derived from it to a folder; ``keep`` earlier generations are kept.

        Another model in that folder, or one that another process changed since this one was loaded, is replaced only
        with ``overwrite``.
        """
        before = self.__dict__.get("_stored")
        self._stored = snapshots.save(self._fitted(), folder, before, overwrite=overwrite, keep=keep)

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        *,
        since: RingDetector | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Writes one HTML page, with ``since`` what changed against that model; ``overwrite`` replaces a file."""
        self._fitted()
        from ringleader.report import write_report  # pages know models; this is the only way back

        return write_report(self, path, since, overwrite=overwrite)

    def model_config(self, tensor: SparseTensor) -> ModelConfig:
        """The settings of the model that result from these parameters on that tensor."""
        return model_config(self.get_params(), tensor, seed_of(self.random_state))

    def __repr__(self, *args: Any, **options: Any) -> str:
        made: str = super().__repr__(*args, **options)
        return "\n".join([made, *self.snapshot_.lines()]) if self.__sklearn_is_fitted__() else made

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # at once: others may learn or save meanwhile
        return {name: state[name] for name in state if name != "_stored"}  # open files

    def __sklearn_is_fitted__(self) -> bool:
        return "snapshot_" in self.__dict__

    def _fitted(self) -> Snapshot:
        """The snapshot as it is now."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this RingDetector is not fitted yet; call fit with reviews first")
        return self.snapshot_


def load(folder: str | os.PathLike[str]) -> RingDetector:
    """Loads a model that ``save`` (or ``ringleader fit --out``) wrote, or a checkpoint."""
    snapshot, stored = snapshots.load(folder)
    detector = RingDetector(**copy.deepcopy(dict(snapshot.parameters)))
    detector.snapshot_, detector._stored = snapshot, stored
    return detector
