"""Graphs whose rows lie with several workers, and work that one of them leads: what one process would have."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from in_process import InProcess
from scipy import sparse

from ringleader.judge.population import edges_of, moved_rows
from ringleader.runtime.peers import Alone, Peers, led
from ringleader.shares import cells
from ringleader.shares.cells import CellShare, cut_entities, deal_shares
from ringleader.shares.graphs import both_ways, cell_graph, meeting_graph, two_ways
from ringleader.tensor.sparse import SparseTensor

BEGINS = [np.array([0, 7, 7, 30, 41]), np.array([0, 2, 11, 12, 13])]
"""Of the rows and of the columns of a graph; some workers own none."""


def test_products_over_ranges_are_those_of_the_whole_graph() -> None:
    rng = np.random.default_rng(0)
    graph = sparse.csr_array(sparse.random(41, 13, density=0.3, random_state=0))
    numbers = rng.lognormal(0, 5, (13, 3)), rng.lognormal(0, 5, (41, 3))

    def multiplied(memory: dict, peers: Peers) -> tuple[Any, ...]:
        rows, columns = (slice(*begins[peers.rank : peers.rank + 2]) for begins in BEGINS)
        ways = both_ways(peers, sparse.csr_array(graph[rows]), *BEGINS)
        return ways.there @ numbers[0][columns], ways.back @ numbers[1][rows], ways.there.sums(), ways.back.sums()

    parts = zip(*InProcess(4).run(multiplied, [()] * 4), strict=True)
    expected = graph @ numbers[0], graph.T @ numbers[1], graph.sum(axis=1), graph.sum(axis=0)
    alone = both_ways(Alone(), graph, *(begins[[0, -1]] for begins in BEGINS))
    for found, whole, here in zip(parts, expected, (alone.there @ numbers[0], alone.back @ numbers[1]), strict=False):
        np.testing.assert_array_equal(np.concatenate(found), whole)
        np.testing.assert_array_equal(here, whole)


@pytest.mark.parametrize(("mode", "other"), [(0, 1), (1, 0), (2, 0)])
def test_graphs_of_cells_are_made_where_their_rows_are(mode: int, other: int) -> None:
    rng = np.random.default_rng(1)
    tensor = SparseTensor.from_arrays(rng.integers(0, [50, 20, 3], (900, 3)))
    values, chosen = rng.normal(size=tensor.n_cells), rng.random(tensor.n_cells) < 0.5

    def made(memory: dict, peers: Peers, cells: Any, own: np.ndarray) -> list[Any]:
        share = CellShare.received(peers, cells)
        graphs = cell_graph(share, mode, other, values[own]), meeting_graph(share, mode, other, chosen[own])
        return [graph.toarray() for graph in graphs]

    alone = made({}, Alone(), deal_shares(tensor, cut_entities(tensor, 1))[0], np.ones(tensor.n_cells, np.bool_))
    assert set(np.unique(alone[1])) == {0.0, 1.0}
    bounds = cut_entities(tensor, 3)
    own = [(tensor.coordinates[:, 0] >= a) & (tensor.coordinates[:, 0] < b) for a, b in itertools.pairwise(bounds[0])]
    parts = InProcess(3).run(made, list(zip(deal_shares(tensor, bounds), own, strict=True)))
    for found, whole in zip(zip(*parts, strict=True), alone, strict=True):
        np.testing.assert_array_equal(np.concatenate(found), whole)


@pytest.mark.parametrize("dense", [0, 10**9])
def test_entities_are_read_of_their_owners_however_many_there_are(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "DENSE", dense)
    begins, values = np.array([0, 30, 30, 90]), np.arange(90) * 7.0
    named = [np.random.default_rng(rank).integers(0, 90, 40).astype(np.int32) for rank in range(3)]

    def read(memory: dict, peers: Peers) -> tuple[np.ndarray, ...]:
        codes = named[peers.rank]
        lookup = cells.Lookup(peers, begins, codes)
        rows = lookup.rows(values[slice(*begins[peers.rank : peers.rank + 2])])
        return lookup.codes, lookup.places(codes), rows[lookup.places(codes)]

    for codes, (distinct, places, found) in zip(named, InProcess(3).run(read, [()] * 3), strict=True):
        expected, where = np.unique(codes, return_inverse=True)
        np.testing.assert_array_equal(distinct, expected)
        assert distinct.dtype == np.int32
        np.testing.assert_array_equal(places, where)
        np.testing.assert_array_equal(found, values[codes])


def test_what_the_first_process_makes_is_known_to_all_and_it_may_ask() -> None:
    def work(memory: dict, peers: Peers) -> list[int]:
        return led(peers, lambda ask: [*ask(1), *ask(10)], lambda question: question * (peers.rank + 1))

    assert InProcess(3).run(work, [()] * 3) == [[1, 2, 3, 10, 20, 30]] * 3
    assert work({}, Alone()) == [1, 10]


def test_rows_are_cut_at_other_edges() -> None:
    rows, before, after = np.arange(20).reshape(10, 2), edges_of([3, 0, 5, 2]), np.array([0, 4, 8, 8, 10])

    def moved(memory: dict, peers: Peers) -> Any:
        return moved_rows(peers, rows[slice(*before[peers.rank : peers.rank + 2])], before, after)

    for rank, found in enumerate(InProcess(4).run(moved, [()] * 4)):
        np.testing.assert_array_equal(found, rows[after[rank] : after[rank + 1]])


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (12, 12)])
def test_a_graph_is_walked_both_ways_to_the_same_bits(shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(shape[0])
    graph = sparse.csr_array(draw.random(shape) * (draw.random(shape) < 0.4))
    there, back = two_ways(graph)
    for m in (1, 5):
        left, right = draw.normal(size=(shape[0], m)), draw.normal(size=(shape[1], m))
        np.testing.assert_array_equal(there @ right, graph @ right)
        np.testing.assert_array_equal(back @ left, sparse.csr_array(graph.T) @ left)
