"""Which rings come out as cores? The experiment behind docs/cores.md.

    python benchmarks/core_recovery.py --seeds 401 402 403 404 405
    python benchmarks/core_recovery.py --seeds --quiet-seeds 411 412 413
    python benchmarks/core_recovery.py --seeds --speed 1000000

A ring is matched when one of the first 2 x rings cores has a Jaccard overlap of at least one half with it, both in
sellers and in reviewers. ``quiet`` markets have no ring: every review by a paid reviewer is taken out; ``dealt`` ones
are whole markets whose reviewers are shuffled within every four weeks.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

import ringleader as rl
from machine import describe
from ringleader.cores import Core, Cores, find_cores
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.detection import DIFFICULTIES
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.sparse import SparseTensor

MONTH = 4 * 7 * 86_400
Ring = dict[str, set[int]]


def rings_of(market: Marketplace, tensor: SparseTensor) -> dict[str, Ring]:
    """Codes of the sellers and reviewers of each ring."""
    truth = market.truth[(market.truth["target"] == "abuse") & (market.truth["label"] == 1)]
    rings: dict[str, Ring] = {}
    for mode in ("seller", "reviewer"):
        part = truth[truth["mode"] == mode]
        for code, names in zip(tensor.vocabulary(mode).lookup(list(part["entity"])), part["ring"], strict=True):
            for name in str(names).split("|"):
                rings.setdefault(name, {"seller": set(), "reviewer": set()})[mode].add(int(code))
    return rings


def overlap(core: Core, ring: Ring, mode: str) -> float:
    members = set(core.members[mode].codes.tolist()) if mode in core.members else set()
    return len(members & ring[mode]) / max(len(members | ring[mode]), 1)


def matched(cores: Cores, rings: dict[str, Ring]) -> dict[str, tuple[float, float]]:
    """Jaccard of reviewers and of sellers of every ring that a core among the first 2 x rings matches."""
    overlaps: dict[str, tuple[float, float]] = {}
    for core in cores[: 2 * len(rings)]:
        for name, ring in rings.items():
            both = overlap(core, ring, "reviewer"), overlap(core, ring, "seller")
            if min(both) >= 0.5:
                overlaps[name] = max(both, overlaps.get(name, (0.0, 0.0)))
    return overlaps


def strangers(cores: Cores, rings: dict[str, Ring]) -> int:
    """Cores of which less than half of the reviewers are paid ones."""
    paid = set().union(*(ring["reviewer"] for ring in rings.values()))
    return sum(
        len(set(c.members["reviewer"].codes.tolist()) & paid) * 2 < len(c.members["reviewer"].codes) for c in cores
    )


def recovery(options: argparse.Namespace) -> None:
    for difficulty in options.difficulty:
        rows = []
        for seed in options.seeds:
            market = marketplace(options.reviews, seed=seed, difficulty=difficulty)
            tensor = rl.read_reviews(market.reviews)
            lockstep, rings = find_lockstep(tensor), rings_of(market, tensor)
            started = time.perf_counter()
            cores = find_cores(tensor, lockstep)
            seconds = time.perf_counter() - started
            hits = matched(cores, rings)
            rows.append(
                {
                    "seed": seed,
                    "rings": len(rings),
                    "matched": len(hits),
                    "cores": len(cores),
                    "attacks": sum(core.side == "attack" for core in cores),
                    "strangers": strangers(cores, rings),
                    "reviewers": np.mean([a for a, _ in hits.values()] or [np.nan]),
                    "sellers": np.mean([b for _, b in hits.values()] or [np.nan]),
                    "missed sizes": " ".join(
                        f"{len(r['reviewer'])}x{len(r['seller'])}" for n, r in rings.items() if n not in hits
                    ),
                    "seconds": seconds,
                }
            )
        table = pd.DataFrame(rows)
        share = table["matched"].sum() / table["rings"].sum()
        print(f"\n{difficulty}, {options.reviews} reviews: {share:.1%} of {table['rings'].sum()} rings matched")
        print(table.round(2).to_string(index=False), flush=True)


def quiet(options: argparse.Namespace) -> None:
    """Markets without rings, and markets dealt anew: how many cores, of how many reviews."""
    for difficulty in options.difficulty:
        for seed in options.quiet_seeds:
            market = marketplace(options.reviews, seed=seed, difficulty=difficulty)
            truth, reviews = market.truth, market.reviews
            paid = truth.loc[(truth["mode"] == "reviewer") & (truth["label"] == 1), "entity"]
            month, rng = reviews["timestamp"] // MONTH, np.random.default_rng(seed)
            dealt = reviews.assign(reviewer=reviews.groupby(month)["reviewer"].transform(rng.permutation))
            for name, table in (("quiet", reviews[~reviews["reviewer"].isin(paid)]), ("dealt", dealt)):
                tensor = rl.read_reviews(table)
                cores = find_cores(tensor, find_lockstep(tensor))
                print(
                    difficulty,
                    seed,
                    name,
                    "cores:",
                    [(c.side, round(c.log10_p, 1), len(c.cells)) for c in cores],
                    flush=True,
                )


def speed(reviews: int) -> None:
    small = rl.read_reviews(marketplace(20_000, seed=0).reviews)
    find_cores(small, find_lockstep(small))  # compiles
    for difficulty in DIFFICULTIES:
        market = marketplace(reviews, seed=5, difficulty=difficulty)
        tensor = rl.read_reviews(market.reviews)
        lockstep, rings = find_lockstep(tensor), rings_of(market, tensor)
        started, used = time.perf_counter(), time.process_time()
        cores = find_cores(tensor, lockstep)
        print(
            f"{difficulty}, {reviews} reviews: {time.perf_counter() - started:.1f} s "
            f"({time.process_time() - used:.1f} s of processor), {len(cores)} cores, "
            f"{len(matched(cores, rings))} of {len(rings)} rings matched",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[401, 402, 403, 404, 405])
    parser.add_argument("--quiet-seeds", type=int, nargs="*", default=[])
    parser.add_argument("--difficulty", nargs="+", default=list(DIFFICULTIES), choices=list(DIFFICULTIES))
    parser.add_argument("--speed", type=int, metavar="REVIEWS")
    options = parser.parse_args()
    print(describe())
    if options.seeds:
        recovery(options)
    if options.quiet_seeds:
        quiet(options)
    if options.speed:
        speed(options.speed)


if __name__ == "__main__":
    main()
