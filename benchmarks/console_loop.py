"""What the loop of the console is worth: how many of the bad a person finds who works the queue.

    python benchmarks/console_loop.py [--write] [--family generated|taste] [--reviews 40000] [--seeds 5]

A simulated analyst who knows the truth decides 200 reviewers, one after the other, from nothing known. After every five
decisions the model learns from all of them, as the console does behind a person who is quick. ``top``, ``uncertain``,
``diverse`` and ``random`` are the orders of the queue; ``no refit`` is the first ranking worked from its head;
``boosting`` ranks by gradient boosting of all behaviour columns, refitted after every single decision once both kinds
are known, and by our label-free ranking before. Two families of markets: those of ``ringleader generate`` and those of
``taste_market``. The last column is the AUC of the final ranking on everybody who was not decided.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial

import numpy as np

import ringleader as rl
from machine import describe, write_section
from ringleader.baselines.behaviour import Boosting, mode_features
from ringleader.console.live import Served, serve_snapshot
from ringleader.console.queue import ORDERS, upcoming
from ringleader.console.refit import derive
from ringleader.datasets import marketplace, taste_market
from ringleader.datasets.marketplace import Marketplace
from ringleader.evaluation.metrics import auc
from ringleader.known.labels import Label, Labels
from ringleader.snapshot import Snapshot

MODE, TARGET = "reviewer", "abuse"
EVERY = 5
BUDGETS = (50, 100, 200)
FIRST_SEEDS = {"generated": 2_100, "taste": 2_200}


def generated(reviews: int, seed: int) -> tuple[object, set[str]]:
    return _with_bad(marketplace(reviews, seed=seed))


def _with_bad(market: Marketplace) -> tuple[object, set[str]]:
    """The reviews of a market, and its bad reviewers."""
    truth = market.truth
    rows = truth[(truth["mode"] == MODE) & (truth["target"] == TARGET) & (truth["label"] == 1)]
    return market.reviews, set(rows["entity"].astype(str))


def tasteful(reviews: int, seed: int) -> tuple[object, set[str]]:
    return _with_bad(taste_market(reviews, kind="loyal", seed=seed))


FAMILIES = {"generated": ("Generated marketplace", generated), "taste": ("Taste market", tasteful)}


def served(snapshot: Snapshot, before: Served | None = None) -> Served:
    return serve_snapshot(snapshot, number=1, until=0, learned=0, before=before)


def by_queue(base: Served, bad: np.ndarray, order: str, *, refit: bool = True) -> tuple[list[int], np.ndarray]:
    """Codes in the order in which they were decided, and the scores at the end."""
    now, decided = base, list[int]()
    while len(decided) < max(BUDGETS):
        decided += upcoming(now, MODE, order, decided, 1)
        if refit and len(decided) % EVERY == 0 and (order != "random" or len(decided) == max(BUDGETS)):
            now = served(derive(base.snapshot, labels_of(base, decided, bad)), base)
    return decided, now.standing(MODE).score


def labels_of(base: Served, decided: list[int], bad: np.ndarray) -> Labels:
    names = base.populations[base.mode(MODE)].entities(decided)
    pairs = zip(names, decided, strict=True)
    return Labels(tuple(sorted(Label(MODE, name, TARGET, 1.0 if bad[code] else -1.0) for name, code in pairs)))


def by_boosting(base: Served, bad: np.ndarray) -> tuple[list[int], np.ndarray]:
    _, values = mode_features(base.tensor, [MODE], "all", None)[MODE]
    score, decided = base.standing(MODE).score, list[int]()
    while len(decided) < max(BUDGETS):
        order = np.argsort(-score, kind="stable")
        decided.append(int(order[~np.isin(order, decided)][0]))
        known = np.array(decided)
        if len(np.unique(bad[known])) == 2:
            classifier = Boosting()._classifier(len(known)).fit(values[known], bad[known])
            score = classifier.predict_proba(values)[:, 1]
    return decided, score


def measure(family: str, reviews: int, seed: int) -> dict[str, list[float]]:
    """Way -> how many of the bad were found after each budget, and the AUC on the rest (NaN where all were found)."""
    table, names = FAMILIES[family][1](reviews, seed)
    model = rl.RingDetector(random_state=seed).fit(rl.read_reviews(table))
    base = served(model.snapshot_)
    population = base.populations[base.mode(MODE)]
    bad = np.isin(np.array(population.entities(np.arange(population.size))), list(names))
    ways = {order: partial(by_queue, base, bad, order) for order in ORDERS}
    ways |= {"no refit": partial(by_queue, base, bad, "top", refit=False), "boosting": partial(by_boosting, base, bad)}
    found = {"in the market": [float(bad.sum()), float(population.size)]}
    for name, way in ways.items():
        decided, score = way()
        rest = np.setdiff1d(np.arange(population.size), decided)
        left = auc(bad[rest].astype(float), score[rest]) if bad[rest].any() else float("nan")
        found[name] = [*(float(bad[decided[:n]].sum()) for n in BUDGETS), left]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into docs/console.md")
    parser.add_argument("--family", choices=list(FAMILIES), help="measure one, and write its section alone")
    parser.add_argument("--reviews", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    for family in [options.family] if options.family else FAMILIES:
        seeds = range(FIRST_SEEDS[family], FIRST_SEEDS[family] + options.seeds)
        figures: dict[str, list[list[float]]] = defaultdict(list)
        for seed in seeds:
            for name, row in measure(family, options.reviews, seed).items():
                figures[name].append(row)
                print(family, seed, name, [round(v, 3) for v in row], flush=True)
        text = table_of(FAMILIES[family][0], figures, seeds, options.reviews)
        print(text)
        if options.write:
            write_section("console.md", f"loop-{family}", text)


def table_of(name: str, figures: dict[str, list[list[float]]], seeds: range, reviews: int) -> str:
    """The section of one family: how many of the bad were found, and the ranking of the rest."""
    bad, of = np.mean(figures.pop("in the market"), axis=0)
    lines = [f"{name}: {bad:.0f} of {of:,.0f} reviewers are bad, on average.", ""]
    lines += [f"| queue | {' | '.join(f'after {n}' for n in BUDGETS)} | AUC on the rest |", "|---|" + "---:|" * 4]
    for way, rows in figures.items():
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) if len(rows) > 1 else np.zeros(4)
        cells = [f"{m:.0f} ± {s:.0f}" for m, s in zip(mean[:3], spread[:3], strict=True)]
        lines.append(f"| {way} | {' | '.join(cells)} | {mean[3]:.3f} ± {spread[3]:.3f} |")
    about = f"Means and standard deviations over seeds {seeds[0]} to {seeds[-1]}, {reviews:,} reviews. {describe()}"
    return "\n".join([*lines, "", about])


if __name__ == "__main__":
    main()
