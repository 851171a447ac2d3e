"""Measures the GPU backend beside the compiled one: the same sweeps, and whole fits. Needs a GPU and CuPy.

python benchmarks/gpu.py --sweeps 2000000 --fits 20000000 --markets 2
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from ringleader.counters import stream_key
from ringleader.detector import RingDetector
from ringleader.evaluation import device_speed as speed
from ringleader.evaluation.machine import describe
from ringleader.kernels.layout import View, no_statistics, no_terms
from ringleader.kernels.protocol import get_backend
from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.runtime.machine import processors
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

NEGATIVES = 4


def same_sweeps(gpu: Any, cells: int, rank: int) -> None:
    """Sweeps of one market by the compiled backend, on two threads and on all, and by the GPU."""
    sizes = speed.market_sizes(cells)
    market = speed.draw_market(gpu, cells, sizes, rank)
    codes, start = market.codes.get(), market.factors.get()
    grouped = [(offsets.get(), members.get()) for offsets, members in market.grouped]
    entries, nothing = cells * (1 + NEGATIVES), (no_terms(rank), no_statistics(rank), np.zeros((0, rank)))
    after = {}
    for threads in (2, processors()):
        cpu = get_backend("numba", threads)
        tuples = cpu.place_tuples(codes, NEGATIVES)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        view = View(tuples, np.ones(1), 0, start.astype(np.float64), starts, len(start), np.ones(rank))
        plans = {k: cpu.plan(k, grouped[k]) for k in range(1, len(sizes))}
        times = []
        for sweep in range(4):
            began = time.perf_counter()
            cpu.draw_negatives(tuples, len(sizes), tuples[:, 0], stream_key(0, sweep))
            for k in range(1, len(sizes)):
                cpu.sweep_blocks(view, plans[k], speed.RULE, *nothing)
            drawn = cpu.group_drawn(tuples, len(sizes), sizes[0])
            cpu.sweep_blocks(view, cpu.plan(0, grouped[0], drawn), speed.RULE, *nothing)
            cpu.log_likelihood(view)
            times.append(time.perf_counter() - began)
            if sweep == 0:
                after[threads] = view.factors.copy()
        middle = statistics.median(times[1:])
        print(
            f"{threads} threads, {cells:,} reviews, rank {rank}: {entries / middle / 1e6:.2f} M entries/s", flush=True
        )
    run = speed.DeviceSweep(gpu, market, NEGATIVES)
    run.run()
    gap = np.abs(market.factors.get() - after[2]) / (np.abs(after[2]) + 1e-2)
    print(f"factors after one sweep, float32 on the GPU and float64 on the CPU, relative to |x| + 0.01: "
          f"median {np.median(gap):.1e}, 99.9% {np.quantile(gap, 0.999):.1e}, largest {gap.max():.1e}")  # fmt: skip
    middle = statistics.median(sum(run.run().values()) for _ in range(5))
    print(f"{gpu.kind}, the same: {entries / middle / 1e3:.0f} M entries/s", flush=True)


def whole_fits(gpu: Any, cells: int, rank: int) -> None:
    """Seconds of a sweep of ``fit_loop``, with all that a fit does around it: objective, copies to the host."""
    market = speed.draw_market(gpu, cells, speed.market_sizes(cells), rank)
    names = [
        Vocabulary.of_ids(name, map(str, range(size))) for name, size in zip(speed.NAMES, market.sizes, strict=True)
    ]
    grouped = {k: (offsets.get(), members.get()) for k, (offsets, members) in enumerate(market.grouped)}
    tensor = SparseTensor(market.codes.get(), np.ones(cells, np.int64), tuple(names), _groupings=_frozen(grouped))
    del market
    gpu.device.xp.get_default_memory_pool().free_all_blocks()
    config = ModelConfig.preset("default", rank=rank, backend="cuda", start="half-normal")
    problem = build_problem(tensor, (), config)
    state, _ = fit_loop(problem, start_state(problem), sweeps=1)
    for _ in range(3):
        began = time.perf_counter()
        state, history = fit_loop(problem, state, sweeps=1)
        print(f"fit of {cells:,} reviews: {time.perf_counter() - began:.2f} s a sweep, objective and copies included; "
              f"log-likelihood {history[-1].log_likelihood:.6f}", flush=True)  # fmt: skip


def _frozen(grouped: dict[int, tuple[Any, Any]]) -> dict[int, Any]:
    from ringleader.tensor.sparse import Grouping

    for arrays in grouped.values():
        for array in arrays:
            array.flags.writeable = False
    return {k: Grouping(*arrays) for k, arrays in grouped.items()}


def markets(count: int, file: Path) -> None:
    """Scores of whole fits on generated markets: both devices, and how well they agree."""
    for number, (tensor, labels, truth) in enumerate(pickle.loads(file.read_bytes())[:count]):
        scores: dict[str, dict[str, Any]] = {}
        for device in ("cpu", "cuda"):
            began = time.perf_counter()
            model = RingDetector(device=device, random_state=0).fit(tensor, labels)
            scores[device] = {mode: model.snapshot_.scores_by_code(mode).set_index("entity") for mode in truth}
            print(f"market {number} {device} ({model.device_}): {time.perf_counter() - began:.1f} s")
        for mode, known in truth.items():
            one, other = (scores[device][mode]["score"] for device in ("cpu", "cuda"))
            areas = [_area(score.loc[known.index].to_numpy(), known.to_numpy()) for score in (one, other)]
            print(f"market {number} {mode}: AUC {areas[0]:.5f} and {areas[1]:.5f}; "
                  f"rank correlation {spearmanr(one, other.loc[one.index]).statistic:.6f}", flush=True)  # fmt: skip


def _area(score: Any, label: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(label, score))


def write_markets(file: Path, count: int) -> None:
    """Markets for machines that cannot read tables (no DuckDB): tensor, labels and truth, pickled."""
    import ringleader as rl
    from ringleader.datasets import marketplace

    made = []
    for seed in range(1000, 1000 + count):
        market = marketplace(150_000, seed=seed)
        test = market.truth[market.truth["split"] == "test"]
        truth = {mode: part.set_index("entity")["label"] for mode, part in test.groupby("mode")}
        made.append((rl.read_reviews(market.reviews), rl.read_labels(market.labels), truth))
    file.write_bytes(pickle.dumps(made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=0, help="reviews of a market swept by CPU and GPU")
    parser.add_argument("--fits", type=int, default=0, help="reviews of a market fitted on the GPU")
    parser.add_argument("--markets", type=int, default=0, help="generated markets fitted on both")
    parser.add_argument("--file", type=Path, default=Path("build/markets.pickle"))
    parser.add_argument("--write", action="store_true", help="write the markets and stop")
    parser.add_argument("--rank", type=int, default=24)
    given = parser.parse_args()
    if given.write:
        given.file.parent.mkdir(exist_ok=True)
        write_markets(given.file, given.markets)
        return
    gpu = get_backend("cuda")
    print(f"{gpu.kind}; {describe()}")
    if given.sweeps:
        same_sweeps(gpu, given.sweeps, given.rank)
    if given.fits:
        whole_fits(gpu, given.fits, given.rank)
    if given.markets:
        markets(given.markets, given.file)


if __name__ == "__main__":
    main()
