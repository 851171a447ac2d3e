"""Progress on standard error: a bar over sweeps, with rate, objective and time left; or, for programs, events as JSON.

A bar is silent where nobody looks.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from ringleader.cli.stopping import raise_when_heard
from ringleader.cli.terminal import VERBOSITY, say_event
from ringleader.learners import SweepInfo

SWEEP = "sweep part"
"""What workers call a sweep (``Workers.watch``)."""


class Terminated(SystemExit):
    """SIGTERM came: stop as for Ctrl-C, with the status that says so."""


class SweepBar:
    """Shows each sweep as it ends; call it as a callback of ``fit``. On a cluster, ``step`` moves it within a sweep."""

    def __init__(self, progress: Progress, entries: int, workers: int = 0) -> None:
        """entries : of a sweep, on all workers together; workers : how many there are, 0 for this process alone."""
        self.progress, self.entries = progress, entries
        said = f"learning on {workers} workers" if workers > 1 else "learning"
        self.task = progress.add_task(said, total=None, figures="", done="")
        self.last = time.perf_counter()
        self.sweep, self.exchanges, self.most = 0, 0, 0

    def __call__(self, info: SweepInfo) -> None:
        now = time.perf_counter()
        rate = _short(self.entries / max(now - self.last, 1e-9))
        self.last = now
        self.sweep, self.most = info.sweep, max(self.most, self.exchanges)
        figures = f"objective {info.log_posterior:,.0f}  {rate} entries/s"
        done = f"{info.sweep}/{info.last_sweep}"
        self.progress.update(self.task, total=info.last_sweep, completed=info.sweep, figures=figures, done=done)

    def step(self, program: str, exchanges: int) -> None:
        """Workers have made some exchanges of a program; every sweep has as many."""
        if not self.sweep and program != SWEEP:
            self.last = time.perf_counter()  # what comes before the first sweep is no part of it
        if program == SWEEP:
            self.exchanges = exchanges
            if self.most:
                self.progress.update(self.task, completed=self.sweep + min(exchanges / self.most, 1.0))


class JsonEvents:
    """The same for programs that read along: one JSON object a line, on standard error."""

    def __init__(self, entries: int, workers: int) -> None:
        self.entries, self.workers, self.last = entries, workers, time.perf_counter()
        self.sweep = 0

    def __call__(self, info: SweepInfo) -> None:
        now = time.perf_counter()
        seconds, self.last, self.sweep = max(now - self.last, 1e-9), now, info.sweep
        say_event(
            "sweep",
            sweep=info.sweep,
            of=info.last_sweep,
            workers=self.workers,
            entries_per_second=round(self.entries / seconds),
            seconds=round(seconds, 3),
            seconds_left=round(seconds * (info.last_sweep - info.sweep), 3),
            log_posterior=info.log_posterior,
        )

    def step(self, program: str, exchanges: int) -> None:
        """As ``SweepBar.step``: for the time at which the first sweep begins."""
        if not self.sweep and program != SWEEP:
            self.last = time.perf_counter()


@contextmanager
def shown_on_terminals(*columns: ProgressColumn, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error, shown where that is a terminal."""
    console = Console(file=sys.stderr)
    progress = Progress(*columns, console=console, disable=quiet or not console.is_terminal)
    with nullcontext() if progress.disable else progress:  # before 15, rich prints a line at the end of any bar
        yield progress


@contextmanager
def sweep_bar(entries: int, *, quiet: bool, workers: int = 0) -> Iterator[SweepBar]:
    """A bar over sweeps of ``entries`` each."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with shown_on_terminals(*columns, quiet=quiet or VERBOSITY.quiet) as progress:
        yield SweepBar(progress, entries, workers)


@contextmanager
def stop_signals() -> Iterator[None]:
    """Lets SIGTERM stop the work as Ctrl-C does; the last checkpoint stays."""

    def stop() -> None:
        raise Terminated(143)

    before = signal.signal(signal.SIGTERM, lambda _, frame: raise_when_heard(stop, frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _short(number: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"
