"""Files -> parts of a relation: files that can be read in one go are one part, however many they are.

Text files are loaded once into DuckDB's own storage, which spills; Parquet is scanned where it is. A text file
that DuckDB finds anything out of order in is read by ``row_reader``, which writes it as Parquet.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ringleader.errors import SchemaError, StorageError
from ringleader.tables import row_reader
from ringleader.tables.formats import ROW_NUMBER, ParquetLoader, TextLoader, ends_in_time, parquet
from ringleader.tables.relation import UNPARSED_EXAMPLES, Example, Relation, SourceFile, TablePart, quoted
from ringleader.tables.schema import Schema

Value = str | None
"""What the name of a folder gives."""


class Member(NamedTuple):
    """A file of a group."""

    key: int | str  # what stands for it in the rows: its number, or its path where Parquet is scanned
    source: SourceFile
    values: tuple[Value, ...]  # those of ``Group.from_folders``
    loader: ParquetLoader | None = None


@dataclass
class Group:
    """Files that are read in one go.

    columns : SQL of the columns that are in the files, and their types
    from_folders   : the places, among all columns that are read, of those that the folders of the files give
    row     : SQL of the number of a row in its file, empty where it has none
    """

    columns: Sequence[tuple[str, str]]
    from_folders: tuple[int, ...]
    row: str
    members: list[Member] = field(default_factory=list)


class Parts:
    """The parts of a relation, as its files come.

    many : whether there are several text files
    """

    def __init__(self, relation: Relation, *, many: bool) -> None:
        self.relation = relation
        self._many = many
        self._scanned: dict[Hashable, Group] = {}  # Parquet
        self._loaded: dict[Hashable, Group] = {}  # text in good order, each group in a table
        self._by_row: dict[Hashable, Group] = {}  # text that the row reader has written as Parquet

    def add(self, loader: ParquetLoader | TextLoader, number: int, schema: Schema, fixed: Mapping[str, Value]) -> None:
        """One more file. schema : which columns play which roles in it; fixed : those that its folders give"""
        own = tuple(axis for axis in schema.read if axis.column not in fixed)
        if not own:
            raise SchemaError(f"{loader.file.name!r} has no column of its own for any mode; all are names of folders")
        from_folders = tuple(k for k, axis in enumerate(schema.read) if axis.column in fixed)
        values = tuple(fixed[schema.read[k].column] for k in from_folders)
        if isinstance(loader, ParquetLoader):
            self._add_parquet(loader, number, replace(schema, axes=own), from_folders, values)
        else:
            self._add_text(loader, number, replace(schema, axes=own), from_folders, values)

    def all(self) -> list[TablePart]:
        """The parts, in the order of their first files."""
        parts = []
        for n, group in enumerate(self._loaded.values()):
            if group.members:
                parts.append(self._part(group, f"text_{n}", "file" if self._many else ""))
        for group in (*self._by_row.values(), *self._scanned.values()):
            parts += self._scans(group)
        return sorted(parts, key=lambda part: min(file.number for file in part.files.values()))

    def _add_parquet(
        self,
        loader: ParquetLoader,
        number: int,
        schema: Schema,
        from_folders: tuple[int, ...],
        values: tuple[Value, ...],
    ) -> None:
        like = number if loader.layout is None else loader.layout
        key = (like, tuple(axis.column for axis in schema.axes), from_folders)
        if key not in self._scanned:
            row = ROW_NUMBER if loader.numbered else ""
            self._scanned[key] = Group(loader.columns(self.relation, schema), from_folders, row)
        group = self._scanned[key]
        names = ", ".join(sql for sql, _ in group.columns)
        alone = f"SELECT bit_xor(hash({names})) FROM {parquet([loader.path])}"
        source = SourceFile(loader.file.name, number, loader.places, alone)
        group.members.append(Member(str(loader.path), source, values, loader))

    def _add_text(
        self, loader: TextLoader, number: int, schema: Schema, from_folders: tuple[int, ...], values: tuple[Value, ...]
    ) -> None:
        columns = [(f"f{k}", "VARCHAR") for k in range(len(schema.axes))]
        query = loader.query(schema)
        if from_folders not in self._loaded:
            table = f"text_{len(self._loaded)}"
            self._loaded[from_folders] = Group(columns, from_folders, "rowid")
            fields = [f"{name} {kind}" for name, kind in columns] + (["file INTEGER"] if self._many else [])
            self.relation.rows(f"CREATE TABLE {table} ({', '.join(fields)})")
        table = f"text_{list(self._loaded).index(from_folders)}"
        if self._many:
            query = f"SELECT *, {number} FROM ({query})"
        if ends_in_time(loader.path) and self._loads(f"INSERT INTO {table} {query}"):
            source = SourceFile(
                loader.file.name, number, lambda rows: loader.places(self._records(table, number, rows))
            )
            self._loaded[from_folders].members.append(Member(number, source, values))
            return
        path = self._write_by_row(loader, number, schema)
        source = SourceFile(loader.file.name, number, lambda rows: [f"{loader.file.name} line {n}" for n in rows])
        self._by_row.setdefault(from_folders, Group(columns, from_folders, "line")).members.append(
            Member(str(path), source, values)
        )

    def _records(self, table: str, number: int, rows: list[int]) -> list[int]:
        """Which records of a file some rows of a table are, from 0: the rows of a file follow each other in it."""
        where = f" WHERE file = {number}" if self._many else ""
        first = int(self.relation.rows(f"SELECT min(rowid) FROM {table}{where}")[0][0])
        return [row - first for row in rows]

    def _loads(self, statement: str) -> bool:
        """Whether DuckDB's reader takes a file without any disorder."""
        import duckdb

        try:
            self.relation.rows(statement)
        except (duckdb.InvalidInputException, duckdb.ConversionException):
            return False
        return True

    def _write_by_row(self, loader: TextLoader, number: int, schema: Schema) -> Path:
        """Reads a text file row by row into Parquet, and counts the rows that cannot be parsed."""
        relation = self.relation
        target = relation.folder / f"rows-{number}.parquet"
        try:
            bad = row_reader.to_parquet(loader.records(schema), loader.positions(schema), target)
        except OSError as error:
            raise StorageError(
                f"cannot write temporary files to {relation.folder.parent}: {error.strerror or error}; "
                "free some space or choose another folder with --temp-directory"
            ) from error
        relation.rejected.update(bad.counts)
        for row in bad.examples[: max(0, UNPARSED_EXAMPLES - len(relation.examples))]:
            relation.examples.append(Example(f"{loader.file.name} line {row.line}", row.reason, row.text))
        return target

    def _scans(self, group: Group) -> list[TablePart]:
        """A group of Parquet files as one part, or as one for each file where DuckDB cannot scan them in one go."""
        if len(group.members) > 1 and self._opens(group):
            return [self._part(group, _scan(group, ", filename = true"), "filename")]
        return [self._part(one, _scan(one), "") for one in (replace(group, members=[m]) for m in group.members)]

    def _opens(self, group: Group) -> bool:
        """Whether DuckDB opens all files of a group in one go; an error names one that it does not open at all."""
        import duckdb

        try:
            names = self.relation.rows(f"SELECT filename FROM {_scan(group, ', filename = true')} GROUP BY filename")
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            for member in group.members:
                if member.loader is not None:
                    member.loader.describe(self.relation)
            return False
        return {name for (name,) in names} <= {member.key for member in group.members}

    def _part(self, group: Group, table: str, file: str) -> TablePart:
        """A group as a part. file : SQL of what stands for the file of a row; empty where there is only one"""
        first = group.members[0]
        file = file or (quoted(first.key) if isinstance(first.key, str) else str(first.key))
        files = {member.key: member.source for member in group.members}
        from_folders = {k: _constant(value) for k, value in zip(group.from_folders, first.values, strict=True)}
        row, columns = group.row, list(group.columns)
        if any(member.values != first.values for member in group.members):
            table, columns, from_folders = self._with_values(group, table, file)
            file, row = "file", "row" if row else ""
        own = iter(columns)
        both = [from_folders[k] if k in from_folders else next(own) for k in range(len(columns) + len(from_folders))]
        return TablePart(table, tuple(s for s, _ in both), tuple(kind for _, kind in both), row, files, file)

    def _with_values(
        self, group: Group, table: str, file: str
    ) -> tuple[str, list[tuple[str, str]], dict[int, tuple[str, str]]]:
        """Rows beside what the folders of their files give: the table, its own columns, those of the folders."""
        name = f"values_{min(member.source.number for member in group.members)}"
        values = {
            f"g{k}": pa.array([m.values[n] for m in group.members], pa.string())
            for n, k in enumerate(group.from_folders)
        }
        self.relation.connection.register("values", pa.table({"file": [m.key for m in group.members], **values}))
        self.relation.rows(f"CREATE TABLE {name} AS SELECT * FROM values")
        self.relation.connection.unregister("values")
        own = [f"{sql} AS c{n}" for n, (sql, _) in enumerate(group.columns)]
        own += [f"{file} AS file"] + ([f"{group.row} AS row"] if group.row else [])
        joined = f"(SELECT * FROM (SELECT {', '.join(own)} FROM {table}) JOIN {name} USING (file))"
        columns = [(f"c{n}", kind) for n, (_, kind) in enumerate(group.columns)]
        return joined, columns, {k: (f"g{k}", "VARCHAR") for k in group.from_folders}


def _scan(group: Group, options: str = "") -> str:
    if group.row == ROW_NUMBER:
        options += f", {ROW_NUMBER} = true"
    return parquet([str(member.key) for member in group.members], options)


def _constant(value: Value) -> tuple[str, str]:
    """SQL of a value that is the same in all rows, and its type."""
    return "CAST(NULL AS VARCHAR)" if value is None else f"CAST({quoted(value)} AS VARCHAR)", "VARCHAR"
