"""Label-free inputs on workers: each finds those of its own entities, and keeps what the driver does not need.

The driver gets what heads are fitted to: suspicion, evidence of entities, ranks of inputs. Of all the rest it knows the
size: the values of the inputs, and what lockstep, strangers and evidence say of each review. Workers write these to the
model's folder, or send them where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.judge.inputs import Inputs, label_free_inputs, pack_inputs, unpack_inputs
from ringleader.judge.judge import LabelFree
from ringleader.known.covariates import ModeCovariates
from ringleader.runtime.executor import using_threads
from ringleader.runtime.peers import Peers
from ringleader.shares.rows import HeldRows, Spans, Write, elsewhere, held_rows, write_held
from ringleader.signals import ReviewEvidence, Signals, Suspicion
from ringleader.signals.cluster import ClusterSignals, held_cells
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers

ROWS = ("values", "ranks", "burst_")
"""Beginnings of the names of packed inputs that have a row for each entity."""
WANTED = "ranks"
"""That of them which the driver has too."""

Arrays = dict[str, Any]


class LabelFreePart(NamedTuple):
    """What a worker tells the driver of what it found: by mode of its entities, and what it holds, by part."""

    suspicions: dict[int, Suspicion]
    evidence: dict[int, Floats]
    inputs: dict[int, Arrays]  # packed, without what is held; of the modes of ids
    held: dict[str, dict[str, HeldRows]]


class HeldSignals:
    """What no label enters, found by workers, who keep the most of it.

    label_free   : as the driver has it; arrays that lie with the workers have their size there and no content
    with_workers : by part of a model, the names of its arrays that lie with the workers
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
        parts = self._find()
        held = {
            part: {name: elsewhere([of_worker.held[part][name] for of_worker in parts]) for name in arrays}
            for part, arrays in parts[0].held.items()
        }
        self.with_workers = {part: frozenset(arrays) for part, arrays in held.items()}
        inputs = {
            mode: _joined([part.inputs[mode] for part in parts], held[f"inputs-{mode}"]) for mode in parts[0].inputs
        }
        evidence, strangers = ReviewEvidence(**held["evidence"]), Strangers(**held["strangers"])
        signals = Signals(
            cluster.tensor,
            cluster.actor,
            lambda: evidence,
            lambda: lockstep,
            suspicions={mode: _whole([part.suspicions[mode] for part in parts]) for mode in parts[0].suspicions},
            evidence={mode: np.concatenate([part.evidence[mode] for part in parts]) for mode in parts[0].evidence},
            find_strangers=lambda: strangers,
            behaviours={mode: of_mode.behaviour for mode, of_mode in inputs.items()},
        )
        self.label_free = LabelFree(signals, columns, inputs)

    def write(self, part: str, on_driver: Mapping[str, Any], spans: Spans, write: Write) -> list[Any]:
        """The arrays of a part in pieces, each written by a worker; what ``write`` returned, in their order.

        on_driver : the other arrays of the part; spans : as ``ClusterLearner.write_rows``.
        """

        def arguments() -> list[tuple[Any, ...]]:
            count = self.cluster.workers.count
            first = sorted(self.with_workers).index(part)  # small parts are not all written by the same worker
            writers = [(first + number * count // len(spans)) % count for number in range(len(spans))]
            small = [{name: _rows(on_driver[name], span[name]) for name in span if name in on_driver} for span in spans]
            return [
                (part, spans, writers, [own if writers[n] == rank else {} for n, own in enumerate(small)], write)
                for rank in range(count)
            ]

        results: list[dict[int, Any]] = self.cluster.run(write_held, arguments, before=[self._find_again])
        written = {number: result for pieces in results for number, result in pieces.items()}
        return [written[number] for number in range(len(spans))]

    def gathered(self, part: str) -> Arrays:
        """The arrays of a part that lie with the workers."""
        names = sorted(self.with_workers[part])
        shares = self.cluster.run(
            held_rows, lambda: [(part, names)] * self.cluster.workers.count, before=[self._find_again]
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


def _rows(array: Any, span: tuple[int, int]) -> Any:
    return array[span[0] : span[1]] if array.ndim else array


def _whole(parts: list[Suspicion]) -> Suspicion:
    return Suspicion(
        parts[0].names, tuple(np.concatenate(part) for part in zip(*(p.parts for p in parts), strict=True))
    )


def _joined(parts: list[Arrays], held: Arrays) -> Inputs:
    arrays = {
        name: np.concatenate([part[name] for part in parts]) if name.startswith(ROWS) else array
        for name, array in parts[0].items()
    }
    return unpack_inputs(held | arrays)


def _label_free(
    memory: dict[str, Any], peers: Peers, actor: int, columns: dict[int, ModeCovariates], threads: int
) -> LabelFreePart:
    """In a worker: what no label enters, of its cells and entities."""
    share, reviews, lockstep = held_cells(memory, peers), memory["evidence"], memory["lockstep"]
    signals = Signals(share, actor, lambda: reviews, lambda: lockstep)
    modes = range(len(share.shape))
    ids = [k for k in modes if share.tensor.vocabularies[k].kind == "id"]
    with using_threads(threads):
        inputs = {k: pack_inputs(label_free_inputs(signals, k, columns.get(k))) for k in ids}
        suspicions = {k: signals.suspicion(k) for k in modes}
        evidence = {k: signals.evidence(k) for k in modes}
    share.forget()
    memory["held"] = {
        "evidence": reviews._asdict(),
        "lockstep": lockstep.cell_arrays(),
        "strangers": signals.strangers._asdict(),
        **{f"inputs-{k}": {n: a for n, a in packed.items() if n.startswith(ROWS)} for k, packed in inputs.items()},
    }
    held = {
        part: {name: HeldRows.of(array) for name, array in arrays.items()} for part, arrays in memory["held"].items()
    }
    for_driver = {
        k: {name: array for name, array in packed.items() if name == WANTED or not name.startswith(ROWS)}
        for k, packed in inputs.items()
    }
    return LabelFreePart(suspicions, evidence, for_driver, held)
