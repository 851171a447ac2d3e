"""Files and frames -> a DuckDB relation of text, numbers and times, larger than memory if need be.

What cannot be parsed is counted in ``parts.py``, what makes no sense in ``check.py``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ringleader.errors import InputError, SchemaError, SettingsError, StorageError
from ringleader.runtime import machine
from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.runtime.temporary import temporary_folder
from ringleader.tables.advice import first_line
from ringleader.tables.files import ReviewFile, locate, readable_path
from ringleader.tables.formats import LOADERS
from ringleader.tables.frames import column_names, for_database, to_arrow
from ringleader.tables.parts import Parts
from ringleader.tables.relation import Relation, SourceFile, TablePart, column_types, quoted
from ringleader.tables.schema import Axis, Schema, parse_modes, resolve, roles_called
from ringleader.tables.spreadsheets import is_spreadsheet, read_spreadsheet

STOPPED_IN_PYTHON = re.compile(r"the object registered as '.*' failed: (KeyboardInterrupt|SystemExit)\b")
"""What DuckDB says where a signal came while it asked Python for a table in memory."""

DATABASE_SHARE = 0.7
MEMORY_A_THREAD = 300_000_000
"""Bytes of the database for each of its threads: with less, joins of many ids run out of memory instead of spilling."""
LEAST_MEMORY = 64_000_000
"""Bytes without which DuckDB reads nothing."""

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "B": 1}
"""Bytes in the units of a memory limit."""


@contextmanager
def open_relation(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    modes: Sequence[str] | Mapping[str, str] | None = None,
    count: str | None = None,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    encoding: str | None = None,
    peers: Peers | None = None,
) -> Iterator[Relation]:
    """Opens files, a folder, a glob, or a pandas, polars or Arrow table for reading.

    With ``peers``, every process opens its share of the files.
    """
    import duckdb

    limit = parse_memory(memory_limit)
    database = int(limit * DATABASE_SHARE)
    at_once = max(1, min(threads or machine.processors(), database // MEMORY_A_THREAD))
    opened: list[Relation] = []
    with temporary_folder(temp_directory) as folder, _clear_errors(folder, opened):
        connection = duckdb.connect()
        try:
            for setting in (
                # The rest is for the arrays that leave DuckDB while it still holds its own.
                f"SET memory_limit = '{database // 1_000_000}MB'",
                f"SET temp_directory = {quoted(folder / 'spill')}",
                "SET TimeZone = 'UTC'",
                f"SET threads = {at_once}",
            ):
                connection.execute(setting).fetchall()
            # In a notebook without ipywidgets there is no bar, and DuckDB refuses to turn it off.
            with suppress(duckdb.Error):
                connection.execute("SET enable_progress_bar = false").fetchall()
            which = Wanted(columns, modes, count)
            opened.append(_open(connection, source, which, limit, folder, encoding, peers or Alone()))
            yield opened[0]
        finally:
            connection.close()


def parse_memory(limit: str | int | None) -> int:
    """A memory limit in bytes; by default half of what the machine, or the container on it, has."""
    if limit is None:
        return max(machine.memory_limit() // 2, LEAST_MEMORY)
    if isinstance(limit, (int, float)):
        size = int(min(max(limit, 0), 2**62)) if limit == limit else 0
    else:
        try:
            text = limit.strip().upper()
            unit = next((u for u in sorted(UNITS, key=len, reverse=True) if text.endswith(u)), None)
            size = int(min(float(text[: -len(unit)] if unit else text) * UNITS[unit or "B"], 2**62))
        except (ValueError, OverflowError, AttributeError, TypeError):
            raise SettingsError(f"memory limit {limit!r} is invalid; write for example 1GB or 500MB") from None
    if size < LEAST_MEMORY:
        raise SettingsError(f"a memory limit of {size:,} bytes is too small; give at least 64MB")
    return size


@dataclass(frozen=True)
class Wanted:
    """Which columns of a table are read, as ``schema.resolve`` takes it."""

    columns: Mapping[str, str] | None
    modes: Sequence[str] | Mapping[str, str] | None
    count: str | None

    def resolve(self, available: Sequence[str], where: str = "the table") -> Schema:
        return resolve(available, columns=self.columns, modes=self.modes, count=self.count, where=where)


def _open(
    connection: Any,
    source: Any,
    which: Wanted,
    limit: int,
    folder: Path,
    encoding: str | None,
    peers: Peers,
) -> Relation:
    named = "the table"
    if is_spreadsheet(source):
        named, source = os.fspath(source), read_spreadsheet(source)
    if isinstance(source, (str, os.PathLike)):
        where = os.fspath(source)
        return _open_files(connection, locate(source), where, which, limit, folder, encoding, peers)
    schema = which.resolve(column_names(source))
    # Names of our own inside DuckDB, so that no column's name can be taken for another's.
    arrays = [for_database(array) for array in to_arrow(source, [axis.column for axis in schema.read]).columns]
    names = tuple(f"f{k}" for k in range(len(arrays)))
    connection.register("frame", pa.table(arrays, names=list(names)))
    relation = Relation(connection, schema, [], limit, folder, named)
    types = column_types(relation, "frame", names)
    # A frame has no stored row number: it is counted where it is asked for.
    frame = SourceFile(named, 0, lambda rows: [f"row {n + 1}" for n in rows])
    relation.parts.append(TablePart("frame", names, types, "", {0: frame}))
    return relation


def _open_files(
    connection: Any,
    files: list[ReviewFile],
    source: str,
    which: Wanted,
    limit: int,
    folder: Path,
    encoding: str | None,
    peers: Peers,
) -> Relation:
    relation: Relation | None = None
    share = list(_share(files, peers))
    for number, file in share:
        path = readable_path(file, folder, number, encoding)
        loader = LOADERS[file.format](file, path)
        fixed = _fixed_columns(file, loader.names, which)
        schema = which.resolve([*loader.names, *fixed], repr(file.name))
        if relation is None:
            relation = Relation(connection, schema, [], limit, folder, source, peers=peers)
            first = file
            parts = Parts(relation, many=sum(other.format != "parquet" for _, other in share) > 1)
        elif [a.mode for a in schema.axes] != [a.mode for a in relation.schema.axes]:
            raise _other_modes(file.name, schema, first.name, relation.schema)
        parts.add(loader, number, schema, fixed)
    if relation is not None:
        relation.parts = parts.all()
    opened = None if relation is None else (first.name, relation.schema, relation.parts[0].types)
    others = [other for other in gather(peers, opened) if other is not None]
    name, schema, types = others[0]  # locate never returns an empty list
    for other in others[1:]:
        if [a.mode for a in other[1].axes] != [a.mode for a in schema.axes]:
            raise _other_modes(other[0], other[1], name, schema)
    if relation is None:
        relation = Relation(connection, schema, [_no_rows(types)], limit, folder, source, peers=peers)
    relation.schema = schema
    return relation


def _fixed_columns(file: ReviewFile, names: Sequence[str], which: Wanted) -> dict[str, str | None]:
    """Columns that the folders of a file give, where they are asked for, or play a role that none of its own does."""
    asked = {*(which.columns or {}).values(), which.count}
    asked |= {axis.column for axis in parse_modes(which.modes) if isinstance(axis, Axis)}
    roles = roles_called(names)
    return {
        name: value
        for name, value in file.partitions
        if name not in names and (name in asked or not roles_called([name]) <= roles)
    }


def _share(files: list[ReviewFile], peers: Peers) -> Iterator[tuple[int, ReviewFile]]:
    """The files of this process with their numbers: a run of them, cut so that all read about as many bytes."""
    sizes = [file.bytes for file in files]
    before, total = 0, max(sum(sizes), 1)
    for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
        # The middle of the file decides, so that a single one goes to somebody.
        if min((before + size // 2) * peers.count // total, peers.count - 1) == peers.rank:
            yield number, file
        before += size


def _other_modes(name: str, schema: Schema, first: str, wanted: Schema) -> SchemaError:
    return SchemaError(
        f"{name!r} gives the modes {', '.join(schema.columns)}, but {first!r} gives "
        f"{', '.join(wanted.columns)}; read them apart, or name the modes"
    )


def _no_rows(types: tuple[str, ...]) -> TablePart:
    """A part without rows, for a process that has no file: columns of the types that others have."""
    names = tuple(f"f{k}" for k in range(len(types)))
    nothing = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in zip(names, types, strict=True))
    return TablePart(f"(SELECT {nothing} WHERE false)", names, types, "0", {})


@contextmanager
def _clear_errors(folder: Path, opened: Sequence[Relation]) -> Iterator[None]:
    """Turns DuckDB's errors into ours, with what to do about them. opened : the relation, as soon as it is."""
    import duckdb

    try:
        yield
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InputError(f"the table holds text that is not valid Unicode: {error.reason}") from error
    except RuntimeError as error:  # Ctrl-C is seen by DuckDB first
        if "Query interrupted" in str(error):
            raise KeyboardInterrupt from error
        raise
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        text = str(error)
        if STOPPED_IN_PYTHON.search(text):
            raise KeyboardInterrupt from error
        if "No space left" in text or "max_temp_directory_size" in text:
            raise StorageError(
                f"the disk is full while reading (temporary files in {folder.parent}); "
                "free some space or choose another folder with --temp-directory"
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise InputError("the memory limit is too small for this table; raise it with --memory-limit") from error
        damaged = next((name for relation in opened for name in _damaged(relation)), None)
        if damaged is not None:
            raise InputError(f"{damaged!r} is damaged: {first_line(error)}; fetch or write it again") from error
        raise InputError(f"the table cannot be read: {first_line(error)}") from error


def _damaged(relation: Relation) -> Iterator[str]:
    """The names of files that cannot be read to their end, each read by itself: a query over all names none."""
    import duckdb

    files = [file for part in relation.parts for file in part.files.values() if file.alone]
    for file in sorted(files, key=lambda file: file.number):
        with duckdb.connect() as alone:  # some errors leave a connection useless
            try:
                alone.execute(file.alone).fetchall()
            except duckdb.Error:
                yield file.name
