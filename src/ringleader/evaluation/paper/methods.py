"""The rows of the tables, the paper's and ours: every method, and the settings it may be tuned over.

Every method gets the same number of candidates, its own defaults first. They are compared on markets of their own,
which appear in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.baselines.method import Baseline
from ringleader.baselines.registry import baseline
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation import metrics
from ringleader.evaluation.protocol import Split, market_split
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import plural

MODES = ("seller", "reviewer")
BUDGET = 4
"""Candidates of each method."""
STARTS = 3
"""Random starts over which the scores of factorisations are averaged; docs/benchmarks.md has what they are worth."""
LEARNERS = {"natural-gradient": "ss-natural-gradient", "sgd": "ss-sgd", "online-em": "ss-online-em"}
STARTING = ("bptf", "bnbcp-svi", "logistic-cp", *LEARNERS.values())

SettingValues = Mapping[str, Any]


class Method(NamedTuple):
    """One row of a table."""

    name: str  # in our tables
    registry: str
    group: str  # "paper", "beside" it, or "today"
    labelled: bool
    fixed: SettingValues  # what the row stands for
    candidates: tuple[SettingValues, ...]  # ``BUDGET`` of them, the defaults first
    printed: str | None = None  # name of its row in ``protocol.PRINTED``

    @property
    def starts_at_random(self) -> bool:
        """Whether its scores are averaged over random starts: factorisations that do not start from lockstep."""
        return self.registry in STARTING and self.fixed.get("preset") != "corrected"


class PaperMarket(NamedTuple):
    """A generated market, ready to be fitted."""

    seed: int
    market: Marketplace
    tensor: SparseTensor
    splits: dict[str, Split]
    scores: dict[tuple[str, str], Floats]  # by method and mode, once the tables have them


def paper_market(reviews: int, difficulty: str, seed: int) -> PaperMarket:
    """A market and its published splits."""
    made = marketplace(reviews, difficulty=difficulty, seed=seed)
    tensor = read_reviews(made.reviews)
    return PaperMarket(seed, made, tensor, {mode: market_split(tensor, made.truth, mode) for mode in MODES}, {})


_PAPER: tuple[SettingValues, ...] = ({}, {"rank": 4}, {"epochs": 2}, {"epochs": 12})
_FIXED: SettingValues = {"free_targets": False, "learn_lambda": False, "learn_variances": False}
"""Priors at variance 1 and non-negative rows in place of learned ones: what the default detector has."""
_CORRECTED: tuple[SettingValues, ...] = ({}, {"settings": _FIXED}, {"settings": _FIXED, "rank": 48})
_LAST: dict[str, SettingValues] = {
    "natural-gradient": {"epochs": 2},
    "sgd": {"settings": {"gradient_scale": 2.0}},
    "online-em": {"epochs": 2},
}
"""The fourth candidate of each learner: fewer sweeps, or longer steps for the learner that takes the shortest."""


def _logistic(preset: str) -> list[Method]:
    """Logistic CP without labels, and with them by each learner, in one preset."""
    mark, fixed = f" [{preset}]", {"preset": preset}
    semi_supervised = []
    for learner, registry in LEARNERS.items():
        choices = _PAPER if preset == "paper" else (*_CORRECTED, _LAST[learner])
        semi_supervised.append(Method(registry + mark, registry, "paper", True, fixed, choices, registry))
    choices = _PAPER if preset == "paper" else (*_CORRECTED, _LAST["natural-gradient"])
    return [
        Method("logistic-cp" + mark, "logistic-cp", "paper", False, fixed, choices, "logistic-cp"),
        *semi_supervised[::-1],
    ]


def _method(
    name: str, group: str, labelled: bool, candidates: Sequence[SettingValues], *, row: str = "", **fixed: Any
) -> Method:
    printed = name if group == "paper" else None
    return Method(row or name, name, group, labelled, fixed, ({}, *candidates), printed)


METHODS: tuple[Method, ...] = (
    _method("mzoom", "paper", False, [{"density": "ari"}, {"density": "geo"}, {"n_blocks": 10}]),
    _method("bptf", "paper", False, [{"rank": 5}, {"rank": 24}, {"alpha": 1.0}]),
    _method("bnbcp-svi", "paper", False, [{"rank": 5}, {"rank": 24}, {"concentration": 1.0}]),
    *_logistic("paper"),
    *_logistic("corrected"),
    _method(
        "bnbcp-svi",
        "beside",
        True,
        [{"rank": 24}, {"label_weight": 10.0}, {"rank": 24, "label_weight": 10.0}],
        row="bnbcp-svi, with labels",
    ),
    _method("crossspot", "beside", False, [{"n_seeds": 80}, {"n_blocks": 10}, {"seeding": "random"}]),
    _method("multiaspect", "beside", False, [{"rank": 5}, {"rank": 24}, {"bins_per_decade": 10}]),
    _method("degree", "today", False, [{}, {}, {}]),
    _method("burst", "today", False, [{"window": 1}, {"window": 6}, {"window": 10}]),
    _method("propagation", "today", True, [{"alpha": 0.5}, {"alpha": 0.95}, {"normalisation": "mean"}]),
    _method("forest", "today", True, [{"min_samples_leaf": 1}, {"min_samples_leaf": 5}, {"max_features": 0.5}]),
    _method("boosting", "today", True, [{"learning_rate": 0.03}, {"max_leaf_nodes": 4}, {"l2_regularization": 10.0}]),
    _method("ringleader", "today", False, [{"epochs": 2}, {"epochs": 8}, {"rank": 48}], row="ringleader, no labels"),
    _method("ringleader", "today", True, [{"epochs": 2}, {"epochs": 8}, {"rank": 48}]),
)


def make(method: Method, settings: SettingValues, seed: int, starts: int = STARTS) -> Baseline:
    """The unfitted method: what its row stands for, and the settings chosen."""
    asked = {**method.fixed, **settings, "random_state": seed}
    return baseline(method.registry, starts=starts if method.starts_at_random else 1, **asked)


def fitted(
    method: Method, settings: SettingValues, market: PaperMarket, mode: str | None, seed: int, starts: int = STARTS
) -> Baseline:
    """The method on a market, with the known labels of one mode where it takes labels."""
    labels = market.splits[mode].labels if method.labelled and mode is not None else None
    return make(method, settings, seed, starts).fit(market.tensor, labels)


class ChosenSettings(NamedTuple):
    """What was chosen for a method on a mode, and what every candidate reached."""

    settings: SettingValues
    aucs: tuple[float, ...]


def choose(
    methods: Sequence[Method],
    markets: Sequence[PaperMarket],
    *,
    budget: int = BUDGET,
    starts: int = STARTS,
    say: Callable[[str], None] = lambda text: None,
) -> dict[tuple[str, str], ChosenSettings]:
    """(name, mode) -> the best of the first ``budget`` candidates by mean AUC on the tested of the markets.

    The first of equals wins. With a budget of 1 nothing is fitted: everyone keeps the defaults.
    """
    choices: dict[tuple[str, str], ChosenSettings] = {}
    for method in methods:
        tried = method.candidates[:budget]
        if budget == 1 or not any(method.candidates):
            choices.update({(method.name, mode): ChosenSettings(method.candidates[0], ()) for mode in MODES})
            continue
        aucs = {mode: [0.0] * len(tried) for mode in MODES}
        for i, settings in enumerate(tried):
            for market in markets:
                for mode, value in _aucs(method, settings, market, starts).items():
                    aucs[mode][i] += value / len(markets)
        for mode in MODES:
            best = int(np.argmax(aucs[mode]))
            choices[method.name, mode] = ChosenSettings(tried[best], tuple(aucs[mode]))
            chosen = dict(tried[best]) or "its defaults"
            say(f"tuning {method.name} on {plural(mode)}: {max(aucs[mode]):.3f} with {chosen}")
    return choices


def _aucs(method: Method, settings: SettingValues, market: PaperMarket, starts: int) -> dict[str, float]:
    """AUC on the tested of each mode; one fit serves both where no labels are shown."""
    shared = None if method.labelled else fitted(method, settings, market, None, market.seed, starts)
    aucs = {}
    for mode, split in market.splits.items():
        model = shared or fitted(method, settings, market, mode, market.seed, starts)
        aucs[mode] = metrics.auc(split.truth, model.scores(mode)[split.test])
    return aucs
