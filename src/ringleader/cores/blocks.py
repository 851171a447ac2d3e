"""Blocks: sets of actors and places, how surprising they are, and what is read step by step to find them.

A block's ``net`` is its log-likelihood ratio, C log(C / E) - (C - E) with C reviews where E were expected, less what it
costs to name its members among all others; see ``significance``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores.board import Board
from ringleader.cores.significance import evidence, naming_cost
from ringleader.kernels.elementary import log

FEWEST, LARGEST = 3.0, 200.0
"""Reviews per expected one: the bounds within which a search learns them."""

COVERED = 0.5
"""Part of its reviews in cores already found, from which a block is one more report of the same."""

LEAST_NET = 0.0
"""Net below which a block is not worth keeping."""

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work on a board that yields where it needs rows that are not here, and goes on once they were fetched."""


class Block(NamedTuple):
    """Actors and places, ascending, with the reviews between them and how many chance lets expect."""

    actors: Numbers
    places: Numbers
    reviews: int
    expected: float
    net: float

    @property
    def lift(self) -> float:
        return self.reviews / max(self.expected, 1e-12)


class Limits(NamedTuple):
    """Least numbers of a core, and how many places to begin from."""

    actors: int
    places: int
    seeds: int


def measure(board: Board, actors: Numbers, places: Numbers) -> Block:
    """A block of any actors and places."""
    reviews, facts = board.count_inside(actors, places), board.facts(places)
    expected = float((board.activity(actors) * board.shares(facts.window, facts.size)).sum())
    net = evidence(reviews, expected) - naming_cost(board.log_actor(actors), facts.log_share)
    return Block(actors, places, reviews, expected, net)


def read_shared(board: Board, actors: Numbers) -> Steps[tuple[Numbers, Numbers]]:
    """The places that actors share, and how many reviews they have there (``places_shared``), with all that is known of
    these actors and places."""
    tables = board.tables
    if tables.members.lacks(actors) | tables.people.lacks(actors):
        yield
    near, count = board.places_shared(actors)
    if tables.places.lacks(near):
        yield
    return near, count


def side_by_side(works: Iterable[Steps[T]], fetch: Callable[[], None]) -> list[T]:
    """The results of several works, in their order. What all of them wait for is fetched at once."""
    results: dict[int, T] = {}
    waiting = list(enumerate(works))
    while waiting:
        still = []
        for number, work in waiting:
            try:
                next(work)
                still.append((number, work))
            except StopIteration as ended:
                results[number] = ended.value
        waiting = still
        if waiting:
            fetch()
    return [results[number] for number in range(len(results))]


def gain(count: Numbers | Floats, expected: Floats, lift: float) -> Floats:
    return np.asarray(count * log(lift) - (lift - 1.0) * expected)


def price(log_share: Floats, members: int) -> Floats:
    """What naming one more of so many members costs."""
    return np.asarray(-log_share - log(max(members, 1)))


def bounded(lift: float) -> float:
    return min(max(lift, FEWEST), LARGEST)
