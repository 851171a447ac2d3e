"""What the suspicion of its neighbours tells the head of an entity; boosting and a forest on the same inputs beside it.

    python benchmarks/head_neighbours.py --seeds 1200 1201 1202 [--reviews 150000]
    python benchmarks/head_neighbours.py --data DIR [--repeats 10]

Generated markets: AUC, activity-matched AUC, AUC on unseen rings, log-loss and calibration error, without neighbours
("before") and with them ("after"), from one fit. With --few: the same AUC with 10, 30, 100 and 300 labels (or all where
there are fewer). Real data: AUC and F1 on the same folds, without and with.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

import ringleader as rl
from heads import LabelFreeFit
from machine import describe
from ringleader.baselines.behaviour import Boosting, Forest
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import (
    DIFFICULTIES,
    MODES,
    MarketTruth,
    at_prevalence,
    market_figures,
    market_truth,
)
from ringleader.evaluation.metrics import auc, f1_at, matched_auc
from ringleader.evaluation.protocol import Split, few_labels, market_split
from ringleader.evaluation.real import load_otc, load_xu, protocols
from ringleader.judge.head import Head
from ringleader.judge.inputs import Inputs

Figures = dict[tuple[str, str], list[tuple[float, ...]]]
"""(mode, what was measured) -> figures of each market or fold."""


def heads(fit: LabelFreeFit, known: Mapping[str, np.ndarray]) -> dict[tuple[str, str], tuple[Head, Inputs]]:
    """(mode, "before" or "after") -> head and its inputs, from labels (n_k,), NaN where unknown."""
    fitted = {}
    for mode, labelled in fit.labelled(known).items():
        for name, inputs in (("before", labelled.without_neighbours), ("after", labelled.with_neighbours)):
            fitted[mode, name] = fit.head(labelled.target, inputs), inputs
    return fitted


def markets(seeds: Sequence[int], reviews: int, counts: Sequence[int]) -> None:
    print(f"{reviews:,} reviews, seeds {seeds}. {describe()}", flush=True)
    for difficulty in DIFFICULTIES:
        figures: Figures = defaultdict(list)
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            fit = LabelFreeFit(tensor, MODES, seed)
            splits = {mode: market_split(tensor, market.truth, mode) for mode in MODES}
            if counts:
                _few(fit, splits, counts, figures)
                continue
            truth = {mode: market_truth(market, tensor, mode) for mode in MODES}
            for (mode, name), (head, inputs) in heads(fit, {m: splits[m].known for m in MODES}).items():
                scores = head.predict()
                row = market_figures(splits[mode], truth[mode], scores.predictor, scores.value)
                figures[mode, name].append(row)
                _others(tensor, splits[mode], truth[mode], inputs, seed, figures, name)
        _print(difficulty, figures)


def _few(fit: LabelFreeFit, splits: Mapping[str, Split], counts: Sequence[int], figures: Figures) -> None:
    for count in counts:
        rng = np.random.default_rng([fit.seed, count])
        known = {mode: few_labels(split.known, count, rng) for mode, split in splits.items()}
        for (mode, name), (head, _) in heads(fit, known).items():
            split, tested = splits[mode], head.predict().predictor[splits[mode].test]
            row = auc(split.truth, tested), matched_auc(split.truth, tested, split.activity)
            figures[mode, f"{count} labels, {name}"].append(row)


def _others(
    tensor: rl.SparseTensor,
    split: Split,
    truth: MarketTruth,
    inputs: Inputs,
    seed: int,
    figures: Figures,
    when: str,
) -> None:
    extra = {split.mode: (inputs.names, inputs.values)}
    for name, method in (("boosting", Boosting), ("forest", Forest)):
        scores = method(columns="none", extra=extra, random_state=seed).fit(tensor, split.labels).scores(split.mode)
        row = market_figures(split, truth, scores, at_prevalence(scores, truth))
        figures[split.mode, f"{name}, inputs {when}"].append(row)


def _print(what: str, figures: Figures) -> None:
    for (mode, name), rows in figures.items():
        print(what, mode, f"{name}:", " ".join(f"{value:.4f}" for value in np.nanmean(rows, axis=0)), flush=True)


def real(folder: str, repeats: int) -> None:
    for load in (load_otc, load_xu):
        data = load(folder)
        fit = LabelFreeFit(data.tensor, (data.mode,), 0)
        for protocol, draw in protocols(data).items():
            figures: Figures = defaultdict(list)
            for fold in (fold for seed in range(repeats) for fold in draw(seed)):
                for key, (head, _) in heads(fit, {data.mode: fold.known}).items():
                    truth, tested = data.truth[fold.test], head.predict().predictor[fold.test]
                    figures[key].append((auc(truth, tested), f1_at(truth, tested, float(np.nanmean(fold.known)))))
            _print(f"{data.name} {protocol}", figures)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--few", action="store_true", help="few labels instead of all")
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if options.seeds:
        markets(options.seeds, options.reviews, (10, 30, 100, 300) if options.few else ())
    if options.data:
        real(options.data, options.repeats)


if __name__ == "__main__":
    main()
