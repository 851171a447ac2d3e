"""What the terminal shows: hostile names made harmless, JSON, and plain tables."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Unicode categories that steer a terminal or hide text: controls, bidi marks, surrogates, separators."""


def harmless(text: str, limit: int = 60) -> str:
    """A name as it may be shown: control and direction characters spelt out, length limited."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if unicodedata.category(c) not in HIDDEN else f"\\u{ord(c):04x}" for c in short)


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
