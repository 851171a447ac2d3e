"""How much to trust the suspicion, and what few labels may say against it: beliefs of the head with 10 and 30 labels.

    python benchmarks/trust_in_evidence.py --seeds 6101 6102 6103 [--markets NAME ...] [--write]

On the project's markets (100,000 reviews) and on those of ``taste_market``: AUC over all accounts without a label,
mean and worst of all markets and draws of labels, and their log-loss. From 100 labels on the trusting belief is alone.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

import ringleader as rl
from heads import LabelFreeFit
from machine import describe, write_section
from ringleader.datasets import marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES, MODES, TASTES
from ringleader.evaluation.metrics import auc, log_loss
from ringleader.evaluation.protocol import few_labels
from ringleader.evaluation.results import markdown_table
from ringleader.judge.priors import HeadSettings
from transfer import truth_of

BELIEFS = {
    "trusting": HeadSettings(doubting_labels=0.0),
    "both, no margin": HeadSettings(doubting_margin=0.0),
    "both (default)": HeadSettings(),
}
DRAWS = {10: 4, 30: 2}
"""Draws of labels on each market, by number of labels."""
Figures = dict[str, list[tuple[float, float]]]
"""Belief -> AUC and log-loss of each market and draw."""


def measure(kind: str, seeds: Sequence[int]) -> dict[tuple[str, int], Figures]:
    """By mode and number of labels."""
    found: dict[tuple[str, int], Figures] = {key: defaultdict(list) for key in itertools.product(MODES, DRAWS)}
    for seed in seeds:
        own = kind in DIFFICULTIES
        market = marketplace(100_000, difficulty=kind, seed=seed) if own else taste_market(kind=kind, seed=seed)
        tensor = rl.read_reviews(market.reviews)
        truth = {mode: truth_of(market, tensor, mode) for mode in MODES}
        fit = LabelFreeFit(tensor, MODES, seed)
        for count, draw in [(count, draw) for count, draws in DRAWS.items() for draw in range(draws)]:
            rng = np.random.default_rng([seed, count, draw])
            known = {mode: few_labels(truth[mode], count, rng) for mode in MODES}
            for mode, labelled in fit.labelled(known).items():
                rest, figures = np.flatnonzero(np.isnan(known[mode])), found[mode, count]
                bad, suspicion = truth[mode][rest], fit.suspicion[labelled.target.mode]
                figures["no head"].append((auc(bad, suspicion[rest]), np.nan))
                for belief, settings in BELIEFS.items():
                    scores = fit.head(labelled.target, labelled.with_neighbours, settings).predict()
                    row = auc(bad, scores.predictor[rest]), log_loss(bad, scores.value[rest])
                    figures[belief].append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[6101, 6102, 6103])
    parser.add_argument("--markets", nargs="+", default=[*DIFFICULTIES, *TASTES])
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/trust_in_evidence.py`, seeds {seeds}. {describe()}."
    print(about, flush=True)
    lines = []
    for kind in options.markets:
        for (mode, count), figures in measure(kind, options.seeds).items():
            aucs = {belief: [auc for auc, _ in rows] for belief, rows in figures.items()}
            ranked = [f"{np.mean(values):.4f} ({np.min(values):.3f})" for values in aucs.values()]
            losses = [f"{np.mean([loss for _, loss in figures[belief]]):.4f}" for belief in BELIEFS]
            lines.append([f"{kind}, {mode}s", str(count), *ranked, *losses])
            print("|", " | ".join(lines[-1]), "|", flush=True)
    columns = ["AUC (worst); log-loss", "labels", "no head", *BELIEFS, *(f"log-loss, {name}" for name in BELIEFS)]
    if options.write:
        write_section("detection.md", "trust", f"{about}\n\n{markdown_table(columns, lines)}")


if __name__ == "__main__":
    main()
