"""One fit without labels, and heads tried on it: what the benchmarks of the head share.

The factors of the default preset do not depend on labels, so one fit serves every choice of labels and of settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import ringleader as rl
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.evaluation.protocol import Split
from ringleader.judge import LabelFree
from ringleader.judge.binary import fit_binary
from ringleader.judge.head import Head, head_table
from ringleader.judge.inputs import Inputs, with_association
from ringleader.judge.neighbours import first_round, with_neighbours
from ringleader.judge.priors import HeadSettings
from ringleader.known.labels import DEFAULT_TARGET, Target


class LabelledMode(NamedTuple):
    """The labels of a mode, and what a head reads."""

    target: Target
    without_neighbours: Inputs
    with_neighbours: Inputs


class LabelFreeFit:
    """A fit without labels; labels come afterwards, as (n_k,) arrays that are NaN where unknown.

    label_free : of a fit that was made already; None to make one.
    """

    def __init__(
        self, tensor: rl.SparseTensor, modes: Sequence[str], seed: int, label_free: LabelFree | None = None
    ) -> None:
        self.tensor, self.seed = tensor, seed
        self.label_free = label_free or rl.RingDetector(random_state=seed).fit(tensor).snapshot_.label_free
        codes = [tensor.mode_index(mode) for mode in modes]
        self.suspicion = {k: self.label_free.signals.suspicion(k).score for k in codes}

    def labelled(self, known: Mapping[str, np.ndarray]) -> dict[str, LabelledMode]:
        """By mode, with the labels of all modes at once."""
        targets = [binary_target(self.tensor.mode_index(mode), labels) for mode, labels in known.items()]
        ties = self.label_free.ties
        ranks = {target.mode: self.label_free.ranks(target.mode) for target in targets}
        first = first_round(ties, targets, ranks, seed=self.seed)
        modes = {}
        for mode, target in zip(known, targets, strict=True):
            inputs = with_association(self.label_free.inputs(target.mode), ties, target.mode, targets, self.seed)
            modes[mode] = LabelledMode(target, inputs, with_neighbours(inputs, ties, target.mode, target, first))
        return modes

    def head(self, target: Target, inputs: Inputs, settings: HeadSettings | None = None) -> Head:
        """The head of one mode on some of its inputs."""
        return fit_binary(
            head_table(
                inputs.values, inputs.names, self.suspicion[target.mode], [inputs.groups[name] for name in inputs.names]
            ),
            target.codes,
            target.values,
            settings,
        )


def binary_target(mode: int, labels: np.ndarray) -> Target:
    """The target of some labels, (n_k,): 1, 0, or NaN where unknown."""
    codes = np.flatnonzero(~np.isnan(labels)).astype(np.int32)
    return Target(mode, DEFAULT_TARGET, "binary", codes, np.where(labels[codes] > 0, 1.0, -1.0))


def tested_auc(split: Split, scores: np.ndarray) -> float:
    """AUC on the tested accounts of a split; of reviewers the activity-matched one, as their activity says much."""
    tested = scores[split.test]
    return auc(split.truth, tested) if split.mode == "seller" else matched_auc(split.truth, tested, split.activity)
