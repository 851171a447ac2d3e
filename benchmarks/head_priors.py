"""The experiment behind the priors of the head: how far to trust inputs and association, with few and many labels.

    python benchmarks/head_priors.py --seeds 900 901 902 [--reviews 150000]
    python benchmarks/head_priors.py --seeds 900 901 --coverage
    python benchmarks/head_priors.py --data ../shared/data

Generated markets: test AUC (sellers) and activity-matched AUC (reviewers) with 10, 30, 100 and all known labels, and
without labels. With --coverage instead: how often 90% intervals hold the probability that labels were simulated from,
the head fitted to 100 and 300 simulated labels. Real data: Amazon-Xu with 1% and 5% of the labels, and three of five
folds.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from dataclasses import replace

import numpy as np

import ringleader as rl
from heads import LabelFreeFit, tested_auc
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import DIFFICULTIES, MODES
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.protocol import few_labels, market_split
from ringleader.evaluation.real import folds, load_xu, shares
from ringleader.judge.binary import fit_head
from ringleader.judge.priors import HeadSettings
from ringleader.known.labels import DEFAULT_TARGET

DEFAULT = HeadSettings()
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


def markets(seeds: list[int], reviews: int) -> None:
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


def coverage(seeds: list[int], reviews: int) -> None:
    """Labels simulated from a fitted head; sellers, prevalence given."""
    covered: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for difficulty in DIFFICULTIES:
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            labels = market.labels[(market.labels["target"] == DEFAULT_TARGET) & (market.labels["mode"] == "seller")]
            detector = rl.RingDetector(random_state=seed).fit(tensor, labels)
            inputs, suspicion = detector.inputs("seller"), detector.suspicion("seller")
            groups = [inputs.groups[name] for name in inputs.names]
            truth = detector.heads_[0].predict().value
            settings = replace(DEFAULT, prevalence=float(truth.mean()))
            evidence = {"suspicion": suspicion, "groups": groups, "settings": settings}
            for count, draw, simulation in itertools.product((100, 300), ("one to three", "at random"), range(2)):
                rng = np.random.default_rng([seed, count, simulation])
                bad = (rng.random(len(truth)) < truth).astype(float)
                shown = few_labels(bad, count, rng)
                if draw == "at random":
                    chosen = rng.permutation(len(bad))[:count]
                    shown = np.full(len(bad), np.nan)
                    shown[chosen] = bad[chosen]
                codes = np.flatnonzero(~np.isnan(shown))
                again = fit_head(inputs.values, inputs.names, codes, 2 * shown[codes] - 1, **evidence).predict()
                covered[difficulty, count, draw].append(((again.lower <= truth) & (truth <= again.upper)).mean())
    for key, shares_covered in covered.items():
        print(*key, round(float(np.mean(shares_covered)), 3), flush=True)


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
    parser.add_argument("--data")
    options = parser.parse_args()
    if options.seeds and options.coverage:
        coverage(options.seeds, options.reviews)
    elif options.seeds:
        markets(options.seeds, options.reviews)
    if options.data:
        real(options.data)


if __name__ == "__main__":
    main()
