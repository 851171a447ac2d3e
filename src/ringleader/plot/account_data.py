"""The charts of one account, and of how far probabilities keep their word."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.evaluation import metrics
from ringleader.explain import Account
from ringleader.plot.charts import Curve, Timeline
from ringleader.wording import cell, counted, harmless, number, percent, plural, say_time

BINS = 60
"""Bins of time that are drawn."""
PARTS = 10
"""Parts of the probabilities that are compared with the truth, equally wide: below 10%, below 20% and so on."""
FEWEST = 20
"""Accounts that a part should have at least; smaller ones are taken together with the next."""


def activity(account: Account) -> Timeline:
    """When an account had its reviews, as shares of its own and of the market's."""
    if account.activity is None:
        raise SettingsError("the reviews have no times, so there is no timeline to draw")
    own, expected, starts = account.activity.own, account.activity.expected, account.activity.starts
    many = -(-len(own) // BINS)
    cuts = np.arange(0, len(own), many)
    mine, usual = np.add.reduceat(own, cuts), np.add.reduceat(expected, cuts)
    total = max(float(mine.sum()), 1.0)
    edges = np.append(starts[cuts], starts[-1])
    busiest = int(np.argmax(mine))
    name = f"{harmless(account.mode, 30)} {harmless(cell(account.entity, '.15g'), 30)}"
    dates = [say_time(np.datetime64(int(at), "s"))[:10] for at in edges]
    seen = counted(int(mine[busiest]), "review")
    return Timeline(
        title=f"{name}: {seen} from {dates[busiest]} on, where {number(float(usual[busiest]))} were expected",
        summary=f"Share of the {counted(int(total), 'review')} of {name} in each period, and of the market's.",
        header=("from", "reviews", "expected"),
        rows=tuple(
            (dates[i], f"{mine[i]:,}", number(float(usual[i]))) for i in range(len(mine)) if mine[i] or i == busiest
        ),
        starts=tuple(edges.tolist()),
        core=tuple((mine / total).tolist()),
        market=tuple((usual / max(float(usual.sum()), 1e-300)).tolist()),
        name=name,
    )


def calibration(labels: Floats, score: Floats, mode: str, target: str) -> Curve:
    """Of accounts given about the same probability, the share that is bad; on the diagonal they keep their word."""
    labels, score = metrics.check(labels, score)
    if score.min() < 0 or score.max() > 1:
        raise SettingsError(f"the scores of {mode} are no probabilities; fit with labels of that kind")
    pieces = _pieces(score)
    said = np.array([float(score[piece].mean()) for piece in pieces])
    true = np.array([float(labels[piece].mean()) for piece in pieces])
    error = float(np.average(np.abs(said - true), weights=[len(piece) for piece in pieces]))
    name = harmless(mode, 30)
    doubt = "" if len(score) >= FEWEST * 2 else f" ({counted(len(score), name)}: too few to go by)"
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
