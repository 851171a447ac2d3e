"""``ringleader cores``: groups that act together, with their members, weeks and reviews."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.models import open_snapshot
from ringleader.cli.options import Json, ModelFolder, Overwrite, Raw, Top
from ringleader.cli.rows import note_changed, put_frame, show_first
from ringleader.cli.terminal import VOICE, note, print_json
from ringleader.errors import StorageError
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

    Example: ringleader cores model --output cores
    """
    if output and not overwrite:
        _refuse_other_files(Path(output))
    snapshot = open_snapshot(model)
    cores, tensor = snapshot.cores(), snapshot.tensor
    if top is not None:
        cores = cores[:top]
    frame = with_verdicts(cores.frame(tensor), snapshot, cores)
    if output:
        write_cores(cores, tensor, output, raw=raw, table=frame)
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
        if not VOICE.quiet:
            print(f"{counted(len(cores), 'core')} written to {output}")
        return
    if not len(cores):
        print("no cores: nobody acts together more than chance and taste explain")
        return
    show_first(frame, every=top is not None, write="DIR")


def _refuse_other_files(folder: Path) -> None:
    """Lists of cores replace earlier ones; a file of the same name that is none, such as a review table, stays.

    Blocks are replaced or removed where the folder has our ``cores.csv``: other programs write files of these names.
    """
    from ringleader.cores.tables import BLOCK

    try:
        there = sorted(path.name for path in folder.iterdir())
    except OSError:  # it is not there, or cannot be read or written either
        there = []
    block = next((name for name in there if BLOCK.fullmatch(name)), None)
    if block is not None and "cores.csv" not in there:
        raise StorageError(f"{folder / block} is of another program; choose another folder, or --overwrite")
    for name in ("cores.csv", "members.csv", "reviews.csv"):
        try:
            with (folder / name).open("rb") as handle:
                header = handle.read(80)
        except OSError:
            continue
        if header.strip(b'"')[:4] != b"core":
            raise StorageError(f"{folder / name} is no list of cores; choose another folder, or --overwrite")


def with_verdicts(frame: pd.DataFrame, snapshot: Snapshot, cores: Cores) -> pd.DataFrame:
    """The table of cores with how many of those who act abuse, and what that makes of each."""
    made, actor = snapshot.verdicts(cores), snapshot.tensor.modes[snapshot.config.contrast]
    frame[free_name("abusive", frame.columns)] = [verdict.abusive[actor] for verdict in made]
    frame[free_name("verdict", frame.columns)] = [verdict.word for verdict in made]
    return frame


def write_cores(
    cores: Cores, tensor: SparseTensor, folder: str, *, raw: bool, table: pd.DataFrame | None = None
) -> None:
    """cores.csv (``table``, where it says more), members.csv, reviews.csv, and the two files of each block."""
    from ringleader.cores import write_blocks

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror or error}; choose another") from error
    tables = {
        "cores": cores.frame(tensor) if table is None else table,
        "members": cores.members_frame(tensor),
        "reviews": cores.reviews_frame(tensor),
    }
    changed = [put_frame(table, str(target / f"{name}.csv"), raw=raw) for name, table in tables.items()]
    write_blocks(cores, tensor, target)
    if any(changed):
        note_changed()
