"""Results of a pure function that are kept, so that many threads may ask for them: one computes, the others wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ringleader.arrays import frozen

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class Remembered(Generic[K, V]):
    """Results by key: all of them, or the last ``most``. One thread computes while the others wait.

    Results must be functions of their key and must not change, so that forgetting one is never seen.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._results: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K, compute: Callable[[], V]) -> V:
        with self._lock:
            if key not in self._results:
                while self._most is not None and len(self._results) >= self._most:
                    self._results.pop(next(iter(self._results)))  # before the new one needs memory
                self._results[key] = frozen(compute())
            return self._results[key]

    def __reduce__(self) -> tuple[type[Remembered[K, V]], tuple[int | None]]:
        return Remembered, (self._most,)


class found_once(Generic[R]):
    """``functools.cached_property`` with a lock for each object. Python 3.11 has one lock for all objects, and threads
    that find the same of different objects may wait for one another: workers of a cluster in one process do.
    """

    def __init__(self, find: Callable[[Any], R]) -> None:
        self.find, self.name = find, find.__name__
        self.__doc__ = find.__doc__
        self._lock = threading.Lock()

    def __get__(self, instance: Any, owner: type | None = None) -> R:
        if instance is None:
            return self  # type: ignore[return-value]
        known = instance.__dict__
        if self.name not in known:
            with self._lock:
                own = known.setdefault(f"_finding_{self.name}", threading.RLock())
            with own:
                if self.name not in known:
                    known[self.name] = frozen(self.find(instance))
        value: R = known[self.name]
        return value
