"""What is read from a model's folder when something asks for it: parts by key, and the state of a large model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, TypeVar, cast

from ringleader.arrays import frozen
from ringleader.model.state import State
from ringleader.snapshot.folder import Stored
from ringleader.snapshot.pieces import files_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReadOnce(dict[K, V]):
    """A dictionary that reads what a folder knows when it is first asked for."""

    def __init__(self, keys: Iterable[K], read: Callable[[K], V]) -> None:
        super().__init__()
        self._readable, self._read = frozenset(keys), read

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._readable

    def __missing__(self, key: K) -> V:
        if key not in self._readable:
            raise KeyError(key)
        self[key] = self._read(key)
        return self[key]


class StoredState:
    """Stands for a ``State``: whatever is asked of it is asked of the one that is read then."""

    def __init__(self, sweep: int, read: Callable[[], State]) -> None:
        """sweep : of the state, which is known before it is read"""
        self.sweep, self._read = sweep, read
        self.check: Callable[[State], None] | None = None

    @cached_property
    def _state(self) -> State:
        state = self._read()
        if self.check is not None:
            self.check(state)
        for array in state.to_arrays().values():
            frozen(array)
        return state

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._state, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """The state itself: a copy does not read from the folder of this one."""
        return _itself, (self._state,)


def _itself(state: State) -> State:
    return state


def stored_state(stored: Stored, *, later: bool = False) -> State:
    """The state of a model; where it is in pieces, or ``later``, it is read when something asks for it."""
    if not later and len(files_of(stored.files.get("state", {}))) == 1:
        return State.from_arrays(stored.arrays("state"))
    return cast(State, StoredState(int(stored.meta["sweep"]), lambda: State.from_arrays(stored.arrays("state"))))


def check_when_read(state: State, check: Callable[[State], None]) -> None:
    """Checks a state: now, or when it is read."""
    if isinstance(state, StoredState):
        state.check = check
    else:
        check(state)
