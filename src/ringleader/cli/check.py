"""``ringleader check``: read a table, say what is in it, change nothing."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ringleader.cli.options import (
    Axes,
    Columns,
    Json,
    LabelFile,
    MemoryLimit,
    Strict,
    TargetKindOption,
    TempDirectory,
    Threads,
    parse_columns,
)
from ringleader.cli.terminal import print_json, print_table
from ringleader.labels import Labels, read_labels
from ringleader.names import harmless
from ringleader.tables.check import CheckReport
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

EXAMPLES_SHOWN = 8


def command(
    reviews: Annotated[str, typer.Argument(help="File, folder or glob: CSV, TSV, JSONL, Parquet, also .gz, .zst.")],
    labels: LabelFile = None,
    column: Columns = None,
    axis: Axes = None,
    target_kind: TargetKindOption = "binary",
    strict: Strict = False,
    memory_limit: MemoryLimit = None,
    temp_directory: TempDirectory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Read a review table (and labels) and say what is in it.

    Example: ringleader check reviews.parquet --labels labels.csv
    """
    known = read_labels(labels, target_kind=target_kind) if labels else None  # type: ignore[arg-type]
    tensor = read_reviews(
        reviews,
        columns=parse_columns(column),
        modes=axis or None,
        strict=strict,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        threads=threads,
    )
    report = tensor.report
    assert report is not None  # a tensor that was read always has one
    about_labels = describe_labels(known, tensor) if known else None
    if as_json:
        data = report.as_dict()
        if about_labels:
            data["labels"] = about_labels
        print_json(data)
        return
    show(report)
    if about_labels:
        show_labels(about_labels)


def show(report: CheckReport) -> None:
    """The report as a person reads it."""
    for role, name in report.guessed.items():
        if role != name:
            print(f"column {harmless(name)!r} taken as {role}")
    if report.dropped:
        print(f"no column for {', '.join(report.dropped)}: left out")
    print(f"{report.rows:,} rows, {report.used:,} used, {report.cells:,} distinct cells")
    print(f"{report.duplicates:,} exact duplicates (kept as multiplicity)")
    if report.time:
        print(f"times in {report.time.unit}, from {report.time.first} to {report.time.last}")
    print_table(
        ["mode", "column", "entities"],
        [[mode, report.columns[mode], f"{size:,}"] for mode, size in report.modes.items()],
    )
    for warning in report.warnings:
        print(f"note: {harmless(warning, limit=200)}")
    if report.rejected:
        print(f"{sum(report.rejected.values()):,} rows cannot be used:")
        for reason, count in report.rejected.items():
            print(f"  {count:,} {harmless(reason)}")
        for example in report.examples[:EXAMPLES_SHOWN]:
            print(f"    {harmless(example.where)}: {harmless(example.reason)}: {harmless(example.text, limit=100)}")


def describe_labels(labels: Labels, tensor: SparseTensor) -> dict[str, Any]:
    """What the labels say about a tensor, as plain data."""
    aligned = labels.align(tensor)
    return {
        "labels": len(labels),
        "repeated": labels.repeated,
        "skipped": dict(labels.skipped),
        "unknown": dict(aligned.unknown),
        "unknown_examples": list(aligned.examples),
        "targets": [
            {
                "mode": tensor.modes[target.mode],
                "target": target.name,
                "known": len(target.codes),
                "positive": int((target.values > 0).sum()) if target.kind == "binary" else None,
            }
            for target in aligned.targets
        ],
    }


def show_labels(about: dict[str, Any]) -> None:
    print(f"{about['labels']:,} labels")
    print_table(
        ["mode", "target", "known", "positive"],
        [
            [t["mode"], t["target"], f"{t['known']:,}", "-" if t["positive"] is None else f"{t['positive']:,}"]
            for t in about["targets"]
        ],
    )
    for reason, count in about["skipped"].items():
        print(f"note: {count:,} label rows skipped: {reason}")
    for mode, count in about["unknown"].items():
        print(f"note: {count:,} labelled {harmless(mode)}s are not in the reviews")
    if about["unknown_examples"]:
        print(f"      such as {', '.join(harmless(e) for e in about['unknown_examples'])}")
