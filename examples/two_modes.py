"""Labels on two modes: known sellers, known reviewers, or both. What does each know about the other?

    python examples/two_modes.py --reviews 50000 --seeds 3

Labels of one mode reach the other through association (who acts together with known accounts of either kind) and
neighbours (who meets those that are suspected). A mode without labels has a score and no probability. The table shows
AUC on accounts whose label the model was not given.
"""

from __future__ import annotations

import argparse

import pandas as pd

import ringleader as rl
from ringleader.evaluation.truth import evaluate

CHOICES = {"none": (), "sellers": ("seller",), "reviewers": ("reviewer",), "both": ("seller", "reviewer")}


def compare(reviews: int, seed: int) -> list[dict[str, object]]:
    """One row per choice of labels and mode, on one market."""
    market = rl.datasets.marketplace(reviews, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    known = market.labels[market.labels["target"] == "abuse"]
    tested = market.truth[(market.truth["target"] == "abuse") & (market.truth["split"] == "test")]
    truth = rl.read_labels(tested[["mode", "entity", "label"]])
    rows = []
    for name, modes in CHOICES.items():
        labels = known[known["mode"].isin(modes)]
        model = rl.RingDetector(random_state=seed).fit(tensor, labels if len(labels) else None)
        rows += [{"labels on": name, "scored": r["mode"], "AUC": r["auc"]} for r in evaluate(model, truth)]
    return rows


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=20_000, help="size of each generated market")
    parser.add_argument("--seeds", type=int, default=1, help="markets to average over")
    options = parser.parse_args(arguments)
    rows = [row for seed in range(options.seeds) for row in compare(options.reviews, seed)]
    table = pd.DataFrame(rows).groupby(["labels on", "scored"], sort=False)["AUC"].mean().unstack()
    print(f"AUC on the tested accounts of {options.seeds} market(s) of {options.reviews:,} reviews")
    print(table.round(3).to_string())
    return table


if __name__ == "__main__":
    main()
