"""Vocabulary: entity <-> code for one mode. Append-only, so that codes stay stable."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringleader.errors import SettingsError
from ringleader.wording import is_unicode

Kind = Literal["id", "category", "number", "time"]
"""id and category hold text, number a numeric scale such as ratings, time the start of a bin."""
FEW = 8
"""So few names are looked for or read one by one: a page about one account asks for many times one name."""

FEWER = 4
"""Times as many values as entities that are looked for from which the entities are hashed and the values are not."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entities of one mode, in the order of their codes.

    Attributes
    ----------
    values : large_string for ids and categories, float64 for numbers, int64 for times (the start
        of the bin in Unix seconds). Position = code.
    bin_seconds : width of a time bin.
    edges : left edges of the bins of a number with too many distinct values; None where every value is its own.
    """

    mode: str
    kind: Kind
    values: pa.Array
    bin_seconds: int | None = None
    edges: tuple[float, ...] | None = None

    @classmethod
    def of_ids(cls, mode: str, ids: Iterable[str]) -> Vocabulary:
        return cls(mode, "id", pa.array(list(ids), pa.large_string()))

    def __len__(self) -> int:
        return len(self.values)

    def lookup(self, entities: Sequence[Any] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Codes of entities; -1 where unknown. Numbers and times are looked up by their stored value.

        Text that reads as a number is accepted for numeric modes, and an ISO date for times.
        """
        if not isinstance(entities, (pa.Array, pa.ChunkedArray)):
            entities = pa.array([self._native(e) for e in entities], self.values.type)
            if len(entities) <= FEW and self._is_text and not entities.null_count:  # else all values are hashed
                return np.array([pc.index(self.values, entity).as_py() for entity in entities], np.int32)
        entities = entities.cast(self.values.type)
        if self._is_text and len(entities) * FEWER < len(self.values):
            return self._lookup_few(entities)
        codes = pc.index_in(entities, value_set=self.values)
        return np.asarray(codes.fill_null(-1), dtype=np.int32)

    def _lookup_few(self, entities: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """The same, by a table of the entities, not of all values: that of a million names takes 100 MB."""
        named = pc.unique(entities).drop_null()
        places = pc.index_in(self.values, value_set=named)  # of each value, which of the entities it is
        codes = np.full(len(named) + 1, -1, np.int32)
        codes[np.asarray(places.drop_null())] = np.flatnonzero(np.asarray(places.is_valid()))
        return np.asarray(codes[np.asarray(pc.index_in(entities, value_set=named).fill_null(len(named)))])

    def code(self, entity: Any) -> int:
        """The code of one entity, or an error that names it."""
        code = int(self.lookup([entity])[0])
        if code < 0:
            raise SettingsError(f"{self.mode} {str(entity)[:80]!r} is not in the data")
        return code

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[Any]:
        """Entities of codes: str objects, floats, or datetime64[s] bin starts."""
        wanted = np.asarray(codes, np.int64)
        if len(wanted) <= FEW and self._is_text and (wanted >= 0).all():
            return np.array([self.values[code].as_py() for code in wanted.tolist()], dtype=object)
        taken = self.values.take(pa.array(wanted))
        if self.kind == "time":
            return np.asarray(taken).astype("datetime64[s]")
        if self.kind == "number":
            return np.asarray(taken, dtype=np.float64)
        return np.asarray(taken.to_pylist(), dtype=object)

    def text(self, codes: npt.ArrayLike) -> list[str]:
        """Entities of codes as text, for tables and messages."""
        if self.kind == "number":
            return [f"{value:g}" for value in self.decode(codes)]
        return [str(value) for value in self.decode(codes)]

    @property
    def _is_text(self) -> bool:
        return self.kind in ("id", "category")

    def _native(self, entity: Any) -> Any:
        """An entity as the type the values are stored in; None where it cannot be."""
        if self._is_text:
            return None if entity is None or not is_unicode(str(entity)) else str(entity)
        try:
            if self.kind == "time":
                return int(entity) if _is_number(entity) else _seconds(entity)
            return float(entity)
        except (TypeError, ValueError, OverflowError):
            return None


def _seconds(time: Any) -> int:
    """Unix seconds of a time; text without a zone is UTC."""
    if isinstance(time, str):
        with contextlib.suppress(ValueError):  # a year or a month alone, which NumPy knows
            time = datetime.fromisoformat(time)
    if isinstance(time, datetime) and time.tzinfo is not None:
        time = time.astimezone(UTC).replace(tzinfo=None)
    return int(np.datetime64(time, "s").astype(np.int64))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))
