"""``ringleader evaluate``: how good the scores are on accounts whose truth is known."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from scipy.stats import rankdata

from ringleader.cli.opening import load, targets_of
from ringleader.cli.options import Json
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.detector import RingDetector
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.evaluation.truth import evaluate
from ringleader.labels import Labels, Target, read_labels


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
    labels = _read_truth(detector, truth)
    results = measure(detector, labels, include_known=include_known)
    if not results:
        raise LabelError(f"none of the accounts of {truth} can be evaluated: they are unknown, or known to the model")
    unknown = dict(labels.align(detector.tensor_).unknown)
    if as_json:
        print_json({"model": model, "results": results, "unknown": unknown, "skipped": dict(labels.skipped)})
        return
    show(results)
    for mode, count in unknown.items():
        note(f"{count:,} {mode}s of the truth are not in the reviews")
    for reason, count in labels.skipped.items():
        note(f"{count:,} rows of the truth are skipped: {reason}")


def _read_truth(detector: RingDetector, truth: str) -> Labels:
    """The truth, as numbers where the model learned numbers; plain 1 and 0 are yes and no all the same."""
    if detector.labels_ is None or detector.labels_.target_kind == "binary":
        return read_labels(truth)
    numbers = read_labels(truth, target_kind="real")
    plain = {label.value for label in numbers.entries} <= {0.0, 1.0}
    return read_labels(truth) if plain else numbers


def measure(detector: RingDetector, truth: Labels, *, include_known: bool = False) -> list[dict[str, Any]]:
    """The figures of every target that the truth names, how many accounts were left out, and whose scores they are."""
    aligned = truth.align(detector.tensor_).targets
    if truth.target_kind == "binary":
        results = evaluate(detector, truth, include_known=include_known)
    else:
        results = [found for t in aligned if (found := _numbers(detector, t, include_known)) is not None]
    for target in aligned:
        mode = detector.tensor_.modes[target.mode]
        names = targets_of(detector, mode)
        scored = target.name if target.name in names else next(iter(names), None)
        known = 0 if include_known else int(np.isin(target.codes, _known(detector, target.mode)).sum())
        for result in results:
            if (result["mode"], result["target"]) == (mode, target.name):
                result.update(known_left_out=known, scored_by=scored)
    return results


def _known(detector: RingDetector, mode: int) -> npt.NDArray[np.int32]:
    codes = [t.codes for t in detector.problem_.targets if t.mode == mode]
    return np.concatenate([np.zeros(0, np.int32), *codes])


def _numbers(detector: RingDetector, target: Target, include_known: bool) -> dict[str, Any] | None:
    """How near the values of a real target come to the true ones."""
    codes, true = target.codes, target.values
    if not include_known:
        fresh = ~np.isin(codes, _known(detector, target.mode))
        codes, true = codes[fresh], true[fresh]
    if not len(codes):
        return None
    mode = detector.tensor_.modes[target.mode]
    has = any((t.mode, t.name) == (target.mode, target.name) for t in detector.problem_.targets)
    frame = detector.scores(mode, target.name if has else None).set_index("entity")
    names = detector.tensor_.vocabularies[target.mode].decode(codes)
    said = frame.loc[names, "score"].to_numpy(np.float64)
    varies = len(codes) > 1 and np.ptp(said) > 0 and np.ptp(true) > 0
    ranks = np.corrcoef(rankdata(said), rankdata(true))[0, 1] if varies else None
    error = float(np.sqrt(np.mean((said - true) ** 2))) if has else None
    result: dict[str, Any] = {"mode": mode, "target": target.name, "accounts": len(codes)}
    return result | {
        "rank_correlation": None if ranks is None else float(ranks),
        "error": error,
        "reason": None if varies else "the values, or the scores, are all the same",
    }


def show(results: list[dict[str, Any]]) -> None:
    """The figures as tables, and what is to be known about them."""
    numbers = [result for result in results if "rank_correlation" in result]
    if numbers:
        rows = [
            [r["mode"], r["target"], f"{r['accounts']:,}", *_shown(r, "rank_correlation", "error")] for r in numbers
        ]
        print_table(["mode", "target", "accounts", "rank correlation", "typical error"], rows)
    if len(numbers) < len(results):
        _show_ranking([result for result in results if "rank_correlation" not in result])
    for result in results:
        about = f"{result['mode']} {result['target']}"
        if result["reason"]:
            note(f"{about}: {result['reason']}")
        if result["scored_by"] is None:
            note(f"{about}: the model has no label of a {result['mode']}; measured is the ranking without labels")
        elif result["scored_by"] != result["target"]:
            note(f"{about}: the model has no such target; measured are its scores for {result['scored_by']}")
        if result["known_left_out"]:
            note(f"{about}: {result['known_left_out']:,} left out, whose label the model knows (--include-known)")


def _shown(result: dict[str, Any], *names: str) -> list[str]:
    return ["-" if result[name] is None else f"{result[name]:.3g}" for name in names]


def _show_ranking(results: list[dict[str, Any]]) -> None:
    columns = ["mode", "target", "accounts", "bad", "AUC", "matched AUC", "AP", "P@10", "P@50", "P@100", "calibration"]
    print_table(columns, [_row(result) for result in results])


def _row(result: dict[str, Any]) -> list[str]:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    figures = [result["auc"], result["matched_auc"], result["average_precision"]]
    figures += [result["precision_at"].get(b) for b in metrics.BUDGETS] + [result["calibration_error"]]
    counts = [f"{result['accounts']:,}", f"{result['bad']:,}"]
    return [result["mode"], result["target"], *counts, *map(shown, figures)]
