"""The suspicion without labels on every kind of market and on real data, and who is on the first list.

    python benchmarks/label_free.py --seeds 2001 2002 2003 2004 2005 [--markets NAME ...] [--data DIR] [--write]

AUC, activity-matched AUC, and the share of bad accounts among the first 20 sellers or 50 reviewers. The project's
markets are tested on their own split, all others on all accounts.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import ringleader as rl
from machine import describe, write_section
from ringleader.datasets import marketplace, taste_market
from ringleader.datasets.tastes import KINDS
from ringleader.evaluation import metrics
from ringleader.evaluation.detection import DIFFICULTIES, MODES, TASTE_REVIEWS
from ringleader.evaluation.protocol import market_split
from ringleader.evaluation.real import load_otc, load_xu
from ringleader.evaluation.results import markdown_table
from transfer import truth_of

FIRST = {"seller": 20, "reviewer": 50}
"""Accounts of the first list."""


class Tested(NamedTuple):
    """Accounts of a mode whose truth is known."""

    mode: str
    codes: np.ndarray
    truth: np.ndarray


def markets(
    names: Sequence[str], seeds: Sequence[int], reviews: int, folder: str | None
) -> Iterator[tuple[str, int, rl.SparseTensor, list[Tested]]]:
    for name in names:
        for seed in seeds:
            if name in DIFFICULTIES:
                market = marketplace(reviews, difficulty=name, seed=seed)
                tensor = rl.read_reviews(market.reviews)
                splits = [market_split(tensor, market.truth, mode) for mode in MODES]
                yield name, seed, tensor, [Tested(split.mode, split.test, split.truth) for split in splits]
                continue
            market = taste_market(min(reviews, TASTE_REVIEWS), kind=name, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            truth = {mode: truth_of(market, tensor, mode) for mode in MODES}
            known = {mode: np.flatnonzero(~np.isnan(bad)) for mode, bad in truth.items()}
            yield name, seed, tensor, [Tested(mode, known[mode], truth[mode][known[mode]]) for mode in MODES]
    for load in (load_xu, load_otc) if folder else ():
        data = load(folder)
        bad = np.asarray(data.truth, np.float64)
        known = np.flatnonzero(~np.isnan(bad))
        yield data.name, 0, data.tensor, [Tested(data.mode, known, bad[known])]


def figures(model: rl.RingDetector, tested: Tested) -> tuple[float, float, float]:
    tensor = model.tensor_
    score = model.suspicion(tested.mode)[tested.codes]
    activity = tensor.degrees(tested.mode)[tested.codes]
    return (
        metrics.auc(tested.truth, score),
        metrics.matched_auc(tested.truth, score, activity),
        metrics.precision_at(tested.truth, score, FIRST[tested.mode]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--markets", nargs="*", default=[*DIFFICULTIES, *KINDS])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for name, seed, tensor, accounts in markets(options.markets, options.seeds, options.reviews, options.data):
        model = rl.RingDetector(random_state=seed).fit(tensor)
        for tested in accounts:
            found[name, tested.mode].append(figures(model, tested))
            print(name, seed, tested.mode, *(f"{value:.3f}" for value in found[name, tested.mode][-1]), flush=True)
    lines = []
    for (name, mode), rows in found.items():
        plain, matched, first = np.mean(rows, axis=0)
        lines.append([f"{name}, {mode}s", f"{plain:.3f}", f"{matched:.3f}", f"{first:.2f}"])
    seeds = ", ".join(map(str, options.seeds))
    about = (
        f"`benchmarks/label_free.py --data DIR`, {options.reviews:,} reviews (markets of tastes: {TASTE_REVIEWS:,} of"
    )
    about += f" everyday life), seeds {seeds}. {describe()}."
    table = markdown_table(["no labels", "AUC", "matched", "bad among the first 20 / 50"], lines)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("detection.md", "label-free", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
