"""Sums along a fixed tree: the same bits whoever adds which part of them.

The leaves of a sum are numbered. Node (level, place) is the sum of leaves ``place * 2**level`` up to
``(place + 1) * 2**level``: its left half plus its right half, or its left half alone where no leaf is in the right one.
Whoever holds a run of leaves adds the whole nodes in it (``whole_nodes``); ``join_nodes`` adds the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers

MOST_PARTS = 512
"""About as many parts of a sum are kept side by side: enough for every thread, and memory has a bound."""


class TreeNodes(NamedTuple):
    """Nodes of many sums."""

    owner: Numbers  # (N,): number of the sum
    level: Numbers  # (N,)
    place: Numbers  # (N,)
    sums: Floats  # (N, ...)


def tree_sum(leaves: Floats) -> Floats:
    """The sum of leaves (n, ...) along the tree, (...). Same as: ``leaves.sum(axis=0)``, but for the last bits."""
    if len(leaves) == 0:
        return np.zeros(leaves.shape[1:])
    while len(leaves) > 1:
        even = len(leaves) // 2 * 2
        pairs = leaves[0:even:2] + leaves[1:even:2]
        leaves = pairs if even == len(leaves) else np.concatenate([pairs, leaves[even:]])
    return np.asarray(leaves[0])


def part_level(leaves: int) -> int:
    """The level of the nodes that are kept where a sum has so many leaves."""
    return max((leaves // MOST_PARTS).bit_length() - 1, 0)


def whole_nodes(first: npt.ArrayLike, last: npt.ArrayLike) -> tuple[Numbers, Numbers, Numbers]:
    """The fewest nodes that cover leaves ``first`` to below ``last`` of each of many sums: sum, level and place."""
    begins, ends = np.array(first, np.int64, ndmin=1), np.array(last, np.int64, ndmin=1)
    levels: list[npt.NDArray[np.int64]] = []
    level = 0
    while (begins < ends).any():
        # A node that is the right half of its parent is taken at the front, one that is a left half at the end.
        for odd, place in (((begins & 1) == 1, begins), ((ends & 1) == 1, ends - 1)):
            taken = np.flatnonzero(odd & (begins < ends))
            levels.append(np.stack([taken, np.full(len(taken), level), place[taken]], axis=1))
            if place is begins:
                begins = begins + (odd & (begins < ends))
            else:
                ends = ends - (odd & (begins < ends))
        begins, ends = begins // 2, ends // 2
        level += 1
    every = np.concatenate([np.zeros((0, 3), np.int64), *levels])
    order = np.lexsort((every[:, 2] << every[:, 1], every[:, 0]))
    return every[order, 0], every[order, 1], every[order, 2]


def join_nodes(nodes: TreeNodes, leaves: npt.ArrayLike) -> Floats:
    """The sums of all leaves, one for each of ``leaves`` (their number): every leaf must be below one of the nodes."""
    count = np.array(leaves, np.int64, ndmin=1)
    total = np.zeros((len(count), *nodes.sums.shape[1:]))
    sums = nodes.sums.copy()  # a node is where its left half was: sums are added in place, and never moved
    owner, place, where = nodes.owner[:0], nodes.place[:0], np.zeros(0, np.int64)
    last_level = int(max(count.max(initial=0) - 1, 0)).bit_length()
    for level in range(last_level + 1):
        here = np.flatnonzero(nodes.level == level)
        owner, place = np.concatenate([owner, nodes.owner[here]]), np.concatenate([place, nodes.place[here]])
        where = np.concatenate([where, here])
        order = np.lexsort((place, owner))
        owner, place, where = owner[order], place[order], where[order]
        done = count[owner] <= 1 << level
        total[owner[done]] = sums[where[done]]
        owner, place, where = owner[~done], place[~done], where[~done]
        left, right = _halves(owner, place)
        sums[where[right - 1]] += sums[where[right]]
        owner, place, where = owner[left], place[left] // 2, where[left]
    return total


def _halves(owner: Numbers, place: Numbers) -> tuple[Numbers, Numbers]:
    """Which of the nodes of a level, sorted by sum and place, are left halves, and which are right ones; a left half
    without a right one goes up alone."""
    left, right = np.flatnonzero(place % 2 == 0), np.flatnonzero(place % 2 == 1)
    before = right - 1
    if len(right) and (
        before[0] < 0 or (owner[before] != owner[right]).any() or (place[before] + 1 != place[right]).any()
    ):
        raise ValueError("a sum lacks the left half of a node")
    return left, right
