"""``ringleader score``: who is suspicious, most suspicious first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ringleader.cli.opening import load, targets_of
from ringleader.cli.options import Json
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.cores_files import free_name, quoting_of
from ringleader.detector import RingDetector
from ringleader.errors import SettingsError, StorageError
from ringleader.evidence import review_crowd

SHOWN = 20
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def command(
    model: Annotated[str, typer.Argument(help="Folder of a model.")],
    mode: Annotated[str | None, typer.Option("--mode", help="Which entities, such as seller.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Which target, where there are several.")] = None,
    reviews: Annotated[bool, typer.Option("--reviews", help="One row per review instead.")] = False,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the first N.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Write to a .csv, .parquet or .jsonl file.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Do not put a quote before formulas in CSV.")] = False,
    as_json: Json = False,
) -> None:
    """Rank entities (or reviews) by suspicion.

    Example: ringleader score model --mode seller --top 20
    """
    if (mode is None) == (not reviews):
        raise SettingsError("give --mode NAME for entities or --reviews for reviews, and not both")
    if reviews and target is not None:
        raise SettingsError("--target goes with --mode: reviews have evidence, and no targets")
    detector = load(model)
    frame = review_frame(detector) if reviews else detector.scores(mode or "", target)
    if mode is not None and target is None and (targets := targets_of(detector, mode)):
        target = targets[0]
        if len(targets) > 1:
            note(f"these are the scores for {target}; --target gives those for {', '.join(targets[1:])}")
    if top is not None:
        frame = frame.head(top)
    if output:
        write_frame(frame, output, raw=raw)
        if not as_json:
            print(f"{len(frame):,} rows written to {output}")
            return
    if as_json:
        print_json({"model": model, "mode": mode, "target": target, "rows": plain_rows(frame)})
        return
    shown = frame if top is not None else frame.head(SHOWN)
    print_table(list(frame.columns), [[_cell(value) for value in row] for row in shown.itertuples(index=False)])
    if len(shown) < len(frame):
        note(f"{len(frame) - len(shown):,} more; --top N shows more, --output FILE writes all")


def review_frame(detector: RingDetector) -> pd.DataFrame:
    """One row per distinct review, strongest evidence first."""
    found = detector.review_evidence()
    frame = detector.tensor_.decode()
    columns = {
        "log_odds": found.log_odds,
        "evidence": found.evidence,
        "lockstep": detector.lockstep().review_scores,
        "crowd": review_crowd(detector.tensor_, detector.config_.contrast),
    }
    order = np.argsort(-found.evidence, kind="stable")
    for name, values in columns.items():
        frame[free_name(name, frame.columns)] = values
    frame = frame.iloc[order].reset_index(drop=True)
    frame.insert(0, free_name("rank", frame.columns), np.arange(1, len(frame) + 1))
    return frame


def write_frame(frame: pd.DataFrame, output: str, *, raw: bool) -> None:
    """A table to a file of the kind its name says."""
    path = Path(output)
    try:
        if path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        elif path.suffix == ".jsonl":
            # Ten decimals, the default, make small probabilities 0.
            frame.to_json(path, orient="records", lines=True, date_format="iso", double_precision=15)
        elif path.suffix == ".csv":
            safe = frame if raw else frame.apply(_defused)
            if not raw and not safe.equals(frame):
                note("a quote was put before names that a spreadsheet would run as a formula; --raw leaves them")
            safe.to_csv(path, index=False, quoting=quoting_of(*_texts(safe)))
        else:
            raise SettingsError(f"cannot write {output!r}; name it .csv, .parquet or .jsonl")
    except OSError as error:
        raise StorageError(f"cannot write {output}: {error.strerror or error}") from error


def _texts(frame: pd.DataFrame) -> list[pd.Series]:
    return [column for _, column in frame.items() if _is_text(column)]


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object or pd.api.types.is_string_dtype(column.dtype)


def _defused(column: pd.Series) -> pd.Series:
    if not _is_text(column):
        return column
    return column.map(lambda text: f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text)


def plain_rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Rows as JSON takes them: empty instead of NaN, times as text."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)
