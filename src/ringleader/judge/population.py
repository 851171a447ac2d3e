"""RankedPopulation: all entities of a mode as a head is fitted to them, their ranks here or with several processes.

The first process fits the head. It has the ranks of the labelled, and asks the others for one number of each entity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.judge.basis import CURVE, Layout, Levels, Ranks
from ringleader.runtime.peers import Peers, led

T = TypeVar("T")
Rows = npt.NDArray[Any]


class RankedPopulation:
    """The entities that a head is fitted to, all of them here.

    size : how many there are
    """

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.size = ranks, ranks.population

    def levels(self, codes: Numbers | Codes) -> Levels:
        """Those of some entities, (m, F)."""
        return self.ranks.levels[codes]

    def predictor(self, layout: Layout, weights: Floats) -> Floats:
        """That of every entity, (n,)."""
        return layout.predictor(self.ranks.levels, weights)


class _Asked(RankedPopulation):
    """The same as the first of several processes sees it: it has the levels of some entities, and asks for the rest."""

    def __init__(self, ranks: Ranks, codes: Numbers, levels: Levels, ask: Callable[[Any], list[Any]]) -> None:
        super().__init__(ranks)
        self._codes, self._levels, self._ask = codes, levels, ask

    def levels(self, codes: Numbers | Codes) -> Levels:
        return self._levels[np.searchsorted(self._codes, codes)]

    def predictor(self, layout: Layout, weights: Floats) -> Floats:
        return np.concatenate(self._ask((layout, weights)))


def fit_together(ranks: Ranks, codes: npt.ArrayLike, fit: Callable[[RankedPopulation], T]) -> T:
    """What ``fit`` makes of the population: by the first process that has ranks of it, and then known to all.

    codes : of the entities whose levels it reads. What it makes must not hold the levels of the population.
    """
    peers = ranks.peers
    if peers.count == 1:
        return fit(RankedPopulation(ranks))
    known = np.unique(np.asarray(codes, np.int64))
    own = known[(known >= ranks.first) & (known < ranks.first + len(ranks.levels))]
    levels = peers.exchange([ranks.levels[own - ranks.first], *[ranks.levels[:0]] * (peers.count - 1)])
    few = ranks.population < CURVE  # only then it matters for a predictor who else is there (``Layout.predictor``)
    mine = in_whole_parts(ranks) if few else ranks.levels

    def answer(question: tuple[Layout, Floats]) -> Floats:
        return question[0].predictor(mine, question[1], ranks.population)

    return led(peers, lambda ask: fit(_Asked(ranks, known, np.concatenate(levels), ask)), answer)


def believe_together(ranks: Ranks, codes: npt.ArrayLike, believe: Callable[[RankedPopulation], Floats]) -> Floats:
    """The same of what has a number for each entity, (n,): every process gets those of its own, (n_own,)."""
    peers, made = ranks.peers, []

    def keep(population: RankedPopulation) -> None:
        made.append(believe(population))

    fit_together(ranks, codes, keep)
    if peers.count == 1:
        return made[0]
    letters = np.split(made[0], edges_of(ranks.counts)[1:-1]) if made else [None] * peers.count
    return np.asarray(peers.exchange(letters)[0], np.float64)


def in_whole_parts(ranks: Ranks) -> Levels:
    """The levels of the population cut anew: each process has whole runs of CURVE entities.

    What is computed of them in runs has the bits of one process. Few rows travel.
    """
    return moved_rows(ranks.peers, ranks.levels, edges_of(ranks.counts), whole_parts(ranks.counts))


def edges_of(counts: Sequence[int]) -> Numbers:
    """Where the entities of each process begin, and how many there are, (P + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def whole_parts(counts: Sequence[int]) -> Numbers:
    """The nearest edges behind these that are multiples of CURVE."""
    edges = edges_of(counts)
    parts = -(-edges // CURVE) * CURVE
    return np.asarray(np.minimum(parts, edges[-1]), np.int64)


def moved_rows(peers: Peers, rows: Rows, edges: Numbers, to: Numbers) -> Rows:
    """Rows of which each process has a range, cut at other edges."""
    first, last = int(edges[peers.rank]), int(edges[peers.rank + 1])
    cuts = np.clip(to, first, last) - first
    return np.concatenate(peers.exchange([rows[a:b] for a, b in itertools.pairwise(cuts)]))
