"""Threads that requests are answered in: few for pages, some for decisions, one for what takes seconds.

All of them share one interpreter with the refit. Many pages at once would each take as long as all together, so they
take turns; a decision waits for the disk and not for pages, and a long question holds up nobody but the next one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

PAGES, DECISIONS, LONG = 4, 8, 1
"""Requests of each kind that are worked on at once."""
Result = TypeVar("Result")


class RequestThreads:
    """How many requests of each kind are worked on at once, of one console."""

    def __init__(self) -> None:
        self._decisions, self._long = CapacityLimiter(DECISIONS), CapacityLimiter(LONG)

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Pages are the functions that the application calls in a thread by itself."""
        to_thread.current_default_thread_limiter().total_tokens = PAGES
        yield

    async def decide(self, call: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Answers a decision."""
        return await to_thread.run_sync(partial(call, *arguments, **named), limiter=self._decisions)

    async def long(self, call: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Answers what takes seconds, one at a time."""
        return await to_thread.run_sync(partial(call, *arguments, **named), limiter=self._long)
