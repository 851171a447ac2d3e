"""``ringleader update``: take new reviews and labels into a model."""

from __future__ import annotations

from typing import Annotated

import typer

from ringleader.cli.options import Json, LabelFile, Quiet, TargetKindOption
from ringleader.cli.progress import stop_signals, sweep_bar
from ringleader.cli.terminal import print_json
from ringleader.detector import UPDATE_SWEEPS, load
from ringleader.labels import read_labels


def command(
    model: Annotated[str, typer.Argument(help="Folder of a model.")],
    new_reviews: Annotated[str, typer.Argument(metavar="NEW_REVIEWS", help="File, folder or glob of new reviews.")],
    labels: LabelFile = None,
    target_kind: TargetKindOption = "binary",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take new reviews (and labels) into a model; only what they touch moves.

    Example: ringleader update model monday.parquet
    """
    detector = load(model)
    before = detector.tensor_
    kind = detector.labels_.target_kind if detector.labels_ is not None else target_kind
    known = read_labels(labels, target_kind=kind) if labels else None  # type: ignore[arg-type]
    entries = before.n_cells * (1 + detector.config_.negatives)
    sweep = detector.state_.sweep
    with stop_signals(), sweep_bar(lambda: sweep + UPDATE_SWEEPS, entries, quiet=quiet or as_json) as bar:
        detector.partial_fit(new_reviews, known, callback=bar)
    detector.save(model)
    after = detector.tensor_
    rejected = dict(after.report.rejected) if after.report is not None else {}
    new = {mode: n - o for mode, n, o in zip(after.modes, after.shape, before.shape, strict=True)}
    summary = {
        "model": model,
        "reviews": int(after.counts.sum()),
        "new_reviews": int(after.counts.sum() - before.counts.sum()),
        "cells": after.n_cells,
        "new_entities": new,
        "labels": detector.aligned_.n_labels,
        "unknown_labels": dict(detector.aligned_.unknown),
        "rejected": rejected,
    }
    if as_json:
        print_json(summary)
    elif not quiet:
        told = ", ".join(f"{count:,} new {mode}s" for mode, count in new.items() if count) or "no new entities"
        print(f"{summary['new_reviews']:,} new reviews, {told}")
        for reason, count in rejected.items():
            print(f"note: {count:,} rows not used: {reason}")
        print(f"model {model} holds {summary['reviews']:,} reviews and {summary['labels']:,} labels now")
