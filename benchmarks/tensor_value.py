"""What the tensor gives beside plain counting, without labels and with them.

    python benchmarks/tensor_value.py --seeds 2301 2302 [--markets NAME ...] [--data DIR] [--rows FILE] [--write]

The tensor says two things: which tastes people have (topics, so that chance knows them), and how far each review goes
together with others (evidence). Each is turned off in turn, and both; what is left is pairs, strangers and behaviour.
One fit of each market serves all. AUC over all accounts; with labels over those without one. DARPA has no labels and no
accounts whose truth is known: AUC of connections by the score of single reviews.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

import ringleader as rl
from heads import LabelFreeFit
from machine import describe, write_section
from ringleader.datasets import marketplace, taste_market
from ringleader.datasets.tastes import KINDS
from ringleader.evaluation.detection import DIFFICULTIES, MODES
from ringleader.evaluation.metrics import auc, weighted_auc
from ringleader.evaluation.protocol import few_labels
from ringleader.evaluation.real import load_darpa, load_otc, load_xu
from ringleader.evaluation.results import markdown_table
from ringleader.judge import LabelFree
from ringleader.judge.reviews import review_scores
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from stored_rows import StoredRows
from transfer import truth_of

VARIANTS = ("all", "no tastes", "no evidence", "neither")
LABELS = 100
"""Labels of each mode, one bad to three good."""
ACCOUNTS = {"xu": load_xu, "otc": load_otc}
"""Real data whose accounts are labelled, by name."""
CONNECTIONS = "darpa"
Truth = dict[str, np.ndarray]
Figures = dict[str, dict[str, list[float]]]
"""Mode -> variant -> AUC without labels and, where there are some, with them."""


def market(name: str, seed: int, folder: str | None) -> tuple[rl.SparseTensor, Truth]:
    """Reviews, and by mode who is bad: 1, 0, or NaN where nobody knows."""
    if name in ACCOUNTS:
        data = ACCOUNTS[name](folder or "")
        return data.tensor, {data.mode: np.asarray(data.truth, np.float64)}
    own = name in DIFFICULTIES
    made = marketplace(60_000, difficulty=name, seed=seed) if own else taste_market(kind=name, seed=seed)
    tensor = rl.read_reviews(made.reviews)
    return tensor, {mode: truth_of(made, tensor, mode) for mode in MODES}


def runs(names: list[str], seeds: list[int], folder: str | None) -> list[tuple[str, int]]:
    """Names and seeds of what is measured; real data have one run each."""
    return [(name, seed) for name in names for seed in seeds] + ([(name, 0) for name in ACCOUNTS] if folder else [])


def variants(model: rl.RingDetector) -> Iterator[tuple[str, LabelFree]]:
    """What is left of the signals of a model, by what is off."""
    tensor, signals = model.tensor_, model.snapshot_.signals
    nothing = np.zeros(tensor.n_cells)
    plain = find_lockstep(tensor, LockstepSettings(topics=0), actor=signals.actor)
    for name in VARIANTS:
        evidence = signals.reviews if name in ("all", "no tastes") else ReviewEvidence(nothing, nothing, nothing)
        lockstep = signals.lockstep if name in ("all", "no evidence") else plain
        yield name, LabelFree(Signals(tensor, signals.actor, lambda e=evidence: e, lambda k=lockstep: k), {})


def measure(name: str, seed: int, folder: str | None) -> Figures:
    tensor, truth = market(name, seed, folder)
    model = rl.RingDetector(random_state=seed).fit(tensor)
    rng = np.random.default_rng([seed, LABELS])
    known = {mode: few_labels(bad, LABELS, rng) for mode, bad in truth.items()}
    found: Figures = defaultdict(dict)
    for variant, label_free in variants(model):
        fit = LabelFreeFit(tensor, list(truth), seed, label_free)
        for mode, labelled in fit.labelled(known).items():
            bad = truth[mode]
            tested, rest = np.flatnonzero(~np.isnan(bad)), np.flatnonzero(~np.isnan(bad) & np.isnan(known[mode]))
            inputs = labelled.with_neighbours if len(truth) > 1 else labelled.without_neighbours
            head = fit.head(labelled.target, inputs)
            without = auc(bad[tested], fit.suspicion[labelled.target.mode][tested])
            found[mode][variant] = [without, auc(bad[rest], head.predict().predictor[rest])]
    return found


def measure_connections(folder: str) -> Figures:
    data = load_darpa(folder)
    model = rl.RingDetector(random_state=0).fit(data.tensor)
    found: Figures = {"connection": {}}
    for variant, label_free in variants(model):
        signals = label_free.signals
        roles = signals.lockstep.roles(data.tensor)
        people = {k: signals.suspicion(k).score for k in (roles.actor, *roles.items)}
        found["connection"][variant] = [weighted_auc(review_scores(signals, people), data.bad, data.good)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2301, 2302])
    parser.add_argument("--markets", nargs="*", default=[*DIFFICULTIES, *KINDS])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    stored, figures = StoredRows(options.rows), defaultdict(lambda: defaultdict(list))
    for name, seed in [*runs(options.markets, options.seeds, options.data), *([(CONNECTIONS, 0)] * bool(options.data))]:
        found = stored.find(
            ["tensor", name, seed],
            lambda name=name, seed=seed: (
                measure_connections(options.data) if name == CONNECTIONS else measure(name, seed, options.data)
            ),
        )
        for mode, by_variant in found.items():
            for variant, values in by_variant.items():
                figures[name, mode][variant].append(values)
            print(name, seed, mode, {v: np.round(values, 3).tolist() for v, values in by_variant.items()}, flush=True)
    lines = []
    for (name, mode), by in figures.items():
        means = [np.mean(by[variant], axis=0) for variant in VARIANTS]
        lines.append([f"{name}, {mode}s", *(" / ".join(f"{value:.3f}" for value in mean) for mean in means)])
    about = f"`benchmarks/tensor_value.py --data DIR`, seeds {', '.join(map(str, options.seeds))}, one draw of {LABELS}"
    about = f"{about} labels of each mode. {describe()}."
    table = markdown_table([f"without labels / with {LABELS}", *VARIANTS], lines)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("detection.md", "tensor", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
