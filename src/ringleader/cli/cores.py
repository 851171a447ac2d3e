"""``ringleader cores``: groups that act together, with their members, weeks and reviews."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.models import open_snapshot
from ringleader.cli.options import Json, ModelFolder, Overwrite, Raw, Top
from ringleader.cli.rows import note_changed, put_frame, show_first
from ringleader.cli.terminal import VERBOSITY, note, print_json
from ringleader.errors import SettingsError, StorageError
from ringleader.runtime.outputs import check_writable, reason_of
from ringleader.wording import counted, free_name

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.cores import Cores
    from ringleader.snapshot import Snapshot
    from ringleader.tensor.sparse import SparseTensor


def command(
    model: ModelFolder,
    top: Top = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="DIR", help="Write cores.csv, members.csv, reviews.csv and block files there."
        ),
    ] = None,
    raw: Raw = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """List the groups that act in lockstep, the most significant first.

    The column abusive is the estimated number of abusive reviewers; the verdict is "ring" from three
    quarters of them, "honest group?" up to one quarter.

    Example: ringleader cores model --output cores
    """
    if output is not None:
        if not output:
            raise SettingsError("the folder has no name; say where to write the cores")
        check_writable(*_files(output), overwrite=overwrite)
    snapshot = open_snapshot(model)
    cores, tensor = snapshot.cores(), snapshot.tensor
    if top is not None:
        cores = cores[:top]
    frame = with_verdicts(cores.frame(tensor), snapshot, cores)
    if output:
        write_cores(cores, tensor, output, raw=raw, overwrite=overwrite, table=frame)
    if as_json:
        members = cores.members_frame(tensor)
        rows = [
            {**row, "members": members[members["core"] == core.number].drop(columns="core").to_dict("records")}
            for row, core in zip(frame.to_dict("records"), cores, strict=True)
        ]
        print_json({"model": model, "cores": rows, "warnings": [cores.doubt] if cores.doubt else []})
        return
    if cores.doubt:
        note(f"note: {cores.doubt}")
    if output:
        if not VERBOSITY.quiet:
            print(f"{counted(len(cores), 'core')} written to {output}")
        return
    if not len(cores):
        print("no cores: nobody acts together more than chance and taste explain")
        return
    show_first(frame, every=top is not None, write="DIR")


def _files(folder: str) -> list[str]:
    """What is written to a folder, or replaced or removed there."""
    from ringleader.cores.tables import block_files

    names = ("cores.csv", "members.csv", "reviews.csv", *(path.name for path in block_files(Path(folder))))
    return [os.path.join(folder, name) for name in names]


def with_verdicts(frame: pd.DataFrame, snapshot: Snapshot, cores: Cores) -> pd.DataFrame:
    """The table of cores with how many of those who act abuse, and what that makes of each."""
    made, actor = snapshot.verdicts(cores), snapshot.tensor.modes[snapshot.config.contrast]
    frame[free_name("abusive", frame.columns)] = [round(verdict.abusive[actor], 1) for verdict in made]
    frame[free_name("verdict", frame.columns)] = [verdict.word for verdict in made]
    return frame


def write_cores(
    cores: Cores,
    tensor: SparseTensor,
    folder: str,
    *,
    raw: bool,
    overwrite: bool = False,
    table: pd.DataFrame | None = None,
) -> None:
    """cores.csv (``table``, where it says more), members.csv, reviews.csv, and the two files of each block."""
    from ringleader.cores import write_blocks

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {reason_of(error)}; choose another") from error
    tables = {
        "cores": cores.frame(tensor) if table is None else table,
        "members": cores.members_frame(tensor),
        "reviews": cores.reviews_frame(tensor),
    }
    changed = [
        put_frame(table, str(target / f"{name}.csv"), raw=raw, overwrite=overwrite) for name, table in tables.items()
    ]
    write_blocks(cores, tensor, target, overwrite=overwrite)
    if any(changed):
        note_changed()
