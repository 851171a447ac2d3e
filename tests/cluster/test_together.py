"""Programs of workers side by side: the results of each by itself, for the exchanges of one."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from in_process import InProcess

from ringleader.errors import SettingsError
from ringleader.judge import basis
from ringleader.runtime.peers import Peers, gather, together


def added(number: int, peers: Peers) -> list[int]:
    """Two exchanges: everyone's number, then what each makes of their sum."""
    total = sum(gather(peers, number * (peers.rank + 1)))
    return peers.exchange([total + rank for rank in range(peers.count)])


def test_programs_side_by_side_find_what_each_finds_by_itself() -> None:
    numbers = (3, 5, 7, 11)
    for count in (1, 2, 3):
        both = []
        for work in (together, lambda peers, programs: [program(peers) for program in programs]):
            workers = InProcess(count)
            programs = [partial(added, number) for number in numbers]
            both.append((workers.run(lambda memory, peers, w=work, p=programs: w(peers, p), [()] * count), workers))
        (found, side_by_side), (expected, one_by_one) = both
        assert found == expected
        assert side_by_side.exchanges * len(numbers) == one_by_one.exchanges


def test_one_program_that_fails_ends_the_others() -> None:
    def fails(peers: Peers) -> None:
        gather(peers, 0)
        raise SettingsError("no")

    def work(memory: dict, peers: Peers) -> None:
        together(peers, [partial(added, 1), fails, partial(added, 2)])

    before = threading.active_count()
    with pytest.raises(SettingsError, match="no"):
        InProcess(2).run(work, [()] * 2)
    assert threading.active_count() == before


@pytest.mark.parametrize("width", [1, basis.AT_ONCE, basis.AT_ONCE + 3])
def test_ranks_of_columns_that_are_ranked_together_are_those_of_one_process(width: int) -> None:
    table = np.round(np.random.default_rng(width).normal(size=(500, width)), 1)
    expected = basis.rank_all(table)
    workers = InProcess(3)
    parts = workers.run(_ranked, [(part,) for part in np.split(table, [100, 350])])
    np.testing.assert_array_equal(np.concatenate([levels for levels, _, _ in parts]), expected.levels)
    for _, values, places in parts:
        np.testing.assert_array_equal(values, expected.values)
        np.testing.assert_array_equal(places, expected.places)
    assert workers.exchanges <= 1 + 5 * -(-width // basis.AT_ONCE)


def test_fewer_columns_are_ranked_together_where_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    table, exchanges = np.random.default_rng(0).normal(size=(500, 4)), []
    expected = basis.rank_all(table)
    for numbers in (2**19, 250):
        monkeypatch.setattr(basis, "NUMBERS_AT_ONCE", numbers)
        workers = InProcess(2)
        parts = workers.run(_ranked, [(part,) for part in np.split(table, [100])])
        np.testing.assert_array_equal(np.concatenate([levels for levels, _, _ in parts]), expected.levels)
        exchanges.append(workers.exchanges)
    assert exchanges[1] - 1 == 4 * (exchanges[0] - 1)


def _ranked(memory: dict, peers: Peers, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In a worker: levels of its rows, and the table of values and their ranks."""
    ranks = basis.rank_all(rows, peers)
    return ranks.levels, ranks.values, ranks.places
