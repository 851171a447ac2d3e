"""The charts of the whole model: scores, held-out curves, calibration, training, components."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from ringleader.arrays import Floats, Numbers
from ringleader.detector import RingDetector
from ringleader.errors import SettingsError
from ringleader.evaluation import metrics
from ringleader.evaluation.truth import known_codes, read_truth
from ringleader.known.labels import Labels
from ringleader.model.objective import component_sizes, effective_rank
from ringleader.plot.charts import Components, Curve, Scores, Training
from ringleader.wording import counted, harmless, percent, plural, rounded_percent

PROBABILITY_BINS, OTHER_BINS = 20, 30
POINTS = 150
"""Points of a curve; more would not be seen."""
POINTS_LISTED = 25
"""Points of a curve whose numbers are listed."""
SWEEPS_DRAWN, SWEEPS_LISTED = 500, 100
"""Sweeps whose likelihood is drawn, and those whose numbers are listed."""
TOP = 10
ENOUGH = 10
"""Accounts of each kind, bad and good, below which a figure on them says little."""
PARTS = 10
"""Parts of the probabilities that are compared with the truth, equally wide: below 10%, below 20% and so on."""
FEWEST = 20
"""Accounts that a part should have at least; smaller ones are taken together with the next."""


def scores(frame: pd.DataFrame, mode: str, target: str | None) -> Scores:
    """Where the entities of a mode lie; ``frame`` is what ``model.scores`` gives, names aside."""
    name = column_of(frame)
    values = frame[name].to_numpy(np.float64)
    known = _known(frame, values)
    low, high = (0.0, 1.0) if name == "probability" else (float(values.min()), float(values.max()))
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, (PROBABILITY_BINS if name == "probability" else OTHER_BINS) + 1)
    counts = np.histogram(values, edges)[0]
    mode, target = harmless(mode, 30), harmless(target or "abuse", 30)
    if name == "probability":
        above = int((values > 0.5).sum())
        verb = "has" if above == 1 else "have"
        title = f"{above:,} of {counted(len(values), mode)} {verb} a probability of {target} above 50%"
    else:
        top = min(TOP, len(values))
        least = np.sort(values)[::-1][top - 1]
        title = f"The {top} highest of {counted(len(values), mode)} have a {name} of {least:.3g} or more"
    marked = ", ".join(f"{len(marks):,} {kind}" for kind, marks in known)
    summary = f"Histogram of the {name} of {counted(len(values), mode)}; the axis of the counts is logarithmic. " + (
        f"Marked below it: {marked}, each as judged without its own label." if known else "None of them is labelled."
    )
    rows = []
    for i, count in enumerate(counts):
        last = i == len(counts) - 1
        inside = [int(((f >= edges[i]) & ((f <= edges[i + 1]) if last else (f < edges[i + 1]))).sum())
                  for f in (np.array(marks) for _, marks in known)]  # fmt: skip
        if count:
            rows.append((f"{edges[i]:.3g} to {edges[i + 1]:.3g}", f"{count:,}", *(f"{n:,}" for n in inside)))
    return Scores(
        title=title,
        summary=summary,
        header=(name, plural(mode), *(kind for kind, _ in known)),
        rows=tuple(rows),
        name=f"{name} of {target}" if name in ("probability", "value") else name,
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        known=known,
    )


def column_of(frame: pd.DataFrame) -> str:
    """What the entities of a table are judged by: probability, value, or score where no labels made either."""
    for name in ("probability", "value"):
        if name in frame and frame[name].notna().all() and len(frame):
            return name
    return "score"


def _known(frame: pd.DataFrame, values: Floats) -> tuple[tuple[str, tuple[float, ...]], ...]:
    labels = frame["label"].to_numpy(np.float64)
    if "value" in frame:
        there = np.isfinite(labels)
        return (("labelled", tuple(values[there].tolist())),) if there.any() else ()
    kinds = (("known bad", labels == 1), ("known good", labels == 0))
    return tuple((kind, tuple(values[there].tolist())) for kind, there in kinds if there.any())


def judged(model: RingDetector, truth: Labels, mode: str, target: str | None) -> tuple[Floats, Floats, str]:
    """Labels (1 bad, 0 good) and scores of the accounts of a truth that the model was not given, and their target."""
    if truth.target_kind == "real":
        raise SettingsError("the labels are numbers; precision, recall and ROC need bad and good accounts")
    k = model.tensor_.mode_index(mode)
    there = [t for t in truth.align(model.tensor_).targets if t.mode == k and target in (None, t.name)]
    if not there:
        raise SettingsError(f"the labels to measure on name no {mode} of the model; choose another mode or target")
    chosen = next((t for t in there if t.name == "abuse"), there[0])
    unseen = ~np.isin(chosen.codes, known_codes(model, k))
    own = chosen.name if chosen.name in model.snapshot_.target_names(mode) else None
    score = model.snapshot_.scores_by_code(mode, own, chosen.codes[unseen])["score"].to_numpy(np.float64)
    return (chosen.values[unseen] > 0).astype(np.float64), score, chosen.name


def heldout(model: RingDetector, truth: Any = None) -> Labels:
    """The labels to measure on: those given (Labels, or a table or file of them), or those that the fit held out."""
    labels = model.heldout_ if truth is None else truth if isinstance(truth, Labels) else read_truth(model, truth)
    if labels is None:
        raise SettingsError("no labels were held out from this model; fit with holdout=0.2, or give truth=")
    return labels


def precision_recall(labels: Floats, score: Floats, mode: str, target: str) -> Curve:
    """Precision over recall at every threshold."""
    hits, false_alarms = _steps(labels, score)
    bad = float(labels.sum())
    whole = int(np.searchsorted(hits, bad)) + 1  # beyond, nobody is left to find
    recall, precision = (hits / bad)[:whole], (hits / (hits + false_alarms))[:whole]
    quality = metrics.average_precision(labels, score)
    name = harmless(mode, 30)
    title = f"Held-out {plural(name)}: average precision {quality:.2f}; chance would give {bad / len(labels):.2f}"
    title += _doubt(labels, name)
    at = _thinned(len(recall), POINTS_LISTED)
    half = float(precision[np.searchsorted(recall, 0.5)])
    return Curve(
        title=title,
        summary=(
            f"Precision over recall on {counted(len(labels), name)} whose label ({harmless(target, 30)}) was held out, "
            f"{int(bad):,} of them bad. When half of the bad ones are found, {percent(half)} of those listed are bad."
        ),
        header=("recall", "precision"),
        rows=tuple((f"{recall[i]:.3f}", f"{precision[i]:.3f}") for i in at),
        left_out=len(recall) - len(at),
        x_name="share of the bad that are found (recall)",
        y_name="share of the found that are bad",
        x=(0.0, *_pick(recall)),
        y=(float(precision[0]), *_pick(precision)),
        chance=(bad / len(labels), bad / len(labels)),
        steps=True,
    )


def roc(labels: Floats, score: Floats, mode: str, target: str) -> Curve:
    """Share of the bad that are found over the share of the good that are accused."""
    hits, false_alarms = _steps(labels, score)
    bad = float(labels.sum())
    x, y = false_alarms / (len(labels) - bad), hits / bad
    name = harmless(mode, 30)
    area = metrics.auc(labels, score)
    at = _thinned(len(x), POINTS_LISTED)
    return Curve(
        title=f"Held-out {plural(name)}: a bad one ranks above a good one in {rounded_percent(area)} of pairs "
        f"(AUC {area:.3f}){_doubt(labels, name)}",
        summary=(
            f"ROC on {counted(len(labels), name)} whose label ({harmless(target, 30)}) was held out: {int(bad):,} bad, "
            f"{len(labels) - int(bad):,} good. AUC {area:.3f}; chance would give 0.5."
        ),
        header=("good that are accused", "bad that are found"),
        rows=tuple((f"{x[i]:.3f}", f"{y[i]:.3f}") for i in at),
        left_out=len(x) - len(at),
        x_name="share of the good that are accused",
        y_name="share of the bad that are found",
        x=(0.0, *_pick(x)),
        y=(0.0, *_pick(y)),
        chance=(0.0, 1.0),
        steps=False,
    )


def _doubt(labels: Floats, name: str) -> str:
    """What a title says where the accounts are too few to rely on."""
    bad, good = int(labels.sum()), int((labels == 0).sum())
    return (
        "" if min(bad, good) >= ENOUGH else f"; {counted(bad, f'bad {name}')} and {good:,} good are too few to rely on"
    )


def _steps(labels: Floats, score: Floats) -> tuple[Floats, Floats]:
    """Bad and good accounts at or above each distinct score, highest first; ties are one step."""
    y, s = metrics.check(labels, score)
    order = np.argsort(-s, kind="stable")
    last = np.append(np.flatnonzero(np.diff(s[order])), len(s) - 1)
    return np.cumsum(y[order])[last], np.cumsum(1 - y[order])[last]


def _thinned(length: int, most: int) -> list[int]:
    return [int(i) for i in np.unique(np.linspace(0, length - 1, min(length, most)).round())]


def _pick(values: Floats) -> tuple[float, ...]:
    return tuple(values[_thinned(len(values), POINTS)].tolist())


def training(model: RingDetector) -> Training:
    """How the fit went: the log-likelihood per review, sweep by sweep."""
    history = model.history_
    if not history:
        raise SettingsError("this model has done no sweep yet, so there is no training to draw")
    name = "log_likelihood" if any(_number(h["log_likelihood"]) is not None for h in history) else "log_posterior"
    measured = [h for h in history if _number(h[name]) is not None]
    if not measured:
        raise SettingsError("the fit recorded no likelihood, so there is no training to draw")
    values = [float(h[name]) for h in measured]
    heldout = [v for h in measured if (v := _number(h["heldout_log_likelihood"])) is not None]
    complete = len(heldout) == len(measured)
    drawn, listed = _thinned(len(measured), SWEEPS_DRAWN), _thinned(len(measured), SWEEPS_LISTED)
    word = "log-likelihood per review" if name == "log_likelihood" else "log-posterior"
    went = "rose" if values[-1] > values[0] else "went"
    return Training(
        title=f"The {word} {went} from {values[0]:,.4g} to {values[-1]:,.4g} in {counted(len(measured), 'sweep')}",
        summary=f"{word.capitalize()} after each sweep" + (", also on held-out reviews." if complete else "."),
        header=("sweep", word, *(("held-out reviews",) if complete else ()), "effective rank"),
        rows=tuple(
            (
                f"{i + 1}",
                f"{values[i]:,.5g}",
                *((f"{heldout[i]:,.5g}",) if complete else ()),
                f"{_number(measured[i]['effective_rank']) or math.nan:.2f}",
            )
            for i in listed
        ),
        left_out=len(measured) - len(listed),
        sweeps=tuple(i + 1 for i in drawn),
        likelihood=tuple(values[i] for i in drawn),
        heldout=tuple(heldout[i] for i in drawn) if complete else (),
    )


def components(model: RingDetector) -> Components:
    """The share of the tensor that each component explains."""
    size = component_sizes(model.state_)
    total = float(size.sum())
    if not np.isfinite(total) or total <= 0:
        raise SettingsError("all components of this model are empty, so there is nothing to draw")
    order = np.argsort(-size, kind="stable")
    shares = size[order] / total
    names = tuple(str(int(r)) for r in order)
    weights = model.state_.component_weights[order]
    used, largest = effective_rank(model.state_), percent(float(shares[0]))
    return Components(
        title=f"{used:.1f} of {counted(len(size), 'component')} are in use: the largest carries {largest}",
        summary="Share of each component in the size of the tensor, largest first.",
        header=("component", "share", "weight"),
        rows=tuple((n, percent(float(s)), f"{w:.4g}") for n, s, w in zip(names, shares, weights, strict=True)),
        names=names,
        shares=tuple(shares.tolist()),
    )


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def calibration(labels: Floats, score: Floats, mode: str, target: str) -> Curve:
    """Of accounts given about the same probability, the share that is bad; on the diagonal the two agree."""
    labels, score = metrics.check(labels, score)
    if score.min() < 0 or score.max() > 1:
        raise SettingsError(f"the scores of {mode} are not probabilities; fit with labels of that kind")
    pieces = _pieces(score)
    said = np.array([float(score[piece].mean()) for piece in pieces])
    true = np.array([float(labels[piece].mean()) for piece in pieces])
    error = float(np.average(np.abs(said - true), weights=[len(piece) for piece in pieces]))
    name = harmless(mode, 30)
    doubt = "" if len(score) >= FEWEST * 2 else f" ({counted(len(score), name)}: too few to rely on)"
    return Curve(
        title=f"Held-out {plural(name)}: probabilities are {percent(error)} from the truth on average{doubt}",
        summary=(
            f"Share that is bad over the mean probability ({harmless(target, 30)}) of {counted(len(score), name)}, in "
            f"{counted(len(pieces), 'part')}, those below 10%, below 20% and so on; small ones are taken together."
        ),
        header=("probability", "share that is bad"),
        rows=tuple((f"{a:.3f}", f"{b:.3f}") for a, b in zip(said, true, strict=True)),
        x_name="mean probability",
        y_name="share that is bad",
        x=tuple(said.tolist()),
        y=tuple(true.tolist()),
        chance=(0.0, 1.0),
        steps=False,
        reference="perfect calibration",
    )


def _pieces(score: Floats) -> list[Numbers]:
    """Accounts by their probability, in ``PARTS`` of equal width; none has fewer than ``FEWEST`` where it can be."""
    order = np.argsort(score, kind="stable")
    part = np.minimum((score[order] * PARTS).astype(np.int64), PARTS - 1)
    pieces: list[Numbers] = []
    for piece in np.split(order, np.flatnonzero(np.diff(part)) + 1):
        if pieces and len(pieces[-1]) < FEWEST:
            pieces[-1] = np.concatenate([pieces[-1], piece])
        else:
            pieces.append(piece)
    if len(pieces) > 1 and len(pieces[-1]) < FEWEST:
        last = pieces.pop()
        pieces[-1] = np.concatenate([pieces[-1], last])
    return pieces
