"""``ringleader benchmark``: figures one can repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.options import Json
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.errors import SettingsError, StorageError
from ringleader.evaluation.speed import speed_report


def command(
    what: Annotated[str, typer.Argument(metavar="speed", help="What to measure.")],
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="Write the figures there too.")] = None,
    reviews: Annotated[int, typer.Option("--reviews", min=1000, help="Size of the tensor.")] = 1_000_000,
    large: Annotated[int, typer.Option("--large", help="Also this size, for the slope.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure how fast a fit is, beside pyttb in the same run where that is installed.

    Example: ringleader benchmark speed
    """
    if what != "speed":
        raise SettingsError(f"there is no benchmark {what!r}; choose speed")
    rows = speed_report(reviews, large=large, say=lambda text: note(text, quiet=as_json))
    if out:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
            (Path(out) / "speed.json").write_text(json.dumps(rows, indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write to {out}: {error.strerror or error}") from error
    if as_json:
        print_json({"benchmark": what, "reviews": reviews, "rows": rows})
        return
    print_table(
        ["what", "value", "unit", "asked", "note"],
        [[r["what"], f"{r['value']:,.2f}", r["unit"], r["asked"], r["note"]] for r in rows],
    )
