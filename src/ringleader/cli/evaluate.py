"""``ringleader evaluate``: how good the scores are on accounts whose truth is known."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ringleader.cli.options import Json
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.detector import load
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.evaluation.truth import evaluate
from ringleader.labels import read_labels


def command(
    model: Annotated[str, typer.Argument(help="Folder of a model.")],
    truth: Annotated[str, typer.Option("--truth", metavar="FILE", help="What is true: mode, entity, label[, target].")],
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also count the accounts the model was given labels for.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure scores on your own labels: AUC, average precision, precision at a budget, calibration.

    Accounts whose label the model was given are left out. Example: ringleader evaluate model --truth truth.csv
    """
    detector = load(model)
    results = evaluate(detector, read_labels(truth), include_known=include_known)
    if not results:
        raise LabelError(f"none of the accounts of {truth} can be evaluated: they are unknown, or known to the model")
    if as_json:
        print_json({"model": model, "results": results})
        return
    show(results)


def show(results: list[dict[str, Any]]) -> None:
    """The figures as a table."""
    columns = ["mode", "target", "accounts", "bad", "AUC", "matched AUC", "AP", "P@10", "P@50", "P@100", "calibration"]
    print_table(columns, [_row(result) for result in results])
    for result in results:
        if result["reason"]:
            note(f"{result['mode']} {result['target']}: {result['reason']}")


def _row(result: dict[str, Any]) -> list[str]:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    figures = [result["auc"], result["matched_auc"], result["average_precision"]]
    figures += [result["precision_at"].get(b) for b in metrics.BUDGETS] + [result["calibration_error"]]
    counts = [f"{result['accounts']:,}", f"{result['bad']:,}"]
    return [result["mode"], result["target"], *counts, *map(shown, figures)]
