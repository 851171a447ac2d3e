"""``ringleader check``: read a table, say what is in it, change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.cli.options import Json, ReviewTable, TargetKindOption
from ringleader.cli.reading import ReadingOptions, takes_reading_options, unknown_lines
from ringleader.cli.terminal import print_json, print_table
from ringleader.wording import cell, counted, harmless

if TYPE_CHECKING:
    from ringleader.known.labels import Labels
    from ringleader.tables.check import CheckReport
    from ringleader.tensor.sparse import SparseTensor

EXAMPLES_SHOWN = 8


@takes_reading_options
def command(
    reviews: ReviewTable,
    *,
    reading: ReadingOptions,
    target_kind: TargetKindOption = "binary",
    as_json: Json = False,
) -> None:
    """Read a review table (and labels) and say what is in it.

    Example: ringleader check reviews.parquet --labels labels.csv
    """
    tensor, labels, _ = reading.read(reviews, target_kind=target_kind, quiet=True)  # ``show`` says what was odd
    report = tensor.report
    assert report is not None  # a tensor that was read always has one
    about_labels = describe_labels(labels, tensor) if labels else None
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
    for role in report.missing:
        print(f"no column for {role}: left out; where there is one, name it with --column {role}=COLUMN")
    print(f"{counted(report.rows, 'row')}, {report.used:,} used, {counted(report.cells, 'distinct cell')}")
    if report.counted is not None:
        print(f"column {harmless(report.count or '')!r} says how often each row counts: {report.counted:,} in all")
    print(f"{counted(report.duplicates, 'exact duplicate')} (kept as multiplicity)")
    if report.time:
        print(f"times in {report.time.unit}, from {report.time.first} to {report.time.last}")
    print_table(
        ["mode", "column", "entities"],
        [[mode, report.columns[mode], f"{size:,}"] for mode, size in report.modes.items()],
    )
    for warning in report.warnings:
        print(f"note: {harmless(warning, limit=200)}")
    if report.rejected:
        print(f"{counted(sum(report.rejected.values()), 'row')} cannot be used:")
        for reason, number in report.rejected.items():
            print(f"  {number:,} {harmless(reason, limit=100)}")
        for example in report.examples[:EXAMPLES_SHOWN]:
            where, reason, text = (harmless(t, limit=100) for t in (example.where, example.reason, example.text))
            print(f"    {where}: {reason}: {text}")


def describe_labels(labels: Labels, tensor: SparseTensor) -> dict[str, Any]:
    """What the labels say about a tensor, as data."""
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
    print(counted(about["labels"], "label"))
    print_table(
        ["mode", "target", "known", "positive"],
        [
            [t["mode"], t["target"], *(cell(t[name], thousands=True, missing="-") for name in ("known", "positive"))]
            for t in about["targets"]
        ],
    )
    for reason, number in about["skipped"].items():
        print(f"note: {counted(number, 'label row')} skipped: {reason}")
    for line in unknown_lines(about["unknown"], "labels"):
        print(harmless(line, limit=200))
    if about["unknown_examples"]:
        print(f"      such as {', '.join(harmless(e) for e in about['unknown_examples'])}")
