"""Workers: the processes that run programs together, as their driver sees them; where one is lost, work is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

from ringleader.errors import ClusterError, RunWarning, SettingsError, WorkerLost, warn_of

ATTEMPTS = 3
"""How often work is tried where workers are lost; then the fit stops, and its checkpoint stays."""

T = TypeVar("T")

Watch = Callable[[str, int], None]
"""Called with the program that workers run, and how many exchanges they have made in it."""


class Runtime(Protocol):
    """Where a fit may run instead of in this process."""

    def start(self) -> AbstractContextManager[Workers]:
        """Workers, for as long as the block runs."""


class Workers(Runtime, Protocol):
    """Processes that run programs together, as seen by the one that started them (the driver)."""

    count: int
    threads: int  # of each
    restarts: int  # how often they were started anew: what they held before is gone
    watch: Watch | None  # called after every exchange

    def run(self, call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """``call(memory, peers, *arguments[p])`` in every worker p; their results in order.

        Arguments are asked for one after the other, and let go of: an iterator never has those of all in memory.
        Raises ``WorkerLost`` where a worker is gone; then ``restart`` makes new ones, with nothing in memory. There may
        be fewer of them: where a node is gone, those that are left do the work of all.
        """

    def restart(self) -> None:
        """End all workers and start new ones."""


@contextmanager
def started(runtime: Runtime | None) -> Iterator[Workers | None]:
    """The workers of a runtime, for as long as the block runs; None where there is none."""
    if runtime is None:
        yield None
    elif not callable(getattr(runtime, "start", None)):
        raise SettingsError(f"runtime is {runtime!r}; choose None for this process, or a cluster such as rl.Ray()")
    else:
        with runtime.start() as workers:
            yield workers


def repeat(
    workers: Workers,
    work: Callable[[], T],
    forget: Callable[[], None],
    again: str,
    tried: str,
    advice: str = "the progress so far is in the checkpoint, continue with --resume",
) -> T:
    """What workers do, done again by new ones where some are lost.

    forget : what they held is gone. again, tried : the work in the words of the warning and of the error, which ends
    with ``advice``.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return work()
        except WorkerLost as error:
            forget()
            if attempt == ATTEMPTS:
                raise WorkerLost(f"{error}; {tried} {ATTEMPTS} times; {advice}") from error
            warn_of([f"{error}; new workers {again} again"], RunWarning)
            try:
                workers.restart()
            except ClusterError as failed:
                raise ClusterError(f"{error}; no new workers: {failed}; {advice}") from failed
    raise AssertionError("work ends or fails")
