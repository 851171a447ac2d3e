"""Small side tables (labels, covariates) as rows of text, from a file or a frame."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.errors import InputError, SchemaError
from ringleader.runtime.temporary import temporary_folder
from ringleader.tables import row_reader
from ringleader.tables.advice import bad_parquet, encoding_advice
from ringleader.tables.columns import EXACT
from ringleader.tables.files import ReviewFile, locate, readable_path
from ringleader.tables.frames import column_names, to_arrow
from ringleader.tables.spreadsheets import is_spreadsheet, read_spreadsheet
from ringleader.tables.text import check_first_line, delimiter_of, header_of, json_object, json_text, text_head
from ringleader.wording import is_unicode

Row = tuple[str, dict[str, str | None]]


def table_rows(
    source: Any, required: Sequence[str], optional: Sequence[str], what: str, encoding: str | None = None
) -> Iterator[Row]:
    """Rows as (where, {column: text}) with the required columns and the optional ones that are there.

    With ``optional=("*",)`` every other column comes along. Text files are in ``encoding``; by default UTF-8, or
    UTF-16 or UTF-32 where one begins with its mark. Ids get the text that ``columns.as_text`` gives those of reviews.
    """
    if is_spreadsheet(source):
        source = read_spreadsheet(source)
    if isinstance(source, (str, os.PathLike)):
        for file in locate(source):
            with temporary_folder() as folder:
                yield from _file_rows(file, readable_path(file, folder, 0, encoding), required, optional, what)
        return
    names = choose(column_names(source), required, optional, f"the {what}", what)
    columns = [_values(column, name, what) for name, column in zip(names, to_arrow(source, names).columns, strict=True)]
    yield from _text_rows(names, columns, "row")


def _file_rows(
    file: ReviewFile, path: Path, required: Sequence[str], optional: Sequence[str], what: str
) -> Iterator[Row]:
    if file.format == "parquet":
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise bad_parquet(file.name, error) from error
        names = choose(table.column_names, required, optional, repr(file.name), what)
        columns = [_values(table.column(name), name, file.name) for name in names]
        yield from _text_rows(names, columns, f"{file.name} row")
        return
    if file.format == "jsonl":
        check_first_line(file, path)
        checked = False
        for row in row_reader.text_lines(path):
            where = f"{file.name} line {row.line}"
            if isinstance(row, row_reader.BadRow):
                raise _unreadable(row, where, what)
            parsed = json_object(row.fields[0])
            if parsed is None:
                raise InputError(f"{where} of the {what} is not a JSON object")
            if not checked:
                choose(list(parsed), required, (), repr(file.name), what)
                checked = True
            names = [n for n in parsed if n in required or n in optional or "*" in optional]
            taken = {name: json_text(parsed.get(name)) for name in (*required, *names)}
            if not all(is_unicode(text or "") for text in (*taken, *taken.values())):
                raise InputError(f"{where} of the {what} holds text that is not valid Unicode")
            yield where, taken
        return
    head = text_head(file, path)
    delimiter = "\t" if file.format == "tsv" else delimiter_of(head)
    header = [name.strip() for name in header_of(head, delimiter, file)]
    names = choose(header, required, optional, repr(file.name), what)
    for row in row_reader.csv_rows(path, delimiter, len(header)):
        where = f"{file.name} line {row.line}"
        if isinstance(row, row_reader.BadRow):
            raise _unreadable(row, where, what)
        yield where, {name: row.fields[header.index(name)] for name in names}


def _unreadable(row: row_reader.BadRow, where: str, what: str) -> InputError:
    advised = encoding_advice({row.reason: 1})
    return InputError(f"{where} of the {what} cannot be read: {row.reason}: {row.text!r}{advised}")


def _values(column: Any, name: str, where: str) -> list[Any]:
    """A column of Arrow as Python's values; of float32, text with the digits that it has."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise InputError(f"column {name[:60]!r} of {where} holds a time that is out of range: {error}") from error
    if pa.types.is_float32(column.type):
        as_is = (value is None or value != value or _is_exact(value) for value in values)
        return [v if whole else repr(float(str(np.float32(v)))) for v, whole in zip(values, as_is, strict=True)]
    return values


def _text_rows(names: list[str], columns: list[list[Any]], named: str) -> Iterator[Row]:
    for number, values in enumerate(zip(*columns, strict=True), start=1):
        where = f"{named} {number}"
        yield where, {n: _text(v, n, where) for n, v in zip(names, values, strict=True)}


def _text(value: Any, name: str, where: str) -> str | None:
    """A value as the text that ``columns.as_text`` makes of it. Bytes are text that nothing marks as such."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"column {name[:60]!r} at {where} holds bytes that are not valid UTF-8") from error
    # A float column is what whole numbers with gaps become: 7.0 names the entity 7.
    return str(int(value)) if isinstance(value, float) and _is_exact(value) else str(value)


def _is_exact(value: float) -> bool:
    return value.is_integer() and abs(value) < EXACT


def choose(
    available: Sequence[str], required: Sequence[str], optional: Sequence[str], where: str, what: str
) -> list[str]:
    """The columns to take, or an error that says which is missing and what was found."""
    counts = Counter(available)
    asked = available if "*" in optional else (*required, *optional)
    twice = next((name for name in asked if counts[name] > 1), None)
    if twice is not None:
        raise SchemaError(f"{where} has two columns {twice!r}; rename one of them")
    for name in required:
        if name not in available:
            close = difflib.get_close_matches(name, available, n=1, cutoff=0.6)
            hint = f"; the nearest name is {close[0]!r}" if close else ""
            shown = ", ".join(repr(n[:40]) for n in available[:12])
            has = "have" if where.endswith("labels") else "has"
            raise SchemaError(
                f"{where} {has} no column {name!r}; a table of {what} begins with a line naming its columns "
                f"{', '.join(required)}; found {shown}{hint}"
            )
    if "*" in optional:
        return [*required, *(n for n in available if n not in required)]
    return [*required, *(n for n in optional if n in available)]
