"""How much to trust the evidence: its share of the suspicion, and what few labels may say against it.

    python benchmarks/trust_in_evidence.py --seeds 1 2 [--data DIR]     # shares
    python benchmarks/trust_in_evidence.py --seeds 1 2 --few            # beliefs of the head with 10 and 30 labels

On the project's markets (60,000 reviews) and on those of ``taste_market``, whose communities are more or less loyal.
AUC / activity-matched AUC over all accounts; with --few, AUC over all that are not labelled, of two draws of labels.
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
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import DIFFICULTIES, MODES
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.evaluation.protocol import few_labels
from ringleader.evaluation.real import load_otc, load_xu
from ringleader.judge.priors import HeadSettings
from ringleader.signals.suspicion import EVIDENCE_SHARE
from taste_market import Ring, TasteMarket, taste_market
from transfer import truth_of

SHARES = (0.0, 1 / 9, 1 / 5, 1 / 3)
HARD = Ring(jobs=3, honest=10.0, campaign=90.0)
SLOW = Ring(jobs=4, span=729.0, campaign=0.0)
KINDS = {
    "few communities": partial(taste_market, communities=1, rings=HARD),
    "loyalty 0.17": partial(taste_market, loyalty=0.17, rings=HARD),
    "loyalty 0.56": partial(taste_market, rings=HARD),
    "loyalty 0.86": partial(taste_market, loyalty=0.86, rings=HARD),
    "slow rings": partial(taste_market, rings=SLOW),
    "used once": partial(taste_market, used_once=40),
}
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
    for name, make in KINDS.items():
        yield f"tastes, {name}", partial(_other, make)


def _own(difficulty: str, seed: int) -> KnownMarket:
    market = marketplace(60_000, difficulty=difficulty, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    return tensor, {mode: truth_of(market, tensor, mode) for mode in MODES}


def _other(make: Callable[[int], TasteMarket], seed: int) -> KnownMarket:
    market = make(seed)
    tensor = rl.read_reviews(market.reviews)
    truth = {}
    for mode in MODES:
        names = tensor.vocabulary(mode).decode(np.arange(len(tensor.vocabulary(mode))))
        truth[mode] = np.array([str(name) in market.bad[mode] for name in names], np.float64)
    return tensor, truth


def shares(seeds: Sequence[int], folder: str | None) -> None:
    for name, make in markets():
        figures: Figures = defaultdict(list)
        for seed in seeds:
            _measure(*make(seed), seed, figures)
        _print(name, figures)
    for load in (load_xu, load_otc) if folder else ():
        data = load(folder)
        figures: Figures = defaultdict(list)
        _measure(data.tensor, {data.mode: np.asarray(data.truth, np.float64)}, 0, figures)
        _print(data.name, figures)


def _measure(tensor: rl.SparseTensor, truth: Truth, seed: int, figures: Figures) -> None:
    model = rl.RingDetector(random_state=seed).fit(tensor)
    for mode, bad in truth.items():
        k, tested = tensor.mode_index(mode), ~np.isnan(bad)
        reviews = np.bincount(tensor.coordinates[:, k], weights=tensor.counts, minlength=len(bad))
        evidence, *together = model.snapshot_.signals.suspicion(k).parts
        # As they are, the parts are scaled by their shares.
        evidence, together = evidence / EVIDENCE_SHARE, sum(together) / (1 - EVIDENCE_SHARE)
        for share in SHARES:
            score = (share * evidence + (1 - share) * together)[tested]
            figures[mode, f"{share:.2f}"].append(
                (auc(bad[tested], score), matched_auc(bad[tested], score, reviews[tested]))
            )


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
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args()
    print(f"seeds {options.seeds}. {describe()}", flush=True)
    if options.few:
        few(options.seeds)
    else:
        shares(options.seeds, options.data)


if __name__ == "__main__":
    main()
