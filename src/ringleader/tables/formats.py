"""How a file of each format is read, one class for each: SQL for DuckDB, and rows for what is out of order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.errors import InputError, SchemaError
from ringleader.tables import row_reader
from ringleader.tables.advice import NOT_UTF8, bad_parquet
from ringleader.tables.files import ReviewFile
from ringleader.tables.relation import Relation, quoted
from ringleader.tables.row_reader import LONGEST_LINE, BadRow, Record
from ringleader.tables.schema import KNOWN_NAMES, Schema, roles_called
from ringleader.tables.text import check_first_line, delimiter_of, header_of, json_object, json_text, text_head
from ringleader.wording import is_unicode

JSON_SAMPLE, JSON_LONG_SAMPLE = 200, 50_000
ROW_NUMBER = "file_row_number"
"""The column in which DuckDB numbers the rows of a Parquet file."""
MOST_KEYS = 10_000
"""Keys of a JSON Lines file that are looked at: one with more has none that means the same in every line."""


class ParquetLoader:
    """Scanned in place.

    layout : what files that are scanned in one go share: names and types of all columns; None where their names stand
        in the way
    """

    def __init__(self, file: ReviewFile, path: Path) -> None:
        self.file, self.path = file, path
        try:
            with pq.ParquetFile(path) as opened:
                self.names = opened.schema.to_arrow_schema().names
                described = str(opened.schema).partition("\n")[2]  # behind the name and address of the object
        except (pa.ArrowException, OSError) as error:
            raise bad_parquet(file.name, error) from error
        # DuckDB takes names that differ by case for the same and renames them.
        folded = [name.lower() for name in self.names]
        unambiguous = len(set(folded)) == len(folded) and not {"filename", ROW_NUMBER} & set(folded)
        self.layout = (tuple(self.names), described) if unambiguous else None
        self.numbered = ROW_NUMBER not in folded

    def columns(self, relation: Relation, schema: Schema) -> list[tuple[str, str]]:
        """SQL of the column of each axis, and its DuckDB type."""
        described = self.describe(relation)
        for axis in schema.axes:
            if self.names.count(axis.column) > 1:
                raise SchemaError(f"{self.file.name!r} has two columns {axis.column!r}; rename one of them")
        return [
            (_identifier(name), kind) for name, kind in (described[self.names.index(a.column)] for a in schema.axes)
        ]

    def describe(self, relation: Relation) -> list[tuple[str, str]]:
        """Names and types of all columns as DuckDB has them, in the order of the file."""
        import duckdb

        try:
            rows = relation.rows(f"DESCRIBE SELECT * FROM {parquet([self.path])}")
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise bad_parquet(self.file.name, error) from error
        return [(str(row[0]), str(row[1]).upper()) for row in rows]

    def places(self, rows: list[int]) -> list[str]:
        return [f"{self.file.name} row {n + 1}" for n in rows]


class DelimitedLoader:
    """CSV and TSV: DuckDB reads what is in order; at the first disorder the row reader takes over."""

    def __init__(self, file: ReviewFile, path: Path) -> None:
        self.file, self.path = file, path
        head = text_head(file, path)
        self.delimiter = "\t" if file.format == "tsv" else delimiter_of(head)
        self.names = header_of(head, self.delimiter, file)

    def query(self, schema: Schema) -> str:
        """SQL: the text of each axis, in every row."""
        fields = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(self.names)))
        return (
            f"SELECT {', '.join(f'f{p}' for p in self.positions(schema))} FROM "
            f"read_csv({quoted(self.path)}, auto_detect = false, header = true, delim = '{self.delimiter}', "
            f"quote = '\"', escape = '\"', max_line_size = {LONGEST_LINE}, columns = {{{fields}}})"
        )

    def positions(self, schema: Schema) -> list[int]:
        """Which field of a record each axis is."""
        for axis in schema.axes:
            if self.names.count(axis.column) > 1:
                raise SchemaError(f"{self.file.name!r} has two columns {axis.column!r}; rename one of them")
        return [self.names.index(axis.column) for axis in schema.axes]

    def records(self, schema: Schema) -> Iterator[Record | BadRow]:
        return row_reader.csv_rows(self.path, self.delimiter, len(self.names))

    def places(self, records: list[int]) -> list[str]:
        """The physical lines of records: quoted fields may hold newlines, so they must be counted."""
        return _count_lines(row_reader.csv_rows(self.path, self.delimiter, len(self.names)), records, self.file.name)


class JsonLinesLoader:
    """One object a line: read as text, taken apart by DuckDB."""

    def __init__(self, file: ReviewFile, path: Path) -> None:
        self.file, self.path = file, path
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

    def query(self, schema: Schema) -> str:
        """SQL: the text of each axis, in every line; an error where one is no object."""
        # A raw control character never stands in valid JSON, so this delimiter never splits a line.
        scan = (
            f"read_csv({quoted(self.path)}, auto_detect = false, header = false, delim = '\x01', quote = '', "
            f"escape = '', max_line_size = {LONGEST_LINE}, columns = {{'line': 'VARCHAR'}})"
        )
        taken = ", ".join(f"json_extract_string(line, {quoted(_pointer(axis.column))})" for axis in schema.axes)
        # What only some readers of JSON take, such as a comma before a bracket, is left to the row reader.
        strict = "json_type(line) = 'OBJECT' AND NOT regexp_matches(line, ',\\s*[}\\]]')"
        valid = f"CASE WHEN {strict} THEN true ELSE error('not an object') END"
        return f"SELECT {taken} FROM {scan} WHERE trim(line) <> '' AND {valid}"

    def positions(self, schema: Schema) -> list[int]:
        """Which field of a record each axis is."""
        return list(range(len(schema.axes)))

    def records(self, schema: Schema) -> Iterator[Record | BadRow]:
        for row in row_reader.text_lines(self.path):
            parsed = json_object(row.fields[0]) if isinstance(row, Record) else None
            if isinstance(row, BadRow):
                yield row
            elif parsed is None:
                yield BadRow(row.line, "not a JSON object", str(row.fields[0])[:80])
            else:
                fields = [json_text(parsed.get(axis.column)) for axis in schema.axes]
                if all(field is None or is_unicode(field) for field in fields):
                    yield Record(row.line, fields)
                else:
                    yield BadRow(row.line, NOT_UTF8, str(row.fields[0])[:80])

    def places(self, records: list[int]) -> list[str]:
        """The physical lines of records: blank ones are none."""
        return _count_lines(row_reader.text_lines(self.path), records, self.file.name)


TextLoader = JsonLinesLoader | DelimitedLoader
LOADERS: dict[str, type[ParquetLoader] | type[JsonLinesLoader] | type[DelimitedLoader]] = {
    "parquet": ParquetLoader,
    "jsonl": JsonLinesLoader,
    "csv": DelimitedLoader,
    "tsv": DelimitedLoader,
}


def parquet(paths: Sequence[Path | str], options: str = "") -> str:
    """SQL: Parquet files as they are, whatever their folders are called."""
    listed = ", ".join(map(quoted, paths))
    return f"read_parquet([{listed}], binary_as_string = true, hive_partitioning = false{options})"


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


def ends_in_time(path: Path) -> bool:
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
