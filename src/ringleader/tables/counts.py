"""The column that says how often each row counts: SQL for its values, and for the reasons to refuse them."""

from __future__ import annotations

from ringleader.tables.columns import SourceColumn, as_double, missing, named
from ringleader.tables.relation import Relation
from ringleader.tables.schema import Axis

NO_COUNT = "is not a count: "
"""Within every reason to refuse a count, but that there is none."""

LARGEST_COUNT = 10**9
"""How often a row may count."""


def count_column(relation: Relation, k: int, axis: Axis) -> tuple[SourceColumn, bool]:
    """Counts are whole numbers from 1 on. The column, and whether any row of any process has to be refused for it.

    k : its place among the columns of every part.
    """
    values, reasons = [], []
    word = named(axis)
    for part in relation.parts:
        x = as_double(part, k)
        values.append(f"TRY_CAST({x} AS BIGINT)")
        reasons.append(
            f"CASE WHEN {missing(part, k)} THEN 'missing {word}' "
            f"WHEN {x} IS NULL OR isnan({x}) THEN '{word} {NO_COUNT}not a number' "
            f"WHEN {x} < 1 THEN '{word} {NO_COUNT}below 1' "
            f"WHEN {x} > {LARGEST_COUNT} THEN '{word} {NO_COUNT}above {LARGEST_COUNT:,}' "
            f"WHEN {x} <> floor({x}) THEN '{word} {NO_COUNT}not a whole number' END"
        )
    column = SourceColumn(axis, "count", tuple(values), tuple(values), tuple(reasons))
    bad = any(
        relation.rows(f"SELECT 1 FROM {part.relation} WHERE {reason} IS NOT NULL LIMIT 1")
        for part, reason in zip(relation.parts, reasons, strict=True)
    )
    return column, any(relation.everyone(bad))
