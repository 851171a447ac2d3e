"""Where tastes come from: topics of reviewers x products, or the factorisations of reviewer x product x rating x week.

    python benchmarks/taste_sources.py --seeds 2201 2202 [--markets NAME ...] [--data DIR] [--rows FILE] [--write]

Each gives everyone a mixture of 24 components and every product its chance within each; chance then knows tastes from
these. No labels; one fit of each market serves all. AUC of sellers / reviewers over all accounts.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from unittest.mock import patch

import numpy as np

import ringleader as rl
from machine import describe, write_section
from ringleader.baselines.registry import baseline
from ringleader.evaluation.metrics import auc
from ringleader.evaluation.results import markdown_table
from ringleader.signals import Signals
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from ringleader.signals.lockstep import tastes as taste_module
from ringleader.signals.lockstep.tastes import ACTOR_PRIOR, Topics
from stored_rows import StoredRows
from tensor_value import market, runs

TOPICS = LockstepSettings().topics
SOURCES = ("none", "topics", "bptf", "bnbcp", "logistic CP")


def factors_of(source: str, model: rl.RingDetector) -> tuple[np.ndarray, list[np.ndarray]]:
    """Weights (R,) and factors (n_k, R) of each mode, none below 0."""
    tensor = model.tensor_
    if source == "logistic CP":
        rows = [np.asarray(model.state_.rows(k), np.float64) for k in range(len(tensor.shape))]
        return np.ones(rows[0].shape[1]), [np.maximum(one, 1e-12) for one in rows]
    fitted = baseline(source, rank=TOPICS, random_state=0).fit(tensor)
    return np.broadcast_to(getattr(fitted, "weights_", 1.0), (TOPICS,)), list(fitted.factors_)


def as_topics(tensor: rl.SparseTensor, actor: int, item: int, weights: np.ndarray, factors: list[np.ndarray]) -> Topics:
    """Components as topics: shares of the reviews that each component explains, by reviewer; its products."""
    mass = weights * np.prod([one.sum(axis=0) for one in factors], axis=0)
    own, items = (factors[k] / np.maximum(factors[k].sum(axis=0), 1e-300) for k in (actor, item))
    counts = np.zeros_like(own)
    for cells in np.array_split(tensor.coordinates, max(len(tensor.coordinates) // 4096, 1)):
        owed = mass * own[cells[:, actor]] * items[cells[:, item]]
        np.add.at(counts, cells[:, actor], owed / np.maximum(owed.sum(axis=1, keepdims=True), 1e-300))
    mixture = counts.sum(axis=0) / counts.sum()
    shares = (counts + ACTOR_PRIOR * mixture) / (counts.sum(axis=1, keepdims=True) + ACTOR_PRIOR)
    return Topics(shares, counts, items, mixture)


def measure(name: str, seed: int, folder: str | None) -> dict[str, list[float]]:
    """By source: AUC of each mode whose truth is known."""
    tensor, truth = market(name, seed, folder)
    model = rl.RingDetector(random_state=seed).fit(tensor)
    signals, found = model.snapshot_.signals, {}
    for source in SOURCES:
        lockstep = signals.lockstep
        if source == "none":
            lockstep = find_lockstep(tensor, LockstepSettings(topics=0), actor=signals.actor)
        elif source != "topics":
            item = lockstep.roles(tensor).items[0]
            topics = as_topics(tensor, signals.actor, item, *factors_of(source, model))
            with patch.object(taste_module, "find_topics", lambda *_, topics=topics: topics):
                lockstep = find_lockstep(tensor, actor=signals.actor)
        made = Signals(tensor, signals.actor, lambda e=signals.reviews: e, lambda k=lockstep: k)
        found[source] = []
        for mode, bad in truth.items():
            known = np.flatnonzero(~np.isnan(bad))
            found[source].append(auc(bad[known], made.suspicion(tensor.mode_index(mode)).score[known]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2201, 2202])
    parser.add_argument("--markets", nargs="*", default=["hard", "loyal", "very-loyal", "slow", "everything"])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    stored = StoredRows(options.rows)
    figures: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for name, seed in runs(options.markets, options.seeds, options.data):
        found = stored.find(["sources", name, seed], lambda name=name, seed=seed: measure(name, seed, options.data))
        for source, row in found.items():
            figures[name][source].append(row)
        print(name, seed, {source: np.round(row, 3).tolist() for source, row in found.items()}, flush=True)
    lines = [
        [name, *(" / ".join(f"{value:.3f}" for value in np.mean(by[source], axis=0)) for source in SOURCES)]
        for name, by in figures.items()
    ]
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/taste_sources.py --data DIR`, seeds {seeds}. {describe()}."
    table = markdown_table(["no labels", *SOURCES], lines)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("detection.md", "taste-sources", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
