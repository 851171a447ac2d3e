"""Widen: one report for each ring, with everyone who belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores.blocks import COVERED, Block, Steps, bounded, gain, measure, price, read_shared
from ringleader.cores.board import Board
from ringleader.cores.rows import CellSet, contains
from ringleader.kernels.elementary import logistic, logsumexp

ROUNDS = 4
SURE = 0.5
"""Probability from which someone, or a place, belongs."""


class Wide(NamedTuple):
    """A block with everyone who belongs to it, and how surely: probabilities."""

    actors: Numbers
    actor_strength: Floats
    places: Numbers
    place_strength: Floats


def combine(boards: list[Board], candidates: list[tuple[int, Block]], covered: CellSet) -> list[tuple[int, Block]]:
    """One report for each ring, strongest first: the (number of the board, block) whose reviews are new.

    Two blocks of one board become one where they are worth more together than apart.

    covered : none; the reviews of all blocks are added.
    """
    chosen: list[tuple[int, Block]] = []
    for number, block in sorted(candidates, key=lambda pair: -pair[1].net):
        board = boards[number]
        cells = board.inside(block.actors, block.places).cells
        if covered.contains(cells).mean() > COVERED:
            continue
        for at, (other, strong) in enumerate(chosen):
            if other == number and len(np.intersect1d(strong.actors, block.actors)):
                both = np.union1d(strong.actors, block.actors), np.union1d(strong.places, block.places)
                union = measure(board, *both)
                if union.net >= strong.net + block.net:
                    chosen[at] = (number, union)
                    break
        else:
            chosen.append((number, block))
        covered.add(cells)
    return sorted(chosen, key=lambda pair: -pair[1].net)


class Others:
    """Reviews of cores, by their places: of each core how many those of the others are."""

    def __init__(self, boards: Sequence[Board], owned: Sequence[Numbers]) -> None:
        """owned : cells of each core"""
        cells, count = np.unique(np.concatenate([*owned, np.zeros(0, np.int64)]), return_counts=True)
        self._once = cells[count == 1]
        self._located: list[tuple[Numbers, Numbers]] = []  # of each board: of the cells on it, and their places
        self._counted: list[tuple[Numbers, Numbers]] = []  # the places, and how many of the cells each has
        for board in boards:
            which, places, _ = board.located(cells)
            self._located.append((cells[which], places))
            self._counted.append(np.unique(places, return_counts=True))

    def at(self, board: int, own: Numbers) -> Callable[[Numbers], Numbers]:
        """Of places of a board how many reviews of cores they have but for those that only the cells ``own`` have."""
        cells, places = self._located[board]
        mine = own[contains(self._once, own)]
        mine = mine[contains(cells, mine)]
        without = np.unique(places[np.searchsorted(cells, mine)], return_counts=True)
        return lambda wanted: _count_at(*self._counted[board], wanted) - _count_at(*without, wanted)


def _count_at(places: Numbers, count: Numbers, wanted: Numbers) -> Numbers:
    """The counts of some of the places, ascending; 0 where there is none."""
    if not len(places):
        return np.zeros(len(wanted), np.int64)
    return np.where(contains(places, wanted), count[np.minimum(np.searchsorted(places, wanted), len(places) - 1)], 0)


def widen(board: Board, block: Block, others: Callable[[Numbers], Numbers]) -> Steps[Wide]:
    """Everyone who belongs to a block: places as in the search, and people likelier paid there than honest customers.

    At a place of the block honest custom is what its item has at other times, not what the ring brought. Strength is
    the probability of belonging, where as many belong as do. ``others``: reviews of other cores at places; where they
    are more than the members' own, the place is theirs.
    """
    tables = board.tables
    actors, places = block.actors, block.places
    of_actor, of_place = np.ones(len(actors)), np.ones(len(places))
    items = np.unique(board.facts(places).item)
    yield from _read_items(board, items)
    log_items = float(logsumexp(board.facts(board.of_items(items)[1]).log_share))
    for _ in range(ROUNDS):
        near, count = yield from read_shared(board, actors)
        ours = np.isfinite(board.facts(near).log_share) & (count > others(near))
        near, count = near[ours], count[ours]
        own, facts = contains(block.places, near), board.facts(near)
        expected = board.expected_at(facts.window, facts.size, board.activity(actors))
        log_share = facts.log_share - np.where(contains(items, facts.item), log_items, 0.0)
        strength = logistic(gain(count, expected, bounded(block.lift)) - price(log_share, len(places)))
        strength = np.where(own, np.maximum(strength, SURE), strength)
        sure = strength >= SURE
        if not sure.any():
            break
        places, of_place = near[sure], strength[sure]
        facts = board.facts(places)
        if tables.reviews.lacks(places):
            yield
        people, count = board.actors_at(places)
        if tables.people.lacks(people):
            yield
        yield from _read_items(board, np.unique(facts.item))
        expected = board.expected_of(people, board.shares(facts.window, board.organic(places)))
        members = contains(actors, people)
        lift = bounded(count[members].sum() / max(expected[members].sum(), 1e-12))
        strength = logistic(gain(count, expected, lift) - price(board.log_actor(people), len(actors)))
        sure = strength >= SURE
        if not sure.any():
            break
        actors, of_actor = people[sure], strength[sure]
    return Wide(actors, of_actor, places, of_place)


def _read_items(board: Board, items: Numbers) -> Steps[None]:
    """Have the rows of items and of all their places."""
    if board.tables.items.lacks(items):
        yield
    if board.tables.places.lacks(board.of_items(items)[1]):
        yield


def join(one: Wide, two: Wide) -> Wide:
    """Everyone of both, as surely as in the surer."""
    actors, of_actor = _surest(one.actors, one.actor_strength, two.actors, two.actor_strength)
    places, of_place = _surest(one.places, one.place_strength, two.places, two.place_strength)
    return Wide(actors, of_actor, places, of_place)


def _surest(first: Numbers, of_first: Floats, second: Numbers, of_second: Floats) -> tuple[Numbers, Floats]:
    codes, at = np.unique(np.concatenate([first, second]), return_inverse=True)
    strength = np.zeros(len(codes))
    np.maximum.at(strength, at, np.concatenate([of_first, of_second]))
    return codes, strength
