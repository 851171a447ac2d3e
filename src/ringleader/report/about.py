"""What was read, which settings were used, and how to make the model again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ringleader.detector import RingDetector
from ringleader.report.context import Table
from ringleader.tables.schema import DEFAULT_MODES, ROLE_OF_MODE
from ringleader.wording import counted, harmless

EXAMPLES = 8
IN_MEMORY = "the table"
"""What the gate calls a table that is no file."""
FLAGS = {
    **{name: f"--{name}" for name in ("preset", "learner", "rank", "epochs", "contrast", "holdout", "patience")},
    **{"heldout_reviews": "--heldout-reviews", "random_state": "--seed"},
}
"""Parameters of the detector that the command line has."""
PYTHON_ONLY = ("negatives", "count_weight", "settings")


def check_report(model: RingDetector) -> Mapping[str, Any] | None:
    """What was read and what was refused; None where the reviews came as a tensor."""
    return model.snapshot_.report


def source_name(report: Mapping[str, Any] | None) -> str:
    """The last part of the path the reviews came from; empty where they came from no file."""
    if report is None or report["source"] == IN_MEMORY:
        return ""
    return harmless(str(report["source"]).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def quality(model: RingDetector, report: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Notes on the data, the worst first."""
    notes = []
    if report is None:
        notes.append("The reviews came as arrays, not as a table, so nothing is known about rejected rows.")
    else:
        for reason, count in sorted(report["rejected"].items(), key=lambda item: -item[1]):
            notes.append(f"{counted(count, 'row')} could not be used: {harmless(reason, 120)}.")
        notes += [harmless(warning, 300) for warning in report["warnings"]]
        if report["dropped"]:
            roles = ", ".join(harmless(ROLE_OF_MODE.get(mode, mode)) for mode in report["dropped"])
            notes.append(f"There was no column for {roles}; the model does without.")
        notes.append(
            f"{counted(report['rows'], 'row')} read, {report['used']:,} used, {report['cells']:,} of them distinct; "
            f"{counted(report['duplicates'], 'exact duplicate')} kept as multiplicity."
        )
        if report.get("counted") is not None:
            notes.append(
                f"The column {harmless(report['count'])} says how often each row counts: {report['counted']:,} in all."
            )
        if _counted(report) != int(model.tensor_.counts.sum()):
            notes.append("These figures are of the table that was read last; the model holds earlier ones too.")
    for mode, count in model.aligned_.unknown.items():
        notes.append(f"{counted(count, f'labelled {harmless(mode, 30)}')} not in the reviews; their labels are unused.")
    for mode, count in model.user_columns_.unknown.items():
        notes.append(f"{counted(count, harmless(mode, 30))} of the covariates not in the reviews.")
    return tuple(notes)


def examples(report: Mapping[str, Any] | None) -> Table:
    """Rows that could not be used, as they were."""
    rejected = report["examples"] if report is not None else []
    rows = tuple(tuple(harmless(str(row[c]), 100) for c in ("where", "reason", "text")) for row in rejected[:EXAMPLES])
    return Table(("where", "reason", "text"), rows, max(len(rejected) - EXAMPLES, 0))


def modes(model: RingDetector, report: Mapping[str, Any] | None) -> Table:
    """The modes of the tensor."""
    columns = report["columns"] if report is not None else {}
    rows = tuple(
        (harmless(v.mode), harmless(str(columns.get(v.mode, ""))), v.kind, f"{len(v):,}")
        for v in model.tensor_.vocabularies
    )
    return Table(("mode", "column", "kind", "entities"), rows)


def settings(model: RingDetector) -> Table:
    """Every setting the fit used. Threads and backend are left out: the answer does not depend on them."""
    values = {"preset": model.preset, "holdout": model.holdout, "prevalence": model.prevalence}
    values |= {name: value for name, value in model.config_.to_dict().items() if name not in ("threads", "backend")}
    return Table(("setting", "value"), tuple((name, _value(value)) for name, value in values.items()))


def command(model: RingDetector, report: Mapping[str, Any] | None) -> tuple[str, tuple[str, ...]]:
    """The command that makes the model again, and what it cannot say."""
    named = report is not None and bool(source_name(report))
    words = ["ringleader", "fit", _word(str(report["source"])) if report is not None and named else "REVIEWS"]
    notes = [] if named else ["REVIEWS stands for the reviews, which came from memory and not from a file."]
    if model.labels_ is not None:
        words += ["--labels", "LABELS"]
        notes.append("LABELS is the file of known accounts; a model keeps the labels but not their file.")
        if model.labels_.target_kind == "real":
            words += ["--target-kind", "real"]
    if model.covariates_ is not None:
        words += ["--covariates", "COVARIATES"]
    words += _columns(model, report)
    usual = type(model)().get_params()
    for name, flag in FLAGS.items():
        value = getattr(model, name)
        if value != usual[name] or name == "random_state":
            words += [flag, _word(str(model.config_.seed if name == "random_state" else value))]
    if model.joint is not None:
        words.append("--joint" if model.joint else "--no-joint")
    shares = model.prevalence if isinstance(model.prevalence, Mapping) else {"": model.prevalence}
    for mode, share in shares.items():
        if share is not None:
            words += ["--prevalence", _word(f"{mode}={share:g}" if mode else f"{share:g}")]
    words += ["--out", "MODEL"]
    python = [name for name in PYTHON_ONLY if getattr(model, name) is not None]
    if python:
        notes.append(f"{', '.join(python)} can be set from Python only: see the settings.")
    if report is not None and _counted(report) != int(model.tensor_.counts.sum()):
        notes.append(
            "The model was updated with more than one table: fit the first, then ringleader update MODEL NEXT."
        )
    return " ".join(words), tuple(notes)


def _counted(report: Mapping[str, Any]) -> int:
    """How often the rows that were used count."""
    counted: int = report["used"] if report.get("counted") is None else report["counted"]
    return counted


def _columns(model: RingDetector, report: Mapping[str, Any] | None) -> list[str]:
    """Options that read the same modes from the same columns."""
    words = []
    roles = {mode: ROLE_OF_MODE.get(mode, mode) for mode in DEFAULT_MODES}
    dropped = {roles.get(mode, mode) for mode in report["dropped"]} if report is not None else set()  # modes or roles
    if report is not None and {*report["columns"]} == {mode for mode, role in roles.items() if role not in dropped}:
        for mode, column in report["columns"].items():
            if column != roles[mode]:
                words += ["--column", _word(f"{roles[mode]}={column}")]
    else:
        for axis in model.reading_.get("modes", ()):
            words += ["--axis", _word(axis)]
    if "count" in model.reading_:
        words += ["--count", _word(model.reading_["count"])]
    return words


def _word(text: str) -> str:
    return shlex.quote(harmless(text, 300))


def _value(value: Any) -> str:
    return harmless(value if isinstance(value, str) else json.dumps(value, default=str), 200)
