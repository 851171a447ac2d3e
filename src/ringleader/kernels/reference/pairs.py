"""Plain NumPy and Python of ``pairs``: the specification, and the oracle of the tests. Slow and dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, MetBefore, OftenMet, PairRule


def memberships(groups: Groups) -> Floats:
    """(n_actors, n_groups) of 0 and 1."""
    dense = np.zeros((len(groups.actor_offsets) - 1, len(groups.offsets) - 1))
    for g in range(dense.shape[1]):
        dense[groups.members[groups.offsets[g] : groups.offsets[g + 1]], g] = 1.0
    return dense


def expectations(exposure: Exposure) -> Floats:
    """mu of every pair by chance alone, (n_actors, n_actors), without a floor."""
    n = len(exposure.offsets) - 1
    dense = np.zeros((n, exposure.n_slots))
    for i in range(n):
        mine = slice(exposure.offsets[i], exposure.offsets[i + 1])
        dense[i, exposure.slots[mine]] = exposure.values[mine]
    return np.asarray(dense @ dense.T)


def lockstep_of_actors(
    groups: Groups, exposure: Exposure, rule: PairRule, scores: Any, lengths: Any, span: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """See ``pairs.lockstep_of_actors``. The counterparts of an actor are in ascending order here."""
    member = memberships(groups)
    shared = member @ member.T
    rates = (member * groups.log_rate) @ member.T
    chance = expectations(exposure)
    expected = np.maximum(chance, rule.floor)
    mu = np.maximum(chance * (exposure.tastes @ exposure.drawn.T), rule.floor)
    columns: list[int] = []
    values: list[float] = []
    beyond_tastes: list[float] = []
    for i in range(*span):
        counted = (shared[i] >= rule.min_shared) & (np.arange(len(shared)) != i)
        lengths[i] = 0
        for j in np.flatnonzero(counted):
            c = shared[i, j]
            both = [
                max(c * np.log(c / m[i, j]) - rates[i, j] - (c - m[i, j]) - rule.doubt, 0.0) if c > m[i, j] else 0.0
                for m in (expected, mu)
            ]
            if max(both) > 0.0:
                columns.append(int(j))
                values.append(float(both[0]))
                beyond_tastes.append(float(both[1]))
                lengths[i] += 1
        for p in range(groups.actor_offsets[i], groups.actor_offsets[i + 1]):
            g = groups.actor_groups[p]
            total = 0.0
            for j in np.flatnonzero(counted & (member[:, g] > 0)):
                c, rest = shared[i, j] - 1, rates[i, j] - groups.log_rate[g]
                if c > mu[i, j]:
                    total += max(c * np.log(c / mu[i, j]) - rest - (c - mu[i, j]) - rule.doubt, 0.0)
            scores[p] = total
    return np.array(columns, np.int32), np.array(values, np.float64), np.array(beyond_tastes, np.float64)


def often_met(groups: Groups, before: MetBefore, min_shared: int, sizes: Any, span: tuple[int, int]) -> Any:
    """See ``pairs.often_met``; everyone is counted, whoever was before."""
    member = memberships(groups)
    shared = member @ member.T
    columns: list[int] = []
    for i in range(*span):
        for p in range(groups.actor_offsets[i], groups.actor_offsets[i + 1]):
            g = groups.actor_groups[p]
            others = groups.members[groups.offsets[g] : groups.offsets[g + 1]]
            met = [int(j) for j in others if j != i and shared[i, j] >= min_shared]
            sizes[p] = len(met)
            columns += met
    return np.array(columns, np.int32)


def lockstep_of_met(
    groups: Groups, met: OftenMet, exposure: Exposure, rule: PairRule, scores: Any, lengths: Any, span: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """See ``pairs.lockstep_of_met``; who met whom is counted again."""
    return lockstep_of_actors(groups, exposure, rule, scores, lengths, span)


def support_of_groups(groups: Groups, graph: Graph, support: Any, span: tuple[int, int]) -> None:
    """See ``pairs.support_of_groups``."""
    n = len(groups.actor_offsets) - 1
    ties = np.zeros((n, n))
    for i in range(n):
        mine = slice(graph.offsets[i], graph.offsets[i + 1])
        ties[i, graph.columns[mine]] = graph.values[mine]
    for g in range(*span):
        inside = groups.members[groups.offsets[g] : groups.offsets[g + 1]]
        outside = np.setdiff1d(np.arange(n), inside)
        for q, i in zip(range(groups.offsets[g], groups.offsets[g + 1]), inside, strict=True):
            others = inside[inside != i]
            theirs = ties[np.ix_(others, outside)].sum(axis=0)
            support[groups.spots[q]] = np.minimum(ties[i, outside], theirs).sum()


def stable_order(codes: Any, size: int) -> Numbers:
    """Places of the codes in ascending order, equal ones as they came; ``size`` is above every code."""
    return np.argsort(codes, kind="stable")
