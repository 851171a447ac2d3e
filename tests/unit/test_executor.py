"""Pieces of work: in their order, whoever runs them."""

from __future__ import annotations

import threading
import time

import pytest

from ringleader.runtime.executor import Threads


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("pieces", [0, 1, 2, 7, 50])
def test_results_come_in_the_order_of_the_pieces(count: int, pieces: int) -> None:
    def slow_at_first(piece: int) -> int:
        time.sleep(0.002 if piece == 0 else 0.0)
        return piece * piece

    assert Threads(count).map(slow_at_first, range(pieces)) == [piece * piece for piece in range(pieces)]


def test_several_threads_take_part() -> None:
    both = threading.Barrier(2, timeout=10)
    names = Threads(2).map(lambda piece: (both.wait(), threading.current_thread().name)[1], range(2))
    assert len(set(names)) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, ValueError])
def test_the_first_error_is_raised_when_all_have_stopped(stop: type[BaseException]) -> None:
    running = threading.active_count()

    def fail(piece: int) -> None:
        if piece == 3:
            raise stop("piece 3")

    with pytest.raises(stop, match="piece 3"):
        Threads(3).map(fail, range(100))
    assert threading.active_count() == running
