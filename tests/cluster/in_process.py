"""Workers without a cluster: the same programs, exchanges carried by hand. For tests of what they compute."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ringleader.errors import RingleaderError, WorkerLost
from ringleader.runtime.peers import Worker


class InProcess:
    """``count`` workers in this process. Every message is pickled and read again, as between processes."""

    def __init__(self, count: int, threads: int = 1) -> None:
        self.count, self.threads = count, threads
        self.exchanges = 0
        self.watch = None
        self.bytes = 0
        self.restarts = -1
        self.restart()

    def start(self) -> AbstractContextManager[InProcess]:
        return nullcontext(self)

    def restart(self) -> None:
        self.restarts += 1
        # They have the memory of this process: none of them gives any of it back.
        self.workers = [Worker(rank, self.count, tidy=False) for rank in range(self.count)]

    def run(self, call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        try:
            return self._run(call, arguments)
        except RingleaderError:
            for worker in self.workers:
                worker.abandon()
            raise

    def _run(self, call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = [
            worker.start(call, *self._sent(given)) for worker, given in zip(self.workers, arguments, strict=True)
        ]
        while not all(answer[0] for answer in answers):
            assert not any(answer[0] for answer in answers), "workers must exchange equally often"
            self.exchanges += 1
            answers = [
                worker.go_on(*self._sent([answers[q][1 + p] for q in range(self.count) if q != p]))
                for p, worker in enumerate(self.workers)
            ]
        return [self._sent(answer[1]) for answer in answers]

    def _sent(self, value: Any) -> Any:
        data = pickle.dumps(value, protocol=5)
        self.bytes += len(data)
        return pickle.loads(data)


class Mortal(InProcess):
    """Loses all that its workers hold at some calls, counted from 1."""

    def __init__(self, count: int, deaths: set[int]) -> None:
        super().__init__(count)
        self.deaths, self.calls = deaths, 0

    def run(self, call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.calls += 1
        if self.calls in self.deaths:
            raise WorkerLost("worker 1 is gone")
        return super().run(call, arguments)
