"""Options that several commands share: how a review table is read, what is scored, how much is said."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli import completion
from ringleader.cli.terminal import VERBOSITY
from ringleader.errors import SettingsError

if TYPE_CHECKING:
    from ringleader.runtime.ray import Ray

LOCAL_CLUSTER = "local"
"""What --ray stands for without an address."""
ADDRESS = re.compile(r"auto|local|ray://.+|[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+")
"""What is an address behind --ray; any other word is not its value."""


def _sets_verbosity(name: str) -> Callable[[typer.Context, bool], bool]:
    """Sets the verbosity. What was said before the name of the command holds behind it too."""

    def set_verbosity(ctx: typer.Context, value: bool) -> bool:
        wanted = value or (ctx.parent is not None and bool(getattr(VERBOSITY, name)))
        setattr(VERBOSITY, name, wanted)
        return wanted

    return set_verbosity


Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=COLUMN",
        autocompletion=completion.columns,
        help="Name the column of a role, such as reviewer=user_id.",
    ),
]
Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=COLUMN[:KIND]",
        help="Build the tensor from these columns instead; KIND is id, category, rating or time=1w (1min, 1h, 1d, 4w).",
    ),
]
Count = Annotated[
    str | None,
    typer.Option("--count", metavar="COLUMN", help="Column with the number of times each row counts; 1 by default."),
]
ReviewTable = Annotated[
    str, typer.Argument(metavar="REVIEWS", help="File, folder or glob: CSV, TSV, JSONL, Parquet, XLSX, ODS; .gz, .zst.")
]
ModelFolder = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a model.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait while another process writes to the model.")]
Keep = Annotated[
    int, typer.Option("--keep", metavar="N", min=0, help="Number of earlier generations to keep for undo.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of every random number.")]
LabelFile = Annotated[
    str | None, typer.Option("--labels", metavar="FILE", help="Known accounts: mode, entity, label[, target].")
]
Strict = Annotated[bool, typer.Option("--strict", help="Reject the table if any row cannot be used.")]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", metavar="SIZE", help="Memory for reading, such as 1GB.")
]
TempDirectory = Annotated[
    str | None, typer.Option("--temp-directory", metavar="DIR", help="Where to put temporary files.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, such as latin-1; UTF-8, UTF-16 or UTF-32 by default.",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", metavar="N", min=1, help="Threads to use; all by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_sets_verbosity("quiet"), help="Print only the result.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", callback=_sets_verbosity("verbose"), help="Show the traceback of an error."),
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="NAME", autocompletion=completion.modes, help="Which entities, such as seller."),
]
TargetName = Annotated[
    str | None,
    typer.Option("--target", metavar="NAME", help="Which target, if there are several."),
]
Top = Annotated[int | None, typer.Option("--top", metavar="N", min=1, help="Only the first N.")]
OutputFile = Annotated[
    str | None, typer.Option("--output", metavar="FILE", help="Write to a .csv, .parquet, .jsonl or .xlsx file.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Write names to CSV unchanged, including formulas and control characters.")
]
TargetKindOption = Annotated[
    str,
    typer.Option(
        "--target-kind",
        metavar="binary|real",
        autocompletion=completion.target_kinds,
        help="Whether labels are yes/no or numbers.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on a Ray cluster; without an address, on a new one on this machine.",
    ),
]
WorkerCount = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="With --ray: processes that share the work.")
]


def with_address(words: list[str]) -> list[str]:
    """The words of a command, with an address behind every ``--ray`` that has none."""
    filled = []
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        filled.append(word)
        if word == "--ray" and not ADDRESS.fullmatch(following):
            filled.append(LOCAL_CLUSTER)
    return filled


def cluster_of(address: str | None, workers: int | None) -> Ray | None:
    """Where a command shall run, by its options --ray and --workers; None for this process."""
    if address is None:
        if workers is not None:
            raise SettingsError("--workers is for a cluster; add --ray, or give --threads")
        return None
    from ringleader.runtime.ray import Ray

    return Ray(address=None if address == LOCAL_CLUSTER else address, workers=workers)


def parse_columns(texts: list[str] | None) -> dict[str, str]:
    """``["reviewer=user_id"]`` as ``{"reviewer": "user_id"}``."""
    columns: dict[str, str] = {}
    for text in texts or []:
        role, equals, column = text.partition("=")
        if not equals or not role or not column:
            raise SettingsError(f"--column {text!r} is invalid; write ROLE=COLUMN, such as reviewer=user_id")
        if role in columns:
            raise SettingsError(f"--column names {role!r} twice")
        columns[role] = column
    return columns
