"""The significance of cores keeps its promise: chance seldom exceeds it, and taste is not taken for lockstep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from core_markets import gang, market

from ringleader.cores.board import Board
from ringleader.cores.layout import BoardHolder
from ringleader.cores.significance import agree, evidence, naming_cost, taste
from ringleader.shares.cells import as_share
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.sparse import SparseTensor


def boards(tensor: SparseTensor) -> list[Board]:
    return BoardHolder(as_share(tensor), find_lockstep(tensor), 3).market().boards


def a_board(seed: int = 0) -> Board:
    tensor = market(gang("ring", (4, 5), 3), seed=seed)
    return boards(tensor)[0]


def test_the_bound_on_chance_holds_for_reviewers_dealt_anew() -> None:
    """P(bound <= alpha) is at most alpha for blocks given beforehand, small and large."""
    board = a_board()
    rng = np.random.default_rng(0)
    everyone, every_place = np.arange(board.tables.people.count), np.arange(board.tables.places.count)  # type: ignore[attr-defined]
    facts, reviews = board.facts(every_place), board.reviews_at(every_place)
    window = facts.window[reviews.place]
    order = np.argsort(window, kind="stable")
    bounds = np.flatnonzero(np.diff(window[order], prepend=-1))
    busiest = np.argsort(-board.tables.members.read(everyone).lengths, kind="stable")
    largest = np.argsort(-facts.size, kind="stable")
    for actors, places in ((np.sort(busiest[:20]), np.sort(largest[:30])), (np.sort(busiest[:200]), largest[:5])):
        expected = float(board.activity(actors) @ board.shares(facts.window[places], facts.size[places]))
        inside, member = np.isin(reviews.place, places), np.zeros(len(everyone), bool)
        member[actors] = True
        counts = []
        for _ in range(1_500):
            who = np.concatenate([rng.permutation(part) for part in np.split(reviews.who[order], bounds[1:])])
            counts.append(int((member[who] & inside[order]).sum()))
        assert np.mean(counts) == pytest.approx(expected, rel=0.1)
        p = np.exp([-evidence(c, expected) for c in counts])
        for alpha in (0.5, 0.2, 0.1, 0.05, 0.01):
            assert (p <= alpha).mean() <= alpha + 2.5 * math.sqrt(alpha / len(counts))
        assert (p <= 0.5).mean() > 0.02  # it bounds, but it is not empty


def test_the_weights_of_all_blocks_sum_to_at_most_one() -> None:
    board = a_board()
    actors, places = np.log([0.5, 0.2, 0.2, 0.1]), np.log([0.6, 0.3, 0.1])
    total = sum(math.exp(-naming_cost(actors[list(a)], places[list(p)])) for a in _subsets(4) for p in _subsets(3))
    assert 0.1 < total <= 1.0
    for table in (board.tables.people, board.tables.places):
        log_share = table.read(np.arange(table.count)).values("log_share")  # type: ignore[attr-defined]
        assert np.exp(log_share[np.isfinite(log_share)]).sum() == pytest.approx(1.0)


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(1, n + 1))


@pytest.mark.slow
def test_taste_alone_has_no_evidence_that_weeks_are_shared() -> None:
    """Fans who come when everyone comes: the ratio exceeds 20 in at most a twentieth of the communities."""
    ratios = []
    for seed in range(16):
        tensor = market(gang("fan", (4, 5), 140, people=15, items=8, seed=seed), seed=seed)
        found = boards(tensor)
        ids = tensor.vocabulary("reviewer").text(np.arange(tensor.shape[0]))
        fans = np.flatnonzero([name.startswith("fan") for name in ids])
        ratios.append(taste(found[-1] if found[-1].side == 0 else found[0], fans))
    assert np.mean(np.array(ratios) > math.log(20)) <= 0.05 + 2 * math.sqrt(0.05 / 16)


def test_evidence_grows_with_reviews_and_shrinks_with_expectation() -> None:
    assert evidence(5, 5) == evidence(0, 1) == evidence(3, 7) == 0
    assert evidence(10, 1) > evidence(9, 1) > evidence(9, 2) > 0


def test_agreement_is_weighed_against_everyone() -> None:
    assert agree(30, 30, 0.7) and agree(29, 30, 0.7) and not agree(21, 30, 0.7)
    assert agree(30, 30, 0.99) and agree(10, 10, 1.0)  # where everyone is happy, nothing speaks against a ring
    assert not agree(10, 30, 0.2)
