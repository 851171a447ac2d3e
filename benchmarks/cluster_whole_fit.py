"""A model of what a whole default fit on a cluster costs: its sweeps (``cluster_cost.py``), and all the rest.

    python benchmarks/cluster_whole_fit.py

CPU seconds of all processes = 4 sweeps + fixed(P) + each(P) x reviews. For each number of workers P that was measured,
fixed and each are the line through two small markets; larger ones are predicted and compared. Between and beyond them
fixed grows with P, and each with 1 - 1/P, the part of everything that has to travel. Of these seconds, the driver's and
what the first worker does beyond the others (it searches for cores) are alone; the rest is shared by all processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ROW_BYTES = 96
"""A factor row of rank 24 in float32."""
CELL, VISITS = 1.047e-6, 47.8
"""Seconds of a cell in a sweep, and how often it visits a row, as ``cluster_cost.py`` finds them."""
AROUND = 1.24
"""CPU seconds of a sweep on two workers over those of one process, as ``cluster_speed.py`` has them: laying out what
was drawn, and messages."""
SWEEPS = 4
ROWS = ((2.0, 3.8), (5.0, 4.5), (10.0, 5.0), (48.0, 22.5), (192.0, 28.5), (1700.0, 39.0))
"""Nanoseconds of a row where all of them are so many megabytes, as measured there."""
FIT_STEPS = 2_300
"""Super-steps of a fit beside its sweeps: 1,900 where labels are read, counted on a small market, and 400 questions of
the search for cores, which do not grow with the market."""
STEP, REFERENCE = 0.0014, 0.00016
"""Seconds of an empty super-step, and of the driver for each message in it."""
LIBRARIES, HELD, WHOLE = 4.0e8, 900.0, 4.0
"""Bytes of a worker: without any data, for each of its reviews, and for each review of all (who negatives are drawn
from)."""


class Fit(NamedTuple):
    """A whole fit that was measured: CPU seconds of all processes, of the driver, and of each worker where noted."""

    reviews: int
    reviewers: int
    workers: int  # 0: one process
    seconds: float
    driver: float | None = None
    each: tuple[float, ...] = ()

    @property
    def first(self) -> float:
        """CPU seconds of the first worker beyond those of the others."""
        return self.each[0] - sum(self.each[1:]) / len(self.each[1:])


SMALL = (
    Fit(251_808, 65_256, 0, 15.2),
    Fit(251_808, 65_256, 1, 14.0, 2.4),
    Fit(251_808, 65_256, 2, 29.2, 6.2, (13.6, 9.4)),
    Fit(251_808, 65_256, 4, 62.0, 12.5, (16.9, 10.8, 10.9, 10.8)),
    Fit(1_007_232, 261_024, 0, 35.6),
    Fit(1_007_232, 261_024, 1, 41.1, 3.8),
    Fit(1_007_232, 261_024, 2, 64.5, 8.4, (33.6, 22.5)),
    Fit(1_007_232, 261_024, 4, 104.3, 14.9, (31.2, 19.1, 19.5, 19.6)),
)
"""bf406e7, two processors, real-time priority; the model is fitted to these."""
LARGE = (
    Fit(5_036_160, 1_305_120, 0, 164.6),
    Fit(5_036_160, 1_305_120, 2, 246.0, 14.0),
    Fit(5_036_160, 1_305_120, 2, 257.3, 20.9),
    Fit(5_036_160, 1_305_120, 2, 292.6, 23.9),
    Fit(5_036_160, 1_305_120, 4, 289.4, 20.8),
    Fit(5_036_160, 1_305_120, 4, 305.7, 20.4),
    Fit(9_946_416, 2_600_000, 1, 410.7),
    Fit(9_946_416, 2_600_000, 2, 561.8),
    Fit(9_946_416, 2_600_000, 4, 708.1),
)
"""As docs/scale.md has them, measured before; the model predicts them."""
WALLS = ((LARGE[1], 159.2), (LARGE[2], 159.8))
"""Time of fits that had two processors to themselves."""
LARGEST_SWEEPS = {8: 33.0, 64: 14.0, 256: 117.0}
"""Seconds of a sweep of the largest market by so many workers of 16 threads (``cluster_cost.py --project``)."""
LARGEST, THREADS, PRICE = 571_000_000, 16, 0.90
"""Amazon reviews 2023; dollars of a machine for an hour."""


class Line(NamedTuple):
    """Seconds: ``fixed`` + ``each`` x millions of reviews."""

    fixed: float
    each: float

    def at(self, reviews: float) -> float:
        return self.fixed + self.each * reviews / 1e6


class Whole(NamedTuple):
    """fixed : seconds = fixed.fixed + fixed.each x P. each : seconds a million = each.fixed + each.each x (1 - 1/P).
    driver, first : of all numbers of workers."""

    lines: dict[int, Line]
    fixed: Line
    each: Line
    driver: Line
    first: Line


def row_seconds(reviewers: float) -> float:
    """Seconds of a factor row at random among those of so many reviewers, between the sizes that were measured."""
    sizes, times = np.transpose(ROWS)
    return 1e-9 * float(np.interp(np.log(reviewers * ROW_BYTES / 1e6), np.log(sizes), times))


def sweeps(reviews: float, reviewers: float, workers: int) -> float:
    """CPU seconds of the sweeps of a fit, all processes together."""
    around = AROUND if workers else 1.0
    return SWEEPS * around * reviews * (CELL + VISITS * row_seconds(reviewers))


def line(points: Sequence[tuple[float, float]]) -> Line:
    """Through pairs of numbers, by least squares."""
    each, fixed = np.polyfit(*np.transpose(points), 1)
    return Line(float(fixed), float(each))


def fitted(fits: Sequence[Fit]) -> Whole:
    """The model of what a fit costs beside its sweeps."""
    lines = {}
    for workers in sorted({fit.workers for fit in fits}):
        own = [fit for fit in fits if fit.workers == workers]
        lines[workers] = line([(f.reviews / 1e6, f.seconds - sweeps(f.reviews, f.reviewers, workers)) for f in own])
    shared = [fit for fit in fits if fit.each]
    on_workers = {workers: found for workers, found in lines.items() if workers}
    return Whole(
        lines,
        line([(workers, found.fixed) for workers, found in on_workers.items()]),
        line([(1 - 1 / workers, found.each) for workers, found in on_workers.items()]),
        line([(fit.reviews / 1e6, fit.driver or 0.0) for fit in shared]),
        line([(fit.reviews / 1e6, fit.first) for fit in shared]),
    )


def cpu_seconds(model: Whole, reviews: float, reviewers: float, workers: int) -> float:
    """Of all processes for a whole fit, by a number of workers that was measured."""
    return sweeps(reviews, reviewers, workers) + model.lines[workers].at(reviews)


def wall_seconds(model: Whole, reviews: float, reviewers: float, workers: int) -> float:
    """Of a whole fit on workers of one thread, each with a processor of its own."""
    alone = model.driver.at(reviews) + model.first.at(reviews)
    return alone + (cpu_seconds(model, reviews, reviewers, workers) - alone) / workers


class Projection(NamedTuple):
    """Seconds of a fit beside its sweeps: shared by processors, of the driver, of the first worker, of super-steps."""

    shared: float
    driver: float
    first: float
    steps: float
    memory: float  # bytes of a worker

    @property
    def seconds(self) -> float:
        return self.shared + self.driver + self.first + self.steps


def projected(model: Whole, reviews: float, workers: int, threads: int) -> Projection:
    """What is beside the sweeps, for any number of workers."""
    each = Line(0.0, model.each.at(1e6 * (1 - 1 / workers)))
    driver, first = model.driver.at(reviews), model.first.at(reviews)
    shared = max(each.at(reviews) - driver - first, 0.0) / (workers * threads)
    start = max(model.fixed.each, 0.0) / threads  # of every worker at the same time
    steps = FIT_STEPS * (STEP + REFERENCE * workers**2)
    return Projection(shared + start, driver, first, steps, worker_memory(reviews, workers))


def worker_memory(reviews: float, workers: int) -> float:
    """Bytes of a worker at the most."""
    return LIBRARIES + HELD * reviews / workers + WHOLE * reviews


def table(model: Whole) -> list[str]:
    """A whole fit of the largest market, as the table in docs/scale.md has it."""
    rows = []
    for workers, sweep in LARGEST_SWEEPS.items():
        rest = projected(model, LARGEST, workers, THREADS)
        seconds = SWEEPS * sweep + rest.seconds
        said = [f"{SWEEPS * sweep:.0f} s", f"{rest.shared:.0f} s", f"{rest.driver:,.0f} s", f"{rest.first:,.0f} s"]
        said += [f"{rest.steps:,.0f} s", f"{seconds / 3600:.1f} hours", f"{rest.memory / 1e9:.0f} GB"]
        rows.append(f"| {workers} | {' | '.join(said)} | {workers * seconds / 3600 * PRICE:,.0f} |")
    return rows


def main() -> None:
    model = fitted(SMALL)
    for workers, found in model.lines.items():
        print(f"{workers} workers: {found.fixed:.1f} s + {found.each:.1f} s a million reviews, beside the sweeps")
    print(f"driver: {model.driver.fixed:.1f} s + {model.driver.each:.1f} s a million; ", end="")
    print(f"first worker beyond the others: {model.first.fixed:.1f} s + {model.first.each:.1f} s a million")
    for fit in LARGE:
        predicted = cpu_seconds(model, fit.reviews, fit.reviewers, fit.workers)
        error = f"{predicted / fit.seconds - 1:+.0%}"
        print(f"{fit.reviews:,}, {fit.workers} workers: {predicted:.0f} s predicted, {fit.seconds} measured, {error}")
    for fit, seconds in WALLS:
        predicted = wall_seconds(model, fit.reviews, fit.reviewers, fit.workers)
        print(f"{fit.reviews:,}, {fit.workers} workers: {predicted:.0f} s of time predicted, {seconds} measured")
    for row in table(model):
        print(row)


if __name__ == "__main__":
    main()
