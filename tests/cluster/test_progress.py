"""What is said of the speed of a fit on workers while it runs."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from ringleader.cli.progress import JsonEvents, SweepBar
from ringleader.learners import SweepInfo


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that is read, to be set."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def sweep(number: int) -> SweepInfo:
    return SweepInfo(number, 4, 1.0, -5.0, -4.0, float("nan"), 2.0, None)


def two_sweeps(shown: Any, clock: list[float]) -> None:
    """Signals for thirty seconds, a sweep of two, a checkpoint of one and a sweep of two."""
    for program, exchanges, seconds in (("find lockstep", 3, 20), ("hold rows", 0, 10), ("sweep part", 0, 1)):
        clock[0] += seconds
        shown.step(program, exchanges)
    clock[0] += 1
    shown(sweep(1))
    clock[0] += 1
    shown.step("write state", 1)
    clock[0] += 2
    shown(sweep(2))


def test_events_leave_what_comes_before_the_first_sweep_out_of_its_speed(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    two_sweeps(JsonEvents(6_000, 2), clock)
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["seconds"], first["entries_per_second"], first["seconds_left"]) == (2.0, 3_000, 6.0)
    assert (second["seconds"], second["entries_per_second"]) == (3.0, 2_000)  # its checkpoint counts


def test_a_bar_leaves_it_out_too(clock: list[float]) -> None:
    progress = Progress(console=Console(file=io.StringIO()), disable=True)
    bar = SweepBar(progress, 6_000, 2)
    bar.step("find lockstep", 3)
    clock[0] += 30
    bar.step("hold rows", 0)
    clock[0] += 2
    bar(sweep(1))
    assert "3.0k entries/s" in progress.tasks[0].fields["figures"]
