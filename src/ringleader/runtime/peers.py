"""Peers: the processes that share one piece of work, as one of them sees the others.

The same program runs in every one of them, each on what it holds. Where it needs something of the others, it calls
``exchange``: everybody gives one message for each, and gets one of each. ``Alone`` is a single process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ringleader.runtime.machine import leave_shared, resident_memory, return_memory

LEAVE_FROM = 32 * 2**20
"""Bytes of shared memory, in which messages come and go, from which a worker lets go of them at an exchange."""
RETURN_FROM, RETURN_PART = 64 * 2**20, 8
"""Bytes by which a worker has grown, and what part of all it has, from which it gives back at an exchange what it has
freed meanwhile."""

T = TypeVar("T")


class Peers(Protocol):
    """``count`` processes, of which this is number ``rank`` (from 0)."""

    rank: int
    count: int

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        """One message for each process; returns those of all of them to this one, in the order of their numbers.

        Messages are plain values and arrays; those received may be read-only.
        """


class Alone:
    """One process: what it says to itself, it hears."""

    rank, count = 0, 1

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        return list(messages)


def gather(peers: Peers, value: T) -> list[T]:
    """What every process has given, in the order of their numbers; the same list everywhere."""
    return peers.exchange([value] * peers.count)


def led(peers: Peers, work: Callable[[Callable[[Any], list[Any]]], T], answer: Callable[[Any], Any]) -> T:
    """What the first process makes, in all of them.

    work : runs in the first alone, and may ask: ``ask(question)`` gives what every process answers to it.
    """
    others = [None] * (peers.count - 1)
    if peers.rank:
        while True:
            asks, value = peers.exchange([None] * peers.count)[0]
            if not asks:
                made: T = value
                return made
            peers.exchange([answer(value), *others])

    def ask(question: Any) -> list[Any]:
        gather(peers, (True, question))
        return peers.exchange([answer(question), *others])

    result = work(ask)
    gather(peers, (False, result))
    return result


class Abandoned(BaseException):
    """The program of a worker is not wanted any more."""


class Worker:
    """One of several processes that run programs together; whoever holds it carries its messages.

    A program is ``call(memory, peers, *arguments)``. It runs on a thread of its own up to its next exchange: ``start``
    and ``go_on`` return (False, messages ...) there, one for each process, and (True, result, None ...) at its end.
    ``memory`` stays from one program to the next.
    """

    def __init__(self, rank: int, count: int, tidy: bool = True) -> None:
        """tidy : whether memory that is free is given back now and then."""
        self.rank, self.count, self.tidy = rank, count, tidy
        self.memory: dict[str, Any] = {}
        self._inbox: queue.Queue[Any] = queue.Queue()
        self._outbox: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._own: Any = None
        self._settled = 0  # bytes that were left when memory was given back
        self._thread: threading.Thread | None = None

    def start(self, call: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        """Run a program up to its first exchange, or its end."""
        peers = _Peers(self.rank, self.count, self._inbox, self._outbox)
        self._thread = threading.Thread(target=self._run, args=(call, peers, arguments, self._outbox), daemon=True)
        self._thread.start()
        return self._next()

    def abandon(self) -> None:
        """Give up a program that waits for messages, because one of the others failed; it cleans up behind itself."""
        self._inbox.put(Abandoned())
        if self._thread is not None:
            self._thread.join()
        self._inbox, self._outbox, self._own = queue.Queue(), queue.Queue(), None

    def go_on(self, *messages: Any) -> tuple[Any, ...]:
        """Hand over the messages of the others, in the order of their numbers, and run on."""
        received = list(messages)
        received.insert(self.rank, self._own)
        self._own = None
        self._inbox.put(received)
        return self._next()

    def _run(
        self, call: Callable[..., Any], peers: Peers, arguments: tuple[Any, ...], outbox: queue.Queue[tuple[str, Any]]
    ) -> None:
        try:
            outbox.put(("done", call(self.memory, peers, *arguments)))
        except Abandoned:
            pass
        except BaseException as error:  # whoever called ``start`` or ``go_on`` gets it
            outbox.put(("failed", error))

    def _next(self) -> tuple[Any, ...]:
        kind, value = self._outbox.get()
        if kind == "failed":
            raise value
        if kind == "done":
            if self.tidy:
                self._return()  # the next program may need it elsewhere
            return (True, value, *[None] * (self.count - 1))
        if self.tidy:
            used = resident_memory()
            if used.own > self._settled + max(RETURN_FROM, used.own // RETURN_PART):
                self._return()
            elif used.shared > LEAVE_FROM:
                leave_shared()
        self._own, value[self.rank] = value[self.rank], None  # what it tells itself does not travel
        return (False, *value)

    def _return(self) -> None:
        return_memory()
        self._settled = resident_memory().own


class _Peers:
    """The others as a running program sees them."""

    def __init__(self, rank: int, count: int, inbox: queue.Queue[Any], outbox: queue.Queue[tuple[str, Any]]) -> None:
        self.rank, self.count, self._inbox, self._outbox = rank, count, inbox, outbox

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        if self.count == 1:
            return list(messages)
        self._outbox.put(("exchange", list(messages)))
        received = self._inbox.get()
        if isinstance(received, Abandoned):
            raise received
        answer: list[Any] = received
        return answer


def together(peers: Peers, programs: Sequence[Callable[[Peers], T]]) -> list[T]:
    """The results of programs that make equally many exchanges: those of all of them are carried by one exchange each.

    Every process calls it with the same programs. In one process they run one after the other.
    """
    if peers.count == 1:
        return [program(peers) for program in programs]
    others = [rank for rank in range(peers.count) if rank != peers.rank]
    workers = [Worker(peers.rank, peers.count, tidy=False) for _ in programs]
    try:
        answers = [w.start(_with_peers, program) for w, program in zip(workers, programs, strict=True)]
        while not all(answer[0] for answer in answers):
            if any(answer[0] for answer in answers):
                raise RuntimeError("some programs ended and others wait for messages")
            received = peers.exchange([[answer[1 + rank] for answer in answers] for rank in range(peers.count)])
            answers = [w.go_on(*(received[rank][n] for rank in others)) for n, w in enumerate(workers)]
    except BaseException:
        for worker in workers:
            worker.abandon()
        raise
    return [answer[1] for answer in answers]


def _with_peers(memory: dict[str, Any], peers: Peers, program: Callable[[Peers], T]) -> T:
    return program(peers)
