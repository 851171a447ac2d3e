"""Labels that flow, with those of each fold left out in turn, so that nobody's own label is in what it gets.

Folds depend on who is labelled, never on how.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.settings import Number, Settings, Whole


class LabelSet(NamedTuple):
    """Labelled entities of one mode, each once, and their labels: +1 and -1, or any numbers."""

    codes: npt.ArrayLike
    values: npt.ArrayLike


@dataclass(frozen=True)
class Flow(Settings):
    """How labels flow.

    folds : the labelled are held out in so many parts; at most as many as there are labels.
    restart : share of the labels themselves in every step. iterations : steps.
    """

    folds: Annotated[int, Whole(2)] = 10
    seed: Annotated[int, Whole(0)] = 0
    restart: Annotated[float, Number(above=0, below=1)] = 0.15
    iterations: Annotated[int, Whole(1)] = 10


class OwnSpan(NamedTuple):
    """The entities of a mode that this process owns: the first, the first behind them; and how many there are."""

    first: int
    last: int
    total: int


class HeldOutLabels(NamedTuple):
    """Labels with those of each fold left out in turn."""

    places: Numbers  # (m,) of the labelled that this process owns, counted from the first entity that it owns
    folds: Numbers  # (m,) of each its own
    labels: Floats  # (m, folds), 0 in its own

    def folds_of(self, size: int) -> Numbers:
        """The fold of each of so many entities, -1 where it is not labelled."""
        folds = np.full(size, -1, np.int64)
        folds[self.places] = self.folds
        return folds


def hold_out(labels: LabelSet, own: OwnSpan, flow: Flow) -> HeldOutLabels:
    """z of the labelled, with the labels of each fold left out in turn."""
    n = own.total
    who, values = np.asarray(labels.codes, np.int64).reshape(-1), np.asarray(labels.values, np.float64).reshape(-1)
    if len(who) != len(values):
        raise SettingsError(f"{len(who)} labelled entities, but {len(values)} labels")
    if len(np.unique(who)) != len(who):
        raise SettingsError("an entity is labelled twice; keep one label each")
    if len(who) and not (who.min() >= 0 and who.max() < n):
        raise SettingsError(f"labels name entities from {who.min()} to {who.max()}, but there are {n}")
    if not np.isfinite(values).all():
        raise SettingsError("labels must be finite numbers")
    folds = max(min(flow.folds, len(who)), 1)
    dealt = np.empty(len(who), np.int64)
    dealt[np.argsort(who)] = np.random.default_rng([flow.seed, 0xF01D]).permutation(len(who)) % folds
    mine = np.flatnonzero((who >= own.first) & (who < own.last))
    columns = np.repeat(values[mine, None], folds, axis=1)
    columns[np.arange(len(mine)), dealt[mine]] = 0.0
    return HeldOutLabels(who[mine] - own.first, dealt[mine], columns)


def read_folds(flow: Floats, fold: Numbers) -> Floats:
    """The labelled from the flow without their fold, everyone else from the mean of all: the same number of labels."""
    values: Floats = flow.mean(axis=1)
    labelled = np.flatnonzero(fold >= 0)
    values[labelled] = flow[labelled, fold[labelled]]
    return values
