"""Logistic CP, the paper's own model, with the interface of a baseline.

- ``LogisticCP``: without labels. Scored like every factorisation here: the largest weighted, column-normalised value.
- ``SemiSupervised``: with labels, by one of the three learners; a labelled mode is scored by its head. Modes
  without labels are scored as above.
- ``Detector``: the detector's own scores, with labels or without.

All three are ``RingDetector``; presets are its own (``paper``, ``corrected``, ``default``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ringleader.arrays import Floats
from ringleader.baselines.factor_scores import SCORING, NormalForm, factor_scores, normal_form
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress
from ringleader.detector import RingDetector
from ringleader.errors import LabelError, SettingsError
from ringleader.known.labels import DEFAULT_TARGET, Label, Labels
from ringleader.learners import SweepInfo
from ringleader.settings import Choice, Constraint, Whole
from ringleader.tensor.sparse import SparseTensor


class Logistic(Baseline):
    """What the three share: settings, fitting a RingDetector, reading it.

    Parameters
    ----------
    preset : "corrected", "paper" or "default". learner : "natural-gradient", "sgd" or "online-em".
    rank, epochs : None for the preset's. settings : further ones of ``ModelConfig``, by name.
    threads : the answer does not depend on them. random_state : seed.

    Attributes
    ----------
    detector_ : the fitted RingDetector.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "preset": Choice("paper", "corrected", "default"),
        "learner": Choice("natural-gradient", "sgd", "online-em"),
        "rank": Whole(1, optional=True),
        "epochs": Whole(1, optional=True),
        "threads": Whole(1, optional=True),
        "random_state": Whole(0, optional=True),
    }

    def __init__(
        self,
        *,
        preset: str = "corrected",
        learner: str = "natural-gradient",
        rank: int | None = None,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.preset = preset
        self.learner = learner
        self.rank = rank
        self.epochs = epochs
        self.settings = settings
        self.threads = threads
        self.random_state = random_state

    def _fit_detector(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise SettingsError(f"settings is {self.settings!r}; choose a mapping of names of ModelConfig to values")
        detector = RingDetector(**{name: getattr(self, name) for name in Logistic().get_params()})

        def after_sweep(info: SweepInfo) -> None:
            total = info.last_sweep
            callback(Progress(info.sweep, total, info.log_posterior))

        detector.fit(tensor, detector_labels(tensor, labels), callback=after_sweep)
        self.detector_ = detector

    def _detector_scores(self, k: int) -> Floats:
        """The detector's own scores in the order of the codes."""
        return self.detector_.scores_by_code(self.modes_[k])["score"].to_numpy(np.float64)

    def _form(self) -> NormalForm:
        state = self.detector_.state_
        return normal_form(state.component_weights, [np.asarray(state.rows(k), np.float64) for k in range(state.modes)])


class LogisticCP(Logistic):
    """Logistic CP without labels.

    Parameters
    ----------
    scoring : "largest" or "divergence", see ``factor_scores``. The others : see ``Logistic``.
    """

    constraints: ClassVar[dict[str, Constraint]] = Logistic.constraints | {"scoring": SCORING}

    def __init__(
        self,
        *,
        preset: str = "corrected",
        learner: str = "natural-gradient",
        rank: int | None = None,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        scoring: str = "largest",
        threads: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(
            preset=preset,
            learner=learner,
            rank=rank,
            epochs=epochs,
            settings=settings,
            threads=threads,
            random_state=random_state,
        )
        self.scoring = scoring

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        self._fit_detector(tensor, {}, callback)

    def _scores(self, k: int) -> Floats:
        return factor_scores(self._form(), k, self.scoring)


class SemiSupervised(Logistic):
    """Logistic CP that also explains the labels, of one mode or several. Parameters : see ``Logistic``."""

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        if not labels:
            raise LabelError("a semi-supervised fit needs labels and has none; without any use logistic-cp")
        self._labelled = frozenset(labels)
        self._fit_detector(tensor, labels, callback)

    def _scores(self, k: int) -> Floats:
        if self.modes_[k] in self._labelled:
            return self._detector_scores(k)
        return factor_scores(self._form(), k)


class Detector(Logistic):
    """The detector, with the preset ``default`` as ``ringleader fit`` runs it. Parameters : see ``Logistic``."""

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        self._fit_detector(tensor, labels, callback)

    def _scores(self, k: int) -> Floats:
        return self._detector_scores(k)


def detector_labels(tensor: SparseTensor, labels: KnownEntities) -> Labels | None:
    """Label arrays as the detector takes them; None where there are none."""
    entries: list[Label] = []
    for mode, known in labels.items():
        codes = np.flatnonzero(~np.isnan(known))
        entities = tensor.vocabulary(mode).text(codes)
        values = np.where(known[codes] == 1.0, 1.0, -1.0)
        entries += [Label(mode, e, DEFAULT_TARGET, float(v)) for e, v in zip(entities, values, strict=True)]
    return Labels(tuple(sorted(entries))) if entries else None
