"""What is said of the speed of a fit on workers while it runs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
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


BROKEN = (
    "import ringleader.cli.fit as fit\n"
    "from ringleader.errors import InputError\n"
    "def broken(*words): raise {}\n"
    "fit.cluster_of = broken\n"
    "from ringleader.cli import main; main()"
)
"""A fit that ends where its cluster is looked for."""


def ended_by(error: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", BROKEN.format(error), "fit", "a.csv", "--out", "absent", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("error", "event"),
    [
        ("InputError('a\\nb')", {"event": "error", "message": "a\nb", "status": 2}),
        ("OSError(28, 'no space')", {"event": "error", "message": "no space", "status": 2}),
        ("KeyboardInterrupt('stopped; nothing')", {"event": "stopped", "message": "stopped; nothing", "status": 130}),
        ("__import__('signal').raise_signal(15)", {"event": "stopped", "message": "stopped", "status": 143}),
    ],
)
def test_an_error_that_ends_a_fit_is_an_event_among_events(error: str, event: dict[str, Any]) -> None:
    done = ended_by(error, "--ray", "local", "--json")
    assert (done.stdout, done.returncode) == ("", event["status"])
    assert [json.loads(line) for line in done.stderr.splitlines()] == [event]


def test_a_bug_is_an_event_too_with_its_traceback_where_asked_for() -> None:
    done = ended_by("KeyError('x')", "--ray", "local", "--json", "--verbose")
    event = json.loads(done.stderr)
    assert (event["event"], event["status"], done.returncode) == ("error", 1, 1)
    assert "KeyError: 'x'" in event["message"] and "KeyError: 'x'" in event["traceback"]
    assert "traceback" not in json.loads(ended_by("KeyError('x')", "--ray", "local", "--json").stderr)


@pytest.mark.parametrize("words", [("--json",), ("--ray", "local"), ("--ray", "local", "--json", "--quiet")])
def test_where_there_are_no_events_an_error_is_a_line_of_text(words: tuple[str, ...]) -> None:
    done = ended_by("InputError('no such table')", *words)
    assert (done.stdout, done.stderr, done.returncode) == ("", "error: no such table\n", 2)
