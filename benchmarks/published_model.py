"""The published model with its cures (preset ``corrected``): what its start and the evidence in its head are worth.

    python benchmarks/published_model.py --seeds 701 702 703 704 705 [--reviews 60000] [--write]
    python benchmarks/published_model.py --seeds 61 62 63 64 65 66 --summaries

Medium markets, labels of one mode at a time, AUC of the tested accounts of that mode. ``--write`` puts the table into
docs/benchmarks.md. ``--summaries`` compares what the head may read as the evidence of an entity; those markets chose
the setting, so they judge nothing else.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

import ringleader as rl
from machine import describe, write_section
from ringleader.baselines.logistic import detector_labels
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.paper.methods import LEARNERS, PaperMarket, paper_market
from ringleader.evaluation.protocol import Split
from ringleader.evaluation.results import markdown_table
from ringleader.kernels.logistic import log_logistic
from ringleader.model.evidence import ReviewEvidence, review_evidence
from ringleader.model.posterior import head_log_odds
from ringleader.model.priors import head_step, labelled_rows
from ringleader.model.start import fresh_heads
from ringleader.signals.evidence import entity_evidence

RANDOM = {"settings": {"start": "half-normal", "head_evidence": False}, "epochs": 20}
ROWS = {"settings": {"head_evidence": False}}
VARIANTS = {"random start, rows": RANDOM, "lockstep start, rows": ROWS, "rows and evidence (corrected)": {}}
"""What the preset was, what the start alone mends, and what it is."""
HEAD_STEPS = 200
"""Steps of a head to its optimum."""
Figures = dict[tuple[str, str, str], list[float]]
"""(what, learner, mode) -> a figure of each market."""


def fitted(market: PaperMarket, split: Split | None, learner: str, **parameters: object) -> rl.RingDetector:
    labels = None if split is None else detector_labels(market.tensor, split.labels)
    made = rl.RingDetector(preset="corrected", learner=learner, random_state=market.seed, **parameters)
    return made.fit(market.tensor, labels)


def scored(made: rl.RingDetector, split: Split) -> float:
    return auc(split.truth, made.scores_by_code(split.mode)["score"].to_numpy()[split.test])


def measure(market: PaperMarket, figures: Figures) -> None:
    """Every variant by every learner, and what is known without labels."""
    free = fitted(market, None, "natural-gradient")
    groups = np.log1p(free.snapshot_.signals.lockstep.review_scores)
    for mode, split in market.splits.items():
        k = market.tensor.mode_index(mode)
        without = {"lockstep": groups, "evidence": free.review_evidence().left_out}
        for name, reviews in without.items():
            value = entity_evidence(market.tensor, reviews, k)[split.test]
            figures[f"{name} alone, no labels", "", mode].append(auc(split.truth, value))
        for name, parameters in VARIANTS.items():
            for learner in LEARNERS:
                figures[name, learner, mode].append(scored(fitted(market, split, learner, **parameters), split))


def table(figures: Figures) -> str:
    """A row for each variant and learner: every market, and the mean, of each mode."""
    lines = []
    for name, learner in dict.fromkeys((name, learner) for name, learner, _ in figures):
        cells = [name, learner]
        for mode in ("seller", "reviewer"):
            values = figures[name, learner, mode]
            cells += [", ".join(f"{value:.3f}" for value in values), f"{np.mean(values):.3f}"]
        lines.append(cells)
    return markdown_table(["head", "learner", "sellers", "mean", "reviewers", "mean"], lines)


def summaries(reviews: ReviewEvidence, market: PaperMarket, mode: int) -> dict[str, np.ndarray]:
    """What a head might read of every entity of a mode, (n_k,) each."""

    def mean(values: np.ndarray, shrink: float = 0.0) -> np.ndarray:
        return entity_evidence(market.tensor, values, mode, shrink=shrink)

    return {
        "mean log-odds, own pull left in": mean(np.maximum(reviews.log_odds, 0)),
        "mean left-out log-odds": mean(reviews.left_out),
        "its square root": np.sqrt(mean(reviews.left_out)),
        "log(1 + it), as it is": np.log1p(mean(reviews.left_out)),
        "log(1 + it), shrunk by 5 reviews": np.log1p(mean(reviews.left_out, 5.0)),
        "mean log(1 + left-out log-odds)": mean(np.log1p(reviews.left_out)),
        "mean z": mean(reviews.evidence),
        "log(1 + mean z)": np.log1p(mean(reviews.evidence)),
    }


def compare_summaries(markets: Sequence[PaperMarket]) -> str:
    """AUC and log-loss of the head with each summary, fitted anew on the same rows."""
    rows: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for market in markets:
        for mode, split in market.splits.items():
            made = fitted(market, split, "natural-gradient")
            problem, state, k = made.problem_, made.state_.copy(), market.tensor.mode_index(mode)
            cavities = state.cavities
            factors = state.factors.copy()
            factors[state.starts[k] + problem.targets[0].codes] = labelled_rows(problem, state, 0)
            reviews = review_evidence(problem, state.replace(factors=factors))
            for name, summary in summaries(reviews, market, k).items():
                state = fresh_heads(problem, state).replace(cavities=cavities)
                state.evidence_of(k)[:] = (summary - summary.mean()) / summary.std()
                for _ in range(HEAD_STEPS):
                    head_step(problem, state, 0, cavities, problem.rule(k))
                psi = head_log_odds(state, 0, k)[split.test]
                loss = -float(log_logistic(np.where(split.truth > 0, psi, -psi)).mean())
                rows[name][mode].append((auc(split.truth, psi), loss))
    lines = [
        [name, *(f"{value:.3f}" for mode in ("seller", "reviewer") for value in np.mean(own[mode], axis=0))]
        for name, own in rows.items()
    ]
    return markdown_table(["evidence", "sellers AUC", "log-loss", "reviewers AUC", "log-loss"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--reviews", type=int, default=60_000)
    parser.add_argument("--summaries", action="store_true", help="compare summaries of the evidence")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    markets = [paper_market(options.reviews, "medium", seed) for seed in options.seeds]
    about = f"Medium markets of {options.reviews:,} reviews, seeds {', '.join(map(str, options.seeds))}. {describe()}."
    if options.summaries:
        name, title, made = "published-summaries", "### What the head reads as evidence", compare_summaries(markets)
    else:
        figures: Figures = defaultdict(list)
        for market in markets:
            measure(market, figures)
        name, title, made = "published-model", "## The published model", table(figures)
    text = f"{title}\n\n`benchmarks/published_model.py`. {about}\n\n{made}"
    print(text)
    if options.write:
        write_section("benchmarks.md", name, text)


if __name__ == "__main__":
    main()
