"""The first look at a text file: is it text, what separates its fields, is a line a JSON object."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from ringleader.errors import InputError
from ringleader.tables.files import ReviewFile
from ringleader.tables.row_reader import split_record

HEAD_BYTES = 1 << 20
DELIMITERS = ",;\t|"


def text_head(file: ReviewFile, path: Path) -> str:
    """The beginning of a text file, or an error that says why it is none."""
    with path.open("rb") as handle:
        data = handle.read(HEAD_BYTES)
    first = data.splitlines()[0] if data else b""
    if len(data) == HEAD_BYTES and len(first) == HEAD_BYTES:
        raise InputError(f"the first line of {file.name!r}, which names its columns, is longer than a megabyte")
    try:
        header = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\x00" not in first and b"\xff\xfe" not in first[:4]:
            raise InputError(
                f"{file.name!r} is not in UTF-8; if it is in Latin-1, read it with --encoding latin-1"
            ) from None
        header = "\x00"
    check_width(file, first)
    if not header.strip() or any(ord(c) < 32 and c != "\t" for c in header) or data[:4] == b"PAR1":
        raise InputError(f"{file.name!r} does not begin with a line of column names; it is empty or not a text file")
    return data.decode("utf-8-sig", "replace")


def check_first_line(file: ReviewFile, path: Path) -> None:
    """Refuses a file of lines whose first one is in UTF-16 or UTF-32."""
    with path.open("rb") as handle:
        check_width(file, handle.readline(HEAD_BYTES).rstrip(b"\r\n"))


def check_width(file: ReviewFile, first: bytes) -> None:
    """Refuses a first line of two or four bytes a letter, as UTF-16 and UTF-32 have it; their marks are read before."""
    for width in (2, 4):
        lanes = [first[k : len(first) // width * width : width] for k in range(width)]
        for end, letters in (("le", lanes[0]), ("be", lanes[-1])):
            zeros = [lane for lane in lanes if lane is not letters]
            if len(letters) > 1 and all(letters) and not any(map(any, zeros)):
                name = f"utf-{8 * width}"
                raise InputError(
                    f"{file.name!r} looks like {name.upper()} without its mark; read it with --encoding {name}-{end}"
                )


def delimiter_of(head: str) -> str:
    header = next(iter(io.StringIO(head, newline=""))).rstrip("\r\n")
    counts = {d: len(split_record(header, d) or header.split(d)) for d in DELIMITERS}
    return max(DELIMITERS, key=lambda d: (counts[d], d == ","))


def header_of(head: str, delimiter: str, file: ReviewFile) -> list[str]:
    """The names of the columns, from the beginning of a delimited file. Quoted names may hold line breaks."""
    record = ""
    for line in io.StringIO(head, newline=""):  # by line ends alone: U+2028 and the like belong to a name
        record += line
        names = split_record(record.rstrip("\r\n"), delimiter)
        if names:
            return names
        if names is not None:
            break
    raise InputError(f"the first line of {file.name!r}, which names its columns, has a quote out of place")


def json_object(text: str | None) -> dict[str, Any] | None:
    """The object that a text is; None where it is none."""
    try:
        parsed = json.loads(text or "", parse_constant=str, object_pairs_hook=_first_of_each)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys may repeat: the first counts, as for DuckDB."""
    return dict(reversed(pairs))


def json_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
