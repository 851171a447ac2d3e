"""What follows from a fitted state: evidence, lockstep, suspicion, cores, and the heads with what they read.

``Findings`` finds each thing when it is first asked for, and keeps it. Modes are codes here; names are the detector's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.cores import Cores, CoreSettings, find_cores
from ringleader.explain.reasons import Weighed
from ringleader.judge.inputs import Inputs, shared_inputs, with_association, with_given
from ringleader.judge.neighbours import LEAST_GAIN, LEAST_MODES, FirstRound, first_round, with_company
from ringleader.judge.targets import AnyHead, contributions, fit_target, labels_likelihood
from ringleader.judge.transfer import OtherMode, score_other_mode
from ringleader.known.covariates import AlignedCovariates
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.signals.behaviour import Market, behaviour, read_market
from ringleader.signals.evidence import (
    SHRINK_REVIEWS,
    ReviewEvidence,
    entity_evidence,
    entity_suspicion,
    review_evidence,
    suspicion_parts,
)
from ringleader.signals.lockstep import Lockstep, find_lockstep


class Findings:
    """What a fitted state says of the reviews it was fitted to.

    problem, state : the fit. given : covariates of the user. lockstep : where it is known already.
    """

    def __init__(
        self,
        problem: Problem,
        state: State,
        given: AlignedCovariates,
        threads: int | None,
        lockstep: Lockstep | None = None,
    ) -> None:
        self.problem, self.state, self.given, self.threads = problem, state, given, threads
        self.known_lockstep = lockstep
        self._evidence: ReviewEvidence | None = None
        self._market: Market | None = None
        self._cores: Cores | None = None
        self._inputs: dict[int, Inputs] = {}
        self._first_rounds: dict[str, FirstRound] = {}
        self._other_modes: dict[int, tuple[tuple[AnyHead, ...], OtherMode | None]] = {}

    # -- without labels -----------------------------------------------------------------------------

    def review_evidence(self) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every distinct review."""
        if self._evidence is None:
            self._evidence = review_evidence(self.problem, self.state)
        return self._evidence

    def evidence(self, mode: int) -> Floats:
        """Popularity-corrected evidence of every entity of a mode, (n_k,)."""
        shrink = SHRINK_REVIEWS if mode == self.problem.config.contrast else 0.0
        return entity_evidence(self.problem.tensor, self.review_evidence().evidence, mode, shrink=shrink)

    def lockstep(self) -> Lockstep:
        """Who acts together with whom beyond chance."""
        if self.known_lockstep is None:
            config = self.problem.config
            self.known_lockstep = find_lockstep(self.problem.tensor, actor=config.contrast, threads=self.threads)
        return self.known_lockstep

    def suspicion(self, mode: int) -> Floats:
        """What the reviews alone say of every entity of a mode, (n_k,): evidence and lockstep together."""
        return entity_suspicion(self.problem.tensor, mode, self.review_evidence(), self.lockstep())

    def suspicion_parts(self, mode: int) -> tuple[tuple[str, ...], list[Floats]]:
        """What the suspicion is made of, by name."""
        return suspicion_parts(self.problem.tensor, mode, self.review_evidence(), self.lockstep())

    def cores(self, settings: CoreSettings | None = None) -> Cores:
        """Groups that act in lockstep; those of the usual settings are kept."""
        actor = self.problem.config.contrast
        if settings is not None:
            return find_cores(self.problem.tensor, self.lockstep(), settings, actor=actor)
        if self._cores is None:
            self._cores = find_cores(self.problem.tensor, self.lockstep(), actor=actor)
        return self._cores

    # -- with labels --------------------------------------------------------------------------------

    def heads(self, prevalence: float | Mapping[str, float] | None) -> tuple[AnyHead, ...]:
        """One for each target. Company is read where several modes are labelled, or where the labels ask for it."""
        targets = self.problem.targets
        suspicion = {k: self.suspicion(k) for k in dict.fromkeys(target.mode for target in targets)}
        heads = []
        for target in targets:
            mode = self.problem.tensor.modes[target.mode]
            share = prevalence.get(mode) if isinstance(prevalence, Mapping) else prevalence
            always, may = self.company(target.name)
            head = fit_target(target, self.inputs(target.mode, target.name, always), suspicion[target.mode], share)
            if may and not always:
                more = self.inputs(target.mode, target.name, True)
                other = fit_target(target, more, suspicion[target.mode], share)
                if labels_likelihood(other) - labels_likelihood(head) >= LEAST_GAIN:
                    head = other
            heads.append(head)
        return tuple(heads)

    def company(self, name: str) -> tuple[bool, bool]:
        """Whether the heads of a target always read company, and whether they may: it is one of probabilities."""
        wanted = [t for t in self.problem.targets if t.name == name]
        may = bool(wanted) and all(t.kind == "binary" for t in wanted)
        return may and len(wanted) >= LEAST_MODES, may

    def inputs(self, mode: int, name: str, company: bool) -> Inputs:
        """What a head of the target of that name reads of every entity of a mode."""
        tensor, seed = self.problem.tensor, self.problem.config.seed
        wanted = [t for t in self.problem.targets if t.name == name]
        made = with_association(self._label_free(mode), tensor, mode, self.lockstep(), wanted, seed)
        if not company:
            return made
        if name not in self._first_rounds:
            free = {t.mode: self._label_free(t.mode) for t in wanted}
            suspicion = {k: self.suspicion(k) for k in free}
            self._first_rounds[name] = first_round(tensor, self.lockstep(), wanted, free, suspicion, seed=seed)
        return with_company(made, tensor, mode, self.lockstep(), wanted[0], self._first_rounds[name])

    def other_mode(self, mode: int, heads: tuple[AnyHead, ...]) -> OtherMode | None:
        """How a mode without labels is scored by those of others; None where no label tells of it."""
        if not heads:
            return None
        if mode not in self._other_modes or self._other_modes[mode][0] is not heads:
            tensor, targets, lockstep = self.problem.tensor, self.problem.targets, self.lockstep()
            parts, of_actors = self.suspicion_parts(mode), self.suspicion(lockstep.actor)
            self._other_modes[mode] = heads, score_other_mode(tensor, mode, lockstep, targets, heads, parts, of_actors)
        return self._other_modes[mode][1]

    def score_without_labels(self, mode: int, heads: tuple[AnyHead, ...]) -> Floats:
        """The score of every entity of a mode without labels, (n_k,): the suspicion, and what other modes' tell."""
        told = self.other_mode(mode, heads)
        return self.suspicion(mode) if told is None else told.score

    def _label_free(self, mode: int) -> Inputs:
        """The inputs of a mode that need no label."""
        if mode not in self._inputs:
            tensor = self.problem.tensor
            if self._market is None:
                self._market = read_market(tensor)
            covariates = behaviour(tensor, mode, market=self._market)
            found = shared_inputs(
                tensor, mode, covariates=covariates, evidence=self.review_evidence(), lockstep=self.lockstep()
            )
            self._inputs[mode] = with_given(found, self.given.modes.get(mode))
        return self._inputs[mode]

    def weighed(
        self, mode: int, target: int | None, codes: npt.NDArray[np.int64], heads: tuple[AnyHead, ...]
    ) -> tuple[Weighed, str]:
        """What the scores of entities are made of, and how they were made."""
        if target is not None and heads:
            head = heads[target]
            unit = "log-odds" if self.problem.targets[target].kind == "binary" else "value"
            names, amounts = contributions(head, codes, self.suspicion_parts(mode))
            return Weighed(names, amounts, unit, head.intercept), head.note
        if target is not None and self.problem.config.joint:
            amounts = self.state.rows(mode)[codes].astype(np.float64) * self.state.heads[target, 1:]
            names = tuple(f"component {r}" for r in range(amounts.shape[1]))
            intercept = float(self.state.heads[target, 0])
            return Weighed(names, amounts, "log-odds", intercept), "linear in the factors, trained with them"
        told = self.other_mode(mode, heads)
        if told is not None:
            return Weighed(told.names, np.stack([part[codes] for part in told.parts], axis=1), "suspicion"), told.note
        names, scores = self.suspicion_parts(mode)
        amounts = np.stack([score[codes] for score in scores], axis=1) / len(scores)
        why = "no labels of this kind" if target is None else "no head was learned from its labels"
        return Weighed(names, amounts, "suspicion"), f"{why}: evidence and lockstep alone"
