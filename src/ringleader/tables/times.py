"""Times: the unit of a column, decided on all of it, and SQL for the bin of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ringleader.tables.columns import EXACT, SourceColumn, as_double, as_text, is_numeric, is_time, missing, named
from ringleader.tables.relation import Relation, TablePart
from ringleader.tables.schema import Axis
from ringleader.wording import counted

LAST_MICROSECOND = 4_133_980_800_000_000  # 2101-01-01
MONDAY = 345_600  # 1970-01-05, so that weeks begin on Mondays
# A time in one of these units between 1973 and 2100 has a magnitude that no other unit gives it.
UNITS: dict[str, tuple[float, float, float]] = {  # unit: (from, to, microseconds)
    "seconds": (0, 1e11, 1e6),
    "milliseconds": (1e11, 1e14, 1e3),
    "microseconds": (1e14, 1e17, 1.0),
    "nanoseconds": (1e17, 1e20, 1e-3),
}
ISO = "ISO 8601"
DATES = "YYYYMMDD"
# Whole numbers such as 20190103. As Unix seconds they would all lie in 25 days of 1970, and few of those spell a date.
FIRST_DATE, LAST_DATE = 19_000_101, 21_001_231
BEFORE_1995 = 788_918_400_000_000
_LIKE_DATES = "{} looks like a date written as a number, but other times of the column do not; write it as {}"
_EARLY = "most times lie before 1995 when read as {}; is that the right column and unit?"
SECONDS_IN = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
WHOLE_TYPES = ("INTEGER", "BIGINT", "UINTEGER")
DECIMAL = "DECIMAL(38, 18)"  # times of every unit, and as many of their decimals as fit
NANOSECOND_TYPES = ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")
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


class Timed(NamedTuple):
    """A column of times, what it turned out to hold, and whether rows must be refused."""

    column: SourceColumn
    span: TimeSpan | None = None
    dirty: bool = False


def time_column(relation: Relation, k: int, axis: Axis) -> Timed:
    """Decides the unit on the whole column, and states it."""
    whole_numbers = _whole_number_time(relation, k, axis)
    if whole_numbers is not None:
        return whole_numbers
    native = [is_time(part.types[k]) for part in relation.parts]
    unit, like_date = ("timestamps", None) if all(relation.everyone(all(native))) else _unit(relation, k)
    word = named(axis)
    values, exact, reasons = [], [], []
    for part, is_native in zip(relation.parts, native, strict=True):
        sql = part.columns[k]
        if is_native:
            # The cast would round nanoseconds, which text and numbers do not do.
            fine = part.types[k] in NANOSECOND_TYPES
            micros = f"epoch_ns({sql}) // 1000" if fine else f"epoch_us(TRY_CAST({sql} AS TIMESTAMPTZ))"
            bad, wrong = f"({micros}) IS NULL", "false"
        elif unit == ISO:
            micros = f"epoch_us(TRY_CAST(trim(CAST({sql} AS VARCHAR)) AS TIMESTAMPTZ))"
            bad, wrong = f"{micros} IS NULL", "false"
        elif unit == DATES:
            micros = f"epoch_us({_date(as_double(part, k))})"
            bad, wrong = f"{micros} IS NULL", "false"
        elif part.types[k] in WHOLE_TYPES:
            low, high, _ = UNITS[unit]
            whole, bad = f"CAST({sql} AS BIGINT)", "false"
            wrong = f"({whole} >= {high:.0f} OR {whole} <= -{high:.0f}"
            wrong += f" OR ({whole} <> 0 AND {whole} < {low:.0f} AND {whole} > -{low:.0f}))" if low else ")"
            micros = f"CASE WHEN NOT {wrong} THEN {WHOLE_MICROSECONDS[unit].format(whole)} END"
        else:
            low, high, _ = UNITS[unit]
            number = as_double(part, k)
            bad = f"({number} IS NULL OR NOT isfinite({number}))"
            wrong = f"(abs({number}) >= {high} OR ({number} <> 0 AND abs({number}) < {low}))"
            micros = f"CASE WHEN NOT ({bad} OR {wrong}) THEN {_microseconds(part, k, unit)} END"
        outside = f"({micros} < 0 OR {micros} >= {LAST_MICROSECOND})"
        width = axis.bin_seconds or 1
        shift = MONDAY if width % 604_800 == 0 else 0
        # Whole division rounds towards zero, so a width is added to keep what is divided positive.
        values.append(f"((({micros}) // 1000000 + {width - shift}) // {width} * {width} + {shift - width})")
        exact.append(micros)
        reasons.append(
            f"CASE WHEN {missing(part, k)} THEN 'missing {word}' WHEN {bad} THEN '{word} is not a time' "
            f"WHEN {wrong} THEN '{word} is in another unit than {unit}' "
            f"WHEN {outside} THEN '{word} is outside 1970 to 2100' END"
        )
    union = " UNION ALL ".join(
        f"SELECT {m} AS m, {r} AS reason FROM {part.relation}"
        for part, m, r in zip(relation.parts, exact, reasons, strict=True)
    )
    firsts, lasts, early, good, bad_rows, dated_zero = _together(
        relation,
        "SELECT min(m) FILTER (reason IS NULL), max(m) FILTER (reason IS NULL), "
        f"count(*) FILTER (reason IS NULL AND m < {BEFORE_1995}), count(m) FILTER (reason IS NULL), "
        f"count(*) FILTER (reason IS NOT NULL), count(*) FILTER (m >= 0 AND m < 86400000000) FROM ({union})",
    )
    zeros = sum(dated_zero)
    notes: list[str] = []
    span = TimeSpan(unit, _iso(min(firsts)), _iso(max(lasts))) if firsts else None
    if span is not None:
        if unit == ISO:
            notes.append("times without a zone are read as UTC")
        if zeros:
            dated = f"{counted(zeros, 'row')} {'is' if zeros == 1 else 'are'} dated 1970-01-01"
            notes.append(f"{dated}; a time of zero is usually a missing one")
        if like_date is not None:
            notes.append(_LIKE_DATES.format(like_date, f"{like_date[:4]}-{like_date[4:6]}-{like_date[6:]}"))
        elif _most(sum(early), sum(good)) and not zeros:
            notes.append(_EARLY.format(unit))
    column = SourceColumn(axis, "time", tuple(values), tuple(exact), tuple(reasons), notes=tuple(notes))
    return Timed(column, span, sum(bad_rows) > 0)


def _most(some: int, of: int) -> bool:
    return 2 * some > of


def _together(relation: Relation, query: str) -> list[list[int]]:
    """The columns of a query that gives one row in every process, without those that are NULL."""
    answers = relation.everyone(relation.rows(query)[0])
    return [[value for value in column if value is not None] for column in zip(*answers, strict=True)]


def _whole_number_time(relation: Relation, k: int, axis: Axis) -> Timed | None:
    """Whole numbers that are all there and all of one unit, as in most files: nothing to guard against, so short SQL.

    None where anything is odd; then every row is looked at.
    """
    parts = relation.parts
    if not all(relation.everyone(all(part.types[k] in WHOLE_TYPES for part in parts))):
        return None
    union = " UNION ALL ".join(f"SELECT CAST({part.columns[k]} AS BIGINT) AS t FROM {part.relation}" for part in parts)
    counts, dated, firsts, lasts = _together(relation, f"SELECT count(*), count(t), min(t), max(t) FROM ({union})")
    rows, there, first, last = sum(counts), sum(dated), min(firsts, default=0), max(lasts, default=0)
    unit = next((u for u, (low, high, _) in UNITS.items() if there and low <= first and last < high), None)
    if unit is None or there < rows or first <= 0 or first <= LAST_DATE:
        return None
    per_second = SECONDS_IN[unit]
    if first < per_second * 86_400 or last >= LAST_MICROSECOND // 1_000_000 * per_second:
        return None
    width = axis.bin_seconds or 1
    shift = MONDAY if width % 604_800 == 0 else 0
    whole = tuple(f"CAST({part.columns[k]} AS BIGINT)" for part in parts)
    seconds = [t if per_second == 1 else f"{t} // {per_second}" for t in whole]
    values = tuple(f"(({s} + {width - shift}) // {width} * {width} + {shift - width})" for s in seconds)
    exact = tuple(WHOLE_MICROSECONDS[unit].format(t) for t in whole)
    micros = [int(t) * 1_000_000 // per_second for t in (first, last)]
    early = [0]
    if micros[0] < BEFORE_1995:
        bound = BEFORE_1995 // 1_000_000 * per_second
        early = _together(relation, f"SELECT count(*) FROM ({union}) WHERE t < {bound}")[0]
    notes = (_EARLY.format(unit),) if _most(sum(early), rows) else ()
    column = SourceColumn(axis, "time", values, exact, ("NULL",) * len(parts), notes=notes)
    return Timed(column, TimeSpan(unit, _iso(micros[0]), _iso(micros[1])))


def _microseconds(part: TablePart, k: int, unit: str) -> str:
    """SQL: the whole microseconds of a number as it is written, digit by digit: a double has too few for nanoseconds.

    A float is read as the decimal number that it prints as, as a text file has it.
    """
    text, number = f"trim({as_text(part, k)})", as_double(part, k)
    # Without a point and a negative exponent it is a whole number, and a double has all its digits: faster.
    exact = f"abs({number}) < {EXACT} AND NOT contains({text}, '.') AND NOT contains({text}, '-')"
    decimal = f"coalesce(TRY_CAST({text} AS {DECIMAL}), TRY_CAST({number} AS {DECIMAL}))"
    return (
        f"CASE WHEN {exact} THEN {WHOLE_MICROSECONDS[unit].format(f'CAST({number} AS BIGINT)')} "
        f"ELSE CAST(floor({decimal} * {UNITS[unit][2]}) AS BIGINT) END"
    )


def _date(x: str) -> str:
    """SQL: the day that a number such as 20190103 spells, or NULL."""
    spelt = f"try_strptime(CAST(TRY_CAST({x} AS BIGINT) AS VARCHAR), '%Y%m%d')"
    return f"CASE WHEN {x} BETWEEN {FIRST_DATE} AND {LAST_DATE} AND {x} = floor({x}) THEN {spelt} END"


def _unit(relation: Relation, k: int) -> tuple[str, str | None]:
    """The unit that most values of a column are in, by their magnitude; dates where all of them spell one.

    Where only most of them spell a date they are not read so, and one of those is returned beside the unit.
    """
    sums = ["count(*) FILTER (iso)"] + [
        f"count(*) FILTER (abs(x) >= {low} AND abs(x) < {high} AND x <> 0)" for low, high, _ in UNITS.values()
    ]
    votes, dates = np.zeros(len(sums), np.int64), 0
    for part in relation.parts:
        text = f"trim(CAST({part.columns[k]} AS VARCHAR))"
        numeric = is_numeric(part.types[k])
        native = is_time(part.types[k])
        x = as_double(part, k)
        iso = (
            "true"
            if native
            else "false"
            if numeric
            else f"({x} IS NULL AND TRY_CAST({text} AS TIMESTAMPTZ) IS NOT NULL)"
        )
        *unit_votes, spelt = relation.rows(
            f"SELECT {', '.join(sums)}, count(day) "
            f"FROM (SELECT {x} AS x, {iso} AS iso, {_date(x)} AS day FROM {part.relation})"
        )[0]
        votes += np.array(unit_votes, np.int64)
        dates += spelt
    shares = relation.everyone((votes, dates))
    votes, dates = np.sum([share[0] for share in shares], axis=0), sum(share[1] for share in shares)
    if dates and dates == votes.sum():
        return DATES, None
    unit = (ISO, *UNITS)[int(np.argmax(votes))] if votes.any() else "seconds"
    return unit, _first_date(relation, k) if unit == "seconds" and 2 * dates > votes.sum() else None


def _first_date(relation: Relation, k: int) -> str | None:
    """The first of the dates that numbers of a column spell, in the first file that has any."""
    spelt: list[tuple[int, float]] = []
    for part in relation.parts:
        x = as_double(part, k)
        firsts = relation.rows(
            f"SELECT file, min(x) FROM (SELECT {part.file} AS file, {x} AS x, {_date(x)} AS day FROM {part.relation}) "
            "WHERE day IS NOT NULL GROUP BY file"
        )
        spelt += [(part.files[file].number, first) for file, first in firsts]
    first = next((own for own in relation.everyone(min(spelt, default=None)) if own is not None), None)
    return None if first is None else f"{first[1]:.0f}"


def _iso(micros: int) -> str:
    return str(np.datetime64(int(micros), "us").astype("datetime64[s]")) + "Z"
