"""Which settings of lockstep? The experiment behind its defaults and docs/lockstep.md.

    python benchmarks/lockstep_settings.py --seeds 300 301 302 303 304 --reviews 150000 --write
    python benchmarks/lockstep_settings.py --only default --data ../shared/data --speed 1000000

For each difficulty (``slow``: medium with every campaign at 12 to 26 weeks) and each setting, without any label: AUC of
the mean and of the top-10 mean over sellers with ten reviews or more, and the activity-matched AUC of the mean over the
test reviewers; with the known labels: association. On the real data: association alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import ringleader as rl
from machine import describe, write_section
from marketplace_bands import matched_auc
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.results import markdown_table
from ringleader.signals.lockstep import LockstepSettings, associate, associate_through, find_lockstep, start_rows
from ringleader.tensor.sparse import SparseTensor

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "prototype": {
        "window_weeks": 6,
        "items": ("product",),
        "popularity": 0.0,
        "doubt": 0.0,
        "third_parties": 0.0,
    },
    "popularity 0": {"popularity": 0.0},
    "popularity 0.25": {"popularity": 0.25},
    "popularity 1": {"popularity": 1.0},
    "doubt 0": {"doubt": 0.0},
    "doubt 1": {"doubt": 1.0},
    "doubt 4": {"doubt": 4.0},
    "third parties 0": {"third_parties": 0.0},
    "third parties 1": {"third_parties": 1.0},
    "products only": {"items": ("product",)},
    "sellers only": {"items": ("seller",)},
    "3 weeks": {"window_weeks": 3},
    "6 weeks": {"window_weeks": 6},
    "12 weeks": {"window_weeks": 12},
    "one phase": {"phases": 1},
    "groups to 50": {"max_group": 50},
}
KNOBS: dict[str, dict[str, Any]] = {
    "easy": {"difficulty": "easy"},
    "medium": {"difficulty": "medium"},
    "slow": {"difficulty": "medium", "slow_drip": 1.0, "three_weeks": 0.0},
    "hard": {"difficulty": "hard"},
}
SHARES = (0.01, 0.05, 0.5)


def truth_of(market: Marketplace, tensor: SparseTensor, mode: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, labels and splits of a mode's entities."""
    truth = market.truth[(market.truth["mode"] == mode) & (market.truth["target"] == "abuse")]
    codes = tensor.vocabulary(mode).lookup(list(truth["entity"]))
    return codes, truth["label"].to_numpy() == 1, truth["split"].to_numpy()


def measure(market: Marketplace, tensor: SparseTensor, settings: LockstepSettings) -> dict[str, float]:
    """Every number of the table for one market and one setting."""
    started = time.perf_counter()
    lockstep = find_lockstep(tensor, settings)
    seconds = time.perf_counter() - started
    sellers, bad, split = truth_of(market, tensor, "seller")
    audited, tested, known = tensor.degrees("seller")[sellers] >= 10, split == "test", split == "known"
    scores = lockstep.entity_scores(tensor, "seller")
    mean, top = scores["boost_mean"][sellers], scores["boost_top10"][sellers]
    through = associate_through(lockstep, tensor, "seller", sellers[known], np.where(bad[known], 1.0, -1.0))
    people, guilty, part = truth_of(market, tensor, "reviewer")
    tested_people, known_people = part == "test", part == "known"
    activity = tensor.degrees("reviewer")[people]
    own = lockstep.entity_scores(tensor, "reviewer")["lockstep_mean"][people]
    flow = associate(lockstep, people[known_people], np.where(guilty[known_people], 1.0, -1.0))[people]
    return {
        "seller mean": roc_auc_score(bad[audited], mean[audited]),
        "seller top10": roc_auc_score(bad[audited], top[audited]),
        "seller test": roc_auc_score(bad[tested], mean[tested]),
        "seller assoc": roc_auc_score(bad[tested], through.entities[sellers][tested]),
        "reviewer": matched_auc(*(pd.Series(values[tested_people]) for values in (guilty, own, activity))),
        "reviewer assoc": matched_auc(*(pd.Series(values[tested_people]) for values in (guilty, flow, activity))),
        "pairs": lockstep.graph.nnz // 2,
        "seconds": seconds,
    }


def markets(options: argparse.Namespace) -> None:
    figures: dict[tuple[str, str], pd.DataFrame] = {}  # a row for each seed, by difficulty and setting
    for difficulty in options.difficulty:
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in options.only}
        for seed in options.seeds:
            market = marketplace(options.reviews, seed=seed, **KNOBS[difficulty])
            tensor = rl.read_reviews(market.reviews)
            for name in options.only:
                rows[name].append(measure(market, tensor, LockstepSettings(**SETTINGS[name])))
        figures |= {(difficulty, name): pd.DataFrame(own) for name, own in rows.items()}
        means = pd.DataFrame({name: pd.DataFrame(r).mean() for name, r in rows.items()}).T
        spread = pd.DataFrame({name: pd.DataFrame(r).std(ddof=1) for name, r in rows.items()}).T
        shown = means.round(3).astype(str) + " ± " + spread.round(3).astype(str)
        shown["pairs"], shown["seconds"] = means["pairs"].round(), means["seconds"].round(2)
        print(f"\n{difficulty}, {options.reviews} reviews, {len(options.seeds)} seeds, mean ± sd")
        print(shown.to_string(), flush=True)
    if options.write:
        write_tables(figures, options)


def write_tables(figures: dict[tuple[str, str], pd.DataFrame], options: argparse.Namespace) -> None:
    """The tables of docs/lockstep.md, of all difficulties and settings."""
    about = f"`benchmarks/lockstep_settings.py`, {options.reviews:,} reviews, seeds "
    about += f"{', '.join(map(str, options.seeds))}. {describe()}."
    spread = [
        [
            difficulty if name == "default" else f"{difficulty}, {name}",
            *(f"{figures[difficulty, name][column].mean():.3f} ± {figures[difficulty, name][column].std(ddof=1):.3f}"
              for column in ("seller mean", "seller top10", "reviewer")),
        ]
        for difficulty in KNOBS
        for name in ("default", "prototype")
    ]  # fmt: skip
    header = ["", "sellers, mean", "sellers, top 10", "reviewers, activity-matched"]
    write_section("lockstep.md", "markets", f"{about}\n\n{markdown_table(header, spread)}")

    def of_all(column: str) -> str:
        return ", ".join(f"{figures[difficulty, 'default'][column].mean():.3f}" for difficulty in KNOBS)

    tested = f"On the protocol's test sellers the means are {of_all('seller test')} ({', '.join(KNOBS)})."
    known = f"sellers {of_all('seller assoc')}; reviewers, activity-matched, {of_all('reviewer assoc')}"
    changed = [name for name in SETTINGS if name != "prototype"]
    lines = [
        [name, *(_both(figures[difficulty, name]) for difficulty in KNOBS if difficulty != "easy")] for name in changed
    ]
    table = markdown_table(["", *(difficulty for difficulty in KNOBS if difficulty != "easy")], lines)
    text = f"{tested}\nAssociation with the known, test AUC: {known}.\n\nOne setting changed at a time"
    write_section("lockstep.md", "settings", f"{text} (sellers' mean / reviewers):\n\n{table}")


def _both(figures: pd.DataFrame) -> str:
    return f"{figures['seller mean'].mean():.3f} / {figures['reviewer'].mean():.3f}"


def amazon(folder: Path, seeds: int, settings: LockstepSettings) -> None:
    """Association alone on Amazon-Xu, with 1, 5 and 50 percent of the labels."""
    tensor = rl.read_reviews(str(folder / "amazon_xu_ratings.parquet"))
    labels = pd.read_csv(folder / "amazon_xu_labels.csv")
    codes = tensor.vocabulary("reviewer").lookup(list(labels["entity"]))
    bad = (labels["label"] == 1).to_numpy()[codes >= 0]
    codes = codes[codes >= 0]
    lockstep = find_lockstep(tensor, settings)
    for share in SHARES:
        aucs = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            parts = [np.flatnonzero(bad == side) for side in (True, False)]
            known = np.zeros(len(codes), bool)
            for part in parts:
                known[rng.choice(part, max(1, round(share * len(part))), replace=False)] = True
            flow = associate(lockstep, codes[known], np.where(bad[known], 1.0, -1.0))
            aucs.append(roc_auc_score(bad[~known], flow[codes[~known]]))
        print(f"Amazon-Xu, {share:.0%} of the labels, {seeds} splits: {np.mean(aucs):.4f} ± {np.std(aucs, ddof=1):.4f}")
    mean = lockstep.entity_scores(tensor, "reviewer")
    for key in ("lockstep_mean", "lockstep_top10"):
        print(f"Amazon-Xu, no label, {key}: {roc_auc_score(bad, mean[key][codes]):.4f}")


def otc(folder: Path, repeats: int, settings: LockstepSettings) -> None:
    """Association alone on Bitcoin OTC, stratified 10-fold over the labelled raters."""
    tensor = rl.read_reviews(str(folder / "bitcoin_otc_ratings.parquet"), columns={"product": "target"})
    labels = pd.read_csv(folder / "bitcoin_otc_labels.csv")
    codes = tensor.vocabulary(0).lookup(list(labels["entity"].astype(str)))
    bad = (labels["label"] == 1).to_numpy()[codes >= 0]
    codes = codes[codes >= 0]
    rates = tensor.degrees(0)[codes] > 0
    bad, codes = bad[rates], codes[rates]
    lockstep = find_lockstep(tensor, settings)
    aucs = []
    for seed in range(repeats):
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        for train, test in folds.split(codes, bad):
            flow = associate(lockstep, codes[train], np.where(bad[train], 1.0, -1.0))
            aucs.append(roc_auc_score(bad[test], flow[codes[test]]))
    print(f"Bitcoin OTC, {len(codes)} raters, {repeats} x 10 folds, association: {np.mean(aucs):.4f}")
    scores = lockstep.entity_scores(tensor, 0)
    for key in ("lockstep_mean", "boost_mean", "attack_mean"):
        print(f"Bitcoin OTC, no label, {key}: {roc_auc_score(bad, scores[key][codes]):.4f}")


def speed(reviews: int) -> None:
    small = rl.read_reviews(marketplace(20_000, seed=0).reviews)
    start_rows(find_lockstep(small), 24)  # compiles
    tensor = rl.read_reviews(marketplace(reviews, seed=0).reviews)
    for threads in (1, 2):
        started, cpu = time.perf_counter(), time.process_time()
        lockstep = find_lockstep(tensor, threads=threads)
        print(
            f"{reviews} reviews, {threads} threads: {time.perf_counter() - started:.1f} s "
            f"({time.process_time() - cpu:.1f} s of processor), {lockstep.graph.nnz // 2} pairs, "
            f"{lockstep.groups} groups, {lockstep.skipped_groups} skipped"
        )
    started = time.perf_counter()
    start_rows(lockstep, 24)
    print(f"start_rows: {time.perf_counter() - started:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[300, 301, 302, 303, 304])
    parser.add_argument("--difficulty", nargs="+", default=list(KNOBS), choices=list(KNOBS))
    parser.add_argument("--only", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--data", type=Path, help="folder of the real data sets")
    parser.add_argument("--speed", type=int, metavar="REVIEWS")
    parser.add_argument("--write", action="store_true", help="write the tables of markets into docs/lockstep.md")
    options = parser.parse_args()
    if options.write and (set(options.difficulty) < set(KNOBS) or set(options.only) < set(SETTINGS)):
        parser.error("the tables have every difficulty and every setting: --write goes without --difficulty and --only")
    if options.seeds:
        markets(options)
    for name in options.only if options.data else ():
        print(f"\n{name}")
        amazon(options.data, 10, LockstepSettings(**SETTINGS[name] | {"items": None}))
        otc(options.data, 10, LockstepSettings(**SETTINGS[name] | {"items": None}))
    if options.speed:
        speed(options.speed)


if __name__ == "__main__":
    main()
