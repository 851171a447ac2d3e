"""Files -> parts of a relation, one class for each format.

Text files are loaded once into DuckDB's own storage, which spills; Parquet is scanned where it is. A text file
that DuckDB finds anything out of order in is read by ``row_reader``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.errors import InputError, SchemaError, StorageError
from ringleader.tables import row_reader
from ringleader.tables.advice import NOT_UTF8, bad_parquet
from ringleader.tables.files import ReviewFile
from ringleader.tables.relation import UNPARSED_EXAMPLES, Example, Relation, TablePart, column_types, quoted
from ringleader.tables.row_reader import LONGEST_LINE, BadRow, Record
from ringleader.tables.schema import KNOWN_NAMES, Schema, roles_called
from ringleader.tables.text import check_first_line, delimiter_of, header_of, json_object, json_text, text_head
from ringleader.wording import is_unicode

JSON_SAMPLE, JSON_LONG_SAMPLE = 200, 50_000
MOST_KEYS = 10_000
"""Keys of a JSON Lines file that are looked at: one with more has none that means the same in every line."""


class ParquetLoader:
    """Scanned in place."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path = file, path
        try:
            self.names = pq.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise bad_parquet(file.name, error) from error

    def load(self, relation: Relation, schema: Schema) -> TablePart:
        options = f"{quoted(self.path)}, binary_as_string = true, hive_partitioning = false"
        # DuckDB takes names that differ by case for the same and renames them: so by position.
        described = self._described(relation, options)
        columns = []
        for axis in schema.axes:
            if self.names.count(axis.column) > 1:
                raise SchemaError(f"{self.file.name!r} has two columns {axis.column!r}; rename one of them")
            columns.append(_identifier(str(described[self.names.index(axis.column)][0])))
        numbered = "file_row_number" not in [name.lower() for name in self.names]
        scan = f"read_parquet({options}{', file_row_number = true' if numbered else ''})"
        types = column_types(relation, scan, columns)
        row = "file_row_number" if numbered else ""
        name = self.file.name
        return TablePart(
            scan, tuple(columns), types, row, lambda rows: [f"{name} row {n + 1}" for n in rows], scanned=name
        )

    def _described(self, relation: Relation, options: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return relation.rows(f"DESCRIBE SELECT * FROM read_parquet({options})")
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise bad_parquet(self.file.name, error) from error


class DelimitedLoader:
    """CSV and TSV: DuckDB reads what is in order; at the first disorder the row reader takes over."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path, self.number = file, path, number
        head = text_head(file, path)
        self.delimiter = "\t" if file.format == "tsv" else delimiter_of(head)
        self.header = header_of(head, self.delimiter, file)
        self.names = self.header

    def load(self, relation: Relation, schema: Schema) -> TablePart:
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
            f"read_csv({quoted(self.path)}, auto_detect = false, header = true, delim = '{self.delimiter}', "
            f"quote = '\"', escape = '\"', max_line_size = {LONGEST_LINE}, columns = {{{fields}}})"
        )
        made = f"CREATE TABLE {table} AS SELECT {', '.join(f'f{p}' for p in wanted)} FROM {scan}"
        if _ends_in_time(self.path) and _loads(relation, made):
            return TablePart(table, columns, types, "rowid", self._lines)
        rows = row_reader.csv_rows(self.path, self.delimiter, len(self.header))
        return _row_by_row(relation, self.file, self.number, rows, wanted, columns)

    def _lines(self, records: list[int]) -> list[str]:
        """The physical lines of records: quoted fields may hold newlines, so they must be counted."""
        return _count_lines(row_reader.csv_rows(self.path, self.delimiter, len(self.header)), records, self.file.name)


class JsonLinesLoader:
    """One object a line: read as text, taken apart by DuckDB."""

    def __init__(self, file: ReviewFile, path: Path, number: int) -> None:
        self.file, self.path, self.number = file, path, number
        keys: dict[str, None] = {}
        roles: set[str] = set()
        for count, row in enumerate(row_reader.text_lines(path)):
            # Roles that the first objects lack may come later, so look further for them.
            if count >= (JSON_SAMPLE if roles == set(KNOWN_NAMES) else JSON_LONG_SAMPLE) or len(keys) > MOST_KEYS:
                break
            parsed = json_object(row.fields[0]) if isinstance(row, Record) else None
            fresh = [key for key in parsed or () if key not in keys]
            keys.update(dict.fromkeys(fresh))
            roles |= roles_called(fresh)
        if not keys:
            check_first_line(file, path)
            raise InputError(f"{file.name!r} holds no JSON object a line; write one object on each line")
        self.names = list(keys)

    def load(self, relation: Relation, schema: Schema) -> TablePart:
        # A raw control character never stands in valid JSON, so this delimiter never splits a line.
        scan = (
            f"read_csv({quoted(self.path)}, auto_detect = false, header = false, delim = '\x01', quote = '', "
            f"escape = '', max_line_size = {LONGEST_LINE}, columns = {{'line': 'VARCHAR'}})"
        )
        fields = tuple(f"f{k}" for k in range(len(schema.axes)))
        taken = ", ".join(
            f"json_extract_string(line, {quoted(_pointer(axis.column))}) AS f{k}" for k, axis in enumerate(schema.axes)
        )
        # What only some readers of JSON take, such as a comma before a bracket, is left to the row reader.
        strict = "json_type(line) = 'OBJECT' AND NOT regexp_matches(line, ',\\s*[}\\]]')"
        valid = f"CASE WHEN {strict} THEN true ELSE error('not an object') END"
        table = f"text_{self.number}"
        made = f"CREATE TABLE {table} AS SELECT {taken} FROM {scan} WHERE trim(line) <> '' AND {valid}"
        if _ends_in_time(self.path) and _loads(relation, made):
            return TablePart(table, fields, ("VARCHAR",) * len(fields), "rowid", self._lines)
        rows = self._objects([axis.column for axis in schema.axes])
        return _row_by_row(relation, self.file, self.number, rows, range(len(fields)), fields)

    def _objects(self, keys: list[str]) -> Iterator[Record | BadRow]:
        for row in row_reader.text_lines(self.path):
            parsed = json_object(row.fields[0]) if isinstance(row, Record) else None
            if isinstance(row, BadRow):
                yield row
            elif parsed is None:
                yield BadRow(row.line, "not a JSON object", str(row.fields[0])[:80])
            else:
                fields = [json_text(parsed.get(key)) for key in keys]
                if all(field is None or is_unicode(field) for field in fields):
                    yield Record(row.line, fields)
                else:
                    yield BadRow(row.line, NOT_UTF8, str(row.fields[0])[:80])

    def _lines(self, records: list[int]) -> list[str]:
        return _count_lines(row_reader.text_lines(self.path), records, self.file.name)


Loader = ParquetLoader | JsonLinesLoader | DelimitedLoader
LOADERS: dict[str, type[ParquetLoader] | type[JsonLinesLoader] | type[DelimitedLoader]] = {
    "parquet": ParquetLoader,
    "jsonl": JsonLinesLoader,
    "csv": DelimitedLoader,
    "tsv": DelimitedLoader,
}


def _row_by_row(
    relation: Relation,
    file: ReviewFile,
    number: int,
    rows: Iterator[Record | BadRow],
    wanted: Sequence[int],
    columns: tuple[str, ...],
) -> TablePart:
    """Reads a text file row by row into Parquet, and counts the rows that cannot be parsed."""
    target = relation.folder / f"rows-{number}.parquet"
    try:
        bad = row_reader.to_parquet(rows, wanted, target)
    except OSError as error:
        raise StorageError(
            f"cannot write temporary files to {relation.folder.parent}: {error.strerror or error}; "
            "free some space or choose another folder with --temp-directory"
        ) from error
    relation.rejected.update(bad.counts)
    for row in bad.examples[: max(0, UNPARSED_EXAMPLES - len(relation.examples))]:
        relation.examples.append(Example(f"{file.name} line {row.line}", row.reason, row.text))
    scan = f"read_parquet({quoted(target)})"
    return TablePart(
        scan, columns, ("VARCHAR",) * len(columns), "line", lambda rows: [f"{file.name} line {n}" for n in rows]
    )


def _count_lines(rows: Iterator[Record | BadRow], records: list[int], name: str) -> list[str]:
    """Where the records with these numbers stand; one pass for all of them."""
    wanted, last = set(records), max(records, default=-1)
    lines = {}
    for number, row in enumerate(rows):
        if number in wanted:
            lines[number] = f"{name} line {row.line}"
        if number >= last:
            break
    return [lines.get(number, f"{name} row {number + 1}") for number in records]


def _loads(relation: Relation, statement: str) -> bool:
    """Whether DuckDB's reader takes the file without any disorder."""
    import duckdb

    try:
        relation.rows(statement)
    except (duckdb.InvalidInputException, duckdb.ConversionException):
        return False
    return True


def _ends_in_time(path: Path) -> bool:
    """Whether the last line of a file is one that DuckDB reads; a longer one it would pass over in silence."""
    size = path.stat().st_size
    if size <= LONGEST_LINE:
        return True
    with path.open("rb") as handle:
        handle.seek(size - LONGEST_LINE)
        return b"\n" in handle.read(LONGEST_LINE - 1)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")
