"""What each part of the detector is worth: one off at a time.

    python benchmarks/ablation.py --seeds 1100 1101 1102 [--reviews 150000] [--rows FILE] [--write]

Test AUC of sellers and activity-matched AUC of reviewers with the known labels, and without labels; generated markets.
Parts: what the suspicion is made of (lockstep, strangers, evidence, campaigns, reviews not seen), in it and in the
inputs of the head; association and neighbours as inputs; leave-one-out evidence; the bends of the head; contrast
negatives; the lockstep start; and joint training, which is off by default and turned on here.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import ringleader as rl
from heads import tested_auc
from machine import describe, write_section
from ringleader.datasets import marketplace
from ringleader.evaluation.detection import MODES
from ringleader.evaluation.protocol import Split, market_split
from ringleader.evaluation.results import markdown_table
from ringleader.judge.basis import rank_all, side_by_side
from ringleader.judge.binary import fit_binary
from ringleader.judge.head import head_table
from ringleader.judge.inputs import label_free_inputs, with_association
from ringleader.judge.neighbours import first_round, with_neighbours
from ringleader.judge.priors import HeadSettings
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.runtime.remembered import computed_once
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import Ties
from ringleader.signals.suspicion import ReviewRatios, Suspicion, entity_suspicion, review_ratios
from stored_rows import StoredRows

SUSPICION = ("lockstep", "strangers", "evidence", "campaign", "unseen")
"""What the suspicion is made of. An attack is lockstep or strangers with bad ratings, so it goes with these."""
FITS: dict[str, dict[str, object]] = {
    "as it is": {},
    "no contrast negatives": {"negatives": 0},
    "no lockstep start": {"settings": {"start": "half-normal"}, "epochs": 20},
    "joint training": {"joint": True},
}
PARTS: dict[str, tuple[str, ...]] = {
    "no lockstep": ("lockstep",),
    "no strangers": ("strangers",),
    "no evidence": ("evidence",),
    "no campaigns": ("campaign",),
    "no reviews that are not seen": ("unseen",),
    "no neighbours": ("neighbours",),
    "no association, no neighbours": ("association", "neighbours"),
    "behaviour alone": (*SUSPICION, "suspicion", "association", "neighbours"),
}

STRAIGHT = replace(HeadSettings(), spline_variance=1e-4)


class SignalsWithout(Signals):
    """Signals whose suspicion lacks some of ``SUSPICION``: it is found anew without them.

    Evidence and lockstep themselves stay: other inputs of heads are made of them, and can be left out by their group.
    """

    def __init__(self, whole: Signals, off: Sequence[str], evidence: ReviewEvidence | None = None) -> None:
        """evidence : in the place of that of ``whole``."""
        evidence, lockstep, strangers = evidence or whole.reviews, whole.lockstep, whole.strangers
        super().__init__(
            whole.tensor, whole.actor, lambda: evidence, lambda: lockstep, find_strangers=lambda: strangers
        )
        self.off = frozenset(off)

    @computed_once
    def ratios(self) -> ReviewRatios:
        """What speaks against every review without the parts that are off."""
        nothing, lockstep, reviews, strangers = (
            np.zeros(self.share.n_cells),
            self.lockstep,
            self.reviews,
            self.strangers,
        )
        if "lockstep" in self.off:
            silent = replace(lockstep.boost, scores=nothing)
            lockstep = replace(lockstep, boost=silent, crowded_attacks=nothing)
        if "strangers" in self.off:
            strangers = strangers._replace(ratios=nothing)
        if "evidence" in self.off:
            reviews = ReviewEvidence(nothing, nothing, nothing)
        ratios = review_ratios(self.share, reviews, lockstep, strangers)
        return ratios._replace(campaign=nothing) if "campaign" in self.off else ratios

    def _find_suspicion(self, mode: int) -> Suspicion:
        if "unseen" in self.off:
            return entity_suspicion(self.ways(mode))
        return super()._find_suspicion(mode)


def figures(
    detector: rl.RingDetector, splits: Sequence[Split], signals: SignalsWithout, settings: HeadSettings | None = None
) -> dict[str, tuple[float, float]]:
    """By mode: AUC with labels, and without; inputs of the groups that are off are left out."""
    targets = [target for target in detector.problem_.targets if target.name == DEFAULT_TARGET]
    ties, off = Ties(signals.tensor, signals.lockstep), signals.off
    label_free = {target.mode: label_free_inputs(signals, target.mode).without(off) for target in targets}
    suspicions = {k: signals.suspicion(k).score for k in label_free}
    ranks = {
        k: side_by_side(rank_all(inputs.values), rank_all(suspicions[k][:, None])) for k, inputs in label_free.items()
    }
    first = first_round(ties, targets, ranks, seed=0) if "neighbours" not in off else None
    found = {}
    for split in splits:
        k = signals.tensor.mode_index(split.mode)
        target, inputs = next(target for target in targets if target.mode == k), label_free[k]
        if "association" not in off:
            inputs = with_association(inputs, ties, k, targets, 0)
        if first is not None:
            inputs = with_neighbours(inputs, ties, k, target, first)
        head = fit_binary(
            head_table(inputs.values, inputs.names, suspicions[k], [inputs.groups[name] for name in inputs.names]),
            target.codes,
            target.values,
            settings,
        )
        found[split.mode] = tested_auc(split, head.predict().predictor), tested_auc(split, suspicions[k])
    return found


def measure(difficulty: str, seed: int, reviews: int) -> dict[str, dict[str, tuple[float, float]]]:
    """By variant and mode: AUC with labels, and without."""
    market = marketplace(reviews, difficulty=difficulty, seed=seed)
    tensor = rl.read_reviews(market.reviews)
    labels = market.labels[market.labels["target"] == DEFAULT_TARGET]
    splits = [market_split(tensor, market.truth, mode) for mode in MODES]
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, settings in FITS.items():
        detector = rl.RingDetector(random_state=seed, **settings).fit(tensor, labels)
        whole = detector.snapshot_.signals
        found[name] = figures(detector, splits, SignalsWithout(whole, ()))
        if name != "as it is":
            continue
        raw = np.maximum(whole.reviews.log_odds, 0.0)
        of_all = ReviewEvidence(raw, raw, raw)
        found["no leave-one-out"] = figures(detector, splits, SignalsWithout(whole, (), of_all))
        for part, off in PARTS.items():
            found[part] = figures(detector, splits, SignalsWithout(whole, off))
        found["no bends"] = figures(detector, splits, SignalsWithout(whole, ()), STRAIGHT)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1100, 1101, 1102])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    stored, rows = StoredRows(options.rows), defaultdict(lambda: defaultdict(list))
    for seed in options.seeds:
        for difficulty in ("medium", "hard"):
            found = stored.find(
                ["ablation", difficulty, seed, options.reviews],
                lambda at=difficulty, seed=seed: measure(at, seed, options.reviews),
            )
            for name, by_mode in found.items():
                for mode, both in by_mode.items():
                    rows[name][mode, difficulty].append(both)
            print(difficulty, seed, flush=True)
    columns = [(mode, difficulty) for mode in MODES for difficulty in ("medium", "hard")]
    lines = [
        [name, *(" / ".join(f"{value:.3f}" for value in np.mean(by_column[column], axis=0)) for column in columns)]
        for name, by_column in rows.items()
    ]
    table = markdown_table(["part", *(f"{mode} {difficulty}" for mode, difficulty in columns)], lines)
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/ablation.py`, {options.reviews:,} reviews, seeds {seeds}: AUC with labels / without."
    text = f"{about} {describe()}.\n\n{table}"
    print(text)
    if options.write:
        write_section("detection.md", "ablation", text)


if __name__ == "__main__":
    main()
