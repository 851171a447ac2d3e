"""Cores on workers: the bits of one process, and no worker is sent all reviews to find them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import InProcess, Mortal

from ringleader.cores import CoreSettings, find_cores
from ringleader.cores.cluster import cores_on_workers
from ringleader.cores.layout import BoardHolder
from ringleader.cores.rows import CellSet, Column, FetchedTable, Fetcher, OwnTable, PackedRows
from ringleader.datasets import taste_market
from ringleader.runtime.peers import Peers
from ringleader.shares.cells import CellShare, cut_entities, deal_shares
from ringleader.signals.cluster import ClusterSignals
from ringleader.signals.lockstep import Lockstep, find_lockstep
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

DAY = 86_400
pytestmark = pytest.mark.filterwarnings("ignore:no column for")


@pytest.fixture(scope="module")
def market() -> SparseTensor:
    """Rings, fans, strangers and attackers, all of them small."""
    return read_reviews(taste_market(12_000, kind="everything", seed=3, used_once=8).reviews)


@pytest.fixture(scope="module")
def lockstep(market: SparseTensor) -> Lockstep:
    return find_lockstep(market)


def mixed_market(seed: int, rings: int, honest: int, *, rating: bool = True, time: bool = True) -> SparseTensor:
    """People with habits and rings that meet: some share members, places or both."""
    rng = np.random.default_rng(seed)
    rows = [
        pd.DataFrame(
            {
                "reviewer": np.minimum(rng.geometric(0.01, honest), 400),
                "product": np.minimum(rng.geometric(0.02, honest), 120),
                "rating": rng.integers(1, 6, honest),
                "timestamp": rng.integers(0, 400, honest) * DAY,
            }
        )
    ]
    for ring in range(rings):
        people = rng.choice(500, rng.integers(3, 15), replace=False) + 300
        products = rng.choice(120, rng.integers(2, 9), replace=False)
        days = rng.integers(0, 400, len(products))
        who, where = (part.ravel() for part in np.meshgrid(people, np.arange(len(products))))
        part = {"reviewer": who, "product": products[where], "rating": 1 if ring % 4 == 3 else 5}
        rows.append(pd.DataFrame(part | {"timestamp": days[where] * DAY}).sample(frac=0.9, random_state=seed))
    table = pd.concat(rows, ignore_index=True)
    table["seller"] = "s" + (table["product"] // 7).astype(str)
    for name in ("reviewer", "product"):
        table[name] = name[0] + table[name].astype(str)
    gone = [name for name, kept in (("rating", rating), ("timestamp", time)) if not kept]
    return read_reviews(table.drop(columns=gone))


def in_worker(
    memory: dict, peers: Peers, cells: Any, lockstep: Lockstep, direct: np.ndarray, options: CoreSettings, actor: int
) -> dict[str, np.ndarray]:
    own = replace(lockstep, both=replace(lockstep.both, direct=direct))
    return find_cores(CellShare.received(peers, cells), own, options, actor=actor).to_arrays()


def found_by(
    workers: InProcess, tensor: SparseTensor, lockstep: Lockstep, options: CoreSettings, actor: int = 0
) -> list[dict[str, np.ndarray]]:
    """What every worker says that the cores are."""
    bounds = cut_entities(tensor, workers.count)
    edges = tensor.first_cells(bounds[0])
    parts = [lockstep.both.direct[a:b] for a, b in itertools.pairwise(edges)]
    shares = deal_shares(tensor, bounds)
    tasks = [(cells, lockstep, own, options, actor) for cells, own in zip(shares, parts, strict=True)]
    return workers.run(in_worker, tasks)


def check_same(found: Sequence[dict[str, np.ndarray]], expected: dict[str, np.ndarray]) -> None:
    for arrays in found:
        assert arrays.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(arrays[name], column, err_msg=name)


def test_cores_are_those_of_one_process(market: SparseTensor, lockstep: Lockstep) -> None:
    expected = find_cores(market, lockstep)
    assert len(expected) > 3 and {core.side for core in expected} == {"boost"}
    for workers in (1, 2, 3, 4):
        cluster = ClusterSignals(InProcess(workers), market, 0)
        check_same([cores_on_workers(cluster, lockstep).to_arrays()], expected.to_arrays())
        assert all("cells" not in worker.memory for worker in cluster.workers.workers)  # type: ignore[attr-defined]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), rings=st.integers(0, 12), workers=st.integers(2, 4), data=st.data())
def test_a_search_on_fetched_rows_finds_what_one_on_all_of_them_finds(
    seed: int, rings: int, workers: int, data: st.DataObject
) -> None:
    tensor = mixed_market(seed, rings, 900, rating=data.draw(st.booleans()), time=data.draw(st.booleans()))
    actor = data.draw(st.sampled_from([0, 0, 1]))
    seeds = data.draw(st.sampled_from([5, 5_000]))
    options, lockstep = CoreSettings(significance=0.9, max_seeds=seeds), find_lockstep(tensor, actor=actor)
    expected = find_cores(tensor, lockstep, options, actor=actor).to_arrays()
    check_same(found_by(InProcess(workers), tensor, lockstep, options, actor), expected)


def test_rings_that_share_people_are_found_alike_however_many_search_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = mixed_market(5, 40, 2_000)
    options, lockstep = CoreSettings(significance=0.9), find_lockstep(tensor)
    expected = find_cores(tensor, lockstep, options).to_arrays()
    assert len(expected["cell_lengths"]) > 5
    for ahead in (1, 3, 256):
        monkeypatch.setattr("ringleader.cores.search.AHEAD", ahead)
        check_same(found_by(InProcess(3), tensor, lockstep, options), expected)


def test_nobody_is_sent_all_reviews_where_few_are_of_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = mixed_market(1, 3, 20_000)
    lockstep, fetched, held = find_lockstep(tensor), list[np.ndarray](), list[int]()
    take, lay = FetchedTable.take, BoardHolder.__init__

    def counted(self: FetchedTable, numbers: np.ndarray, parts: Sequence[PackedRows]) -> None:
        cells = [part.entries["cell"] for part in parts if "cell" in part.entries]
        fetched.extend([*cells, numbers if "codes" in parts[0].values else np.zeros(0, int)])
        take(self, numbers, parts)

    def laid(self: BoardHolder, *about: Any) -> None:
        lay(self, *about)
        held.extend(len(board.cells) for board in self.boards)

    monkeypatch.setattr(FetchedTable, "take", counted)
    monkeypatch.setattr(BoardHolder, "__init__", laid)
    found = found_by(InProcess(4), tensor, lockstep, CoreSettings())
    assert len(found[0]["cell_lengths"])
    assert 0 < len(np.unique(np.concatenate(fetched))) < tensor.n_cells / 10
    assert max(held) < tensor.n_cells / 3


def test_the_driver_sends_each_worker_the_reviews_of_its_own_accounts_alone(
    market: SparseTensor, lockstep: Lockstep
) -> None:
    class Counting(InProcess):
        def _run(self, call: Any, arguments: Any) -> list[Any]:
            tasks = list(arguments)
            self.received = getattr(self, "received", np.zeros(self.count))
            before = self.bytes
            for rank, task in enumerate(tasks):
                self._sent(task)
                self.received[rank] += self.bytes - before
                before = self.bytes
            return super()._run(call, tasks)

    workers = Counting(4)
    cluster = ClusterSignals(workers, market, 0)
    cores_on_workers(cluster, lockstep)
    assert workers.received.max() < 0.5 * (market.coordinates.nbytes + market.counts.nbytes + 8 * market.n_cells)


def test_a_worker_lost_over_cores_costs_no_bit(market: SparseTensor, lockstep: Lockstep) -> None:
    cluster = ClusterSignals(Mortal(2, {4}), market, 0)
    with pytest.warns(UserWarning, match="worker 1 is gone; new workers search for cores again"):
        found = cores_on_workers(cluster, lockstep)
    check_same([found.to_arrays()], find_cores(market, lockstep).to_arrays())


def test_rows_that_are_fetched_are_those_of_their_owners() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 5, 30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values, entries = {"price": rng.normal(size=30)}, {"who": rng.integers(0, 99, offsets[-1])}
    whole = OwnTable(0, 30, 30, values, entries, offsets)
    owners = [
        OwnTable(a, b - a, 30, {"price": values["price"][a:b]}, {"who": entries["who"][offsets[a] : offsets[b]]}, cut)
        for a, b, cut in ((0, 12, offsets[:13]), (12, 12, offsets[12:13] * 0), (12, 30, offsets[12:] - offsets[12]))
    ]
    asked: list[Any] = []

    def ask(question: Any) -> list[Any]:
        asked.append(question)
        return [[owner.packed(numbers) for _, numbers in question[1]] for owner in owners]

    fetcher = Fetcher(ask)
    table = fetcher.table(30)
    assert len(table.read(np.zeros(0, np.int64)).entries("who")) == 0 and not asked
    for numbers in (np.array([3, 20]), np.array([1, 3, 5, 29]), np.array([3, 20]), np.arange(30)):
        rows, expected = table.read(numbers), whole.read(numbers)
        np.testing.assert_array_equal(rows.lengths, expected.lengths)
        np.testing.assert_array_equal(rows.values("price"), expected.values("price"))
        np.testing.assert_array_equal(rows.entries("who"), expected.entries("who"))
    assert [len(question[1][0][1]) for question in asked] == [2, 3, 25]  # each row once
    assert not table.lacks(np.array([7]))


def test_a_set_of_cells_and_an_array_that_grows() -> None:
    cells = CellSet(100)
    cells.add(np.array([5, 3]))
    cells.add(np.array([3, 90]))
    assert cells.ascending().tolist() == [3, 5, 90] and cells.contains(np.array([4, 5])).tolist() == [False, True]
    column = Column()
    assert not len(column.array)
    for some in np.split(np.arange(50.0).reshape(25, 2), [1, 2, 3, 20]):
        column.append(some)
    np.testing.assert_array_equal(column.array, np.arange(50.0).reshape(25, 2))
