"""``ringleader cores``: groups that act together, with their members, weeks and reviews."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.opening import load
from ringleader.cli.options import Json
from ringleader.cli.score import plain_rows, write_frame
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.cores import Cores, write_blocks
from ringleader.errors import StorageError
from ringleader.tensor.sparse import SparseTensor

SHOWN = 20


def command(
    model: Annotated[str, typer.Argument(help="Folder of a model.")],
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the first N.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="DIR", help="Write cores.csv, members.csv, reviews.csv and block files there."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Do not put a quote before formulas in CSV.")] = False,
    as_json: Json = False,
) -> None:
    """List the groups that act in lockstep, the most significant first.

    Example: ringleader cores model --output cores
    """
    detector = load(model)
    cores, tensor = detector.cores(), detector.tensor_
    if top is not None:
        cores = cores[:top]
    if output:
        write_cores(cores, tensor, output, raw=raw)
    frame = cores.frame(tensor)
    if as_json:
        members = cores.members_frame(tensor)
        rows = plain_rows(frame)
        for row, core in zip(rows, cores, strict=True):
            row["members"] = plain_rows(members[members["core"] == core.number].drop(columns="core"))
        print_json({"model": model, "cores": rows})
        return
    if output:
        print(f"{len(cores):,} cores written to {output}")
        return
    if not len(cores):
        print("no cores: nobody acts together more than chance and taste explain")
        return
    shown = frame if top is not None else frame.head(SHOWN)
    print_table(list(frame.columns), [[_cell(value) for value in row] for row in shown.itertuples(index=False)])
    if len(shown) < len(frame):
        note(f"{len(frame) - len(shown):,} more; --top N shows more, --output DIR writes all")


def write_cores(cores: Cores, tensor: SparseTensor, folder: str, *, raw: bool) -> None:
    """cores.csv, members.csv, reviews.csv, and the two files of each block."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror or error}; choose another") from error
    write_frame(cores.frame(tensor), str(target / "cores.csv"), raw=raw)
    write_frame(cores.members_frame(tensor), str(target / "members.csv"), raw=raw)
    write_frame(cores.reviews_frame(tensor), str(target / "reviews.csv"), raw=raw)
    write_blocks(cores, tensor, target)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
