"""Snapshot: what a model is. It never changes; learning makes a new one beside it.

The fields are what was given and what was learned. Everything else (signals, heads, cores, scores) follows from them:
it is found when it is first asked for, or read from the model's folder, and is the same whoever asks and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ringleader.arrays import Codes, Floats, Frozen, Numbers, frozen
from ringleader.cores import Core, Cores, CoreSettings, find_cores
from ringleader.cores.verdict import CoreVerdict, verdicts
from ringleader.errors import SettingsError
from ringleader.explain import Account, Explanation, account, explain
from ringleader.judge import Contributions, Head, Inputs, JointHeads, Judge, LabelFree, Scorer, choose_scorer
from ringleader.judge.scores import first_ranked, ranked, ranked_batches, score_columns, scores_by_code
from ringleader.known.covariates import AlignedCovariates, UserCovariates
from ringleader.known.labels import DEFAULT_TARGET, AlignedLabels, Labels, Target, unmatched
from ringleader.model.config import ModelConfig
from ringleader.model.posterior import head_deviation
from ringleader.model.problem import Problem, build_problem
from ringleader.model.state import State
from ringleader.signals import Signals
from ringleader.signals.evidence import ReviewEvidence, review_evidence
from ringleader.signals.lockstep import CountedBefore, Lockstep, LockstepSettings, find_lockstep, find_sides
from ringleader.signals.strangers import Strangers, find_strangers
from ringleader.snapshot.batches import Batch
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted, harmless

if TYPE_CHECKING:
    import pandas as pd


LEARNED = (
    *(
        "aligned",
        "batches",
        "complete",
        "config",
        "covariates",
        "device",
        "heads",
        "heldout",
        "history",
        "labels",
        "parameters",
        "problem",
    ),
    *("reading", "report", "resumed_from", "state", "targets", "tensor", "user_columns"),
)
"""What a fitted detector shows of its snapshot, with an underscore behind the name."""


@dataclass(frozen=True, eq=False)
class Derived:
    """What follows from a snapshot, where it is known already; None where it is to be found."""

    aligned: AlignedLabels | None = None
    problem: Problem | None = None
    lockstep: Lockstep | None = None
    label_free: LabelFree | None = None
    judge: Judge | None = None
    find_cores: Callable[[], Cores] | None = None
    counted: CountedBefore | None = None  # of fewer reviews


@dataclass(frozen=True, eq=False)
class Snapshot(Frozen):
    """A model as a value.

    parameters : of the detector that made it
    config     : settings of the model
    tensor     : the reviews
    labels     : known accounts it learned from; heldout : those kept back to evaluate on
    covariates : the user's own columns
    reading    : how the reviews were read, so that new ones are read in the same way
    report     : what was read and what was refused; None where the reviews came as a tensor
    state      : factors and all that was learned with them
    history    : one entry for each sweep
    complete   : whether the fit came to its end; a checkpoint did not
    resumed_from : sweep of the checkpoint that the fit went on from
    batches    : what was taken in, oldest first
    device     : what computed the state: "cpu", or the name of a GPU
    """

    parameters: Mapping[str, Any]
    config: ModelConfig
    tensor: SparseTensor
    labels: Labels | None
    heldout: Labels | None
    covariates: UserCovariates | None
    reading: Mapping[str, Any]
    report: Mapping[str, Any] | None
    state: State
    history: tuple[Mapping[str, Any], ...]
    complete: bool
    resumed_from: int | None = None
    batches: tuple[Batch, ...] = ()
    device: str = "cpu"
    derived: Derived = Derived()

    def __post_init__(self) -> None:
        if isinstance(self.state, State):  # else it is read when it is asked for, and frozen then
            frozen(self.state.to_arrays())
        super().__post_init__()

    def __deepcopy__(self, memo: Any) -> Snapshot:
        return self  # what cannot change need not be copied

    def __reduce__(self) -> tuple[Any, ...]:
        """What was given and learned; what follows from it is found again where it is unpickled."""
        return Snapshot, tuple(getattr(self, f.name) for f in fields(self) if f.name != "derived")

    # -- what follows -------------------------------------------------------------------------------

    @cached_property
    def aligned(self) -> AlignedLabels:
        """The labels as codes of the tensor."""
        if self.derived.aligned is not None:
            return self.derived.aligned
        return self.labels.align(self.tensor) if self.labels is not None else AlignedLabels((), {})

    @property
    def targets(self) -> tuple[Target, ...]:
        return self.aligned.targets

    @cached_property
    def user_columns(self) -> AlignedCovariates:
        """The user's columns as arrays of the tensor."""
        return self.covariates.align(self.tensor) if self.covariates is not None else frozen(AlignedCovariates({}, {}))

    @property
    def problem(self) -> Problem:
        """The fit as the kernels see it."""
        return self._find_problem()

    @cached_property
    def _find_problem(self) -> Callable[[], Problem]:
        """Builds the problem once."""
        known, tensor, targets, config = self.derived.problem, self.tensor, self.targets, self.config
        return cache(lambda: known or build_problem(tensor, targets, config))

    @cached_property
    def label_free(self) -> LabelFree:
        """What no label enters."""
        return self.derived.label_free or LabelFree(self._find_signals(), self.user_columns.modes)

    def _find_signals(self) -> Signals:
        """Signals that do not hold the snapshot, which holds them: its memory is free at once when the next one is
        there, and not when Python next looks for circles.
        """
        contrast, threads = self.config.contrast, self.parameters["threads"]
        tensor, state, known, before = self.tensor, self.state, self.derived.lockstep, self.derived.counted
        find_problem = self._find_problem
        settings = LockstepSettings() if known is None else known.settings

        def lockstep() -> Lockstep:
            if known is not None:
                return known
            return find_lockstep(tensor, settings, actor=contrast, threads=threads, before=before)

        def strangers() -> Strangers:
            """Beside lockstep, of which they need the settings alone."""
            return find_strangers(tensor, contrast, *find_sides(tensor, contrast, settings), settings)

        def evidence() -> ReviewEvidence:
            return review_evidence(find_problem(), state)

        return Signals(tensor, contrast, evidence, lockstep, find_strangers=strangers)

    @property
    def signals(self) -> Signals:
        return self.label_free.signals

    @cached_property
    def judge(self) -> Judge:
        """What the labels teach."""
        prevalence = self.parameters["prevalence"]
        return self.derived.judge or Judge(
            self.label_free,
            self.targets,
            seed=self.config.seed,
            prevalence=prevalence,
            threads=self.parameters["threads"],
        )

    @property
    def judged(self) -> bool:
        """Whether heads say what labels teach: those of the default preset do, once its fit is complete."""
        return self.complete and self.parameters["preset"] == "default"

    @property
    def heads(self) -> tuple[Head, ...] | None:
        """One for each target; none under the published presets, None where the fit was stopped before them."""
        if not self.complete:
            return None
        return self.judge.heads() if self.judged else ()

    @cached_property
    def core_finder(self) -> Callable[[], Cores]:
        """Finds the cores of the usual settings, once; snapshots of the same reviews share it."""
        tensor, signals, actor = self.tensor, self.signals, self.config.contrast
        find = self.derived.find_cores or cache(lambda: find_cores(tensor, signals.lockstep, actor=actor))

        def with_reviews() -> Cores:
            cores = find()
            return cores if cores.tensor is tensor else replace(cores, tensor=tensor)

        return cache(with_reviews)

    def cores(self, settings: CoreSettings | None = None) -> Cores:
        """Groups that act in lockstep; those of the usual settings are found once."""
        if settings is None:
            return self.core_finder()
        cores = find_cores(self.tensor, self.signals.lockstep, settings, actor=self.config.contrast)
        return replace(cores, tensor=self.tensor)

    def verdicts(self, cores: Sequence[Core]) -> tuple[CoreVerdict, ...]:
        """How many members of each core abuse: by the signals, by probabilities where labels taught some, by labels."""
        probabilities, known = {}, {}
        for name in {name for core in cores for name in core.members}:
            scorer = self.scorer(name)
            if scorer.target is not None and scorer.target.kind == "binary":
                known[name] = np.full(self.tensor.shape[self.tensor.mode_index(name)], np.nan)
                known[name][scorer.target.codes] = scorer.target.values > 0
                if scorer.kind == "head":
                    probabilities[name] = scorer.score
        return verdicts(cores, self.signals, probabilities, known)

    def lines(self) -> list[str]:
        """What the model learned from, and what is odd about it, in words."""
        sweeps = counted(self.state.sweep, "sweep")
        lines = [f"learned from {self.tensor!r}"[:400] + f", in {sweeps}"]
        lines += [f"and from {self.labels!r}" if self.labels is not None else "no labels: scores are not probabilities"]
        lines += [] if self.complete else [f"the fit was stopped after {sweeps}; continue with resume=True"]
        odd = list(self.tensor.report.odd) if self.tensor.report is not None else []
        odd += unmatched(self.labels, self.tensor) if self.labels is not None else []
        return [*lines, *(harmless(f"odd: {line}", 400) for line in odd)]

    # -- answers ------------------------------------------------------------------------------------

    def target_index(self, mode: int | str, name: str | None = None) -> int | None:
        """The index of a target of a mode among the targets; the usual one where no name is given, None without any.

        A target whose labels are of nobody in the reviews is none: there is no probability from it.
        """
        k = self.tensor.mode_index(mode)
        there = {t.name: index for index, t in enumerate(self.targets) if t.mode == k and len(t.codes)}
        if name is None:
            return there.get(DEFAULT_TARGET, next(iter(there.values()), None))
        if name not in there:
            known = ", ".join(there) or "none"
            raise SettingsError(f"mode {self.tensor.modes[k]!r} has no target {name!r}; it has {known}")
        return there[name]

    def target(self, mode: int | str, name: str | None = None) -> Target | None:
        """The same as the target itself."""
        index = self.target_index(mode, name)
        return None if index is None else self.targets[index]

    def target_names(self, mode: int | str) -> list[str]:
        """The targets of a mode; first the one that is scored by default."""
        k = self.tensor.mode_index(mode)
        return sorted(
            (t.name for t in self.targets if t.mode == k and len(t.codes)), key=lambda name: name != DEFAULT_TARGET
        )

    def scorer(self, mode: int | str, name: str | None = None) -> Scorer:
        """The score of a mode for a target."""
        k, index = self.tensor.mode_index(mode), self.target_index(mode, name)
        joint = None if self.judged else JointHeads(self.state, self.config.joint, self._joint_deviation)
        return choose_scorer(self.judge, k, index, joint)

    def _joint_deviation(self, target_index: int) -> Floats:
        return head_deviation(self.problem, self.state, target_index)

    def inputs(self, mode: int | str, name: str | None = None) -> Inputs:
        """What the head of a target reads of every entity of a mode; also of a mode that has no such target itself."""
        k = self.tensor.mode_index(mode)
        if name is None or any(target.mode == k and target.name == name for target in self.targets):
            return self.scorer(k, name).inputs
        return self.judge.inputs(k, name, None if self.judged else False)

    def scores_by_code(self, mode: int | str, name: str | None = None, codes: Codes | None = None) -> pd.DataFrame:
        """One row for each entity of a mode, in the order of the codes; of some of them by their codes."""
        k = self.tensor.mode_index(mode)
        return scores_by_code(self.signals, k, self.scorer(k, name), self.target(k, name), codes)

    def score_columns(self, mode: int | str, name: str | None = None) -> pd.DataFrame:
        """The same without the names."""
        k = self.tensor.mode_index(mode)
        return score_columns(self.signals, k, self.scorer(k, name), self.target(k, name))

    def first_ranked(self, mode: int | str, name: str | None, named: int) -> pd.DataFrame:
        """As ``scores``, with the names of the first ``named`` alone: in a fraction of the memory."""
        k = self.tensor.mode_index(mode)
        return first_ranked(self.signals, k, self.scorer(k, name), self.target(k, name), named)

    def scores(self, mode: int | str, name: str | None = None) -> pd.DataFrame:
        """The same, most suspicious first."""
        return ranked(self.scores_by_code(mode, name))

    def ranked_batches(self, mode: int | str, name: str | None = None) -> Iterator[pa.Table]:
        """The same as Arrow tables, one after the other, in a fraction of the memory."""
        k = self.tensor.mode_index(mode)
        return ranked_batches(self.signals, k, self.scorer(k, name), self.target(k, name))

    def codes(self, mode: int | str, entities: Sequence[Any]) -> Numbers:
        """The codes of entities; an error that names the first one that is not there."""
        k = self.tensor.mode_index(mode)
        codes = self.tensor.vocabularies[k].lookup(list(entities)).astype(np.int64)
        if (codes < 0).any():
            name = str(entities[int(np.argmax(codes < 0))])[:60]
            raise SettingsError(f"there is no {self.tensor.modes[k]} {name!r} in the reviews of this model")
        return np.asarray(codes)

    def explain(self, mode: int | str, entity: Any, name: str | None = None) -> Explanation:
        """Why an entity has its score."""
        return explain(self, mode, entity, name)

    def account(self, mode: int | str, entity: Any, name: str | None = None) -> Account:
        """Everything that a page about an account shows."""
        return account(self, mode, entity, name)

    def contributions(self, mode: int | str, codes: Numbers, name: str | None = None) -> Contributions:
        """What each input adds to the scores of entities."""
        return self.scorer(mode, name).contributions(codes)

    def suspicion(self, mode: int | str) -> Floats:
        """Suspicion of every entity of a mode, (n_k,), from the reviews alone: all signs of paid reviews combined."""
        return self.signals.suspicion(self.tensor.mode_index(mode)).score

    def evidence(self, mode: int | str) -> Floats:
        """Popularity-corrected evidence of every entity of a mode, (n_k,)."""
        return self.signals.evidence(self.tensor.mode_index(mode))

    def contribution_table(self, mode: int | str, entities: Any = None, name: str | None = None) -> pd.DataFrame:
        """The same as a table: entity, intercept and the inputs; a row for each entity, or for all of the mode."""
        import pandas as pd

        if isinstance(entities, str):
            raise SettingsError(f"entities is {entities[:60]!r}; give a list of names, or None for all")
        vocabulary = self.tensor.vocabularies[self.tensor.mode_index(mode)]
        codes = np.arange(len(vocabulary)) if entities is None else self.codes(mode, list(entities))
        parts = self.contributions(mode, codes, name)
        frame = pd.DataFrame(parts.amounts, columns=list(parts.names))
        frame.insert(0, "intercept", parts.intercept)
        frame.insert(0, "entity", vocabulary.decode(codes), allow_duplicates=True)
        return frame
