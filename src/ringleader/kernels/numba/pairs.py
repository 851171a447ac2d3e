"""Compiled pair counting: who meets whom in how many groups, how surprising that is, and which meetings it explains.

One actor at a time: its counterparts are counted in an array as long as there are actors, so that no pair that met once
is ever stored, and the work is the sum of s^2 over group sizes s. Every actor is owned by one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.kernels.numba.elementary import OUTER, logarithm_of_one
from ringleader.kernels.numba.lanes import fetch, start
from ringleader.kernels.pair_layout import (
    Exposure,
    Graph,
    Groups,
    MetBefore,
    OftenMet,
    PairRule,
    met_of,
    nothing_before,
)

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

AHEAD, LINE = 6, 8
"""Counterparts by which their tastes are asked for before they are read, and numbers of a line of the cache."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def often_met(groups: Groups, before: MetBefore, min_shared: int, sizes: Any, span: tuple[int, int]) -> Any:
    """The counterparts of every membership of the actors ``span`` whom its actor met ``min_shared`` times or more.

    Fills ``sizes`` of their memberships. Actors of ``before.same`` have the lists that they had.

    Returns
    -------
    columns : the lists, one membership of the span after the other, each in the order of its group.

    Same as: ``reference.pairs.often_met``.
    """
    n = len(groups.actor_offsets) - 1
    shared = np.zeros(n, np.int32)
    met = np.empty(n, np.int32)
    columns = np.empty(1024, np.int32)
    filled = 0
    for i in range(span[0], span[1]):
        first, last = groups.actor_offsets[i], groups.actor_offsets[i + 1]
        if i < len(before.same) and before.same[i]:
            shift = before.actor_offsets[i] - first
            begin, end = before.offsets[first + shift], before.offsets[last + shift]
            while filled + end - begin > len(columns):
                columns = np.concatenate((columns, np.empty(len(columns), np.int32)))
            columns[filled : filled + end - begin] = before.columns[begin:end]
            filled += end - begin
            for p in range(first, last):
                sizes[p] = before.offsets[p + shift + 1] - before.offsets[p + shift]
            continue
        n_met = 0
        if last - first >= min_shared:
            for p in range(first, last):
                g = groups.actor_groups[p]
                for q in range(groups.offsets[g], groups.offsets[g + 1]):
                    j = groups.members[q]
                    if shared[j] == 0:
                        met[n_met] = j
                        n_met += 1
                    shared[j] += 1
            shared[i] = 0
        n_often = 0
        for m in range(n_met):
            j = met[m]
            if shared[j] < min_shared:
                shared[j] = 0
            else:
                met[n_often] = j
                n_often += 1
        if n_often == 0:  # most actors; no need to go through their groups again
            for p in range(first, last):
                sizes[p] = 0
            continue
        for p in range(first, last):
            g = groups.actor_groups[p]
            begin = filled
            if filled + groups.offsets[g + 1] - groups.offsets[g] > len(columns):
                more = max(len(columns), groups.offsets[g + 1] - groups.offsets[g])
                columns = np.concatenate((columns, np.empty(more, np.int32)))
            for q in range(groups.offsets[g], groups.offsets[g + 1]):
                j = groups.members[q]
                columns[filled] = j
                filled += shared[j] > 0
            sizes[p] = filled - begin
        for m in range(n_often):
            shared[met[m]] = 0
    return columns[:filled].copy()


@compiled
def lockstep_of_met(
    groups: Groups, met: OftenMet, exposure: Exposure, rule: PairRule, scores: Any, lengths: Any, span: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """Fill ``scores`` of the memberships and ``lengths`` (counterparts) of the actors of ``span``.

    A pair that shares c groups with log rates r where mu are expected has
    LLR = c log(c / mu) - sum(r) - (c - mu) - doubt.
    A membership's score is the sum, over the others of its group, of the LLR without this group, with the mu of tastes.

    met : what ``often_met`` made of the same span.

    Returns
    -------
    columns, values, beyond_tastes : the counterparts of each actor of the span where one of the two LLRs is above 0,
        actor by actor: the LLR by chance alone, and that by chance and tastes.

    Same as: ``reference.pairs.lockstep_of_met``.
    """
    n = len(groups.actor_offsets) - 1
    shared = np.zeros(n, np.int32)
    rates = np.zeros(n, np.float64)
    often = np.empty(n, np.int32)
    own = np.zeros(exposure.n_slots, np.float64)
    columns = np.empty(1024, np.int32)
    values = np.empty(1024, np.float64)
    beyond_tastes = np.empty(1024, np.float64)
    filled = 0
    begin = groups.actor_offsets[span[0]]
    width = exposure.drawn.shape[1]
    drawn, slots, amounts = start(exposure.drawn), start(exposure.slots), start(exposure.values)
    for i in range(span[0], span[1]):
        first, last = groups.actor_offsets[i], groups.actor_offsets[i + 1]
        lengths[i] = 0
        if met.offsets[first - begin] == met.offsets[last - begin]:
            for p in range(first, last):
                scores[p] = 0.0
            continue
        n_often = 0
        for p in range(first, last):
            rate = groups.log_rate[groups.actor_groups[p]]
            for q in range(met.offsets[p - begin], met.offsets[p - begin + 1]):
                j = met.columns[q]
                if shared[j] == 0:
                    often[n_often] = j
                    n_often += 1
                shared[j] += 1
                rates[j] += rate
        for e in range(exposure.offsets[i], exposure.offsets[i + 1]):
            own[exposure.slots[e]] = exposure.values[e]
        for m in range(n_often):
            ahead = np.int64(often[min(m + AHEAD, n_often - 1)])
            for k in range(0, width, LINE):
                fetch(drawn, ahead * width + k)
            fetch(slots, exposure.offsets[ahead])
            fetch(amounts, exposure.offsets[ahead])
            j = often[m]
            mu = 0.0
            for e in range(exposure.offsets[j], exposure.offsets[j + 1]):
                mu += own[exposure.slots[e]] * exposure.values[e]
            together = 0.0
            for k in range(exposure.tastes.shape[1]):
                together += exposure.tastes[i, k] * exposure.drawn[j, k]
            expected = max(mu, rule.floor)
            mu = max(mu * together, rule.floor)
            c = float(shared[j])
            llr = c * logarithm_of_one(c / expected) - rates[j] - (c - expected) - rule.doubt if c > expected else 0.0
            beyond = c * logarithm_of_one(c / mu) - rates[j] - (c - mu) - rule.doubt if c > mu else 0.0
            if llr > 0.0 or beyond > 0.0:
                if filled == len(columns):
                    columns = np.concatenate((columns, np.empty(filled, np.int32)))
                    values = np.concatenate((values, np.empty(filled, np.float64)))
                    beyond_tastes = np.concatenate((beyond_tastes, np.empty(filled, np.float64)))
                columns[filled] = j
                values[filled] = max(llr, 0.0)
                beyond_tastes[filled] = max(beyond, 0.0)
                filled += 1
                lengths[i] += 1
            if c - 1.0 > mu:
                rest = c - 1.0  # rates becomes the LLR without one group, but for that group's rate
                rates[j] = rest * logarithm_of_one(rest / mu) - rates[j] - (rest - mu) - rule.doubt
            else:
                shared[j] = 0
        for p in range(first, last):
            rate = groups.log_rate[groups.actor_groups[p]]
            total = 0.0
            for q in range(met.offsets[p - begin], met.offsets[p - begin + 1]):
                j = met.columns[q]
                if shared[j] > 0:
                    total += max(rates[j] + rate, 0.0)
            scores[p] = total
        for m in range(n_often):
            shared[often[m]] = 0
            rates[often[m]] = 0.0
        for e in range(exposure.offsets[i], exposure.offsets[i + 1]):
            own[exposure.slots[e]] = 0.0
    return columns[:filled].copy(), values[:filled].copy(), beyond_tastes[:filled].copy()


def lockstep_of_actors(
    groups: Groups, exposure: Exposure, rule: PairRule, scores: Any, lengths: Any, span: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """``often_met`` and ``lockstep_of_met`` in one. Same as: ``reference.pairs.lockstep_of_actors``."""
    sizes = np.empty(len(groups.actor_groups), np.int64)
    columns = often_met(groups, nothing_before(), rule.min_shared, sizes, span)
    met = met_of(groups, sizes, columns, span)
    pairs: tuple[Any, Any, Any] = lockstep_of_met(groups, met, exposure, rule, scores, lengths, span)
    return pairs


@compiled
def stable_order(codes: Any, size: int) -> Any:
    """Numbers of the codes in ascending order of the codes, which are below ``size``.

    Same as: ``np.argsort(codes, kind="stable")``.
    """
    place = np.zeros(size + 1, np.int64)
    for i in range(len(codes)):
        place[codes[i] + 1] += 1
    for code in range(size):
        place[code + 1] += place[code]
    order = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        order[place[codes[i]]] = i
        place[codes[i]] += 1
    return order


@compiled
def support_of_groups(groups: Groups, graph: Graph, support: Any, span: tuple[int, int]) -> None:
    """Fill ``support`` of the memberships of groups ``span``: how far third parties join an actor to its group.

    A third party was not in the group itself, so that none of its lockstep rests on this meeting. Who is tied to an
    actor with a, and to the others of the group with b in all, adds min(a, b).

    Same as: ``reference.pairs.support_of_groups``.
    """
    n = len(groups.actor_offsets) - 1
    ties = np.zeros(n, np.float64)  # below 0 of members of the group
    columns, amounts = start(graph.columns), start(graph.values)
    tied = np.empty(n, np.int32)
    for g in range(span[0], span[1]):
        first, last = groups.offsets[g], groups.offsets[g + 1]
        n_tied = joined = 0
        for q in range(first, last):
            joined += graph.offsets[groups.members[q] + 1] > graph.offsets[groups.members[q]]
        if joined < 2:  # nobody outside is tied to two of them
            for q in range(first, last):
                support[groups.spots[q]] = 0.0
            continue
        for q in range(first, last):
            ties[groups.members[q]] = -1.0
        for q in range(first, last):
            ahead = graph.offsets[groups.members[min(q + 2, last - 1)]]
            for line in range(0, 4 * LINE, LINE):
                fetch(amounts, ahead + line)
            fetch(columns, ahead)
            fetch(columns, ahead + 2 * LINE)
            j = groups.members[q]
            for e in range(graph.offsets[j], graph.offsets[j + 1]):
                k = graph.columns[e]
                if ties[k] >= 0.0:
                    if ties[k] == 0.0:
                        tied[n_tied] = k
                        n_tied += 1
                    ties[k] += graph.values[e]
        for q in range(first, last):
            i = groups.members[q]
            total = 0.0
            for e in range(graph.offsets[i], graph.offsets[i + 1]):
                others = ties[graph.columns[e]]
                if others > 0.0:
                    total += min(graph.values[e], max(others - graph.values[e], 0.0))
            support[groups.spots[q]] = total
        for q in range(first, last):
            ties[groups.members[q]] = 0.0
        for m in range(n_tied):
            ties[tied[m]] = 0.0
