"""Makes a context smaller until its page is small enough. What is left out is counted, so that the page says it.

First there are fewer account pages; then everything that is listed is halved, down to a few of each; then whole parts
go, one by one. In the end nothing is left to cut, and ``shrink`` returns what it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any, TypeVar

from ringleader.plot.charts import Chart, Components, Curve, Scores, Timeline, Training
from ringleader.report.context import Context, CoreSection, HeldOut, RankingSection, Table

FEWEST = 5
"""Rows, members and sections that are not halved any more."""
FEWEST_NOTES = 20
FEWEST_POINTS = 40
"""Points of a chart that are not halved any more."""

Item = TypeVar("Item")
AnyChart = TypeVar("AnyChart", bound=Chart)


def shrink(context: Context) -> Context:
    """The same context with less in it; the context itself where nothing more can go. Totals stay."""
    smaller = fewer_accounts(context, 3 * len(context.accounts) // 4)
    if smaller != context:
        return smaller
    smaller = _halved(context)
    if smaller != context:
        return smaller
    for name, without in PARTS.items():
        smaller = without(context)
        if smaller != context:
            return replace(smaller, left_out=(*context.left_out, (name, 0)))
    return context


def fewer_accounts(context: Context, wanted: int) -> Context:
    """So many account pages, down to the fewest: they are the most of a page."""
    left = context.accounts[: max(wanted, FEWEST)]
    cut = len(context.accounts) - len(left)
    if not cut:
        return context
    left_out = dict(context.left_out)
    left_out["account page"] = left_out.get("account page", 0) + cut
    return replace(context, accounts=left, left_out=tuple(left_out.items()))


def _halved(context: Context) -> Context:
    """Half of everything that is listed, down to the fewest."""
    sections = {"rankings": "ranking", "heldout": "held-out section", "quality": "note"}
    left_out = dict(context.left_out)
    lengths = {name: len(getattr(context, name)) for name in sections}
    smaller = replace(
        context,
        rankings=tuple(_ranking(ranking) for ranking in _first(context.rankings)),
        cores=tuple(_core(core) for core in _first(context.cores, 1)),
        cores_table=_table(context.cores_table),
        heldout=tuple(_held_out(held) for held in _first(context.heldout)),
        heldout_others=_table(context.heldout_others),
        training=_chart(context.training) if context.training is not None else None,
        components=_chart(context.components) if context.components is not None else None,
        quality=_first(context.quality, FEWEST_NOTES),
        examples=_table(context.examples),
        modes=_table(context.modes),
        settings=_table(context.settings),
    )
    for name, noun in sections.items():
        if cut := lengths[name] - len(getattr(smaller, name)):
            left_out[noun] = left_out.get(noun, 0) + cut
    return replace(smaller, left_out=tuple(left_out.items()))


def _without_core_charts(context: Context) -> Context:
    bare = [replace(core, matrix=None, timeline=None, ratings=None) for core in context.cores]
    return replace(context, cores=tuple(bare))


def _without_curves(context: Context) -> Context:
    return replace(context, heldout=tuple(replace(held, curves=()) for held in context.heldout))


PARTS: dict[str, Callable[[Context], Context]] = {
    "the charts of the cores": _without_core_charts,
    "the curves on held-out labels": _without_curves,
    "the account pages": lambda context: replace(context, accounts=()),
    "the components": lambda context: replace(context, components=None),
    "the training": lambda context: replace(context, training=None),
    "the sections of the cores": lambda context: replace(context, cores=()),
    "the held-out labels": lambda context: replace(context, heldout=(), heldout_others=Table((), ())),
    "the rankings": lambda context: replace(context, rankings=()),
}
"""What goes as a whole when halving is not enough, the least missed first."""


def _ranking(ranking: RankingSection) -> RankingSection:
    return replace(ranking, rows=_first(ranking.rows), chart=_chart(ranking.chart), first=_table(ranking.first))


def _core(core: CoreSection) -> CoreSection:
    return replace(
        core,
        matrix=_chart(core.matrix) if core.matrix is not None else None,
        timeline=_chart(core.timeline) if core.timeline is not None else None,
        ratings=_chart(core.ratings) if core.ratings is not None else None,
        members=tuple(replace(members, table=_table(members.table)) for members in core.members),
    )


def _held_out(held: HeldOut) -> HeldOut:
    return replace(held, curves=tuple(_chart(curve) for curve in held.curves))


def _table(table: Table) -> Table:
    rows = _first(table.rows)
    left_out = table.left_out + len(table.rows) - len(rows)
    return replace(table, rows=rows, left_out=left_out, keys=table.keys[: len(rows)])


def _chart(chart: AnyChart) -> AnyChart:
    """Fewer rows of numbers and, where there may be many, fewer points."""
    rows = _spread(chart.rows) if isinstance(chart, (Curve, Timeline, Training)) else _first(chart.rows)
    smaller: AnyChart = _points(chart)
    return replace(smaller, rows=rows, left_out=chart.left_out + len(chart.rows) - len(rows))


@singledispatch
def _points(chart: Any) -> Any:
    """The chart with fewer points; those of a core have few at any size of the data."""
    return chart


@_points.register
def _(chart: Training) -> Chart:
    return replace(
        chart,
        sweeps=_spread(chart.sweeps, FEWEST_POINTS),
        likelihood=_spread(chart.likelihood, FEWEST_POINTS),
        heldout=_spread(chart.heldout, FEWEST_POINTS),
    )


@_points.register
def _(chart: Scores) -> Chart:
    known = tuple((kind, _spread(scores, FEWEST_POINTS)) for kind, scores in chart.known)
    return replace(chart, known=known)


@_points.register
def _(chart: Components) -> Chart:
    return replace(chart, names=_first(chart.names, FEWEST_POINTS), shares=_first(chart.shares, FEWEST_POINTS))


def _first(items: tuple[Item, ...], fewest: int = FEWEST) -> tuple[Item, ...]:
    """The first half of them."""
    return items[: max(len(items) // 2, fewest)]


def _spread(items: tuple[Item, ...], fewest: int = FEWEST) -> tuple[Item, ...]:
    """Half of them, evenly: the first and the last stay."""
    size = max(len(items) // 2, fewest)
    if size >= len(items):
        return items
    return tuple(items[i * (len(items) - 1) // (size - 1)] for i in range(size))
