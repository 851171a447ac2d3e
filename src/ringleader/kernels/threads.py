"""Threads of this machine: how many there are, and sharing pieces of work among them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable


def available_threads() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def share_pieces(call: Callable[[int], None], pieces: range, threads: int) -> None:
    """Run ``call`` on every piece; whoever is free takes the next. The first error is raised here."""
    taken = itertools.count()
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            i = next(taken)
            if i >= len(pieces):
                return
            try:
                call(pieces[i])
            except BaseException as error:
                errors.append(error)

    helpers = [threading.Thread(target=work) for _ in range(min(threads, len(pieces)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]
