"""How well abuse is detected on generated markets, beside what people would use instead, on the same split."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ringleader.arrays import Bools, Floats
from ringleader.baselines.behaviour import Boosting, Forest
from ringleader.baselines.registry import baseline
from ringleader.datasets import Marketplace, marketplace, taste_market
from ringleader.detector import RingDetector
from ringleader.evaluation import metrics
from ringleader.evaluation.protocol import Split, market_split
from ringleader.judge.head import Head
from ringleader.judge.prevalence import matching_shift
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

DIFFICULTIES = ("easy", "medium", "hard")
TASTES = ("loyal", "very-loyal", "nested", "fans", "deals", "slow", "once", "everything")
"""Kinds of markets of tastes that are measured, by their names."""
TASTE_REVIEWS = 40_000
"""Most reviews of a market of tastes."""
MODES = ("seller", "reviewer")
UNSUPERVISED = ("burst", "degree", "mzoom", "bptf", "bnbcp-svi")


class Finding(NamedTuple):
    """One method on one mode of one market."""

    difficulty: str  # or the kind of a market of tastes
    seed: int
    mode: str
    method: str
    labels: int
    auc: float
    matched_auc: float
    unseen_auc: float  # against the accounts of rings of which nobody is known; NaN where there are none
    log_loss: float  # NaN for what gives no probabilities
    calibration: float
    seconds: float


def detection_rows(
    *,
    seeds: Sequence[int],
    reviews: int,
    difficulties: Sequence[str] = DIFFICULTIES,
    tastes: Sequence[str] = TASTES,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Finding]:
    """Every method on every market of both families, as they are done."""
    for difficulty in (*difficulties, *tastes):
        for seed in seeds:
            if difficulty in DIFFICULTIES:
                market = marketplace(reviews, difficulty=difficulty, seed=seed)
            else:
                market = taste_market(min(reviews, TASTE_REVIEWS), kind=difficulty, seed=seed)
            for row in market_rows(market, difficulty, seed):
                say(f"{difficulty} {seed} {row.mode} {row.method}: {row.auc:.3f}")
                yield row


def market_rows(market: Marketplace, difficulty: str, seed: int) -> Iterator[Finding]:
    """Every method on one market."""
    tensor = read_reviews(market.reviews)
    known = market.labels[market.labels["target"] == DEFAULT_TARGET]
    began = time.perf_counter()
    detector = RingDetector(random_state=seed).fit(tensor, known)
    seconds = time.perf_counter() - began
    truth = {mode: market_truth(market, tensor, mode) for mode in MODES}
    splits = {mode: market_split(tensor, market.truth, mode) for mode in MODES}

    def row(mode: str, method: str, scores: Floats, took: float, probability: Floats | None = None) -> Finding:
        where = (difficulty, seed, mode, method, int((~np.isnan(splits[mode].known)).sum()))
        return Finding(*where, *market_figures(splits[mode], truth[mode], scores, probability), took)

    for mode in MODES:
        head = _head(detector, mode)
        centre, probability, _, _ = head.predict()
        yield row(mode, "ringleader", centre, seconds, probability)
        yield row(mode, "ringleader, no labels", detector.suspicion(mode), seconds)
        inputs = detector.inputs(mode)
        extra = {mode: (inputs.names, inputs.values)}
        for name, method in (
            ("boosting, simple", Boosting(columns="simple", random_state=seed)),
            ("boosting, behaviour", Boosting(columns="plain", random_state=seed)),
            ("boosting, same inputs", Boosting(columns="none", extra=extra, random_state=seed)),
            ("forest, same inputs", Forest(columns="none", extra=extra, random_state=seed)),
            ("propagation", baseline("propagation")),
        ):
            began = time.perf_counter()
            scores = method.fit(tensor, splits[mode].labels).scores(mode)
            chance = at_prevalence(scores, truth[mode]) if name.startswith(("boosting", "forest")) else None
            yield row(mode, name, scores, time.perf_counter() - began, chance)
    for name in UNSUPERVISED:
        began = time.perf_counter()
        fitted = baseline(name).fit(tensor)
        took = time.perf_counter() - began
        for mode in MODES:
            yield row(mode, name, fitted.scores(mode), took)


def at_prevalence(probability: Floats, truth: MarketTruth) -> Floats:
    """Probabilities moved to the market's TRUE prevalence, which the other methods know and the detector does not."""
    psi = logit(np.clip(probability, 1e-6, 1 - 1e-6))
    return np.asarray(expit(psi + matching_shift(psi, float(np.nanmean(truth.label)))))


def _head(detector: RingDetector, mode: str) -> Head:
    k = detector.tensor_.mode_index(mode)
    assert detector.heads_ is not None
    head = next(h for t, h in zip(detector.targets_, detector.heads_, strict=True) if t.mode == k)
    assert isinstance(head, Head)
    return head


class MarketTruth(NamedTuple):
    """What is true of every account of a mode, (n_k,)."""

    label: Floats  # NaN where nothing is said
    unseen: Bools  # bad, and of rings of which nobody is known


def market_truth(market: Marketplace, tensor: SparseTensor, mode: str) -> MarketTruth:
    rows = market.truth[(market.truth["mode"] == mode) & (market.truth["target"] == DEFAULT_TARGET)]
    codes = tensor.vocabulary(mode).lookup(rows["entity"].to_numpy())
    everyone = market.truth[market.truth["split"] == "known"]
    seen = {ring for names in everyone.loc[everyone["label"] == 1, "ring"] for ring in rings_of(names)}
    label = np.full(len(tensor.vocabulary(mode)), np.nan)
    unseen = np.zeros(len(label), np.bool_)
    label[codes] = rows["label"].to_numpy(np.float64)
    unseen[codes] = (rows["label"] == 1).to_numpy() & [seen.isdisjoint(rings_of(names)) for names in rows["ring"]]
    return MarketTruth(label, unseen)


def rings_of(names: object) -> list[str]:
    """The rings of an account as a market's truth names them: ``B001|B002`` for one that serves two, none if honest."""
    return names.split("|") if isinstance(names, str) and names else []


def market_figures(
    split: Split, truth: MarketTruth, scores: Floats, probability: Floats | None
) -> tuple[float, float, float, float, float]:
    """AUC, matched AUC and AUC on unseen rings of the tested; log-loss and calibration error of all unlabelled."""
    tested, label = scores[split.test], split.truth
    good = split.test[label == 0]
    hidden = split.test[truth.unseen[split.test]]
    unseen = np.nan
    if len(hidden):
        sides = np.concatenate([np.zeros(len(good)), np.ones(len(hidden))])
        unseen = metrics.auc(sides, scores[np.concatenate([good, hidden])])
    loss = calibration = np.nan
    if probability is not None:
        # The tested are a choice of accounts; probabilities are meant for the market, so everyone unlabelled counts.
        rest = np.flatnonzero(np.isnan(split.known) & ~np.isnan(truth.label))
        loss = metrics.log_loss(truth.label[rest], probability[rest])
        calibration = metrics.calibration_error(truth.label[rest], probability[rest])
    return metrics.auc(label, tested), metrics.matched_auc(label, tested, split.activity), unseen, loss, calibration


def table(rows: Sequence[Finding]) -> pd.DataFrame:
    """Mean and spread over seeds, one line for each difficulty, mode and method."""
    frame = pd.DataFrame(rows)
    grouped = frame.groupby(["difficulty", "mode", "method"], sort=False)
    figures = ["auc", "matched_auc", "unseen_auc", "log_loss", "calibration", "seconds"]
    made = grouped[figures].mean()
    made.insert(1, "auc_sd", grouped["auc"].std())
    made["markets"] = grouped["seed"].nunique()
    return made.reset_index()
