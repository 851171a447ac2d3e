"""Speed and memory of the baselines on a million reviews in five modes.

    python benchmarks/baseline_speed.py [--reviews 1000000] [--only mzoom bptf ...]

Prints one line per measurement: the least wall-clock and processor seconds of several runs, compile time apart. On a
machine that others use, the processor seconds are the steadier number for what runs on one core.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from ringleader.baselines.method import Progress
from ringleader.baselines.registry import baseline
from ringleader.tensor.sparse import SparseTensor

MODES = ("reviewer", "product", "seller", "rating", "week")


def market(reviews: int, seed: int = 0) -> SparseTensor:
    """Heavy-tailed reviewers, products and sellers; five ratings; 150 weeks."""
    g = np.random.default_rng(seed)
    shape = (max(reviews // 5, 10), max(reviews // 33, 10), max(reviews // 100, 5), 5, 150)

    def heavy(size: int, exponent: float) -> np.ndarray:
        weights = 1.0 / np.arange(1, size + 1) ** exponent
        return g.permutation(size)[g.choice(size, reviews, p=weights / weights.sum())]

    product = heavy(shape[1], 0.8)
    owner = g.integers(0, shape[2], shape[1])
    seller = np.where(g.random(reviews) < 0.9, owner[product], heavy(shape[2], 0.7))
    rating = g.choice(5, reviews, p=[0.08, 0.05, 0.08, 0.19, 0.6])
    week = np.minimum(149, (g.beta(2, 1.2, reviews) * 150).astype(int))
    codes = np.stack([heavy(shape[0], 0.6), product, seller, rating, week], axis=1)
    return SparseTensor.from_arrays(codes, MODES, sizes=shape)


def least(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Least wall-clock and processor seconds of several runs."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def blocks(tensor: SparseTensor, small: SparseTensor, repeats: int) -> None:
    for name in ("mzoom", "mbiz"):
        baseline(name).fit(small)
        for density in ("ari", "geo", "susp"):
            model = baseline(name, density=density, n_blocks=5)
            wall, processor = least(lambda model=model: model.fit(tensor), repeats)
            print(f"{name} {density}: five blocks {wall:.2f} s wall, {processor:.2f} s processor")


def per_iteration(name: str, tensor: SparseTensor, **settings: object) -> None:
    """Entries per second of an iteration (or epoch), from the times between callbacks."""
    marks: list[tuple[float, float]] = []

    def mark(progress: Progress) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    baseline(name, **settings).fit(tensor, callback=mark)
    wall, processor = np.diff(np.array(marks), axis=0).min(axis=0)
    print(
        f"{name}: {tensor.n_cells / wall / 1e6:.2f} M entries/s wall, "
        f"{tensor.n_cells / processor / 1e6:.2f} M entries per processor second"
    )


def others(tensor: SparseTensor, small: SparseTensor, names: list[str]) -> None:
    for name in names:
        baseline(name).fit(small)
        wall, processor = least(lambda name=name: baseline(name).fit(tensor), 1)
        print(f"{name}: {wall:.2f} s wall, {processor:.2f} s processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["mzoom", "bptf", "bnbcp-svi", "bnbcp", "others"])
    options = parser.parse_args()
    tensor, small = market(options.reviews), market(2000)
    print(f"{tensor.n_cells:,} cells, shape {tensor.shape}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if "mzoom" in options.only:
        blocks(tensor, small, options.repeats)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak memory {after / 1024:.0f} MB, before the search {before / 1024:.0f} MB")
    if "bptf" in options.only:
        per_iteration("bptf", tensor, rank=10, max_iter=8, tol=1e-12)
    if "bnbcp" in options.only:
        per_iteration("bnbcp", tensor, rank=10, max_iter=6, tol=1e-12)
    if "bnbcp-svi" in options.only:
        per_iteration("bnbcp-svi", tensor, rank=10, n_epochs=4)
    if "others" in options.only:
        others(tensor, small, ["crossspot", "multiaspect", "burst", "degree"])


if __name__ == "__main__":
    main()
