"""A model of what a sweep on a cluster costs: constants that are measured, times that it predicts, and larger markets.

    python benchmarks/cluster_cost.py --fit 50000 200000 500000 2000000 3000000 --check 1000000 5000000 20000000
    python benchmarks/cluster_cost.py --traffic 200000
    python benchmarks/cluster_cost.py --simulate 64
    python benchmarks/cluster_cost.py --project

Time of a sweep with its likelihood = AROUND x cells x (CELL + VISITS x GATHER), divided among workers and threads, +
super-steps x (STEP + workers x workers x REFERENCE) + bytes that a worker receives / BANDWIDTH. GATHER is the time of
reading one factor row at random; it depends on how many bytes the rows of the contrast mode are against the caches, and
is measured for every size. CELL and VISITS are fitted. Bytes: a worker receives each factor row that its cells and
their negatives name and that it does not own, once for each mode that is dealt out, the cells in which its entities
were drawn, and sums of the modes that are not dealt out. ``--simulate`` runs the messages of a sweep of the largest
market between many workers on this machine, with sleeps for the kernels. What a whole fit costs beside its sweeps:
``cluster_whole_fit.py``.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))

from in_process import InProcess

import ringleader as rl
from cluster_speed import market
from cluster_whole_fit import AROUND, CELL, REFERENCE, ROW_BYTES, STEP, VISITS
from ringleader.learners.cluster import ClusterLearner
from ringleader.learners.loop import get_learner, likelihoods
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.runtime.peers import Peers

DRAWN_BYTES = 36
"""A cell in which an entity was drawn, sent to its owner: codes, weight, numbers."""
SUM_BYTES = 2592
"""Gradient and curvature of an entity of a mode that is not dealt out, in float64."""
NEGATIVES = 4
MODES = 5
STEPS = 11
"""Super-steps of a sweep of five modes."""


class Market(NamedTuple):
    """Sizes of a market: its reviews, the entities of each mode that is dealt out, and those of all others together."""

    reviews: int
    entities: tuple[int, ...]
    small: int


AMAZON = Market(571_000_000, (54_000_000, 48_000_000), 1_500)
"""Amazon reviews 2023: reviews, reviewers, products; ratings and weeks."""


@njit
def _visit(rows: Any, codes: Any, into: Any) -> None:  # pragma: no cover - compiled
    for n in range(len(codes)):
        into += rows[codes[n]]


def gather_seconds(entities: int, picks: int = 4_000_000) -> float:
    """CPU seconds of reading one row at random, of so many; entities are as unequally active as in the market."""
    rng = np.random.default_rng(1)
    rows = np.ones((entities, ROW_BYTES // 4), np.float32)
    codes = (entities * rng.beta(0.6, 2.0, picks)).astype(np.int32)
    into = np.zeros(rows.shape[1], np.float32)
    times = []
    for _ in range(4):  # the first compiles
        began = time.process_time()
        _visit(rows, codes, into)
        times.append((time.process_time() - began) / picks)
    return min(times[1:])


def measured(reviews: int, sweeps: int) -> dict[str, float]:
    """CPU seconds of one thread for a sweep with its likelihood."""
    problem = build_problem(market(reviews), (), ModelConfig(threads=1))
    learner, state = get_learner("natural-gradient"), start_state(problem)
    state = learner.sweep(problem, state)
    likelihoods(problem, state)
    times = []
    for _ in range(sweeps):
        began = time.process_time()
        state = learner.sweep(problem, state)
        likelihoods(problem, state)
        times.append(time.process_time() - began)
    entities = problem.tensor.shape[problem.config.contrast]
    cells = problem.tensor.n_cells
    del problem, state
    gather = gather_seconds(entities)
    return {"reviews": reviews, "cells": cells, "entities": entities, "gather": gather, "seconds": min(times)}


def constants(points: list[dict[str, float]]) -> tuple[float, float]:
    """Seconds of a cell, and how often it visits a row, by least squares of relative errors; neither below zero."""
    from scipy.optimize import nnls

    cells = np.array([p["cells"] / p["seconds"] for p in points])
    sides = np.stack([cells, cells * [p["gather"] for p in points]], axis=1)
    found, _ = nnls(sides, np.ones(len(points)))
    return float(found[0]), float(found[1])


def rows_held(sizes: Market, workers: int) -> float:
    """Rows of the contrast mode that a worker's cells and their negatives name, where all are as likely."""
    named = sizes.reviews / workers * (1 + NEGATIVES) * len(sizes.entities)
    return sizes.entities[0] * -float(np.expm1(named * np.log1p(-1 / sizes.entities[0])))


def memory(sizes: Market, workers: int) -> float:
    """Bytes of a worker in a sweep: its cells and their negatives once for each dealt mode, drawn cells, the column
    that negatives are drawn from, and rows."""
    cells = sizes.reviews / workers
    tuples = len(sizes.entities) * cells * (MODES * 4 + NEGATIVES * 4 + 8 + 4)  # and their numbers and lists
    drawn = cells * NEGATIVES * (MODES * 4 + NEGATIVES * 4 + 4)
    rows = rows_held(sizes, workers) + sum(min(e, cells) for e in sizes.entities[1:])
    return tuples + drawn + sizes.reviews * 4 + rows * ROW_BYTES


def received(sizes: Market, workers: int) -> float:
    """Bytes that one worker receives in a sweep, where every entity is as likely as the next."""
    cells, others = sizes.reviews / workers, 1 - 1 / workers
    total = cells * NEGATIVES * others * DRAWN_BYTES + sizes.small * others * SUM_BYTES
    for owned in range(len(sizes.entities)):
        for other, entities in enumerate(sizes.entities):
            if other == owned:
                continue
            named = cells * (1 + NEGATIVES) if other == 0 else cells
            distinct = entities * -np.expm1(named * np.log1p(-1 / entities))
            total += distinct * others * ROW_BYTES
    return total


class Counting(InProcess):
    """Counts what workers send each other."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.sent = 0

    def _run(self, call: Any, arguments: Any) -> list[Any]:
        answers = [worker.start(call, *given) for worker, given in zip(self.workers, arguments, strict=True)]
        while not all(answer[0] for answer in answers):
            self.exchanges += 1
            letters = [[answers[q][1 + p] for q in range(self.count) if q != p] for p in range(self.count)]
            self.sent += sum(len(pickle.dumps(letter, protocol=5)) for letter in letters)
            answers = [worker.go_on(*letter) for worker, letter in zip(self.workers, letters, strict=True)]
        return [answer[1] for answer in answers]


def traffic(reviews: int, workers: int) -> dict[str, float]:
    """Bytes that a worker receives in a sweep, as counted and as the model has it."""
    tensor = market(reviews)
    problem = build_problem(tensor, (), ModelConfig(threads=1))
    running = Counting(workers)
    learner = ClusterLearner(running, get_learner("natural-gradient"))
    state = learner.sweep(problem, start_state(problem))
    before, steps = running.sent, running.exchanges
    learner.sweep(problem, state)
    dealt = tuple(size for mode, size in enumerate(tensor.shape) if learner.ranges.dealt[mode])
    sizes = Market(tensor.n_cells, dealt, sum(tensor.shape) - sum(dealt))
    return {
        "workers": workers,
        "counted": (running.sent - before) / workers,
        "model": received(sizes, workers),
        "steps": running.exchanges - steps,
    }


def simulated_sweep(memory: dict[str, Any], peers: Peers, size: int, seconds: float, steps: int) -> float:
    """In a worker: exchanges messages of ``size`` bytes with all others, and sleeps for as long as kernels would run;
    seconds of a super-step."""
    began = time.perf_counter()
    for step in range(steps):
        time.sleep(seconds)
        letters = [np.full(size, (7 * peers.rank + rank + step) % 251, np.uint8) for rank in range(peers.count)]
        for rank, received in enumerate(peers.exchange(letters)):
            expected = (7 * rank + peers.rank + step) % 251
            assert len(received) == size and received[0] == received[-1] == expected, "a message went astray"
    return (time.perf_counter() - began) / steps


def simulate(workers: int, kernels: float, shrink: float, store: int) -> dict[str, float]:
    """A sweep of the largest market between many workers on this machine.

    Driver, workers and messages are those of a fit; kernels are sleeps as long as they would run, and messages are
    ``shrink`` times smaller, so that this machine can hold them all at once.
    """
    letter = int(received(AMAZON, workers) / STEPS / (workers - 1) / shrink)
    began = time.perf_counter()
    with rl.Ray(workers=workers, threads=1, object_store=store * 2**20, timeout=300.0).start() as running:
        running.run(simulated_sweep, [(1, 0.0, 1)] * workers)
        started = time.perf_counter() - began
        figures: dict[str, float] = {
            "workers": workers,
            "messages of a step": workers * (workers - 1),
            "bytes of a message": letter,
            "seconds to start": started,
            "kernels of a step": kernels / STEPS,
        }
        for name, size, seconds, steps in (("empty step", 1, 0.0, 4), ("step", letter, kernels / STEPS, STEPS)):
            wall, own = time.perf_counter(), time.process_time()
            running.run(simulated_sweep, [(size, seconds, steps)] * workers)
            figures[name] = (time.perf_counter() - wall) / steps
            figures[f"{name}, CPU of the driver"] = (time.process_time() - own) / steps
        figures["workers lost"] = running.restarts
    return figures


def project(workers: int, cell: float, visits: float, given: argparse.Namespace) -> None:
    """Print what the model says of the largest market."""
    gather = gather_seconds(min(int(rows_held(AMAZON, workers)), given.most_rows))
    kernels = AROUND * AMAZON.reviews * (cell + visits * gather) / (workers * given.threads)
    size, steps = received(AMAZON, workers), STEPS * (given.step + given.reference * workers**2)
    seconds = kernels + size / given.bandwidth + steps
    dollars = workers * 4 * seconds / 3600 * given.price
    print(
        f"{workers} workers: {seconds:.1f} s a sweep: kernels {kernels:.1f} s (a row {1e9 * gather:.0f} ns), "
        f"{size / 1e9:.2f} GB received, steps {steps:.2f} s; {memory(AMAZON, workers) / 1e9:.1f} GB each; "
        f"{dollars:.2f} dollars for 4 sweeps",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", type=int, nargs="*", default=[])
    parser.add_argument("--check", type=int, nargs="*", default=[])
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--traffic", type=int, default=0)
    parser.add_argument("--simulate", type=int, default=0)
    parser.add_argument("--shrink", type=float, default=50.0, help="how much smaller messages are than real ones")
    parser.add_argument("--store", type=int, default=1500, help="megabytes of Ray's object store in a simulation")
    parser.add_argument("--constants", type=float, nargs=2, default=(CELL, VISITS), metavar=("CELL", "VISITS"))
    parser.add_argument("--project", action="store_true", help="say what the model says of the largest market")
    parser.add_argument("--most-rows", type=int, default=54_000_000, help="rows of the largest table that is timed")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--step", type=float, default=STEP, help="seconds of an empty super-step")
    parser.add_argument(
        "--reference", type=float, default=REFERENCE, help="seconds of the driver for a reference of a step"
    )
    parser.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second that a worker receives")
    parser.add_argument("--price", type=float, default=0.90, help="dollars of a machine for an hour")
    given = parser.parse_args()
    points = []
    for n in given.fit:
        points.append(measured(n, given.sweeps))
        print(json.dumps(points[-1]), flush=True)
    cell, visits = constants(points) if points else given.constants
    print(f"a cell {1e9 * cell:.0f} ns of one thread, and {visits:.1f} visits of rows")
    for point in points:
        predicted = point["cells"] * (cell + visits * point["gather"])
        print(f"fitted {point['reviews']}: {predicted / point['seconds'] - 1:+.1%}")
    for n in given.check:
        point = measured(n, given.sweeps)
        predicted = point["cells"] * (cell + visits * point["gather"])
        error = predicted / point["seconds"] - 1
        print(json.dumps({**point, "predicted": predicted, "error": error}), flush=True)
    for workers in (8, 64, 256) if given.project else ():
        project(workers, cell, visits, given)
    for workers in (2, 4, 8, 16) if given.traffic else ():
        print(json.dumps(traffic(given.traffic, workers)), flush=True)
    if given.simulate:
        gather = gather_seconds(1_000_000)
        kernels = AMAZON.reviews * (cell + visits * gather) / (given.simulate * given.threads)
        print(json.dumps(simulate(given.simulate, kernels, given.shrink, given.store), indent=1))


if __name__ == "__main__":
    main()
