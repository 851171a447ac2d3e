"""Where the rows of a benchmark are stored: a folder that is complete after every row, whenever the run is stopped.

``TABLE.csv`` is written anew, whole, as each row arrives: benchmarks have some hundred rows, each of seconds.
``rows.json``, ``tables.md`` and the figures are made anew from all rows so far by ``publish``.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ringleader.errors import StorageError
from ringleader.runtime.outputs import check_writable, whole_file
from ringleader.wording import cell, json_ready

RowDict = dict[str, Any]
Markdown = Callable[[Mapping[str, pd.DataFrame]], str]
Figures = Callable[[Mapping[str, pd.DataFrame]], Mapping[str, str]]
"""Frames of all tables -> SVG text by file name."""


class Results:
    """Rows by table, in memory and, where there is a folder, on disk."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> None:
        """overwrite : whether files of an earlier run may be replaced; else they are refused."""
        self.folder = Path(folder) if folder is not None else None
        self.overwrite = overwrite
        self.written: set[str] = set()
        self.rows: dict[str, list[RowDict]] = {}
        if self.folder is not None and folder is not None:
            # Which tables and figures there will be is not known yet: each that is there is of an earlier run.
            earlier = sorted(p for kind in ("*.csv", "figures/*.svg") for p in self.folder.glob(kind))
            made_of_all = (os.path.join(folder, name) for name in ("rows.json", "tables.md"))
            check_writable(*made_of_all, *earlier, overwrite=overwrite)
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _cannot(self.folder, error) from error

    def keep(self, table: str, row: RowDict) -> None:
        """Stores a row. The first row of a table decides its columns."""
        self.rows.setdefault(table, []).append(row)
        if self.folder is None:
            return
        columns = list(self.rows[table][0])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(row.get(column)) for column in columns] for row in self.rows[table])
        try:
            self._write(f"{table}.csv", text.getvalue())
        except OSError as error:
            raise _cannot(self.folder, error) from error

    def frames(self) -> dict[str, pd.DataFrame]:
        """Every table so far."""
        return {name: pd.DataFrame(rows) for name, rows in self.rows.items()}

    def publish(self, about: str, markdown: Markdown | None = None, figures: Figures | None = None) -> None:
        """Writes JSON, Markdown and figures of all rows so far; does nothing where there is no folder.

        about : where they were measured. markdown : all tables as they stand where None.
        """
        if self.folder is None:
            return
        frames = self.frames()
        text = (markdown or markdown_of_tables)(frames)
        try:
            self._write("rows.json", json.dumps({"about": about, "tables": json_ready(self.rows)}, indent=1) + "\n")
            self._write("tables.md", f"Machine: {about}.\n\n{text}")
            for name, svg in figures(frames).items() if figures is not None else ():
                self._write(name, svg)
        except OSError as error:
            raise _cannot(self.folder, error) from error

    def _write(self, name: str, text: str) -> None:
        """Atomically: an interruption leaves the file that was there."""
        assert self.folder is not None  # publish looked
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        with whole_file(path, overwrite=self.overwrite or name in self.written) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
        self.written.add(name)


def markdown_of_tables(frames: Mapping[str, pd.DataFrame]) -> str:
    """Every table as it stands."""
    parts = []
    for name, frame in frames.items():
        rows = [[cell(value, ".3f") for value in row] for row in frame.itertuples(index=False)]
        parts.append(f"### {name}\n\n{markdown_table(list(frame.columns), rows)}")
    return "\n\n".join(parts) + "\n"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _cannot(folder: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot write to {folder}: {error.strerror or error}; choose another folder with --out")
