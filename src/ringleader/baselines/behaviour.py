"""What people use today: gradient boosting and random forests on what each account does.

``columns`` says what they learn from:

- ``simple``: the handful that everybody computes: how many reviews, in how many weeks, share in the largest burst,
  mean and spread of ratings, share of the highest, how many counterparts of each kind and how active these are.
- ``plain``: what an analyst would compute for each account by itself: volume, bursts, rhythm, rating, deviation,
  counterpart, concentration and age (groups of ``signals.behaviour``). Not the group ``crowd``, which asks who else
  came at the same time, and not lockstep: these are about acting together, and the point of the comparison.
- ``all``: these two as well. Lockstep gives mean and top-10 mean, of all reviews, boosts and attacks.
- ``none``: nothing but ``extra``.

A mode is learned from its own labels only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from ringleader.arrays import Floats
from ringleader.baselines.method import AnyOf, Baseline, Callback, KnownEntities, Progress
from ringleader.errors import LabelError, SettingsError
from ringleader.settings import Choice, Constraint, Number, Whole
from ringleader.signals.behaviour import behaviour, read_market
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.sparse import SparseTensor

Extra = Mapping[str, tuple[Sequence[str], npt.ArrayLike]]
"""Mode -> (names of columns, (n_k, F) values in the order of the codes)."""

PLAIN_GROUPS = ("volume", "burst", "rhythm", "rating", "deviation", "counterpart", "concentration", "age")
SIMPLE = ("reviews", "active_bins", "burst_share", "rating_mean", "rating_spread", "rating_top")
SIMPLE_ENDS = ("_number", "_activity")


class BehaviourClassifier(Baseline):
    """A classifier of accounts by their behaviour: what boosting and forest share.

    Attributes
    ----------
    names_ : learned mode -> names of its columns.
    probabilities_ : learned mode -> (n_k,), at the prevalence of the labels.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "columns": Choice("simple", "plain", "all", "none"),
        "random_state": Whole(0),
    }
    columns: str
    extra: Extra | None
    random_state: int

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        usable = [mode for mode, known in labels.items() if len(np.unique(known[~np.isnan(known)])) == 2]
        self._label_counts = {mode: [int((labels[mode] == side).sum()) for side in (1, 0)] for mode in labels}
        if not usable:
            raise LabelError(self._lacking(tensor.modes[0] if not labels else next(iter(labels))))
        features = mode_features(tensor, usable, self.columns, self.extra)
        self.names_: dict[str, tuple[str, ...]] = {}
        self.probabilities_: dict[str, Floats] = {}
        for step, mode in enumerate(usable, 1):
            names, values = features[mode]
            known = np.flatnonzero(~np.isnan(labels[mode]))
            # A few hundred rows: threads would only wait for each other.
            with threadpool_limits(1):
                classifier = self._classifier(len(known)).fit(values[known], labels[mode][known] == 1.0)
                probabilities = classifier.predict_proba(values)[:, 1]
            self.names_[mode] = names
            self.probabilities_[mode] = np.ascontiguousarray(probabilities, dtype=np.float64)
            callback(Progress(step, len(usable), float("nan")))

    def _scores(self, k: int) -> Floats:
        mode = self.modes_[k]
        if mode not in self.probabilities_:
            raise LabelError(self._lacking(mode))
        return self.probabilities_[mode]

    def _lacking(self, mode: str) -> str:
        bad, good = self._label_counts.get(mode, [0, 0])
        return (
            f"{type(self).__name__} learns a mode from its own labels, and {mode} has {bad:,} bad and {good:,} good; "
            "label at least one of each"
        )

    def _classifier(self, known: int) -> Any:
        """An unfitted classifier for so many labels."""
        raise NotImplementedError


class Boosting(BehaviourClassifier):
    """Gradient boosting of trees (scikit-learn's HistGradientBoostingClassifier).

    Parameters
    ----------
    columns : "simple", "plain", "all" or "none", see the module.
    extra : mode -> (names, (n_k, F) values), further columns; a mode that is not there gets none.
    learning_rate, max_iter, max_leaf_nodes, min_samples_leaf, l2_regularization : scikit-learn's; leaves need
        no more than a tenth of the labels.
    random_state : seed.
    """

    constraints: ClassVar[dict[str, Constraint]] = BehaviourClassifier.constraints | {
        "learning_rate": Number(above=0),
        "max_iter": Whole(1),
        "max_leaf_nodes": Whole(2),
        "min_samples_leaf": Whole(1),
        "l2_regularization": Number(least=0),
    }

    def __init__(
        self,
        *,
        columns: str = "plain",
        extra: Extra | None = None,
        learning_rate: float = 0.05,
        max_iter: int = 120,
        max_leaf_nodes: int = 8,
        min_samples_leaf: int = 8,
        l2_regularization: float = 1.0,
        random_state: int = 0,
    ) -> None:
        self.columns = columns
        self.extra = extra
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.random_state = random_state

    def _classifier(self, known: int) -> Any:
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_leaf_nodes=self.max_leaf_nodes,
            # With a dozen labels and the full size no split would be allowed, and all scores would be equal.
            min_samples_leaf=max(1, min(self.min_samples_leaf, known // 10)),
            l2_regularization=self.l2_regularization,
            early_stopping=False,
            random_state=self.random_state,
        )


class Forest(BehaviourClassifier):
    """Random forest (scikit-learn's RandomForestClassifier).

    Parameters
    ----------
    columns, extra : as for Boosting.
    n_estimators, min_samples_leaf, max_features : scikit-learn's.
    random_state : seed.
    """

    constraints: ClassVar[dict[str, Constraint]] = BehaviourClassifier.constraints | {
        "n_estimators": Whole(1),
        "min_samples_leaf": Whole(1),
        "max_features": AnyOf(Choice("sqrt", "log2"), Number(above=0, most=1)),
    }

    def __init__(
        self,
        *,
        columns: str = "plain",
        extra: Extra | None = None,
        n_estimators: int = 200,
        min_samples_leaf: int = 2,
        max_features: str | float = "sqrt",
        random_state: int = 0,
    ) -> None:
        self.columns = columns
        self.extra = extra
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.random_state = random_state

    def _classifier(self, known: int) -> Any:
        return RandomForestClassifier(
            self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=self.random_state,
            n_jobs=1,
        )


def mode_features(
    tensor: SparseTensor, modes: Sequence[str], columns: str = "plain", extra: Extra | None = None
) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """For each mode the names of its columns and their values, (n_k, F), in the order of the codes."""
    if extra is not None and not isinstance(extra, Mapping):
        raise SettingsError(f"extra is {type(extra).__name__}; give a mapping of mode to (names, values)")
    further = {mode: _checked_columns(tensor, mode, *pair) for mode, pair in (extra or {}).items()}
    market = read_market(tensor) if columns != "none" else None
    lockstep = find_lockstep(tensor) if columns == "all" else None
    features = {}
    for mode in modes:
        names: list[str] = []
        parts: list[Floats] = []
        if market is not None:
            covariates = behaviour(tensor, mode, market=market)
            wanted = [i for i, n in enumerate(covariates.names) if _wanted(n, covariates.groups[n], columns)]
            names += [covariates.names[i] for i in wanted]
            parts.append(covariates.values[:, wanted])
        if lockstep is not None:
            together = lockstep.entity_scores(tensor, mode)
            names += list(together)
            parts += [values[:, None] for values in together.values()]
        if mode in further:
            names += further[mode][0]
            parts.append(further[mode][1])
        if not names:
            raise SettingsError(f"columns is 'none' and extra has nothing for {mode}; there is nothing to learn from")
        features[mode] = tuple(names), np.ascontiguousarray(np.concatenate(parts, axis=1))
    return features


def _wanted(name: str, group: str, columns: str) -> bool:
    if columns == "simple":
        return name in SIMPLE or name.endswith(SIMPLE_ENDS)
    return columns == "all" or group in PLAIN_GROUPS


def _checked_columns(
    tensor: SparseTensor, mode: str, names: Sequence[str], values: npt.ArrayLike
) -> tuple[list[str], Floats]:
    """Names and values of the columns a user adds, or an error."""
    table = np.asarray(values, np.float64)
    size = tensor.shape[tensor.mode_index(mode)]
    if isinstance(names, str) or table.shape != (size, len(names)):
        raise SettingsError(
            f"extra columns of {mode} have shape {table.shape}; give one row for each of {size:,} entities "
            f"and one column for each name"
        )
    if not np.isfinite(table).all():
        raise SettingsError(f"extra columns of {mode} hold values that are not finite; fill them in first")
    return list(names), table
