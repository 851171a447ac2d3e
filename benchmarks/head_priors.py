"""The experiment behind the priors of the head: how far to trust inputs and association, with few and many labels.

    python benchmarks/head_priors.py --seeds 900 901 902 [--reviews 150000] [--write]
    python benchmarks/head_priors.py --seeds 900 901 --coverage [--markets NAME ...] [--write]
    python benchmarks/head_priors.py --data ../shared/data

Generated markets: test AUC (sellers) and activity-matched AUC (reviewers) with 10, 30, 100 and all known labels, and
without labels. With --coverage instead: how often 90% intervals hold the probability that labels were simulated from,
the head fitted to 30, 100 and 300 simulated labels; markets of both families. Real data: Amazon-Xu with 1% and 5% of
the labels, and three of five folds.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from dataclasses import replace

import numpy as np

import ringleader as rl
from heads import LabelFreeFit, tested_auc
from machine import describe, write_section
from ringleader.datasets import marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES, MODES
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.protocol import few_labels, market_split
from ringleader.evaluation.real import folds, load_xu, shares
from ringleader.evaluation.results import markdown_table
from ringleader.judge.binary import fit_binary
from ringleader.judge.head import head_table
from ringleader.judge.priors import HeadSettings

DEFAULT = HeadSettings()
SIMULATED_LABELS, DRAWS = (30, 100, 300), ("one to three", "at random")
COVERAGE_KINDS = (*DIFFICULTIES, "loyal", "slow", "once", "everything")
VARIANTS = {
    "default": DEFAULT,
    "variances 1": replace(DEFAULT, linear_variance=1.0, spline_variance=1.0),
    "variances 20": replace(DEFAULT, linear_variance=20.0, spline_variance=20.0),
    "own variances": replace(DEFAULT, worth=1.0, group_worth=1.0, own_worth=0.5),
    "no prior for association": replace(DEFAULT, association_slope=0.0, association_spread=0.2),
    "association always": replace(DEFAULT, association_labels=1.0),
    "association always, half": replace(DEFAULT, association_labels=1.0, association_slope=0.5),
}


def log_odds(fit: LabelFreeFit, mode: str, known: np.ndarray) -> dict[str, np.ndarray]:
    """Of every entity of a mode, (n_k,), by variant of the settings; ``known`` is NaN where unknown."""
    labelled = fit.labelled({mode: known})[mode]
    return {
        name: fit.head(labelled.target, labelled.with_neighbours, settings).predict().predictor
        for name, settings in VARIANTS.items()
    }


def markets(seeds: list[int], reviews: int, write: bool) -> None:
    figures: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for difficulty in DIFFICULTIES:
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            fit = LabelFreeFit(tensor, MODES, seed)
            for mode in MODES:
                split = market_split(tensor, market.truth, mode)
                suspicion = fit.suspicion[tensor.mode_index(mode)]
                figures[mode, difficulty, "none"]["suspicion"].append(tested_auc(split, suspicion))
                rng = np.random.default_rng(seed)
                shown = {str(count): few_labels(split.known, count, rng) for count in (10, 30, 100)}
                for count, known in (shown | {"all": split.known}).items():
                    for name, scores in log_odds(fit, mode, known).items():
                        figures[mode, difficulty, count][name].append(tested_auc(split, scores))
    for key, by_name in figures.items():
        print(*key, {name: round(float(np.mean(values)), 4) for name, values in by_name.items()}, flush=True)
    counts = ("none", "10", "30", "100", "all")
    lines = [
        [f"{mode}s {difficulty}"]
        + [f"{np.mean(next(iter(figures[mode, difficulty, count].values()))):.3f}" for count in counts]
        for mode in MODES
        for difficulty in DIFFICULTIES
    ]
    about = f"`benchmarks/head_priors.py`, {reviews:,} reviews, seeds {', '.join(map(str, seeds))}. {describe()}."
    table = markdown_table(["labels", *counts], lines)
    print(f"{about}\n\n{table}")
    if write:
        write_section("head.md", "labels", f"{about}\n\n{table}")


def coverage(seeds: list[int], reviews: int, kinds: list[str], write: bool) -> None:
    """Labels simulated from a fitted head; prevalence given. Both modes are labelled where the head is fitted."""
    covered: dict[tuple[str, str], dict[tuple[int, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for kind, seed in itertools.product(kinds, seeds):
        own = kind in DIFFICULTIES
        market = marketplace(reviews, difficulty=kind, seed=seed) if own else taste_market(kind=kind, seed=seed)
        tensor = rl.read_reviews(market.reviews)
        fit = LabelFreeFit(tensor, MODES, seed)
        labelled = fit.labelled({mode: market_split(tensor, market.truth, mode).known for mode in MODES})
        for mode in MODES:
            target, inputs = labelled[mode].target, labelled[mode].with_neighbours
            groups = [inputs.groups[name] for name in inputs.names]
            table = head_table(inputs.values, inputs.names, fit.suspicion[target.mode], groups)
            truth = fit_binary(table, target.codes, target.values).predict().value
            settings = replace(DEFAULT, prevalence=float(truth.mean()))
            for count, draw in itertools.product(SIMULATED_LABELS, DRAWS):
                rng = np.random.default_rng([seed, count])
                bad = (rng.random(len(truth)) < truth).astype(float)
                shown = few_labels(bad, count, rng)
                if draw == "at random":
                    chosen = rng.permutation(len(bad))[:count]
                    shown = np.full(len(bad), np.nan)
                    shown[chosen] = bad[chosen]
                codes = np.flatnonzero(~np.isnan(shown))
                if len(np.unique(shown[codes])) < 2:
                    continue
                again = fit_binary(table, codes, 2 * shown[codes] - 1, settings).predict()
                covered[kind, mode][count, draw].append(((again.lower <= truth) & (truth <= again.upper)).mean())
        print(kind, seed, {mode: _rounded(covered[kind, mode]) for mode in MODES}, flush=True)
    columns = list(itertools.product(SIMULATED_LABELS, DRAWS))
    lines = [
        [f"{kind}, {mode}s", *(f"{np.mean(by[column]):.3f}" if by[column] else "" for column in columns)]
        for (kind, mode), by in covered.items()
    ]
    means = [np.mean([np.mean(by[column]) for by in covered.values() if by[column]]) for column in columns]
    lines.append(["mean", *(f"{mean:.3f}" for mean in means)])
    about = f"`benchmarks/head_priors.py --coverage`, {reviews:,} reviews (markets of tastes: 40,000), seeds "
    about += f"{', '.join(map(str, seeds))}. {describe()}."
    table = markdown_table(["90% intervals cover", *(f"{count} labels, {draw}" for count, draw in columns)], lines)
    print(f"{about}\n\n{table}\n\nmean {np.mean(means):.3f}")
    if write:
        write_section("head.md", "coverage", f"{about}\n\n{table}")


def _rounded(shares_covered: dict[tuple[int, str], list[float]]) -> list[float]:
    return [round(float(np.mean(values)), 3) for values in shares_covered.values()]


def real(folder: str) -> None:
    data = load_xu(folder)
    fit = LabelFreeFit(data.tensor, (data.mode,), 0)
    protocols = {
        "1%": [fold for seed in range(6) for fold in shares(data, 0.01, seed)],
        "5%": [fold for seed in range(4) for fold in shares(data, 0.05, seed)],
        "5-fold": folds(data, 5, 0)[:3],
    }
    for protocol, drawn in protocols.items():
        aucs = defaultdict(list)
        for fold in drawn:
            for name, scores in log_odds(fit, data.mode, fold.known).items():
                aucs[name].append(auc(data.truth[fold.test], scores[fold.test]))
        print(protocol, {name: np.mean(values).round(4) for name, values in aucs.items()}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--markets", nargs="+", default=list(COVERAGE_KINDS), help="for --coverage")
    parser.add_argument("--write", action="store_true", help="write the table into docs/head.md")
    parser.add_argument("--data")
    options = parser.parse_args()
    if options.seeds and options.coverage:
        coverage(options.seeds, options.reviews, options.markets, options.write)
    elif options.seeds:
        markets(options.seeds, options.reviews, options.write)
    if options.data:
        real(options.data)


if __name__ == "__main__":
    main()
