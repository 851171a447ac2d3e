"""How much to trust the suspicion, and what few labels may say against it: beliefs of the head with 10 and 30 labels.

    python benchmarks/trust_in_evidence.py --seeds 6101 6102 6103 [--markets NAME ...] [--rows FILE] [--write]

On the project's markets (100,000 reviews) and on those of ``taste_market``: AUC over all accounts without a label,
mean and worst of all markets and draws of labels, and their log-loss. From 100 labels on the trusting belief is alone.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict

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
from stored_rows import StoredRows
from transfer import truth_of

BELIEFS = {
    "trusting": HeadSettings(doubting_labels=0.0),
    "both, no margin": HeadSettings(doubting_margin=0.0),
    "both (default)": HeadSettings(),
}
DRAWS = {10: 4, 30: 2}
"""Draws of labels on each market, by number of labels."""
Figures = dict[str, list[list[float | None]]]
"""Belief -> AUC and log-loss of each draw of labels."""


def measure(kind: str, seed: int) -> dict[str, dict[str, Figures]]:
    """By mode and number of labels."""
    found = {mode: {str(count): defaultdict(list) for count in DRAWS} for mode in MODES}
    own = kind in DIFFICULTIES
    market = marketplace(100_000, difficulty=kind, seed=seed) if own else taste_market(kind=kind, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    truth = {mode: truth_of(market, tensor, mode) for mode in MODES}
    fit = LabelFreeFit(tensor, MODES, seed)
    for count, draw in [(count, draw) for count, draws in DRAWS.items() for draw in range(draws)]:
        rng = np.random.default_rng([seed, count, draw])
        known = {mode: few_labels(truth[mode], count, rng) for mode in MODES}
        for mode, labelled in fit.labelled(known).items():
            rest, figures = np.flatnonzero(np.isnan(known[mode])), found[mode][str(count)]
            bad, suspicion = truth[mode][rest], fit.suspicion[labelled.target.mode]
            figures["no head"].append([auc(bad, suspicion[rest]), None])
            for belief, settings in BELIEFS.items():
                scores = fit.head(labelled.target, labelled.with_neighbours, settings).predict()
                figures[belief].append([auc(bad, scores.predictor[rest]), log_loss(bad, scores.value[rest])])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[6101, 6102, 6103])
    parser.add_argument("--markets", nargs="+", default=[*DIFFICULTIES, *TASTES])
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/trust_in_evidence.py`, seeds {seeds}. {describe()}."
    print(about, flush=True)
    stored, lines = StoredRows(options.rows), []
    for kind in options.markets:
        found = [
            stored.find(["trust", kind, seed], lambda kind=kind, seed=seed: measure(kind, seed))
            for seed in options.seeds
        ]
        for mode, count in itertools.product(MODES, DRAWS):
            rows = {
                belief: [row for by_mode in found for row in by_mode[mode][str(count)][belief]]
                for belief in ("no head", *BELIEFS)
            }
            ranked = [
                f"{np.mean([auc for auc, _ in own]):.4f} ({min(auc for auc, _ in own):.3f})" for own in rows.values()
            ]
            losses = [f"{np.mean([loss for _, loss in rows[belief]]):.4f}" for belief in BELIEFS]
            lines.append([f"{kind}, {mode}s", str(count), *ranked, *losses])
            print("|", " | ".join(lines[-1]), "|", flush=True)
    columns = ["AUC (worst); log-loss", "labels", "no head", *BELIEFS, *(f"log-loss, {name}" for name in BELIEFS)]
    if options.write:
        write_section("detection.md", "trust", f"{about}\n\n{markdown_table(columns, lines)}")


if __name__ == "__main__":
    main()
