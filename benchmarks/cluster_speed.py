"""Sweeps of two workers with one thread each beside one process with two threads, and what a super-step costs.

    python benchmarks/cluster_speed.py --reviews 1000000

Both run in turn, sweep by sweep, so that other programs on the machine disturb them alike; medians are compared. CPU
seconds are those of all processes together.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

import numpy as np

import ringleader as rl
from ringleader.learners.cluster import ClusterLearner
from ringleader.learners.loop import get_learner, likelihoods
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.runtime.peers import Peers, gather
from ringleader.tensor.sparse import SparseTensor


def market(reviews: int) -> SparseTensor:
    """Reviewers of ten reviews each, products of fifty, 2,000 sellers, ratings and weeks; activity is skewed."""
    rng = np.random.default_rng(0)
    skewed = [(n * rng.beta(0.6, 2.0, reviews)).astype(np.int32) for n in (reviews // 10, reviews // 50, 2000)]
    return SparseTensor.from_arrays(
        np.stack(
            [*skewed, rng.choice(5, reviews, p=[0.1, 0.05, 0.1, 0.2, 0.55]), rng.integers(0, 200, reviews)], axis=1
        )
    )


def seconds_used(memory: dict[str, Any], peers: Peers) -> tuple[float, float]:
    """In a worker: CPU seconds so far, and the most memory it had (MB)."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def empty_steps(memory: dict[str, Any], peers: Peers, count: int) -> float:
    """In a worker: seconds of one exchange of nothing."""
    started = time.perf_counter()
    for _ in range(count):
        gather(peers, None)
    return (time.perf_counter() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--store", type=int, default=300, help="megabytes of Ray's object store")
    given = parser.parse_args()
    problem = build_problem(market(given.reviews), (), ModelConfig(threads=given.workers))
    learner, state = get_learner("natural-gradient"), start_state(problem)
    with rl.Ray(workers=given.workers, threads=1, object_store=given.store * 2**20).start() as workers:
        print(f"super-step: {1000 * workers.run(empty_steps, [(200,)] * given.workers)[0]:.1f} ms")
        started = max(megabytes for _, megabytes in workers.run(seconds_used, [()] * given.workers))
        cluster = ClusterLearner(workers, learner)
        cluster.sweep(problem, learner.sweep(problem, state))  # compiled, dealt out
        rows: dict[str, list[tuple[float, float]]] = {"one process": [], "cluster": []}
        one = many = state
        cluster._held = None
        many = cluster.sweep(problem, many)
        one = learner.sweep(problem, one)
        for _ in range(given.sweeps):
            wall, cpu = time.perf_counter(), time.process_time()
            one = learner.sweep(problem, one)
            likelihoods(problem, one)
            rows["one process"].append((time.perf_counter() - wall, time.process_time() - cpu))
            before = [used for used, _ in workers.run(seconds_used, [()] * given.workers)]
            wall, cpu = time.perf_counter(), time.process_time()
            many = cluster.sweep(problem, many)
            elapsed, own = time.perf_counter() - wall, time.process_time() - cpu
            after = workers.run(seconds_used, [()] * given.workers)
            rows["cluster"].append((elapsed, own + sum(a[0] for a in after) - sum(before)))
            assert one.factors.tobytes() == many.factors.tobytes()
        medians = {name: [statistics.median(column) for column in zip(*r, strict=True)] for name, r in rows.items()}
        for name, (wall, cpu) in medians.items():
            print(f"{name}: {wall:.2f} s a sweep with its likelihood, {cpu:.2f} CPU seconds")
        ratios = [many / one for one, many in zip(*medians.values(), strict=True)]
        print(f"cluster over one process: {ratios[0]:.2f} times the time, {ratios[1]:.2f} times the CPU seconds")
        peaks = ", ".join(f"{megabytes:.0f} MB" for _, megabytes in after)
        print(f"peak memory of the workers: {peaks} ({started:.0f} MB before they had any data)")


if __name__ == "__main__":
    main()
