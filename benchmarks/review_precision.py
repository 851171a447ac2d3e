"""Who is on the first list of single reviews: precision of ``score --reviews`` at 50, without labels and with them.

    python benchmarks/review_precision.py --seeds 7401 7402 7403 [--markets NAME ...] [--rows FILE] [--write]

One fit of each market; with labels it is those that the market comes with. Of the first fifty reviews: how many are by
paid reviewers, how many are bought (a good rating by a paid reviewer for a seller of his own ring), and of how many
reviewers they are. A bad rating by a paid reviewer counts as his and as not bought.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
import pandas as pd

import ringleader as rl
from machine import describe, write_section
from ringleader.cli.score import review_frame
from ringleader.datasets import Marketplace, marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES, rings_of
from ringleader.evaluation.results import markdown_table
from ringleader.known.labels import DEFAULT_TARGET
from stored_rows import StoredRows

FIRST = 50
GOOD_RATING = 4
REVIEWS = 60_000
"""Reviews of the project's markets."""


def first_reviews(market: Marketplace, frame: pd.DataFrame) -> list[float]:
    """Shares of the first reviews that are by paid reviewers and that are bought, and how many wrote them."""
    truth = market.truth[market.truth["target"] == DEFAULT_TARGET]
    rings = {
        mode: dict(zip(rows["entity"], map(rings_of, rows["ring"]), strict=True))
        for mode, rows in truth.groupby("mode")
    }
    first = frame.head(FIRST)
    of_reviewer = [rings["reviewer"][name] for name in first["reviewer"]]
    of_seller = [rings["seller"][name] for name in first["seller"]]
    praised = first["rating"].astype(float).to_numpy() >= GOOD_RATING
    bought = [good and not set(a).isdisjoint(b) for good, a, b in zip(praised, of_reviewer, of_seller, strict=True)]
    return [float(np.mean([bool(own) for own in of_reviewer])), float(np.mean(bought)), first["reviewer"].nunique()]


def measure(name: str, seed: int) -> dict[str, list[float]]:
    own = name in DIFFICULTIES
    market = marketplace(REVIEWS, difficulty=name, seed=seed) if own else taste_market(kind=name, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    known = market.labels[market.labels["target"] == DEFAULT_TARGET]
    found = {}
    for when, labels in (("without", None), ("with", known)):
        model = rl.RingDetector(random_state=seed).fit(tensor, labels)
        found[when] = first_reviews(market, review_frame(model.snapshot_))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7401, 7402, 7403])
    parser.add_argument("--markets", nargs="+", default=["medium", "hard", "fans", "slow", "everything"])
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument("--write", action="store_true", help="write the table into docs/scores.md")
    options = parser.parse_args()
    stored, figures = StoredRows(options.rows), defaultdict(lambda: defaultdict(list))
    for name in options.markets:
        for seed in options.seeds:
            found = stored.find(["reviews", name, seed], lambda name=name, seed=seed: measure(name, seed))
            print(name, seed, found, flush=True)
            for when, row in found.items():
                figures[name][when].append(row)
    lines = []
    for name, by in figures.items():
        for when, label in (("without", "no labels"), ("with", "labels")):
            paid, bought, authors = np.mean(by[when], axis=0)
            worst = np.min(by[when], axis=0)
            lines.append(
                [f"{name}, {label}", f"{paid:.2f} ({worst[0]:.2f})", f"{bought:.2f} ({worst[1]:.2f})", f"{authors:.0f}"]
            )
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/review_precision.py`, seeds {seeds}: means, and the worst market in brackets. {describe()}."
    table = markdown_table([f"of the first {FIRST}", "by paid reviewers", "bought", "reviewers who wrote them"], lines)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("scores.md", "review-precision", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
