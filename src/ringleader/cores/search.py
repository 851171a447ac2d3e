"""The search for cores: blocks of actors x places that hold far more reviews than chance deals there.

A block's ``net`` is its log-likelihood ratio, C log(C / E) - (C - E) with C reviews where E were expected, less what it
costs to name its members among all others; see ``significance``. From every place in which lockstep is loud the
search goes to and fro between people and places until nothing changes; blocks that are two rings joined by those who
serve both are split, reports of one ring become one, and members are then weighed against honest custom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.cores.board import Board, contains
from ringleader.cores.significance import evidence, naming_cost
from ringleader.kernels.eigen import left_vectors
from ringleader.kernels.elementary import log, log1p, logistic, logsumexp

LOUD = 1.0
"""Lockstep of a review above which its place may be where the search begins."""

LOUD_PLACE, LOUD_PART = 4.0, 0.25
"""Least sum of log(1 + lockstep) over the loud reviews of such a place, and least part of its reviews that are loud."""

LOUDEST = 100.0
"""Most that the lockstep of one review counts there."""

FIRST_LIFT, FEWEST, LARGEST = 20.0, 3.0, 200.0
"""Reviews per expected one that the search assumes at first, and the bounds within which it learns better."""

FIRST_COST = 0.6
"""Part of the cost of a member that counts in the first round, when a handful of people must find the others."""

ROUNDS, WIDER_ROUNDS, SPLITS = 12, 4, 6
VECTORS = 3
"""Directions in which a block is tried to be split."""

SURE = 0.5
"""Probability from which someone, or a place, belongs."""

COVERED = 0.5
"""Part of its reviews in cores already found, from which a block is one more report of the same."""

LEAST_NET = 0.0
"""Net below which a block is not worth keeping."""


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


class Wide(NamedTuple):
    """A block with everyone who belongs to it, and how surely: probabilities."""

    actors: Numbers
    actor_strength: Floats
    places: Numbers
    place_strength: Floats


def measure(board: Board, actors: Numbers, places: Numbers) -> Block:
    """A block of any actors and places."""
    reviews = len(board.inside(actors, places))
    expected = float((board.activity(actors) * board.shares(places, board.size[places])).sum())
    net = evidence(reviews, expected) - naming_cost(board, actors, places)
    return Block(actors, places, reviews, expected, net)


def search(board: Board, limits: Limits, covered: Bools) -> list[Block]:
    """Blocks worth keeping, each once; several may report one ring.

    covered : (n_cells,) reviews in blocks of earlier searches, on this board or another; those of this one are added.
    """
    blocks: list[Block] = []
    seen: set[bytes] = set()
    heard = np.flatnonzero(board.loud > LOUD)
    loud, at, count = _loudness(board, heard), board.place[heard], len(board.size)
    total: Floats = np.bincount(at, weights=loud, minlength=count).astype(np.float64, copy=False)
    known = np.bincount(at, weights=loud * covered[board.cells[heard]], minlength=count)
    free = known <= COVERED * total
    for place in _loud_places(board, total, np.bincount(at, minlength=count), limits):
        if not free[place]:
            continue
        reviews = board.of_place.entries[board.of_place.offsets[place] : board.of_place.offsets[place + 1]]
        people = np.unique(board.who[reviews[board.loud[reviews] > 0]]).astype(np.int64)
        block = _settle(board, people, free, limits) if len(people) >= limits.actors else None
        if block is None or block.net <= LEAST_NET:
            continue
        key = block.actors.tobytes() + block.places.tobytes()
        if key in seen:
            continue
        seen.add(key)
        for part in _split(board, block, limits, 0):
            blocks.append(part)
            rows = board.inside(part.actors, part.places)
            rows = rows[~covered[board.cells[rows]]]
            covered[board.cells[rows]] = True
            np.add.at(known, board.place[rows], _loudness(board, rows))
            free[part.places] = known[part.places] <= COVERED * total[part.places]
    return blocks


def _loudness(board: Board, reviews: Numbers) -> Floats:
    """How loud reviews are, each by itself."""
    lockstep = board.loud[reviews]
    return np.asarray(log1p(np.minimum(lockstep, LOUDEST)) * (lockstep > LOUD))


def _loud_places(board: Board, total: Floats, heard: Numbers, limits: Limits) -> Numbers:
    """Places to begin from: loud, and not just because a few of a crowd are; the loudest first.

    total, heard : (P,), how loud the reviews of each place are together, and how many of them are loud.
    """
    total, part = total * board.open, heard / np.maximum(board.size, 1.0)
    places = np.flatnonzero((total > LOUD_PLACE) & (part > LOUD_PART))
    return places[np.argsort(-(total * part)[places], kind="stable")][: limits.seeds]


def _settle(board: Board, actors: Numbers, free: Bools, limits: Limits) -> Block | None:
    """To and fro from these actors: the free places they share, the people of these, until nothing changes.

    Someone belongs if c log(lift) - (lift - 1) e, with c reviews where e were expected, exceeds the cost of naming one
    more. That is the larger likelihood of two Poisson rates, the block's and everyone's.
    """
    lift, part = FIRST_LIFT, FIRST_COST
    places = np.zeros(0, np.int64)
    for _ in range(ROUNDS):
        near, count = board.places_of(actors)
        near, count = near[(count > 1) & free[near]], count[(count > 1) & free[near]]
        gain = _gain(count, board.expected_at(near, board.size[near], board.activity(actors)), lift)
        chosen = near[gain > part * _price(board.log_place[near], len(places) or 2 * limits.places)]
        if len(chosen) < limits.places:
            return None
        people, count = board.actors_at(chosen)
        expected = board.expected_of(people, board.shares(chosen, board.size[chosen]))
        members = _gain(count, expected, lift) > part * _price(board.log_actor[people], len(actors))
        people = people[members]
        if len(people) < limits.actors:
            return None
        same = np.array_equal(people, actors) and np.array_equal(chosen, places)
        actors, places, part = people, chosen, 1.0
        if same:
            break
        lift = _bounded(count[members].sum() / max(expected[members].sum(), 1e-12))
    return measure(board, actors, places)


def _gain(count: Numbers | Floats, expected: Floats, lift: float) -> Floats:
    return np.asarray(count * log(lift) - (lift - 1.0) * expected)


def _price(log_share: Floats, members: int) -> Floats:
    """What naming one more of so many members costs."""
    return np.asarray(-log_share - log(max(members, 1)))


def _bounded(lift: float) -> float:
    return min(max(lift, FEWEST), LARGEST)


def _split(board: Board, block: Block, limits: Limits, depth: int) -> list[Block]:
    """The block, or parts of it that together are worth more. Places are divided; people may serve both."""
    if depth >= SPLITS or len(block.actors) < 2 * limits.actors or len(block.places) < 2 * limits.places:
        return [block]
    table = _table(board, block)
    best: list[Block] = []
    for vector in _directions(table):
        division = _divided(table, vector > 0)
        parts = [_part(board, block, table, division == side, limits) for side in (False, True)]
        good = [part for part in parts if part is not None and part.net > LEAST_NET]
        if len(good) == 2 and sum(p.net for p in good) > sum(p.net for p in best):
            best = good
    if sum(part.net for part in best) <= block.net:
        return [block]
    return [piece for part in best for piece in _split(board, part, limits, depth + 1)]


def _table(board: Board, block: Block) -> sparse.csr_array:
    """Reviews of each actor at each place of a block, at most two, CSR (actors, places)."""
    rows = board.inside(block.actors, block.places)
    at = (np.searchsorted(block.actors, board.who[rows]), np.searchsorted(block.places, board.place[rows]))
    table = sparse.csr_array((np.ones(len(rows)), at), shape=(len(block.actors), len(block.places)))
    np.minimum(table.data, 2.0, out=table.data)
    return table


def _directions(table: sparse.csr_array) -> list[Floats]:
    """The next singular vectors of the table by actors, after its rows and columns are brought to one scale."""
    rows, columns = np.sqrt(_within(table) + 1.0), np.sqrt(_within(table.T) + 1.0)
    scaled = table.copy()
    scaled.data /= np.repeat(rows, np.diff(table.indptr))
    scaled.data /= columns[table.indices]
    return list(left_vectors(scaled, VECTORS + 1).T[1:])


def _within(table: sparse.sparray, columns: Bools | None = None) -> Floats:
    """Reviews of each row of a table in some of its columns, all where None. Whole numbers: their sums are exact."""
    return np.asarray(table @ (np.ones(table.shape[1]) if columns is None else columns.astype(np.float64)))


def _divided(table: sparse.csr_array, second: Bools) -> Bools:
    """Whether each place belongs to the second part, from a division of the actors, improved to and fro."""
    places = np.zeros(table.shape[1], np.bool_)
    of_actor, of_place = _within(table), _within(table.T)
    for _ in range(ROUNDS):
        if second.all() or not second.any():
            break
        places = _more(_within(table.T, second), of_place)
        moved = _more(_within(table, places), of_actor)
        if np.array_equal(moved, second):
            break
        second = moved
    return places


def _more(mine: Floats, both: Floats) -> Bools:
    """Which have more of one part's reviews than of the other's, as shares of what each part has in all."""
    yours = both - mine
    return np.asarray(mine * max(yours.sum(), 1.0) > yours * max(mine.sum(), 1.0))


def _part(board: Board, block: Block, table: sparse.csr_array, mine: Bools, limits: Limits) -> Block | None:
    """The places ``mine`` of a block, with those of its people who act there."""
    places = block.places[mine]
    if len(places) < limits.places:
        return None
    expected = board.expected_of(block.actors, board.shares(places, board.size[places]))
    count = _within(table, mine)
    near = int((count > _within(table, ~mine)).sum())
    gain = _gain(count, expected, _bounded(block.lift))
    members = gain > _price(board.log_actor[block.actors], near)
    return measure(board, block.actors[members], places) if members.sum() >= limits.actors else None


def combine(boards: list[Board], candidates: list[tuple[int, Block]], n_cells: int) -> list[tuple[int, Block]]:
    """One report for each ring, strongest first: the (number of the board, block) whose reviews are new.

    Two blocks of one board become one where they are worth more together than apart.
    """
    covered = np.zeros(n_cells, np.bool_)
    chosen: list[tuple[int, Block]] = []
    for number, block in sorted(candidates, key=lambda pair: -pair[1].net):
        board = boards[number]
        cells = board.cells[board.inside(block.actors, block.places)]
        if covered[cells].mean() > COVERED:
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
        covered[cells] = True
    return sorted(chosen, key=lambda pair: -pair[1].net)


def widen(board: Board, block: Block, others: Floats) -> Wide:
    """Everyone who belongs to a block: places as in the search, and people likelier paid there than honest customers.

    At a place of the block honest custom is what its item has at other times, not what the ring brought. Strength is
    the probability of belonging, where as many belong as do. ``others``, (P,): reviews of other cores at each place;
    where they are more than the members' own, the place is theirs.
    """
    actors, places = block.actors, block.places
    of_actor, of_place = np.ones(len(actors)), np.ones(len(places))
    items = np.unique(board.item[places])
    log_items = float(logsumexp(board.log_place[board.of_item(items).entries]))
    for _ in range(WIDER_ROUNDS):
        near, count = board.places_of(actors)
        own = contains(block.places, near)
        ours = (count > 1) & (count > others[near])
        near, count, own = near[ours], count[ours], own[ours]
        expected = board.expected_at(near, board.size[near], board.activity(actors))
        log_share = board.log_place[near] - np.where(contains(items, board.item[near]), log_items, 0.0)
        strength = logistic(_gain(count, expected, _bounded(block.lift)) - _price(log_share, len(places)))
        strength = np.where(own, np.maximum(strength, SURE), strength)
        sure = strength >= SURE
        if not sure.any():
            break
        places, of_place = near[sure], strength[sure]
        people, count = board.actors_at(places)
        expected = board.expected_of(people, board.shares(places, board.organic(places)))
        members = contains(actors, people)
        lift = _bounded(count[members].sum() / max(expected[members].sum(), 1e-12))
        strength = logistic(_gain(count, expected, lift) - _price(board.log_actor[people], len(actors)))
        sure = strength >= SURE
        if not sure.any():
            break
        actors, of_actor = people[sure], strength[sure]
    return Wide(actors, of_actor, places, of_place)


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
