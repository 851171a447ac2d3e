"""What each part of the detector is worth: one off at a time.

    python benchmarks/ablation.py --seeds 1100 1101 1102 [--reviews 150000] [--write]

Test AUC of sellers and activity-matched AUC of reviewers with the known labels, and without labels; generated markets.
Parts: contrast negatives; leave-one-out evidence; the lockstep start; evidence, lockstep, association and neighbours
as inputs (evidence and lockstep also in the suspicion); the bends of the head; and joint training, which is off by
default and turned on here.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import ringleader as rl
from heads import tested_auc
from machine import describe, write_section
from ringleader.datasets import marketplace
from ringleader.evaluation.protocol import Split, market_split
from ringleader.judge.basis import rank_all, side_by_side
from ringleader.judge.binary import fit_head
from ringleader.judge.inputs import Inputs, label_free_inputs, with_association
from ringleader.judge.neighbours import FirstRound, first_round, with_neighbours
from ringleader.judge.priors import HeadSettings
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import Ties

FITS: dict[str, dict[str, object]] = {
    "as it is": {},
    "no contrast negatives": {"negatives": 0},
    "no lockstep start": {"settings": {"start": "half-normal"}, "epochs": 20},
    "joint training": {"joint": True},
}
PARTS: dict[str, tuple[str, ...]] = {
    "no evidence": ("evidence",),
    "no lockstep": ("lockstep",),
    "no neighbours": ("neighbours",),
    "no association, no neighbours": ("association", "neighbours"),
    "no evidence, lockstep, association, neighbours": ("evidence", "lockstep", "association", "neighbours"),
}

STRAIGHT = replace(HeadSettings(), spline_variance=1e-4)


def _signals(detector: rl.RingDetector, evidence: ReviewEvidence) -> Signals:
    """Those of a detector, with this evidence in the place of its own."""
    lockstep = detector.lockstep()
    return Signals(detector.tensor_, detector.config_.contrast, lambda: evidence, lambda: lockstep)


def _label_free(signals: Signals, mode: int, off: tuple[str, ...]) -> tuple[Inputs, np.ndarray]:
    """What a mode is judged by without labels: the inputs, and the suspicion, both less what is off."""
    names, parts = signals.suspicion(mode)
    left = [part for name, part in zip(names, parts, strict=True) if _group(name) not in off]
    suspicion = np.mean(left, axis=0) if left else np.zeros(signals.tensor.shape[mode])
    return label_free_inputs(signals, mode).without(off), suspicion


def _group(part: str) -> str:
    """Which signal a part of the suspicion comes from."""
    return "evidence" if part == "suspicion_evidence" else "lockstep"


def _first_round(signals: Signals, ties: Ties, targets: list[Target], off: tuple[str, ...]) -> FirstRound:
    ranks = {}
    for target in targets:
        inputs, suspicion = _label_free(signals, target.mode, off)
        ranks[target.mode] = side_by_side(rank_all(inputs.values), rank_all(suspicion[:, None]))
    return first_round(ties, targets, ranks, seed=0)


def figures(
    detector: rl.RingDetector,
    split: Split,
    evidence: ReviewEvidence,
    off: tuple[str, ...] = (),
    settings: HeadSettings | None = None,
) -> tuple[float, float]:
    """(with labels, without labels) of one mode."""
    signals, k = _signals(detector, evidence), detector.tensor_.mode_index(split.mode)
    ties = Ties(signals.tensor, signals.lockstep)
    targets = [target for target in detector.problem_.targets if target.name == DEFAULT_TARGET]
    target = next(target for target in targets if target.mode == k)
    inputs, suspicion = _label_free(signals, k, off)
    if "association" not in off:
        inputs = with_association(inputs, ties, k, targets, 0)
    if "neighbours" not in off:
        inputs = with_neighbours(inputs, ties, k, target, _first_round(signals, ties, targets, off))
    groups = [inputs.groups[name] for name in inputs.names]
    head = fit_head(
        inputs.values, inputs.names, target.codes, target.values, suspicion=suspicion, groups=groups, settings=settings
    )
    return tested_auc(split, head.predict().predictor), tested_auc(split, suspicion)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[1100, 1101, 1102])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    rows: dict[str, dict[tuple[str, str], list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for difficulty in ("medium", "hard"):
        for seed in options.seeds:
            market = marketplace(options.reviews, difficulty=difficulty, seed=seed)
            tensor = rl.read_reviews(market.reviews)
            labels = market.labels[market.labels["target"] == DEFAULT_TARGET]
            splits = [market_split(tensor, market.truth, mode) for mode in ("seller", "reviewer")]

            def note(name: str, made: Callable[[Split], tuple[float, float]], at: str = difficulty) -> None:
                for split in splits:  # noqa: B023  used at once
                    rows[name][split.mode, at].append(made(split))

            for name, settings in FITS.items():
                detector = rl.RingDetector(random_state=seed, **settings).fit(tensor, labels)
                note(name, lambda split, d=detector: figures(d, split, d.review_evidence()))
                if name != "as it is":
                    continue
                evidence = detector.review_evidence()
                raw = np.maximum(evidence.log_odds, 0.0)
                of_all = ReviewEvidence(raw, raw, raw)
                note("no leave-one-out", lambda split, d=detector, e=of_all: figures(d, split, e))
                for part, off in PARTS.items():
                    note(part, lambda split, d=detector, e=evidence, off=off: figures(d, split, e, off))
                note("no bends", lambda split, d=detector, e=evidence: figures(d, split, e, (), STRAIGHT))
            print(difficulty, seed, flush=True)
    columns = [(mode, difficulty) for mode in ("seller", "reviewer") for difficulty in ("medium", "hard")]
    lines = ["| part | " + " | ".join(f"{mode} {difficulty}" for mode, difficulty in columns) + " |"]
    lines.append("|---|" + "---|" * len(columns))
    for name, by_column in rows.items():
        cells = [" / ".join(f"{value:.3f}" for value in np.mean(by_column[column], axis=0)) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    seeds = ", ".join(map(str, options.seeds))
    head = f"`benchmarks/ablation.py`, {options.reviews:,} reviews, seeds {seeds}: AUC with labels / without."
    head += f" {describe()}."
    text = "\n".join(["## Each part off in turn", "", head, "", *lines])
    print(text)
    if options.write:
        write_section("detection.md", "ablation", text)


if __name__ == "__main__":
    main()
