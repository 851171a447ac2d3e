"""Opening the model in a folder, for the commands that read it, and locking it, for those that write to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ringleader.cli.terminal import note

if TYPE_CHECKING:
    from ringleader.detector import RingDetector
    from ringleader.snapshot import Snapshot

KEEP = 3
"""``ringleader.snapshot.KEEP``, which takes long to import."""


def locked(folder: str, command: str, *, wait: bool, create: bool = False) -> AbstractContextManager[None]:
    """Holds the lock of a model folder for a command; says whom it waits for."""
    from ringleader.snapshot import writing

    return writing(
        folder,
        f"ringleader {command}",
        wait=wait,
        create=create,
        on_wait=lambda holder: note(f"waiting for {holder}"),
    )


def open_snapshot(folder: str) -> Snapshot:
    """The model in a folder; says so where its fit was stopped before the end.

    Without the detector around it: scikit-learn, which that needs, takes half a second to import.
    """
    from ringleader.snapshot import load

    snapshot, _ = load(folder)
    _say_stopped(folder, snapshot)
    return snapshot


def open_detector(folder: str) -> RingDetector:
    """The same as the detector that people hold."""
    from ringleader.detector import load

    detector = load(folder)
    _say_stopped(folder, detector.snapshot_)
    return detector


def _say_stopped(folder: str, snapshot: Snapshot) -> None:
    if not snapshot.complete:
        unused = (
            "; its labels count for nothing yet" if snapshot.labels is not None and not snapshot.config.joint else ""
        )
        sweep = snapshot.state.sweep
        note(f"the fit of {folder} was stopped after sweep {sweep}{unused}; continue with: fit ... --resume")
