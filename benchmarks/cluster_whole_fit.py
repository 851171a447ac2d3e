"""A model of what a whole default fit on a cluster costs: its sweeps (``cluster_cost.py``), and all the rest.

    python benchmarks/cluster_whole_fit.py

CPU seconds of all processes = 4 sweeps + fixed(P) + each(P) x reviews. For each number of workers P that was measured,
fixed and each are the line through two small markets; larger ones are predicted and compared. Between and beyond them
fixed grows with P, and each with 1 - 1/P, the part of everything that has to travel. Of these seconds, the driver's and
what the first worker does beyond the others (it searches for cores) are alone; the rest is shared by all processors.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROW_BYTES = 96
"""A factor row of rank 24 in float32."""
CELL, VISITS = 0.851e-6, 12.5
"""Seconds of a cell in a sweep, and how often it visits a row, as ``cluster_cost.py`` finds them."""
AROUND = 1.32
"""CPU seconds of a sweep on two workers over those of one process, as ``cluster_speed.py`` has them: laying out what
was drawn, and messages."""
SWEEPS = 4
ROWS = ((2.0, 2.9), (5.0, 3.0), (10.0, 3.2), (19.0, 4.1), (29.0, 11.4), (48.0, 13.8), (192.0, 21.0), (1700.0, 24.0))
"""Nanoseconds of a row where all of them are so many megabytes, as measured there."""
FIT_STEPS = 2_300
"""Super-steps of a fit beside its sweeps: 1,900 where labels are read, counted on a small market, and 400 questions of
the search for cores, which do not grow with the market."""
STEP, REFERENCE = 0.0011, 0.00016
"""Seconds of an empty super-step, and of the driver for each message in it."""
LIBRARIES, HELD, WHOLE = 4.0e8, 900.0, 4.0
"""Bytes of a worker: without any data, for each of its reviews, and for each review of all (who negatives are drawn
from)."""


class Fit(NamedTuple):
    """A whole fit that was measured (``cluster_fit.py``)."""

    reviews: int
    reviewers: int
    workers: int  # 0: one process
    threads: int  # of each process
    wall: float  # seconds, the start of Ray not among them
    driver: float  # CPU seconds, as of each worker
    driver_megabytes: float  # the most that it had in memory, as of each worker
    each: tuple[float, ...] = ()
    megabytes: tuple[float, ...] = ()
    sweeps: tuple[float, ...] = ()  # when each ended, in seconds
    machine: str = ""
    alone: bool = True  # whether nothing else was at work: otherwise its time says little

    @property
    def seconds(self) -> float:
        """CPU seconds of all processes."""
        return self.driver + sum(self.each)

    @property
    def first(self) -> float:
        """CPU seconds of the first worker beyond those of the others."""
        return self.each[0] - sum(self.each[1:]) / len(self.each[1:])


FITS = Path(__file__).with_name("cluster_fits.jsonl")
"""The fits that were measured last, one JSON object a line."""
PROCESSORS = 2
"""Of the machine: fits on more workers share them, so that their time says little."""
MOST_SMALL = 1_100_000
"""Reviews of the largest market that the model is fitted to; what larger ones cost is predicted, and compared."""
LARGEST_SWEEPS = {8: 23.6, 64: 13.0, 256: 117.1}
"""Seconds of a sweep of the largest market by so many workers of 16 threads (``cluster_cost.py --project``)."""
FIT_HEADER = (
    "| reviews | workers | time (over one process) | CPU of all | of the driver | MB of the driver "
    "| MB of each worker (allowed) | CPU, predicted |"
)
HEADER = (
    "| workers | four sweeps | the rest, shared | driver alone | first worker alone | super-steps | in all "
    "| memory of each | dollars |"
)
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


def measured(path: Path = FITS) -> tuple[list[Fit], list[Fit]]:
    """Small fits, which the model goes through, and large ones, which it predicts."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    fits = [Fit(**{name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}) for row in rows]
    return [f for f in fits if f.reviews <= MOST_SMALL], [f for f in fits if f.reviews > MOST_SMALL]


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
    shared = [fit for fit in fits if len(fit.each) > 1]
    on_workers = {workers: found for workers, found in lines.items() if workers}
    return Whole(
        lines,
        line([(workers, found.fixed) for workers, found in on_workers.items()]),
        line([(1 - 1 / workers, found.each) for workers, found in on_workers.items()]),
        line([(fit.reviews / 1e6, fit.driver) for fit in shared]),
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


def projection_rows(model: Whole) -> list[str]:
    """A whole fit of the largest market, as the table in docs/scale.md has it."""
    rows = []
    for workers, sweep in LARGEST_SWEEPS.items():
        rest = projected(model, LARGEST, workers, THREADS)
        seconds = SWEEPS * sweep + rest.seconds
        cells = [f"{SWEEPS * sweep:.0f} s", f"{rest.shared:.0f} s", f"{rest.driver:,.0f} s", f"{rest.first:,.0f} s"]
        cells += [f"{rest.steps:,.0f} s", f"{seconds / 3600:.1f} hours", f"{rest.memory / 1e9:.0f} GB"]
        rows.append(f"| {workers} | {' | '.join(cells)} | {workers * seconds / 3600 * PRICE:,.0f} |")
    return rows


def predicted_walls(model: Whole, fits: Sequence[Fit]) -> list[tuple[Fit, float]]:
    """Large fits in which every worker had a processor to itself, and the seconds that the model says."""
    alone = [fit for fit in fits if 1 <= fit.workers <= PROCESSORS and fit.alone and fit.reviews > MOST_SMALL]
    return [(fit, wall_seconds(model, fit.reviews, fit.reviewers, fit.workers)) for fit in alone]


def allowed_megabytes(fit: Fit, fits: Sequence[Fit]) -> float | None:
    """What a worker may have: 1.3 times its share of what one worker alone has, and 300 MB."""
    alone = [f.megabytes[0] for f in fits if f.reviews == fit.reviews and f.workers == 1]
    return 1.3 * alone[0] / fit.workers + 300 if alone and fit.workers > 1 else None


def fit_rows(model: Whole, fits: Sequence[Fit]) -> list[str]:
    """Every fit that was measured, beside what is allowed and what the model says."""
    rows = []
    for fit in fits:
        one = next((f for f in fits if f.reviews == fit.reviews and not f.workers), None)
        ratio = f" ({fit.wall / one.wall:.2f})" if one and fit.workers == PROCESSORS else ""
        times = f"{fit.wall:.0f} s{ratio}" if fit.workers <= PROCESSORS and fit.alone else ""
        predicted = cpu_seconds(model, fit.reviews, fit.reviewers, fit.workers)
        error = f"{predicted / fit.seconds - 1:+.0%}" if fit.reviews > MOST_SMALL else "fitted"
        allowed = allowed_megabytes(fit, fits)
        held = ", ".join(f"{m:,.0f}" for m in fit.megabytes) + (f" ({allowed:,.0f})" if allowed else "")
        who = f"{fit.workers}" if fit.workers else f"one process, {fit.threads} threads"
        cells = [f"{fit.reviews:,}", who, times, f"{fit.seconds:.0f} s", f"{fit.driver:.0f} s"]
        cells += [f"{fit.driver_megabytes:,.0f}", held, error]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/scale.md")
    chosen = parser.parse_args()
    small, large = measured()
    model = fitted(small)
    for workers, found in model.lines.items():
        print(f"{workers} workers: {found.fixed:.1f} s + {found.each:.1f} s a million reviews, beside the sweeps")
    print(f"driver: {model.driver.fixed:.1f} s + {model.driver.each:.1f} s a million; ", end="")
    print(f"first worker beyond the others: {model.first.fixed:.1f} s + {model.first.each:.1f} s a million")
    for fit, seconds in predicted_walls(model, large):
        print(f"{fit.reviews:,}, {fit.workers} workers: {seconds:.0f} s of time predicted, {fit.wall:.0f} measured")
    tables = {"fits": (FIT_HEADER, fit_rows(model, small + large)), "projection": (HEADER, projection_rows(model))}
    for name, (header, rows) in tables.items():
        text = "\n".join([header, "|" + "---|" * (header.count("|") - 1), *rows])
        print(text)
        if chosen.write:
            from machine import write_section

            write_section("scale.md", name, text)


if __name__ == "__main__":
    main()
