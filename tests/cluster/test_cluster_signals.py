"""Signals on workers: the bits of one process, for any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import InProcess, Mortal
from markets import small_problem
from scipy.stats import rankdata

from ringleader.datasets import taste_market
from ringleader.errors import WorkerLost
from ringleader.judge import LabelFree
from ringleader.judge.cluster import HeldSignals
from ringleader.judge.inputs import pack_inputs
from ringleader.kernels.tree import tree_sum
from ringleader.known.covariates import ModeCovariates
from ringleader.learners.cluster import ClusterLearner
from ringleader.learners.loop import fit_loop, get_learner
from ringleader.model.evidence import ReviewEvidence, review_evidence, without_own_pull
from ringleader.model.posterior import CellEvidence
from ringleader.model.start import start_state
from ringleader.runtime.peers import Alone, Peers
from ringleader.shares.cells import CellShare, cut_entities, deal_shares
from ringleader.shares.order import rank_values
from ringleader.signals import Signals
from ringleader.signals.cluster import ClusterSignals
from ringleader.signals.crowd import counts_lead, entity_crowd, repeated_share, review_crowd
from ringleader.signals.lockstep import LockstepSettings, find_lockstep, start, start_rows
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

WORKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def market() -> SparseTensor:
    """Rings, fans, strangers and attackers, all of them small."""
    return read_reviews(taste_market(7_500, kind="everything", seed=3, used_once=8).reviews)


@pytest.fixture(scope="module")
def direct(market: SparseTensor) -> np.ndarray:
    """What one process finds of who acts directly with whom."""
    return find_lockstep(market).both.direct


def shares_of(tensor: SparseTensor, workers: int) -> list[tuple[object]]:
    return [(cells,) for cells in deal_shares(tensor, cut_entities(tensor, workers))]


def test_every_owner_has_the_cells_of_its_entities_in_the_order_of_one_process(market: SparseTensor) -> None:
    def held(memory: dict, peers: Peers, cells: object) -> list:
        home = CellShare.received(peers, cells)  # type: ignore[arg-type]
        found = []
        for mode in range(len(home.shape)):
            there = home.by(mode)
            first, last = there.own(mode)
            back = there.move(there.tensor.coordinates, home)
            np.testing.assert_array_equal(back, home.tensor.coordinates)
            found.append((first, last, there.tensor.coordinates, there.tensor.counts))
        return found

    for workers in WORKERS:
        for mode, parts in enumerate(zip(*InProcess(workers).run(held, shares_of(market, workers)), strict=True)):
            column = market.coordinates[:, mode]
            assert [parts[0][0], parts[-1][1]] == [0, market.shape[mode]]
            for first, last, coordinates, counts in parts:
                own = (column >= first) & (column < last)
                np.testing.assert_array_equal(coordinates, market.coordinates[own])
                np.testing.assert_array_equal(counts, market.counts[own])


def test_sums_over_everything_have_the_bits_of_one_process_whoever_holds_the_entities(market: SparseTensor) -> None:
    values = np.random.default_rng(0).lognormal(0, 5, (market.n_cells, 2))

    def summed(memory: dict, peers: Peers, cells: object) -> tuple:
        home = CellShare.received(peers, cells)  # type: ignore[arg-type]
        first = int(np.searchsorted(market.coordinates[:, 0], home.own(0)[0]))
        mine = values[first : first + home.tensor.n_cells]
        there = home.by(1)
        per_item = home.added(1, home.tensor.coordinates[:, 1], mine[:, 0])
        asked = home.lookup(1, home.tensor.coordinates[:, 1])
        seen = asked.rows(per_item)[asked.places(home.tensor.coordinates[:, 1])]
        return home.cell_total(mine), there.cell_total(home.move(mine, there)), home.used(2), home.cell_total(seen)

    expected = InProcess(1).run(summed, shares_of(market, 1))[0]
    np.testing.assert_allclose(expected[0], values.sum(axis=0))
    for workers in WORKERS[1:]:
        for found in InProcess(workers).run(summed, shares_of(market, workers)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    run = -(-market.shape[0] // 1024)
    leaves = [np.bincount(market.coordinates[:, 0] // run, weights=column) for column in values.T]
    np.testing.assert_array_equal(expected[0], tree_sum(np.stack(leaves, axis=1)))


def count_pairs(memory: dict, peers: Peers) -> int:
    """In a worker: the pairs of its actors, each of them twice where both are its own."""
    return memory["lockstep"].graph.nnz


def held_lockstep(memory: dict, peers: Peers) -> dict[str, np.ndarray]:
    """In a worker: the rows of the arrays of lockstep that it holds."""
    return memory["lockstep"].held_arrays(peers)


def keep(memory: dict, peers: Peers, name: str, value: Any) -> None:
    """In a worker: keep something."""
    memory[name] = value


def whole_lockstep(cluster: ClusterSignals) -> dict[str, np.ndarray]:
    """Lockstep as the driver has it, with the arrays of cells that the workers keep."""
    known = cluster.lockstep()
    on_driver = known.to_arrays()
    parts = cluster.run(held_lockstep, lambda: [()] * cluster.workers.count)
    assert all(np.isnan(on_driver[name]).all() for name in parts[0] if name in on_driver)  # the driver has none of them
    pairs = cluster.run(count_pairs, lambda: [()] * cluster.workers.count)
    assert known.graph.nnz == sum(pairs)  # of the pairs it has the number
    return on_driver | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize(
    ("actor", "settings"),
    [
        (0, LockstepSettings()),
        (1, LockstepSettings(topics=5, third_parties=0.0)),
        (0, LockstepSettings(topics=0, max_group=20, phases=1)),
    ],
)
def test_lockstep_is_that_of_one_process(market: SparseTensor, actor: int, settings: LockstepSettings) -> None:
    expected = find_lockstep(market, settings, actor=actor)
    assert actor or (expected.graph.nnz > 0 and expected.attack.scores.max() > 0)
    for workers in WORKERS:
        found = whole_lockstep(ClusterSignals(InProcess(workers), market, actor, settings))
        for name, column in expected.to_arrays().items():
            np.testing.assert_array_equal(found[name], column, err_msg=name)


@pytest.mark.parametrize("doubt", [0.0, 12.0])  # with so much there are fewer groups than columns
def test_the_start_is_that_of_one_process(market: SparseTensor, doubt: float) -> None:
    settings = LockstepSettings(doubt=doubt) if doubt else LockstepSettings()
    expected = start_rows(find_lockstep(market, settings), 24, 5)
    assert expected is not None
    assert (expected.max(axis=0) <= 2 * start.BASE).any() == bool(doubt)  # noise where there is no group
    found = ClusterSignals(InProcess(3), market, 0, settings).start_rows(24, 5, "float32")
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_workers_without_pairs_have_nothing_to_start_from() -> None:
    alone = SparseTensor.from_arrays([[0, 0], [1, 1], [2, 2]], ["reviewer", "product"])
    assert ClusterSignals(InProcess(2), alone, 0).start_rows(4, 0, "float32") is None


@pytest.mark.parametrize("size", [1, 2, 3, 499, 500, 501, 1000, 40_000])
@pytest.mark.parametrize("zeros", [0.0, 0.9, 0.9999])
def test_the_scale_of_the_start_is_a_quantile_of_all(size: int, zeros: float) -> None:
    rng = np.random.default_rng(size)
    values = np.where(rng.random(size) < zeros, 0.0, rng.lognormal(0, 2, size))
    assert start._quantile(Alone(), values, size) == np.quantile(values, start.QUANTILE)


def test_lockstep_of_one_side_without_times_is_that_of_one_process() -> None:
    rng = np.random.default_rng(0)
    tensor = SparseTensor.from_arrays(rng.integers(0, [40, 12], (600, 2)), ["reviewer", "product"])
    expected = find_lockstep(tensor).to_arrays()
    for workers in (2, 5):
        found = whole_lockstep(ClusterSignals(InProcess(workers), tensor, 0))
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, err_msg=name)


def packed(label_free: LabelFree, modes: list[int]) -> dict[str, np.ndarray]:
    """Everything that is saved of what no label enters."""
    signals = label_free.signals
    found: dict[str, np.ndarray] = dict(signals.strangers._asdict())
    for mode in modes:
        suspicion = signals.suspicion(mode)
        found |= {f"{name}_{mode}": part for name, part in zip(suspicion.names, suspicion.parts, strict=True)}
        found[f"evidence_{mode}"] = signals.evidence(mode)
        if signals.tensor.vocabularies[mode].kind == "id":
            inputs = label_free.inputs(mode)
            found |= {f"{name}_{mode}": array for name, array in pack_inputs(inputs).items()}
            for name, burst in inputs.behaviour.bursts.items():
                found[f"{name}_z_{mode}"] = burst.z
    return found


def giver(cluster: ClusterSignals, evidence: ReviewEvidence) -> Callable[[], object]:
    """Gives every worker the evidence of its cells."""

    def give() -> None:
        parts = [ReviewEvidence(*(column[cells] for column in evidence)) for cells in cluster.cells]
        cluster.workers.run(keep, [("evidence", part) for part in parts])

    return give


def label_free_market(market: SparseTensor, kind: str) -> SparseTensor:
    if kind == "everything":
        return market
    rng = np.random.default_rng(2)
    return SparseTensor.from_arrays(rng.integers(0, [300, 40, 7], (4_000, 3)), ["reviewer", "product", "seller"])


@pytest.mark.parametrize(
    ("kind", "actor", "numbers"),
    [
        ("everything", 0, (1, 3)),
        ("everything", 1, (2,)),
        ("no times and no ratings", 0, (3,)),
        pytest.param("everything", 0, (2,), marks=pytest.mark.slow),
        pytest.param("everything", 1, (1, 3), marks=pytest.mark.slow),
        pytest.param("no times and no ratings", 0, (1, 2), marks=pytest.mark.slow),
    ],
)
def test_all_that_no_label_enters_is_that_of_one_process(
    market: SparseTensor, kind: str, actor: int, numbers: tuple[int, ...]
) -> None:
    tensor = label_free_market(market, kind)
    rng = np.random.default_rng(0)
    evidence = without_own_pull(
        CellEvidence(rng.normal(size=tensor.n_cells), *rng.uniform(0, 0.5, (2, tensor.n_cells))), np.ones(1)
    )
    lockstep = find_lockstep(tensor, actor=actor)
    columns = {1: ModeCovariates(("given",), rng.normal(size=(tensor.shape[1], 1)))}
    modes = list(range(len(tensor.shape)))
    alone = LabelFree(Signals(tensor, actor, lambda: evidence, lambda: lockstep), columns)
    expected = packed(alone, modes)
    assert kind != "everything" or actor or (expected["ratios"] > 0).any()
    for workers in numbers:
        cluster = ClusterSignals(InProcess(workers), tensor, actor)
        held = HeldSignals(cluster, cluster.lockstep(), columns, giver(cluster, evidence))
        assert np.isnan(held.label_free.inputs(0).values).all()  # they lie with the workers
        found = packed(held.whole(), modes)
        assert found.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, err_msg=name)


def test_places_among_all_are_those_of_one_process() -> None:
    rng = np.random.default_rng(0)
    parts = [np.round(rng.normal(size=n), 1) for n in (0, 500, 3, 90)]
    parts[1][:3] = [-0.0, 0.0, -5.0]
    whole = rank_values(Alone(), np.concatenate(parts))
    ranked = InProcess(4).run(lambda memory, peers, part: rank_values(peers, part), [(part,) for part in parts])
    np.testing.assert_array_equal(np.concatenate([part.places for part in ranked]), whole.places)
    np.testing.assert_array_equal(np.concatenate([part.distinct for part in ranked]), whole.distinct)
    assert [part.total for part in ranked] == [whole.total] * 4
    np.testing.assert_allclose(whole.places, rankdata(np.concatenate(parts)) - 0.5)


def test_a_lost_worker_costs_a_signal_and_no_bit(market: SparseTensor, direct: np.ndarray) -> None:
    for death in (1, 2, 3):
        with pytest.warns(UserWarning, match="worker 1 is gone; new workers find the signals again"):
            found = ClusterSignals(Mortal(2, {death}), market, 0).lockstep()
        np.testing.assert_array_equal(found.both.direct, direct)


def test_fewer_workers_go_on_where_one_is_lost(market: SparseTensor, direct: np.ndarray) -> None:
    class Shrinking(Mortal):
        def restart(self) -> None:
            if hasattr(self, "workers"):
                self.count -= 1
            super().restart()

    workers = Shrinking(3, {3})
    with pytest.warns(UserWarning, match="new workers find the signals again"):
        found = ClusterSignals(workers, market, 0).lockstep()
    assert workers.count == 2
    np.testing.assert_array_equal(found.both.direct, direct)


def test_workers_that_are_gone_when_their_memory_is_wanted_back_stop_nothing(market: SparseTensor) -> None:
    cluster = ClusterSignals(Mortal(2, {4}), market, 0)
    expected = cluster.lockstep().both.direct
    cluster.release()
    np.testing.assert_array_equal(cluster.lockstep().both.direct, expected)


@pytest.mark.filterwarnings("ignore:worker 1 is gone")
def test_workers_that_are_lost_again_and_again_say_what_to_do(market: SparseTensor) -> None:
    with pytest.raises(WorkerLost, match=r"worker 1 is gone; the signals were looked for 3 times; .* resume=True"):
        ClusterSignals(Mortal(2, set(range(1, 99))), market, 0).lockstep()


@pytest.mark.parametrize("settings", [{}, {"contrast": 1, "count_weight": "log"}, {"heldout": 0.1}, {"negatives": 0}])
def test_evidence_is_that_of_one_process(settings: dict) -> None:
    problem = small_problem(labels=True, **settings)
    state, _ = fit_loop(problem, start_state(problem), sweeps=1)
    expected = review_evidence(problem, state)
    for workers, dealt_from in ((1, 100), (2, 10), (3, 30)):
        learner = ClusterLearner(InProcess(workers), get_learner("natural-gradient"), dealt_from)
        for found in (learner.evidence(problem, state), learner.evidence(problem, state)):
            for name, column in expected._asdict().items():
                np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)
        after = fit_loop(problem, state, sweeps=1)[0]
        np.testing.assert_array_equal(learner.sweep(problem, state).factors, after.factors)


def test_a_worker_lost_over_the_evidence_costs_no_bit() -> None:
    problem = small_problem()
    state, _ = fit_loop(problem, start_state(problem), sweeps=1)
    learner = ClusterLearner(Mortal(2, {7}), get_learner("natural-gradient"), 100)
    with pytest.warns(UserWarning, match="new workers do the evidence of the reviews again"):
        found = learner.evidence(problem, state)
    np.testing.assert_array_equal(found.evidence, review_evidence(problem, state).evidence)


@pytest.mark.parametrize("kinds", [("id", "id", "id", "id"), ("id", "id", "category", "category")])
def test_crowds_on_workers_have_the_bits_of_one_process(kinds: tuple[str, ...]) -> None:
    rng = np.random.default_rng(8)
    rows = np.minimum(rng.geometric([0.02, 0.05, 0.3, 0.5], (4_000, 4)), 60)
    names = [f"mode{k}" for k in range(4)]
    table = "n" + pd.DataFrame(rows, columns=names).astype(str)
    tensor = read_reviews(table, modes=[f"{n}={n}:{kind}" for n, kind in zip(names, kinds, strict=True)])
    expected = review_crowd(tensor), [entity_crowd(tensor, k, review_crowd(tensor)) for k in range(4)]

    def found(memory: dict, peers: Peers, cells: object) -> tuple:
        share = CellShare.received(peers, cells)  # type: ignore[arg-type]
        crowd = review_crowd(share)
        own = [entity_crowd(share, k, crowd) for k in range(4)]
        return crowd, own, counts_lead(share, 0), repeated_share(share, 1)

    for workers in WORKERS:
        parts = InProcess(workers).run(found, shares_of(tensor, workers))
        np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), expected[0])
        for k in range(4):
            np.testing.assert_array_equal(np.concatenate([part[1][k] for part in parts]), expected[1][k])
        assert {part[2:] for part in parts} == {(counts_lead(tensor, 0), repeated_share(tensor, 1))}
