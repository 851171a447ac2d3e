"""The experiment behind the priors of the head: how far to trust inputs and association, with few and many labels.

    python benchmarks/head_priors.py --seeds 900 901 902 [--reviews 150000]
    python benchmarks/head_priors.py --seeds 900 901 --coverage
    python benchmarks/head_priors.py --data ../shared/data

Generated markets: test AUC (sellers) and activity-matched AUC (reviewers) with 10, 30, 100 and all known labels, and
without labels. With --coverage instead: how often 90% intervals hold the probability that labels were simulated from,
the head fitted to 100 and 300 simulated labels. Real data: Amazon-Xu with 1% and 5% of the labels, and three of five
folds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace

import numpy as np

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.evaluation.protocol import market_split
from ringleader.evaluation.real import folds, load_xu, shares
from ringleader.judge.head import HeadSettings, fit_head
from ringleader.judge.inputs import with_association
from ringleader.judge.neighbours import first_round, with_company
from ringleader.known.labels import DEFAULT_TARGET, Target

DEFAULT = HeadSettings()
VARIANTS = {
    "default": DEFAULT,
    "variances 1": replace(DEFAULT, linear_variance=1.0, spline_variance=1.0),
    "variances 20": replace(DEFAULT, linear_variance=20.0, spline_variance=20.0),
    "own variances": replace(DEFAULT, worth=1.0, group_worth=1.0, own_worth=0.5),
    "no prior for association": replace(DEFAULT, association_slope=0.0, association_spread=0.2),
    "association always": replace(DEFAULT, association_labels=1.0),
    "association always, half": replace(DEFAULT, association_labels=1.0, association_slope=0.5),
}


class Prepared:
    """A fit without labels; the default preset's factors do not depend on them, so heads can be tried at once."""

    def __init__(self, tensor: rl.SparseTensor, mode: str, detector: rl.RingDetector) -> None:
        self.tensor, self.k, self.lockstep = tensor, tensor.mode_index(mode), detector.lockstep()
        self.inputs, self.suspicion = detector.inputs(mode), detector.suspicion(mode)

    def log_odds(self, known: np.ndarray, settings: HeadSettings) -> np.ndarray:
        """Of every entity, from labels (n_k,) that are NaN where unknown."""
        codes = np.flatnonzero(~np.isnan(known))
        values = np.where(known[codes] > 0, 1.0, -1.0)
        target = Target(self.k, DEFAULT_TARGET, "binary", codes.astype(np.int32), values)
        place = self.tensor, self.k, self.lockstep
        free, beliefs = {self.k: self.inputs}, {self.k: self.suspicion}
        found = first_round(self.tensor, self.lockstep, [target], free, beliefs, seed=0)
        inputs = with_company(with_association(self.inputs, *place, [target], 0), *place, target, found)
        groups = [inputs.groups[name] for name in inputs.names]
        head = fit_head(
            inputs.values, inputs.names, codes, values, fallback=self.suspicion, groups=groups, settings=settings
        )
        return head.predict().log_odds


def few(known: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many of the labels, one bad to three good."""
    bad, good = (rng.permutation(np.flatnonzero(known == side)) for side in (1.0, 0.0))
    chosen = np.concatenate([bad[: max(count // 4, 2)], good[: count - max(count // 4, 2)]])
    shown = np.full(len(known), np.nan)
    shown[chosen] = known[chosen]
    return shown


def markets(seeds: list[int], reviews: int) -> None:
    found: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for difficulty in ("easy", "medium", "hard"):
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            detector = rl.RingDetector(random_state=seed).fit(tensor)
            for mode in ("seller", "reviewer"):
                prepared, split = Prepared(tensor, mode, detector), market_split(tensor, market.truth, mode)

                def judged(scores: np.ndarray, mode: str = mode, split: object = split) -> float:
                    tested = scores[split.test]
                    return (
                        auc(split.truth, tested)
                        if mode == "seller"
                        else matched_auc(split.truth, tested, split.activity)
                    )

                found[mode, difficulty, "none"]["suspicion"].append(judged(prepared.suspicion))
                rng = np.random.default_rng(seed)
                shown = {str(count): few(split.known, count, rng) for count in (10, 30, 100)} | {"all": split.known}
                for count, known in shown.items():
                    for name, settings in VARIANTS.items():
                        found[mode, difficulty, count][name].append(judged(prepared.log_odds(known, settings)))
    for key, figures in found.items():
        print(*key, {name: round(float(np.mean(values)), 4) for name, values in figures.items()}, flush=True)


def coverage(seeds: list[int], reviews: int) -> None:
    """Labels simulated from a fitted head; sellers, prevalence given."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for difficulty in ("easy", "medium", "hard"):
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            labels = market.labels[(market.labels["target"] == DEFAULT_TARGET) & (market.labels["mode"] == "seller")]
            detector = rl.RingDetector(random_state=seed).fit(tensor, labels)
            inputs, suspicion = detector.inputs("seller"), detector.suspicion("seller")
            groups = [inputs.groups[name] for name in inputs.names]
            truth = detector.heads_[0].predict().probability
            settings = replace(DEFAULT, prevalence=float(truth.mean()))
            for count in (100, 300):
                for draw in ("one to three", "at random"):
                    for simulation in range(2):
                        rng = np.random.default_rng([seed, count, simulation])
                        bad = (rng.random(len(truth)) < truth).astype(float)
                        shown = few(bad, count, rng)
                        if draw == "at random":
                            chosen = rng.permutation(len(bad))[:count]
                            shown = np.full(len(bad), np.nan)
                            shown[chosen] = bad[chosen]
                        codes = np.flatnonzero(~np.isnan(shown))
                        values = 2 * shown[codes] - 1
                        again = fit_head(
                            inputs.values,
                            inputs.names,
                            codes,
                            values,
                            fallback=suspicion,
                            groups=groups,
                            settings=settings,
                        ).predict()
                        found[difficulty, count, draw].append(((again.lower <= truth) & (truth <= again.upper)).mean())
    for key, held in found.items():
        print(*key, round(float(np.mean(held)), 3), flush=True)


def real(folder: str) -> None:
    data = load_xu(folder)
    prepared = Prepared(data.tensor, data.mode, rl.RingDetector(random_state=0).fit(data.tensor))
    protocols = {
        "1%": [fold for seed in range(6) for fold in shares(data, 0.01, seed)],
        "5%": [fold for seed in range(4) for fold in shares(data, 0.05, seed)],
        "5-fold": folds(data, 5, 0)[:3],
    }
    for protocol, drawn in protocols.items():
        figures = {
            name: np.mean([auc(data.truth[f.test], prepared.log_odds(f.known, settings)[f.test]) for f in drawn]).round(
                4
            )
            for name, settings in VARIANTS.items()
        }
        print(protocol, figures, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--data")
    options = parser.parse_args()
    if options.seeds and options.coverage:
        coverage(options.seeds, options.reviews)
    elif options.seeds:
        markets(options.seeds, options.reviews)
    if options.data:
        real(options.data)


if __name__ == "__main__":
    main()
