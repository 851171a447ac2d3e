"""A model of what a sweep on a cluster costs: constants that are measured, times that it predicts, and larger markets.

    python benchmarks/cluster_cost.py --fit 100000 200000 400000 --check 1000000 5000000
    python benchmarks/cluster_cost.py --traffic 200000
    python benchmarks/cluster_cost.py --simulate 64

Time of a sweep with its likelihood = cells x CELL + rows x ROW, divided among workers and threads, + super-steps x STEP
+ bytes that a worker receives / BANDWIDTH. Bytes: a worker receives each factor row that its cells and their negatives
name and that it does not own, once for each mode that is dealt out, the cells in which its entities were drawn, and
sums of the modes that are not dealt out. ``--simulate`` runs the messages of a sweep of the largest market between many
light actors on this machine, with sleeps for the kernels.
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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))

from in_process import InProcess

from cluster_speed import market
from ringleader.learners.cluster import ClusterLearner
from ringleader.learners.loop import get_learner, likelihoods
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state

ROW_BYTES = 96
"""A factor row of rank 24 in float32."""
DRAWN_BYTES = 36
"""A cell in which an entity was drawn, sent to its owner: codes, weight, numbers."""
SUM_BYTES = 2592
"""Gradient and curvature of an entity of a mode that is not dealt out, in float64."""
NEGATIVES = 4
STEPS = 11
"""Super-steps of a sweep of five modes."""


class Market(NamedTuple):
    """Sizes of a market: its reviews, the entities of each mode that is dealt out, and those of all others together."""

    reviews: int
    entities: tuple[int, ...]
    small: int


AMAZON = Market(571_000_000, (54_000_000, 48_000_000), 1_500)
"""Amazon reviews 2023: reviews, reviewers, products; ratings and weeks."""


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
    rows = sum(problem.tensor.shape)
    return {"reviews": reviews, "cells": problem.tensor.n_cells, "rows": rows, "seconds": min(times)}


def constants(points: list[dict[str, float]]) -> tuple[float, float]:
    """Seconds of a cell and of a row, by least squares of relative errors; neither below zero."""
    from scipy.optimize import nnls

    sides = np.array([[p["cells"] / p["seconds"], p["rows"] / p["seconds"]] for p in points])
    found, _ = nnls(sides, np.ones(len(points)))
    return float(found[0]), float(found[1])


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


class LightWorker:
    """An actor that sends messages of the right sizes, and sleeps for as long as its kernels would run."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count

    def step(self, size: int, seconds: float, *messages: Any) -> Any:
        assert all(len(message) == size for message in messages)
        time.sleep(seconds)
        letters = [np.zeros(size, np.uint8) for _ in range(self.count)]
        return letters if self.count > 1 else letters[0]


def simulate(workers: int, cell: float, row: float, threads: int, shrink: float, store: int) -> dict[str, float]:
    """A sweep of the largest market: real messages through Ray, ``shrink`` times smaller, and sleeps."""
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=store * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    kernels = (AMAZON.reviews * cell + sum(AMAZON.entities) * row) / (workers * threads)
    letter = int(received(AMAZON, workers) / STEPS / (workers - 1) / shrink)
    actor = ray.remote(num_cpus=0, max_restarts=0)(LightWorker)
    began = time.perf_counter()
    actors = [actor.remote(rank, workers) for rank in range(workers)]

    def exchange(size: int, seconds: float, steps: int) -> list[float]:
        answers = [a.step.options(num_returns=workers).remote(size, 0.0) for a in actors]
        times = []
        for _ in range(steps):
            since = time.perf_counter()
            answers = [
                a.step.options(num_returns=workers).remote(size, seconds, *(answers[q][p] for q in range(workers)))
                for p, a in enumerate(actors)
            ]
            ray.wait([answer[0] for answer in answers], num_returns=workers, fetch_local=False)
            times.append(time.perf_counter() - since)
        return times

    exchange(1, 0.0, 1)
    started = time.perf_counter() - began
    empty = exchange(1, 0.0, 4)
    full = exchange(letter, kernels / STEPS / shrink, STEPS)
    ray.shutdown()
    return {
        "workers": workers,
        "messages of a step": workers * (workers - 1),
        "bytes of a message": letter,
        "seconds to start": started,
        "empty step": float(np.median(empty)),
        "kernels of a step": kernels / STEPS / shrink,
        "step": float(np.median(full)),
        "steps": STEPS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", type=int, nargs="*", default=[])
    parser.add_argument("--check", type=int, nargs="*", default=[])
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--traffic", type=int, default=0)
    parser.add_argument("--simulate", type=int, default=0)
    parser.add_argument("--shrink", type=float, default=1000.0, help="how much smaller messages and kernels are")
    parser.add_argument("--constants", type=float, nargs=2, default=None, metavar=("CELL", "ROW"))
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--step", type=float, default=0.0014, help="seconds of an empty super-step")
    parser.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second that a worker receives")
    given = parser.parse_args()
    points = [measured(n, given.sweeps) for n in given.fit]
    for point in points:
        print(json.dumps(point))
    cell, row = constants(points) if points else given.constants or (1.5e-6, 2e-6)
    print(f"a cell {1e9 * cell:.0f} ns, a row {1e9 * row:.0f} ns of one thread")
    for n in given.check:
        point = measured(n, given.sweeps)
        predicted = cell * point["cells"] + row * point["rows"]
        print(json.dumps({**point, "predicted": predicted, "error": predicted / point["seconds"] - 1}))
    for workers in (8, 64, 256):
        kernels = (AMAZON.reviews * cell + sum(AMAZON.entities) * row) / (workers * given.threads)
        size = received(AMAZON, workers)
        seconds = kernels + size / given.bandwidth + STEPS * given.step * workers / 2
        print(
            f"{workers} workers: {seconds:.1f} s a sweep: kernels {kernels:.1f} s, {size / 1e9:.2f} GB received, "
            f"steps {STEPS * given.step * workers / 2:.2f} s"
        )
    for workers in (2, 4, 8, 16) if given.traffic else ():
        print(json.dumps(traffic(given.traffic, workers)), flush=True)
    if given.simulate:
        print(json.dumps(simulate(given.simulate, cell, row, given.threads, given.shrink, store=400), indent=1))


if __name__ == "__main__":
    main()
