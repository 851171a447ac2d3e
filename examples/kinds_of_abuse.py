"""Several kinds of abuse at once: who boosts, who attacks, each with a probability of its own.

    python examples/kinds_of_abuse.py --reviews 50000 --seeds 3

A label table may have a ``target`` column. Every (mode, target) gets a head of its own on the same evidence and
lockstep, so one fit answers all questions. The second table asks whether this pays: are attackers found better by
the head of ``attack`` than by the head of ``abuse``, which knows more bad accounts but not what they did?
"""

from __future__ import annotations

import argparse

import pandas as pd
from sklearn.metrics import roc_auc_score

import ringleader as rl

KINDS = ("abuse", "boost", "attack")


def probabilities(model: rl.RingDetector, mode: str) -> pd.DataFrame:
    """One row per account, one probability per kind of abuse, and the reviews it has."""
    tables = {kind: model.scores(mode, kind).set_index("entity") for kind in KINDS}
    joined = pd.DataFrame({kind: table["probability"] for kind, table in tables.items()})
    joined["reviews"] = tables["abuse"]["reviews"]
    return joined.sort_values("abuse", ascending=False)


def which_head(probability: pd.DataFrame, truth: pd.DataFrame, mode: str) -> list[dict[str, object]]:
    """How well each head finds each kind, on accounts without a label."""
    rows = []
    for kind in KINDS:
        tested = truth[(truth["mode"] == mode) & (truth["target"] == kind) & (truth["split"] != "known")]
        if not 0 < tested["label"].sum() < len(tested):
            continue
        for head in KINDS:
            auc = roc_auc_score(tested["label"], probability.loc[tested["entity"], head])
            rows.append({"mode": mode, "who": kind, "head": head, "AUC": auc})
    return rows


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=20_000, help="size of each generated market")
    parser.add_argument("--seeds", type=int, default=1, help="markets to average over")
    options = parser.parse_args(arguments)
    rows = []
    for seed in range(options.seeds):
        market = rl.datasets.marketplace(options.reviews, seed=seed)
        model = rl.RingDetector(random_state=seed).fit(market.reviews, market.labels)
        for mode in ("reviewer", "seller"):
            probability = probabilities(model, mode)
            rows += which_head(probability, market.truth, mode)
            if seed == 0:
                print(f"\nThe five most suspicious {mode}s, by kind")
                print(probability.head(5).round(3).to_string())
    table = pd.DataFrame(rows).groupby(["mode", "who", "head"], sort=False)["AUC"].mean().unstack()
    print(f"\nAUC of each head (columns) for each kind of account (rows), {options.seeds} market(s)")
    print(table.round(3).to_string())
    return table


if __name__ == "__main__":
    main()
