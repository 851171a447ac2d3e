"""Files stay short: one job each, below 400 lines, and the detector below 200."""

from __future__ import annotations

from pathlib import Path

import ringleader

SOURCE = Path(ringleader.__file__).parent
LONGER = {"kernels/cuda/backend.py", "kernels/numba/blocks.py"}
"""What must be longer; docs/map.md says why."""


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_400_lines_but_what_must_be() -> None:
    assert {p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if lines(p) > 400} == LONGER


def test_the_detector_is_below_200_lines() -> None:
    assert lines(SOURCE / "detector.py") < 200
