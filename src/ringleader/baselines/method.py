"""The interface of a baseline: keyword-only settings, ``fit(tensor, labels)``, ``scores(mode)``, higher is worse.

A baseline declares what its settings may be in ``constraints`` and implements ``_fit`` and ``_scores``; the class
``Baseline`` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ringleader.arrays import Floats
from ringleader.errors import LabelError, SettingsError
from ringleader.settings import Constraint, Whole, check_setting
from ringleader.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import pandas as pd

KnownEntities = Mapping[str, Floats]
"""Mode -> (n_k,) float64: 1 abusive, 0 not, NaN unknown."""


class Progress(NamedTuple):
    """Where a fit stands. ``objective`` is what the method raises: a bound, a density; NaN where it has none."""

    step: int  # 1..total
    total: int
    objective: float


Callback = Callable[[Progress], object]
"""Called once per iteration, block or seed, whichever the method counts in. What it returns is ignored."""


class Seed:
    """A whole number from 0, a numpy Generator (used as it is) or None (a fresh seed)."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, np.random.Generator) or Whole(0, optional=True).allows(value)

    def describe(self) -> str:
        return "a whole number of at least 0, a numpy Generator, or None"


class AnyOf:
    """What at least one of several constraints allows."""

    def __init__(self, *constraints: Constraint) -> None:
        self.constraints = constraints

    def allows(self, value: Any) -> bool:
        return any(constraint.allows(value) for constraint in self.constraints)

    def describe(self) -> str:
        return ", or ".join(constraint.describe() for constraint in self.constraints)


class Baseline(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of every baseline.

    Attributes
    ----------
    constraints : setting -> what it may be, checked by ``fit``; what depends on the tensor is left to ``_fit``.
    modes_ : names of the modes of the tensor that was fitted.
    shape_ : entities per mode.
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}
    modes_: tuple[str, ...]
    shape_: tuple[int, ...]

    def fit(
        self,
        tensor: SparseTensor,
        labels: Mapping[str, npt.ArrayLike] | pd.DataFrame | None = None,
        *,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from a tensor. Methods that use no labels accept them and ignore them.

        Parameters
        ----------
        labels : mode -> (n_k,) array of 1, 0 (or -1) and NaN, or a frame with columns mode, entity, label.
        """
        if not isinstance(tensor, SparseTensor):
            raise SettingsError(f"fit needs a SparseTensor, got {type(tensor).__name__}; read_reviews makes one")
        if tensor.n_cells == 0:
            raise SettingsError("the tensor has no cells; there is nothing to fit")
        if int(tensor.counts.min()) < 1:
            raise SettingsError(f"every cell needs a count of at least 1, the smallest is {int(tensor.counts.min())}")
        for name, constraint in self.constraints.items():
            check_setting(name, getattr(self, name), constraint)
        self._fit(tensor, label_arrays(tensor, labels), callback or _silent)
        self.modes_ = tensor.modes
        self.shape_ = tensor.shape
        return self

    def scores(self, mode: str) -> Floats:
        """Suspicion of each entity of a mode, in the order of the codes, (n_k,). Higher is worse."""
        if not hasattr(self, "modes_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first")
        if mode not in self.modes_:
            raise SettingsError(f"there is no mode {mode!r}; the modes are {', '.join(self.modes_)}")
        return np.ascontiguousarray(self._scores(self.modes_.index(mode)), dtype=np.float64)

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        raise NotImplementedError

    def _scores(self, k: int) -> Floats:
        raise NotImplementedError


def _silent(progress: Progress) -> None:
    """The callback of a caller who wants none."""


def label_arrays(tensor: SparseTensor, labels: Mapping[str, npt.ArrayLike] | pd.DataFrame | None) -> KnownEntities:
    """Labels as one (n_k,) array per labelled mode: 1, 0, NaN. Modes without any label are left out."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        labels = _labels_of_frame(tensor, labels)
    arrays = {}
    for mode, of_mode in labels.items():
        k = tensor.mode_index(mode)
        values = np.array(of_mode, dtype=np.float64)
        if values.shape != (tensor.shape[k],):
            raise LabelError(f"labels of {mode} have shape {values.shape}, the mode has {tensor.shape[k]:,} entities")
        values[values == -1.0] = 0.0
        odd = ~(np.isnan(values) | (values == 0.0) | (values == 1.0))
        if odd.any():
            raise LabelError(f"labels of {mode} hold {values[odd][0]:g}; use 1, 0 (or -1) and NaN for unknown")
        if not np.isnan(values).all():
            arrays[tensor.modes[k]] = values
    return arrays


def _labels_of_frame(tensor: SparseTensor, frame: pd.DataFrame) -> dict[str, Floats]:
    """Arrays from a frame with columns mode, entity, label. Entities the tensor does not know are left out."""
    missing = {"mode", "entity", "label"} - set(frame.columns)
    if missing:
        raise LabelError(f"the labels have no column {', '.join(sorted(missing))}; they need mode, entity, label")
    arrays: dict[str, Floats] = {}
    for mode, rows in frame.groupby("mode", sort=True):
        k = tensor.mode_index(str(mode))
        codes = tensor.vocabularies[k].lookup(list(rows["entity"]))
        labels = rows["label"].to_numpy(np.float64)[codes >= 0]
        codes = codes[codes >= 0]
        values = np.full(tensor.shape[k], np.nan)
        values[codes] = labels
        if not np.array_equal(values[codes], labels, equal_nan=True):
            raise LabelError(f"an entity of mode {mode} has two different labels; keep one")
        arrays[str(mode)] = values
    return arrays


def random_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """A generator from a seed, a generator (used as it is) or None (a fresh seed)."""
    return random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(random_state)
