"""Opening the model in a folder, for the commands that only read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleader.cli.terminal import note

if TYPE_CHECKING:
    from ringleader.detector import RingDetector


def load(folder: str) -> RingDetector:
    """The model in a folder; says so where its fit was stopped before the end."""
    from ringleader import detector

    model = detector.load(folder)
    if not model.complete_ or (model.heads_ is None and model.preset == "default"):
        unused = "; its labels count for nothing yet" if model.labels_ is not None and not model.config_.joint else ""
        note(f"the fit of {folder} was stopped after sweep {model.state_.sweep}{unused}; go on with: fit ... --resume")
    return model
