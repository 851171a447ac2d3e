"""Files and frames -> a DuckDB relation of text, numbers and times, larger than memory if need be.

Text files are loaded once into DuckDB's own storage, which spills; Parquet and Arrow are scanned
where they are. What cannot be parsed is counted here, what makes no sense in ``check.py``.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ringleader.errors import InputError, SchemaError, SettingsError, StorageError
from ringleader.tables import row_reader as careful
from ringleader.tables.files import ReviewFile, locate, plain
from ringleader.tables.schema import Schema, knows_every_role, resolve
from ringleader.tables.text import delimiter_of, json_object, json_text, text_head

LONGEST_LINE = 1 << 25
JSON_SAMPLE, JSON_LONG_SAMPLE = 200, 50_000
DATABASE_SHARE = 0.7


@dataclass(frozen=True)
class Example:
    """One row that could not be used."""

    where: str
    reason: str
    text: str


@dataclass(frozen=True)
class Part:
    """One file (or frame) inside DuckDB.

    ``columns[k]`` is the SQL expression of axis k, ``types[k]`` its DuckDB type, ``row`` the
    expression of a row number; ``where`` turns such numbers, in ascending order, into words.
    """

    relation: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    row: str
    where: Callable[[list[int]], list[str]]


@dataclass
class Relation:
    """An open review table: a DuckDB connection, its parts, and what parsing refused."""

    connection: Any
    schema: Schema
    parts: list[Part]
    memory_limit: int
    folder: Path
    source: str
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs a statement to its end."""
        result: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return result

    def batches(self, sql: str, size: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """Streams the result of a query."""
        relation = self.connection.sql(sql)
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        yield from reader(size)


@contextmanager
def open_relation(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    modes: Sequence[str] | Mapping[str, str] | None = None,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
) -> Iterator[Relation]:
    """Opens files, a folder, a glob, or a pandas, polars or Arrow table for reading."""
    import duckdb

    limit = parse_memory(memory_limit)
    try:
        folder = Path(tempfile.mkdtemp(prefix="ringleader-", dir=temp_directory))
    except OSError as error:
        raise StorageError(f"cannot write into {temp_directory or tempfile.gettempdir()}: {error.strerror}") from error
    connection = None
    try:
        with _plain_words(folder):
            connection = duckdb.connect()
            for setting in (
                # The rest is for the arrays that leave DuckDB while it still holds its own.
                f"SET memory_limit = '{int(limit * DATABASE_SHARE) // 1_000_000}MB'",
                f"SET temp_directory = '{_quote(folder / 'spill')}'",
                "SET TimeZone = 'UTC'",
                "SET enable_progress_bar = false",
                *([f"SET threads = {int(threads)}"] if threads else []),
            ):
                connection.execute(setting).fetchall()
            yield _open(connection, source, columns, modes, limit, folder)
    finally:
        if connection is not None:
            connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def parse_memory(limit: str | int | None) -> int:
    """A memory limit in bytes; by default half of the machine's memory."""
    if limit is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if isinstance(limit, (int, float)):
        size = int(min(max(limit, 0), 2**62)) if limit == limit else 0
    else:
        units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "B": 1}
        text = limit.strip().upper()
        unit = next((u for u in sorted(units, key=len, reverse=True) if text.endswith(u)), None)
        try:
            size = int(min(float(text[: -len(unit)] if unit else text) * units[unit or "B"], 2**62))
        except (ValueError, OverflowError, AttributeError):
            raise SettingsError(f"memory limit {limit!r} makes no sense; write for example 1GB or 500MB") from None
    if size < 64_000_000:
        raise SettingsError(f"a memory limit of {size:,} bytes is too small; give at least 64MB")
    return size


def _open(
    connection: Any,
    source: Any,
    columns: Mapping[str, str] | None,
    modes: Sequence[str] | Mapping[str, str] | None,
    limit: int,
    folder: Path,
) -> Relation:
    if isinstance(source, (str, os.PathLike)):
        return _open_files(connection, locate(source), os.fspath(source), columns, modes, limit, folder)
    schema = resolve(column_names(source), columns=columns, modes=modes)
    # Plain names inside DuckDB, so that no column's name can be taken for another's.
    arrays = [_for_duckdb(array) for array in to_arrow(source, list(schema.columns.values())).columns]
    names = tuple(f"f{k}" for k in range(len(arrays)))
    connection.register("frame", pa.table(arrays, names=list(names)))
    # A frame has no stored row number: it is counted where it is asked for.
    part = Part("frame", names, _types(connection, "frame", names), "", lambda rows: [f"row {n}" for n in rows])
    return Relation(connection, schema, [part], limit, folder, "the table")


def column_names(source: Any) -> list[str]:
    """The column names of a pandas, polars or Arrow table."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        names = list(source.schema.names)
    elif hasattr(source, "collect_schema"):
        names = list(source.collect_schema().names())
    elif hasattr(source, "columns") and not isinstance(source, type):
        names = [str(name) for name in source.columns]
    elif hasattr(source, "schema") and hasattr(source.schema, "names"):
        names = list(source.schema.names)
    else:
        raise InputError(
            f"cannot read a table from a {type(source).__name__}; give a path, or a pandas, polars or Arrow table"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(f"column {twice!r} is there twice; rename one of them")
    return names


def to_arrow(source: Any, wanted: Sequence[str]) -> pa.Table:
    """Some columns of a pandas, polars or Arrow table as an Arrow table. The source is not changed."""
    if type(source).__module__.startswith("pandas"):
        names = column_names(source)
        columns = [_from_pandas(source.iloc[:, names.index(name)], name) for name in wanted]
        return pa.Table.from_arrays(columns, names=[str(k) for k in range(len(wanted))])
    try:
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if hasattr(source, "collect_schema"):
            source = source.lazy().select(list(dict.fromkeys(wanted))).collect().to_arrow()
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise InputError(f"the table cannot be read: {_first_line(error)}") from error
    return pa.Table.from_arrays([table.column(name) for name in wanted], names=[str(k) for k in range(len(wanted))])


def _from_pandas(column: Any, name: str) -> pa.Array:
    """A pandas column; periods, and objects that Arrow has no type for, as their text."""
    import pandas as pd

    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.astype(str)
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        missing = [bool(pd.api.types.is_scalar(v) and pd.isna(v)) for v in column]
        texts = [None if gone else str(v) for gone, v in zip(missing, column, strict=True)]
    for number, text in enumerate(texts):
        if text is not None and not careful.is_utf8(text):
            raise InputError(f"row {number} of column {name!r} holds text that is not valid Unicode; mend or drop it")
    return pa.array(texts, pa.large_string())


def _for_duckdb(array: Any) -> Any:
    """Types that DuckDB has no equal of, as ones that hold the same values."""
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    if pa.types.is_decimal256(array.type):
        return array.cast(pa.string())
    return array


def _open_files(
    connection: Any,
    files: list[ReviewFile],
    source: str,
    columns: Mapping[str, str] | None,
    modes: Sequence[str] | Mapping[str, str] | None,
    limit: int,
    folder: Path,
) -> Relation:
    relation: Relation | None = None
    for number, file in enumerate(files):
        path = plain(file, folder, number)
        opened = _LOADERS[file.format](file, path, number)
        schema = resolve(opened.names, columns=columns, modes=modes, where=repr(file.name))
        if relation is None:
            relation = Relation(connection, schema, [], limit, folder, source)
        elif [a.mode for a in schema.axes] != [a.mode for a in relation.schema.axes]:
            raise SchemaError(
                f"{file.name!r} gives the modes {', '.join(schema.columns)}, but {files[0].name!r} gives "
                f"{', '.join(relation.schema.columns)}; read them apart, or name the modes"
            )
        relation.parts.append(opened.load(relation, schema))
    assert relation is not None  # locate never returns an empty list
    return relation


class _Parquet:
    """Scanned in place."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        import pyarrow.parquet as pq

        self.file, self.path = file, path
        try:
            self.names = pq.read_schema(path).names
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{file.name!r} is no Parquet file, or is cut short: {_first_line(error)}") from error

    def load(self, relation: Relation, schema: Schema) -> Part:
        plain = f"'{_quote(self.path)}', binary_as_string = true, hive_partitioning = false"
        # DuckDB takes names that differ by case for the same and renames them: so by position.
        described = relation.rows(f"DESCRIBE SELECT * FROM read_parquet({plain})")
        columns = []
        for axis in schema.axes:
            if self.names.count(axis.column) > 1:
                raise SchemaError(f"{self.file.name!r} has two columns {axis.column!r}; rename one of them")
            columns.append(_identifier(str(described[self.names.index(axis.column)][0])))
        numbered = "file_row_number" not in [name.lower() for name in self.names]
        scan = f"read_parquet({plain}{', file_row_number = true' if numbered else ''})"
        types = _types(relation.connection, scan, columns)
        row = "file_row_number" if numbered else ""
        return Part(scan, tuple(columns), types, row, lambda rows: [f"{self.file.name} row {n + 1}" for n in rows])


class _Delimited:
    """CSV and TSV: DuckDB reads what is in order; at the first disorder the careful reader takes over."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path, self.number = file, path, number
        head = text_head(file, path)
        self.delimiter = "\t" if file.format == "tsv" else delimiter_of(head)
        self.header = next(csv.reader(head.splitlines(keepends=True), delimiter=self.delimiter))
        self.names = self.header

    def load(self, relation: Relation, schema: Schema) -> Part:
        positions = []
        for axis in schema.axes:
            if self.header.count(axis.column) > 1:
                raise SchemaError(f"{self.file.name!r} has two columns {axis.column!r}; rename one of them")
            positions.append(self.header.index(axis.column))
        wanted = sorted(set(positions))
        columns = tuple(f"f{p}" for p in positions)
        types = ("VARCHAR",) * len(columns)
        table = f"text_{self.number}"
        fields = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(self.header)))
        scan = (
            f"read_csv('{_quote(self.path)}', auto_detect = false, header = true, delim = '{self.delimiter}', "
            f"quote = '\"', escape = '\"', max_line_size = {LONGEST_LINE}, columns = {{{fields}}})"
        )
        if _loads(relation, f"CREATE TABLE {table} AS SELECT {', '.join(f'f{p}' for p in wanted)} FROM {scan}"):
            return Part(table, columns, types, "rowid", self._lines)
        rows = careful.csv_rows(self.path, self.delimiter, len(self.header))
        return _careful_part(relation, self.file, self.number, rows, wanted, columns)

    def _lines(self, records: list[int]) -> list[str]:
        """The physical lines of records: quoted fields may hold newlines, so they must be counted."""
        return _count_lines(careful.csv_rows(self.path, self.delimiter, len(self.header)), records, self.file.name)


class _JsonLines:
    """One object a line: read as text, taken apart by DuckDB."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path, self.number = file, path, number
        keys: dict[str, None] = {}
        for count, row in enumerate(careful.text_lines(path)):
            # Roles that the first objects lack may come later, so look further for them.
            if count >= (JSON_SAMPLE if knows_every_role(keys) else JSON_LONG_SAMPLE):
                break
            parsed = json_object(row.fields[0]) if isinstance(row, careful.Record) else None
            keys.update(dict.fromkeys(parsed or ()))
        if not keys:
            raise InputError(f"{file.name!r} holds no JSON object a line; write one object on each line")
        self.names = list(keys)

    def load(self, relation: Relation, schema: Schema) -> Part:
        # A raw control character never stands in valid JSON, so this delimiter never splits a line.
        scan = (
            f"read_csv('{_quote(self.path)}', auto_detect = false, header = false, delim = '\x01', quote = '', "
            f"escape = '', max_line_size = {LONGEST_LINE}, columns = {{'line': 'VARCHAR'}})"
        )
        fields = tuple(f"f{k}" for k in range(len(schema.axes)))
        taken = ", ".join(
            f"json_extract_string(line, '{_pointer(axis.column)}') AS f{k}" for k, axis in enumerate(schema.axes)
        )
        # What only some readers of JSON take, such as a comma before a bracket, is left to the careful one.
        strict = "json_type(line) = 'OBJECT' AND NOT regexp_matches(line, ',\\s*[}\\]]')"
        valid = f"CASE WHEN {strict} THEN true ELSE error('not an object') END"
        table = f"text_{self.number}"
        if _loads(relation, f"CREATE TABLE {table} AS SELECT {taken} FROM {scan} WHERE trim(line) <> '' AND {valid}"):
            return Part(table, fields, ("VARCHAR",) * len(fields), "rowid", self._lines)
        rows = self._objects([axis.column for axis in schema.axes])
        return _careful_part(relation, self.file, self.number, rows, range(len(fields)), fields)

    def _objects(self, keys: list[str]) -> Iterator[careful.Record | careful.BadRow]:
        for row in careful.text_lines(self.path):
            parsed = json_object(row.fields[0]) if isinstance(row, careful.Record) else None
            if isinstance(row, careful.BadRow):
                yield row
            elif parsed is None:
                yield careful.BadRow(row.line, "not a JSON object", str(row.fields[0])[:80])
            else:
                fields = [json_text(parsed.get(key)) for key in keys]
                if all(field is None or careful.is_utf8(field) for field in fields):
                    yield careful.Record(row.line, fields)
                else:
                    yield careful.BadRow(row.line, "not valid UTF-8", str(row.fields[0])[:80])

    def _lines(self, records: list[int]) -> list[str]:
        return _count_lines(careful.text_lines(self.path), records, self.file.name)


_LOADERS: dict[str, type[_Parquet] | type[_JsonLines] | type[_Delimited]] = {
    "parquet": _Parquet,
    "jsonl": _JsonLines,
    "csv": _Delimited,
    "tsv": _Delimited,
}


def _careful_part(
    relation: Relation,
    file: ReviewFile,
    number: int,
    rows: Iterator[careful.Record | careful.BadRow],
    wanted: Sequence[int],
    columns: tuple[str, ...],
) -> Part:
    """Reads a text file row by row into Parquet, and counts the rows that cannot be parsed."""
    target = relation.folder / f"careful-{number}.parquet"
    try:
        bad = careful.to_parquet(rows, wanted, target)
    except OSError as error:
        raise StorageError(
            f"cannot write temporary files to {relation.folder.parent}: {error.strerror or error}; "
            "free some space or choose another folder with --temp-directory"
        ) from error
    for row in bad:
        relation.rejected[row.reason] += 1
        if len(relation.examples) < 100:
            relation.examples.append(Example(f"{file.name} line {row.line}", row.reason, row.text))
    scan = f"read_parquet('{_quote(target)}')"
    return Part(
        scan, columns, ("VARCHAR",) * len(columns), "line", lambda rows: [f"{file.name} line {n}" for n in rows]
    )


def _count_lines(rows: Iterator[careful.Record | careful.BadRow], records: list[int], name: str) -> list[str]:
    """Where the records with these numbers stand; one pass for all of them."""
    wanted, last = set(records), max(records, default=-1)
    lines = {}
    for number, row in enumerate(rows):
        if number in wanted:
            lines[number] = f"{name} line {row.line}"
        if number >= last:
            break
    return [lines.get(number, f"{name} record {number + 1}") for number in records]


def _loads(relation: Relation, statement: str) -> bool:
    """Whether DuckDB's reader takes the file without any disorder."""
    import duckdb

    try:
        relation.rows(statement)
    except (duckdb.InvalidInputException, duckdb.ConversionException):
        return False
    return True


def _types(connection: Any, relation: str, columns: Sequence[str]) -> tuple[str, ...]:
    described = connection.execute(f"DESCRIBE SELECT {', '.join(columns)} FROM {relation}").fetchall()
    return tuple(str(row[1]).upper() for row in described)


def _quote(path: Path) -> str:
    return str(path).replace("'", "''")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1").replace("'", "''")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


@contextmanager
def _plain_words(folder: Path) -> Iterator[None]:
    """Turns DuckDB's errors into ours, with what to do about them."""
    import duckdb

    try:
        yield
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InputError(f"the table holds text that is not valid Unicode: {error.reason}") from error
    except duckdb.Error as error:
        text = str(error)
        if "No space left" in text or "max_temp_directory_size" in text:
            raise StorageError(
                f"the disk is full while reading (temporary files in {folder.parent}); "
                "free some space or choose another folder with --temp-directory"
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise InputError("the memory limit is too small for this table; raise it with --memory-limit") from error
        raise InputError(f"the table cannot be read: {_first_line(error)}") from error
