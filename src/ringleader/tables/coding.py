"""The rows of a checked relation as codes: a vocabulary for each axis, and the rows, or their cells, in batches.

Text is coded by joining it with tables of ids inside DuckDB, numbers and times by arrays in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringleader.arrays import Numbers
from ringleader.tables.check import Checked
from ringleader.tables.distinct import number_ids

LARGEST_CALENDAR = 1 << 20
"""Time bins that are looked up in a table of the whole calendar; above that they are searched."""

BY_HASH, BY_TEXT = "hash(value_{k}) = v{k}.h", "value_{k} = v{k}.id"
"""How values of axis k are joined with their ids. By hash is twice as fast, and exact if no two ids share one."""


class CodedRows(NamedTuple):
    """Some rows of the table: their codes, and values before binning."""

    codes: list[npt.NDArray[Any]]  # of each axis (n,), integers
    exact: list[npt.NDArray[Any]]  # of each of ``Coding.binned_axes`` (n,)
    weights: Numbers | None  # how often each counts (n,); None where each counts once

    def __len__(self) -> int:
        return len(self.codes[0])


class DistinctRows(NamedTuple):
    """Some distinct rows in the order of their codes and of their values before binning, and how many are alike."""

    codes: list[npt.NDArray[Any]]  # of each axis (n,), integers
    exact: list[npt.NDArray[Any]]  # of each of ``Coding.binned_axes`` (n,)
    counts: Numbers  # (n,)


class GroupedRows(NamedTuple):
    """All rows grouped and sorted inside DuckDB."""

    n_cells: int
    n_rows: int  # as often as they count
    duplicates: int  # rows that are exact copies of others
    batches: Iterator[DistinctRows]


class Coding:
    """The codes of every axis of a checked relation.

    known : of each axis the values that have codes already, in their order; None where there are none. New values
        get the codes behind them, in ascending order.
    sizes : of each axis, how many values have a code.
    """

    def __init__(self, checked: Checked, known: Sequence[pa.Array | None]) -> None:
        self.checked = checked
        self.known = known
        self.sizes: list[int] = [0] * len(known)
        self._numbers: dict[int, npt.NDArray[Any]] = {}
        self._join_on: dict[int, str] = {}
        self._ranges: dict[int, pa.Array] = {}
        self._build()

    @property
    def binned_axes(self) -> list[int]:
        """Axes whose bins are coarser than their values: the values themselves tell copies from other rows."""
        return [k for k, column in enumerate(self.checked.columns) if column.kind == "time" or column.edges]

    @property
    def weighted(self) -> bool:
        """Whether a column says how often each row counts."""
        return self.checked.count is not None

    def used(self) -> int:
        """How many rows of this process can be used."""
        return int(self.checked.relation.rows(f"SELECT count(*) FROM ({self.checked.select([], [])})")[0][0])

    def total(self) -> int:
        """How often the rows of this process that can be used count together."""
        query = f"SELECT coalesce(sum(weight), 0) FROM ({self.checked.select([], [])})"
        return int(self.checked.relation.rows(query)[0][0])

    @property
    def exact_types(self) -> list[npt.DTypeLike]:
        """Types of the values of ``binned_axes``."""
        return [_number_type(self.checked.columns[k].kind) for k in self.binned_axes]

    def leave_out_bad_rows(self, *, strict: bool) -> None:
        """Counts the rows that cannot be used and codes the others; with ``strict``, refuses the table."""
        if self.checked.dirty:
            self.checked.refuse(strict=strict)
            self._build()
        elif any(self.checked.relation.everyone(bool(self.checked.relation.rejected))):
            self.checked.refuse(strict=strict)

    def values(self, k: int) -> pa.Array:
        """The values of an axis in the order of their codes: large_string, float64 or int64 (times).

        Where several processes read, each has a range of the text, in the order of their numbers.
        """
        if k in self._numbers:
            return pa.array(self._numbers[k])
        if k in self._ranges:
            return self._ranges[k]
        batches = self.checked.relation.batches(f"SELECT id FROM voc_{k} ORDER BY rowid")
        chunks = [batch.column(0).cast(pa.large_string()) for batch in batches]
        return pa.chunked_array(chunks, pa.large_string()).combine_chunks()

    def rows(self) -> Iterator[CodedRows]:
        """All rows that can be used, in any order."""
        relation, n_axes = self.checked.relation, len(self.sizes)
        relation.rows("SET preserve_insertion_order = false")
        for batch in relation.batches(self._joined()):
            columns = [np.asarray(column) for column in batch.columns]
            codes = [self._codes(k, columns[k]) if k in self._numbers else columns[k] for k in range(n_axes)]
            exact = n_axes + len(self.binned_axes)
            yield CodedRows(codes, columns[n_axes:exact], columns[exact] if self.weighted else None)

    def grouped(self) -> GroupedRows:
        """All rows grouped and sorted by DuckDB, which spills to disk as needed."""
        relation, axes = self.checked.relation, range(len(self.sizes))
        relation.rows(
            "SET preserve_insertion_order = false"
        )  # it would hold rows in memory until those before are there
        for k, values in self._numbers.items():
            codes = pa.array(np.arange(len(values), dtype=np.int32))
            relation.connection.register(f"num_{k}", pa.table({"x": pa.array(values), "code": codes}))
        items = ", ".join(f"n{k}.code AS c{k}" if k in self._numbers else f"c{k}" for k in axes)
        joins = " ".join(f"JOIN num_{k} n{k} ON c{k} = n{k}.x" for k in self._numbers)
        exact = "".join(f", exact_{k}" for k in self.binned_axes)
        weight = ", weight" if self.weighted else ""
        relation.rows(f"CREATE TABLE coded AS SELECT {items}{exact}{weight} FROM ({self._joined()}) {joins}")
        names = ", ".join(f"c{k}" for k in axes)
        distinct, used, counted = relation.rows(
            f"SELECT count(*), sum(n), sum(w) FROM "
            f"(SELECT {names}{exact}, count(*) AS n, {self._counted} AS w FROM coded GROUP BY ALL)"
        )[0]
        n_cells = relation.rows(f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM coded)")[0][0]
        return GroupedRows(int(n_cells), int(counted), int(used) - int(distinct), self._distinct(names + exact))

    @property
    def _counted(self) -> str:
        """SQL: how often the rows of a group count."""
        return "CAST(sum(weight) AS BIGINT)" if self.weighted else "count(*)"

    def _distinct(self, names: str) -> Iterator[DistinctRows]:
        query = f"SELECT {names}, {self._counted} AS n FROM coded GROUP BY {names} ORDER BY {names}"
        axes = len(self.sizes)
        for batch in self.checked.relation.batches(query):
            *columns, counts = (np.asarray(column) for column in batch.columns)
            yield DistinctRows(columns[:axes], columns[axes:], counts)

    def _build(self) -> None:
        for k, column in enumerate(self.checked.columns):
            if column.kind in ("id", "category"):
                self._build_text(k)
            else:
                self._build_numbers(k, _number_type(column.kind))

    def _build_text(self, k: int) -> None:
        """A table of ids whose row numbers are their codes: known ids first, new ones in order behind them."""
        relation, known = self.checked.relation, self.known[k]
        relation.rows(f"DROP TABLE IF EXISTS voc_{k}")
        distinct = f"SELECT DISTINCT value_{k} AS id FROM ({self.checked.select([k])})"
        if relation.peers.count > 1:
            self._build_together(k, distinct)
            return
        if known is None:
            relation.rows(f"CREATE TABLE voc_{k} AS SELECT id, hash(id) AS h FROM ({distinct}) ORDER BY id")
        else:
            relation.connection.register(f"old_{k}", pa.table({"id": known}))
            relation.rows(f"CREATE TABLE voc_{k} AS SELECT id, hash(id) AS h FROM old_{k}")
            new = f"SELECT d.id FROM ({distinct}) d ANTI JOIN old_{k} o ON d.id = o.id"
            relation.rows(f"INSERT INTO voc_{k} SELECT id, hash(id) AS h FROM ({new}) ORDER BY id")
        size, hashes, holes = relation.rows(
            f"SELECT count(*), count(DISTINCT h), count(*) FILTER (id IS NULL OR id = '') FROM voc_{k}"
        )[0]
        self.sizes[k] = size
        self._join_on[k] = BY_HASH if size == hashes else BY_TEXT
        self.checked.dirty |= holes > 0

    def _build_together(self, k: int, distinct: str) -> None:
        """The same where other processes read other files: the codes of this process's ids come from all of them."""
        relation = self.checked.relation
        query = f"SELECT id FROM ({distinct}) WHERE id IS NOT NULL ORDER BY id"
        chunks = [batch.column(0).cast(pa.large_string()) for batch in relation.batches(query)]
        ids = pa.concat_arrays([pa.array([], pa.large_string()), *chunks])
        codes, self._ranges[k], self.sizes[k] = number_ids(relation.peers, ids)
        relation.connection.register(f"own_{k}", pa.table({"id": ids, "code": codes}))
        relation.rows(f"CREATE TABLE voc_{k} AS SELECT id, hash(id) AS h, code FROM own_{k}")
        relation.connection.unregister(f"own_{k}")
        holes = relation.rows(f"SELECT count(*) FROM ({distinct}) WHERE id IS NULL OR id = ''")[0][0]
        same = relation.rows(f"SELECT count(*) = count(DISTINCT h) FROM voc_{k}")[0][0]
        self._join_on[k] = BY_HASH if same else BY_TEXT
        self.checked.dirty |= any(relation.everyone(holes > 0))

    def _build_numbers(self, k: int, kind: npt.DTypeLike) -> None:
        """A sorted array of numbers or times: known ones first, new ones in order behind them."""
        query = f"SELECT DISTINCT value_{k} AS x FROM ({self.checked.select([k])}) ORDER BY x"
        values = np.array([x for (x,) in self.checked.relation.rows(query) if x is not None], dtype=kind)
        values = np.unique(np.concatenate(self.checked.relation.everyone(values)))
        known = self.known[k]
        if known is not None:
            before = np.asarray(known).astype(kind)
            values = np.concatenate([before, values[~np.isin(values, before)]])
        self._numbers[k] = values
        self.sizes[k] = len(values)

    def _codes(self, k: int, values: npt.NDArray[Any]) -> Numbers:
        """Codes of numbers or times, all of which are in the vocabulary."""
        known = self._numbers[k]
        width = self.checked.columns[k].axis.bin_seconds or 1
        first = known.min()
        if (known.max() - first) / width < LARGEST_CALENDAR and np.array_equal(known, np.floor(known)):
            # Bins (and most ratings) are evenly spaced, so a table of them all replaces the search.
            table = np.zeros(int(known.max() - first) // width + 1, np.int64)
            table[(known - first).astype(np.int64) // width] = np.arange(len(known))
            steps = (values - first).astype(np.int64, copy=False)
            return np.asarray(table[steps // width if width > 1 else steps])
        order = np.argsort(known, kind="stable")
        return np.asarray(order[np.searchsorted(known[order], values)])

    def _code(self, k: int) -> str:
        """SQL: the code of an id that was joined."""
        return f"v{k}.code" if k in self._ranges else f"v{k}.rowid"

    def _joined(self) -> str:
        """SQL: the codes (or, for numbers and times, the values) of every row that can be used."""
        axes = list(range(len(self.sizes)))
        text = [k for k in axes if k not in self._numbers]
        codes = {k: f"CAST({self._code(k)} AS INTEGER)" for k in text}
        items = [f"{codes.get(k, f'value_{k}')} AS c{k}" for k in axes]
        items += [f"exact_{k}" for k in self.binned_axes] + (["weight"] if self.weighted else [])
        joins = " ".join(f"JOIN voc_{k} v{k} ON {self._join_on[k].format(k=k)}" for k in text)
        return f"SELECT {', '.join(items)} FROM ({self.checked.select(axes, self.binned_axes)}) r {joins}"


def _number_type(kind: str) -> npt.DTypeLike:
    return np.int64 if kind == "time" else np.float64
