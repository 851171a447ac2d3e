"""What labels of one mode are worth for the scores of another (transfer between modes), by several rules.

    python benchmarks/transfer.py --seeds 1801 1802 1803 [--reviews 40000] [--few] [--write]

Generated markets, labels of one mode only: AUC, activity-matched AUC and average precision of all accounts of the other
mode. Nobody says of products whether they are bad; here one is where paid reviewers gave it three good ratings. With
--few: the labels of four bad and ten good accounts only.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

import ringleader as rl
from machine import describe, write_section
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.detection import DIFFICULTIES
from ringleader.evaluation.metrics import auc, average_precision, matched_auc
from ringleader.evaluation.results import markdown_table
from ringleader.judge.neighbours import mean_of_met
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.signals.suspicion import normal_scores

DIRECTIONS = (("reviewer", "seller"), ("reviewer", "product"), ("seller", "reviewer"), ("seller", "product"))
FEW = {1: 4, 0: 10}
GOOD_RATING, PAID = 4, 3
"""A product is bad where paid reviewers gave it so many good ratings."""
Figures = dict[tuple[str, str, str], list[tuple[float, ...]]]
"""(labelled mode, scored mode, rule) -> figures of each market."""


def truth_of(market: Marketplace, tensor: rl.SparseTensor, mode: str) -> np.ndarray:
    """1 for each bad entity of a mode, 0 for the others, (n_k,)."""
    rows = market.truth[market.truth["target"] == DEFAULT_TARGET]
    names = tensor.vocabulary(mode).decode(np.arange(len(tensor.vocabulary(mode))))
    if mode != "product":
        rows = rows[rows["mode"] == mode]
        return rows.set_index("entity")["label"].loc[names].to_numpy(np.float64)
    paid = rows["entity"][(rows["mode"] == "reviewer") & (rows["label"] == 1)]
    bought = market.reviews[market.reviews["reviewer"].isin(paid) & (market.reviews["rating"] >= GOOD_RATING)]
    count = bought.groupby("product").size().reindex(names, fill_value=0)
    return (count.to_numpy() >= PAID).astype(np.float64)


def rules(model: rl.RingDetector, labelled: str, mode: str) -> dict[str, np.ndarray]:
    """The scores of a mode, (n_k,), by name of the rule. ``as it is`` is what the detector says."""
    tensor, (head,) = model.tensor_, model.heads_
    k, other = tensor.mode_index(mode), tensor.mode_index(labelled)
    suspicion, judged = model.suspicion(mode), head.judge().value
    known = judged.copy()
    known[head.codes] = head.values > 0
    fair = model.snapshot_.signals.not_attacks

    def of_neighbours(belief: np.ndarray, cells: np.ndarray | None) -> np.ndarray:
        return normal_scores(mean_of_met(tensor, k, other, belief - belief.mean(), cells))

    met = of_neighbours(known, fair)
    return {
        "suspicion": suspicion,
        "neighbours": met,
        "2:1": (2 * suspicion + met) / 3,
        "1:1": (suspicion + met) / 2,
        "1:2": (suspicion + 2 * met) / 3,
        "maximum": np.maximum(suspicion, met),
        "1:1, labels left out": (suspicion + of_neighbours(judged, fair)) / 2,
        "1:1, attacks too": (suspicion + of_neighbours(known, None)) / 2,
        "as it is": model.scores_by_code(mode)["score"].to_numpy(),
    }


def measure(market: Marketplace, labels: pd.DataFrame, seed: int, figures: Figures) -> None:
    tensor = rl.read_reviews(market.reviews)
    for labelled in ("reviewer", "seller"):
        model = rl.RingDetector(random_state=seed).fit(tensor, labels[labels["mode"] == labelled])
        for mode in (scored for source, scored in DIRECTIONS if source == labelled):
            bad, reviews = truth_of(market, tensor, mode), model.scores_by_code(mode)["reviews"]
            for rule, scores in rules(model, labelled, mode).items():
                row = auc(bad, scores), matched_auc(bad, scores, reviews), average_precision(bad, scores)
                figures[labelled, mode, rule].append(row)


def few(labels: pd.DataFrame, seed: int) -> pd.DataFrame:
    """So many of each kind and mode as there are in ``FEW``."""
    kinds = labels.groupby(["mode", "label"])
    return pd.concat([rows.sample(min(FEW[label], len(rows)), random_state=seed) for (_, label), rows in kinds])


def run(seeds: Sequence[int], reviews: int, only_few: bool, write: bool) -> None:
    about = f"`benchmarks/transfer.py`, {reviews:,} reviews, seeds {', '.join(map(str, seeds))}. {describe()}."
    print(about, flush=True)
    cells: dict[str, list[str]] = defaultdict(list)
    for difficulty in DIFFICULTIES:
        figures: Figures = defaultdict(list)
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            labels = market.labels[market.labels["target"] == DEFAULT_TARGET]
            measure(market, few(labels, seed) if only_few else labels, seed, figures)
        for (labelled, mode, rule), rows in figures.items():
            shown = " ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
            print(difficulty, f"{labelled}s tell of {mode}s,", f"{rule}:", shown, flush=True)
            if rule in ("suspicion", "as it is"):
                cells[f"{mode}s by {labelled}s"].append(
                    " / ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)[:2])
                )
    columns = [f"{difficulty}, {when}" for difficulty in DIFFICULTIES for when in ("without", "with")]
    table = markdown_table(["AUC / matched", *columns], [[name, *row] for name, row in cells.items()])
    print(table)
    if write:
        write_section("detection.md", "transfer", f"{about}\n\n{table}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--reviews", type=int, default=40_000)
    parser.add_argument("--few", action="store_true", help="few labels instead of all")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    run(options.seeds, options.reviews, options.few, options.write)


if __name__ == "__main__":
    main()
