"""Tables of rows that a search for cores reads: those that this process holds, and those it fetches of others.

A row has some values (of an account how much naming it costs) and may have a list of entries (its reviews). Whoever
holds everything reads the rows where they are. Whoever does not asks their owners for those that it needs, and keeps
them: its memory grows with what a search touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ringleader.arrays import Array, Bools, Codes, Numbers

Ask = Callable[[Any], list[Any]]
"""Gives what every process answers to a question, in the order of their numbers."""


class TableRows:
    """Rows that were read of a table, in the order in which they were asked for.

    lengths : entries of each row
    """

    def __init__(
        self,
        values: Mapping[str, Array],
        entries: Mapping[str, Array],
        at: Numbers | Codes,
        begin: Numbers | Codes,
        lengths: Numbers,
        order: Codes | None = None,
    ) -> None:
        """at : where the values of each row are; begin : where its entries begin, in ``order`` where there is one."""
        self._values, self._entries, self._at = values, entries, at
        self._begin, self.lengths, self._order = begin, lengths, order

    @cached_property
    def _spots(self) -> Numbers | Codes:
        spots = runs(self._begin, self.lengths)
        return spots if self._order is None else self._order[spots]

    def values(self, name: str) -> Array:
        """One for each row."""
        return self._values[name][self._at]

    def entries(self, name: str, which: Numbers | None = None) -> Array:
        """One for each entry, row after row; or for some of these."""
        return self._entries[name][self._spots if which is None else self._spots[which]]


class PackedRows(NamedTuple):
    """Rows as they are sent."""

    values: dict[str, Array]
    lengths: Numbers
    entries: dict[str, Array]


class RowSource(Protocol):
    """Rows by the numbers of whom they are of; numbers are asked for ascending."""

    def lacks(self, numbers: Numbers) -> bool:
        """Whether some rows are not here; they are wanted, and come with the next ones that are fetched."""

    def read(self, numbers: Numbers) -> TableRows:
        """The rows, fetched where they are not here."""


class OwnTable:
    """The rows ``first``, ``first + 1`` and so on, all of them here; ``total`` : rows of all processes.

    values : one for each row, by name; offsets, order : entries of row n are ``order[offsets[n]:offsets[n + 1]]`` of
    ``entries``; without order ``entries[offsets[n]:offsets[n + 1]]``, without offsets none.
    """

    def __init__(
        self,
        first: int,
        count: int,
        total: int,
        values: Mapping[str, Array],
        entries: Mapping[str, Array] | None = None,
        offsets: Numbers | None = None,
        order: Codes | None = None,
    ) -> None:
        self.first, self.count, self.total = first, count, total
        self.values, self.entries, self.offsets, self.order = values, entries or {}, offsets, order

    def lacks(self, numbers: Numbers) -> bool:
        return False

    def read(self, numbers: Numbers) -> TableRows:
        at = numbers - self.first if self.first else numbers
        if self.offsets is None:
            return TableRows(self.values, self.entries, at, at, np.zeros(len(at), np.int64))
        begin = self.offsets[at]
        return TableRows(self.values, self.entries, at, begin, self.offsets[at + 1] - begin, self.order)

    def packed(self, numbers: Numbers) -> PackedRows:
        """Those of the rows that are here, to be sent."""
        low, high = np.searchsorted(numbers, [self.first, self.first + self.count])
        rows = self.read(numbers[low:high])
        return PackedRows(
            {name: rows.values(name) for name in self.values},
            rows.lengths,
            {name: rows.entries(name) for name in self.entries},
        )


class FetchedTable:
    """Rows of others, as far as they were needed."""

    def __init__(self, fetch: Callable[[], None], total: int) -> None:
        """fetch : has all tables get what they want; total : how many rows there are"""
        self._fetch = fetch
        # Where each row is, counted from 1; 0 where it is not here. Memory is taken where some are.
        self._at = np.zeros(total, np.int32)
        self._values: dict[str, Column] = {}
        self._entries: dict[str, Column] = {}
        self._begin, self._length = Column(), Column()
        self._wanted: list[Numbers] = []
        self._columns: list[dict[str, Array]] = [_Nothing(), _Nothing()]

    def lacks(self, numbers: Numbers) -> bool:
        here = self._at[numbers] > 0
        if here.all():
            return False
        self._wanted.append(numbers[~here])
        return True

    def wanted(self) -> Numbers:
        """What is missing, ascending, each once; asked for by whoever fetches it."""
        wanted = np.unique(np.concatenate([np.zeros(0, np.int64), *self._wanted]))
        self._wanted.clear()
        return np.asarray(wanted[self._at[wanted] == 0])

    def take(self, numbers: Numbers, parts: Sequence[PackedRows]) -> None:
        """Rows that were wanted, some of each owner; numbers ascend."""
        begin = len(next(iter(self._entries.values())).array) if self._entries else 0
        lengths = np.concatenate([part.lengths for part in parts])
        self._at[numbers] = np.arange(len(numbers), dtype=np.int32) + np.int32(len(self._length.array) + 1)
        self._begin.append(begin + np.cumsum(lengths) - lengths)
        self._length.append(lengths)
        for mine, theirs in ((self._values, [p.values for p in parts]), (self._entries, [p.entries for p in parts])):
            for name in theirs[0]:
                mine.setdefault(name, Column()).append(np.concatenate([part[name] for part in theirs]))
        self._columns = [{n: column.array for n, column in own.items()} for own in (self._values, self._entries)]

    def read(self, numbers: Numbers) -> TableRows:
        if self.lacks(numbers):
            self._fetch()
        at = self._at[numbers] - 1
        return TableRows(self._columns[0], self._columns[1], at, self._begin.array[at], self._length.array[at])


class Fetcher:
    """Fetches what several tables want, in one question. Tables are numbered in the order in which they were made."""

    def __init__(self, ask: Ask) -> None:
        self.ask, self._tables = ask, list[FetchedTable]()

    def table(self, total: int) -> FetchedTable:
        """One more, of so many rows."""
        self._tables.append(FetchedTable(self.fetch, total))
        return self._tables[-1]

    def fetch(self) -> None:
        """Have all tables get what they want."""
        every = [(number, table.wanted()) for number, table in enumerate(self._tables)]
        question = [(number, wanted) for number, wanted in every if len(wanted)]
        if question:
            answers = self.ask(("rows", question))
            for place, (number, wanted) in enumerate(question):
                self._tables[number].take(wanted, [answer[place] for answer in answers])


class Column:
    """An array that grows."""

    def __init__(self) -> None:
        self._all: Array | None = None
        self._size = 0

    @property
    def array(self) -> Array:
        return np.zeros(0, np.int64) if self._all is None else self._all[: self._size]

    def append(self, values: Array) -> None:
        if self._all is None:
            self._all = np.array(values)
        elif self._size + len(values) > len(self._all):
            more = np.empty((2 * (self._size + len(values)), *values.shape[1:]), values.dtype)
            more[: self._size] = self._all[: self._size]
            self._all = more
        self._all[self._size : self._size + len(values)] = values
        self._size += len(values)


class _Nothing(dict[str, Array]):
    """The columns of a table of which nothing was read yet."""

    def __missing__(self, name: str) -> Array:
        return np.zeros(0, np.int64)


class CellSet:
    """Numbers of cells. Memory is taken where they are: the rest of the table is never written."""

    def __init__(self, n_cells: int) -> None:
        self._within, self._added = np.zeros(n_cells, np.bool_), list[Numbers]()

    def contains(self, cells: Numbers | Codes) -> Bools:
        return self._within[cells]

    def add(self, cells: Numbers | Codes) -> None:
        """Cells, each once."""
        self._added.append(cells[~self._within[cells]].astype(np.int64))
        self._within[cells] = True

    def ascending(self) -> Numbers:
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self._added]))


def runs(first: Numbers | Codes, length: Numbers) -> Numbers:
    """first[0], first[0] + 1, ... for length[0] numbers, then the same from first[1], and so on."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.repeat(first - ends + length, length) + np.arange(total))


def contains(ascending: Numbers | Codes, values: Numbers | Codes) -> Bools:
    """Whether each value is among ``ascending``. Same as: ``np.isin(values, ascending)``."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[at] == values)
