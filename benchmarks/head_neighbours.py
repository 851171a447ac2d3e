"""What the suspicion of its neighbours tells the head of an entity; boosting and a forest on the same inputs beside it.

    python benchmarks/head_neighbours.py --seeds 1200 1201 1202 [--reviews 150000] [--few] [--write]
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
from machine import describe, write_section
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
from ringleader.evaluation.results import markdown_table
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


def markets(seeds: Sequence[int], reviews: int, counts: Sequence[int], write: bool) -> None:
    few = " --few" if counts else ""
    about = (
        f"`benchmarks/head_neighbours.py{few}`, {reviews:,} reviews, seeds {', '.join(map(str, seeds))}. {describe()}."
    )
    print(about, flush=True)
    found: dict[tuple[str, str], Figures] = {}
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
                if name == "after":
                    _others(tensor, splits[mode], truth[mode], inputs, seed, figures)
        _print(difficulty, figures)
        for mode in MODES:
            found[mode, difficulty] = {key: rows for key, rows in figures.items() if key[0] == mode}
    table = _few_table(found, counts) if counts else _table(found)
    print(table)
    if write:
        write_section("detection.md", "few-labels" if counts else "neighbours", f"{about}\n\n{table}")


def _table(found: Mapping[tuple[str, str], Figures]) -> str:
    """A row for each mode, difficulty and method."""
    lines = [
        [f"{mode}s {difficulty}, {name}", *(f"{value:.3f}" for value in np.nanmean(rows, axis=0))]
        for (mode, difficulty), figures in sorted(found.items(), key=lambda one: MODES.index(one[0][0]))
        for (_, name), rows in figures.items()
    ]
    return markdown_table(["", "AUC", "matched", "unseen rings", "log-loss", "calibration error"], lines)


def _few_table(found: Mapping[tuple[str, str], Figures], counts: Sequence[int]) -> str:
    """AUC of sellers, activity-matched AUC of reviewers, before / after."""
    lines = []
    for (mode, difficulty), figures in sorted(found.items(), key=lambda one: MODES.index(one[0][0])):
        means = {name: np.mean(rows, axis=0)[MODES.index(mode)] for (_, name), rows in figures.items()}
        pairs = [[means[f"{count} labels, {name}"] for name in ("before", "after")] for count in counts]
        lines.append([f"{mode}s {difficulty}", *(" / ".join(f"{value:.3f}" for value in pair) for pair in pairs)])
    return markdown_table(["labels", *(str(count) for count in counts)], lines)


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
) -> None:
    extra = {split.mode: (inputs.names, inputs.values)}
    for name, method in (("boosting", Boosting), ("forest", Forest)):
        scores = method(columns="none", extra=extra, random_state=seed).fit(tensor, split.labels).scores(split.mode)
        row = market_figures(split, truth, scores, at_prevalence(scores, truth))
        figures[split.mode, f"{name}, same inputs"].append(row)


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
    parser.add_argument("--write", action="store_true", help="write the table of markets into docs/detection.md")
    options = parser.parse_args()
    if options.seeds:
        markets(options.seeds, options.reviews, (10, 30, 100, 300) if options.few else (), options.write)
    if options.data:
        real(options.data, options.repeats)


if __name__ == "__main__":
    main()
