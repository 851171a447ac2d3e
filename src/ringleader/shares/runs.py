"""Runs: sums over the entities of a mode, with the same bits whichever processes own them.

Entities are cut into at most ``RUNS`` runs, none of which is cut between two processes. Values of a run are added in
their order, runs along a tree (``kernels/tree.py``).
"""

from __future__ import annotations

import math

import numpy as np

from ringleader.arrays import Array, Floats, Numbers
from ringleader.kernels.protocol import loaded_kernels
from ringleader.kernels.tiles import outer_products
from ringleader.kernels.tree import TreeNodes, join_nodes, tree_sum, whole_nodes
from ringleader.runtime.peers import Peers, gather

MANY_VALUES = 20_000
"""Values from which a compiled kernel adds them up, where it is loaded."""

ROWS_AT_ONCE = 16_384
"""Rows of values that are cut up at a time: so many stay near the processor."""

RUNS = 1024
"""Runs of entities, at the most, that a sum over a mode is made of."""


class Runs:
    """The runs of the entities of one mode."""

    def __init__(self, peers: Peers, begins: Numbers) -> None:
        """begins : where the range of each process begins, (P + 1,), at the beginnings of runs."""
        self.peers, self.size = peers, int(begins[-1])
        self.first, self.last = int(begins[peers.rank]), int(begins[peers.rank + 1])
        self.length = run_length(self.size)

    @property
    def count(self) -> int:
        """Runs that this process has."""
        return -(-self.last // self.length) - self.first // self.length

    def of(self, codes: Array) -> Numbers:
        """The run of each entity, counted from the first one here; codes are counted from the first entity here."""
        return np.asarray((codes + np.int64(self.first)) // self.length - self.first // self.length)

    def total(self, runs: Array, values: Array) -> Floats:
        """The sum over everything of values (n, ...), each of a run, (...)."""
        columns = values.reshape(len(values), *([math.prod(values.shape[1:])] if values.ndim > 1 else []))
        return self.joined(sums_by_code(runs, columns, self.count).reshape(self.count, *values.shape[1:]))

    def products(self, codes: Array, left: Floats, right: Floats) -> Floats:
        """The sum over everything of the outer products of left (n, K) and right (n, L), (K, L); codes ascend."""
        begin = self.first // self.length
        edges = np.searchsorted((codes + np.int64(self.first)) // self.length, np.arange(begin, begin + self.count + 1))
        return self.joined(outer_products(edges, left, right))

    def joined(self, leaves: Floats) -> Floats:
        """The sum of the leaves of all processes: one for each of the runs here."""
        if self.peers.count == 1:
            return tree_sum(leaves)
        begin = self.first // self.length
        owner, level, node = whole_nodes(begin, begin + len(leaves))
        low, high = (node << level) - begin, ((node + 1) << level) - begin
        nodes = [tree_sum(leaves[a:b]) for a, b in zip(low, high, strict=True)]
        mine = TreeNodes(owner, level, node, np.array(nodes).reshape(len(nodes), *leaves.shape[1:]))
        every = TreeNodes(*(np.concatenate(part) for part in zip(*gather(self.peers, mine), strict=True)))
        return np.asarray(join_nodes(every, [-(-self.size // self.length)])[0])


def run_length(size: int) -> int:
    """Entities of a run of a mode of so many."""
    return max(-(-size // RUNS), 1)


def sums_by_code(codes: Array, values: Array, size: int) -> Floats:
    """Sums of values (n,) or (n, m) by their codes, (size, ...): of few as NumPy finds them, with the same bits."""
    kernels = loaded_kernels() if values.size >= MANY_VALUES else None
    if kernels is not None:
        return kernels.sums_by_code(codes, values, size)
    if values.ndim == 1:
        return np.asarray(np.bincount(codes, weights=values, minlength=size), np.float64)
    sums = [np.bincount(codes, weights=column, minlength=size) for column in values.T]
    return np.asarray(np.stack(sums, axis=1) if sums else np.zeros((size, 0)), np.float64)


def halved_sums(codes: Array, values: Floats, size: int, scale: float, finer: float) -> Floats:
    """Sums by code of the two whole numbers that each of values (n, m) is cut into, (2, size, m): the upper one in
    units of 1 / scale, and what it leaves in units of 1 / finer.
    """
    kernels = loaded_kernels() if values.size >= MANY_VALUES else None
    if kernels is not None:
        return kernels.halved_sums(codes, values, size, scale, finer)
    total, step = np.zeros((2, size, values.shape[1])), max(ROWS_AT_ONCE, size)
    for begin in range(0, len(values), step):
        rows, some = values[begin : begin + step], codes[begin : begin + step]
        upper = np.rint(rows * scale)
        lower = np.rint((rows - upper / scale) * finer)
        for own, part in zip(total, (upper, lower), strict=True):
            own += sums_by_code(some, part, size)
    return total
