"""Do verdicts on cores hold? How many members are said to abuse, and how many do, with labels and without.

    python benchmarks/core_verdicts.py --seeds 7301 7302 7303 7304 [--markets NAME ...] [--write]

A core is honest in its majority where less than half of its reviewers abuse. Of markets of tastes the number of
everyday reviews is said.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import ringleader as rl
from machine import describe, write_section
from ringleader.datasets import Marketplace, marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES
from ringleader.evaluation.results import markdown_table
from transfer import truth_of

SMALL, LARGE = 15_000, 40_000
MARKETS = {
    **{f"{name}, {LARGE:,}": (name, LARGE) for name in DIFFICULTIES},
    **{f"{name}, {LARGE:,}": (name, LARGE) for name in ("everything", "fans")},
    **{f"{name}, {SMALL:,}": (name, SMALL) for name in ("everything", "fans", "deals", "loyal", "very-loyal")},
    **{f"{name}, {SMALL:,}": (name, SMALL) for name in ("nested", "slow", "once")},
}
"""Kind and number of reviews of each market."""

WORDS = ("ring", "unclear", "honest group?")


class Judged(NamedTuple):
    """One core: what it is called, how many of its reviewers are said to abuse, how many do, and of how many."""

    word: str
    said: float
    true: int
    of: int


def market_of(name: str, seed: int) -> Marketplace:
    """A market of ``MARKETS``."""
    kind, reviews = MARKETS[name]
    if kind in DIFFICULTIES:
        return marketplace(reviews, difficulty=kind, seed=seed)
    return taste_market(reviews, kind=kind, seed=seed)


def judged(model: rl.RingDetector, bad: np.ndarray) -> list[Judged]:
    """The verdict on each core of a model beside the truth, (n_reviewers,)."""
    cores = model.snapshot_.cores()
    rows = []
    for core, verdict in zip(cores, model.snapshot_.verdicts(cores), strict=True):
        members = core.members["reviewer"].codes
        rows.append(Judged(verdict.word, verdict.abusive["reviewer"], int(bad[members].sum()), len(members)))
    return rows


def summary(name: str, labels: str, rows: Sequence[Judged]) -> list[str]:
    """A row of the table: of each verdict how many cores, and how many of these are honest in their majority."""
    cells = [name, labels]
    for word in WORDS:
        chosen = [row for row in rows if row.word == word]
        honest = sum(2 * row.true < row.of for row in chosen)
        cells += [f"{len(chosen)}, {honest}" if chosen else "", _shares(chosen)]
    return [*cells, f"{np.mean([abs(row.said - row.true) / row.of for row in rows]):.2f}" if rows else ""]


def _shares(rows: Sequence[Judged]) -> str:
    """What share of the members of cores is said to abuse, and what share does, means over cores."""
    if not rows:
        return ""
    return f"{np.mean([r.said / r.of for r in rows]):.2f} / {np.mean([r.true / r.of for r in rows]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--markets", nargs="*", default=list(MARKETS), choices=list(MARKETS))
    parser.add_argument("--write", action="store_true", help="write the table into docs/cores.md")
    options = parser.parse_args()
    found: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for name in options.markets:
        for seed in options.seeds:
            market = market_of(name, seed)
            model = rl.RingDetector(random_state=seed).fit(market.reviews)
            bad = truth_of(market, model.tensor_, "reviewer") == 1
            found[name, "without"] += judged(model, bad)
            found[name, "with"] += judged(model.partial_fit(labels=market.labels), bad)
        for labels in ("without", "with"):
            print(*summary(name, labels, found[name, labels]), sep="  ", flush=True)
    for labels in ("without", "with"):
        found["all", labels] = [
            row for (name, way), rows in found.items() if way == labels and name != "all" for row in rows
        ]
    header = ["market", "labels"]
    for word in WORDS:
        header += [f"{word}: cores, honest in their majority", "abusive, said / true"]
    header.append("mean error of the share")
    table = markdown_table(header, [summary(*key, rows) for key, rows in found.items()])
    about = f"`benchmarks/core_verdicts.py --seeds {' '.join(map(str, options.seeds))}`. {describe()}."
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("cores.md", "verdicts", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
