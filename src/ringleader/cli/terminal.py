"""What the terminal shows: JSON, plain tables, and lines for the person; hostile names made harmless."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from ringleader.names import harmless


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    json.dump(data, sys.stdout, indent=2, ensure_ascii=True, allow_nan=False, default=_json_text)
    sys.stdout.write("\n")


def _json_text(value: Any) -> str:
    """Times as ISO 8601, anything else as it prints."""
    return str(value.isoformat()) if isinstance(value, date) else str(value)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], limit: int = 60) -> None:
    """Columns padded with blanks, numbers to the right, cells cut at ``limit`` characters."""
    cells = [[harmless(str(cell), limit) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    right = [all(_numeric(row[k]) for row in cells[1:]) for k in range(len(header))]
    for row in cells:
        padded = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        print("  ".join(padded).rstrip())


def _numeric(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit() or text in ("", "-")


def note(text: str, *, quiet: bool = False) -> None:
    """A line for the person, on standard error."""
    if not quiet:
        print(harmless(text, limit=2000), file=sys.stderr)
