"""``ringleader update``: take new reviews and labels into a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.options import Columns, Json, LabelFile, ModelFolder, TargetKindOption, parse_columns
from ringleader.cli.reading import reading_notes, unknown_lines
from ringleader.cli.terminal import VOICE, print_json
from ringleader.errors import SchemaError, SettingsError
from ringleader.wording import counted, harmless

if TYPE_CHECKING:
    from ringleader.detector import RingDetector
    from ringleader.tensor.sparse import SparseTensor


def command(
    model: ModelFolder,
    new_reviews: Annotated[str, typer.Argument(metavar="NEW_REVIEWS", help="File, folder or glob of new reviews.")],
    labels: LabelFile = None,
    column: Columns = None,
    target_kind: TargetKindOption = "binary",
    as_json: Json = False,
) -> None:
    """Take new reviews (and labels) into a model; only what they touch moves.

    The columns have the names they had in the fit; --column says where one is called otherwise now.

    Example: ringleader update model monday.parquet
    """
    from ringleader.cli.progress import stop_signals, sweep_bar
    from ringleader.detector import UPDATE_SWEEPS, load
    from ringleader.known.labels import read_labels

    detector = load(model)
    before, reading = detector.tensor_, detector.reading_
    kind = detector.labels_.target_kind if detector.labels_ is not None else target_kind
    known = read_labels(labels, target_kind=kind) if labels else None  # type: ignore[arg-type]
    fresh = read_new(detector, new_reviews, parse_columns(column))
    warnings = reading_notes(fresh, quiet=as_json)
    entries = before.n_cells * (1 + detector.config_.negatives)
    sweep = detector.state_.sweep
    with stop_signals(), sweep_bar(lambda: sweep + UPDATE_SWEEPS, entries, quiet=VOICE.quiet or as_json) as bar:
        detector.partial_fit(fresh, known, callback=bar)
    detector.reading_ = reading  # the names of the fit hold, whatever this file calls its columns
    detector.save(model)
    after = detector.tensor_
    new = {mode: n - o for mode, n, o in zip(after.modes, after.shape, before.shape, strict=True)}
    summary = {
        "model": model,
        "reviews": int(after.counts.sum()),
        "new_reviews": int(after.counts.sum() - before.counts.sum()),
        "cells": after.n_cells,
        "new_entities": new,
        "labels": detector.aligned_.n_labels,
        "unknown_labels": dict(detector.aligned_.unknown),
        "rejected": dict(fresh.report.rejected) if fresh.report is not None else {},
        "warnings": warnings,
    }
    if as_json:
        print_json(summary)
    elif not VOICE.quiet:
        told = [counted(number, f"new {harmless(mode)}") for mode, number in new.items() if number]
        print(", ".join([counted(int(fresh.counts.sum()), "new review"), *(told or ["no new entities"])]))
        for reason, number in (fresh.report.rejected if fresh.report is not None else {}).items():
            print(f"note: {counted(number, 'row')} not used: {harmless(reason, 100)}")
        for line in unknown_lines(detector.aligned_.unknown, "labels"):
            print(harmless(line, 200))
        held = f"{counted(int(after.counts.sum()), 'review')} and {counted(detector.aligned_.n_labels, 'label')}"
        print(f"model {harmless(model, 400)} holds {held} now")


def read_new(detector: RingDetector, source: str, columns: dict[str, str]) -> SparseTensor:
    """New reviews, read as those of the fit were, in the codes of the model; ``columns`` renames by role or mode."""
    from ringleader.tables.schema import ROLE_OF_MODE, parse_axis
    from ringleader.tensor.encode import read_reviews

    axes = [parse_axis(text) for text in detector.reading_["modes"]]
    names = {
        axis.mode: columns.pop(axis.mode, columns.pop(ROLE_OF_MODE.get(axis.mode, axis.mode), None)) for axis in axes
    }
    if columns:
        raise SettingsError(
            f"--column names {next(iter(columns))!r}, but the modes of the model are {', '.join(a.mode for a in axes)}"
        )
    kinds = [text.rpartition(":")[2] for text in detector.reading_["modes"]]
    found = [replace(axis, column=names[axis.mode] or axis.column) for axis in axes]
    modes = [f"{axis.mode}={axis.column}:{kind}" for axis, kind in zip(found, kinds, strict=True)]
    try:
        return read_reviews(source, modes=modes, vocabularies=detector.tensor_.vocabularies)
    except SchemaError as error:
        was = ", ".join(repr(axis.column[:60]) for axis in axes)
        raise SchemaError(
            f"{error}; an update expects the columns of the fit ({was}); where one has another name now, add "
            "--column ROLE=COLUMN"
        ) from error
