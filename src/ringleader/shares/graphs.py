"""Sparse graphs between entities: each process has the rows of those that it owns, and reads of others what they meet.

Products add up each row in the order of its columns, so that they have the bits of one process.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ringleader.arrays import Array, Bools, Floats, Numbers, frozen
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tiles import LANES, graph_through, graph_times
from ringleader.runtime.peers import Peers
from ringleader.shares.cells import CellShare, Lookup, sent_to_owners


class OwnedRows:
    """The rows of a graph that this process owns. ``rows @ numbers`` takes numbers of the entities of the columns.

    matrix : (n_own, columns); all entities are columns in one process, those that are met here in several
    """

    def __init__(self, peers: Peers, matrix: Any, columns: Numbers) -> None:
        """matrix : of one process in any sparse form, of several CSR, with the codes of all entities as columns.

        columns : where the range of each process begins among these, (P + 1,)
        """
        self.matrix = matrix
        self._lookup = Lookup(peers, columns, np.zeros(0, np.int32) if peers.count == 1 else matrix.indices)
        if peers.count > 1:
            parts = matrix.data, self._lookup.places(matrix.indices), matrix.indptr
            self.matrix = sparse.csr_array(parts, shape=(matrix.shape[0], self._lookup.count))
        frozen((self.matrix, columns))

    def __matmul__(self, numbers: Floats) -> Floats:
        """(n_own, ...) from (m_own, ...): each process gives the numbers of its own entities."""
        read = self._lookup.rows(numbers)
        if _in_lanes(read) and self.matrix.format in ("csr", "csc"):
            return graph_times(self.matrix, read)
        return np.asarray(self.matrix @ read)

    @property
    def alone(self) -> bool:
        """Whether one process has all rows."""
        return self._lookup.alone

    def sums(self) -> Floats:
        """The sum of each row, (n_own,)."""
        return np.asarray(self.matrix.sum(axis=1)).reshape(-1)


def _in_lanes(numbers: Floats) -> bool:
    """Whether numbers have as many columns as compiled products take."""
    return numbers.ndim == 2 and numbers.shape[1] > 0 and numbers.shape[1] % LANES == 0


class OwnedGraph(NamedTuple):
    """A graph between two kinds of entities, as the owners of either see it."""

    there: OwnedRows
    back: OwnedRows

    def through(self, numbers: Floats) -> Floats:
        """``there @ (back @ numbers)``; in one pass where one process has both, by rows of the first of them."""
        there, back = self.there.matrix, self.back.matrix
        if self.alone and back.format == "csr" and there.format == "csc" and _in_lanes(numbers):
            return graph_through(back, numbers)
        return self.there @ (self.back @ numbers)

    @property
    def alone(self) -> bool:
        """Whether one process has all of it: then each is the other's transpose."""
        return self.there.alone and self.back.alone


def both_ways(peers: Peers, rows: sparse.csr_array, first: Numbers, second: Numbers) -> OwnedGraph:
    """A graph of which this process has the rows of its own entities (n_own, m), and its transpose.

    first, second : where the range of each process begins among the rows and among the columns, (P + 1,) each
    """
    there, back = two_ways(rows) if peers.count == 1 else (rows, turned(peers, rows, first, second))
    return OwnedGraph(OwnedRows(peers, there, second), OwnedRows(peers, back, first))


def two_ways(graph: sparse.csr_array) -> tuple[sparse.sparray, sparse.sparray]:
    """The graph and its transpose, both by the rows of the larger side: that is read in order, and only what is small
    is read out of order. Sums are added in the order in which the rows of each have them.
    """
    if graph.shape[0] >= graph.shape[1]:
        return graph, graph.T
    rows = sparse.csr_array(graph.T)
    return rows.T, rows


def turned(peers: Peers, rows: sparse.csr_array, first: Numbers, second: Numbers) -> sparse.csr_array:
    """The transpose: CSR (m_own, n) of the entities of the columns that this process owns; arguments as ``both_ways``.

    Columns ascend within each of its rows.
    """
    if peers.count == 1:
        return sparse.csr_array(rows.T)
    codes = np.repeat(np.arange(first[peers.rank], first[peers.rank + 1]), np.diff(rows.indptr))
    row, column, values = sent_to_owners(peers, second, rows.indices, (codes.astype(np.int32), rows.indices, rows.data))
    column = column - second[peers.rank]
    size = int(second[peers.rank + 1] - second[peers.rank])
    order = get_backend().stable_order(column, size)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=size))])
    return sparse.csr_array((values[order], row[order], offsets), shape=(size, int(first[-1])))


def cell_graph(share: CellShare, mode: int, other: int, values: Array) -> sparse.csr_array:
    """CSR (n_own, n_other): the sum over the cells of each pair of entities.

    values : of the cells held here, those of the first mode's entities
    """
    codes = share.home.tensor.coordinates
    return _summed(share, mode, other, (codes[:, mode], codes[:, other], values))


def meeting_graph(share: CellShare, mode: int, other: int, cells: Bools | None = None) -> sparse.csr_array:
    """CSR (n_own, n_other) with 1 where an entity of a mode meets one of the other, however often.

    cells : which of the reviews held here count, all where None.
    """
    home = share.home
    counted = home.tensor.coordinates if cells is None else home.tensor.coordinates[cells]
    graph = _summed(share, mode, other, (counted[:, mode], counted[:, other]))
    graph.data[:] = 1.0
    return graph


def _summed(share: CellShare, mode: int, other: int, columns: tuple[Array, ...]) -> sparse.csr_array:
    """CSR (n_own, n_other) of pairs that are held here.

    columns : the codes of both, and what is summed up; where the third is missing it is ones, which need not travel.
    """
    if not share.alone and mode != share.home.mode:
        columns = sent_to_owners(share.peers, share.bounds[mode], columns[0], columns)
    values = columns[2] if len(columns) > 2 else np.ones(len(columns[0]))
    where = columns[0] - share.own(mode)[0], columns[1]
    shape = share.size(mode), share.shape[other]
    return sparse.csr_array(sparse.coo_array((values, where), shape=shape))
