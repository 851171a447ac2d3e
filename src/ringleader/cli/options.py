"""Options that several commands share: how a review table is read."""

from __future__ import annotations

from typing import Annotated

import typer

from ringleader.errors import SettingsError

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=COLUMN", help="Name the column of a role, such as reviewer=user_id."),
]
Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=COLUMN[:KIND]",
        help="Build the tensor from these columns instead; KIND is id, category, or time=1w (1min, 1h, 1d, 4w).",
    ),
]
LabelFile = Annotated[
    str | None, typer.Option("--labels", metavar="FILE", help="Known accounts: mode, entity, label[, target].")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse the table if any row cannot be used.")]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", metavar="SIZE", help="Memory for reading, such as 1GB.")
]
TempDirectory = Annotated[
    str | None, typer.Option("--temp-directory", metavar="DIR", help="Where to put temporary files.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to use; all by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the result.")]
TargetKindOption = Annotated[
    str, typer.Option("--target-kind", metavar="binary|real", help="Whether labels are yes/no or numbers.")
]


def parse_columns(given: list[str] | None) -> dict[str, str]:
    """``["reviewer=user_id"]`` as ``{"reviewer": "user_id"}``."""
    columns: dict[str, str] = {}
    for text in given or []:
        role, equals, column = text.partition("=")
        if not equals or not role or not column:
            raise SettingsError(f"--column {text!r} makes no sense; write ROLE=COLUMN, such as reviewer=user_id")
        if role in columns:
            raise SettingsError(f"--column names {role!r} twice")
        columns[role] = column
    return columns
