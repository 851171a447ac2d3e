"""``ringleader report``: one self-contained HTML page about a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.options import Json, Overwrite
from ringleader.cli.terminal import print_json
from ringleader.errors import SettingsError
from ringleader.runtime.outputs import check_writable
from ringleader.wording import harmless


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a model or of an unfinished fit.")],
    output: Annotated[str, typer.Option("--output", metavar="FILE", help="The page to write.")] = "report.html",
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="OTHER_MODEL", help="An earlier model, to show who rose and fell, and what is new."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a model: who to look at and why, groups, charts, settings.

    The page contains no script and loads nothing. Example: ringleader report model --output report.html
    """
    if Path(output).suffix.lower() not in (".html", ".htm"):
        raise SettingsError(f"cannot write {output!r}; name it .html")
    check_writable(output, overwrite=overwrite)
    from ringleader.cli.models import open_detector
    from ringleader.report import write_report

    started = time.perf_counter()
    detector = open_detector(model)
    earlier = open_detector(since) if since is not None else None
    path = write_report(detector, output, earlier, overwrite=overwrite)
    size, seconds = path.stat().st_size, time.perf_counter() - started
    if as_json:
        print_json({"model": model, "report": str(path), "bytes": size, "complete": detector.complete_,
                    "cores": len(detector.cores()), "seconds": round(seconds, 3)})  # fmt: skip
        return
    if not detector.complete_:
        print("note: this fit is unfinished, and the page says so")
    print(
        f"report written to {harmless(str(path), 400)} ({size / 1000:,.0f} kB, {seconds:.1f} s); open it in a browser"
    )
