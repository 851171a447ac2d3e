"""Explanation: why an entity has its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ringleader.cores import Cores
from ringleader.explain.reasons import contribution_table, nearest_known, own_cores, strongest_reviews
from ringleader.judge import Scorer
from ringleader.known.labels import Target
from ringleader.signals import Signals
from ringleader.wording import json_ready


@dataclass(frozen=True, eq=False)
class Explanation:
    """The reasons behind one score.

    summary       : mode, entity, target, rank, of, score, probability, lower, upper, evidence, reviews, label,
                    intercept (with the contributions it sums to the log-odds of the probability), and label_left_out
    contributions : input, kind, contribution, sentence, value, typical (the median entity), above (share of the
                    entities with a smaller value); the largest first
    reviews       : its strongest reviews: one column for each mode, count, log_odds, evidence, lockstep
    cores         : the cores it belongs to, and its strength in each
    neighbours    : the nearest known bad entities of its mode: entity, shared (how many accounts), expected, surprise,
                    and the accounts, items and times they share by name
    note          : how the score was made, in words
    """

    summary: dict[str, Any]
    contributions: pd.DataFrame
    reviews: pd.DataFrame
    cores: pd.DataFrame
    neighbours: pd.DataFrame
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON takes it. ``reviews`` are the strongest; how many there are is ``review_count``."""
        about = {"review_count" if name == "reviews" else name: value for name, value in self.summary.items()}
        tables = {name: getattr(self, name) for name in ("contributions", "reviews", "cores", "neighbours")}
        rows = {name: table.to_dict("records") for name, table in tables.items()}
        ready: dict[str, Any] = json_ready({**about, **rows, "note": self.note})
        return ready


def explain(
    signals: Signals, cores: Cores, mode: int, code: int, scorer: Scorer, target: Target | None, row: dict[str, Any]
) -> Explanation:
    """The reasons behind the score of one entity. ``row`` is its row in the table of scores."""
    tensor = signals.tensor
    contributions = scorer.contributions(np.array([code]))
    bad = np.zeros(0, np.int64)
    if target is not None and target.kind == "binary":
        bad = target.codes[target.values > 0].astype(np.int64)
    about: dict[str, Any] = {"mode": tensor.modes[mode], "target": target.name if target is not None else None}
    about |= {"of": tensor.shape[mode], **row, "intercept": contributions.intercept}
    return Explanation(
        summary={**about, "label_left_out": scorer.kind != "joint"},
        contributions=contribution_table(scorer.inputs, contributions, code),
        reviews=strongest_reviews(tensor, mode, code, signals.reviews, signals.lockstep),
        cores=own_cores(tensor, mode, code, cores),
        neighbours=nearest_known(tensor, mode, code, bad, signals.lockstep),
        note=scorer.note,
    )
