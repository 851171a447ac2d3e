"""Opening a model for a command that only reads it."""

from __future__ import annotations

from ringleader import detector
from ringleader.cli.terminal import note
from ringleader.detector import RingDetector
from ringleader.labels import DEFAULT_TARGET


def load(folder: str) -> RingDetector:
    """The model in a folder; a fit that was stopped is said to be one."""
    model = detector.load(folder)
    if not model.complete_ or (model.heads_ is None and model.preset == "default"):
        lost = "; its labels count for nothing yet" if model.labels_ is not None and not model.config_.joint else ""
        note(f"the fit of {folder} was stopped after sweep {model.state_.sweep}{lost}; go on with: fit ... --resume")
    return model


def targets_of(model: RingDetector, mode: str) -> list[str]:
    """The targets of a mode, the one that is scored where none is named first."""
    names = [t.name for t in model.problem_.targets if model.tensor_.modes[t.mode] == mode]
    return sorted(names, key=lambda name: name != DEFAULT_TARGET)
