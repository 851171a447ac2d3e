"""Since last time: who rose, who fell, and which groups are new against another model, and why."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ringleader.cores import Core
from ringleader.detector import RingDetector
from ringleader.explain import Account
from ringleader.plot.score_data import column_of
from ringleader.report.accounts import Accounts
from ringleader.report.context import Change, Since
from ringleader.report.groups import people
from ringleader.report.ranking import Subject
from ringleader.wording import counted, harmless, plural, say_label, short_probability

LISTED = 10
"""Accounts that are listed for each change."""
FIRST = 50
"""Ranks among which a change is reported."""
LEAST = 0.1
"""Change of a probability that is reported."""
SAME = 0.5
"""Share of its members in an earlier core from which a core is that one."""


def changes(model: RingDetector, before: RingDetector, wanted: list[Subject], accounts: Accounts) -> Since:
    """What changed for the main target of each mode, and among the cores."""
    new, old = int(model.tensor_.counts.sum()), int(before.tensor_.counts.sum())
    labels = model.aligned_.n_labels - before.aligned_.n_labels
    lead = f"Against the earlier model: {new:,} reviews where there were {old:,}, and "
    lead += f"{counted(abs(labels), 'label')} {'more' if labels >= 0 else 'fewer'}."
    parts: list[tuple[str, tuple[Change, ...]]] = []
    for subject in [s for s in wanted if s.main and s.mode in before.tensor_.modes]:
        parts += _moves(model, before, subject, accounts)
    parts += _groups(model, before)
    if not any(rows for _, rows in parts):
        lead += " Nobody moved by much."
    return Since(lead, tuple(part for part in parts if part[1]))


def _moves(
    model: RingDetector, before: RingDetector, subject: Subject, accounts: Accounts
) -> list[tuple[str, tuple[Change, ...]]]:
    """Who rose and who fell among the first of a mode."""
    name = subject.name if subject.name in before.snapshot_.target_names(subject.mode) else None
    now, then = model.scores(subject.mode, subject.name), before.scores(subject.mode, name)
    column = column_of(now) if column_of(now) == column_of(then) else "score"
    joined = now.merge(
        then[["entity", "rank", column, "reviews", "label"]], on="entity", how="left", suffixes=("", "_old")
    )
    share = column == "probability"
    by = joined[f"{column}_old"].fillna(0.0) if share else -joined["rank_old"].fillna(len(now) + 1.0)
    moved = (joined[column] if share else -joined["rank"]) - by
    joined = joined.assign(moved=moved)
    first = (joined["rank"] <= FIRST) | (joined["rank_old"] <= FIRST)
    least = LEAST if share else 5
    many = plural(harmless(subject.mode, 30))
    rose = joined[first & (moved >= least)].sort_values("moved", ascending=False, kind="stable").head(LISTED)
    fell = joined[first & (moved <= -least)].sort_values("moved", kind="stable").head(LISTED)
    changes = []
    for heading, rows in ((f"{many.capitalize()} that rose", rose), (f"{many.capitalize()} that fell", fell)):
        changes.append(
            (heading, tuple(_change(model, before, subject, row, share, accounts) for row in _records(rows)))
        )
    return changes


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def _change(
    model: RingDetector, before: RingDetector, subject: Subject, row: dict[str, Any], share: bool, accounts: Accounts
) -> Change:
    account = accounts.described(subject.mode, row["entity"], subject.name)
    if row["rank_old"] != row["rank_old"]:
        was = "new"
    elif share:
        was = f"from {short_probability(row['probability_old'])}"
    else:
        was = f"from rank {row['rank_old']:,.0f}"
    now = f"to {short_probability(row['probability'])}" if share else f"to rank {row['rank']:,.0f}"
    text = f"{was} {now if was != 'new' else f'at {now[3:]}'}: {_why(account, row, rose=row['moved'] > 0)}"
    key = accounts.key(subject.mode, row["entity"])
    return Change(harmless(str(row["entity"])), key, text)


def _why(account: Account, row: dict[str, Any], *, rose: bool) -> str:
    """What is new of an account, and what speaks for or against it now."""
    why = []
    if row["reviews_old"] == row["reviews_old"] and row["reviews"] != row["reviews_old"]:
        why.append(f"{counted(int(row['reviews'] - row['reviews_old']), 'new review')}")
    if row["label"] == row["label"] and row["label_old"] != row["label_old"]:
        why.append(f"labelled {say_label(row['label'], account.label_kind)} since")
    side = account.reasons_for if rose else account.reasons_against
    why += [side[0].sentence] if side else []
    return "; ".join(why) or "others changed around it"


def _groups(model: RingDetector, before: RingDetector) -> list[tuple[str, tuple[Change, ...]]]:
    """Cores that no earlier core was, and earlier ones that are gone."""
    now = [(core, _names(model, core)) for core in model.cores()]
    then = [(core, _names(before, core)) for core in before.cores()]
    fresh = [core for core, names in now if not any(_overlap(names, old) >= SAME for _, old in then)]
    gone = [core for core, names in then if not any(_overlap(names, new) >= SAME for _, new in now)]
    linked = tuple(
        Change(f"Core {core.number}", f"core{core.number}", f"{people(core)}; they did not act together before")
        for core in fresh[:LISTED]
    )
    lost = tuple(Change("A group", "", f"of {people(core)} no longer stands out") for core in gone[:LISTED])
    return [("New groups", linked), ("Groups that are gone", lost)]


def _names(model: RingDetector, core: Core) -> set[tuple[str, str]]:
    names: set[tuple[str, str]] = set()
    for mode, members in core.members.items():
        names |= {(mode, name) for name in model.tensor_.vocabulary(mode).text(members.codes)}
    return names


def _overlap(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> float:
    return len(one & other) / max(min(len(one), len(other)), 1)
