"""The array types that every package shares."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
"""Of any type."""
NamedArrays = Mapping[str, Array]
"""By name, as the parts of a stored model have them."""
Factors = npt.NDArray[Any]
"""float64, or float32 where storage matters."""


K = TypeVar("K")
V = TypeVar("V")


class ReadOnly(dict[K, V]):
    """A dictionary that nobody may write to. JSON and pickle take it as any other; a deep copy is an ordinary one."""

    def _refuse(self, *arguments: Any, **more: Any) -> NoReturn:
        raise TypeError("this dictionary is part of a model and cannot be changed; change a copy of it: dict(...)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnly, (dict(self),)

    def __deepcopy__(self, memo: Any) -> dict[K, V]:
        return copy.deepcopy(dict(self), memo)


class Frozen:
    """What frozen dataclasses inherit to be values: what their fields hold cannot be written to either (``frozen``).

    That holds for copies and for what is unpickled too. Fields with an underscore are left to the class.
    """

    def __post_init__(self) -> None:
        for field in fields(cast(Any, self)):
            if not field.name.startswith("_"):
                value = getattr(self, field.name)
                made = frozen(value)
                if made is not value:
                    object.__setattr__(self, field.name, made)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        Frozen.__post_init__(self)


class ColumnTable:
    """Columns of one length side by side, each in one piece, written one after the other.

    A table that is stacked from columns is a copy of all of them. Here each goes to its place when it is found: memory
    for some is set aside at once, and pages that nothing was written to take no memory.

    used : columns that are written; their memory, (capacity, n), may hold more
    """

    def __init__(self, memory: Floats, used: int = 0) -> None:
        self._memory, self.used = memory, used

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnTable, (self._memory[: self.used].copy(), self.used)

    @classmethod
    def of(cls, rows: int, capacity: int = 128) -> ColumnTable:
        return cls(np.empty((capacity, rows)))

    @property
    def capacity(self) -> int:
        """Columns that its memory can hold."""
        return len(self._memory)

    def put(self, column: npt.ArrayLike) -> ColumnTable:
        """The table with one more column; in the same memory while it has a free row."""
        memory = self._memory
        if self.used == len(memory):
            memory = np.empty((2 * self.used + 1, memory.shape[1]))
            memory[: self.used] = self._memory
        memory[self.used] = column
        return ColumnTable(memory, self.used + 1)

    @property
    def values(self) -> Floats:
        """(n, used), to be read"""
        return frozen(self._memory[: self.used].T)


def frozen(value: V) -> V:
    """The value, which nobody may write to from now on: others hold it too.

    Arrays, and those in tuples, dictionaries and sparse matrices, get a flag and are not copied: views of before can
    still be written to. Of dictionaries and lists it gives ones that are read-only, ``ReadOnly`` and tuples.
    """
    held: Any = value
    if isinstance(held, np.ndarray):
        held.flags.writeable = False
    elif type(held) is dict:  # others refuse, or read when they are asked
        held = ReadOnly({key: frozen(item) for key, item in held.items()})
    elif isinstance(held, (tuple, list)):
        made = [frozen(item) for item in held]
        if isinstance(held, list):
            held = tuple(made)
        elif any(after is not before for after, before in zip(made, held, strict=True)):
            held = type(held)._make(made) if hasattr(held, "_make") else tuple(made)
    elif hasattr(type(held), "tocsr"):  # a sparse matrix
        frozen(tuple(vars(held).values()))
    return cast(V, held)


def packed_json(value: Any) -> npt.NDArray[np.uint8]:
    """What JSON can say, as an array of its bytes: names and settings stand beside the arrays that they are about."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8).copy()


def unpacked_json(packed: Array) -> Any:
    """What ``packed_json`` packed."""
    return json.loads(packed.tobytes())
