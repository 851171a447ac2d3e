"""Judge: what the labels teach, and the scorer of every mode. Heads are fitted when they are first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ringleader.arrays import Floats
from ringleader.judge.basis import Ranks, rank_all, side_by_side
from ringleader.judge.binary import blind_likelihood, fit_binary
from ringleader.judge.head import Head, Judgement, head_table
from ringleader.judge.inputs import Inputs, label_free_inputs, with_association
from ringleader.judge.neighbours import (
    LEAST_GAIN,
    LEAST_MODES,
    FirstRound,
    first_round,
    reads_neighbours,
    with_neighbours,
)
from ringleader.judge.priors import HeadSettings
from ringleader.judge.real import fit_real
from ringleader.judge.scorer import HeadScorer, JointScorer, LabelFreeScorer, Scorer, TransferredScorer
from ringleader.judge.transfer import Transfer, tellers, transfer
from ringleader.known.covariates import ModeCovariates
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.runtime.executor import Threads
from ringleader.signals import Signals
from ringleader.signals.lockstep import Ties

Prevalence = float | Mapping[str, float] | None
"""Share of abusive accounts in the market, or by name of the mode; None where it is to be estimated."""


class LabelFree:
    """What heads read that no label enters, laid out once and shared by all judges of the same signals.

    columns : the user's own, by mode. inputs : by mode, where they are known already.
    """

    def __init__(
        self, signals: Signals, columns: Mapping[int, ModeCovariates], inputs: dict[int, Inputs] | None = None
    ) -> None:
        self.signals, self.columns = signals, columns
        self._inputs = {} if inputs is None else inputs
        self._ranks: dict[int, Ranks] = {}

    @cached_property
    def ties(self) -> Ties:
        """The graphs that labels flow along."""
        return Ties(self.signals.tensor, self.signals.lockstep)

    def inputs(self, mode: int) -> Inputs:
        """The label-free inputs of a mode, ranked."""
        if mode not in self._inputs:
            self._inputs[mode] = label_free_inputs(self.signals, mode, self.columns.get(mode))
        return self._inputs[mode]

    def ranks(self, mode: int) -> Ranks:
        """Those of the inputs, and of the suspicion as the last of them."""
        if mode not in self._ranks:
            own = self.inputs(mode).ranks
            assert own is not None  # label-free inputs are ranked
            own.column_means(HeadSettings().knots)  # once, and not for each head
            self._ranks[mode] = side_by_side(own, rank_all(self.signals.suspicion(mode).score[:, None]))
        return self._ranks[mode]

    def ranks_of(self, modes: Sequence[int]) -> dict[int, Ranks]:
        """Those of several modes, found side by side."""
        if not all(mode in self._inputs for mode in modes):  # what they share is found first, and once
            self.signals.find_shared()
        return dict(zip(modes, Threads().map(self.ranks, modes), strict=True))


class Judge:
    """The heads of all targets of a model, and the scorer of each mode.

    label_free : what no label enters
    targets    : labelled entities by mode and target
    heads      : by place of the target, where they are known already
    """

    def __init__(
        self,
        label_free: LabelFree,
        targets: Sequence[Target],
        *,
        seed: int,
        prevalence: Prevalence = None,
        heads: dict[int, Head] | None = None,
    ) -> None:
        self.label_free, self.targets, self.seed, self.prevalence = label_free, tuple(targets), seed, prevalence
        self._heads = {} if heads is None else heads
        self._first_rounds: dict[str, FirstRound] = {}
        self._inputs: dict[tuple[int, str, bool], Inputs] = {}
        self.known({}, {}, {})

    def known(
        self, judgements: dict[int, Judgement], transfers: dict[int, Transfer | None], inputs: dict[int, Inputs]
    ) -> None:
        """Take over what is known already: judgements and inputs by place of the target, transfers by mode."""
        self._judgements, self._transfers, self._head_inputs = judgements, transfers, inputs

    @property
    def signals(self) -> Signals:
        return self.label_free.signals

    def heads(self) -> tuple[Head, ...]:
        """One for each target."""
        return tuple(self.head(place) for place in range(len(self.targets)))

    def head(self, place: int) -> Head:
        """The head of a target. Neighbours are read where several modes are labelled, or where the labels ask."""
        if place not in self._heads:
            target = self.targets[place]
            always, may = self.neighbours(target.name)
            head = self._fit(target, self.inputs(target.mode, target.name, always))
            if may and not always:
                other = self._fit(target, self.inputs(target.mode, target.name, True))
                if _labels_likelihood(other) - _labels_likelihood(head) >= LEAST_GAIN:
                    head = other
            self._heads[place] = head
        return self._heads[place]

    def judgement(self, place: int) -> Judgement:
        """What the head of a target says of every entity of its mode."""
        if place not in self._judgements:
            self._judgements[place] = self.head(place).judge()
        return self._judgements[place]

    def relabelled(self, label_free: LabelFree, targets: Sequence[Target]) -> Judge:
        """A judge of other labels; heads of targets whose labels are the same, in all modes, stay."""
        unchanged: dict[int, int] = {}
        if label_free is self.label_free:
            before, after = _by_name(self.targets), _by_name(targets)
            same = {name for name in after if name in before and _equal(before[name], after[name])}
            places = {(target.mode, target.name): place for place, target in enumerate(self.targets)}
            unchanged = {
                place: places[target.mode, target.name]
                for place, target in enumerate(targets)
                if target.name in same and places[target.mode, target.name] in self._heads
            }
        heads = {new: self._heads[old] for new, old in unchanged.items()}
        judge = Judge(label_free, targets, seed=self.seed, prevalence=self.prevalence, heads=heads)
        judgements = {new: self._judgements[old] for new, old in unchanged.items() if old in self._judgements}
        judge.known(judgements, {}, {new: self.head_inputs(old) for new, old in unchanged.items()})
        return judge

    def _fit(self, target: Target, inputs: Inputs) -> Head:
        suspicion: Floats = self.signals.suspicion(target.mode).score
        groups = [inputs.groups[name] for name in inputs.names]
        table = head_table(inputs.values, inputs.names, suspicion, groups, inputs.ranks)
        if target.kind == "real":
            return fit_real(table, target.codes, target.values)
        mode = self.signals.tensor.modes[target.mode]
        share = self.prevalence.get(mode) if isinstance(self.prevalence, Mapping) else self.prevalence
        return fit_binary(table, target.codes, target.values, HeadSettings(prevalence=share))

    def neighbours(self, name: str) -> tuple[bool, bool]:
        """Whether the heads of a target always read neighbours, and whether they may: it is about probabilities."""
        wanted = [target for target in self.targets if target.name == name]
        may = bool(wanted) and all(target.kind == "binary" for target in wanted)
        return may and len(wanted) >= LEAST_MODES, may

    def inputs(self, mode: int, name: str, neighbours: bool | None = None) -> Inputs:
        """What a head of the target of that name reads of every entity of a mode.

        neighbours : whether they are among it; None for what the heads of that name do.
        """
        wanted = [target for target in self.targets if target.name == name]
        if neighbours is None:
            neighbours = any(
                reads_neighbours(self.head(place).names)
                for place, target in enumerate(self.targets)
                if target.name == name
            )
        key = mode, name, neighbours
        if key not in self._inputs:
            ties = self.label_free.ties
            made = with_association(self.label_free.inputs(mode), ties, mode, wanted, self.seed)
            if neighbours:
                made = with_neighbours(made, ties, mode, wanted[0], self._first_round(name, wanted))
            self._inputs[key] = made
        return self._inputs[key]

    def head_inputs(self, place: int) -> Inputs:
        """What the head of a target read."""
        if place not in self._head_inputs:
            target = self.targets[place]
            neighbours = reads_neighbours(self.head(place).names)
            self._head_inputs[place] = self.inputs(target.mode, target.name, neighbours)
        return self._head_inputs[place]

    def _first_round(self, name: str, wanted: Sequence[Target]) -> FirstRound:
        if name not in self._first_rounds:
            ranks = self.label_free.ranks_of([target.mode for target in wanted])
            self._first_rounds[name] = first_round(self.label_free.ties, wanted, ranks, seed=self.seed)
        return self._first_rounds[name]

    def transfer(self, mode: int) -> Transfer | None:
        """How a mode without labels is scored by those of others; None where no label tells of it."""
        if mode not in self._transfers:
            places = tellers(mode, self.signals.actor, self.targets)
            heads = [(self.targets[place], self.head(place)) for place in places]
            self._transfers[mode] = transfer(self.signals, mode, heads)
        return self._transfers[mode]

    def scorer(self, mode: int, place: int | None) -> Scorer:
        """The scorer of a mode for a target, by its place, or for none."""
        if place is not None:
            target = self.targets[place]
            return HeadScorer(
                target,
                self.signals.suspicion(mode),
                lambda: self.head(place),
                lambda: self.judgement(place),
                lambda: self.head_inputs(place),
            )
        transferred = self.transfer(mode)
        if transferred is not None:
            return TransferredScorer(transferred, lambda: self.inputs(mode, transferred.target, False))
        return LabelFreeScorer(self.signals, mode, None, lambda: self.inputs(mode, DEFAULT_TARGET, False))


def published_scorer(judge: Judge, mode: int, place: int | None, rows: Floats, betas: Floats, *, joint: bool) -> Scorer:
    """The scorer of a mode under the published presets: the joint head, or the suspicion where there is none.

    rows : (n_k, R), factor rows of the mode. betas : (T, R + 1), the joint heads.
    """
    name = judge.targets[place].name if place is not None else DEFAULT_TARGET
    target = judge.targets[place] if place is not None else None
    if target is not None and place is not None and joint:
        return JointScorer(target, rows, betas[place], lambda: judge.inputs(mode, name, False))
    return LabelFreeScorer(judge.signals, mode, target, lambda: judge.inputs(mode, name, False))


def _labels_likelihood(head: Head) -> float:
    """Log-likelihood of the labels, each from the others: what a choice of inputs is judged by.

    NaN where the labels taught nothing.
    """
    if head.target_kind == "real" or head.kind != "additive":
        return float("nan")
    return blind_likelihood(head.left_out, (head.values > 0).astype(float))


def _by_name(targets: Sequence[Target]) -> dict[str, list[Target]]:
    names: dict[str, list[Target]] = {}
    for target in targets:
        names.setdefault(target.name, []).append(target)
    return names


def _equal(before: Sequence[Target], after: Sequence[Target]) -> bool:
    """Whether two lists of targets label the same entities in the same way."""
    return len(before) == len(after) and all(
        (a.mode, a.kind) == (b.mode, b.kind)
        and len(a.codes) == len(b.codes)
        and bool((a.codes == b.codes).all())
        and bool((a.values == b.values).all())
        for a, b in zip(before, after, strict=True)
    )
