"""A progress bar on standard error: sweeps, rate, objective, time left. Silent where nobody looks."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ringleader.cli.terminal import VOICE
from ringleader.learners import SweepInfo


class Terminated(SystemExit):
    """SIGTERM came: stop as for Ctrl-C, with the status that says so."""


class SweepBar:
    """Shows each sweep as it ends; call it as a callback of ``fit``."""

    def __init__(self, progress: Progress, entries: int) -> None:
        self.progress, self.entries = progress, entries
        self.task = progress.add_task("learning", total=None, figures="")
        self.last = time.perf_counter()

    def __call__(self, info: SweepInfo) -> None:
        now = time.perf_counter()
        rate = _short(self.entries / max(now - self.last, 1e-9))
        self.last = now
        figures = f"objective {info.log_posterior:,.0f}  {rate} entries/s"
        self.progress.update(self.task, total=info.last_sweep, completed=info.sweep, figures=figures)


@contextmanager
def sweep_bar(entries: int, *, quiet: bool) -> Iterator[SweepBar]:
    """A bar over sweeps of ``entries`` each, on standard error, where that is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=quiet or VOICE.quiet or not console.is_terminal) as progress:
        yield SweepBar(progress, entries)


@contextmanager
def stop_signals() -> Iterator[None]:
    """Lets SIGTERM stop the work as Ctrl-C does; the last checkpoint stays."""

    def stop(number: int, frame: object) -> None:
        raise Terminated(143)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _short(number: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"
