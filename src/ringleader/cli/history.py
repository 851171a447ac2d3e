"""``ringleader history``: what a model took in, when, and how far back it can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ringleader.cli.options import Json, ModelFolder
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.wording import counted

if TYPE_CHECKING:
    from ringleader.snapshot import History


def command(model: ModelFolder, as_json: Json = False) -> None:
    """List what was added to a model: when, how much, by which command and version.

    Example: ringleader history model
    """
    from ringleader.snapshot import history

    show_history(model, history(model), as_json=as_json)


def show_history(model: str, listed: History, *, as_json: bool) -> None:
    """The batches, the newest last, and how many of them can be undone."""
    if as_json:
        batches = [batch.to_dict() for batch in listed.batches]
        earlier = [{"generation": g.number, "batches": len(g.batches)} for g in listed.generations]
        print_json({"model": model, "batches": batches, "generations": earlier})
        return
    rows = [
        [str(number), batch.at or "", f"{batch.command} {batch.version}", f"{batch.reviews:,}", f"{batch.known:,}",
         f"{batch.left_out:,}", f"{batch.labels:,}"]
        for number, batch in enumerate(listed.batches, start=1)
    ]  # fmt: skip
    if rows:
        print_table(["batch", "added", "by", "reviews", "known already", "left out", "labels"], rows)
    else:
        typer.echo("this model does not say what it took in: it was written before ringleader kept a history")
    generations = len(listed.generations)
    note(
        f"{counted(generations, 'earlier generation')} can be restored with: ringleader undo"
        if generations
        else "none of it can be undone"
    )
