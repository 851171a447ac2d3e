"""``ringleader baseline``: rank entities by another method, to compare."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.baselines.registry import baseline, baseline_names, baseline_needs_labels, baseline_summary
from ringleader.cli import completion
from ringleader.cli.options import Json, Mode, OutputFile, Overwrite, Raw, Seed, TargetName, Top
from ringleader.cli.reading import ReadingOptions, takes_reading_options, unknown_lines
from ringleader.cli.rows import check_output, say_written, show_first, write_frame
from ringleader.cli.terminal import VERBOSITY, note, print_json, print_table
from ringleader.errors import LabelError, SettingsError

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.arrays import Floats
    from ringleader.baselines.method import Callback
    from ringleader.baselines.method import Progress as Step
    from ringleader.known.labels import Labels
    from ringleader.tensor.sparse import SparseTensor


@takes_reading_options
def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", autocompletion=completion.baselines, help="The method; --list shows them."),
    ] = None,
    reviews: Annotated[str | None, typer.Argument(metavar="REVIEWS", help="File, folder or glob of reviews.")] = None,
    *,
    reading: ReadingOptions,
    mode: Mode = None,
    target: TargetName = None,
    top: Top = None,
    output: OutputFile = None,
    raw: Raw = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method; repeat for more.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the methods and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Rank entities by another method: dense blocks, factorisations, boosting, propagation.

    Example: ringleader baseline mzoom reviews.parquet --mode seller --output sellers.csv
    """
    if list_names:
        _show_names(as_json)
        return
    if name is None or reviews is None or mode is None:
        raise SettingsError("give NAME, REVIEWS and --mode, such as: baseline mzoom reviews.parquet --mode seller")
    check_output(output, overwrite=overwrite, inputs=(reviews, reading.labels))
    quiet = VERBOSITY.quiet or as_json
    values = parse_settings(settings)
    model = baseline(name, **{"random_state": seed, **values})
    if baseline_needs_labels(name) and reading.labels is None:
        raise LabelError(f"{name} learns from known accounts; give them with --labels")
    tables = reading.read(reviews, quiet=quiet)
    tensor, labels = tables.tensor, tables.labels
    tensor.mode_index(mode)  # before the work, not after it
    arrays = None if labels is None else known_arrays(labels, tensor, target, quiet=quiet)
    started = time.perf_counter()
    with step_bar(name, quiet=quiet) as bar:
        scores = model.fit(tensor, arrays, callback=bar).scores(mode)
    seconds = time.perf_counter() - started
    frame = score_frame(tensor, mode, scores)
    if top is not None:
        frame = frame.head(top)
    if output:
        write_frame(frame, output, raw=raw, overwrite=overwrite)
    if as_json:
        about = {"baseline": name, "mode": mode, "seed": seed, "settings": values, "seconds": round(seconds, 3)}
        about |= {"rejected": tables.rejected, "warnings": tables.warnings}
        print_json({**about, "rows": frame.to_dict("records")})
    elif output:
        say_written(len(frame), output)
    else:
        show_first(frame, every=top is not None)


def parse_settings(texts: list[str] | None) -> dict[str, Any]:
    """``["rank=8", "density=geo"]`` as ``{"rank": 8, "density": "geo"}``: values are JSON, or else text."""
    settings: dict[str, Any] = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise SettingsError(f"--set {text!r} is invalid; write KEY=VALUE, such as rank=8")
        if key in settings:
            raise SettingsError(f"--set gives {key!r} twice")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings


def known_arrays(labels: Labels, tensor: SparseTensor, target: str | None, *, quiet: bool) -> dict[str, Floats]:
    """Known accounts as baselines take them, mode -> (n_k,): of one target, ``abuse`` or the only one by default."""
    import numpy as np

    from ringleader.known.labels import DEFAULT_TARGET

    arrays: dict[str, Floats] = {}
    aligned = labels.align(tensor)
    for line in unknown_lines(aligned.unknown, "labels"):
        note(line, quiet=quiet)
    names = {t.name for t in aligned.targets}
    if target is None:
        target = DEFAULT_TARGET if DEFAULT_TARGET in names or len(names) != 1 else next(iter(names))
    if target not in names:
        raise LabelError(f"the labels have no target {target!r}; they have {', '.join(sorted(names))}")
    for one in aligned.targets:
        if one.name == target:
            values = np.full(tensor.shape[one.mode], np.nan)
            values[one.codes] = one.values > 0
            arrays[tensor.modes[one.mode]] = values
    return arrays


def score_frame(tensor: SparseTensor, mode: str, scores: Floats) -> pd.DataFrame:
    """rank, entity, score; most suspicious first, equals in the order of their codes."""
    import numpy as np
    import pandas as pd

    order = np.argsort(-scores, kind="stable")
    entities = tensor.vocabulary(mode).decode(order)
    return pd.DataFrame({"rank": np.arange(1, len(order) + 1), "entity": entities, "score": scores[order]})


@contextmanager
def step_bar(name: str, *, quiet: bool) -> Iterator[Callback]:
    """A bar over the steps of a fit."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    from ringleader.cli.progress import shown_on_terminals

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[objective]}"),
        TimeRemainingColumn(),
    )
    with shown_on_terminals(*columns, quiet=quiet) as progress:
        task = progress.add_task(name, total=None, objective="")

        def after_step(step: Step) -> None:
            objective = "" if step.objective != step.objective else f"objective {step.objective:,.4g}"
            progress.update(task, total=step.total, completed=step.step, objective=objective)

        yield after_step


def _show_names(as_json: bool) -> None:
    names = baseline_names()
    if as_json:
        rows = [{"name": n, "summary": baseline_summary(n), "needs_labels": baseline_needs_labels(n)} for n in names]
        print_json({"baselines": rows})
        return
    lines = [[n, "needed" if baseline_needs_labels(n) else "", baseline_summary(n)] for n in names]
    print_table(["name", "labels", "method"], lines, limit=max(len(line[-1]) for line in lines))
