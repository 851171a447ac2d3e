"""Readers that go row by row, so that one bad row costs that row alone.

Used where DuckDB's reader finds anything out of order in a text file. They know the physical line
of every row, and go on behind an unterminated quote, which would otherwise swallow the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.tables.advice import NOT_UTF8
from ringleader.tables.relation import UNPARSED_EXAMPLES
from ringleader.wording import is_unicode

BATCH_ROWS = 100_000
BATCH_CHARACTERS = 1 << 26
LONGEST_RECORD = 1000
"""Lines that a quoted field may span; a quote still open then was never meant to open."""
LONGEST_LINE = 1 << 25
"""Characters of a line; a longer one is no review."""


class BadRow(NamedTuple):
    """A row that cannot be parsed."""

    line: int
    reason: str
    text: str


class BadRows(NamedTuple):
    """Rows that cannot be parsed: how many for each reason, and the first of them."""

    counts: Counter[str]
    examples: list[BadRow]


class Record(NamedTuple):
    line: int
    fields: list[str | None]


def csv_rows(path: Path, delimiter: str, width: int) -> Iterator[Record | BadRow]:
    """The records behind the header of a delimited file."""
    lines = _Lines(path)
    is_header = True
    while (taken := lines.take()) is not None:
        line, text = taken
        record = text.rstrip("\r\n")
        if not record:
            continue
        if len(text) > LONGEST_LINE:
            yield BadRow(line, "line too long", _show(record[:100]))
            continue
        fields = split_record(record, delimiter)
        spanned = 0
        while fields is None and spanned < LONGEST_RECORD and (following := lines.peek(spanned)) is not None:
            if len(record) + len(following) > LONGEST_LINE:
                break
            record = record + text[len(text.rstrip("\r\n")) :] + following.rstrip("\r\n")
            text = following
            spanned += 1
            fields = split_record(record, delimiter)
        if not fields:
            yield BadRow(line, "quote out of place", _show(taken[1]))
            continue
        lines.skip(spanned)
        if len(fields) == width + 1 and fields[-1] == "":
            fields.pop()  # a separator at the end of the line
        if is_header:
            is_header = False
        elif not is_unicode(record):
            yield BadRow(line, NOT_UTF8, _show(record))
        elif len(fields) != width:
            yield BadRow(line, "too few fields" if len(fields) < width else "too many fields", _show(record))
        else:
            yield Record(line, list(fields))


def split_record(record: str, delimiter: str) -> list[str] | None:
    """The fields of a record; None where a quote is still open, empty where one is out of place."""
    if '"' not in record:
        return record.split(delimiter)
    fields: list[str] = []
    at = 0
    while True:
        # Blanks around a quoted field do not belong to it; blanks of a field without quotes do.
        first = at
        while record.startswith(" ", first):
            first += 1
        if record.startswith('"', first):
            at = first
            close = record.find('"', at + 1)
            while close >= 0 and record.startswith('"', close + 1):
                close = record.find('"', close + 2)
            if close < 0:
                return None
            fields.append(record[at + 1 : close].replace('""', '"'))
            while record.startswith(" ", close + 1):
                close += 1
            if close + 1 == len(record):
                return fields
            if record[close + 1] != delimiter:
                return []
            at = close + 2
        else:
            end = record.find(delimiter, at)
            if end < 0:
                fields.append(record[at:])
                return fields
            fields.append(record[at:end])
            at = end + 1


def text_lines(path: Path) -> Iterator[Record | BadRow]:
    """The lines of a text file that are not blank, each as one field."""
    lines = _Lines(path)
    while (taken := lines.take()) is not None:
        line, text = taken
        if len(text) > LONGEST_LINE:
            yield BadRow(line, "line too long", _show(text[:100]))
            continue
        text = text.rstrip("\r\n")
        if not text.strip():
            continue
        yield Record(line, [text]) if is_unicode(text) else BadRow(line, NOT_UTF8, _show(text))


def to_parquet(rows: Iterator[Record | BadRow], positions: Sequence[int], target: Path) -> BadRows:
    """Writes the fields at some positions as columns f0, f1, ... beside their line; returns the bad rows."""
    schema = pa.schema([("line", pa.int64())] + [(f"f{k}", pa.large_string()) for k in range(len(positions))])
    bad = BadRows(Counter(), [])
    with pq.ParquetWriter(target, schema) as writer:
        batch: list[Record] = []
        size = 0
        for row in rows:
            if isinstance(row, BadRow):
                bad.counts[row.reason] += 1
                if len(bad.examples) < UNPARSED_EXAMPLES:
                    bad.examples.append(row)
                continue
            batch.append(row)
            size += sum(len(field or "") for field in row.fields)
            if len(batch) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
                writer.write_table(_table(batch, positions, schema))
                batch, size = [], 0
        writer.write_table(_table(batch, positions, schema))
    return bad


def _table(batch: list[Record], positions: Sequence[int], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([r.line for r in batch], pa.int64())]
    columns += [pa.array([r.fields[p] for r in batch], pa.large_string()) for p in positions]
    return pa.Table.from_arrays(columns, schema=schema)


class _Lines:
    """Lines of a file with a look-ahead; bytes that are no UTF-8 come as lone surrogates."""

    def __init__(self, path: Path) -> None:
        self._iterator = _iterate(path)
        self._ahead: list[str] = []
        self._number = 0

    def take(self) -> tuple[int, str] | None:
        text = self._ahead.pop(0) if self._ahead else next(self._iterator, None)
        if text is None:
            return None
        self._number += 1
        return self._number, text

    def peek(self, offset: int) -> str | None:
        while len(self._ahead) <= offset:
            text = next(self._iterator, None)
            if text is None:
                return None
            self._ahead.append(text)
        return self._ahead[offset]

    def skip(self, count: int) -> None:
        del self._ahead[:count]
        self._number += count


def _iterate(path: Path) -> Iterator[str]:
    """The lines of a file; of one that is longer than LONGEST_LINE, that much and one character more."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as handle:
        while line := handle.readline(LONGEST_LINE + 1):
            rest = line
            while len(rest) > LONGEST_LINE and not rest.endswith(("\n", "\r")):
                rest = handle.readline(LONGEST_LINE + 1)
            yield line


def _show(text: str) -> str:
    return text.strip("\r\n").encode("utf-8", "backslashreplace").decode()[:80]
