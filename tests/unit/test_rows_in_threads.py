"""What goes through all entities gives the same bits for any number of threads: those of one pass."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.datasets import marketplace
from ringleader.kernels import host_arrays
from ringleader.kernels.host_arrays import HostArrays
from ringleader.kernels.layout import Rule
from ringleader.kernels.single_block import column_squares, rows_log_prior
from ringleader.runtime.executor import using_threads
from ringleader.signals.behaviour import covariates
from ringleader.tensor.encode import read_reviews

LEARNED = Rule(0, 0, 0.8, 1.0, True, 1.0, 9.0, 1.0, 0.1, 0.3)
FIXED = LEARNED._replace(shape=0.0)
ROWS = np.random.default_rng(0).normal(0.6, 0.4, (1003, 5)).astype(np.float32)


@pytest.mark.parametrize("rule", [LEARNED, FIXED])
def test_the_log_prior_of_pieces_is_added_in_the_order_of_the_rows(rule: Rule) -> None:
    total = 0.0
    for first in range(0, len(ROWS), 100):
        total += rows_log_prior(ROWS[first : first + 100], rule)
    for threads in (1, 2, 5):
        assert rows_log_prior(ROWS, rule, piece=100, threads=threads) == total


def test_squares_of_pieces_are_added_in_the_order_of_the_rows() -> None:
    total = np.zeros(5)
    for first in range(0, len(ROWS), 100):
        total += np.square(ROWS[first : first + 100].astype(np.float64)).sum(axis=0)
    for threads in (1, 2, 5):
        assert (column_squares(ROWS, 100, threads) == total).all()


def test_threads_place_a_copy_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_arrays, "COPIED", 100)
    backend = HostArrays()
    for backend.threads in (1, 3):
        for rows in (ROWS, ROWS[:0], np.arange(7.0)):
            placed = backend.place(rows)
            assert placed.tobytes() == rows.tobytes() and placed.shape == rows.shape
            assert placed.dtype == rows.dtype and not np.shares_memory(placed, rows)


def test_behaviour_that_threads_find_side_by_side_is_that_of_one_column_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensor = read_reviews(marketplace(2000, difficulty="easy", seed=3).reviews)
    alone = [covariates.behaviour(tensor, mode) for mode in range(3)]
    monkeypatch.setattr(covariates, "SHARED", 0)
    for threads in (1, 3):
        with using_threads(threads):
            for mode, plain in enumerate(alone):
                found = covariates.behaviour(tensor, mode)
                assert found.names == plain.names
                assert found.values.tobytes() == plain.values.tobytes()
