"""Ties: labels that flow along graphs which several threads share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringleader.arrays import Floats
from ringleader.signals.lockstep import association, find_lockstep, folds
from ringleader.signals.lockstep.association import FLOWS, SHARED_PRIOR, Ties
from ringleader.signals.lockstep.folds import Flow, LabelSet
from ringleader.tensor.sparse import SparseTensor

SHAPE = (30, 12, 5)


def market() -> SparseTensor:
    rng = np.random.default_rng(0)
    return SparseTensor.from_arrays(np.stack([rng.integers(0, n, 150) for n in SHAPE], axis=1), sizes=SHAPE)


@pytest.fixture
def ties() -> Ties:
    tensor = market()
    return Ties(tensor, find_lockstep(tensor))


def labels(seed: int) -> LabelSet:
    return LabelSet(np.array([0, 3, 7, 9]), np.array([1.0, -1.0, 1.0, float(seed)]))


def test_a_flow_that_another_thread_crowds_out_meanwhile_is_still_there(
    ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, new, flow = labels(1), labels(2), Flow()
    expected = ties.associate([known, new], flow)
    ties._flows.clear()
    ties.associate([known], flow)
    original = association.spread_labels

    def crowded(*arguments: Any, **settings: Any) -> Any:
        monkeypatch.setattr(association, "spread_labels", original)
        for seed in range(3, 3 + FLOWS):  # what other threads do while this one is at work
            ties.associate([labels(seed)], flow)
        return original(*arguments, **settings)

    monkeypatch.setattr(association, "spread_labels", crowded)
    for found, wanted in zip(ties.associate([known, new], flow), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert len(ties._flows) == FLOWS


@pytest.mark.parametrize("restart", [0.15, 0.4])
def test_labels_that_spread_over_counterparts_fade_by_the_restart_of_their_flow(ties: Ties, restart: float) -> None:
    tensor, flow = ties.tensor, Flow(restart=restart, iterations=3, folds=4)
    ties.associate_shared(0, 1, [labels(1)], flow.replace(restart=0.9))  # leaves nothing behind for the next
    found = ties.associate_shared(0, 1, [labels(1)], flow)[0]
    graph = np.zeros(SHAPE[:2])
    np.add.at(graph, (tensor.coordinates[:, 0], tensor.coordinates[:, 1]), tensor.counts)
    ends = [np.sqrt(graph.sum(axis=axis) + SHARED_PRIOR) for axis in (1, 0)]
    step = graph / ends[0][:, None] / ends[1]
    own = folds.OwnSpan(0, SHAPE[0], SHAPE[0])
    held = folds.hold_out(labels(1), own, flow)
    known = np.zeros((SHAPE[0], held.labels.shape[1]))
    known[held.places] = held.labels
    q: Floats = known
    for _ in range(2 * flow.iterations):
        q = (1 - restart) * ((1 - restart) * step @ (step.T @ q)) + restart * known
    expected = folds.read_folds(q - restart * known, held.folds_of(SHAPE[0]))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)
