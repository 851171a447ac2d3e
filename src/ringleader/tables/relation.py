"""An open review table: its parts inside DuckDB, and the rows that could not be parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.tables.schema import Schema

T = TypeVar("T")

UNPARSED_EXAMPLES = 100
"""Rows that could not be parsed and are remembered; all are counted."""


@dataclass(frozen=True)
class Example:
    """One row that could not be used."""

    where: str
    reason: str
    text: str


@dataclass(frozen=True)
class SourceFile:
    """A file (or frame) of a part.

    number : its place among the files of the table, from 0
    places : turns numbers of rows, in ascending order, into words: ``line N`` of a text file counts its lines from 1,
        the header among them, ``row N`` data rows from 1
    alone  : SQL that reads what is used of the file, where every query reads it anew
    """

    name: str
    number: int
    places: Callable[[list[int]], list[str]]
    alone: str = ""


@dataclass(frozen=True)
class TablePart:
    """A frame, or files that are read in one go, inside DuckDB.

    ``columns[k]`` is the SQL expression of axis k, ``types[k]`` its DuckDB type, ``row`` the expression of a number
    by which rows of a file are found again, empty where there is none. ``file`` is the expression of the key in
    ``files`` of the file of a row.
    """

    relation: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    row: str
    files: Mapping[int | str, SourceFile]
    file: str = "0"

    @property
    def numbered(self) -> str:
        """SQL: the columns ``file`` and ``row`` of the rows."""
        return f"{self.file} AS file, {self.row or 'row_number() OVER () - 1'} AS row"


@dataclass
class Relation:
    """An open review table: a DuckDB connection, its parts, and what parsing refused.

    Several processes may each have opened some of its files; whatever must be decided on all of it is asked of
    ``everyone``, in the order of the files.
    """

    connection: Any
    schema: Schema
    parts: list[TablePart]
    memory_limit: int
    folder: Path
    source: str
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)
    peers: Peers = field(default_factory=Alone)

    def everyone(self, value: T) -> list[T]:
        """What every process that reads the table found in its files."""
        return gather(self.peers, value)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs a statement to its end."""
        result: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return result

    def batches(self, sql: str, size: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """Streams the result of a query."""
        relation = self.connection.sql(sql)
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        yield from reader(size)


def column_types(relation: Relation, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The DuckDB types of some columns of a table or scan."""
    described = relation.rows(f"DESCRIBE SELECT {', '.join(columns)} FROM {table}")
    return tuple(str(row[1]).upper() for row in described)


def quoted(text: str | Path) -> str:
    """Text as a literal of SQL."""
    return "'" + str(text).replace("'", "''") + "'"
