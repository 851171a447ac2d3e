"""Opening a model for a command that only reads it, and saying what was odd about reviews and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ringleader.cli.terminal import note, warn
from ringleader.errors import LabelError
from ringleader.wording import counted, plural

if TYPE_CHECKING:
    from ringleader.detector import RingDetector
    from ringleader.known.labels import Labels
    from ringleader.tensor.sparse import SparseTensor


def load(folder: str) -> RingDetector:
    """The model in a folder; a fit that was stopped is said to be one."""
    from ringleader import detector

    model = detector.load(folder)
    if not model.complete_ or (model.heads_ is None and model.preset == "default"):
        lost = "; its labels count for nothing yet" if model.labels_ is not None and not model.config_.joint else ""
        note(f"the fit of {folder} was stopped after sweep {model.state_.sweep}{lost}; go on with: fit ... --resume")
    return model


def reading_notes(tensor: SparseTensor, *, quiet: bool) -> list[str]:
    """Says on standard error what was odd about the reviews as they were read; returns it, for JSON."""
    warnings = list(tensor.report.warnings) if tensor.report is not None else []
    for text in warnings:
        note(f"note: {text}", quiet=quiet)
    return warnings


def need_a_match(known: Labels, tensor: SparseTensor, *, strict: bool) -> None:
    """Says it loudly where not one label is of an account in the reviews; with ``strict``, refuses to go on."""
    aligned = known.align(tensor)
    if aligned.n_labels:
        return
    mode = known.entries[0].mode
    theirs = ", ".join(
        repr(str(name)[:60]) for name in tensor.vocabulary(mode).decode(range(min(2, len(tensor.vocabulary(mode)))))
    )
    said = (
        f"not one of the {counted(len(known), 'label')} is of an account in the reviews: the labels name "
        f"{', '.join(aligned.examples[:2])}, while the {plural(mode)} of the reviews are such as {theirs}; "
        "the ids must be the same text in both files"
    )
    if strict:
        raise LabelError(said)
    warn(f"WARNING: {said}; it goes on as if there were no labels")


def unknown_lines(unknown: Mapping[str, int], what: str) -> list[str]:
    """How many accounts of a table are not in the reviews, a sentence for each mode."""
    return [
        f"note: {counted(number, mode)} of the {what} {'is' if number == 1 else 'are'} not in the reviews"
        for mode, number in unknown.items()
    ]
