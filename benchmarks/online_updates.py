"""How near ten updates of one percent end to a full refit, and what each way of scoring costs in detection.

    python benchmarks/online_updates.py [--write] [--reviews 60000] [--seeds 3]

Rank correlation (Spearman) of scores over all entities, and AUC on the test accounts after the refit and
after the updates (reviewers: within deciles of activity). ``evidence`` is the mean evidence, ``excess`` the
mean of what exceeds noise, ``+ lockstep`` joins them with the lockstep of the entity by normal scores; the last two
are what ``score`` sorts by. Labels move no factors, so the scores without labels are those of a fit without.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from scipy.stats import spearmanr

import ringleader as rl
from machine import describe, write_section
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.metrics import auc, matched_auc
from ringleader.signals.evidence import SHRINK_REVIEWS, entity_evidence, excess
from ringleader.signals.suspicion import normal_scores


def ways(detector: rl.RingDetector, mode: str) -> dict[str, np.ndarray]:
    """Several scores of the same entities, in the order of their names."""
    tensor, k = detector.tensor_, detector.tensor_.mode_index(mode)
    together = detector.lockstep().entity_scores(tensor, k)
    lockstep = [together["lockstep_mean"], together["lockstep_top10"]]
    shrink = SHRINK_REVIEWS if k == detector.config_.contrast else 0.0
    z = detector.review_evidence().evidence
    mean = entity_evidence(tensor, z, k, shrink=shrink)
    beyond = entity_evidence(tensor, excess(z), k, shrink=shrink)

    def joined(*parts: np.ndarray) -> np.ndarray:
        return np.mean([normal_scores(part) for part in parts], axis=0)

    table = detector.scores(mode)
    head = np.empty(len(table))
    head[tensor.vocabularies[k].lookup(table["entity"].to_numpy())] = table["score"]
    scores = {
        "evidence": mean,
        "excess": beyond,
        "lockstep": joined(*lockstep),
        "evidence + lockstep": joined(mean, *lockstep),
        "suspicion (default without labels)": detector.suspicion(mode),
        "probability (default with labels)": head,
    }
    order = np.argsort(tensor.vocabularies[k].decode(np.arange(tensor.shape[k])))
    return {name: values[order] for name, values in scores.items()}


def compare(market: Marketplace) -> dict[tuple[str, str], tuple[float, float, float]]:
    """(mode, way) -> correlation, AUC of the refit, AUC after updates."""
    reviews = market.reviews
    cut = int(len(reviews) * 0.9)
    labels = market.labels[market.labels["target"] == "abuse"]
    refit = rl.RingDetector().fit(reviews, labels)
    online = rl.RingDetector().fit(reviews[:cut], labels)
    for part in np.array_split(np.arange(cut, len(reviews)), 10):
        online.partial_fit(reviews.iloc[part])
    truth = market.truth[(market.truth["target"] == "abuse") & (market.truth["split"] == "test")]
    out = {}
    for mode in ("seller", "reviewer"):
        test = truth[truth["mode"] == mode]
        names = np.sort(reviews[mode].unique().astype(object))
        at = np.searchsorted(names, test["entity"].to_numpy(dtype=object))
        activity = reviews[mode].value_counts().reindex(names).to_numpy()[at]
        updated, fresh = ways(online, mode), ways(refit, mode)
        for way in fresh:
            figures = [
                auc(test["label"], scores[at]) if mode == "seller" else matched_auc(test["label"], scores[at], activity)
                for scores in (fresh[way], updated[way])
            ]
            out[mode, way] = (float(spearmanr(updated[way], fresh[way]).statistic), *figures)
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the table into docs/online.md")
    parser.add_argument("--reviews", type=int, default=60_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    lines = ["| difficulty | mode | score | correlation | AUC refit | AUC updated |", "|---|---|---|---|---|---|"]
    for difficulty in ("easy", "medium", "hard"):
        rows = defaultdict(list)
        for seed in range(500, 500 + options.seeds):
            for key, figures in compare(marketplace(options.reviews, difficulty=difficulty, seed=seed)).items():
                rows[key].append(figures)
        for (mode, way), figures in rows.items():
            mean, least = np.mean(figures, axis=0), min(f[0] for f in figures)
            lines.append(
                f"| {difficulty} | {mode} | {way} | {mean[0]:.3f} (least {least:.3f}) | {mean[1]:.3f} | {mean[2]:.3f} |"
            )
        print("\n".join(lines[-10:]), flush=True)
    about = f"{options.reviews:,} reviews, seeds 500 to {499 + options.seeds}. Machine: {describe()}."
    if options.write:
        write_section("online.md", "online", "\n".join([about, "", *lines]))


if __name__ == "__main__":
    main()
