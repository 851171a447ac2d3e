"""How good is the head, and which settings? The experiment behind the defaults and docs/head.md.

    python benchmarks/head_settings.py --seeds 300 301 302 303 304 --reviews 300000

Sellers of generated markets, twenty simple inputs (statistics, burst, prototype lockstep), labels drawn one bad to
three good from all sellers, tested on all the others at the market's own prevalence. The same inputs go to gradient
boosting and a random forest, whose odds are corrected for the prevalence too. ``evidence`` is the sum of the normal
scores of burst, lockstep mean and lockstep top 10; no label is in it. The settings were chosen on seeds 200-203.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from covariate_value import boosting
from marketplace_bands import WEEK, burst, lockstep, per_entity, seller_statistics, targets
from ringleader.datasets import marketplace
from ringleader.evaluation.metrics import calibration_error
from ringleader.evaluation.protocol import few_labels
from ringleader.judge.binary import fit_binary
from ringleader.judge.head import head_table
from ringleader.judge.priors import HeadSettings

LABELS = (10, 30, 100, 300)


class Sellers(NamedTuple):
    features: np.ndarray
    names: list[str]
    evidence: np.ndarray
    bad: np.ndarray


Method = Callable[[Sellers, np.ndarray, float], np.ndarray]


def sellers_of(reviews: int, difficulty: str, seed: int, noise: int) -> Sellers:
    """Inputs, evidence and truth of every seller of one market; ``noise`` columns of nothing are added."""
    market = marketplace(reviews, difficulty=difficulty, seed=seed)
    table, truth = market.reviews, targets(market, "seller")
    by = table["seller"]
    inputs = seller_statistics(table)
    activity = table.groupby("reviewer")["rating"].transform("size")
    inputs["burst"] = burst(table)
    for side, chosen in {"high": table["rating"] >= 4, "low": table["rating"] <= 2}.items():
        scores = per_entity(by, lockstep(table, chosen.to_numpy()))
        inputs[f"{side}_mean"], inputs[f"{side}_top"] = scores["mean"], scores["top10"]
    inputs["ones"] = (table["rating"] == 1).groupby(by).mean()
    inputs["single"] = (activity <= 1).groupby(by).mean()
    inputs["activity_median"] = activity.groupby(by).median()
    for mode, what in (("product", "std"), ("reviewer", "mean")):
        deviation = table["rating"] - table.groupby(mode)["rating"].transform("mean")
        inputs[f"{mode}_deviation"] = deviation.groupby(by).agg(what).fillna(0.0)
    inputs["peak_share"] = inputs["most_in_week"] / inputs["reviews"]
    inputs["life"] = (table["timestamp"].groupby(by).max() - table["timestamp"].groupby(by).min()) / WEEK
    inputs = inputs.loc[truth.index]
    normal = {c: norm.ppf((rankdata(inputs[c]) - 0.5) / len(inputs)) for c in ("burst", "high_mean", "high_top")}
    rng = np.random.default_rng(seed)
    nothing = {f"noise_{j}": rng.normal(size=len(inputs)) for j in range(noise)}
    inputs = inputs.assign(**nothing)
    evidence = np.sum(list(normal.values()), axis=0)
    return Sellers(inputs.to_numpy(float), list(inputs.columns), evidence, truth["label"].to_numpy())


def one_to_three(bad: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of ``count`` sellers, one bad to three good."""
    return np.flatnonzero(~np.isnan(few_labels(bad.astype(np.float64), count, rng)))


def head(use_evidence: bool = True, estimate: bool = False, **settings: float) -> Method:
    def scored(sellers: Sellers, known: np.ndarray, prevalence: float) -> np.ndarray:
        made = fit_binary(
            head_table(sellers.features, sellers.names, sellers.evidence if use_evidence else None),
            known,
            2.0 * sellers.bad[known] - 1,
            HeadSettings(prevalence=None if estimate else prevalence, **settings),
        )
        return made.predict().value

    return scored


def opponent(make: Callable[[int], HistGradientBoostingClassifier | RandomForestClassifier]) -> Method:
    """The same inputs, and the odds corrected from the labels' share to the market's."""

    def scored(sellers: Sellers, known: np.ndarray, prevalence: float) -> np.ndarray:
        inputs = np.column_stack([sellers.features, sellers.evidence])
        label = sellers.bad[known]
        p = make(len(known)).fit(inputs[known], label).predict_proba(inputs)[:, 1]
        odds = p / (1 - p + 1e-9) * (prevalence / (1 - prevalence)) / (label.mean() / (1 - label.mean()))
        return odds / (1 + odds)

    return scored


def evidence_alone(sellers: Sellers, known: np.ndarray, prevalence: float) -> np.ndarray:
    return (rankdata(sellers.evidence) - 0.5) / len(sellers.evidence)


METHODS: dict[str, Method] = {
    "evidence": evidence_alone,
    "head": head(),
    "head, prevalence estimated": head(estimate=True),
    "boosting": opponent(lambda labels: boosting(min_samples_leaf=min(8, labels // 4))),
    "forest": opponent(lambda labels: RandomForestClassifier(300, min_samples_leaf=2, random_state=0)),
}
ABLATION: dict[str, Method] = {
    "default": head(),
    "no evidence prior": head(use_evidence=False),
    "fixed variances": head(learn_variances=False),
    "fixed variances 1 and 0.3": head(learn_variances=False, linear_variance=1.0, spline_variance=0.3),
    "one variance for all inputs": head(own_worth=1e9),
    "no bends": head(spline_variance=1e-6, worth=1e6),
    "start variances x 10": head(linear_variance=1.0, spline_variance=2.0),
}


def measure(markets: list[Sellers], methods: dict[str, Method], draws: int) -> pd.DataFrame:
    rows = []
    for seed, sellers in enumerate(markets):
        for draw in range(draws):
            for count in LABELS:
                known = one_to_three(sellers.bad, count, np.random.default_rng([seed, draw, count]))
                rest = np.ones(len(sellers.bad), bool)
                rest[known] = False
                label = sellers.bad[rest]
                for name, method in methods.items():
                    p = method(sellers, known, float(sellers.bad.mean()))[rest]
                    numbers = {
                        "AUC": roc_auc_score(label, p),
                        "AP": average_precision_score(label, p),
                        "log-loss": log_loss(label, np.clip(p, 1e-6, 1 - 1e-6)),
                        "ECE": calibration_error(label, p),
                    }
                    rows.append({"method": name, "labels": count, **numbers})
    return pd.DataFrame(rows)


def coverage(markets: list[Sellers], simulations: int) -> pd.DataFrame:
    """Share of sellers whose interval holds the probability their label was drawn from."""
    rows = []
    for seed, sellers in enumerate(markets):
        known = one_to_three(sellers.bad, 300, np.random.default_rng(seed))
        made = fit_binary(
            head_table(sellers.features, sellers.names, sellers.evidence), known, 2.0 * sellers.bad[known] - 1
        )
        p = made.predict().value
        for simulation in range(simulations):
            rng = np.random.default_rng([seed, simulation])
            drawn = (rng.random(len(p)) < p).astype(int)
            for count in (100, 300):
                for way in ("at random", "one to three"):
                    chosen = rng.choice(len(p), count, replace=False)
                    chosen = one_to_three(drawn, count, rng) if way == "one to three" else chosen
                    for prevalence_known in (True, False):
                        settings = HeadSettings(prevalence=float(p.mean()) if prevalence_known else None)
                        again = fit_binary(
                            head_table(sellers.features, sellers.names, sellers.evidence),
                            chosen,
                            2.0 * drawn[chosen] - 1,
                            settings,
                        )
                        s = again.predict()
                        covered = ((s.lower <= p) & (p <= s.upper)).mean()
                        rows.append(
                            {
                                "labels": count,
                                "drawn": way,
                                "prevalence": "given" if prevalence_known else "estimated",
                                "coverage": covered,
                                "width": (s.upper - s.lower).mean(),
                                "prevalence ratio": again.prevalence / p.mean(),
                            }
                        )
    return pd.DataFrame(rows).groupby(["labels", "drawn", "prevalence"]).mean().round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[300, 301, 302, 303, 304])
    parser.add_argument("--difficulty", nargs="+", default=["medium", "hard"])
    parser.add_argument("--draws", type=int, default=2, help="label draws for each market")
    parser.add_argument("--noise", type=int, default=0, help="columns of nothing to add")
    parser.add_argument("--ablation", action="store_true", help="the head with each part off in turn")
    parser.add_argument("--coverage", action="store_true", help="intervals on labels simulated from a fitted head")
    options = parser.parse_args()
    for difficulty in options.difficulty:
        started = time.perf_counter()
        markets = [sellers_of(options.reviews, difficulty, seed, options.noise) for seed in options.seeds]
        print(f"\n{difficulty}, {options.reviews} reviews, {len(markets)} markets, {options.noise} columns of noise")
        with threadpool_limits(1):
            if options.coverage:
                print(coverage(markets, 3).to_string())
            else:
                rows = measure(markets, ABLATION if options.ablation else METHODS, options.draws)
                table = rows.groupby(["method", "labels"]).mean().unstack("labels").round(3)
                print(table.to_string())
                spread = rows.groupby(["method", "labels"])["AUC"].std().unstack("labels").round(3)
                print(f"standard deviation of the AUC\n{spread.to_string()}")
        print(f"{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
