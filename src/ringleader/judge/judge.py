"""Judge: what the labels teach. Heads are fitted when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ringleader.arrays import Floats
from ringleader.judge.binary import blind_likelihood, fit_binary
from ringleader.judge.head import Head, HeadTable, Judgement, head_table
from ringleader.judge.inputs import Inputs, associations, with_association
from ringleader.judge.label_free import LabelFree
from ringleader.judge.neighbours import (
    LEAST_GAIN,
    LEAST_MODES,
    FirstRound,
    first_flows,
    first_round,
    reads_neighbours,
    with_neighbours,
)
from ringleader.judge.population import RankedPopulation, fit_together
from ringleader.judge.priors import HeadSettings
from ringleader.judge.real import REAL_SETTINGS, fit_real
from ringleader.judge.transfer import Transfer, tellers, transfer
from ringleader.kernels.tiles import load_kernels
from ringleader.known.labels import Target
from ringleader.runtime.executor import Threads, using_threads
from ringleader.runtime.machine import leave_mapped
from ringleader.runtime.peers import Alone
from ringleader.runtime.remembered import carried
from ringleader.signals import Signals
from ringleader.signals.lockstep import Flow
from ringleader.signals.suspicion import SIDE_BY_SIDE, beside_each_other

Prevalence = float | Mapping[str, float] | None
"""Share of abusive accounts in the market, or by name of the mode; None where it is to be estimated."""


class Judge:
    """The heads of all targets of a model, what they say, and what that tells of modes without labels.

    label_free : what no label enters
    targets    : labelled entities by mode and target
    heads      : by index of the target, where they are known already
    threads    : to use; all where None. The answer does not depend on it
    """

    def __init__(
        self,
        label_free: LabelFree,
        targets: Sequence[Target],
        *,
        seed: int,
        prevalence: Prevalence = None,
        heads: dict[int, Head] | None = None,
        threads: int | None = None,
    ) -> None:
        self.threads = threads
        self.label_free, self.targets, self.seed, self.prevalence = label_free, tuple(targets), seed, prevalence
        self._named = _by_name(self.targets)
        self._heads = {} if heads is None else heads
        self._first_rounds: dict[str, FirstRound] = {}
        self._inputs: dict[tuple[int, str, bool], Inputs] = {}
        self.take_over({}, {}, {})

    def take_over(
        self, judgements: dict[int, Judgement], transfers: dict[int, Transfer | None], inputs: dict[int, Inputs]
    ) -> None:
        """What is known already: judgements and inputs by index of the target, transfers by mode."""
        self._judgements, self._transfers, self._head_inputs = judgements, transfers, inputs

    @property
    def signals(self) -> Signals:
        return self.label_free.signals

    def heads(self) -> tuple[Head, ...]:
        """One for each target.

        Those of the first name lay out what no label enters; further names share nothing else, and go side by side.
        """
        indices: dict[str, list[int]] = {}
        for index, target in enumerate(self.targets):
            if index not in self._heads:
                indices.setdefault(target.name, []).append(index)

        def find(own: Sequence[int]) -> None:
            for index in own:
                self.head(index)

        names = list(indices.values())
        for own in names[:1]:
            find(own)
        with using_threads(self.threads if self.signals.tensor.n_cells <= SIDE_BY_SIDE else 1):
            Threads().map(find, names[1:])
        return tuple(self._heads[index] for index in range(len(self.targets)))

    def head(self, index: int) -> Head:
        """The head of a target. Neighbours are read where several modes are labelled, or where the labels ask."""
        if index not in self._heads:
            with using_threads(self.threads):
                self._heads[index] = self._find_head(self.targets[index])
        return self._heads[index]

    def _find_head(self, target: Target) -> Head:
        always, may = self.neighbours(target.name)
        wanted = self._named[target.name]
        modes = [other.mode for other in wanted] if always else [target.mode]

        def let_flow() -> None:
            """Has the labels flow, which ``Ties`` remembers."""
            associations(self.label_free.ties, [target.mode], [wanted], Flow(seed=self.seed))

        def let_flow_first() -> None:
            """The same for the first round."""
            first_flows(self.label_free.ties, modes, wanted, seed=self.seed)

        # Two at once in a thread each: to go through a graph with half of the columns takes most of the time of all.
        flows = [_in_one_thread(let_flow_first), _in_one_thread(let_flow)] if always else [let_flow]
        several = beside_each_other(self.signals.share).count > 1 and self.label_free.has_inputs(modes)
        layouts = self.label_free.layouts(modes, wanted) if several else [load_kernels]
        self.label_free.find_inputs(modes, [*layouts, *flows])
        inputs = self.inputs(target.mode, target.name, always)
        table = self._table(target, inputs)
        head = self._fit(target, table)
        if not may or always:
            return replace(head, ranks=table.ranks)
        del table  # the ranks of all entities are there for one head at a time
        table = self._table(target, self.inputs(target.mode, target.name, True))
        other = self._fit(target, table)
        if _labels_likelihood(other) - _labels_likelihood(head) >= LEAST_GAIN:
            return replace(other, ranks=table.ranks)
        del table
        return replace(head, ranks=self._table(target, inputs).ranks)

    def judgement(self, index: int) -> Judgement:
        """What the head of a target says of every entity of its mode."""
        if index not in self._judgements:
            with using_threads(self.threads):
                self._judgements[index] = self.head(index).judge()
        return self._judgements[index]

    def relabelled(self, label_free: LabelFree, targets: Sequence[Target]) -> Judge:
        """A judge of other labels; heads of targets whose labels are the same, in all modes, stay."""
        unchanged: dict[int, int] = {}
        if label_free is self.label_free:
            before, after = _by_name(self.targets), _by_name(targets)
            same = {name for name in after if name in before and _equal(before[name], after[name])}
            indices = {(target.mode, target.name): index for index, target in enumerate(self.targets)}
            unchanged = {
                index: indices[target.mode, target.name]
                for index, target in enumerate(targets)
                if target.name in same and indices[target.mode, target.name] in self._heads
            }
        heads = carried(self._heads, unchanged)
        judge = Judge(
            label_free, targets, seed=self.seed, prevalence=self.prevalence, heads=heads, threads=self.threads
        )
        for old in unchanged.values():
            if old not in self._head_inputs:
                self.head_inputs(old)  # found while this judge has what it needs for them
        judgements = {new: old for new, old in unchanged.items() if old in self._judgements}
        judge.take_over(carried(self._judgements, judgements), {}, carried(self._head_inputs, unchanged))
        return judge

    def _table(self, target: Target, inputs: Inputs) -> HeadTable:
        """What a head is fitted to."""
        suspicion: Floats = self.signals.suspicion(target.mode).score
        groups = [inputs.groups[name] for name in inputs.names]
        table = head_table(inputs.unranked, inputs.names, suspicion, groups, inputs.ranks)
        # Here, since only one of several processes fits.
        table.ranks.column_means((REAL_SETTINGS if target.kind == "real" else HeadSettings()).knots)
        return table

    def _fit(self, target: Target, table: HeadTable) -> Head:
        """A head without the ranks of the entities."""
        if not self.signals.share.alone:
            self.signals.share.forget()  # the first of the processes has numbers of all entities now
        mode = self.signals.tensor.modes[target.mode]
        share = self.prevalence.get(mode) if isinstance(self.prevalence, Mapping) else self.prevalence
        real, ranks = target.kind == "real", table.ranks
        settings = REAL_SETTINGS if real else HeadSettings(prevalence=share)
        nobody = replace(ranks, levels=ranks.levels[:0], peers=Alone(), counts=())

        def fit(population: RankedPopulation) -> Head:
            known = table._replace(ranks=nobody, population=population)
            return (fit_real if real else fit_binary)(known, target.codes, target.values, settings)

        return fit_together(ranks, target.codes, fit)

    def neighbours(self, name: str) -> tuple[bool, bool]:
        """Whether the heads of a target always read neighbours, and whether they may: it is about probabilities."""
        wanted = [target for target in self._named.get(name, []) if len(target.codes)]
        may = bool(wanted) and all(target.kind == "binary" for target in wanted)
        return may and len(wanted) >= LEAST_MODES, may

    def inputs(self, mode: int, name: str, neighbours: bool | None = None) -> Inputs:
        """What a head of the target of that name reads of every entity of a mode.

        neighbours : whether they are among it; None for what the heads of that name do.
        """
        wanted = self._named.get(name, [])
        if neighbours is None:
            neighbours = any(
                reads_neighbours(self.head(index).names)
                for index, target in enumerate(self.targets)
                if target.name == name
            )
        key = mode, name, neighbours
        if key not in self._inputs:
            with using_threads(self.threads):
                self._inputs[key] = self._find_inputs(mode, wanted, neighbours)
        return self._inputs[key]

    def _find_inputs(self, mode: int, wanted: Sequence[Target], neighbours: bool) -> Inputs:
        ties = self.label_free.ties
        leave_mapped()  # the flow of labels needs the memory
        inputs = with_association(self.label_free.inputs(mode), ties, mode, wanted, self.seed)
        if neighbours:
            return with_neighbours(inputs, ties, mode, wanted[0], self._first_round(wanted[0].name, wanted))
        return inputs

    def head_inputs(self, index: int) -> Inputs:
        """What the head of a target read."""
        if index not in self._head_inputs:
            target = self.targets[index]
            neighbours = reads_neighbours(self.head(index).names)
            self._head_inputs[index] = self.inputs(target.mode, target.name, neighbours)
        return self._head_inputs[index]

    def release(self, mode: int) -> None:
        """Give the memory of the inputs of a mode back; they are found again when they are asked for."""
        self.label_free.release(mode)
        self._inputs = {key: inputs for key, inputs in self._inputs.items() if key[0] != mode}
        for index, target in enumerate(self.targets):
            if target.mode == mode:
                self._head_inputs.pop(index, None)

    def _first_round(self, name: str, wanted: Sequence[Target]) -> FirstRound:
        if name not in self._first_rounds:
            ranks = self.label_free.ranks_of([target.mode for target in wanted])
            self._first_rounds[name] = first_round(self.label_free.ties, wanted, ranks, seed=self.seed)
        return self._first_rounds[name]

    def preparations(self, name: str, modes: Sequence[int]) -> list[Callable[[], object]]:
        """Calls that find, a piece each, what the heads of a target share with those of one more label.

        modes : of the labels that may come where the target has none yet
        """
        ties, wanted = self.label_free.ties, self._named.get(name, [])
        labelled = sorted({target.mode for target in wanted})
        calls: list[Callable[[], object]] = [partial(self.label_free.ranks, mode) for mode in labelled or modes]
        for target in wanted:
            calls.append(partial(associations, ties, labelled, [[target]], Flow(seed=self.seed)))
            if self.neighbours(name)[0]:
                calls.append(partial(first_flows, ties, labelled, [target], seed=self.seed))

        def limited(call: Callable[[], object]) -> None:
            with using_threads(self.threads):
                call()

        return [partial(limited, call) for call in calls]

    def transfer(self, mode: int) -> Transfer | None:
        """How a mode without labels is scored by those of others; None where no label tells of it."""
        if mode not in self._transfers:
            indices = tellers(mode, self.signals.actor, self.targets)
            heads = [(self.targets[index], self.head(index), self.judgement(index)) for index in indices]
            self._transfers[mode] = transfer(self.signals, mode, heads)
        return self._transfers[mode]


def _in_one_thread(call: Callable[[], None]) -> Callable[[], None]:
    def limited() -> None:
        with using_threads(1):
            call()

    return limited


def _labels_likelihood(head: Head) -> float:
    """Log-likelihood of the labels, each from the others: what a choice of inputs is judged by.

    NaN where the labels taught nothing.
    """
    if head.target_kind == "real" or head.kind != "additive":
        return float("nan")
    return blind_likelihood(head.left_out, (head.values > 0).astype(float), HeadSettings().unremarkable)


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
