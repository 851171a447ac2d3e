"""``ringleader benchmark``: figures one can repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli import completion
from ringleader.cli.options import Json, Overwrite
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.errors import SettingsError
from ringleader.wording import json_ready

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.evaluation.results import Results

FIRST_SEED = 1000
"""Seeds of the markets; none of them was used to choose a default."""
ANSWERS, LARGE_ANSWERS = 100_000, 1_000_000
"""Most reviews of the models whose answers are timed: always, and with ``--large``."""
DEVICE_REVIEWS = 60_000_000
"""Reviews of the market that a GPU sweeps."""


def command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="paper|detection|real|speed", autocompletion=completion.benchmarks, help="What to measure."
        ),
    ],
    data: Annotated[str | None, typer.Option("--data", metavar="DIR", help="Folder of the real data.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Folder for rows, tables and figures.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="For paper: small markets, no tuning; takes minutes.")] = False,
    reviews: Annotated[
        int | None,
        typer.Option("--reviews", metavar="N", min=1000, help="Size of a market; 1,000,000 for speed."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", min=1, help="Number of markets (default 5) or draws of the folds (10)."),
    ] = None,
    large: Annotated[
        int, typer.Option("--large", metavar="N", help="For speed: also this size; answers of up to 1,000,000.")
    ] = 0,
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="cpu|cuda", help="For speed: cuda has sweeps on a GPU; of 60,000,000 reviews."
        ),
    ] = "cpu",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure accuracy and speed, compared with other methods in the same run.

    paper: the published experiments, tables and figures. detection: generated markets, with common methods.
    real: three public data sets. speed: entries per second, and response times of a model of 100,000 reviews.

    Example: ringleader benchmark paper --quick --out results
    """
    from ringleader.evaluation.results import Results

    def say(text: str) -> None:
        note(text, quiet=as_json)

    runs: dict[str, Callable[[], pd.DataFrame]] = {
        "paper": lambda: _paper(results, quick, reviews, seeds, say),
        "detection": lambda: _detection(results, reviews or 150_000, seeds or 5, say),
        "real": lambda: _real(results, data, seeds or 10, say),
        "speed": lambda: _speed(results, reviews, large, device, say),
    }
    if out == "":
        raise SettingsError("the folder has no name; say where to keep the results")
    if what not in runs:
        raise SettingsError(f"there is no benchmark {what!r}; choose among {', '.join(runs)}")
    if quick and what != "paper":
        raise SettingsError(f"--quick is for paper; make {what} smaller with --reviews and --seeds")
    if device not in ("cpu", "cuda") or (device == "cuda" and what != "speed"):
        raise SettingsError(f"--device is {device!r} for {what}; choose cpu, or cuda for speed")
    results = Results(out, overwrite=overwrite)
    rows = runs[what]().to_dict("records")
    if as_json:
        print_json({"benchmark": what, "rows": rows})
        return
    print_table([str(name) for name in rows[0]], [list(row.values()) for row in rows], digits=",.3f")
    if out:
        note(f"tables.md, rows.json and a .csv for each table are in {out}")


def _paper(
    results: Results, quick: bool, reviews: int | None, seeds: int | None, say: Callable[[str], None]
) -> pd.DataFrame:
    from ringleader.evaluation import protocol
    from ringleader.evaluation.machine import describe
    from ringleader.evaluation.paper import QUICK, Plan, paper_figures, paper_markdown, run

    plan = QUICK if quick else Plan()
    plan = plan._replace(reviews=reviews or plan.reviews, seeds=seeds or plan.seeds)
    about = describe()

    def publish() -> None:
        results.publish(about, paper_markdown, paper_figures)

    run(plan, results.keep, say, after_part=publish)
    means = protocol.summary(protocol.Row(*(r[f] for f in protocol.Row._fields)) for r in results.rows["methods"])
    return means[["mode", "method", "seeds", "precision", "recall", "auc", "auc_sd", "matched_auc", "seconds"]]


def _detection(results: Results, reviews: int, seeds: int, say: Callable[[str], None]) -> pd.DataFrame:
    from ringleader.evaluation.detection import detection_rows, table

    drawn = range(FIRST_SEED, FIRST_SEED + seeds)
    rows = []
    for row in detection_rows(seeds=drawn, reviews=reviews, say=say):
        rows.append(row)
        results.keep("markets", row._asdict())
    return _published(results, "detection", table(rows))


def _real(results: Results, data: str | None, repeats: int, say: Callable[[str], None]) -> pd.DataFrame:
    from ringleader.evaluation.real import compare_on_real_data

    if data is None:
        raise SettingsError("give the folder of the real data with --data DIR")
    for row in compare_on_real_data(data, repeats=repeats):
        say(f"{row.data} {row.protocol} {row.method}: AUC {row.auc:.3f}")
        results.keep("real", row._asdict())
    return _published(results, "real", results.frames()["real"])


def _speed(results: Results, reviews: int | None, large: int, device: str, say: Callable[[str], None]) -> pd.DataFrame:
    import pandas as pd

    from ringleader.evaluation.speed import device_report, speed_report

    if device == "cuda":
        report = device_report([reviews or DEVICE_REVIEWS, *([large] if large else [])], say=say)
        return _published(results, "device", pd.DataFrame(report["device"]))
    reviews = reviews or 1_000_000
    sizes = [min(reviews, ANSWERS)] + ([min(large, LARGE_ANSWERS)] if large else [])
    report = speed_report(reviews, large=large, answers=sizes, say=say)
    return pd.concat([_published(results, name, pd.DataFrame(rows)) for name, rows in report.items()])


def _published(results: Results, name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Keeps the summary as a table of its own, where the rows as they came are not it."""
    from ringleader.evaluation.machine import describe

    if name not in results.rows:
        for row in json_ready(frame.to_dict("records")):
            results.keep(name, row)
    results.publish(describe())
    return frame
