"""The ranked entities of a mode, with the reasons for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringleader.arrays import Numbers
from ringleader.detector import RingDetector
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.plot.score_data import column_of, scores
from ringleader.report.accounts import Accounts
from ringleader.report.context import Ranked, RankingSection, Table
from ringleader.wording import cell, harmless, plural, short_probability

TOP, OTHER_TOP = 50, 15
"""Entities that are listed: for the main target of a mode, and for each other one."""
FIRST = 500
"""Entities in the table that can be saved."""
REASONS = 2
SAME = 0.8
"""Share of the first entities that two targets must have in common to be said as one."""


class Subject(NamedTuple):
    """A mode and one target on it; no target where nobody of the mode is labelled."""

    mode: str
    target: int | None
    name: str | None
    main: bool = True


def subjects(model: RingDetector) -> list[Subject]:
    """What entities are ranked for: every mode of ids and every labelled one, those with labels first.

    The first target of a mode is its main one.
    """
    tensor, targets = model.tensor_, model.targets_
    wanted: list[Subject] = []
    for k in reversed(range(len(tensor.modes))):
        mine = [t for t, target in enumerate(targets) if target.mode == k and len(target.codes)]
        mine.sort(key=lambda t: (targets[t].name != DEFAULT_TARGET, targets[t].name))
        wanted += [Subject(tensor.modes[k], t, targets[t].name, t == mine[0]) for t in mine]
        if not mine and tensor.vocabularies[k].kind == "id":
            wanted.append(Subject(tensor.modes[k], None, None))
    return sorted(wanted, key=lambda s: (not s.main, s.target is None))


def ranking(model: RingDetector, subject: Subject, key: str, accounts: Accounts) -> RankingSection:
    """The first entities of a mode, as the page shows them."""
    frame = model.snapshot_.first_ranked(subject.mode, subject.name, FIRST)
    column = column_of(frame)
    first = frame.head(TOP if subject.main else OTHER_TOP)
    k = model.tensor_.mode_index(subject.mode)
    codes = model.tensor_.vocabularies[k].lookup(first["entity"].to_numpy()).astype(np.int64)
    in_core = _cores_of(model, subject.mode, codes)
    mode = harmless(subject.mode, 30)
    rows = tuple(_ranked(row, column, accounts, subject, in_core[i]) for i, row in enumerate(first.to_dict("records")))
    return RankingSection(
        key=key,
        heading=heading(subject),
        main=subject.main,
        mode=mode,
        mode_name=subject.mode,
        column=column,
        interval=any(row.interval for row in rows),
        note=model.snapshot_.scorer(subject.mode, subject.name).note,
        total=len(frame),
        rows=rows,
        chart=scores(frame, subject.mode, subject.name),
        first=_table(frame, FIRST if subject.main else OTHER_TOP),
    )


def heading(subject: Subject) -> str:
    """``Sellers to look at first``, and by what where it is not the usual target."""
    mode = harmless(subject.mode, 30)
    about = f" by {harmless(subject.name, 30)}" if subject.name not in (None, DEFAULT_TARGET) else ""
    return f"{mode[:1].upper()}{plural(mode)[1:]} to look at first{about}"


def first_of(model: RingDetector, subject: Subject, most: int) -> list[Any]:
    """The entities that come first."""
    named: list[Any] = model.snapshot_.first_ranked(subject.mode, subject.name, most)["entity"].head(most).tolist()
    return named


def alike(model: RingDetector, subject: Subject, main: Subject) -> bool:
    """Whether nearly the same entities come first for two targets of a mode."""
    one, other = (first_of(model, s, OTHER_TOP) for s in (subject, main))
    return len(set(one) & set(other)) >= SAME * min(OTHER_TOP, len(one))


def _table(frame: pd.DataFrame, most: int) -> Table:
    first = frame.head(most)
    columns = [[harmless(cell(value)) for value in first[name].tolist()] for name in first.columns]
    left_out = len(frame) - len(first)
    return Table(tuple(str(name) for name in frame.columns), tuple(zip(*columns, strict=True)), left_out)


def _ranked(
    row: Mapping[Any, Any], column: str, accounts: Accounts, subject: Subject, cores: tuple[int, ...]
) -> Ranked:
    judged, low, high = (float(row[c]) for c in (column, "lower", "upper"))
    label = float(row["label"])
    bounded = np.isfinite(low) and np.isfinite(high)
    shown = short_probability if column == "probability" else cell
    places = (low, judged, high) if column == "probability" else (np.nan,) * 3
    known, tone = _known(label, subject) if "value" not in row else (f"labelled {label:.4g}", "")
    return Ranked(
        rank=int(row["rank"]),
        name=harmless(str(row["entity"])),
        key=accounts.key(subject.mode, row["entity"]),
        judged=shown(judged),
        interval=f"{shown(low)} to {shown(high)}" if bounded else "",
        low=_place(places[0]),
        middle=_place(places[1]),
        high=_place(places[2]),
        reviews=f"{int(row['reviews']):,}",
        label=known if np.isfinite(label) else "",
        tone=tone if np.isfinite(label) else "",
        cores=cores,
        reasons=accounts.reasons_for(subject.mode, row["entity"], subject.name)[:REASONS],
    )


def _known(label: float, subject: Subject) -> tuple[str, str]:
    """What a label says, and its tone. One of a further target says nothing of the others, so it names its own."""
    if subject.main:
        return ("known bad", "bad") if label > 0 else ("known good", "good")
    target = harmless(subject.name or "", 30)
    return (f"known: {target}", "bad") if label > 0 else (f"known: no {target}", "")


def _cores_of(model: RingDetector, mode: str, codes: Numbers) -> list[tuple[int, ...]]:
    numbers: dict[int, list[int]] = {int(code): [] for code in codes}
    for core in model.cores():
        if mode in core.members:
            for code in np.intersect1d(core.members[mode].codes, codes).tolist():
                numbers[code].append(core.number)
    return [tuple(numbers[int(code)]) for code in codes]


def _place(value: float) -> float | None:
    return round(100 * float(value), 1) if np.isfinite(value) else None
