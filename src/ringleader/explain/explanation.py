"""Explanation: why an entity has its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ringleader.explain.account import Described, account
from ringleader.explain.parts import NOTHING_AGAINST, Account, Reason
from ringleader.explain.reasons import contribution_table, nearest_known, own_cores, strongest_reviews
from ringleader.wording import (
    cell,
    counted,
    harmless,
    html_table,
    html_text,
    json_ready,
    said_of_label,
    said_of_unit,
    say_judged,
)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The reasons behind one score.

    summary       : mode, entity, target, rank, of, score, probability, lower, upper, evidence, reviews, label,
                    intercept (with the contributions it sums to the log-odds of the probability), and label_left_out
    contributions : input, kind, contribution, sentence, value, typical (the median entity), above (share of the
                    entities with a smaller value); the largest first
    reviews       : its strongest reviews: one column for each mode, count, suspicion, log_odds, evidence,
                    lockstep
    cores         : the cores it belongs to, and its strength in each
    neighbours    : the nearest known bad entities of its mode: entity, shared (how many accounts), expected, surprise,
                    and the accounts, items and times they share by name
    note          : how the score was made, in words
    account       : the same in sentences, with partners, all reviews and charts
    """

    summary: dict[str, Any]
    contributions: pd.DataFrame
    reviews: pd.DataFrame
    cores: pd.DataFrame
    neighbours: pd.DataFrame
    note: str
    account: Account

    @property
    def reasons(self) -> pd.DataFrame:
        """Reasons for and against it: speaks ("for" or "against"), kind, adds, sentence."""
        rows = [("for", r.kind, r.amount, r.sentence) for r in self.account.reasons_for]
        rows += [("against", r.kind, r.amount, r.sentence) for r in self.account.reasons_against]
        return pd.DataFrame(rows, columns=["speaks", "kind", "adds", "sentence"])

    @property
    def partners(self) -> pd.DataFrame:
        """The accounts it acts with, one row each, with the fields of ``Partner``."""
        columns = ["mode", "entity", "via", "meetings", "of", "expected", "where", "first", "last"]
        columns += ["score", "probability", "label"]
        rows = [[getattr(partner, name) for name in columns] for partner in self.account.partners]
        return pd.DataFrame(rows, columns=columns)

    @property
    def unit(self) -> str:
        """Of what the amounts are parts: log-odds, value or suspicion."""
        said = (*self.account.reasons_for, *self.account.reasons_against)
        return said[0].unit if said else "suspicion"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values. ``reviews`` are the strongest; how many there are is ``review_count``."""
        about = {"review_count" if name == "reviews" else name: value for name, value in self.summary.items()}
        tables = {"reasons": self.reasons, "partners": self.partners}
        tables |= {name: getattr(self, name) for name in ("contributions", "reviews", "cores", "neighbours")}
        rows = {name: table.to_dict("records") for name, table in tables.items()}
        ready: dict[str, Any] = json_ready({**about, **rows, "note": self.note})
        return ready

    def lines(self) -> list[str]:
        """The explanation as lines of text; names are escaped."""
        about = self.summary
        lines = [headline(self.account), judgement(self.account)]
        if self.account.label is not None:
            known, kind, without = self.account.label, self.account.label_kind, self.account.without_label
            lines.insert(1, said_of_label(known, kind, about["target"], without))
        lines += [
            "",
            f"Speaks for it ({said_of_unit(self.unit)}):",
            *(f"  {reason_line(r)}" for r in self.account.reasons_for),
        ]
        lines += [] if self.account.reasons_for else ["  nothing"]
        lines += ["", "Speaks against it:", *(f"  {reason_line(r)}" for r in self.account.reasons_against)]
        return lines if self.account.reasons_against else [*lines, f"  {NOTHING_AGAINST}"]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        shown = self.reasons.assign(adds=[cell(a, "+.2f") for a in self.reasons["adds"]])
        partners = self.partners.drop(columns=["score"]).head(8)
        head = "<br>".join(html_text(line) for line in self.lines()[: self.lines().index("")])
        return f"<p>{head}</p>{html_table(shown, 'Reasons')}{html_table(partners, 'Partners')}"


def explain(snapshot: Described, mode: int | str, entity: Any, name: str | None = None) -> Explanation:
    """The reasons behind the score of one entity."""
    described = account(snapshot, mode, entity, name)
    tensor, signals = snapshot.tensor, snapshot.signals
    k, code = tensor.mode_index(mode), described.code
    scorer, target = snapshot.scorer(k, name), snapshot.target(k, name)
    contributions = scorer.contributions(np.array([code]))
    bad = np.zeros(0, np.int64)
    if target is not None and target.kind == "binary":
        bad = target.codes[target.values > 0].astype(np.int64)
    about: dict[str, Any] = {"mode": described.mode, "target": described.target, "of": described.of}
    about |= {**described.row, "intercept": contributions.intercept, "label_left_out": scorer.kind != "joint"}
    return Explanation(
        summary=about,
        contributions=contribution_table(scorer.inputs, contributions, code),
        reviews=strongest_reviews(signals, k, code),
        cores=own_cores(tensor, k, code, snapshot.cores()),
        neighbours=nearest_known(tensor, k, code, bad, signals.lockstep),
        note=scorer.note,
        account=described,
    )


def headline(described: Account) -> str:
    """``seller S131: rank 2 of 198, 33 reviews``."""
    name = f"{harmless(described.mode, 30)} {harmless(cell(described.entity, '.15g'))}"
    rank = f"rank {described.row['rank']:,} of {described.of:,}"
    return f"{name}: {rank}, {counted(described.row['reviews'], 'review')}"


def judgement(described: Account) -> str:
    """The probability, or the value where labels are numbers, with its interval; without labels the score."""
    return say_judged(described.row, described.target)


def reason_line(reason: Reason) -> str:
    """``+1.32  29 of its 47 reviewers ...``; what is no part of the score has no number."""
    adds = "     " if reason.amount is None else f"{reason.amount:+.2f}"
    return f"{adds}  {reason.sentence}"
