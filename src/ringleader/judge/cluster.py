"""Inputs and heads on workers: each finds those of its own entities, and keeps what the driver does not need.

The driver gets what it writes itself: suspicion and evidence of entities, heads, and what they say of each entity. Of
all the rest it knows the size: inputs and their ranks, and what lockstep, strangers and evidence say of each review.
Workers write these to the model's folder, or send them where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats, frozen
from ringleader.errors import WorkerLost
from ringleader.judge.head import Head, Judgement
from ringleader.judge.inputs import label_free_inputs, pack_inputs, unpack_inputs
from ringleader.judge.judge import Judge, Prevalence
from ringleader.judge.label_free import LabelFree
from ringleader.judge.transfer import Transfer
from ringleader.known.covariates import ModeCovariates
from ringleader.known.labels import Target
from ringleader.runtime.executor import using_threads
from ringleader.runtime.mapped import mapped_rows
from ringleader.runtime.peers import Alone, Peers
from ringleader.shares.rows import (
    ON_DRIVER,
    HeldRows,
    Spans,
    Write,
    elsewhere,
    forget_held,
    held_rows,
    send_arrays,
    write_held,
)
from ringleader.signals import ReviewEvidence, Signals, Suspicion
from ringleader.signals.cluster import ClusterSignals, held_cells
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers

ROWS = ("values", "ranks", "burst_")
"""Beginnings of the names of packed inputs that have a row for each entity."""


class LabelFreePart(NamedTuple):
    """What a worker tells the driver of what it found: by mode of its entities, and what it holds, by part."""

    suspicions: dict[int, Suspicion]
    evidence: dict[int, Floats]
    inputs: dict[int, dict[str, Any]]  # packed, without what is held; of the modes of ids
    held: dict[str, dict[str, HeldRows]]


class JudgePart(NamedTuple):
    """What a worker tells the driver of heads: what they say of its entities, and what it holds, by part.

    heads : by index of the target, without the ranks of entities; of the first worker alone
    label_inputs : names, descriptions and groups of the inputs of each head that labels entered
    means : by mode, those of the ranks of label-free inputs
    """

    heads: tuple[Head, ...]
    judgements: tuple[Judgement, ...]
    transfers: dict[int, Transfer | None]
    label_inputs: tuple[tuple[tuple[str, ...], dict[str, str], dict[str, str]], ...]
    means: dict[int, Mapping[int, Floats]]
    held: dict[str, dict[str, HeldRows]]


class HeldSignals:
    """What no label enters, found by workers, who keep the most of it.

    label_free   : as the driver has it; arrays that lie with the workers have their size there and no content
    with_workers : by part of a model, its arrays that lie with the workers: their sizes, and no content
    """

    def __init__(
        self,
        cluster: ClusterSignals,
        lockstep: Lockstep,
        columns: Mapping[int, ModeCovariates],
        find_evidence: Callable[[], object],
    ) -> None:
        """lockstep : as the driver has it. columns : the user's own, by mode. find_evidence : has every worker keep the
        evidence of its cells (``memory["evidence"]``).
        """
        self.cluster, self.columns, self.find_evidence = cluster, columns, find_evidence
        self._restarts = -1
        self._targets: tuple[Any, ...] | None = None
        self._written: list[str] = []  # parts
        parts = self._find()
        held = {
            part: {name: elsewhere([of_worker.held[part][name] for of_worker in parts]) for name in arrays}
            for part, arrays in parts[0].held.items()
        }
        self.with_workers = held
        inputs = {mode: unpack_inputs(held[f"inputs-{mode}"] | parts[0].inputs[mode]) for mode in parts[0].inputs}
        evidence, strangers = ReviewEvidence(**held["evidence"]), Strangers(**held["strangers"])
        signals = Signals(
            cluster.tensor,
            cluster.actor,
            lambda: evidence,
            lambda: lockstep,
            suspicions={mode: _whole([part.suspicions[mode] for part in parts]) for mode in parts[0].suspicions},
            evidence={k: frozen(mapped_rows([part.evidence[k] for part in parts])) for k in parts[0].evidence},
            find_strangers=lambda: strangers,
            behaviours={mode: of_mode.behaviour for mode, of_mode in inputs.items()},
        )
        self.label_free = LabelFree(signals, columns, inputs)

    def judge(
        self,
        targets: Sequence[Target],
        unlabelled: Sequence[int],
        *,
        seed: int,
        prevalence: Prevalence,
        threads: int | None,
    ) -> Judge:
        """A judge whose heads the workers have fitted; they keep what these read of each entity.

        unlabelled : modes to be scored from the heads of others. threads : of this process
        """
        self._targets = tuple(targets), seed, prevalence, tuple(unlabelled)
        said = "fit the heads", "heads were fitted"
        parts: list[JudgePart] = self.cluster.run(_judge, self._judge_arguments, before=[self._find_again], said=said)
        held = {
            part: {name: elsewhere([of_worker.held[part][name] for of_worker in parts]) for name in arrays}
            for part, arrays in parts[0].held.items()
        }
        self.with_workers |= held
        heads, inputs = {}, {}
        for index, (target, head) in enumerate(zip(targets, parts[0].heads, strict=True)):
            arrays = held[f"head_{index}"]
            heads[index] = replace(head, ranks=replace(head.ranks, levels=arrays["ranks"]))
            own = self.label_free.inputs(target.mode)
            inputs[index] = own.with_table(*parts[0].label_inputs[index], arrays["label_columns"])
        for mode, means in parts[0].means.items():
            ranks = self.label_free.inputs(mode).ranks
            assert ranks is not None  # label-free inputs are ranked
            ranks.know(means)
        judge = Judge(self.label_free, targets, seed=seed, prevalence=prevalence, heads=heads, threads=threads)
        judgements = {
            index: frozen(Judgement(*map(mapped_rows, zip(*(part.judgements[index] for part in parts), strict=True))))
            for index in heads
        }
        transfers = {mode: _whole_transfer([part.transfers[mode] for part in parts]) for mode in unlabelled}
        judge.take_over(judgements, transfers, inputs)
        return judge

    def write(self, part: str, on_driver: Mapping[str, Any], spans: Spans, write: Write) -> list[Any]:
        """The arrays of a part in pieces, each written by a worker; what ``write`` returned, in their order.

        Workers let go of them when the next part is written; new workers would find them again.

        on_driver : the other arrays of the part; spans : as ``ClusterLearner.write_rows``.
        """

        def writers() -> list[int]:
            count = self.cluster.workers.count
            if len(spans) == 1:  # not all of these are written by the same worker
                return [sorted(self.with_workers).index(part) % count]
            return [number * count // len(spans) for number in range(len(spans))]  # who has most of its rows

        def send() -> None:
            own: list[dict[tuple[int, str], Any]] = [{} for _ in range(self.cluster.workers.count)]
            for number, (span, rank) in enumerate(zip(spans, writers(), strict=True)):
                here = {name: _rows(on_driver[name], span[name]) for name in span if name in on_driver}
                own[rank] |= {(number, name): array for name, array in here.items()}
            if any(own):
                send_arrays(self.cluster.workers, ON_DRIVER, own)

        def arguments() -> list[tuple[Any, ...]]:
            return [(part, self._written, spans, writers(), write)] * self.cluster.workers.count

        results: list[dict[int, Any]] = self.cluster.run(
            write_held,
            arguments,
            before=[self._find_again, send],
            cells=False,
            said=("write the model", "the model was written"),
        )
        self._written.append(part)
        written = {number: result for pieces in results for number, result in pieces.items()}
        return [written[number] for number in range(len(spans))]

    def forget_written(self) -> None:
        """Have workers let go of what was written; new ones would find it again."""
        with suppress(WorkerLost):  # whoever needs the workers next starts new ones
            self.cluster.workers.run(forget_held, [(self._written,)] * self.cluster.workers.count)

    def gathered(self, part: str) -> dict[str, Any]:
        """The arrays of a part that lie with the workers."""
        names = sorted(self.with_workers[part])
        shares = self.cluster.run(
            held_rows, lambda: [(part, names)] * self.cluster.workers.count, before=[self._find_again], cells=False
        )
        return {name: np.concatenate([arrays[name] for arrays in shares]) for name in names}

    def whole(self) -> LabelFree:
        """All of it in this process."""
        known, arrays = self.label_free.signals, {part: self.gathered(part) for part in self.with_workers}
        packed = known.lockstep.to_arrays() | arrays["lockstep"]
        lockstep, evidence = Lockstep.from_arrays(packed), ReviewEvidence(**arrays["evidence"])
        strangers = Strangers(**arrays["strangers"])
        inputs = {
            mode: unpack_inputs(pack_inputs(self.label_free.inputs(mode)) | arrays[f"inputs-{mode}"])
            for mode in range(len(known.tensor.shape))
            if f"inputs-{mode}" in arrays
        }
        signals = Signals(
            known.tensor,
            known.actor,
            lambda: evidence,
            lambda: lockstep,
            suspicions={mode: known.suspicion(mode) for mode in range(len(known.tensor.shape))},
            evidence={mode: known.evidence(mode) for mode in range(len(known.tensor.shape))},
            find_strangers=lambda: strangers,
            behaviours={mode: of_mode.behaviour for mode, of_mode in inputs.items()},
        )
        return LabelFree(signals, self.columns, inputs)

    def _find(self) -> list[LabelFreePart]:
        parts: list[LabelFreePart] = self.cluster.run(_label_free, self._arguments, before=self._before)
        self._restarts = self.cluster.workers.restarts
        return parts

    def _find_again(self) -> None:
        """Where workers were lost since: new ones find what the others held."""
        if self._restarts != self.cluster.workers.restarts:
            for step in self._before:
                step()
            self.cluster.workers.run(_label_free, self._arguments())
            if self._targets is not None:
                self.cluster.workers.run(_judge, self._judge_arguments())
            self._restarts = self.cluster.workers.restarts

    @property
    def _before(self) -> Sequence[Callable[[], object]]:
        return self.find_evidence, self.cluster.need_lockstep

    def _arguments(self) -> list[tuple[Any, ...]]:
        cluster, shares = self.cluster, []
        for rank in range(cluster.workers.count):
            own = {
                mode: ModeCovariates(table.names, table.values[slice(*cluster.bounds[mode][rank : rank + 2])])
                for mode, table in self.columns.items()
            }
            shares.append((cluster.actor, own, cluster.workers.threads))
        return shares

    def _judge_arguments(self) -> list[tuple[Any, ...]]:
        assert self._targets is not None  # they were given
        return [(self.cluster.actor, *self._targets)] * self.cluster.workers.count


def _rows(array: Any, span: tuple[int, int]) -> Any:
    return array[span[0] : span[1]] if array.ndim else array


def _whole(parts: list[Suspicion]) -> Suspicion:
    whole = tuple(mapped_rows(part) for part in zip(*(p.parts for p in parts), strict=True))
    return frozen(Suspicion(parts[0].names, whole))


def _whole_transfer(parts: list[Transfer | None]) -> Transfer | None:
    first = parts[0]
    if first is None:
        return None
    own = [part for part in parts if part is not None]
    whole = first._replace(
        neighbours={name: mapped_rows([part.neighbours[name] for part in own]) for name in first.neighbours},
        parts=tuple(mapped_rows(part) for part in zip(*(part.parts for part in own), strict=True)),
    )
    return frozen(whole)


def _label_free(
    memory: dict[str, Any], peers: Peers, actor: int, columns: dict[int, ModeCovariates], threads: int
) -> LabelFreePart:
    """In a worker: what no label enters, of its cells and entities."""
    share, reviews, lockstep = held_cells(memory, peers), memory["evidence"], memory["lockstep"]
    signals = Signals(share, actor, lambda: reviews, lambda: lockstep)
    modes = range(len(share.shape))
    ids = [k for k in modes if share.tensor.vocabularies[k].kind == "id"]
    inputs: dict[int, dict[str, Any]] = {}
    with using_threads(threads):
        _ = signals.market  # once, of all cells, before those of other modes are dealt out and dropped
        for k in ids:
            share.forget()  # cells are dealt out to other modes once more where they are needed: that is soon done
            inputs[k] = pack_inputs(label_free_inputs(signals, k, columns.get(k)))
        suspicions = {k: signals.suspicion(k) for k in modes}
        evidence = {k: signals.evidence(k) for k in modes}
    share.forget()
    memory["label_free"] = inputs, suspicions
    memory["held"] = {
        "evidence": reviews._asdict(),
        "lockstep": lockstep.held_arrays(peers),
        "strangers": signals.strangers._asdict(),
        **{f"inputs-{k}": {n: a for n, a in packed.items() if n.startswith(ROWS)} for k, packed in inputs.items()},
    }
    held = {
        part: {name: HeldRows.of(array) for name, array in arrays.items()} for part, arrays in memory["held"].items()
    }
    for_driver = {k: {n: a for n, a in packed.items() if not n.startswith(ROWS)} for k, packed in inputs.items()}
    return LabelFreePart(suspicions, evidence, for_driver, held)


def _judge(
    memory: dict[str, Any],
    peers: Peers,
    actor: int,
    targets: tuple[Target, ...],
    seed: int,
    prevalence: Prevalence,
    unlabelled: tuple[int, ...],
) -> JudgePart:
    """In a worker: the heads of targets, and what they say of its entities.

    Processes talk to each other in one order, so that there is one thread.
    """
    share, (packed, suspicions) = held_cells(memory, peers), memory["label_free"]
    lockstep, held = memory["lockstep"], memory["held"]
    reviews, strangers = ReviewEvidence(**held["evidence"]), Strangers(**held["strangers"])
    inputs = {mode: unpack_inputs(arrays) for mode, arrays in packed.items()}
    inputs = {mode: replace(own, ranks=own.ranks.among(peers)) for mode, own in inputs.items() if own.ranks is not None}
    signals = Signals(
        share, actor, lambda: reviews, lambda: lockstep, suspicions=suspicions, find_strangers=lambda: strangers
    )
    label_free = LabelFree(signals, {}, inputs)
    judge = Judge(label_free, targets, seed=seed, prevalence=prevalence, threads=1)
    heads = judge.heads()
    label_free.forget_ties()
    abouts = []
    for index, (target, head) in enumerate(zip(targets, heads, strict=True)):
        own, first = judge.head_inputs(index), len(inputs[target.mode].names)
        names = own.names[first:]
        abouts.append((names, {n: own.descriptions[n] for n in names}, {n: own.groups[n] for n in names}))
        held[f"head_{index}"] = {
            "ranks": head.ranks.levels,
            "label_columns": np.ascontiguousarray(own.columns_from(first)),
        }
    judgements = tuple(judge.judgement(index) for index in range(len(targets)))
    transfers = {mode: judge.transfer(mode) for mode in unlabelled}
    share.forget()
    held_heads = {
        part: {name: HeldRows.of(array) for name, array in arrays.items()}
        for part, arrays in held.items()
        if part.startswith("head_")
    }
    nobody = [replace(head.ranks, levels=head.ranks.levels[:0], peers=Alone(), counts=()) for head in heads]
    known = tuple(replace(head, ranks=ranks) for head, ranks in zip(heads, nobody, strict=True))
    means = {mode: own.ranks.means for mode, own in inputs.items() if own.ranks is not None}
    return JudgePart(() if peers.rank else known, judgements, transfers, tuple(abouts), means, held_heads)
