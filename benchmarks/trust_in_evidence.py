"""How much to trust the suspicion, and what few labels may say against it: beliefs of the head with 10 and 30 labels.

    python benchmarks/trust_in_evidence.py --seeds 1 2

On the project's markets (60,000 reviews) and on those of ``taste_market``. AUC over all accounts that are not labelled,
of two draws of labels.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

import ringleader as rl
from heads import LabelFreeFit
from machine import describe
from ringleader.datasets import Marketplace, marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES, MODES, TASTES
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.protocol import few_labels
from ringleader.judge.priors import HeadSettings
from transfer import truth_of

BELIEFS = {
    "trusting": HeadSettings(doubting_labels=0.0),
    "trusting, slope 0.75": HeadSettings(evidence_slope=0.75, doubting_labels=0.0),
    "both": HeadSettings(),
    "both, slope 0.75": HeadSettings(evidence_slope=0.75),
}
Truth = Mapping[str, np.ndarray]
KnownMarket = tuple[rl.SparseTensor, Truth]
Figures = dict[tuple[str, str], list[tuple[float, ...]]]
"""(mode, what was measured) -> figures of each market or draw."""


def markets() -> Iterator[tuple[str, Callable[[int], KnownMarket]]]:
    for difficulty in DIFFICULTIES:
        yield f"project's, {difficulty}", partial(_own, difficulty)
    for kind in TASTES:
        yield f"tastes, {kind}", partial(_tastes, kind)


def _own(difficulty: str, seed: int) -> KnownMarket:
    return _known(marketplace(60_000, difficulty=difficulty, seed=seed))


def _tastes(kind: str, seed: int) -> KnownMarket:
    return _known(taste_market(kind=kind, seed=seed))


def _known(market: Marketplace) -> KnownMarket:
    tensor = rl.read_reviews(market.reviews)
    return tensor, {mode: truth_of(market, tensor, mode) for mode in MODES}


def few(seeds: Sequence[int], counts: Sequence[int] = (10, 30), draws: int = 2) -> None:
    for name, make in markets():
        figures: Figures = defaultdict(list)
        for seed in seeds:
            tensor, truth = make(seed)
            fit = LabelFreeFit(tensor, MODES, seed)
            for count, draw in itertools.product(counts, range(draws)):
                rng = np.random.default_rng([seed, count, draw])
                known = {mode: few_labels(truth[mode], count, rng) for mode in MODES}
                for mode, labelled in fit.labelled(known).items():
                    rest = np.flatnonzero(np.isnan(known[mode]))
                    suspicion = fit.suspicion[labelled.target.mode]
                    figures[mode, f"{count} labels, none"].append((auc(truth[mode][rest], suspicion[rest]),))
                    for belief, settings in BELIEFS.items():
                        head = fit.head(labelled.target, labelled.with_neighbours, settings)
                        scores = head.predict().predictor[rest]
                        figures[mode, f"{count} labels, {belief}"].append((auc(truth[mode][rest], scores),))
        _print(name, figures)


def _print(name: str, figures: Figures) -> None:
    for (mode, what), rows in figures.items():
        print(f"{name}, {mode}, {what}:", " / ".join(f"{v:.3f}" for v in np.mean(rows, axis=0)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    print(f"seeds {options.seeds}. {describe()}", flush=True)
    few(options.seeds)


if __name__ == "__main__":
    main()
