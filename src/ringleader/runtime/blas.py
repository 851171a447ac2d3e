"""One BLAS thread while small matrices are at work: faster there, and the same bits whatever the number of cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits


class _Limit:
    """Who is inside. The limit is the process's: it holds until the last of several threads leaves."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.held: Any = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it BLAS uses one thread; threads and nested calls share it."""
    with _LIMIT.lock:
        if _LIMIT.inside == 0:
            _LIMIT.held = threadpool_limits(1, "blas")
        _LIMIT.inside += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.inside -= 1
            if _LIMIT.inside == 0:
                _LIMIT.held.restore_original_limits()
