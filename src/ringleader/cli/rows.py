"""Tables of results: as files, and the first rows on the terminal. Names are hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ringleader.cli.terminal import VERBOSITY, note, print_table
from ringleader.errors import InputError, SettingsError, StorageError
from ringleader.runtime.outputs import check_writable, reason_of, whole_file
from ringleader.runtime.stores import local_path
from ringleader.wording import counted, defused, json_ready

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN = 20
KINDS = (".csv", ".parquet", ".jsonl", ".xlsx")


def check_output(output: str | None, *, overwrite: bool, inputs: Iterable[str | None] = ()) -> None:
    """Refuses an output before the work and not after it: of no known kind, not to be written, or read as an input."""
    if output is None:
        return
    if Path(output).suffix not in KINDS:
        raise SettingsError(f"cannot write {output!r}; name it .csv, .parquet, .jsonl or .xlsx")
    check_writable(output, overwrite=overwrite)
    if os.path.exists(output) and any(os.path.samefile(path, output) for i in inputs if i for path in _files_of(i)):
        raise StorageError(f"{output} is what this command reads; choose another name for the output")


def _files_of(source: str) -> list[Path]:
    """The files of this machine that are read of a file, a folder or a glob; none where reading refuses it."""
    from ringleader.tables.files import locate

    local = local_path(source)
    if local is None:
        return []
    if os.path.isfile(local):
        return [Path(local)]
    try:
        return [file.path for file in locate(source)]
    except InputError:  # which is said when it is read
        return []


def write_frame(frame: pd.DataFrame, output: str, *, raw: bool, overwrite: bool = False) -> bool:
    """A table to a file of the kind its name says. Returns whether names were changed: in CSV and XLSX they may be."""
    changed = put_frame(frame, output, raw=raw, overwrite=overwrite)
    if changed:
        note_changed(Path(output).suffix)
    return changed


def put_frame(frame: pd.DataFrame, output: str, *, raw: bool, overwrite: bool = False) -> bool:
    """As ``write_frame``, and says nothing."""
    from ringleader.cores.tables import quoting_of
    from ringleader.tables.spreadsheets import write_spreadsheet

    path = Path(output)
    safe = frame
    if path.suffix == ".xlsx" or (path.suffix == ".csv" and not raw):
        safe = frame.apply(_defused).set_axis([defused(str(name)) for name in frame.columns], axis=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, overwrite=overwrite) as temporary:
            if path.suffix == ".parquet":
                frame.to_parquet(temporary, index=False)
            elif path.suffix == ".jsonl":
                _write_json_lines(frame, temporary)
            elif path.suffix == ".xlsx":
                write_spreadsheet(safe, temporary)
            else:
                quoting = quoting_of(safe.columns, *_texts(safe))
                safe.to_csv(temporary, index=False, quoting=quoting, errors="backslashreplace")
    except OSError as error:
        raise StorageError(f"cannot write {output}: {reason_of(error)}; choose another place") from error
    return not safe.equals(frame)


def _write_json_lines(frame: pd.DataFrame, path: Path) -> None:
    """A JSON object a row. Numbers come back bit for bit: pandas writes 15 decimals, so that what is almost 1 is 1."""
    columns = [_json_texts(frame.iloc[:, k]) for k in range(frame.shape[1])]
    names = [json.dumps(str(name)) for name in frame.columns]
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        for row in zip(*columns, strict=True):
            handle.write(f"{{{','.join(f'{name}:{text}' for name, text in zip(names, row, strict=True))}}}\n")


def _json_texts(column: pd.Series) -> list[str]:
    """The values of a column as JSON; what is missing or no finite number is null."""
    missing = column.isna().tolist()
    return [
        "null" if gone else json.dumps(json_ready(value), allow_nan=False, default=str)
        for value, gone in zip(column.tolist(), missing, strict=True)
    ]


def write_tables(tables: Iterator[pa.Table], output: str, *, overwrite: bool = False) -> int:
    """Arrow tables of the same columns to one Parquet file, as they come; returns the rows."""
    import pyarrow.parquet as pq

    path, first = Path(output), next(tables)
    rows: int = first.num_rows
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, overwrite=overwrite) as temporary, pq.ParquetWriter(temporary, first.schema) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
                rows += table.num_rows
    except OSError as error:
        raise StorageError(f"cannot write {output}: {reason_of(error)}; choose another place") from error
    return rows


def note_changed(kind: str = ".csv") -> None:
    """Says that names in a CSV or a spreadsheet are not quite those of the data."""
    where, raw = ("a spreadsheet", "") if kind == ".xlsx" else ("CSV", "--raw leaves them, ")
    note(
        f"note: in {where} a quote is put before names that a spreadsheet would run as a formula, and control "
        f"characters and line breaks are escaped; {raw}.parquet and .jsonl keep every name"
    )


def show_first(frame: pd.DataFrame, *, every: bool, write: str = "FILE") -> None:
    """The first rows on the terminal, or every row; and how to get the others."""
    shown = frame if every else frame.head(SHOWN)
    print_table(list(frame.columns), shown.itertuples(index=False))
    if len(shown) < len(frame):
        note(f"{len(frame) - len(shown):,} more; --top N shows more, --output {write} writes all")


def say_written(rows: int, output: str) -> None:
    """Says what was written and where."""
    if not VERBOSITY.quiet:
        print(f"{counted(rows, 'row')} written to {output}")


def _texts(frame: pd.DataFrame) -> list[pd.Series]:
    return [column for _, column in frame.items() if _is_text(column)]


def _is_text(column: pd.Series) -> bool:
    import pandas as pd

    return column.dtype == object or pd.api.types.is_string_dtype(column.dtype)


def _defused(column: pd.Series) -> pd.Series:
    if not _is_text(column):
        return column
    return column.map(lambda text: defused(text) if isinstance(text, str) else text)
