"""Search for cores: blocks of actors x places that hold far more reviews than chance deals there.

From every place in which lockstep is loud the search goes to and fro between people and places until nothing changes;
blocks that are two rings joined by those who serve both are split. Where rows lie with others, searches from several
places are made side by side, ahead of those whose turn it is; what was found is used where it would be found again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.cores.blocks import (
    COVERED,
    LEAST_NET,
    Block,
    Limits,
    Steps,
    bounded,
    gain,
    measure,
    price,
    read_shared,
    side_by_side,
)
from ringleader.cores.board import Board, Reviews
from ringleader.cores.rows import CellSet, contains
from ringleader.cores.seeds import loudness
from ringleader.cores.split import split_block

FIRST_LIFT = 20.0
"""Reviews per expected one that the search assumes at first."""

FIRST_COST = 0.6
"""Part of the cost of a member that counts in the first round, when a handful of people must find the others."""

ROUNDS = 12

AHEAD, LOOKED_AT = 256, 1024
"""Searches that are made side by side, at the most, and places to begin from among which they are chosen."""


class Settled(NamedTuple):
    """The block that a search ends in, None where there is none, and the free places it looked at."""

    block: Block | None
    looked: list[Numbers]


class Cover:
    """How much of what is loud in the places of a board is in blocks found already."""

    def __init__(self, board: Board, covered: CellSet) -> None:
        """covered : reviews in blocks of earlier searches, on this board or another."""
        self.board, self.covered = board, covered
        self._known: dict[int, float] = {}
        self._full = np.zeros(0, np.int64)  # places that are not free any more, ascending
        _, places, lockstep = board.located(covered.ascending())
        self._add(places, loudness(lockstep))
        self._close(np.unique(places))

    def free(self, places: Numbers) -> Bools:
        """Which places have not yet been reported for the most part."""
        return ~contains(self._full, places)

    def add(self, reviews: Reviews, places: Numbers) -> None:
        """A block: its reviews, and its places."""
        fresh = ~self.covered.contains(reviews.cells)
        self.covered.add(reviews.cells)
        self._add(reviews.place[fresh], loudness(reviews.loud[fresh]))
        self._close(places)

    def _add(self, places: Numbers, values: Floats) -> None:
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            self._known[place] = self._known.get(place, 0.0) + value

    def _close(self, places: Numbers) -> None:
        known = np.array([self._known.get(place, 0.0) for place in places.tolist()], np.float64)
        full = places[known > COVERED * self.board.facts(places).loudness]
        self._full = np.union1d(self._full, full)


def search(board: Board, limits: Limits, covered: CellSet) -> list[Block]:
    """Blocks worth keeping, each once; several may report one ring.

    covered : reviews in blocks of earlier searches, on this board or another; those of this one are added.
    """
    blocks: list[Block] = []
    seen: set[bytes] = set()
    cover = Cover(board, covered)
    begin = board.loudest(limits.seeds)
    people = _loud_people(board, begin)
    ahead = SearchesAhead(board, begin, people, cover, limits)
    for number in range(len(begin)):
        if len(people[number]) < limits.actors or not cover.free(begin[number : number + 1])[0]:
            continue
        block = ahead.settled(number).block
        if block is None or block.net <= LEAST_NET:
            continue
        key = block.actors.tobytes() + block.places.tobytes()
        if key in seen:
            continue
        seen.add(key)
        for part in split_block(board, block, limits):
            blocks.append(part)
            cover.add(board.inside(part.actors, part.places), part.places)
    return blocks


def _loud_people(board: Board, places: Numbers) -> list[Numbers]:
    """Those who left reviews with any lockstep in each of the places, ascending."""
    order = np.argsort(places, kind="stable")
    rows = board.tables.reviews.read(places[order])
    who, loud = rows.entries("who"), rows.entries("loud") > 0
    cuts = np.cumsum([0, *rows.lengths.tolist()])
    people: dict[int, Numbers] = {}
    for at, number in enumerate(order.tolist()):
        here = slice(cuts[at], cuts[at + 1])
        people[number] = np.unique(who[here][loud[here]]).astype(np.int64)
    return [people[number] for number in range(len(places))]


class SearchesAhead:
    """Searches from places, those whose turn it is and, where rows lie with others, some that come later.

    How many are made at a time follows from how many of those before were of use: searches from two places of one ring
    find it twice.
    """

    def __init__(self, board: Board, begin: Numbers, people: list[Numbers], cover: Cover, limits: Limits) -> None:
        """begin, people : places to begin from, and who does there."""
        self.board, self.begin, self.people, self.cover, self.limits = board, begin, people, cover, limits
        self._ahead: dict[int, Settled] = {}
        self._made: list[int] = []  # the last ones, and which of them were of use
        self._used: set[int] = set()
        self._width = 1

    def settled(self, number: int) -> Settled:
        """What a search from a place ends in, as things are."""
        ahead = self._ahead.pop(number, None)
        if ahead is not None and all(self.cover.free(places).all() for places in ahead.looked):
            self._used.add(number)
            return ahead
        chosen = self._chosen(number) if ahead is None else [number]
        works = [_settle(self.board, self.people[other], self.cover, self.limits) for other in chosen]
        first, *others = side_by_side(works, self.board.fetch)
        self._ahead.update(zip(chosen[1:], others, strict=True))
        return first

    def _chosen(self, number: int) -> list[int]:
        """The place whose turn it is and some that come later: those most of whose people are not taken."""
        if not self.board.apart:
            return [number]
        past = [other for other in self._made if other < number]
        useful = 2 * len(self._used.intersection(past)) >= len(past)
        self._width = min(2 * self._width, AHEAD) if useful else max(self._width // 2, 1)
        chosen, taken = [number], set(self.people[number].tolist())
        later = np.arange(number + 1, min(number + 1 + LOOKED_AT, len(self.begin)))
        for other in later[self.cover.free(self.begin[later])].tolist():
            if len(chosen) >= self._width:
                break
            own = self.people[other].tolist()
            fresh = len(own) >= self.limits.actors and 2 * len(taken.intersection(own)) <= len(own)
            if fresh and other not in self._ahead:
                chosen.append(other)
                taken.update(own)
        self._made, self._used = chosen[1:], set()
        return chosen


def _settle(board: Board, actors: Numbers, cover: Cover, limits: Limits) -> Steps[Settled]:
    """To and fro from these actors: the free places they share, the people of these, until nothing changes.

    Someone belongs if c log(lift) - (lift - 1) e, with c reviews where e were expected, exceeds the cost of naming one
    more. That is the larger likelihood of two Poisson rates, the block's and everyone's.
    """
    tables, looked = board.tables, list[Numbers]()
    lift, part = FIRST_LIFT, FIRST_COST
    places = np.zeros(0, np.int64)
    for _ in range(ROUNDS):
        near, count = yield from read_shared(board, actors)
        facts = board.facts(near)
        within = np.isfinite(facts.log_share) & cover.free(near)
        near, count, facts = near[within], count[within], facts.of(within)
        looked.append(near)
        benefit = gain(count, board.expected_at(facts.window, facts.size, board.activity(actors)), lift)
        worth = benefit > part * price(facts.log_share, len(places) or 2 * limits.places)
        chosen, facts = near[worth], facts.of(worth)
        if len(chosen) < limits.places:
            return Settled(None, looked)
        if tables.reviews.lacks(chosen):
            yield
        people, count = board.actors_at(chosen)
        if tables.people.lacks(people):
            yield
        expected = board.expected_of(people, board.shares(facts.window, facts.size))
        members = gain(count, expected, lift) > part * price(board.log_actor(people), len(actors))
        people = people[members]
        if len(people) < limits.actors:
            return Settled(None, looked)
        same = np.array_equal(people, actors) and np.array_equal(chosen, places)
        actors, places, part = people, chosen, 1.0
        if same:
            break
        lift = bounded(count[members].sum() / max(expected[members].sum(), 1e-12))
    return Settled(measure(board, actors, places), looked)
