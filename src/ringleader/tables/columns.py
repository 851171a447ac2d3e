"""How one column is read: SQL for its values, and for the reasons to refuse them."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.tables.relation import TablePart
from ringleader.tables.schema import Axis

FLOAT_TYPES = ("FLOAT", "DOUBLE")
NUMERIC_TYPES = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", *FLOAT_TYPES),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)

EXACT = 2**53
"""Whole numbers of a float column below it are exact, and are written without a point or an exponent."""


@dataclass(frozen=True)
class SourceColumn:
    """How one axis is read: SQL for its value and for the reason to refuse it, per part.

    The value is VARCHAR for text, DOUBLE for numbers, BIGINT (start of the bin in Unix seconds)
    for times. ``exact`` is the value before binning, by which exact duplicates are recognised. ``notes`` are what is
    odd about the column, for people.
    """

    axis: Axis
    kind: str  # id, category, number, time
    values: tuple[str, ...]
    exact: tuple[str, ...]
    reasons: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()


def as_text(part: TablePart, k: int) -> str:
    """An id as text. Whole numbers with gaps come as a column of floats, so 7.0 is 7 and NaN is missing."""
    sql = part.columns[k]
    if part.types[k] not in FLOAT_TYPES:
        return f"CAST({sql} AS VARCHAR)"
    whole = f"abs({sql}) < {EXACT} AND {sql} = floor({sql})"
    text = f"CASE WHEN {whole} THEN CAST(CAST({sql} AS BIGINT) AS VARCHAR) ELSE CAST({sql} AS VARCHAR) END"
    return f"CASE WHEN NOT isnan({sql}) THEN {text} END"


def is_time(kind: str) -> bool:
    return kind == "DATE" or (kind.startswith("TIMESTAMP") and not kind.endswith("]"))


def as_double(part: TablePart, k: int) -> str:
    sql = part.columns[k]
    if is_numeric(part.types[k]):
        return f"CAST({sql} AS DOUBLE)"
    return f"TRY_CAST(trim(CAST({sql} AS VARCHAR)) AS DOUBLE)"


def is_numeric(kind: str) -> bool:
    return kind in NUMERIC_TYPES or (kind.startswith("DECIMAL(") and kind.endswith(")"))


def missing(part: TablePart, k: int) -> str:
    if not part.types[k].startswith("VARCHAR"):
        return f"({part.columns[k]} IS NULL)"
    return f"({part.columns[k]} IS NULL OR trim(CAST({part.columns[k]} AS VARCHAR)) = '')"


def named(axis: Axis) -> str:
    """The name a reason gives an axis, safe inside SQL text."""
    name = "timestamp" if axis.mode == "week" else axis.mode
    return name[:60].replace("'", "''")  # cut first: a cut behind the escape could leave half of it
