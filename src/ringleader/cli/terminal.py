"""What the terminal shows: hostile names made harmless, JSON, tables, and how much of it is wanted."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringleader.errors import RunWarning
from ringleader.wording import cell, harmless, json_ready


@dataclass
class Verbosity:
    """How much a person wants to hear: set by --quiet and --verbose, before or behind the name of a command.

    events : a program reads along: all that a command says on standard error is JSON, one object a line
    """

    quiet: bool = False
    verbose: bool = False
    events: bool = False


VERBOSITY = Verbosity()


def print_json(data: Any) -> None:
    """One JSON document on standard output. What is not a number is null, as JSON wants it."""
    json.dump(json_ready(data), sys.stdout, indent=2, ensure_ascii=True, allow_nan=False, default=str)
    sys.stdout.write("\n")


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], limit: int = 60, digits: str = ".4g") -> None:
    """Columns two blanks apart, numbers to the right, cells cut at ``limit`` characters.

    Lines are never cut or folded to the width of the terminal: they are the same in a pipe, and ids stay whole. Rich
    says how wide letters are; its tables would take 0.5 ms for each row, ten seconds for 20,000.
    """
    from rich.cells import cell_len

    cells = [[harmless(cell(value, digits), limit) for value in row] for row in (header, *rows)]
    lengths = [[cell_len(text) for text in row] for row in cells]
    widths = [max(column) for column in zip(*lengths, strict=True)]
    numeric = [all(_numeric(row[k]) for row in cells[1:]) for k in range(len(header))]
    for row, taken in zip(cells, lengths, strict=True):
        blanks = [" " * (width - length) for width, length in zip(widths, taken, strict=True)]
        padded = [b + text if n else text + b for text, b, n in zip(row, blanks, numeric, strict=True)]
        print("  ".join(padded).rstrip())


def _numeric(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdigit() or text in ("", "-")


def say_event(event: str, **about: Any) -> None:
    """One event as a line of JSON on standard error."""
    line = json.dumps(json_ready({"event": event, **about}), allow_nan=False, default=str)
    print(line, file=sys.stderr, flush=True)


def say_stopped(message: str, status: int) -> None:
    """What a signal that ends a command has stopped; status : of its exit"""
    if VERBOSITY.events:
        say_event("stopped", message=message, status=status)
    else:
        warn(message)


@contextmanager
def run_warnings(*, quiet: bool) -> Iterator[None]:
    """Within it, what is warned of while a fit runs is said at once, in one line, or as an event."""

    def say(message: Warning | str, *about: object, **more: object) -> None:
        if VERBOSITY.events:
            say_event("note", message=str(message))
        else:
            note(f"note: {message}", quiet=quiet)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RunWarning)
        warnings.showwarning = say
        yield


def note(text: str, *, quiet: bool = False) -> None:
    """A line for the person, on standard error; not with --quiet."""
    if not (quiet or VERBOSITY.quiet):
        warn(text)


def warn(text: str) -> None:
    """A line that must be seen, on standard error."""
    print(harmless(text, limit=2000), file=sys.stderr)
