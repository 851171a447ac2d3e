"""Arrays that travel together through pair counting: groups and their members, how active each actor is, and pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Bools, Codes, Floats, Numbers


class Groups(NamedTuple):
    """Who met where: G groups, M memberships (actor, group), each once."""

    offsets: Numbers  # (G + 1,): members of group g are members[offsets[g]:offsets[g + 1]]
    members: Codes  # (M,): actors
    actor_offsets: Numbers  # (n + 1,): groups of actor i are actor_groups[actor_offsets[i]:actor_offsets[i + 1]]
    actor_groups: Codes  # (M,)
    spots: Numbers  # (M,): where in actor_groups the membership of members[q] is
    log_rate: Floats  # (G,): log of the chance to meet in this group, against the mean over groups


class OftenMet(NamedTuple):
    """The counterparts of some memberships, one after the other: who is in the group and was met often enough."""

    offsets: Numbers  # (M + 1,): those of membership p are columns[offsets[p]:offsets[p + 1]]
    columns: Codes  # actors, in the order of the group


class MetBefore(NamedTuple):
    """``OftenMet`` of all memberships of groups as they were, for actors of which nothing has changed since."""

    same: Bools  # (actors before,): every group of the actor is as it was, and it has no other
    actor_offsets: Numbers  # as in ``Groups``, of before
    offsets: Numbers
    columns: Codes


class Exposure(NamedTuple):
    """How often an actor is out, by slot (window): actor i has slots[offsets[i]:offsets[i + 1]], each once.

    The expectation of a pair is the sum over common slots of the product of their values; where tastes are known, it is
    that times ``tastes[i] @ drawn[j]``, which is symmetric in i and j.
    """

    offsets: Numbers  # (n + 1,)
    slots: Codes
    values: Floats
    n_slots: int
    tastes: Floats  # (n, K)
    drawn: Floats  # (n, K)


class PairRule(NamedTuple):
    """Which pairs count."""

    min_shared: int
    floor: float  # least expectation of a pair
    doubt: float  # taken off every LLR


class Graph(NamedTuple):
    """Pairs in rows: actor i has counterparts columns[offsets[i]:offsets[i + 1]]."""

    offsets: Numbers
    columns: Codes
    values: Floats


def nothing_before() -> MetBefore:
    """For actors that are counted for the first time."""
    none = np.zeros(1, np.int64)
    return MetBefore(np.zeros(0, np.bool_), none, none, np.zeros(0, np.int32))


def met_of(groups: Groups, sizes: Numbers, columns: Codes, span: tuple[int, int]) -> OftenMet:
    """What ``often_met`` found of the actors ``span``, whose memberships are counted from the first."""
    first, last = groups.actor_offsets[span[0]], groups.actor_offsets[span[1]]
    return OftenMet(np.concatenate([[0], np.cumsum(sizes[first:last])]).astype(np.int64), columns)
