"""``ringleader evaluate``: how good the scores are on accounts whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ringleader.cli.models import open_detector
from ringleader.cli.options import Encoding, Json, ModelFolder
from ringleader.cli.reading import unknown_lines
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.errors import LabelError
from ringleader.wording import cell, counted


def command(
    model: ModelFolder,
    truth: Annotated[str, typer.Option("--truth", metavar="FILE", help="The truth: mode, entity, label[, target].")],
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also evaluate on accounts that the model was given labels for.")
    ] = False,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Measure scores on your own labels: AUC, average precision, precision at a budget, calibration.

    Accounts whose label the model was given are left out.

    Example: ringleader evaluate model --truth truth.csv
    """
    from ringleader.evaluation.truth import evaluate, read_truth

    detector = open_detector(model)
    labels = read_truth(detector, truth, encoding=encoding)
    results = evaluate(detector, labels, include_known=include_known)
    if not results:
        raise LabelError(
            f"none of the accounts of {truth} can be evaluated: they are not in the reviews, or the model was given "
            "their labels; give the truth of others, or count them too with --include-known"
        )
    unknown = dict(labels.align(detector.tensor_).unknown)
    if as_json:
        print_json({"model": model, "results": results, "unknown": unknown, "skipped": dict(labels.skipped)})
        return
    show(results)
    for line in unknown_lines(unknown, "truth"):
        note(line)
    for reason, number in labels.skipped.items():
        note(f"note: {counted(number, 'row')} of the truth skipped: {reason}")


def show(results: list[dict[str, Any]]) -> None:
    """The figures as tables, and what is to be known about them."""
    numbers = [result for result in results if "rank_correlation" in result]
    if numbers:
        rows = [
            [r["mode"], r["target"], f"{r['accounts']:,}", *_figures([r["rank_correlation"], r["error"]], ".3g")]
            for r in numbers
        ]
        print_table(["mode", "target", "accounts", "rank correlation", "typical error"], rows)
    if len(numbers) < len(results):
        _show_ranking([result for result in results if "rank_correlation" not in result])
    for result in results:
        about = f"{result['mode']} {result['target']}"
        if result["reason"]:
            note(f"{about}: {result['reason']}")
        if result["scored_by"] is None:
            note(
                f"{about}: the model has no label of a {result['mode']}; its score was measured, "
                "which is not a probability"
            )
        elif result["scored_by"] != result["target"]:
            note(f"{about}: the model has no such target; its scores for {result['scored_by']} were measured")
        if result["known_left_out"]:
            note(
                f"{about}: {result['known_left_out']:,} left out, as the model was given their labels (--include-known)"
            )


def _figures(values: Iterable[float | None], digits: str) -> list[str]:
    return [cell(value, digits, missing="-") for value in values]


def _show_ranking(results: list[dict[str, Any]]) -> None:
    from ringleader.evaluation.metrics import BUDGETS

    precision = [f"P@{budget}" for budget in BUDGETS]
    columns = ["mode", "target", "accounts", "bad", "AUC", "matched AUC", "AP", *precision, "calibration"]
    print_table(columns, [_row(result, BUDGETS) for result in results])


def _row(result: dict[str, Any], budgets: Iterable[int]) -> list[str]:
    figures = [result["auc"], result["matched_auc"], result["average_precision"]]
    figures += [result["precision_at"].get(b) for b in budgets] + [result["calibration_error"]]
    counts = [f"{result['accounts']:,}", f"{result['bad']:,}"]
    return [result["mode"], result["target"], *counts, *_figures(figures, ".3f")]
