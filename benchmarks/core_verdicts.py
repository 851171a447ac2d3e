"""Do verdicts on cores hold? How many members are said to abuse, and how many do, with labels and without.

    python benchmarks/core_verdicts.py --seeds 7301 7302 7303 7304 [--markets NAME ...] [--write]

A core is honest in its majority where less than half of its reviewers abuse. Markets of 40,000 reviews (of tastes: so
many everyday ones) and, of tastes, of 15,000 besides, where rings are a larger part.
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

TASTES = ("loyal", "very-loyal", "nested", "fans", "deals", "slow", "once", "everything")
REVIEWS, SMALL = 40_000, 15_000


class Judged(NamedTuple):
    """One core: what it is called, how many of its reviewers are said to abuse, how many do, and of how many."""

    word: str
    said: float
    true: int
    of: int


def markets(name: str, seed: int) -> list[Marketplace]:
    """The markets of a name and a seed, one for each size."""
    if name in DIFFICULTIES:
        return [marketplace(REVIEWS, difficulty=name, seed=seed)]
    return [taste_market(reviews, kind=name, seed=seed) for reviews in (REVIEWS, SMALL)]


def judged(model: rl.RingDetector, bad: np.ndarray) -> list[Judged]:
    """The verdict on each core of a model beside the truth, (n_reviewers,)."""
    cores = model.snapshot_.cores()
    rows = []
    for core, verdict in zip(cores, model.snapshot_.verdicts(cores), strict=True):
        members = core.members["reviewer"].codes
        rows.append(Judged(verdict.word, verdict.abusive["reviewer"], int(bad[members].sum()), len(members)))
    return rows


def summary(name: str, labels: str, rows: Sequence[Judged]) -> list[str]:
    """A row of the table."""
    rings = [row for row in rows if row.word == "ring"]
    others = [row for row in rows if row.word != "ring"]
    wrong = sum(2 * row.true < row.of for row in rings), sum(2 * row.true >= row.of for row in others)
    return [
        *(name, labels),
        *(f"{len(rings)}", f"{wrong[0]}", _shares(rings)),
        *(f"{len(others)}", f"{wrong[1]}", _shares(others)),
        f"{np.mean([abs(row.said - row.true) / row.of for row in rows]):.2f}" if rows else "",
    ]


def _shares(rows: Sequence[Judged]) -> str:
    """What share of the members of cores is said to abuse, and what share does, means over cores."""
    if not rows:
        return ""
    return f"{np.mean([r.said / r.of for r in rows]):.2f} / {np.mean([r.true / r.of for r in rows]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--markets", nargs="*", default=[*DIFFICULTIES, *TASTES])
    parser.add_argument("--write", action="store_true", help="write the table into docs/cores.md")
    options = parser.parse_args()
    found: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for name in options.markets:
        for market in (market for seed in options.seeds for market in markets(name, seed)):
            model = rl.RingDetector(random_state=0).fit(market.reviews)
            bad = truth_of(market, model.tensor_, "reviewer") == 1
            found[name, "without"] += judged(model, bad)
            found[name, "with"] += judged(model.partial_fit(labels=market.labels), bad)
        for labels in ("without", "with"):
            print(*summary(name, labels, found[name, labels]), sep="  ", flush=True)
    for labels in ("without", "with"):
        found["all", labels] = [
            row for (name, way), rows in found.items() if way == labels and name != "all" for row in rows
        ]
    header = ["market", "labels", "rings", "honest in their majority", "abusive, said / true"]
    header += ["honest group?", "abusive in their majority", "abusive, said / true", "mean error of the share"]
    table = markdown_table(header, [summary(*key, rows) for key, rows in found.items()])
    about = f"`benchmarks/core_verdicts.py --seeds {' '.join(map(str, options.seeds))}`. {describe()}."
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("cores.md", "verdicts", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
