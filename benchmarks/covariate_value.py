"""What are the behaviour covariates worth? The experiment behind docs/covariates.md.

    python benchmarks/covariate_value.py --seeds 300 301 302 --reviews 220000 --data ../shared/data --write

Generated markets: test AUC of gradient boosting and of a random forest, trained on the known labels, on nine simple
statistics, on all covariates, and with each group of covariates off in turn; then the best covariates taken alone,
without any label. "matched" is AUC within deciles of review count. Real data: Bitcoin OTC raters (stratified 10-fold)
and Amazon-Xu reviewers (5-fold), as described beside the data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from machine import describe, write_section
from marketplace_bands import WEEK, matched_auc, targets
from ringleader import read_reviews
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.results import markdown_table
from ringleader.signals.behaviour import Covariates, behaviour, read_market

MODES = {"seller": ("reviewer", "product"), "reviewer": ("seller", "product")}


def boosting(min_samples_leaf: int = 8) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=120,
        max_leaf_nodes=8,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=1.0,
        random_state=0,
    )


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(200, min_samples_leaf=2, random_state=0, n_jobs=1)


LEARNERS: dict[str, Callable[[], Any]] = {"boosting": boosting, "forest": forest}


def nine_statistics(reviews: pd.DataFrame, mode: str) -> pd.DataFrame:
    """The nine simple statistics of marketplace_bands.py, for sellers or, the roles exchanged, for reviewers."""
    first, second = MODES[mode]
    table = reviews.assign(
        week=reviews["timestamp"] // WEEK, activity=reviews.groupby(first)["rating"].transform("size")
    )
    by = table.groupby(mode)
    weekly = table.groupby([mode, "week"]).size()
    return pd.DataFrame(
        {
            "reviews": by.size(),
            "mean": by["rating"].mean(),
            "spread": by["rating"].std(ddof=0),
            "fives": (table["rating"] == 5).groupby(table[mode]).mean(),
            "most_in_week": weekly.groupby(mode).max(),
            "active_weeks": weekly.groupby(mode).size(),
            first: by[first].nunique(),
            second: by[second].nunique(),
            "activity": by["activity"].mean(),
        }
    )


def judge(features: pd.DataFrame, truth: pd.DataFrame, count: pd.Series, learner: str) -> tuple[float, float]:
    """Test AUC, over all pairs and matched by activity."""
    known, test = truth["split"] == "known", truth["split"] == "test"
    model = LEARNERS[learner]().fit(features[known], truth.loc[known, "label"])
    score = pd.Series(model.predict_proba(features[test])[:, 1], index=features.index[test])
    label = truth.loc[test, "label"]
    return float(roc_auc_score(label, score)), matched_auc(label, score, count[test])


def without(covariates: Covariates, table: pd.DataFrame, group: str) -> pd.DataFrame:
    return table[[name for name in covariates.names if covariates.groups[name] != group]]


def market_rows(market: Marketplace, mode: str, ablate: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """AUC of every input and learner, and of every covariate alone."""
    tensor = read_reviews(market.reviews)
    covariates = behaviour(tensor, mode)
    truth = targets(market, mode)
    table = covariates.frame(tensor).loc[truth.index]
    count = market.reviews.groupby(mode).size().loc[truth.index]
    inputs = {"nine statistics": nine_statistics(market.reviews, mode).loc[truth.index], "all covariates": table}
    if ablate:
        groups = dict.fromkeys(covariates.groups.values())
        inputs |= {f"without {group}": without(covariates, table, group) for group in groups}
    rows = []
    for name, features in inputs.items():
        for learner in LEARNERS if not name.startswith("without") else ["boosting"]:
            whole, matched = judge(features, truth, count, learner)
            rows.append({"mode": mode, "input": name, "learner": learner, "auc": whole, "matched": matched})
    test = truth["split"] == "test"
    label = truth.loc[test, "label"]
    alone = [{"mode": mode, "covariate": c, "auc": roc_auc_score(label, table.loc[test, c])} for c in table]
    return rows, alone


def folds_auc(features: np.ndarray, label: np.ndarray, folds: int, repeats: int, learner: str) -> np.ndarray:
    """Mean AUC over the folds of each repeat."""
    means = []
    for repeat in range(repeats):
        splits = StratifiedKFold(folds, shuffle=True, random_state=repeat).split(features, label)
        aucs = []
        for train, test in splits:
            model = LEARNERS[learner]().fit(features[train], label[train])
            aucs.append(roc_auc_score(label[test], model.predict_proba(features[test])[:, 1]))
        means.append(np.mean(aucs))
    return np.array(means)


def real(folder: Path, repeats: int, ablate: bool) -> pd.DataFrame:
    """Bitcoin OTC from the rater side only (incoming ratings leak the label), and Amazon-Xu."""
    rows = []
    for name, rename, folds, times in (
        ("bitcoin_otc", {"product": "target"}, 10, repeats),
        ("amazon_xu", None, 5, max(1, repeats // 5)),
    ):
        tensor = read_reviews(folder / f"{name}_ratings.parquet", columns=rename)
        labels = pd.read_csv(folder / f"{name}_labels.csv", dtype={"entity": str})
        covariates = behaviour(tensor, "reviewer")
        table = covariates.frame(tensor)
        if "mode" in labels:
            labels = labels[labels["mode"].isin(["reviewer", "user"])]
        labels = labels[labels["entity"].isin(table.index)].drop_duplicates("entity")
        features, label = table.loc[labels["entity"]], labels["label"].to_numpy()
        inputs = {"all covariates": features}
        if ablate and name == "bitcoin_otc":
            for group in dict.fromkeys(covariates.groups.values()):
                inputs[f"without {group}"] = without(covariates, features, group)
        for kind, chosen in inputs.items():
            for learner in LEARNERS if kind == "all covariates" else ["forest"]:
                auc = folds_auc(chosen.to_numpy(), label, folds, times, learner)
                rows.append([name, len(label), kind, learner, auc.mean(), auc.std()])
    return pd.DataFrame(rows, columns=["data", "labelled", "input", "learner", "auc", "sd"])


def speed(reviews: int) -> None:
    import resource

    tensor = read_reviews(marketplace(reviews, seed=0).reviews)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    market = read_market(tensor)
    for mode in ("seller", "reviewer", "product"):
        behaviour(tensor, mode, market=market)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"\n{reviews} reviews, three modes: {time.perf_counter() - started:.2f} s wall, "
        f"{time.process_time() - cpu:.2f} s CPU; peak memory {peak / 2**20:.2f} GiB, {before / 2**20:.2f} before"
    )


def report(difficulty: str, reviews: int, seeds: list[int], ablate: bool) -> tuple[pd.DataFrame, pd.Series]:
    """Prints and returns the tables of one difficulty: mean and sd of every input, mean of every covariate alone."""
    rows, alone = [], []
    for seed in seeds:
        market = marketplace(reviews, difficulty=difficulty, seed=seed)
        for mode in MODES:
            judged, single = market_rows(market, mode, ablate)
            rows += judged
            alone += single
    table = pd.DataFrame(rows).groupby(["mode", "input", "learner"], sort=False).agg(["mean", "std"])
    print(f"\n{difficulty}, {reviews} reviews, seeds {seeds}\n{table.round(3).to_string()}")
    means = pd.DataFrame(alone).groupby(["mode", "covariate"])["auc"].mean()
    for mode in MODES:
        best = means[mode].sort_values(ascending=False).head(10)
        print(f"\n{difficulty}, {mode}: covariates alone, without labels\n{best.round(3).to_string()}", flush=True)
    return table, means


def write_tables(figures: dict[str, tuple[pd.DataFrame, pd.Series]], reviews: int, seeds: list[int]) -> None:
    """The tables of docs/covariates.md: ``figures`` has those of every difficulty, in the order of the columns."""
    columns = ["", *(f"{mode}s {difficulty}" for mode in MODES for difficulty in figures)]

    def line(title: str, name: str, learner: str, what: str = "auc") -> list[str]:
        cells = [figures[d][0].loc[(mode, name, learner), (what, "mean")] for mode in MODES for d in figures]
        return [title, *(f"{cell:.3f}" for cell in cells)]

    inputs = ("nine statistics", "all covariates")
    worth = [line(f"{learner}, {name}", name, learner) for name in inputs for learner in LEARNERS]
    worth += [line(f"matched: boosting, {name}", name, "boosting", "matched") for name in inputs]
    names = next(iter(figures.values()))[0].index.get_level_values("input").unique()
    removed = [line("nothing", "all covariates", "boosting")]
    removed += [line(name.removeprefix("without "), name, "boosting") for name in names if name.startswith("without")]
    spread = max(table.xs("std", axis=1, level=1).to_numpy().max() for table, _ in figures.values())
    about = f"`benchmarks/covariate_value.py`, {reviews:,} reviews, seeds {', '.join(map(str, seeds))}, largest sd "
    about += f"{spread:.3f}. {describe()}."
    tables = [
        markdown_table(columns, worth),
        "Each group off in turn (boosting):",
        markdown_table(["without", *columns[1:]], removed),
    ]
    alone = []
    for mode in MODES:
        best = pd.DataFrame({d: means[mode] for d, (_, means) in figures.items()})
        best = best.loc[best.mean(axis=1).sort_values(ascending=False).index[:3]]
        alone += [[f"{mode}s", f"`{name}`", *(f"{cell:.3f}" for cell in best.loc[name])] for name in best.index]
    single = markdown_table(["alone, without labels", "covariate", *figures], alone)
    write_section("covariates.md", "markets", "\n\n".join([about, *tables, "The best three alone:", single]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=220_000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[300, 301, 302, 303, 304])
    parser.add_argument("--difficulty", nargs="+", default=["easy", "medium", "hard"])
    parser.add_argument("--no-ablation", action="store_true")
    parser.add_argument("--data", type=Path, help="folder of the real data; without it they are skipped")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--speed", type=int, metavar="REVIEWS", help="also time all modes of a market of this size")
    parser.add_argument("--write", action="store_true", help="write the tables of markets into docs/covariates.md")
    options = parser.parse_args()
    with threadpool_limits(1):  # a few hundred rows: threads only wait for each other
        figures = {
            difficulty: report(difficulty, options.reviews, options.seeds, not options.no_ablation)
            for difficulty in (options.difficulty if options.seeds else [])
        }
        if options.write and figures:
            write_tables(figures, options.reviews, options.seeds)
        if options.data is not None:
            print("\n" + real(options.data, options.repeats, not options.no_ablation).round(4).to_string())
    if options.speed:
        speed(options.speed)


if __name__ == "__main__":
    main()
