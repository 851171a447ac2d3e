"""Label-free inputs on workers: each finds those of its own entities, and the driver puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.judge.inputs import Inputs, label_free_inputs, pack_inputs, unpack_inputs
from ringleader.judge.judge import LabelFree
from ringleader.known.covariates import ModeCovariates
from ringleader.runtime.executor import using_threads
from ringleader.runtime.peers import Peers
from ringleader.signals import ReviewEvidence, Signals, Suspicion
from ringleader.signals.cluster import ClusterSignals, held_cells
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers

ROWS = ("values", "ranks", "burst_")
"""Beginnings of the names of packed arrays that have a row for each entity."""

Arrays = dict[str, Any]


class LabelFreePart(NamedTuple):
    """What a worker has found: of its cells, and by mode of its entities."""

    strangers: Strangers
    suspicions: dict[int, Suspicion]
    evidence: dict[int, Floats]
    inputs: dict[int, Arrays]  # packed; of the modes of ids


def find_label_free(
    cluster: ClusterSignals, evidence: ReviewEvidence, lockstep: Lockstep, columns: Mapping[int, ModeCovariates]
) -> LabelFree:
    """All that no label enters, found by workers: strangers, behaviour, suspicion and the inputs of heads.

    columns : the user's own, by mode.
    """

    def arguments() -> list[tuple[Any, ...]]:
        shares: list[tuple[Any, ...]] = []
        for rank, cells in enumerate(cluster.cells):
            own = {
                mode: ModeCovariates(given.names, given.values[slice(*cluster.bounds[mode][rank : rank + 2])])
                for mode, given in columns.items()
            }
            reviews = ReviewEvidence(*(column[cells] for column in evidence))
            shares.append((cluster.actor, reviews, lockstep.without_pairs(cells), own, cluster.workers.threads))
        return shares

    parts: list[LabelFreePart] = cluster.run(_label_free, arguments)
    strangers = Strangers(*(np.concatenate(column) for column in zip(*(p.strangers for p in parts), strict=True)))
    inputs = {mode: _joined([part.inputs[mode] for part in parts]) for mode in parts[0].inputs}
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
    return LabelFree(signals, columns, inputs)


def _whole(parts: list[Suspicion]) -> Suspicion:
    return Suspicion(
        parts[0].names, tuple(np.concatenate(part) for part in zip(*(p.parts for p in parts), strict=True))
    )


def _joined(parts: list[Arrays]) -> Inputs:
    arrays = {
        name: np.concatenate([part[name] for part in parts]) if name.startswith(ROWS) else array
        for name, array in parts[0].items()
    }
    return unpack_inputs(arrays)


def _label_free(
    memory: dict[str, Any],
    peers: Peers,
    actor: int,
    reviews: ReviewEvidence,
    lockstep: Lockstep,
    columns: dict[int, ModeCovariates],
    threads: int,
) -> LabelFreePart:
    """In a worker: what no label enters, of its cells and entities."""
    share = held_cells(memory, peers)
    signals = Signals(share, actor, lambda: reviews, lambda: lockstep)
    modes = range(len(share.shape))
    ids = [k for k in modes if share.tensor.vocabularies[k].kind == "id"]
    with using_threads(threads):
        inputs = {k: pack_inputs(label_free_inputs(signals, k, columns.get(k))) for k in ids}
        suspicions = {k: signals.suspicion(k) for k in modes}
        evidence = {k: signals.evidence(k) for k in modes}
    share.forget()
    return LabelFreePart(signals.strangers, suspicions, evidence, inputs)
