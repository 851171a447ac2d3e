"""What company with the suspected is worth; boosting and a forest on the same inputs beside it.

    python benchmarks/head_company.py --seeds 1200 1201 1202 [--reviews 150000]
    python benchmarks/head_company.py --data DIR [--repeats 10]

Generated markets: AUC, activity-matched AUC, AUC on unseen rings, log-loss and calibration error, with and without
company, from one fit. With --few: the same AUC with 10, 30, 100 and 300 labels (or all where there are fewer). Real
data: AUC and F1 on the same folds, with and without.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

import ringleader as rl
from head_priors import few
from machine import describe
from ringleader.baselines.behaviour import Boosting, Forest
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import DIFFICULTIES, MODES, Truth, _at_prevalence, _figures, _truth
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.evaluation.protocol import Split, market_split
from ringleader.evaluation.real import f1_at, load_otc, load_xu, protocols
from ringleader.judge.head import Head, fit_head
from ringleader.judge.inputs import Inputs, with_association
from ringleader.judge.neighbours import first_round, with_company
from ringleader.known.labels import DEFAULT_TARGET, Target

Found = Mapping[tuple[str, str], list[tuple[float, ...]]]


class Blind:
    """A fit without labels; the factors do not depend on them, so heads can be tried at once."""

    def __init__(self, tensor: rl.SparseTensor, seed: int, modes: Sequence[str]) -> None:
        self.tensor, self.seed = tensor, seed
        detector = rl.RingDetector(random_state=seed).fit(tensor)
        self.lockstep = detector.lockstep()
        codes = [tensor.mode_index(mode) for mode in modes]
        self.inputs = {k: detector.inputs(tensor.modes[k]) for k in codes}
        self.suspicion = {k: detector.suspicion(tensor.modes[k]) for k in codes}

    def heads(self, known: Mapping[str, np.ndarray]) -> dict[tuple[str, str], tuple[Head, Inputs]]:
        """(mode, "before" or "after") -> head and its inputs, from labels (n_k,), NaN where unknown."""
        targets = []
        for mode, labels in known.items():
            codes = np.flatnonzero(~np.isnan(labels)).astype(np.int32)
            values = np.where(labels[codes] > 0, 1.0, -1.0)
            targets.append(Target(self.tensor.mode_index(mode), DEFAULT_TARGET, "binary", codes, values))
        found = first_round(self.tensor, self.lockstep, targets, self.inputs, self.suspicion, seed=self.seed)
        made = {}
        for target in targets:
            k, mode = target.mode, self.tensor.modes[target.mode]
            plain = with_association(self.inputs[k], self.tensor, k, self.lockstep, targets, self.seed)
            more = with_company(plain, self.tensor, k, self.lockstep, target, found)
            for name, inputs in (("before", plain), ("after", more)):
                groups = [inputs.groups[column] for column in inputs.names]
                evidence = {"fallback": self.suspicion[k], "groups": groups}
                head = fit_head(inputs.values, inputs.names, target.codes, target.values, **evidence)
                made[mode, name] = head, inputs
        return made


def markets(seeds: Sequence[int], reviews: int, counts: Sequence[int]) -> None:
    print(f"{reviews:,} reviews, seeds {seeds}. {describe()}", flush=True)
    for difficulty in DIFFICULTIES:
        found: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
        for seed in seeds:
            market = marketplace(reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            blind = Blind(tensor, seed, MODES)
            splits = {mode: market_split(tensor, market.truth, mode) for mode in MODES}
            if counts:
                _few(blind, splits, counts, found)
                continue
            truth = {mode: _truth(market, tensor, mode) for mode in MODES}
            for (mode, name), (head, inputs) in blind.heads({m: splits[m].known for m in MODES}).items():
                scores = head.predict()
                found[mode, name].append(_figures(splits[mode], truth[mode], scores.log_odds, scores.probability))
                _others(tensor, splits[mode], truth[mode], inputs, seed, found, name)
        _print(difficulty, found)


def _few(blind: Blind, splits: Mapping[str, Split], counts: Sequence[int], found: dict[tuple[str, str], list]) -> None:
    for count in counts:
        rng = np.random.default_rng([blind.seed, count])
        known = {mode: few(split.known, count, rng) for mode, split in splits.items()}
        for (mode, name), (head, _) in blind.heads(known).items():
            split, tested = splits[mode], head.predict().log_odds[splits[mode].test]
            whole = auc(split.truth, tested)
            found[mode, f"{count} labels, {name}"].append((whole, matched_auc(split.truth, tested, split.activity)))


def _others(
    tensor: rl.SparseTensor,
    split: Split,
    truth: Truth,
    inputs: Inputs,
    seed: int,
    found: dict[tuple[str, str], list],
    when: str,
) -> None:
    extra = {split.mode: (inputs.names, inputs.values)}
    for name, method in (("boosting", Boosting), ("forest", Forest)):
        scores = method(columns="none", extra=extra, random_state=seed).fit(tensor, split.labels).scores(split.mode)
        figures = _figures(split, truth, scores, _at_prevalence(scores, truth))
        found[split.mode, f"{name}, inputs {when}"].append(figures)


def _print(what: str, found: Found) -> None:
    for (mode, name), figures in found.items():
        print(what, mode, f"{name}:", " ".join(f"{value:.4f}" for value in np.nanmean(figures, axis=0)), flush=True)


def real(folder: str, repeats: int) -> None:
    for load in (load_otc, load_xu):
        data = load(folder)
        blind = Blind(data.tensor, 0, (data.mode,))
        for protocol, draw in protocols(data).items():
            found: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
            for fold in (fold for seed in range(repeats) for fold in draw(seed)):
                for key, (head, _) in blind.heads({data.mode: fold.known}).items():
                    truth, tested = data.truth[fold.test], head.predict().log_odds[fold.test]
                    found[key].append((auc(truth, tested), f1_at(truth, tested, float(np.nanmean(fold.known)))))
            _print(f"{data.name} {protocol}", found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--few", action="store_true", help="few labels instead of all")
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if options.seeds:
        markets(options.seeds, options.reviews, (10, 30, 100, 300) if options.few else ())
    if options.data:
        real(options.data, options.repeats)


if __name__ == "__main__":
    main()
