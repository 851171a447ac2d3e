"""The array types that every package shares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

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


class ColumnTable(NamedTuple):
    """Columns of one length side by side, each in one piece, written one after the other.

    A table that is stacked from columns is a copy of all of them. Here each goes to its place when it is found: memory
    for some is set aside at once, and pages that nothing was written to take no memory.

    memory : (capacity, n), of which ``used`` rows are the columns
    """

    memory: Floats
    used: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnTable, (self.memory[: self.used].copy(), self.used)

    @classmethod
    def of(cls, rows: int, capacity: int = 128) -> ColumnTable:
        return cls(np.empty((capacity, rows)))

    def put(self, column: npt.ArrayLike) -> ColumnTable:
        """The table with one more column; in the same memory while it has a free row."""
        memory = self.memory
        if self.used == len(memory):
            memory = np.empty((2 * self.used + 1, memory.shape[1]))
            memory[: self.used] = self.memory
        memory[self.used] = column
        return ColumnTable(memory, self.used + 1)

    @property
    def values(self) -> Floats:
        """(n, used)"""
        return self.memory[: self.used].T


def frozen(array: Array) -> Array:
    """The array, which nobody may write to from now on: others hold it too."""
    array.flags.writeable = False
    return array


def packed_json(value: Any) -> npt.NDArray[np.uint8]:
    """What JSON can say, as an array of its bytes: names and settings stand beside the arrays that they are about."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8).copy()


def unpacked_json(packed: Array) -> Any:
    """What ``packed_json`` packed."""
    return json.loads(packed.tobytes())
