"""What the tensor gives beside plain counting, without labels and with them.

    python benchmarks/tensor_value.py --seeds 2101 2102 2103 [--markets NAME ...] [--data DIR] [--write]

The tensor says two things: which tastes people have (topics, so that chance knows them), and how far each review goes
together with others (evidence). Each is turned off in turn, and both; what is left is pairs, strangers and behaviour.
One fit of each market serves all. AUC over all accounts; with labels over those without one.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

import ringleader as rl
from heads import LabelFreeFit
from machine import describe, write_section
from ringleader.datasets import marketplace, taste_market
from ringleader.evaluation.detection import DIFFICULTIES, MODES, TASTES
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.protocol import few_labels
from ringleader.evaluation.real import load_otc, load_xu
from ringleader.evaluation.results import markdown_table
from ringleader.judge.judge import LabelFree
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from transfer import truth_of

VARIANTS = ("all", "no tastes", "no evidence", "neither")
LABELS = 100
"""Labels of each mode, one bad to three good."""
Truth = dict[str, np.ndarray]


def markets(
    names: Sequence[str], seeds: Sequence[int], folder: str | None
) -> Iterator[tuple[str, int, rl.SparseTensor, Truth]]:
    """(name, seed, reviews, who is bad: 1, 0, or NaN where nobody knows)."""
    for name in names:
        for seed in seeds:
            own = name in DIFFICULTIES
            market = marketplace(60_000, difficulty=name, seed=seed) if own else taste_market(kind=name, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            yield name, seed, tensor, {mode: truth_of(market, tensor, mode) for mode in MODES}
    for load in (load_xu, load_otc) if folder else ():
        data = load(folder)
        yield data.name, 0, data.tensor, {data.mode: np.asarray(data.truth, np.float64)}


def variants(model: rl.RingDetector) -> Iterator[tuple[str, LabelFree]]:
    """What is left of the signals of a model, by what is off."""
    tensor, signals = model.tensor_, model.snapshot_.signals
    nothing = np.zeros(tensor.n_cells)
    plain = find_lockstep(tensor, LockstepSettings(topics=0), actor=signals.actor)
    for name in VARIANTS:
        evidence = signals.reviews if name in ("all", "no tastes") else ReviewEvidence(nothing, nothing, nothing)
        lockstep = signals.lockstep if name in ("all", "no evidence") else plain
        yield name, LabelFree(Signals(tensor, signals.actor, lambda e=evidence: e, lambda k=lockstep: k), {})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[2101, 2102, 2103])
    parser.add_argument("--markets", nargs="+", default=[*DIFFICULTIES, *TASTES])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    about = f"`benchmarks/tensor_value.py`, seeds {', '.join(map(str, options.seeds))}. {describe()}"
    print(about, flush=True)
    figures: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for name, seed, tensor, truth in markets(options.markets, options.seeds, options.data):
        model = rl.RingDetector(random_state=seed).fit(tensor)
        rng = np.random.default_rng([seed, LABELS])
        known = {mode: few_labels(bad, LABELS, rng) for mode, bad in truth.items()}
        for variant, label_free in variants(model):
            fit = LabelFreeFit(tensor, list(truth), seed, label_free)
            for mode, labelled in fit.labelled(known).items():
                bad = truth[mode]
                tested, rest = np.flatnonzero(~np.isnan(bad)), np.flatnonzero(~np.isnan(bad) & np.isnan(known[mode]))
                head = fit.head(
                    labelled.target, labelled.with_neighbours if len(truth) > 1 else labelled.without_neighbours
                )
                without = auc(bad[tested], fit.suspicion[labelled.target.mode][tested])
                figures[name, mode][variant].append((without, auc(bad[rest], head.predict().predictor[rest])))
        if seed in (options.seeds[-1], 0):
            for mode in truth:
                print(
                    name, mode, {v: np.round(np.mean(figures[name, mode][v], axis=0), 3) for v in VARIANTS}, flush=True
                )
    lines = []
    for (name, mode), by in figures.items():
        means = [np.mean(by[variant], axis=0) for variant in VARIANTS]
        lines.append([f"{name}, {mode}s", *(f"{m[0]:.3f} / {m[1]:.3f}" for m in means)])
    table = markdown_table(["without labels / with 100", *VARIANTS], lines)
    print(table)
    if options.write:
        write_section("detection.md", "tensor", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
