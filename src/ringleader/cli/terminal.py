"""What the terminal shows: hostile names made harmless, JSON, plain tables, and how much of it is wanted."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ringleader.wording import harmless


@dataclass
class Voice:
    """How much a person wants to hear: set by --quiet and --verbose, before or behind the name of a command."""

    quiet: bool = False
    verbose: bool = False


VOICE = Voice()


def print_json(data: Any) -> None:
    """One JSON document on standard output. What is no number is null, as JSON wants it."""
    json.dump(_plain(data), sys.stdout, indent=2, ensure_ascii=True, allow_nan=False, default=str)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    """Data as JSON takes it: no NaN, NumPy's numbers as Python's, times as ISO 8601."""
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(held) for held in value]
    if isinstance(value, date):
        return value.isoformat() if value == value else None
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: object, digits: str = ".4g") -> str:
    """A value as a table shows it: nothing for what is missing, a time that begins a day as that day."""
    if value is None or value != value:
        return ""
    if isinstance(value, datetime):
        text = value.isoformat()
        return text.removesuffix("T00:00:00")
    return format(value, digits) if isinstance(value, float) else str(value)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], limit: int = 60, digits: str = ".4g") -> None:
    """Columns padded with blanks, numbers to the right, cells cut at ``limit`` characters."""
    cells = [[harmless(cell(value, digits), limit) for value in row] for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    right = [all(_numeric(row[k]) for row in cells[1:]) for k in range(len(header))]
    for row in cells:
        padded = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right, strict=True)]
        print("  ".join(padded).rstrip())


def _numeric(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit() or text in ("", "-")


def note(text: str, *, quiet: bool = False) -> None:
    """A line for the person, on standard error; not with --quiet."""
    if not (quiet or VOICE.quiet):
        warn(text)


def warn(text: str) -> None:
    """A line that must be seen, on standard error."""
    print(harmless(text, limit=2000), file=sys.stderr)
