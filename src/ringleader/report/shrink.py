"""Halves what a context lists, until its page is small enough. What is left out is counted."""

from __future__ import annotations

from dataclasses import replace

from ringleader.report.context import Context, CoreMembers, CoreSection, Table


def shrink(context: Context) -> Context:
    """The same context with half the rows, members and cores. Totals stay, so the page says what it left out."""
    half = max(len(context.cores) // 2, 1)
    return replace(
        context,
        rankings=tuple(replace(r, rows=r.rows[: max(len(r.rows) // 2, 5)]) for r in context.rankings),
        cores=tuple(_core(core) for core in context.cores[:half]),
        cores_table=_table(context.cores_table),
        examples=_table(context.examples),
        quality=context.quality[:20],
    )


def _core(core: CoreSection) -> CoreSection:
    return replace(core, members=tuple(CoreMembers(m.heading, _table(m.table)) for m in core.members))


def _table(table: Table) -> Table:
    kept = table.rows[: max(len(table.rows) // 2, 5)]
    return Table(table.header, kept, table.left_out + len(table.rows) - len(kept))
