"""Threads: where pieces of work run. ``map(call, pieces)`` gives the results in the order of the pieces.

What a piece is never depends on who runs it, so the answer is the same for any number of threads.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from ringleader.runtime.machine import processors

P = TypeVar("P")
R = TypeVar("R")


_LIMIT: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Within it, ``Threads()`` has so many threads; None for as many as this process may use."""
    token = _LIMIT.set(count)
    try:
        yield
    finally:
        _LIMIT.reset(token)


class Threads:
    """Threads of this machine; ``count`` None for those of ``using_threads``.

    For calls that release the interpreter lock: compiled kernels, sparse products, large array operations.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or _LIMIT.get() or processors()

    def map(self, call: Callable[[P], R], pieces: Iterable[P]) -> list[R]:
        """``call`` of every piece, in their order; whoever is free takes the next, the caller's thread too."""
        work = list(pieces)
        if self.count == 1 or len(work) < 2:
            return [call(piece) for piece in work]
        results: list[Any] = [None] * len(work)
        errors: list[BaseException] = []
        places = itertools.count()

        def take_next() -> None:
            while not errors:
                place = next(places)
                if place >= len(work):
                    return
                try:
                    results[place] = call(work[place])
                except BaseException as error:  # an interrupt too: it is raised below, when all have stopped
                    errors.append(error)

        contexts = [copy_context() for _ in range(min(self.count, len(work)) - 1)]
        helpers = [threading.Thread(target=context.run, args=(take_next,)) for context in contexts]
        for helper in helpers:
            helper.start()
        take_next()
        for helper in helpers:
            helper.join()
        if errors:
            raise errors[0]
        return results
