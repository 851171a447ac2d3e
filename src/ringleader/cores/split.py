"""Split: blocks that are two rings, joined by those who serve both, as one block for each."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ringleader.arrays import Bools, Floats
from ringleader.cores.blocks import LEAST_NET, Block, Limits, bounded, gain, measure, price
from ringleader.cores.board import Board
from ringleader.kernels.eigen import left_vectors

ROUNDS, SPLITS = 12, 6
VECTORS = 3
"""Directions in which a block is tried to be split."""


def split_block(board: Board, block: Block, limits: Limits, depth: int = 0) -> list[Block]:
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
    return [piece for part in best for piece in split_block(board, part, limits, depth + 1)]


def _table(board: Board, block: Block) -> sparse.csr_array:
    """Reviews of each actor at each place of a block, at most two, CSR (actors, places)."""
    rows = board.inside(block.actors, block.places)
    at = (np.searchsorted(block.actors, rows.who), np.searchsorted(block.places, rows.place))
    table = sparse.csr_array((np.ones(len(rows.cells)), at), shape=(len(block.actors), len(block.places)))
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
    facts = board.facts(places)
    expected = board.expected_of(block.actors, board.shares(facts.window, facts.size))
    count = _within(table, mine)
    near = int((count > _within(table, ~mine)).sum())
    members = gain(count, expected, bounded(block.lift)) > price(board.log_actor(block.actors), near)
    return measure(board, block.actors[members], places) if members.sum() >= limits.actors else None
