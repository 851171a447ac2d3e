"""The only gate for input: what every column means, which rows can be used, and why others cannot.

Works in SQL on the open relation: decides the unit of the times and the scale of the ratings on
the whole column, then gives each row a reason to be refused, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ringleader.arrays import Frozen
from ringleader.errors import InputError
from ringleader.tables.advice import advice, encoding_advice
from ringleader.tables.columns import SourceColumn, as_double, as_text, is_numeric, missing, named
from ringleader.tables.counts import NO_COUNT, count_column
from ringleader.tables.relation import UNPARSED_EXAMPLES, Example, Relation, SourceFile, quoted
from ringleader.tables.schema import ROLE_OF_MODE, Axis, graded
from ringleader.tables.times import TimeSpan, time_column
from ringleader.wording import counted, harmless, html_text

MAX_DISTINCT_NUMBERS = 50
NUMBER_BINS = 20
EXAMPLES_PER_REASON = 3
LARGEST_RATING = 1e30
"""Ratings are squared, multiplied and summed."""


@dataclass(frozen=True)
class CheckReport(Frozen):
    """What was read, what was used, and what was not. ``duplicates`` are exact copies of earlier rows;
    they stay in the counts of their cells. ``count`` is the column that says how often each row counts, where there is
    one, and ``counted`` how often all rows that were used do."""

    source: str
    columns: Mapping[str, str]
    guessed: Mapping[str, str]
    dropped: tuple[str, ...]
    rows: int
    used: int
    cells: int
    duplicates: int
    rejected: Mapping[str, int]
    examples: tuple[Example, ...]
    modes: Mapping[str, int]
    time: TimeSpan | None
    warnings: tuple[str, ...] = ()
    count: str | None = None
    counted: int | None = None

    @property
    def odd(self) -> tuple[str, ...]:
        """What is to be known before the table is trusted: rows that were left out and why, and odd columns."""
        missing = [f"no column for {role}: the model does without it" for role in self.missing]
        return (*self.left_out, *self.warnings, *missing)

    @property
    def left_out(self) -> tuple[str, ...]:
        """How many rows were left out, a sentence for each reason; of counts with the place of the first."""
        of_counts = [e for e in self.examples if NO_COUNT in e.reason or e.reason == f"missing {self.count}"]
        first = {example.reason: example.where for example in reversed(of_counts)}
        return tuple(
            f"{counted(number, 'row')} left out: {reason}" + (f", first at {first[reason]}" if reason in first else "")
            for reason, number in self.rejected.items()
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """The roles that no column plays, as ``--column`` names them: ``timestamp`` for the mode ``week``."""
        return tuple(ROLE_OF_MODE.get(mode, mode) for mode in self.dropped)

    def lines(self) -> list[str]:
        """What was read, in words."""
        span = f", from {str(self.time.first)[:10]} to {str(self.time.last)[:10]}" if self.time else ""
        modes = ", ".join(counted(number, mode) for mode, number in self.modes.items())
        lines = [f"{counted(self.rows, 'row')} of {self.source}, {self.used:,} used: {modes}{span}"]
        if self.counted is not None:
            lines.append(f"{self.count} says how often each row counts: {self.counted:,} in all")
        return [*lines, *self.odd]

    def __repr__(self) -> str:
        return "\n".join(harmless(line, 400) for line in self.lines())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html_text(line)}</p>" for line in self.lines())

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "source": self.source,
            "columns": dict(self.columns),
            "guessed": dict(self.guessed),
            "dropped": list(self.dropped),
            "rows": self.rows,
            "used": self.used,
            "cells": self.cells,
            "duplicates": self.duplicates,
            "rejected": dict(self.rejected),
            "examples": [asdict(example) for example in self.examples],
            "modes": dict(self.modes),
            "time": asdict(self.time) if self.time else None,
            "warnings": list(self.warnings),
            "count": self.count,
            "counted": self.counted,
        }


@dataclass
class Checked:
    """A relation with its columns understood."""

    relation: Relation
    columns: list[SourceColumn]
    rows: int  # that could be parsed, in the files of this process
    total: int  # rows read in all files, those that could not even be parsed among them
    dirty: bool = False
    time: TimeSpan | None = None
    count: SourceColumn | None = None
    _refused: Counter[str] = field(default_factory=Counter)  # what every process has said already
    _shown: list[Example] = field(default_factory=list)

    @property
    def read(self) -> list[SourceColumn]:
        """All columns in the order of those of each part: those of the axes, and the count where there is one."""
        return self.columns if self.count is None else [*self.columns, self.count]

    def select(self, values: list[int], exact: list[int] | None = None) -> str:
        """SQL over all parts: columns ``value_k`` and ``exact_k`` of the axes asked for; and, with any exact ones
        asked for, how often the row counts, as ``weight``.

        Where anything is amiss, rows with a reason to be refused are left out.
        """
        selects = []
        for p, part in enumerate(self.relation.parts):
            items = [f"{self.columns[k].values[p]} AS value_{k}" for k in values]
            items += [f"{self.columns[k].exact[p]} AS exact_{k}" for k in exact or []]
            if exact is not None and self.count is not None:
                items.append(f"{self.count.values[p]} AS weight")
            where = f" WHERE {self.reason(p)} IS NULL" if self.dirty else ""
            selects.append(f"SELECT {', '.join(items)} FROM {part.relation}{where}")
        return " UNION ALL ".join(selects)

    def reason(self, p: int) -> str:
        """SQL: why a row of a part cannot be used, or NULL. The first reason counts."""
        return f"coalesce({', '.join(column.reasons[p] for column in self.read)}, NULL)"

    def refuse(self, *, strict: bool) -> None:
        """Counts the rows that cannot be used and finds the first few; with ``strict``, refuses them."""
        relation = self.relation
        self._join_refused(UNPARSED_EXAMPLES)
        if self.dirty:
            self._count_refused()
        self._join_refused()
        relation.examples.sort(key=_place)
        total = sum(relation.rejected.values())
        if strict and total:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in relation.rejected.most_common())
            first = relation.examples[0]
            raise InputError(
                f"{total:,} of {counted(self.total, 'row')} cannot be used ({reasons}); first at {first.where}; "
                f"correct them, or leave out --strict to continue without them{encoding_advice(relation.rejected)}"
            )
        if total == self.total:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in relation.rejected.most_common())
            raise InputError(f"not one row of {relation.source} can be used: {reasons}{self._advice()}")

    def _join_refused(self, most: int | None = None) -> None:
        """Put together what every process has refused since it was joined last, and the first rows of it."""
        relation = self.relation
        refused, shown = Counter(self._refused), list(self._shown)
        for counts, examples in relation.everyone((relation.rejected - refused, relation.examples[len(shown) :])):
            for text, number in counts.items():
                refused[text] += number
            shown += examples
        relation.rejected, relation.examples[:] = refused, shown[:most]
        self._refused, self._shown = Counter(refused), list(relation.examples)

    def _advice(self) -> str:
        """What the column that most rows fail by holds, and what it should; or how another encoding is read."""
        columns = [said for said in self.relation.everyone(self._own_advice()) if said is not None]
        if columns:
            return min(columns, key=lambda said: said[0])[1]
        return encoding_advice(self.relation.rejected)

    def _own_advice(self) -> tuple[int, str] | None:
        """The same from the files of this process, with the number of the column."""
        reason = self.relation.rejected.most_common(1)[0][0]
        for k, column in enumerate(self.read):
            failing: list[tuple[int, str]] = []  # the number of each file, and what its first such row holds
            for part, reasons in zip(self.relation.parts, column.reasons, strict=True):
                if quoted(reason) not in reasons:
                    continue
                shown = f"coalesce(left(CAST({part.columns[k]} AS VARCHAR), 40), '') AS shown"
                firsts = self.relation.rows(
                    f"SELECT file, arg_min(shown, row) FROM (SELECT {part.numbered}, {shown}, {reasons} AS reason "
                    f"FROM {part.relation}) WHERE reason = {quoted(reason)} GROUP BY file"
                )
                failing += [(part.files[file].number, value) for file, value in firsts]
            if failing:
                return k, f"; {advice(column.axis, reason, min(failing)[1])}"
        return None

    def _count_refused(self) -> None:
        """Counts the rows of every file that cannot be used, and remembers the first few for each reason."""
        refused: dict[int, list[tuple[SourceFile, str, int, list[int], list[str]]]] = {}
        for p, part in enumerate(self.relation.parts):
            texts = ", ".join(
                f"coalesce({quoted(c.axis.column + '=')} || left(CAST({sql} AS VARCHAR), 40), '')"
                for c, sql in zip(self.read, part.columns, strict=True)
            )
            by_reason = self.relation.rows(
                f"SELECT file, reason, count(*), min(row, {EXAMPLES_PER_REASON}), "
                f"arg_min(shown, row, {EXAMPLES_PER_REASON}) FROM (SELECT {part.numbered}, {self.reason(p)} AS reason, "
                f"concat_ws(' ', {texts}) AS shown FROM {part.relation}) "
                "WHERE reason IS NOT NULL GROUP BY file, reason ORDER BY reason"
            )
            for file, *reasons in by_reason:
                source = part.files[file]
                refused.setdefault(source.number, []).append((source, *reasons))
        for _, reasons in sorted(refused.items()):
            self._remember(reasons)

    def _remember(self, reasons: list[tuple[SourceFile, str, int, list[int], list[str]]]) -> None:
        """The same of one file. reasons : of each why, how often, and the numbers and texts of the first rows."""
        examples = []
        for _, text, number, rows, texts in reasons:
            self.relation.rejected[text] += number
            examples += [(int(row), text, shown) for row, shown in zip(rows, texts, strict=True)]
        examples.sort()
        places = reasons[0][0].places([row for row, _, _ in examples])
        self.relation.examples.extend(
            Example(place, text, shown) for place, (_, text, shown) in zip(places, examples, strict=True)
        )


def _place(example: Example) -> tuple[str, int]:
    """The file and the line (or row) of an example, so that what could not be parsed stands among the others."""
    name, _, number = example.where.rpartition(" ")
    return (name, int(number)) if number.isdecimal() else (example.where, 0)


def check(relation: Relation) -> Checked:
    """Understands every column of an open relation."""
    rows = sum(int(relation.rows(f"SELECT count(*) FROM {part.relation}")[0][0]) for part in relation.parts)
    total = sum(relation.everyone(rows + sum(relation.rejected.values())))
    if total == 0:
        raise InputError(f"{relation.source} has column names but no rows")
    checked = Checked(relation, [], rows, total)
    rating = graded(relation.schema.axes)
    for k, axis in enumerate(relation.schema.axes):
        if axis.kind == "time":
            timed = time_column(relation, k, axis)
            checked.time = checked.time or timed.span
            checked.dirty |= timed.dirty
            column = timed.column
        elif axis.kind == "rating" or (axis is rating and all_numeric(checked, k)):
            column = number_column(checked, k, axis)
        else:
            column = text_column(checked, k, axis)
            if axis.kind == "category" and rating is None and all_numeric(checked, k):
                said = (
                    f"{axis.mode} is a category, so its numbers have no order; "
                    f"if they are ratings, write {axis.mode}={axis.column}:rating"
                )
                column = replace(column, notes=(said,))
        checked.columns.append(column)
    if relation.schema.count is not None:
        checked.count, bad = count_column(relation, len(checked.columns), relation.schema.count)
        checked.dirty |= bad
    return checked


def text_column(checked: Checked, k: int, axis: Axis) -> SourceColumn:
    """Ids and words: taken as they are."""
    values = tuple(as_text(part, k) for part in checked.relation.parts)
    reasons = tuple(f"CASE WHEN {v} IS NULL OR {v} = '' THEN 'missing {named(axis)}' END" for v in values)
    return SourceColumn(axis, "category" if axis.kind == "category" else "id", values, values, reasons)


def all_numeric(checked: Checked, k: int) -> bool:
    """Whether every value of a category is a number written plainly: 7 is one, 007 is a name."""
    number = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"
    others = any(
        checked.relation.rows(
            f"SELECT 1 FROM {part.relation} WHERE NOT {missing(part, k)} "
            f"AND NOT regexp_full_match(trim(CAST({part.columns[k]} AS VARCHAR)), '{number}') LIMIT 1"
        )
        for part in checked.relation.parts
        if not is_numeric(part.types[k])
    )
    return not any(checked.relation.everyone(others))


def number_column(checked: Checked, k: int, axis: Axis) -> SourceColumn:
    """Ratings: numbers on any scale, in bins where they are too many."""
    parts = checked.relation.parts
    numbers = tuple(f"({as_double(part, k)} + 0.0)" for part in parts)
    word = named(axis)
    reasons = tuple(
        f"CASE WHEN {missing(part, k)} THEN 'missing {word}' WHEN {x} IS NULL THEN '{word} is not a number' "
        f"WHEN NOT isfinite({x}) THEN '{word} is not finite' "
        f"WHEN abs({x}) > {LARGEST_RATING!r} THEN '{word} is too large' END"
        for part, x in zip(parts, numbers, strict=True)
    )
    union = " UNION ALL ".join(
        f"SELECT {x} AS x, {r} AS reason FROM {part.relation}"
        for part, x, r in zip(parts, numbers, reasons, strict=True)
    )
    tallies = checked.relation.rows(f"SELECT x, count(*), reason IS NULL FROM ({union}) GROUP BY ALL ORDER BY x")
    by_value: Counter[float] = Counter()
    for others in checked.relation.everyone(tallies):
        checked.dirty |= any(not good for _, _, good in others)
        by_value.update({x: count for x, count, good in others if good})
    distinct = np.array(sorted(by_value), dtype=np.float64)
    column = SourceColumn(axis, "number", numbers, numbers, reasons)
    if len(distinct) <= MAX_DISTINCT_NUMBERS:
        return column
    weights = np.array([by_value[x] for x in distinct], dtype=np.float64)
    edges = quantile_edges(distinct, weights)
    said = f"{axis.mode} has {len(distinct):,} distinct values; they are put into {len(edges)} bins of about equal size"
    return replace(binned(column, edges), notes=(said,))


def quantile_edges(values: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
    """Left edges of at most NUMBER_BINS bins that hold about equally many rows. Values ascend."""
    below = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    starts = np.unique(np.searchsorted(below, np.arange(NUMBER_BINS) / NUMBER_BINS))
    return tuple(float(values[i]) for i in starts)


def binned(column: SourceColumn, edges: tuple[float, ...]) -> SourceColumn:
    """The column with each number replaced by the left edge of its bin."""
    steps = " ".join(f"WHEN {{x}} >= {edge!r}::DOUBLE THEN {edge!r}::DOUBLE" for edge in reversed(edges))
    whole = f"CASE {steps} ELSE {edges[0]!r}::DOUBLE END"
    values = tuple(whole.replace("{x}", x) for x in column.exact)
    return SourceColumn(column.axis, "number", values, column.exact, column.reasons, edges)
