"""Entries per second of the default learner on a synthetic heavy-tailed tensor of five modes.

    python benchmarks/learner_speed.py [--large] [--sweeps 3] [--ranks 10 24] [--json FILE]

An entry is one tuple, observed or negative, carried through the update of every mode. Compilation is measured
apart; numbers are medians over sweeps (and minima and processor time, which a busy machine disturbs less). The
floor is what the arithmetic alone would take: bytes gathered and multiply-adds per entry and mode.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary


def synthetic_tensor(cells: int, seed: int = 0) -> SparseTensor:
    """Reviewers, products and sellers by power laws, five ratings, 150 weeks; about ten cells per reviewer."""
    rng = np.random.default_rng(seed)
    sizes = (max(cells // 10, 1000), max(cells // 33, 300), max(cells // 160, 50), 5, 150)

    def popular(size: int, power: float) -> np.ndarray:
        share = np.cumsum(1 / np.arange(10, size + 10) ** power)
        return np.searchsorted(share, rng.random(cells) * share[-1]).astype(np.int32)

    product = popular(sizes[1], 0.8)
    rating = np.searchsorted([0.05, 0.1, 0.2, 0.45], rng.random(cells)).astype(np.int32)
    codes = np.stack(
        [popular(sizes[0], 0.6), product, product % sizes[2], rating, rng.integers(0, 150, cells, np.int32)], axis=1
    )
    codes = codes[np.argsort(codes[:, 0], kind="stable")]  # cells of a tensor are sorted by their first mode
    names = ("reviewer", "product", "seller", "rating", "week")
    # Entities are named by their code only where someone would read the names: nobody does here.
    vocabularies = tuple(Vocabulary.of_ids(m, map(str, range(n))) for m, n in zip(names, sizes, strict=True))
    return SparseTensor(codes, np.ones(cells, np.int64), vocabularies)


def timed_sweeps(problem: Problem, sweeps: int) -> tuple[list[float], list[float]]:
    """Wall-clock and processor seconds of each sweep after one that warms up."""
    state = start_state(problem)
    state, _ = fit_loop(problem, state, sweeps=1)
    seconds, processor = [], []
    for _ in range(sweeps):
        begin, used = time.perf_counter(), time.process_time()
        state, _ = fit_loop(problem, state, sweeps=1)
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    return seconds, processor


def floor(rank: int, modes: int = 5, negatives: int = 4) -> dict[str, float]:
    """Per entry and mode: factor bytes read (a cell's other rows are shared by its negatives), multiply-adds."""
    shared = (modes - 2) / (negatives + 1)
    padded = -(-rank // 4) * 4
    return {
        "bytes": round(8 * rank * (1 + shared) + 4 * (modes + negatives) / (negatives + 1), 1),
        "multiply_adds": round(padded * (padded + 2) / 2 + 3 * rank + rank * shared, 1),
    }


def compile_seconds() -> float:
    """Seconds until a tiny fit is done: compilation, or loading what was compiled before."""
    tensor = SparseTensor.from_arrays(np.random.default_rng(0).integers(0, 5, (50, 5)))
    problem = build_problem(tensor, (), ModelConfig(rank=2, sweeps=1))
    begin = time.perf_counter()
    fit_loop(problem, start_state(problem))
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also ten million cells (needs about 8 GB)")
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+", default=[10, 24])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: list[dict[str, Any]] = [{"compile_or_load_seconds": round(compile_seconds(), 1)}]
    print(results[0])
    for cells in [options.cells, *([10_000_000] if options.large else [])]:
        tensor = synthetic_tensor(cells)
        for rank in options.ranks:
            for threads in options.threads:
                config = ModelConfig(rank=rank, threads=threads, dtype=options.dtype)
                seconds, processor = timed_sweeps(build_problem(tensor, (), config), options.sweeps)
                entries = cells * (1 + config.negatives)
                row = {
                    "cells": cells,
                    "rank": rank,
                    "threads": threads,
                    "seconds_per_sweep": round(statistics.median(seconds), 3),
                    "entries_per_second": round(entries / statistics.median(seconds)),
                    "best_entries_per_second": round(entries / min(seconds)),
                    "processor_seconds_per_sweep": round(min(processor), 3),
                    "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
                    "floor_per_entry_and_mode": floor(rank),
                }
                print(row, flush=True)
                results.append(row)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
