"""``ringleader update``: take new reviews, new labels or both into a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.models import KEEP, locked
from ringleader.cli.options import Json, Keep, ModelFolder, TargetKindOption, Wait, parse_columns
from ringleader.cli.reading import (
    ReadingOptions,
    need_a_match,
    reading_notes,
    takes_reading_options,
    unknown_lines,
)
from ringleader.cli.terminal import VERBOSITY, print_json
from ringleader.errors import SchemaError, SettingsError
from ringleader.runtime.machine import now
from ringleader.wording import counted, harmless

if TYPE_CHECKING:
    from ringleader.tensor.sparse import SparseTensor


@partial(takes_reading_options, without=["axis"])  # modes are those of the model
def command(
    model: ModelFolder,
    new_reviews: Annotated[
        str | None, typer.Argument(metavar="NEW_REVIEWS", help="File, folder or glob of new reviews, if any.")
    ] = None,
    *,
    reading: ReadingOptions,
    target_kind: TargetKindOption | None = None,
    again: Annotated[bool, typer.Option("--again", help="Count reviews again that the model already has.")] = False,
    keep: Keep = KEEP,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Add new reviews, new labels or both to a model; only what they affect changes.

    Reviews that the model already has (same in all modes, same rating, same time) are left out, so giving a batch
    again changes nothing, whatever the names of its files and the order of its rows. Columns are expected under the
    names they had in the fit; --column gives other names, --count the column with the number of times each row counts.
    `ringleader history` lists the updates, `ringleader undo` reverts the last one.

    Example: ringleader update model monday.parquet
    """
    if new_reviews is None and reading.labels is None:
        raise SettingsError("there is nothing to add; give NEW_REVIEWS, --labels FILE, or both")
    if new_reviews is None and (reading.column or reading.count):
        named = "--column" if reading.column else "--count"
        raise SettingsError(f"{named} names a column of NEW_REVIEWS; give the new reviews, or leave it out")
    parse_columns(reading.column)  # before the work, not after it
    with locked(model, "update", wait=wait):
        _take_in(model, new_reviews, reading, target_kind, again=again, keep=keep, as_json=as_json)


def _take_in(
    model: str,
    new_reviews: str | None,
    reading: ReadingOptions,
    target_kind: str | None,
    *,
    again: bool,
    keep: int,
    as_json: bool,
) -> None:
    """Load, update and save, while nobody else writes to the model; then say what came of it."""
    from ringleader.cli.progress import stop_signals, sweep_bar
    from ringleader.snapshot import load, save, take_in

    snapshot, stored = load(model)
    before = snapshot.tensor
    known = snapshot.labels.target_kind if snapshot.labels is not None else None
    if known is not None and target_kind not in (None, known):
        raise SettingsError(f"the labels of this model are {known}; {target_kind} ones cannot be added")
    kind = known or target_kind or "binary"
    new_labels = reading.read_labels(kind)
    fresh = read_new(before, snapshot.reading, new_reviews, reading) if new_reviews is not None else None
    warnings = reading_notes(fresh, quiet=as_json) if fresh is not None else []
    if new_labels is not None:
        warnings += need_a_match(new_labels, fresh if fresh is not None else before, strict=reading.strict)
    entries = before.n_cells * (1 + snapshot.config.negatives)
    with stop_signals(), sweep_bar(entries, quiet=VERBOSITY.quiet or as_json) as bar:
        taken = take_in(snapshot, fresh, new_labels, command="update", at=now(), again=again, callback=bar)
    if taken.batch is not None:
        save(taken.snapshot, model, stored, keep=keep, release=True)
    repeats = []  # what was known before; the rest was said when it was read
    said = (taken.said("--again"), taken.said_of_alike(), taken.said_of_duplicates())
    repeats += [sentence for sentence in said if sentence is not None]
    if taken.repeated_labels and new_labels is not None:
        repeats.append(f"the model knew {counted(len(new_labels), 'label')} as given")
    after, aligned = taken.snapshot.tensor, taken.snapshot.aligned
    unknown = new_labels.align(after).unknown if new_labels is not None else {}
    summary = {
        "model": model,
        "taken_in": taken.batch is not None,
        "repeated": taken.repeated.to_dict() if taken.repeated is not None else None,
        "known_already": taken.known,
        "left_out": taken.left_out,
        "reviews": after.n_reviews,
        "new_reviews": taken.reviews - taken.known,
        "counted_again": taken.known - taken.left_out,
        "duplicates": taken.duplicates,
        "cells": after.n_cells,
        "new_entities": {mode: n - o for mode, n, o in zip(after.modes, after.shape, before.shape, strict=True)},
        "labels": aligned.n_labels,
        "new_labels": len(new_labels) if new_labels is not None else 0,
        "unknown_labels": dict(unknown),
        "rejected": dict(fresh.report.rejected) if fresh is not None and fresh.report is not None else {},
        "warnings": [*warnings, *repeats],
    }
    if as_json:
        print_json(summary)
    elif not VERBOSITY.quiet:
        _show(summary, repeats, with_reviews=taken.reviews > taken.left_out)


def _show(summary: dict[str, Any], repeats: Sequence[str], *, with_reviews: bool) -> None:
    """What was known before, what came in, labels of nobody in the reviews, and what the model holds now."""
    for line in repeats:
        print(f"note: {harmless(line, 400)}")
    if not summary["taken_in"]:
        print("nothing was changed")
    elif with_reviews:
        entities = [counted(n, f"new {harmless(mode)}") for mode, n in summary["new_entities"].items() if n]
        again = [f"{summary['counted_again']:,} counted again"] if summary["counted_again"] else []
        print(", ".join([counted(summary["new_reviews"], "new review"), *again, *(entities or ["no new entities"])]))
    else:
        print(f"{counted(summary['new_labels'], 'label')} added")
    for line in unknown_lines(summary["unknown_labels"], "labels"):
        print(harmless(line, 200))
    holds = f"{counted(summary['reviews'], 'review')} and {counted(summary['labels'], 'label')}"
    print(f"model {harmless(summary['model'], 400)} holds {holds} now")


def read_new(before: SparseTensor, how: Mapping[str, Any], source: str, reading: ReadingOptions) -> SparseTensor:
    """New reviews, read as those of the fit were (``how``), in the codes of the model; columns are renamed by role.

    Their report gives columns the names of the fit, so that the next update expects those again.
    """
    from ringleader.tables.schema import ROLE_OF_MODE, parse_axis

    modes, count = how.get("modes", ()), reading.count or how.get("count")
    if not modes:
        raise SettingsError("this model was not fitted to a table; add new reviews with partial_fit from Python")
    axes, columns = [parse_axis(text) for text in modes], parse_columns(reading.column)
    renamed = {
        axis.mode: columns.pop(axis.mode, columns.pop(ROLE_OF_MODE.get(axis.mode, axis.mode), axis.column))
        for axis in axes
    }
    if columns:
        raise SettingsError(
            f"--column names {next(iter(columns))!r}, but the modes of the model are {', '.join(a.mode for a in axes)}"
        )
    kinds = [text.rpartition(":")[2] for text in modes]
    here = [f"{axis.mode}={renamed[axis.mode]}:{kind}" for axis, kind in zip(axes, kinds, strict=True)]
    try:
        fresh = reading.read_reviews(source, modes=here, count=count, vocabularies=before.vocabularies)
    except SchemaError as error:
        expected = ", ".join(repr(name[:60]) for name in [*(axis.column for axis in axes), *([count] if count else [])])
        raise SchemaError(
            f"{error.message}; an update expects the columns of the fit ({expected}); where one has another name now, "
            f"add --column ROLE=COLUMN{', or --count COLUMN' if count else ''}"
        ) from error
    assert fresh.report is not None  # a tensor that was read always has one
    return replace(fresh, report=replace(fresh.report, columns={axis.mode: axis.column for axis in axes}))
