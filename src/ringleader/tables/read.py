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
from ringleader.tables import careful
from ringleader.tables.files import ReviewFile, locate, plain
from ringleader.tables.schema import Schema, resolve
from ringleader.tables.text import delimiter_of, json_object, json_text, text_head

LONGEST_LINE = 1 << 25
JSON_SAMPLE = 200
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
    expression of a row number that ``where`` turns into words.
    """

    relation: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    row: str
    where: Callable[[int], str]


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

    def batches(self, sql: str, size: int = 1 << 18) -> Iterator[pa.RecordBatch]:
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
    if isinstance(limit, int):
        size = limit
    else:
        units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "B": 1}
        text = limit.strip().upper()
        unit = next((u for u in sorted(units, key=len, reverse=True) if text.endswith(u)), None)
        try:
            size = int(float(text[: -len(unit)]) * units[unit]) if unit else int(text)
        except ValueError:
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
    table = to_arrow(source)
    schema = resolve(table.column_names, columns=columns, modes=modes)
    connection.register("frame", table.select(list(dict.fromkeys(schema.columns.values()))))
    names = tuple(_identifier(axis.column) for axis in schema.axes)
    # A frame has no stored row number: it is counted where it is asked for.
    part = Part("frame", names, _types(connection, "frame", names), "", lambda row: f"row {row}")
    return Relation(connection, schema, [part], limit, folder, "the table")


def to_arrow(source: Any) -> pa.Table:
    """A pandas, polars or Arrow table as an Arrow table. The source is not changed."""
    if isinstance(source, pa.Table):
        table = source
    elif isinstance(source, pa.RecordBatch):
        table = pa.Table.from_batches([source])
    elif type(source).__module__.startswith("pandas"):
        table = _from_pandas(source)
    elif hasattr(source, "collect") and type(source).__module__.startswith("polars"):
        table = source.collect().to_arrow()
    elif hasattr(source, "to_arrow"):
        table = source.to_arrow()
    elif hasattr(source, "__arrow_c_stream__"):
        table = pa.table(source)
    else:
        raise InputError(
            f"cannot read reviews from a {type(source).__name__}; give a path, or a pandas, polars or Arrow table"
        )
    names = table.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(f"column {twice!r} is there twice; rename one of them")
    return table


def _from_pandas(frame: Any) -> pa.Table:
    if not hasattr(frame, "columns"):
        raise InputError("cannot read reviews from a pandas Series; give a DataFrame")
    arrays = {}
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        try:
            array = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # A column of mixed objects: each as its text.
            array = pa.array([None if v is None or v != v else str(v) for v in column], pa.large_string())
        arrays[str(name)] = array
    if len(arrays) != len(frame.columns):
        raise SchemaError("two columns have the same name; rename one of them")
    return pa.table(arrays)


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
        scan = f"read_parquet('{_quote(self.path)}', binary_as_string = true, file_row_number = true)"
        columns = tuple(_identifier(axis.column) for axis in schema.axes)
        types = _types(relation.connection, scan, columns)
        return Part(scan, columns, types, "file_row_number", lambda row: f"{self.file.name} row {row + 1}")


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
            return Part(table, columns, types, "rowid", self._line)
        rows = careful.csv_rows(self.path, self.delimiter, len(self.header))
        return _careful_part(relation, self.file, self.number, rows, wanted, columns)

    def _line(self, record: int) -> str:
        """The physical line of a record: quoted fields may hold newlines, so it must be counted."""
        rows = careful.csv_rows(self.path, self.delimiter, len(self.header))
        for number, row in enumerate(rows):
            if number == record:
                return f"{self.file.name} line {row.line}"
        return f"{self.file.name} record {record + 1}"


class _JsonLines:
    """One object a line: read as text, taken apart by DuckDB."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path, self.number = file, path, number
        keys: dict[str, None] = {}
        for count, row in enumerate(careful.text_lines(path)):
            if count >= JSON_SAMPLE:
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
        valid = "CASE WHEN json_type(line) = 'OBJECT' THEN true ELSE error('not an object') END"
        table = f"text_{self.number}"
        if _loads(relation, f"CREATE TABLE {table} AS SELECT {taken} FROM {scan} WHERE trim(line) <> '' AND {valid}"):
            return Part(table, fields, ("VARCHAR",) * len(fields), "rowid", self._line)
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

    def _line(self, record: int) -> str:
        for number, row in enumerate(careful.text_lines(self.path)):
            if number == record:
                return f"{self.file.name} line {row.line}"
        return f"{self.file.name} record {record + 1}"


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
    bad = careful.to_parquet(rows, wanted, target)
    for row in bad:
        relation.rejected[row.reason] += 1
        if len(relation.examples) < 100:
            relation.examples.append(Example(f"{file.name} line {row.line}", row.reason, row.text))
    scan = f"read_parquet('{_quote(target)}')"
    return Part(scan, columns, ("VARCHAR",) * len(columns), "line", lambda n: f"{file.name} line {n}")


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
