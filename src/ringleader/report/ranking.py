"""The ranked entities of a mode, with the reasons for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.detector import RingDetector
from ringleader.judge import OWN_LABEL
from ringleader.judge.inputs import Inputs
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.plot.score_data import column_of, scores
from ringleader.report.context import Ranked, RankingSection, ShownReason
from ringleader.wording import cell, harmless, percent, plural

TOP, OTHER_TOP = 50, 15
"""Entities that are listed: for the main target of a mode, and for each other one."""
REASONS = 3
LEAST = 0.05
"""Of the largest contribution: a smaller one is no reason."""


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
        mine = [t for t, target in enumerate(targets) if target.mode == k]
        mine.sort(key=lambda t: (targets[t].name != DEFAULT_TARGET, targets[t].name))
        wanted += [Subject(tensor.modes[k], t, targets[t].name, t == mine[0]) for t in mine]
        if not mine and tensor.vocabularies[k].kind == "id":
            wanted.append(Subject(tensor.modes[k], None, None))
    return sorted(wanted, key=lambda s: (not s.main, s.target is None))


def ranking(model: RingDetector, subject: Subject, key: str) -> RankingSection:
    """The first entities of a mode, as the page shows them."""
    frame = model.scores(subject.mode, subject.name)
    column = column_of(frame)
    first = frame.head(TOP if subject.main else OTHER_TOP)
    k = model.tensor_.mode_index(subject.mode)
    codes = model.tensor_.vocabularies[k].lookup(first["entity"].to_numpy()).astype(np.int64)
    reasons, note = main_reasons(model, subject, codes)
    in_core = _cores_of(model, subject.mode, codes)
    mode = harmless(subject.mode, 30)
    about = f" by {harmless(subject.name, 30)}" if subject.name not in (None, DEFAULT_TARGET) else ""
    rows = tuple(_ranked(row, column, reasons[i], in_core[i]) for i, row in enumerate(first.to_dict("records")))
    return RankingSection(
        key=key,
        heading=f"{mode[:1].upper()}{plural(mode)[1:]} to look at first{about}",
        main=subject.main,
        mode=mode,
        column=column,
        interval=any(row.interval for row in rows),
        note=note,
        total=len(frame),
        rows=rows,
        chart=scores(frame, subject.mode, subject.name),
    )


def _ranked(row: Mapping[Any, Any], column: str, reasons: tuple[ShownReason, ...], cores: tuple[int, ...]) -> Ranked:
    judged, low, high = (float(row[c]) for c in (column, "lower", "upper"))
    label = float(row["label"])
    bounded = np.isfinite(low) and np.isfinite(high)
    shown = _probability if column == "probability" else cell
    places = (low, judged, high) if column == "probability" else (np.nan,) * 3
    known = ("known bad" if label > 0 else "known good") if "value" not in row else f"labelled {label:.4g}"
    return Ranked(
        rank=int(row["rank"]),
        name=harmless(str(row["entity"])),
        judged=shown(judged),
        interval=f"{shown(low)} to {shown(high)}" if bounded else "",
        low=_place(places[0]),
        middle=_place(places[1]),
        high=_place(places[2]),
        reviews=f"{int(row['reviews']):,}",
        label=known if np.isfinite(label) else "",
        cores=cores,
        reasons=reasons,
    )


def main_reasons(
    model: RingDetector, subject: Subject, codes: npt.NDArray[np.int64]
) -> tuple[list[tuple[ShownReason, ...]], str]:
    """The largest contributions to the suspicion of each entity, and how the score was made."""
    inputs = model.inputs(subject.mode, subject.name)
    scorer = model.snapshot_.scorer(subject.mode, subject.name)
    weighed, note = scorer.contributions(codes), scorer.note
    # What leaving out the own label takes away is no reason.
    names = tuple(name for name in weighed.names if name != OWN_LABEL)
    amounts = weighed.amounts[:, : len(names)]
    mode = plural(harmless(subject.mode, 30))
    return [_largest(inputs, names, row, int(code), mode) for code, row in zip(codes, amounts, strict=True)], note


def _largest(inputs: Inputs, names: tuple[str, ...], amounts: Floats, code: int, mode: str) -> tuple[ShownReason, ...]:
    order = np.argsort(-amounts, kind="stable")[:REASONS]
    least = LEAST * max(float(np.abs(amounts).max(initial=0.0)), 1e-12)
    reasons = []
    for j in order:
        if amounts[j] < least:
            continue
        name, text, unusual = names[j], names[j].capitalize(), ""
        if name in inputs.names:
            values = inputs.values[:, inputs.names.index(name)]
            above = float((values < values[code]).mean())
            text = inputs.sentence(name, code)
            unusual = f"more than {_most(above)} of {mode}" if above >= 0.5 else ""
        reasons.append(ShownReason(harmless(text, 200), f"{amounts[j]:+.2f}", unusual))
    return tuple(reasons)


def _cores_of(model: RingDetector, mode: str, codes: npt.NDArray[np.int64]) -> list[tuple[int, ...]]:
    numbers: dict[int, list[int]] = {int(code): [] for code in codes}
    for core in model.cores():
        if mode in core.members:
            for code in np.intersect1d(core.members[mode].codes, codes).tolist():
                numbers[code].append(core.number)
    return [tuple(numbers[int(code)]) for code in codes]


def _most(share: float) -> str:
    """A share that never rounds up to all."""
    return f"{np.floor(share * 1000) / 10:g}%" if share < 1 else percent(share)


def _probability(value: float) -> str:
    return f"{value:.1%}" if 0.0005 <= value <= 0.9995 else ("> 99.9%" if value > 0.5 else "< 0.1%")


def _place(value: float) -> float | None:
    return round(100 * float(value), 1) if np.isfinite(value) else None
