"""``ringleader benchmark``: figures one can repeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ringleader.cli.options import Json
from ringleader.cli.score import plain_rows
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.errors import SettingsError, StorageError

FIRST_SEED = 1000
"""Seeds of the markets; none of them was used to choose a default."""


def command(
    what: Annotated[str, typer.Argument(metavar="speed|detection|real", help="What to measure.")],
    data: Annotated[str | None, typer.Option("--data", metavar="DIR", help="Folder of the real data.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="Write the figures there too.")] = None,
    reviews: Annotated[
        int | None, typer.Option("--reviews", min=1000, help="Size: 1,000,000 for speed, 150,000 for detection.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Markets, or draws of the folds; 5 or 10.")
    ] = None,
    large: Annotated[int, typer.Option("--large", help="For speed: also this size.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure how fast it is, and how good, beside other methods in the same run.

    Example: ringleader benchmark detection --seeds 5
    """
    runs: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "speed": lambda: _speed(reviews or 1_000_000, large, as_json),
        "detection": lambda: _detection(reviews or 150_000, seeds or 5, as_json),
        "real": lambda: _real(data, seeds or 10, as_json),
    }
    if what not in runs:
        raise SettingsError(f"there is no benchmark {what!r}; choose among {', '.join(runs)}")
    rows = runs[what]()
    if out:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
            (Path(out) / f"{what}.json").write_text(json.dumps(rows, indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write to {out}: {error.strerror or error}") from error
    if as_json:
        print_json({"benchmark": what, "rows": rows})
        return
    print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def _speed(reviews: int, large: int, quiet: bool) -> list[dict[str, Any]]:
    from ringleader.evaluation.speed import speed_report

    return speed_report(reviews, large=large, say=lambda text: note(text, quiet=quiet))


def _detection(reviews: int, seeds: int, quiet: bool) -> list[dict[str, Any]]:
    from ringleader.evaluation.detection import detection_rows, table

    drawn = range(FIRST_SEED, FIRST_SEED + seeds)
    return plain_rows(table(list(detection_rows(seeds=drawn, reviews=reviews, say=lambda t: note(t, quiet=quiet)))))


def _real(data: str | None, repeats: int, quiet: bool) -> list[dict[str, Any]]:
    from ringleader.evaluation.real import compare_on_real_data

    if data is None:
        raise SettingsError("give the folder of the real data with --data DIR")
    rows = []
    for row in compare_on_real_data(data, repeats=repeats):
        note(f"{row.data} {row.protocol} {row.method}: AUC {row.auc:.3f}", quiet=quiet)
        rows.append(row._asdict())
    return plain_rows(pd.DataFrame(rows))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
