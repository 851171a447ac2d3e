"""Spreadsheets: .xlsx and .ods -> a table in memory, with the packages of the extra ``spreadsheet``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ringleader.errors import InputError, SettingsError

SPREADSHEETS = (".xlsx", ".ods")
MOST_ROWS = 1_048_575
"""Rows that a sheet holds below its header."""


def is_spreadsheet(source: Any) -> bool:
    """Whether a source is a path of a spreadsheet."""
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() in SPREADSHEETS


def read_spreadsheet(source: Any) -> Any:
    """The first sheet of a spreadsheet as a pandas table; ids stay the text or the number they are."""
    import pandas as pd

    path = Path(source)
    if not path.is_file():
        raise InputError(f"there is no file {os.fspath(source)!r}")
    try:
        _need(path)
        return pd.read_excel(path)
    except ImportError as error:
        raise SettingsError(
            f"{path.name!r} needs another package: pip install 'ringleader[spreadsheet]', or save it as .csv"
        ) from error
    except Exception as error:  # whatever the packages make of a damaged file
        raise InputError(f"{path.name!r} cannot be read as a spreadsheet: {str(error)[:200]}") from error


def write_spreadsheet(frame: Any, path: Path) -> None:
    """A pandas table as .xlsx. Texts that a spreadsheet would run must be defused before."""
    if len(frame) > MOST_ROWS:
        raise SettingsError(
            f"{len(frame):,} rows do not fit a sheet, which holds {MOST_ROWS:,}; write .csv or .parquet"
        )
    try:
        _need(path)
        with path.open("wb") as handle:  # pandas would choose a writer by the end of a path
            frame.to_excel(handle, index=False, engine="openpyxl")
    except ImportError as error:
        raise SettingsError("writing .xlsx needs another package: pip install 'ringleader[spreadsheet]'") from error


def _need(path: Path) -> None:
    """The package that pandas reads and writes a spreadsheet with."""
    if path.suffix.lower() == ".ods":
        import odf  # noqa: F401
    else:
        import openpyxl  # noqa: F401
