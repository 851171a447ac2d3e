"""The only gate for input: what every column means, which rows can be used, and why others cannot.

Works in SQL on the open relation: decides the unit of the times and the scale of the ratings on
the whole column, then gives each row a reason to be refused, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ringleader.errors import InputError
from ringleader.names import counted
from ringleader.tables.advice import advice
from ringleader.tables.read import Example, Part, Relation
from ringleader.tables.schema import Axis

MAX_DISTINCT_NUMBERS = 50
NUMBER_BINS = 20
EXAMPLES_PER_REASON = 3
LAST_MICROSECOND = 4_133_980_800_000_000  # 2101-01-01
MONDAY = 345_600  # 1970-01-05, so that weeks begin on Mondays
FLOAT_TYPES = ("FLOAT", "DOUBLE")
NUMERIC_TYPES = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", *FLOAT_TYPES),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
# A time in one of these units between 1973 and 2100 has a magnitude that no other unit gives it.
UNITS: dict[str, tuple[float, float, float]] = {  # unit: (from, to, microseconds)
    "seconds": (0, 1e11, 1e6),
    "milliseconds": (1e11, 1e14, 1e3),
    "microseconds": (1e14, 1e17, 1.0),
    "nanoseconds": (1e17, 1e20, 1e-3),
}
ISO = "ISO 8601"
BEFORE_1995 = 788_918_400_000_000
_EARLY = "most times lie before 1995 when read as {}; is that the right column and unit?"
SECONDS_IN = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
WHOLE_TYPES = ("INTEGER", "BIGINT", "UINTEGER")
WHOLE_MICROSECONDS = {
    "seconds": "{} * 1000000",
    "milliseconds": "{} * 1000",
    "microseconds": "{}",
    "nanoseconds": "{} // 1000",
}


@dataclass(frozen=True)
class TimeSpan:
    """What the times of a table turned out to be."""

    unit: str
    first: str
    last: str


@dataclass(frozen=True)
class CheckReport:
    """What was read, what was used, and what was not. ``duplicates`` are exact copies of earlier rows;
    they stay in the counts of their cells."""

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
        }


@dataclass(frozen=True)
class Column:
    """How one axis is read: SQL for its value and for the reason to refuse it, per part.

    The value is VARCHAR for text, DOUBLE for numbers, BIGINT (start of the bin in Unix seconds)
    for times. ``exact`` is the value before binning, by which exact duplicates are told.
    """

    axis: Axis
    kind: str  # id, category, number, time
    values: tuple[str, ...]
    exact: tuple[str, ...]
    reasons: tuple[str, ...]
    edges: tuple[float, ...] | None = None


@dataclass
class Checked:
    """A relation with its columns understood."""

    relation: Relation
    columns: list[Column]
    rows: int  # that could be parsed
    unparsed: int
    dirty: bool = False
    time: TimeSpan | None = None
    notes: list[str] = field(default_factory=list)

    def select(self, values: list[int], exact: list[int] | None = None) -> str:
        """SQL over all parts: columns ``value_k`` and ``exact_k`` of the axes asked for.

        Where anything was found amiss, rows with a reason to be refused are left out.
        """
        selects = []
        for p, part in enumerate(self.relation.parts):
            items = [f"{self.columns[k].values[p]} AS value_{k}" for k in values]
            items += [f"{self.columns[k].exact[p]} AS exact_{k}" for k in exact or []]
            where = f" WHERE {self.reason(p)} IS NULL" if self.dirty else ""
            selects.append(f"SELECT {', '.join(items)} FROM {part.relation}{where}")
        return " UNION ALL ".join(selects)

    def reason(self, p: int) -> str:
        """SQL: why a row of a part cannot be used, or NULL. The first reason counts."""
        return f"coalesce({', '.join(column.reasons[p] for column in self.columns)}, NULL)"

    def refuse(self, *, strict: bool) -> None:
        """Counts the rows that cannot be used and finds the first few; with ``strict``, refuses them."""
        relation = self.relation
        for p, part in enumerate(relation.parts):
            if self.dirty:
                self._count_part(p, part)
        relation.examples.sort(key=_place)
        total = sum(relation.rejected.values())
        if strict and total:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in relation.rejected.most_common())
            first = relation.examples[0]
            raise InputError(
                f"{total:,} of {self.total:,} rows cannot be used ({reasons}); first at {first.where}; "
                "mend them, or leave out --strict to go on without them"
            )
        if total == self.total:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in relation.rejected.most_common())
            raise InputError(f"not one row of {relation.source} can be used: {reasons}{self._advice()}")

    def _advice(self) -> str:
        """What the column that most rows fail by holds, and what it should; nothing where rows cannot be parsed."""
        reason = self.relation.rejected.most_common(1)[0][0]
        escaped = reason.replace("'", "''")
        for k, column in enumerate(self.columns):
            for part, reasons in zip(self.relation.parts, column.reasons, strict=True):
                if f"'{escaped}'" not in reasons:
                    continue
                shown = f"left(CAST({part.columns[k]} AS VARCHAR), 40) AS shown, {reasons} AS reason"
                found = self.relation.rows(
                    f"SELECT shown FROM (SELECT {shown} FROM {part.relation}) WHERE reason = '{escaped}' LIMIT 1"
                )
                if found:
                    return f"; {advice(column.axis, reason, found[0][0])}"
        return ""

    def _count_part(self, p: int, part: Part) -> None:
        relation = self.relation
        reason = self.reason(p)
        counted = relation.rows(
            f"SELECT reason, count(*) FROM (SELECT {reason} AS reason FROM {part.relation}) "
            "WHERE reason IS NOT NULL GROUP BY reason ORDER BY reason"
        )
        texts = ", ".join(
            f"coalesce('{c.axis.column.replace(chr(39), chr(39) * 2)}=' || left(CAST({sql} AS VARCHAR), 40), '')"
            for c, sql in zip(self.columns, part.columns, strict=True)
        )
        row = part.row or "row_number() OVER () - 1"
        examples: list[tuple[int, str, str]] = []
        for text, number in counted:
            relation.rejected[text] += number
            found = relation.rows(
                f"SELECT row, shown FROM (SELECT {row} AS row, {reason} AS reason, concat_ws(' ', {texts}) AS shown "
                f"FROM {part.relation}) WHERE reason = '{text.replace(chr(39), chr(39) * 2)}' "
                f"ORDER BY row LIMIT {EXAMPLES_PER_REASON}"
            )
            examples += [(int(n), text, shown) for n, shown in found]
        examples.sort()
        places = part.where([n for n, _, _ in examples])
        relation.examples.extend(
            Example(place, text, shown) for place, (_, text, shown) in zip(places, examples, strict=True)
        )

    @property
    def total(self) -> int:
        """Rows read, those that could not even be parsed among them."""
        return self.rows + self.unparsed


def _place(example: Example) -> tuple[str, int]:
    """The file and the line (or row) of an example, so that what could not be parsed stands among the others."""
    name, _, number = example.where.rpartition(" ")
    return (name, int(number)) if number.isdecimal() else (example.where, 0)


def check(relation: Relation) -> Checked:
    """Understands every column of an open relation."""
    rows = sum(int(relation.rows(f"SELECT count(*) FROM {part.relation}")[0][0]) for part in relation.parts)
    parsed_away = sum(relation.rejected.values())
    if rows + parsed_away == 0:
        raise InputError(f"{relation.source} has column names but no rows")
    checked = Checked(relation, [], rows, parsed_away)
    for k, axis in enumerate(relation.schema.axes):
        if axis.kind == "time":
            column = _time(checked, k, axis)
        elif axis.kind == "rating" or (axis.kind == "category" and _all_numeric(checked, k)):
            column = _number(checked, k, axis)
        else:
            column = text_column(checked, k, axis)
        checked.columns.append(column)
    return checked


def text_column(checked: Checked, k: int, axis: Axis) -> Column:
    """Ids and words: taken as they are."""
    values = tuple(_as_text(part, k) for part in checked.relation.parts)
    reasons = tuple(f"CASE WHEN {v} IS NULL OR {v} = '' THEN 'missing {_word(axis)}' END" for v in values)
    return Column(axis, "category" if axis.kind == "category" else "id", values, values, reasons)


def _as_text(part: Part, k: int) -> str:
    """An id as text. Whole numbers with gaps come as a column of floats, so 7.0 is 7 and NaN is missing."""
    sql = part.columns[k]
    if part.types[k] not in FLOAT_TYPES:
        return f"CAST({sql} AS VARCHAR)"
    whole = f"abs({sql}) < 9007199254740992 AND {sql} = floor({sql})"
    text = f"CASE WHEN {whole} THEN CAST(CAST({sql} AS BIGINT) AS VARCHAR) ELSE CAST({sql} AS VARCHAR) END"
    return f"CASE WHEN NOT isnan({sql}) THEN {text} END"


def _is_time(kind: str) -> bool:
    return kind == "DATE" or (kind.startswith("TIMESTAMP") and not kind.endswith("]"))


def _as_double(part: Part, k: int) -> str:
    sql = part.columns[k]
    if _is_numeric(part.types[k]):
        return f"CAST({sql} AS DOUBLE)"
    return f"TRY_CAST(trim(CAST({sql} AS VARCHAR)) AS DOUBLE)"


def _is_numeric(kind: str) -> bool:
    return kind in NUMERIC_TYPES or (kind.startswith("DECIMAL(") and kind.endswith(")"))


def _missing(part: Part, k: int) -> str:
    if not part.types[k].startswith("VARCHAR"):
        return f"({part.columns[k]} IS NULL)"
    return f"({part.columns[k]} IS NULL OR trim(CAST({part.columns[k]} AS VARCHAR)) = '')"


def _all_numeric(checked: Checked, k: int) -> bool:
    """Whether every value of a category is a number written plainly: 7 is one, 007 is a name."""
    plain = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"
    return not any(
        checked.relation.rows(
            f"SELECT 1 FROM {part.relation} WHERE NOT {_missing(part, k)} "
            f"AND NOT regexp_full_match(trim(CAST({part.columns[k]} AS VARCHAR)), '{plain}') LIMIT 1"
        )
        for part in checked.relation.parts
        if not _is_numeric(part.types[k])
    )


def _number(checked: Checked, k: int, axis: Axis) -> Column:
    parts = checked.relation.parts
    numbers = tuple(f"({_as_double(part, k)} + 0.0)" for part in parts)
    word = _word(axis)
    reasons = tuple(
        f"CASE WHEN {_missing(part, k)} THEN 'missing {word}' WHEN {x} IS NULL THEN '{word} is not a number' "
        f"WHEN NOT isfinite({x}) THEN '{word} is not finite' END"
        for part, x in zip(parts, numbers, strict=True)
    )
    union = " UNION ALL ".join(
        f"SELECT {x} AS x, {r} AS reason FROM {part.relation}"
        for part, x, r in zip(parts, numbers, reasons, strict=True)
    )
    counted = checked.relation.rows(f"SELECT x, count(*), reason IS NULL FROM ({union}) GROUP BY ALL ORDER BY x")
    checked.dirty |= any(not good for _, _, good in counted)
    distinct = np.array([x for x, _, good in counted if good], dtype=np.float64)
    column = Column(axis, "number", numbers, numbers, reasons)
    if len(distinct) <= MAX_DISTINCT_NUMBERS:
        return column
    weights = np.array([count for _, count, good in counted if good], dtype=np.float64)
    edges = quantile_edges(distinct, weights)
    checked.notes.append(
        f"{axis.mode} has {len(distinct):,} distinct values; they are put into {len(edges)} bins of about equal size"
    )
    return binned(column, edges)


def quantile_edges(values: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
    """Left edges of at most NUMBER_BINS bins that hold about equally many rows. Values ascend."""
    below = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    starts = np.unique(np.searchsorted(below, np.arange(NUMBER_BINS) / NUMBER_BINS))
    return tuple(float(values[i]) for i in starts)


def binned(column: Column, edges: tuple[float, ...]) -> Column:
    """The column with each number replaced by the left edge of its bin."""
    steps = " ".join(f"WHEN {{x}} >= {edge!r}::DOUBLE THEN {edge!r}::DOUBLE" for edge in reversed(edges))
    whole = f"CASE {steps} ELSE {edges[0]!r}::DOUBLE END"
    values = tuple(whole.replace("{x}", x) for x in column.exact)
    return Column(column.axis, "number", values, column.exact, column.reasons, edges)


def _time(checked: Checked, k: int, axis: Axis) -> Column:
    """Decides the unit on the whole column, and states it."""
    plain = _plain_time(checked, k, axis)
    if plain is not None:
        return plain
    relation = checked.relation
    native = [_is_time(part.types[k]) for part in relation.parts]
    unit = "timestamps" if all(native) else _unit(relation, k)
    word = _word(axis)
    values, exact, reasons = [], [], []
    for part, is_native in zip(relation.parts, native, strict=True):
        sql, missing = part.columns[k], _missing(part, k)
        if is_native:
            micros, wrong = f"epoch_us(TRY_CAST({sql} AS TIMESTAMPTZ))", "false"
            bad = f"{micros} IS NULL"
        elif unit == ISO:
            micros = f"epoch_us(TRY_CAST(trim(CAST({sql} AS VARCHAR)) AS TIMESTAMPTZ))"
            bad, wrong = f"{micros} IS NULL", "false"
        elif part.types[k] in WHOLE_TYPES:
            low, high, _ = UNITS[unit]
            whole, bad = f"CAST({sql} AS BIGINT)", "false"
            wrong = f"({whole} >= {high:.0f} OR {whole} <= -{high:.0f}"
            wrong += f" OR ({whole} <> 0 AND {whole} < {low:.0f} AND {whole} > -{low:.0f}))" if low else ")"
            micros = f"CASE WHEN NOT {wrong} THEN {WHOLE_MICROSECONDS[unit].format(whole)} END"
        else:
            low, high, factor = UNITS[unit]
            number = _as_double(part, k)
            bad = f"({number} IS NULL OR NOT isfinite({number}))"
            wrong = f"(abs({number}) >= {high} OR ({number} <> 0 AND abs({number}) < {low}))"
            micros = f"CAST(floor(CASE WHEN {bad} OR {wrong} THEN NULL ELSE {number} * {factor} END) AS BIGINT)"
        outside = f"({micros} < 0 OR {micros} >= {LAST_MICROSECOND})"
        width = axis.bin_seconds or 1
        shift = MONDAY if width % 604_800 == 0 else 0
        # Whole division rounds towards zero, so a width is added to keep what is divided positive.
        values.append(f"((({micros}) // 1000000 + {width - shift}) // {width} * {width} + {shift - width})")
        exact.append(micros)
        reasons.append(
            f"CASE WHEN {missing} THEN 'missing {word}' WHEN {bad} THEN '{word} is not a time' "
            f"WHEN {wrong} THEN '{word} is in another unit than {unit}' "
            f"WHEN {outside} THEN '{word} is outside 1970 to 2100' END"
        )
    union = " UNION ALL ".join(
        f"SELECT {m} AS m, {r} AS reason FROM {part.relation}"
        for part, m, r in zip(relation.parts, exact, reasons, strict=True)
    )
    first, last, mean, bad_rows, zeros = relation.rows(
        "SELECT min(m) FILTER (reason IS NULL), max(m) FILTER (reason IS NULL), "
        "avg(m) FILTER (reason IS NULL), count(*) FILTER (reason IS NOT NULL), "
        f"count(*) FILTER (m >= 0 AND m < 86400000000) FROM ({union})"
    )[0]
    checked.dirty |= bad_rows > 0
    if first is not None:
        checked.time = checked.time or TimeSpan(unit, _iso(first), _iso(last))
        if unit == ISO:
            checked.notes.append("times without a zone are read as UTC")
        if zeros:
            dated = f"{counted(zeros, 'row')} {'is' if zeros == 1 else 'are'} dated 1970-01-01"
            checked.notes.append(f"{dated}; a time of zero is usually a missing one")
        elif mean < BEFORE_1995:
            checked.notes.append(_EARLY.format(unit))
    return Column(axis, "time", tuple(values), tuple(exact), tuple(reasons))


def _plain_time(checked: Checked, k: int, axis: Axis) -> Column | None:
    """Whole numbers that are all there and all of one unit, as in most files: nothing to guard against, so plain SQL.

    None where anything is odd; then every row is looked at.
    """
    parts = checked.relation.parts
    if not all(part.types[k] in WHOLE_TYPES for part in parts):
        return None
    union = " UNION ALL ".join(f"SELECT CAST({part.columns[k]} AS BIGINT) AS t FROM {part.relation}" for part in parts)
    rows, there, first, last = checked.relation.rows(f"SELECT count(*), count(t), min(t), max(t) FROM ({union})")[0]
    unit = next((u for u, (low, high, _) in UNITS.items() if there and low <= first and last < high), None)
    if unit is None or there < rows or first <= 0:
        return None
    per_second = SECONDS_IN[unit]
    if first < per_second * 86_400 or last >= LAST_MICROSECOND // 1_000_000 * per_second:
        return None
    width = axis.bin_seconds or 1
    shift = MONDAY if width % 604_800 == 0 else 0
    whole = tuple(f"CAST({part.columns[k]} AS BIGINT)" for part in parts)
    seconds = [t if per_second == 1 else f"{t} // {per_second}" for t in whole]
    values = tuple(f"(({s} + {width - shift}) // {width} * {width} + {shift - width})" for s in seconds)
    micros = [int(t) * 1_000_000 // per_second for t in (first, last)]
    checked.time = checked.time or TimeSpan(unit, _iso(micros[0]), _iso(micros[1]))
    if micros[1] < BEFORE_1995:
        checked.notes.append(_EARLY.format(unit))
    return Column(axis, "time", values, whole, ("NULL",) * len(parts))


def _unit(relation: Relation, k: int) -> str:
    """The unit that most values of a column are in, by their magnitude."""
    sums = ["count(*) FILTER (iso)"] + [
        f"count(*) FILTER (abs(x) >= {low} AND abs(x) < {high} AND x <> 0)" for low, high, _ in UNITS.values()
    ]
    votes = np.zeros(len(sums), np.int64)
    for part in relation.parts:
        text = f"trim(CAST({part.columns[k]} AS VARCHAR))"
        numeric = _is_numeric(part.types[k])
        native = _is_time(part.types[k])
        x = _as_double(part, k)
        iso = (
            "true"
            if native
            else "false"
            if numeric
            else f"({x} IS NULL AND TRY_CAST({text} AS TIMESTAMPTZ) IS NOT NULL)"
        )
        found = relation.rows(f"SELECT {', '.join(sums)} FROM (SELECT {x} AS x, {iso} AS iso FROM {part.relation})")
        votes += np.array(found[0], np.int64)
    return (ISO, *UNITS)[int(np.argmax(votes))] if votes.any() else "seconds"


def _iso(micros: int) -> str:
    return str(np.datetime64(int(micros), "us").astype("datetime64[s]")) + "Z"


def _word(axis: Axis) -> str:
    """The name a reason gives an axis, safe inside SQL text."""
    name = "timestamp" if axis.mode == "week" else axis.mode
    return name[:60].replace("'", "''")  # cut first: a cut behind the escape could leave half of it
