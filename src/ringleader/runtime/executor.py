"""Executor: where pieces of work run. ``map(call, pieces)`` gives the results in the order of the pieces.

What a piece is never depends on who runs it, so the answer is the same for any executor and any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from ringleader.runtime.machine import processors

P = TypeVar("P")
R = TypeVar("R")


class Executor(Protocol):
    """Runs pieces of work."""

    def map(self, call: Callable[[P], R], pieces: Iterable[P]) -> list[R]:
        """``call`` of every piece, in their order. The first error is raised."""


class Threads:
    """Threads of this machine; ``count`` None for as many as this process may use.

    For calls that release the interpreter lock: compiled kernels, sparse products, large array operations.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = processors() if count is None else count

    def map(self, call: Callable[[P], R], pieces: Iterable[P]) -> list[R]:
        """``call`` of every piece, in their order; one thread or one piece stays on the caller's."""
        work = list(pieces)
        if self.count == 1 or len(work) < 2:
            return [call(piece) for piece in work]
        with ThreadPoolExecutor(min(self.count, len(work))) as pool:
            return list(pool.map(call, work))
