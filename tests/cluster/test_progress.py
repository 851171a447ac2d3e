"""What is said of the speed of a fit on workers while it runs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


BROKEN = """
import json, os, sys
import ringleader.cli.fit as fit
import ringleader.detector  # what takes most of the time of a fit that ends at once
from ringleader.cli import main
from ringleader.errors import InputError
def broken(*words): raise eval(error)
fit.cluster_of = broken
for line in sys.stdin:
    (error, words), files = json.loads(line), [f"{sys.argv[1]}/{name}" for name in ("output", "errors")]
    child = os.fork()
    if child == 0:
        for number, file in enumerate(files, 1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["-c", "fit", "a.csv", "--out", "absent", *words]
        sys.exit(main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Fits that end where their cluster is looked for, each in a process forked from one that has imported the command."""

End = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ended_by(tmp_path_factory: pytest.TempPathFactory) -> Iterator[End]:
    folder = tmp_path_factory.mktemp("ends")
    line = [sys.executable, "-c", BROKEN, str(folder)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None and answered is not None

        def end(error: str, *words: str) -> subprocess.CompletedProcess[str]:
            asked.write(json.dumps([error, words]) + "\n")
            asked.flush()
            status = int(answered.readline())
            return subprocess.CompletedProcess([], status, *((folder / n).read_text() for n in ("output", "errors")))

        yield end
        asked.close()


@pytest.mark.parametrize(
    ("error", "event"),
    [
        ("InputError('a\\nb')", {"event": "error", "message": "a\nb", "status": 2}),
        ("OSError(28, 'no space')", {"event": "error", "message": "no space", "status": 2}),
        ("KeyboardInterrupt('stopped; nothing')", {"event": "stopped", "message": "stopped; nothing", "status": 130}),
        ("__import__('signal').raise_signal(15)", {"event": "stopped", "message": "stopped", "status": 143}),
    ],
)
def test_an_error_that_ends_a_fit_is_an_event_among_events(ended_by: End, error: str, event: dict[str, Any]) -> None:
    done = ended_by(error, "--ray", "local", "--json")
    assert (done.stdout, done.returncode) == ("", event["status"])
    assert [json.loads(line) for line in done.stderr.splitlines()] == [event]


def test_a_bug_is_an_event_too_with_its_traceback_where_asked_for(ended_by: End) -> None:
    done = ended_by("KeyError('x')", "--ray", "local", "--json", "--verbose")
    event = json.loads(done.stderr)
    assert (event["event"], event["status"], done.returncode) == ("error", 1, 1)
    assert "KeyError: 'x'" in event["message"] and "KeyError: 'x'" in event["traceback"]
    assert "traceback" not in json.loads(ended_by("KeyError('x')", "--ray", "local", "--json").stderr)


@pytest.mark.parametrize("words", [("--json",), ("--ray", "local"), ("--ray", "local", "--json", "--quiet")])
def test_where_there_are_no_events_an_error_is_a_line_of_text(ended_by: End, words: tuple[str, ...]) -> None:
    done = ended_by("InputError('no such table')", *words)
    assert (done.stdout, done.stderr, done.returncode) == ("", "error: no such table\n", 2)
