"""Spreadsheets: .xlsx and .ods -> a table in memory, with the packages of the extra ``spreadsheet``."""

from __future__ import annotations

import contextlib
import io
import os
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import iterparse

from ringleader.errors import InputError, SettingsError
from ringleader.runtime.stores import is_url
from ringleader.tables.files import CHUNK, MOST_TIMES, MOST_UNPACKED, SPREADSHEETS

MOST_ROWS = 1_048_575
"""Rows that a sheet holds below its header."""
MOST_CELLS = 50_000_000
"""Cells of a sheet, empty ones between others included: readers of spreadsheets make room for all of them."""
FILLED_CELL = re.compile(rb"""<(?:\w+:)?c\s[^<>]*?\br=["']([A-Z]{1,3})([0-9]{1,7})["'][^<>]*(?<!/)>""")
"""The name of a cell in the XML of a sheet; one without content closes itself."""
ODF_TABLE, ODF_OFFICE, ODF_TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "office", "text")
)


def is_spreadsheet(source: Any) -> bool:
    """Whether a source is a path of a spreadsheet."""
    if not isinstance(source, (str, os.PathLike)) or is_url(source):
        return False
    return Path(source).suffix.lower() in SPREADSHEETS


def read_spreadsheet(source: Any) -> Any:
    """The first sheet of a spreadsheet as a pandas table; ids stay the text or the number they are."""
    import pandas as pd

    path = Path(source)
    if not path.is_file():
        raise InputError(f"there is no file {os.fspath(source)!r}")
    try:
        _need(path)
        _check_size(path)
        with contextlib.redirect_stdout(None):  # a reader prints the parts that it cannot parse
            # Only an empty cell is missing: pandas would take accounts called NA, null or None for missing too.
            return pd.read_excel(path, keep_default_na=False, na_values=[""])
    except InputError:
        raise
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
        packed = io.BytesIO()  # a writer that meets a full disk prints a traceback of its own
        frame.to_excel(packed, index=False, engine="openpyxl")
        path.write_bytes(packed.getvalue())
    except ImportError as error:
        raise SettingsError("writing .xlsx needs another package: pip install 'ringleader[spreadsheet]'") from error


def _check_size(path: Path) -> None:
    """Refuses a spreadsheet that unpacks to far more than its size, or whose sheet has room for too many cells."""
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(member.file_size for member in packed.infolist())
        if unpacked > MOST_UNPACKED and unpacked > MOST_TIMES * path.stat().st_size:
            raise InputError(
                f"{path.name!r} unpacks to more than {MOST_TIMES} times its size, which is not expected of a "
                "review table; if it is one, save it as .csv"
            )
        # What a file is, its content says, whatever it is called.
        cells = _cells_of_ods(packed) if "content.xml" in packed.namelist() else _cells_of_xlsx(packed)
    if cells > MOST_CELLS:
        raise InputError(
            f"{path.name!r} has a cell so far from the top left that its sheet would have {cells:,} cells; "
            f"at most {MOST_CELLS:,} are read: delete everything outside the table, or save it as .csv"
        )


def _cells_of_xlsx(packed: zipfile.ZipFile) -> int:
    """Rows times columns of the largest sheet, by the names of its cells (``XFD1048576``)."""
    largest = 0
    for name in packed.namelist():  # any of them may be a sheet
        rows, columns, rest = 0, b"", b""
        with packed.open(name) as sheet:
            while chunk := sheet.read(CHUNK):
                text = rest + chunk
                for column, row in FILLED_CELL.findall(text):
                    rows, columns = max(rows, int(row)), max(columns, column.rjust(3))
                rest = text[-200:]
        width = 0
        for letter in columns.strip():
            width = 26 * width + letter - 64
        largest = max(largest, rows * width)
    return largest


def _cells_of_ods(packed: zipfile.ZipFile) -> int:
    """Rows times columns of the largest table, a repeated one counted as often as it is repeated; spaces likewise."""
    largest = rows = last_row = columns = width = filled = 0
    with packed.open("content.xml") as content:
        for _, element in iterparse(content):
            match element.tag.rpartition("}")[2]:
                case "table-cell" | "covered-table-cell":
                    width += int(element.get(f"{ODF_TABLE}number-columns-repeated", "1"))
                    filled = width if len(element) or element.get(f"{ODF_OFFICE}value-type") else filled
                case "table-row":
                    rows += int(element.get(f"{ODF_TABLE}number-rows-repeated", "1"))
                    columns, last_row = max(columns, filled), rows if filled else last_row
                    width = filled = 0
                    element.clear()
                case "table":
                    largest, rows, last_row, columns = max(largest, last_row * columns), 0, 0, 0
                case "s":
                    largest = max(largest, int(element.get(f"{ODF_TEXT}c", "1")))
    return largest


def _need(path: Path) -> None:
    """The package that pandas reads and writes a spreadsheet with."""
    if path.suffix.lower() == ".ods":
        import odf  # noqa: F401
    else:
        import openpyxl  # noqa: F401
