"""How much to trust the evidence: its share of the suspicion, and what few labels may say against it.

    python benchmarks/trust_in_evidence.py --seeds 1 2 [--data DIR]     # shares
    python benchmarks/trust_in_evidence.py --seeds 1 2 --few            # beliefs of the head with 10 and 30 labels

On the project's markets (60,000 reviews) and on those of ``taste_market``, whose communities are more or less loyal.
AUC / activity-matched AUC over all accounts; with --few, AUC over all that are not labelled, of two draws of labels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

import ringleader as rl
from machine import describe
from other_mode import truth_of
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import DIFFICULTIES
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.evaluation.real import load_otc, load_xu
from ringleader.judge.head import HeadSettings, fit_head
from ringleader.judge.inputs import with_association
from ringleader.judge.neighbours import first_round, with_company
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.signals.evidence import EVIDENCE_SHARE
from taste_market import Ring, TasteMarket, taste_market

MODES = ("seller", "reviewer")
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
Known = tuple[rl.SparseTensor, Truth]


def markets() -> Iterator[tuple[str, Callable[[int], Known]]]:
    for difficulty in DIFFICULTIES:
        yield f"project's, {difficulty}", partial(_own, difficulty)
    for name, make in KINDS.items():
        yield f"tastes, {name}", partial(_other, make)


def _own(difficulty: str, seed: int) -> Known:
    market = marketplace(60_000, difficulty=difficulty, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    return tensor, {mode: truth_of(market, tensor, mode) for mode in MODES}


def _other(make: Callable[[int], TasteMarket], seed: int) -> Known:
    market = make(seed)
    tensor = rl.read_reviews(market.reviews)
    truth = {}
    for mode in MODES:
        names = tensor.vocabulary(mode).decode(np.arange(len(tensor.vocabulary(mode))))
        truth[mode] = np.array([str(name) in market.bad[mode] for name in names], np.float64)
    return tensor, truth


def shares(seeds: Sequence[int], folder: str | None) -> None:
    for name, make in markets():
        found = defaultdict(list)
        for seed in seeds:
            _measure(*make(seed), seed, found)
        _print(name, found)
    for load in (load_xu, load_otc) if folder else ():
        data = load(folder)
        found = defaultdict(list)
        _measure(data.tensor, {data.mode: np.asarray(data.truth, np.float64)}, 0, found)
        _print(data.name, found)


def _measure(tensor: rl.SparseTensor, truth: Truth, seed: int, found: dict) -> None:
    model = rl.RingDetector(random_state=seed).fit(tensor)
    for mode, bad in truth.items():
        k, tested = tensor.mode_index(mode), ~np.isnan(bad)
        reviews = np.bincount(tensor.coordinates[:, k], weights=tensor.counts, minlength=len(bad))
        evidence, *together = model._findings().suspicion_parts(k)[1]
        # As they are, the parts are scaled by their shares.
        evidence, together = evidence / EVIDENCE_SHARE, sum(together) / (1 - EVIDENCE_SHARE)
        for share in SHARES:
            score = (share * evidence + (1 - share) * together)[tested]
            found[mode, f"{share:.2f}"].append(
                (auc(bad[tested], score), matched_auc(bad[tested], score, reviews[tested]))
            )


def few(seeds: Sequence[int], counts: Sequence[int] = (10, 30), draws: int = 2) -> None:
    for name, make in markets():
        found = defaultdict(list)
        for seed in seeds:
            tensor, truth = make(seed)
            model = rl.RingDetector(random_state=seed).fit(tensor)
            codes = {mode: tensor.mode_index(mode) for mode in MODES}
            free = {k: model.inputs(mode) for mode, k in codes.items()}
            suspicion = {k: model.suspicion(mode) for mode, k in codes.items()}
            for count in counts:
                for draw in range(draws):
                    rng = np.random.default_rng([seed, count, draw])
                    targets = [_target(codes[mode], truth[mode], count, rng) for mode in MODES]
                    first = first_round(tensor, model.lockstep(), targets, free, suspicion, seed=seed)
                    for mode, target in zip(MODES, targets, strict=True):
                        k = codes[mode]
                        inputs = with_association(free[k], tensor, k, model.lockstep(), targets, seed)
                        inputs = with_company(inputs, tensor, k, model.lockstep(), target, first)
                        rest = np.setdiff1d(np.arange(tensor.shape[k]), target.codes)
                        found[mode, f"{count} labels, none"].append((auc(truth[mode][rest], suspicion[k][rest]),))
                        for belief, settings in BELIEFS.items():
                            head = fit_head(
                                inputs.values,
                                inputs.names,
                                target.codes,
                                target.values,
                                fallback=suspicion[k],
                                groups=[inputs.groups[column] for column in inputs.names],
                                settings=settings,
                            )
                            scores = head.predict().log_odds[rest]
                            found[mode, f"{count} labels, {belief}"].append((auc(truth[mode][rest], scores),))
        _print(name, found)


def _target(mode: int, truth: np.ndarray, count: int, rng: np.random.Generator) -> Target:
    """``count`` labels, one bad to three good."""
    bad, good = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    some = min(round(count / 4), len(bad) // 2)
    codes = np.sort(
        np.concatenate([rng.choice(bad, some, replace=False), rng.choice(good, count - some, replace=False)])
    )
    return Target(mode, DEFAULT_TARGET, "binary", codes.astype(np.int32), np.where(truth[codes] == 1, 1.0, -1.0))


def _print(name: str, found: Mapping[tuple[str, str], list[tuple[float, ...]]]) -> None:
    for (mode, what), figures in found.items():
        print(f"{name}, {mode}, {what}:", " / ".join(f"{v:.3f}" for v in np.mean(figures, axis=0)), flush=True)


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
