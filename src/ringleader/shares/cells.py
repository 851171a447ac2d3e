"""CellShare: the cells of a tensor that one of several processes holds, and what they tell each other of them.

Signals are written against it once. The entities of every mode are cut into ranges. Whoever owns an entity can have all
its cells (``by``), in the order of one process, so that sums over them have the same bits. One process owns everything,
and asks nobody.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ringleader.arrays import Array, Codes, Floats, Numbers, frozen
from ringleader.kernels.protocol import loaded_kernels
from ringleader.runtime.machine import return_memory
from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.shares.runs import MANY_VALUES, Runs, halved_sums, run_length, sums_by_code
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

DENSE = 4
"""Entities, up to so many times the codes, whose places are read from a table of all; of more they are searched for."""
HELD_CODES = 4_000_000
"""Cells up to which the codes of a mode are held side by side, once they were taken out of the tensor."""
SEVERAL = 4
"""Cells of an entity, on average, from which their numbers are held too: they are asked for twenty times in a fit."""

T = TypeVar("T")


class DealtCells(NamedTuple):
    """The cells of a range of the first mode's entities, as they are sent to a process."""

    codes: Codes  # (n, K)
    counts: Numbers  # (n,)
    vocabularies: tuple[Vocabulary, ...]  # ids and categories without their names
    bounds: tuple[Numbers, ...]  # of each mode (P + 1,)
    n_cells: int  # of all processes

    def without_rows(self) -> DealtCells:
        """The same without codes and counts."""
        return self._replace(codes=self.codes[:0], counts=self.counts[:0])


class CellShare:
    """The cells of the entities of one mode that this process owns.

    tensor : these cells, ascending, with the codes of all processes; its vocabularies may lack the names
    mode   : the mode whose owners hold the cells
    n_cells : cells of all processes
    """

    def __init__(
        self,
        tensor: SparseTensor,
        peers: Peers | None = None,
        bounds: tuple[Numbers, ...] = (),
        mode: int = 0,
        n_cells: int | None = None,
    ) -> None:
        self.tensor, self.mode = tensor, mode
        self.peers: Peers = Alone() if peers is None else peers
        self.bounds = frozen(bounds or tuple(np.array([0, size], np.int64) for size in tensor.shape))
        self.n_cells = tensor.n_cells if n_cells is None else n_cells
        self._home = self
        self._dealt: dict[int, CellShare] = {}
        self._owned: list[Array] = []  # of each process: which cells of the home share it holds here
        self._received: Numbers = np.zeros(0, np.int64)  # how many cells here came from each home share
        self._own_codes: dict[int, Codes] = {}
        self._degrees: dict[int, Numbers] = {}
        self._cell_runs: Array | None = None  # of each cell the run of its entity; there are at most RUNS

    @classmethod
    def received(cls, peers: Peers, cells: DealtCells) -> CellShare:
        """The share of a process from what was sent to it."""
        tensor = SparseTensor(cells.codes, cells.counts, cells.vocabularies)
        return cls(tensor, peers, cells.bounds, n_cells=cells.n_cells)

    @property
    def home(self) -> CellShare:
        """The share of the first mode's entities."""
        return self._home

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def alone(self) -> bool:
        """Whether one process holds everything."""
        return self.peers.count == 1

    def own(self, mode: int) -> tuple[int, int]:
        """The first entity of a mode that this process owns, and the first behind them."""
        return int(self.bounds[mode][self.peers.rank]), int(self.bounds[mode][self.peers.rank + 1])

    def size(self, mode: int) -> int:
        """How many entities of a mode this process owns."""
        first, last = self.own(mode)
        return last - first

    def own_codes(self, mode: int) -> Codes:
        """Of each cell held here its entity of a mode, counted from the first one that this process owns."""
        if mode in self._own_codes:
            return self._own_codes[mode]
        first = self.own(mode)[0]
        column = np.ascontiguousarray(self.tensor.coordinates[:, mode])
        column = frozen(column if first == 0 else column - np.int32(first))
        if self.n_cells <= HELD_CODES:
            self._own_codes[mode] = column
        return column

    # -- cells ----------------------------------------------------------------------------------------

    def by(self, mode: int) -> CellShare:
        """The cells of the entities of another mode that this process owns, ascending; kept until ``forget``."""
        home = self._home
        if mode == self.mode:
            return self
        if mode == home.mode:
            return home
        if mode not in home._dealt:
            home._dealt[mode] = home._same_cells(mode) if self.alone else home._deal(mode)
        return home._dealt[mode]

    def _same_cells(self, mode: int) -> CellShare:
        dealt = CellShare(self.tensor, self.peers, self.bounds, mode, self.n_cells)
        dealt._home = self
        return dealt

    def _deal(self, mode: int) -> CellShare:
        codes, counts = self.tensor.coordinates, self.tensor.counts
        owner = owners(self.bounds[mode], codes[:, mode])
        owned = [np.flatnonzero(owner == rank).astype(np.int32) for rank in range(self.peers.count)]
        parts = self.peers.exchange([(codes[some], counts[some]) for some in owned])
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        tensor = SparseTensor(columns[0], columns[1], self.tensor.vocabularies)
        dealt = CellShare(tensor, self.peers, self.bounds, mode, self.n_cells)
        dealt._home, dealt._owned = self, owned
        dealt._received = np.array([len(part[0]) for part in parts], np.int64)
        return dealt

    def forget(self) -> None:
        """Give back the memory of all cells but those of the first mode's entities."""
        self._home._dealt.clear()
        return_memory()

    def move(self, values: Array, to: CellShare) -> Array:
        """Values of the cells held here, (n, ...), as those of the cells held in another share of them."""
        if self is to or self.alone:
            return values
        if self is not self._home:
            out = np.empty((self._home.tensor.n_cells, *values.shape[1:]), values.dtype)
            parts = self.peers.exchange(np.split(values, np.cumsum(self._received)[:-1]))
            for places, part in zip(self._owned, parts, strict=True):
                out[places] = part
            return self._home.move(out, to)
        return np.concatenate(self.peers.exchange([values[places] for places in to._owned]))

    # -- what all must know ---------------------------------------------------------------------------

    def count(self, number: T) -> T:
        """The sum of a whole number, or of arrays of them, over all processes."""
        numbers: list[Any] = gather(self.peers, number)
        return sum(numbers[1:], numbers[0])  # type: ignore[no-any-return]

    def used(self, mode: int) -> Codes:
        """The codes of a mode that some cell has, ascending; for modes of few entities."""
        cells = np.bincount(self._home.tensor.coordinates[:, mode], minlength=self.shape[mode])
        return np.flatnonzero(self.count(cells)).astype(np.int32)

    def total(self, mode: int, codes: Array, values: Array) -> Floats:
        """The sum over everything of values (n, ...) of entities that this process owns, or of their cells: (...).

        Values of a run of entities are added in their order, runs along a tree (``kernels/tree.py``).
        codes : (n,) of the entities of the mode, counted from the first one owned here.
        """
        runs = self._runs(mode)
        return runs.total(runs.of(codes), values)

    def _runs(self, mode: int) -> Runs:
        return Runs(self.peers, self.bounds[mode])

    def products(self, mode: int, codes: Array, left: Floats, right: Floats) -> Floats:
        """``total`` of the outer products of left (n, K) and right (n, L), (K, L); codes ascend."""
        return self._runs(mode).products(codes, left, right)

    def sums(self, keys: Array, values: Floats, size: int) -> Floats:
        """Sums of values (n, ...) by key below ``size``, over all processes, (size, ...), whatever the order.

        Each value is cut into two whole numbers so short that float64 holds their sums without rounding. Together they
        have 60 bits below the largest value where there are ten million, never less than 44.
        """
        columns = values.reshape(len(values), math.prod(values.shape[1:]))
        most = max(gather(self.peers, float(np.abs(columns).max(initial=0.0))))
        bits = 53 - self.count(len(values)).bit_length()
        scale = 2.0 ** (bits - math.frexp(most)[1])
        finer = scale * 2.0**bits
        upper, lower = self.count(halved_sums(keys, columns, size, scale, finer))
        return np.asarray(upper / scale + lower / finer).reshape(size, *values.shape[1:])

    def cell_total(self, values: Array) -> Floats:
        """The sum over all cells of values of the cells held here, (n, ...): (...)."""
        return self._runs(self.mode).total(self.cell_runs()[0], values)

    def cell_runs(self) -> tuple[Array, int]:
        """Of each cell held here the run of its entity, and how many runs there are here."""
        runs = self._runs(self.mode)
        if self._cell_runs is None:
            self._cell_runs = frozen(runs.of(self.own_codes(self.mode)).astype(np.int16))
        return self._cell_runs, runs.count

    def joined(self, sums: Floats) -> Floats:
        """The sum over all cells of what was added up by run."""
        return self._runs(self.mode).joined(sums)

    def weighted_sums(self, codes: Array, weights: Floats, values: Array, size: int) -> tuple[Floats, float]:
        """Sums of weights times values of the cells held here by their codes, (size,), and ``cell_total`` of them."""
        kernels = loaded_kernels() if len(values) >= MANY_VALUES else None
        if kernels is None:
            weighted = weights * values
            return sums_by_code(codes, weighted, size), float(self.cell_total(weighted))
        runs, count = self.cell_runs()
        sums, leaves = kernels.weighted_sums(codes, runs, weights, values, (size, count))
        return sums, float(self.joined(leaves))

    def entity_sums(self, mode: int, values: Array) -> Floats:
        """Sums of values of the cells held here (the home share) over the entities of a mode owned here, (n_own,).

        Entities of ids add up their cells in their order; of the others, which may have more cells than a process
        holds, everyone adds up its own, as ``sums`` does.
        """
        if self.tensor.vocabularies[mode].kind != "id":
            column = self.tensor.coordinates[:, mode]
            return self.sums(column, np.asarray(values, np.float64), self.shape[mode])[slice(*self.own(mode))]
        there = self.by(mode)
        moved = self.move(values, there)
        return sums_by_code(there.own_codes(mode), moved, self.size(mode))

    def degrees(self, mode: int) -> Numbers:
        """How many cells each entity of a mode owned here has, (n_own,)."""
        if mode in self._degrees:
            return self._degrees[mode]
        if self.tensor.vocabularies[mode].kind != "id":
            column = self.tensor.coordinates[:, mode]
            return self.count(np.bincount(column, minlength=self.shape[mode]))[slice(*self.own(mode))]
        number = np.bincount(self.by(mode).own_codes(mode), minlength=self.size(mode))
        if SEVERAL * len(number) <= self.n_cells <= HELD_CODES:
            self._degrees[mode] = frozen(number)
        return number

    def lookup(self, mode: int, codes: Array) -> Lookup:
        """What reads the values of entities of a mode, given by their codes, of their owners."""
        return Lookup(self.peers, self.bounds[mode], codes)

    def added(self, mode: int, codes: Array, values: Array) -> Floats:
        """The sum of values by their entities, for those that this process owns, (n_own,): who gave them, in order."""
        return _added(self.peers, self.bounds[mode], codes, values)


def as_share(cells: SparseTensor | CellShare) -> CellShare:
    """What a process holds; of a tensor, everything."""
    return cells if isinstance(cells, CellShare) else CellShare(cells)


class Lookup:
    """Entities whose values this process reads of their owners: named once, read as often as need be."""

    def __init__(self, peers: Peers, begins: Numbers, codes: Array) -> None:
        """begins : where the range of each process begins, (P + 1,). codes : of the entities, any number of times."""
        self.peers, self._begins, self.alone = peers, begins, peers.count == 1
        self.codes = np.zeros(0, np.int32)
        if not self.alone:
            self.codes = _distinct(codes, int(begins[-1]))
            edges = np.searchsorted(self.codes, begins)
            asked = peers.exchange([self.codes[a:b] for a, b in itertools.pairwise(edges)])
            self._asked = [codes - begins[peers.rank] for codes in asked]

    @property
    def count(self) -> int:
        """How many entities are read."""
        return int(self._begins[-1]) if self.alone else len(self.codes)

    @property
    def own(self) -> slice:
        """The places of those that this process owns itself."""
        first, last = self._begins[self.peers.rank : self.peers.rank + 2].tolist()
        return slice(first, last) if self.alone else slice(*np.searchsorted(self.codes, [first, last]).tolist())

    def places(self, codes: Array) -> Array:
        """The places of codes, each of them one that was named, among the rows that are read."""
        if self.alone:
            return codes
        size = int(self._begins[-1])
        if size > DENSE * len(codes):
            return np.searchsorted(self.codes, codes).astype(np.int32)
        table = np.zeros(size, np.int32)
        table[self.codes] = np.arange(len(self.codes), dtype=np.int32)
        return table[codes]

    def named(self, places: Array) -> Array:
        """The codes at places."""
        return places if self.alone else self.codes[places]

    def rows(self, own: Array) -> Array:
        """The values of the entities that were named, from those (n_own, ...) that every process gives of its own."""
        if self.alone:
            return own
        return np.concatenate(self.peers.exchange([own[asked] for asked in self._asked]))

    def added(self, codes: Array, values: Array) -> Floats:
        """``CellShare.added`` of the entities of the same kind."""
        return _added(self.peers, self._begins, codes, values)

    def lists(self, offsets: Numbers, *columns: Array) -> tuple[Array, ...]:
        """The same of lists: that of entity n is ``column[offsets[n]:offsets[n + 1]]``, of each of the columns."""
        if self.alone:
            return offsets, *columns
        answers = []
        for asked in self._asked:
            length = offsets[asked + 1] - offsets[asked]
            inside = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
            chosen = np.repeat(offsets[asked], length) + inside
            answers.append((length, *(column[chosen] for column in columns)))
        lengths, *lists = (np.concatenate(part) for part in zip(*self.peers.exchange(answers), strict=True))
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), *lists


def _distinct(codes: Array, size: int) -> Array:
    """The codes, each below ``size``, once and ascending."""
    if size > DENSE * len(codes):
        return np.unique(codes)
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen).astype(codes.dtype)


def owners(begins: Numbers, codes: Array) -> Numbers:
    """The process that owns each of some entities; begins : (P + 1,), ``CellShare.bounds`` of their mode."""
    return np.searchsorted(begins, codes, side="right") - 1


def sent_to_owners(peers: Peers, begins: Numbers, codes: Array, columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Columns sent to the owners of codes: those sent here, in the order of who sent them."""
    owner = owners(begins, codes)
    chosen = [np.flatnonzero(owner == rank) for rank in range(peers.count)]
    parts = peers.exchange([tuple(column[some] for column in columns) for some in chosen])
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _added(peers: Peers, begins: Numbers, codes: Array, values: Array) -> Floats:
    """The sum of values by their entities, for those that this process owns, (n_own,)."""
    if peers.count == 1:
        return sums_by_code(codes, values, int(begins[-1]))
    first, last = begins[peers.rank : peers.rank + 2].tolist()
    theirs, weights = sent_to_owners(peers, begins, codes, (codes, values))
    return sums_by_code(theirs - first, weights, last - first)


def cut_entities(tensor: SparseTensor, workers: int) -> tuple[Numbers, ...]:
    """For each mode where the entities of each worker begin, (P + 1,): ranges of whole runs, of about as many cells."""
    bounds = []
    for mode, size in enumerate(tensor.shape):
        run = run_length(size)
        places = np.arange(0, size + run, run)[: -(-size // run) + 1]
        places[-1] = size
        cost = tensor.cells_of_each(mode) + 1
        before = np.concatenate([[0], np.cumsum(cost)])[places]
        inner = np.searchsorted(before, before[-1] * np.arange(1, workers) / workers)
        bounds.append(np.concatenate([[0], places[inner], [size]]).astype(np.int64))
    return tuple(bounds)


def deal_shares(tensor: SparseTensor, bounds: tuple[Numbers, ...]) -> list[DealtCells]:
    """The cells of each worker's entities of the first mode."""
    places = tensor.first_cells(bounds[0])
    nameless = tuple(
        Vocabulary(v.mode, v.kind, pa.nulls(len(v)) if v.kind in ("id", "category") else v.values, v.bin_seconds)
        for v in tensor.vocabularies
    )
    return [
        DealtCells(tensor.coordinates[a:b], tensor.counts[a:b], nameless, bounds, tensor.n_cells)
        for a, b in itertools.pairwise(places)
    ]
