"""Relation -> SparseTensor: vocabularies in DuckDB, cells counted in memory or, if too many, in DuckDB.

Two ways lead to the cells. ``_count_in_memory`` packs the codes of a row into machine words and
sorts them: fast. ``_count_in_database`` lets DuckDB group and sort, spilling to disk: obviously
right, and for tables larger than memory. A test holds them against each other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringleader.errors import SettingsError
from ringleader.tables.check import Checked, CheckReport, all_numeric, binned, check, number_column, text_column
from ringleader.tables.columns import Column
from ringleader.tables.read import Relation, open_relation
from ringleader.tensor.sparse import SparseTensor, mapped
from ringleader.tensor.vocabulary import Kind, Vocabulary

BYTES_A_ROW = 64
"""What counting in memory needs for a row, at the most: packed codes, exact time, sorting."""

UNPACK_ROWS = 1 << 15
"""Cells whose codes are unpacked at a time."""

LARGEST_CALENDAR = 1 << 20
"""Time bins that are looked up in a table of the whole calendar; above that they are searched."""


class Cells(NamedTuple):
    """Distinct cells in the order of their codes, and how many rows were exact copies of others."""

    coordinates: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    duplicates: int


def read_reviews(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    modes: Sequence[str] | Mapping[str, str] | None = None,
    vocabularies: Sequence[Vocabulary] | None = None,
    strict: bool = False,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
) -> SparseTensor:
    """Reads a review table and encodes it as a sparse tensor.

    Parameters
    ----------
    source : path of a CSV, TSV, JSONL or Parquet file (also .gz, .zst), a folder or glob of them,
        or a pandas, polars or Arrow table.
    columns : names of columns that are not recognised, such as ``{"product": "target"}``.
    modes : the modes wanted. By default reviewer, product, seller, rating and week, as far as there
        are columns for them. Others are written ``"NAME=COLUMN[:id|:category|:rating|:time=1w]"``.
    vocabularies : of an earlier tensor; its codes are kept and new entities get new ones behind them.
    strict : refuse the table if any row cannot be used, instead of counting such rows.
    memory_limit : for reading, such as ``"1GB"``; half of the machine's memory by default.
    temp_directory : where to spill.
    threads : for reading; all by default.

    Returns
    -------
    SparseTensor; its ``report`` says what was read, guessed and refused.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024):
        raise SettingsError(f"threads is {threads!r}; choose a whole number from 1 to 1,024")
    with open_relation(
        source,
        columns=columns,
        modes=modes,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        threads=threads,
    ) as relation:
        return encode(relation, vocabularies=vocabularies, strict=strict)


def encode(
    relation: Relation, *, vocabularies: Sequence[Vocabulary] | None = None, strict: bool = False
) -> SparseTensor:
    """Checks an open relation and encodes what can be used of it."""
    checked = check(relation)
    old = _match(checked, vocabularies)
    book = _Vocabularies(checked, old)
    book.build()
    if checked.dirty:
        checked.refuse(strict=strict)
        book.build()
    elif relation.rejected:
        checked.refuse(strict=strict)
    fits = checked.rows * BYTES_A_ROW < relation.memory_limit
    cells = _count_in_memory(checked, book) if fits else _count_in_database(checked, book)
    final = book.vocabularies()
    report = CheckReport(
        source=relation.source,
        columns=relation.schema.columns,
        guessed=dict(relation.schema.guessed),
        dropped=relation.schema.dropped,
        rows=checked.total,
        used=int(cells.counts.sum()),
        cells=len(cells.coordinates),
        duplicates=cells.duplicates,
        rejected=dict(relation.rejected.most_common()),
        examples=tuple(relation.examples),
        modes={v.mode: len(v) for v in final},
        time=checked.time,
        warnings=tuple(dict.fromkeys(note for column in checked.columns for note in column.notes)),
    )
    return SparseTensor(cells.coordinates, cells.counts, final, report)


def _match(checked: Checked, vocabularies: Sequence[Vocabulary] | None) -> list[Vocabulary | None]:
    """The old vocabulary of each axis, with old bins taken over. The modes must be the same."""
    if vocabularies is None:
        return [None] * len(checked.columns)
    modes = [c.axis.mode for c in checked.columns]
    if [v.mode for v in vocabularies] != modes:
        raise SettingsError(
            f"the table gives the modes {', '.join(modes)}, but the vocabularies are of "
            f"{', '.join(v.mode for v in vocabularies)}; they must be the same, in the same order"
        )
    for k, vocabulary in enumerate(vocabularies):
        column = checked.columns[k]
        if vocabulary.kind != "time":
            column = checked.columns[k] = replace(column, notes=())  # how it is read was settled before
        if vocabulary.kind == "number" and column.kind == "category" and all_numeric(checked, k):
            column = number_column(checked, k, column.axis)  # numbers before, so numbers now
        if vocabulary.kind == "number" and column.kind == "number":
            exact = replace(column, values=column.exact, edges=None, notes=())  # old bins hold
            checked.columns[k] = binned(exact, vocabulary.edges) if vocabulary.edges else exact
        elif vocabulary.kind == "category" and column.kind == "number":
            checked.columns[k] = text_column(checked, k, column.axis)  # words before, so words now
        elif vocabulary.kind != column.kind:
            raise SettingsError(f"mode {column.axis.mode!r} was {vocabulary.kind}, and is {column.kind} now")
        if vocabulary.kind == "time" and vocabulary.bin_seconds != column.axis.bin_seconds:
            raise SettingsError(
                f"mode {column.axis.mode!r} had bins of {vocabulary.bin_seconds} s, "
                f"and has bins of {column.axis.bin_seconds} s now"
            )
    return list(vocabularies)


class _Vocabularies:
    """The vocabularies while they are made: DuckDB tables for text, sorted arrays for numbers and times."""

    def __init__(self, checked: Checked, old: list[Vocabulary | None]) -> None:
        self.checked = checked
        self.old = old
        self.numbers: dict[int, npt.NDArray[Any]] = {}
        self.join_on: dict[int, str] = {}
        self.sizes: list[int] = [0] * len(old)

    def build(self) -> None:
        for k, column in enumerate(self.checked.columns):
            if column.kind in ("id", "category"):
                self._build_text(k)
            else:
                self._build_numbers(k, column)

    def _build_text(self, k: int) -> None:
        """A table of ids whose row numbers are their codes: old ids first, new ones in order behind them."""
        relation = self.checked.relation
        relation.rows(f"DROP TABLE IF EXISTS voc_{k}")
        new = f"SELECT DISTINCT value_{k} AS id FROM ({self.checked.select([k])})"
        before = self.old[k]
        if before is None:
            relation.rows(f"CREATE TABLE voc_{k} AS SELECT id, hash(id) AS h FROM ({new}) ORDER BY id")
        else:
            relation.connection.register(f"old_{k}", pa.table({"id": before.values}))
            relation.rows(f"CREATE TABLE voc_{k} AS SELECT id, hash(id) AS h FROM old_{k}")
            fresh = f"SELECT d.id FROM ({new}) d ANTI JOIN old_{k} o ON d.id = o.id"
            relation.rows(f"INSERT INTO voc_{k} SELECT id, hash(id) AS h FROM ({fresh}) ORDER BY id")
        size, hashes, holes = relation.rows(
            f"SELECT count(*), count(DISTINCT h), count(*) FILTER (id IS NULL OR id = '') FROM voc_{k}"
        )[0]
        self.sizes[k] = size
        # Joining on the hash is twice as fast, and exact as long as no two ids share one.
        self.join_on[k] = "hash(value_{k}) = v{k}.h" if size == hashes else "value_{k} = v{k}.id"
        self.checked.dirty |= holes > 0

    def _build_numbers(self, k: int, column: Column) -> None:
        relation = self.checked.relation
        found = relation.rows(f"SELECT DISTINCT value_{k} AS x FROM ({self.checked.select([k])}) ORDER BY x")
        kind = np.int64 if column.kind == "time" else np.float64
        values = np.array([x for (x,) in found if x is not None], dtype=kind)
        before = self.old[k]
        if before is not None:
            known = np.asarray(before.values).astype(kind)
            values = np.concatenate([known, values[~np.isin(values, known)]])
        self.numbers[k] = values
        self.sizes[k] = len(values)

    def codes(self, k: int, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Codes of numbers or times, all of which are in the vocabulary."""
        known = self.numbers[k]
        width = self.checked.columns[k].axis.bin_seconds or 1
        first = known.min()
        if (known.max() - first) / width < LARGEST_CALENDAR and np.array_equal(known, np.floor(known)):
            # Bins (and most ratings) are evenly spaced, so a table of them all replaces the search.
            table = np.zeros(int(known.max() - first) // width + 1, np.int64)
            table[(known - first).astype(np.int64) // width] = np.arange(len(known))
            steps = (values - first).astype(np.int64, copy=False)
            found: npt.NDArray[np.int64] = table[steps // width if width > 1 else steps]
            return found
        order = np.argsort(known, kind="stable")
        codes: npt.NDArray[np.int64] = order[np.searchsorted(known[order], values)]
        return codes

    def joined(self, exact: list[int]) -> str:
        """SQL: the codes (or, for numbers and times, the values) of every row that can be used."""
        columns = self.checked.columns
        items, joins = [], []
        for k in range(len(columns)):
            if k in self.numbers:
                items.append(f"value_{k} AS c{k}")
            else:
                items.append(f"CAST(v{k}.rowid AS INTEGER) AS c{k}")
                joins.append(f"JOIN voc_{k} v{k} ON {self.join_on[k].format(k=k)}")
        items += [f"exact_{k}" for k in exact]
        rows = self.checked.select(list(range(len(columns))), exact)
        return f"SELECT {', '.join(items)} FROM ({rows}) r {' '.join(joins)}"

    def vocabularies(self) -> tuple[Vocabulary, ...]:
        made = []
        for k, column in enumerate(self.checked.columns):
            if k in self.numbers:
                values = pa.array(self.numbers[k])
            else:
                sql = f"SELECT id FROM voc_{k} ORDER BY rowid"
                chunks = [b.column(0).cast(pa.large_string()) for b in self.checked.relation.batches(sql)]
                values = pa.chunked_array(chunks, pa.large_string()).combine_chunks()
                values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            kind: Kind = column.kind  # type: ignore[assignment]
            made.append(Vocabulary(column.axis.mode, kind, values, column.axis.bin_seconds, column.edges))
        return tuple(made)


def _exact_columns(checked: Checked) -> list[int]:
    """Columns whose bins are coarser than their values: by them exact duplicates are told apart."""
    return [k for k, c in enumerate(checked.columns) if c.kind == "time" or c.edges]


def _count_in_memory(checked: Checked, book: _Vocabularies) -> Cells:
    exact = _exact_columns(checked)
    words = _pack_layout(book.sizes)
    keys = [np.zeros(checked.rows, np.uint64) for _ in words]
    extras: list[npt.NDArray[Any]] = [np.empty(checked.rows, _exact_type(checked.columns[k])) for k in exact]
    checked.relation.rows("SET preserve_insertion_order = false")
    filled = 0
    for batch in checked.relation.batches(book.joined(exact)):
        here = slice(filled, filled + len(batch))
        filled += len(batch)
        for target, modes in zip(keys, words, strict=True):
            key = target[here]
            for k in modes:
                raw = np.asarray(batch.column(k))
                key *= np.uint64(book.sizes[k])
                # Both unsigned: added to a signed number, 64 bits would go through floats and lose their ends.
                key += (book.codes(k, raw) if k in book.numbers else raw).astype(np.uint64)
        for j, beside in enumerate(extras):
            beside[here] = np.asarray(batch.column(len(book.sizes) + j))
    return _count([key[:filled] for key in keys], [beside[:filled] for beside in extras], words, book.sizes)


def _count(
    keys: list[npt.NDArray[np.uint64]], extras: list[npt.NDArray[Any]], words: list[list[int]], sizes: Sequence[int]
) -> Cells:
    """Distinct packed rows, unpacked, with their counts; and how many rows repeat another one exactly."""
    order = None if len(keys) == 1 else np.lexsort(tuple(reversed(keys)))
    ordered = [np.sort(keys[0])] if order is None else [key[order] for key in keys]
    starts = np.flatnonzero(_changes(ordered))
    counts = np.full(len(starts), len(ordered[0]), np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] -= starts[-1:]
    if not extras:
        duplicates = len(keys[0]) - len(starts)
    else:
        # Only cells seen more than once can hold exact copies.
        repeated = counts > 1
        if order is None:
            rows = np.flatnonzero(np.isin(keys[0], ordered[0][starts[repeated]]))
        else:
            rows = order[np.repeat(repeated, counts)]
        columns = [column[rows] for column in (*keys, *extras)]
        by = np.lexsort(tuple(columns))
        duplicates = int(len(rows) - np.count_nonzero(_changes([column[by] for column in columns])))
    keys.clear()
    extras.clear()
    coordinates = np.empty((len(starts), len(sizes)), np.int32)
    for first in range(0, len(starts), UNPACK_ROWS):  # a piece at a time stays in the cache
        here = slice(first, first + UNPACK_ROWS)
        for word, modes in zip(ordered, words, strict=True):
            left = word[starts[here]]
            for k in reversed(modes):
                rest = left // np.uint64(sizes[k])
                coordinates[here, k] = left - rest * np.uint64(sizes[k])
                left = rest
    return Cells(coordinates, counts, duplicates)


def _count_in_database(checked: Checked, book: _Vocabularies) -> Cells:
    """The same in SQL, spilling as needed; the cells end up in memory-mapped files."""
    relation = checked.relation
    exact = _exact_columns(checked)
    for k, values in book.numbers.items():
        codes = pa.array(np.arange(len(values), dtype=np.int32))
        relation.connection.register(f"num_{k}", pa.table({"x": pa.array(values), "code": codes}))
    items = ", ".join(f"n{k}.code AS c{k}" if k in book.numbers else f"c{k}" for k in range(len(checked.columns)))
    joins = " ".join(f"JOIN num_{k} n{k} ON c{k} = n{k}.x" for k in book.numbers)
    beside = "".join(f", exact_{k}" for k in exact)
    relation.rows(f"CREATE TABLE coded AS SELECT {items}{beside} FROM ({book.joined(exact)}) {joins}")
    names = ", ".join(f"c{k}" for k in range(len(checked.columns)))
    distinct, used = relation.rows(
        f"SELECT count(*), sum(n) FROM (SELECT {names}{beside}, count(*) AS n FROM coded GROUP BY ALL)"
    )[0]
    n_cells = relation.rows(f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM coded)")[0][0]
    coordinates, counts = mapped(n_cells, len(checked.columns), relation.folder.parent)
    at = 0
    for batch in relation.batches(f"SELECT {names}, count(*) AS n FROM coded GROUP BY {names} ORDER BY {names}"):
        for k in range(len(checked.columns)):
            coordinates[at : at + len(batch), k] = np.asarray(batch.column(k))
        counts[at : at + len(batch)] = np.asarray(batch.column(len(checked.columns)))
        at += len(batch)
    return Cells(coordinates, counts, int(used) - int(distinct))


def _pack_layout(sizes: Sequence[int]) -> list[list[int]]:
    """The modes of each 64-bit word, so that comparing words in order compares codes in order."""
    words: list[list[int]] = [[]]
    span = 1
    for k, size in enumerate(sizes):
        if words[-1] and span * size > 2**64:
            words.append([])
            span = 1
        words[-1].append(k)
        span *= size
    return words


def _exact_type(column: Column) -> Any:
    return np.int64 if column.kind == "time" else np.float64


def _changes(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Where a row of sorted columns differs from the one before it; true for the first."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
