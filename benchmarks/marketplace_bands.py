"""How hard are the generated markets? The experiment behind the difficulty settings and docs/marketplace.md.

    python benchmarks/marketplace_bands.py --seeds 100 101 102 103 104 --reviews 220000

For each difficulty: gradient boosting on nine simple statistics per seller, trained on the known labels and tested on
the test sellers; and, without labels, burst, lockstep and review count. The settings were tuned on seeds 0-14.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from ringleader.datasets import Marketplace, marketplace

WEEK = 7 * 86_400
WINDOW = 6  # weeks of a lockstep group
LARGEST = 200  # reviewers of a lockstep group
BANDS = {"easy": (0.93, 0.96), "medium": (0.84, 0.90), "hard": (0.70, 0.78)}
"""Where the test AUC of boosting on simple statistics should lie."""


def seller_statistics(reviews: pd.DataFrame) -> pd.DataFrame:
    """Nine simple statistics per seller, the weak opponent that the bands are about."""
    week = reviews["timestamp"] // WEEK
    table = reviews.assign(week=week, activity=reviews.groupby("reviewer")["rating"].transform("size"))
    by = table.groupby("seller")
    weekly = table.groupby(["seller", "week"]).size()
    return pd.DataFrame(
        {
            "reviews": by.size(),
            "mean": by["rating"].mean(),
            "spread": by["rating"].std(ddof=0),
            "fives": (table["rating"] == 5).groupby(table["seller"]).mean(),
            "most_in_week": weekly.groupby("seller").max(),
            "active_weeks": weekly.groupby("seller").size(),
            "reviewers": by["reviewer"].nunique(),
            "products": by["product"].nunique(),
            "activity": by["activity"].mean(),
        }
    )


def targets(market: Marketplace, mode: str) -> pd.DataFrame:
    """label and split of each entity of a mode, for the target ``abuse``."""
    truth = market.truth
    rows = truth[(truth["mode"] == mode) & (truth["target"] == "abuse")]
    return rows.set_index("entity")[["label", "split", "ring"]]


def boosting_auc(market: Marketplace) -> float:
    """Test AUC of gradient boosting on ``seller_statistics`` with the known labels."""
    truth = targets(market, "seller")
    statistics = seller_statistics(market.reviews).loc[truth.index]
    known, test = truth["split"] == "known", truth["split"] == "test"
    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=120, max_leaf_nodes=8, min_samples_leaf=8, l2_regularization=1.0, random_state=0
    )
    with threadpool_limits(1):  # a few hundred rows: threads only wait for each other
        model.fit(statistics[known], truth.loc[known, "label"])
    return float(roc_auc_score(truth.loc[test, "label"], model.predict_proba(statistics[test])[:, 1]))


def burst(reviews: pd.DataFrame) -> pd.Series:
    """Most reviews in three weeks against the mean over the seller's active life, in Poisson standard deviations."""
    week = (reviews["timestamp"] // WEEK).to_numpy()
    z = np.zeros(0)
    for phase in range(3):
        bins = pd.DataFrame({"seller": reviews["seller"], "bin": (week + phase) // 3}).groupby(["seller", "bin"]).size()
        by = bins.reset_index().groupby("seller")["bin"]
        length = by.max() - by.min() + 1
        most, total = bins.groupby("seller").max(), bins.groupby("seller").sum()
        expected = (total / length).clip(lower=0.3)
        now = (most - expected) / np.sqrt(expected)
        z = now if phase == 0 else np.maximum(z, now)
    return z


def lockstep(reviews: pd.DataFrame, chosen: np.ndarray) -> np.ndarray:
    """Score of each review: how far its co-reviewers meet its reviewer elsewhere beyond chance (model.md, 6.5)."""
    who = pd.factorize(reviews["reviewer"])[0]
    product = pd.factorize(reviews["product"])[0]
    week = (reviews["timestamp"] // WEEK).to_numpy()
    best = np.zeros(len(reviews))
    for phase in (0, WINDOW // 2):
        best = np.maximum(best, _one_phase(who, product, (week + phase) // WINDOW, chosen))
    return best


def _one_phase(who: np.ndarray, product: np.ndarray, window: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    rows = np.flatnonzero(chosen)
    group = pd.factorize(product[rows] * 10_000 + window[rows] % 10_000)[0]
    size = np.bincount(group)
    fits = (size[group] >= 2) & (size[group] <= LARGEST)
    rows, group = rows[fits], pd.factorize(group[fits])[0]
    n = int(who.max()) + 1
    member = sparse.csr_matrix((np.ones(len(rows)), (who[rows], group)), shape=(n, int(group.max()) + 1))
    member.data[:] = 1.0
    sizes = np.asarray(member.sum(axis=0)).ravel()
    degree = np.asarray(member.sum(axis=1)).ravel()
    total = sizes.sum()
    chance = (sizes * (sizes - 1)).sum() / (total * (total - 1))
    pairs = (member @ member.T).tocoo()
    keep = (pairs.row != pairs.col) & (pairs.data >= 2)
    i, j, c = pairs.row[keep], pairs.col[keep], pairs.data[keep] - 1  # without the group that is being judged
    mu = degree[i] * degree[j] * chance
    llr = np.where(c > mu, c * np.log(c / mu) - (c - mu), 0.0)
    graph = sparse.csr_matrix((llr, (i, j)), shape=(n, n))
    met = (graph @ member).multiply(member).tocsr()
    score = np.zeros(len(who))
    score[rows] = np.asarray(met[who[rows], group]).ravel()
    return score


def per_entity(entity: pd.Series, score: np.ndarray) -> pd.DataFrame:
    """Mean and top-10 mean of log(1 + score)."""
    table = pd.DataFrame({"entity": entity.to_numpy(), "score": np.log1p(score)})
    top = table.sort_values("score", ascending=False).groupby("entity").head(10)
    return pd.DataFrame(
        {"mean": table.groupby("entity")["score"].mean(), "top10": top.groupby("entity")["score"].sum() / 10}
    )


def matched_auc(label: pd.Series, score: pd.Series, activity: pd.Series) -> float:
    """AUC within deciles of activity, weighted by the pairs compared."""
    decile = pd.qcut(activity.rank(method="first"), 10, labels=False)
    value = weight = 0.0
    for d in range(10):
        rows = decile == d
        bad = int(label[rows].sum())
        pairs = bad * (int(rows.sum()) - bad)
        if pairs:
            value += pairs * roc_auc_score(label[rows], score[rows])
            weight += pairs
    return value / weight


def measure(market: Marketplace) -> dict[str, float]:
    """Every number of the table for one market."""
    reviews = market.reviews
    sellers, reviewers = targets(market, "seller"), targets(market, "reviewer")
    test = sellers["split"] == "test"
    high = lockstep(reviews, (reviews["rating"] >= 4).to_numpy())
    low = lockstep(reviews, (reviews["rating"] <= 2).to_numpy())
    seller = per_entity(reviews["seller"], high).loc[sellers.index]
    reviewer = per_entity(reviews["reviewer"], high + low).loc[reviewers.index]
    count = reviews.groupby("reviewer").size().loc[reviewers.index]
    size = reviews.groupby("seller").size().loc[sellers.index]
    audited = size >= 10
    z = burst(reviews).loc[sellers.index]
    tested = reviewers["split"] == "test"
    label = reviewers["label"]
    return {
        "boosting": boosting_auc(market),
        "lock_mean": roc_auc_score(sellers["label"][test], seller["mean"][test]),
        "lock_top": roc_auc_score(sellers["label"][test], seller["top10"][test]),
        "lock_all": roc_auc_score(sellers["label"][audited], seller["mean"][audited]),
        "burst": roc_auc_score(sellers["label"][test], z[test]),
        "size": roc_auc_score(sellers["label"][test], size[test]),
        "rev_mean": roc_auc_score(label[tested], reviewer["mean"][tested]),
        "rev_match": matched_auc(label[tested], reviewer["mean"][tested], count[tested]),
        "rev_top": roc_auc_score(label[tested], reviewer["top10"][tested]),
        "rev_topm": matched_auc(label[tested], reviewer["top10"][tested], count[tested]),
        "rev_count": roc_auc_score(label[tested], count[tested]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=220_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102, 103, 104])
    parser.add_argument("--difficulty", nargs="+", default=list(BANDS))
    parser.add_argument("--boosting-only", action="store_true", help="skip the slower lockstep")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of marketplace")
    options = parser.parse_args()
    knobs: dict[str, Any] = {k: float(v) for k, v in (item.split("=") for item in options.set)}
    for difficulty in options.difficulty:
        rows = []
        for seed in options.seeds:
            started = time.perf_counter()
            market = marketplace(options.reviews, difficulty=difficulty, seed=seed, **knobs)
            seconds = time.perf_counter() - started
            numbers = {"boosting": boosting_auc(market)} if options.boosting_only else measure(market)
            rows.append(numbers | {"seconds": seconds})
        table = pd.DataFrame(rows, index=options.seeds)
        table = pd.concat([table, pd.DataFrame({"mean": table.mean(), "sd": table.std()}).T])
        print(f"\n{difficulty}, {options.reviews} reviews, band {BANDS[difficulty]}")
        print(table.round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
