"""The state of a large model, which is read from its folder when something asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

from ringleader.arrays import frozen
from ringleader.errors import ModelFileError
from ringleader.known.labels import Target
from ringleader.model.state import State
from ringleader.snapshot.checks import MisfitError, check_state, refused
from ringleader.snapshot.folder import Stored
from ringleader.snapshot.pieces import files_of
from ringleader.snapshot.place import Place
from ringleader.tensor.sparse import SparseTensor


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
        frozen(state.to_arrays())
        return state

    def put_away(self) -> None:
        """Gives its memory back; it is read again when something asks for it."""
        self.__dict__.pop("_state", None)

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
        return read_state(stored)
    return cast(State, StoredState(int(stored.meta["sweep"]), lambda: read_state(stored)))


def read_state(stored: Stored) -> State:
    """The state of a model, read now; what makes no state is refused by the name of the model."""
    arrays = stored.arrays("state")
    try:
        return State.from_arrays(arrays)
    except (ModelFileError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise refused(stored.folder, stored.name, error) from error


def put_state_away(state: State) -> None:
    """Gives the memory of a state back that can be read again; others stay."""
    if isinstance(state, StoredState):
        state.put_away()


def check_when_read(state: State, check: Callable[[State], None]) -> None:
    """Checks a state: now, or when it is read."""
    if isinstance(state, StoredState):
        state.check = check
    else:
        check(state)


def check_stored_state(
    place: Place, name: str, tensor: SparseTensor, rank: int, targets: Sequence[Target], state: State
) -> None:
    """Refuses a state that does not fit the model.

    place, name : of the model, not the model itself, which would hold its own state
    """
    try:
        check_state(state, tensor, rank, targets)
    except MisfitError as error:  # it may be read long after the model was opened
        raise refused(place, name, error) from error
