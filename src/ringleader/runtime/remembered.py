"""Results of a pure function that are kept, so that many threads may ask for them: one computes, the others wait.

And values that lie elsewhere, by key, each of which is read when something asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from ringleader.arrays import frozen

K = TypeVar("K", bound=Hashable)
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

    def forget(self) -> None:
        """Give the memory of all results back."""
        with self._lock:
            self._results.clear()

    def __reduce__(self) -> tuple[type[Remembered[K, V]], tuple[int | None]]:
        return Remembered, (self._most,)


class computed_once(Generic[R]):
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


class ReadOnce(dict[K, V]):
    """A dictionary that reads what lies elsewhere, such as in a folder, when something first asks for it."""

    def __init__(self, keys: Iterable[K], read: Callable[[K], V]) -> None:
        super().__init__()
        self._readers: dict[K, Callable[[], V]] = {key: partial(read, key) for key in keys}

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._readers

    def __missing__(self, key: K) -> V:
        if key not in self._readers:
            raise KeyError(key)
        self[key] = frozen(self._readers[key]())
        return self[key]

    def lent(self, key: K) -> Callable[[], V]:
        """Gives the value of a key to whoever calls it, which is read once for all. It holds no other value."""
        if super().__contains__(key):
            value = self[key]
            return lambda: value
        once = self._readers[key]
        if not isinstance(once, _Once):
            once = self._readers[key] = _Once(once)
        return once


class _Once(Generic[V]):
    """A reader whose value is kept; of threads that ask at once, one reads."""

    def __init__(self, read: Callable[[], V]) -> None:
        self._read, self._known = read, Remembered[None, V]()

    def __call__(self) -> V:
        return self._known.get(None, self._read)


def carried(known: dict[K, V], keys: Mapping[K, K]) -> dict[K, V]:
    """The values of some keys (new: old) under other keys. What was not read yet is read when something asks for it."""
    if not isinstance(known, ReadOnce):
        return {new: known[old] for new, old in keys.items()}
    readers = {new: known.lent(old) for new, old in keys.items()}
    return ReadOnce(readers, lambda new: readers[new]())
