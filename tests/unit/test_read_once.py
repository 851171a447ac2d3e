"""What lies elsewhere is read when something asks for it, once for all who share it, and holds nothing else."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from ringleader.runtime.remembered import ReadOnce, carried


class Value:
    """Something that a weak reference can be made of."""


def test_what_is_carried_over_is_read_once_and_when_it_is_asked_for() -> None:
    read: list[int] = []

    def reader(key: int) -> Value:
        read.append(key)
        return Value()

    first = ReadOnce(range(3), reader)
    known = first[2]
    second = carried(first, {0: 1, 5: 2})
    third = carried(second, {7: 0, 8: 5})
    assert read == [2]
    assert 0 in second
    assert 1 not in second
    assert 8 in third
    assert third[8] is second[5] is known
    assert third[7] is second[0] is first[1]
    assert read == [2, 1]
    assert carried({1: 4}, {0: 1}) == {0: 4}


def test_threads_that_ask_different_judges_at_once_read_once() -> None:
    read: list[int] = []

    def reader(key: int) -> Value:
        time.sleep(0.05)
        read.append(key)
        return Value()

    first = ReadOnce([0], reader)
    others = [first, *(carried(first, {0: 0}) for _ in range(3))]
    found: list[Value] = []
    threads = [threading.Thread(target=lambda known=known: found.append(known[0])) for known in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == len(set(map(id, found))) == 1


def test_what_is_not_carried_over_is_free_when_the_first_one_is_gone() -> None:
    first = ReadOnce(range(2), lambda key: Value())
    left, kept = weakref.ref(first[0]), weakref.ref(first[1])
    second = carried(first, {0: 1})
    lazily = carried(ReadOnce(range(2), lambda key: Value()), {0: 1})
    del first
    gc.collect()
    assert left() is None
    assert kept() is second[0]
    assert isinstance(lazily[0], Value)
