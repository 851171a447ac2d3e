"""Scorer: which score a mode has, chosen once.

A mode with labels has the probability (or the value) of its head; under the published presets that of the joint head,
which is linear in the factors. A mode without labels has the score transferred from modes with some, or else the
suspicion. Whoever needs a score, its parts or the words for it asks the scorer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.judge.contributions import Contributions, head_contributions
from ringleader.judge.head import Head, Judgement, never_certain
from ringleader.judge.inputs import Inputs
from ringleader.judge.judge import Judge
from ringleader.judge.transfer import Transfer
from ringleader.kernels.elementary import logistic, ndtri
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.model.posterior import head_log_odds
from ringleader.model.state import State
from ringleader.signals import Signals, Suspicion
from ringleader.signals.crowd import CROWD_NAME

NO_LABELS = "no labels of this kind"
JOINT_EVIDENCE = "log_odds_mean"
"""The input that joint heads read beside the factors, by its name among the inputs of heads."""


class Scorer(Protocol):
    """The score of every entity of a mode.

    kind : which of the four it is. target : what it is a score of, or None where no label says.
    """

    @property
    def kind(self) -> Literal["head", "joint", "transferred", "label-free"]: ...

    @property
    def target(self) -> Target | None: ...

    @property
    def note(self) -> str:
        """How the score was made, in words."""

    @property
    def score(self) -> Floats:
        """(n_k,) what to sort by."""

    @property
    def judgement(self) -> Judgement | None:
        """Probability (or value) with its bounds; None where the score is neither."""

    @property
    def inputs(self) -> Inputs:
        """What the score was made from."""

    def contributions(self, codes: Numbers) -> Contributions:
        """What adds up to the scores of entities."""


class JointHeads(NamedTuple):
    """The published heads of a model, as its state holds them.

    trained : whether labels moved the factors
    find_deviation : standard deviation of psi, (n_k,), by index of the target
    """

    state: State
    trained: bool
    find_deviation: Callable[[int], Floats]

    @property
    def reads_evidence(self) -> bool:
        return len(self.state.evidence_slopes) > 0


@dataclass(frozen=True, eq=False)
class HeadScorer:
    """The head of a target.

    find_suspicion, find_head, find_judgement, find_inputs : called when they are first asked for.
    """

    target: Target
    find_suspicion: Callable[[], Suspicion]
    find_head: Callable[[], Head]
    find_judgement: Callable[[], Judgement]
    find_inputs: Callable[[], Inputs]
    kind: Literal["head"] = "head"

    @property
    def note(self) -> str:
        return self.find_head().note

    @property
    def score(self) -> Floats:
        return self.judgement.value

    @cached_property
    def judgement(self) -> Judgement:
        return self.find_judgement()

    @cached_property
    def inputs(self) -> Inputs:
        return self.find_inputs()

    def contributions(self, codes: Numbers) -> Contributions:
        return head_contributions(self.find_head(), codes, self.find_suspicion())


@dataclass(frozen=True, eq=False)
class JointScorer:
    """The published head, linear in the factor rows and trained with them; with the cures also in the own evidence.

    The labelled are scored at their rows, which their labels moved, as published.

    psi : (n_k,) log-odds or value of each entity
    """

    target: Target
    target_index: int
    heads: JointHeads
    find_inputs: Callable[[], Inputs]
    kind: Literal["joint"] = "joint"

    @property
    def note(self) -> str:
        read = "the factors and the evidence" if self.heads.reads_evidence else "the factors"
        return f"linear in {read}, trained with them"

    @cached_property
    def psi(self) -> Floats:
        return head_log_odds(self.heads.state, self.target_index, self.target.mode)

    @property
    def score(self) -> Floats:
        return self._said(self.psi)

    @cached_property
    def judgement(self) -> Judgement:
        """With bounds where the head reads evidence; the published one has none."""
        if not self.heads.reads_evidence:
            unknown = np.full(len(self.psi), np.nan)
            return Judgement(self.score, unknown, unknown)
        reach = float(ndtri(0.95)) * self.heads.find_deviation(self.target_index)
        return Judgement(self.score, self._said(self.psi - reach), self._said(self.psi + reach))

    def _said(self, psi: Floats) -> Floats:
        """The values, or the probabilities, of log-odds."""
        return psi if self.target.kind == "real" else never_certain(np.asarray(logistic(psi)))

    @cached_property
    def inputs(self) -> Inputs:
        return self.find_inputs()

    def contributions(self, codes: Numbers) -> Contributions:
        """A part for each component and, where the head reads it, for the evidence: parts and intercept sum to psi."""
        state, mode = self.heads.state, self.target.mode
        amounts = state.rows(mode)[codes].astype(np.float64) * state.heads[self.target_index, 1:]
        names = tuple(f"component {r + 1}" for r in range(amounts.shape[1]))
        if self.heads.reads_evidence:
            own = state.evidence_slopes[self.target_index] * state.evidence_of(mode)[codes]
            names, amounts = (*names, JOINT_EVIDENCE), np.column_stack([amounts, own])
        unit = "log-odds" if self.target.kind == "binary" else "value"
        return Contributions(names, amounts, unit, float(state.heads[self.target_index, 0]))


@dataclass(frozen=True, eq=False)
class TransferredScorer:
    """The score of a mode without labels, where others have some."""

    transferred: Transfer
    find_inputs: Callable[[], Inputs]
    kind: Literal["transferred"] = "transferred"
    target: None = None
    judgement: None = None

    @property
    def note(self) -> str:
        return self.transferred.note

    @property
    def score(self) -> Floats:
        return self.transferred.score

    @cached_property
    def inputs(self) -> Inputs:
        return self.transferred.added_to(self.find_inputs())

    def contributions(self, codes: Numbers) -> Contributions:
        amounts = np.stack([part[codes] for part in self.transferred.parts], axis=1)
        return Contributions(self.transferred.names, amounts, "suspicion")


@dataclass(frozen=True, eq=False)
class LabelFreeScorer:
    """The suspicion: what the reviews alone say. ``target`` has labels where they taught no head."""

    signals: Signals
    mode: int
    target: Target | None
    find_inputs: Callable[[], Inputs]
    kind: Literal["label-free"] = "label-free"
    judgement: None = None

    @property
    def note(self) -> str:
        why = NO_LABELS if self.target is None else "no head was learned from its labels"
        if CROWD_NAME in self.signals.suspicion(self.mode).names:
            return f"{why}: the suspicion alone, by {self.signals.order}"
        return f"{why}: the suspicion alone"

    @property
    def score(self) -> Floats:
        return self.signals.suspicion(self.mode).score

    @cached_property
    def inputs(self) -> Inputs:
        return self.find_inputs()

    def contributions(self, codes: Numbers) -> Contributions:
        suspicion = self.signals.suspicion(self.mode)
        amounts = np.stack([part[codes] for part in suspicion.parts], axis=1) / len(suspicion.parts)
        return Contributions(suspicion.names, amounts, "suspicion")


def choose_scorer(judge: Judge, mode: int, target_index: int | None, joint: JointHeads | None) -> Scorer:
    """The scorer of a mode for a target, by its index among the targets, or for none.

    joint : under the published presets, and where a fit was stopped before its heads were learned; None by default
    """
    target = judge.targets[target_index] if target_index is not None else None
    name = target.name if target is not None else DEFAULT_TARGET
    if joint is None:
        if target_index is not None and target is not None:
            return HeadScorer(
                target,
                lambda: judge.signals.suspicion(mode),
                lambda: judge.head(target_index),
                lambda: judge.judgement(target_index),
                lambda: judge.head_inputs(target_index),
            )
        transferred = judge.transfer(mode)
        if transferred is not None:
            return TransferredScorer(transferred, lambda: judge.inputs(mode, transferred.target, False))
    elif target is not None and target_index is not None and joint.trained:
        return JointScorer(target, target_index, joint, lambda: judge.inputs(mode, name, False))
    return LabelFreeScorer(judge.signals, mode, target, lambda: judge.inputs(mode, name, False))
