"""A chart as inline SVG, written from its data: shapes and texts alone, no styles, scripts, links or ids.

Colours are classes of the page, so that they follow light and dark. ``plot.draw`` puts the same charts on axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import NamedTuple

from markupsafe import escape

from ringleader.plot.charts import Chart, Components, Curve, Matrix, Ratings, Scores, Timeline, Training
from ringleader.plot.draw import COLUMN_LETTERS, FOOT, GAP, MARKED_POINTS, ROW_LETTERS, names_columns, names_rows
from ringleader.report.scales import Scale, Tick, number_ticks, percent_ticks, round_ticks, time_ticks
from ringleader.wording import plural

TEXT, SMALL = 9.0, 7.0
"""Sizes of letters, in the units of the drawing: points of a chart in its natural size."""
LETTER = 0.58
"""Width of a letter, times its size."""
WIDTH, HEIGHT = 310.0, 187.0
MATRIX_WIDTH, ROW_HEIGHT = 605.0, 11.2
SWATCH = 8.0
KNOWN = {"known bad": "bad", "known good": "good"}


class LegendEntry(NamedTuple):
    """A name above a chart: the role of its colour, and how it is drawn (fill, line, mark)."""

    name: str
    role: str
    kind: str = "fill"


class Frame(NamedTuple):
    """Where the axes of a chart lie. left, top, right, bottom : of the whole drawing, which is so wide and high."""

    left: float
    top: float
    right: float
    bottom: float
    width: float = WIDTH
    height: float = HEIGHT


USUAL = Frame(52, 22, WIDTH - 6, HEIGHT - 33)


class Drawing:
    """The shapes of one chart, the first one lowest."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.parts: list[str] = []

    def path(self, d: str, *, fill: str = "", stroke: str = "", width: float = 1.0, dashes: str = "") -> None:
        """A shape in the colours of roles."""
        classes = " ".join([f"f-{fill}"] * bool(fill) + [f"s-{stroke}"] * bool(stroke))
        looks = "" if fill else ' fill="none"'
        looks += f' stroke-width="{width:g}"' if stroke else ""
        looks += f' stroke-dasharray="{dashes}"' if dashes else ""
        if d:
            self.parts.append(f'<path class="{classes}"{looks} d="{d}"/>')

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "middle", size: float = TEXT, role: str = "muted",
        turned: bool = False,
    ) -> None:  # fmt: skip
        """A text that stands at (x, y); ``turned`` reads upwards."""
        looks = "" if anchor == "start" else f' text-anchor="{anchor}"'
        looks += "" if size == TEXT else f' font-size="{size:g}"'
        place = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if turned else ""
        said = escape(text)
        self.parts.append(f'<text class="f-{role}" x="{_n(x)}" y="{_n(y)}"{looks}{place}>{said}</text>')

    def axes(self, x: Scale, x_ticks: Sequence[Tick], y: Scale, y_ticks: Sequence[Tick], *, grid: str = "y") -> None:
        """Both axes with ticks and their names; ``grid`` names those with lines through the chart."""
        left, top, right, bottom = self.frame[:4]
        lines = [f"M{_n(left)} {_n(y(v))}H{_n(right)}" for v, _ in y_ticks]
        lines += [f"M{_n(x(v))} {_n(bottom)}V{_n(top)}" for v, _ in x_ticks] if grid == "both" else []
        self.path("".join(lines), stroke="grid", width=0.7)
        marks = [f"M{_n(left - 3)} {_n(y(v))}h3" for v, _ in y_ticks]
        marks += [f"M{_n(x(v))} {_n(bottom)}v3" for v, _ in x_ticks]
        self.path(f"M{_n(left)} {_n(top)}V{_n(bottom)}H{_n(right)}{''.join(marks)}", stroke="market", width=0.8)
        for value, name in y_ticks:
            self.text(left - 5, y(value) + 0.35 * TEXT, name, anchor="end")
        for value, name in x_ticks:
            at = min(x(value), self.frame.width - LETTER * TEXT * len(name) / 2)
            self.text(at, bottom + 4 + TEXT, name)

    def names(self, x_name: str = "", y_name: str = "") -> None:
        """What the axes show."""
        left, top, right, bottom, _, height = self.frame
        if x_name:
            self.text((left + right) / 2, height - 3, x_name)
        if y_name:
            self.text(TEXT, (top + bottom) / 2, y_name, turned=True)

    def legend(self, entries: Sequence[LegendEntry], *, left: bool = False) -> None:
        """Names of what is drawn, in one line above the axes."""
        widths = [SWATCH + 4 + LETTER * TEXT * len(entry.name) for entry in entries]
        space = 11.0
        whole = sum(widths) + space * (len(entries) - 1)
        at, y = (self.frame.left if left else self.frame.right - whole), self.frame.top - 8
        for entry, width in zip(entries, widths, strict=True):
            if entry.kind == "fill":
                self.path(f"M{_n(at)} {_n(y - 6)}h{SWATCH:g}v6h-{SWATCH:g}z", fill=entry.role)
            elif entry.kind == "line":
                self.path(f"M{_n(at)} {_n(y - 3)}h{SWATCH:g}", stroke=entry.role, width=1.8)
            else:
                self.path(f"M{_n(at + SWATCH / 2)} {_n(y - 7)}v8", stroke=entry.role, width=1.1)
            self.text(at + SWATCH + 4, y, entry.name, anchor="start", role="ink")
            at += width + space

    def bars(self, rows: Sequence[tuple[float, float, float, float]], role: str) -> None:
        """Bars as (left, right, foot, top), in places of the drawing."""
        self.path("".join(f"M{_n(a)} {_n(foot)}V{_n(top)}H{_n(b)}V{_n(foot)}z" for a, b, foot, top in rows), fill=role)

    def line(self, points: Sequence[tuple[float, float]], role: str, *, width: float = 1.8, dashes: str = "") -> None:
        """A line through places of the drawing."""
        self.path("M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points), stroke=role, width=width, dashes=dashes)

    def __str__(self) -> str:
        return "".join(self.parts)


def svgs(charts: Mapping[str, Chart]) -> dict[tuple[str, Chart], str]:
    """Each chart, by its name and itself, as an ``<svg>`` element. NAME-title and NAME-summary describe it."""
    return {(name, chart): _svg(chart, name) for name, chart in charts.items()}


def _svg(chart: Chart, name: str) -> str:
    drawing = drawn(chart)
    box = f"0 0 {_n(drawing.frame.width)} {_n(drawing.frame.height)}"
    described = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-summary"'
    return f'<svg viewBox="{box}" font-size="{TEXT:g}" {described}>{drawing}</svg>'


@singledispatch
def drawn(chart: Chart) -> Drawing:
    """The shapes of a chart."""
    raise TypeError(f"{type(chart).__name__} cannot be drawn")


@drawn.register
def _(chart: Matrix) -> Drawing:
    rows, columns = len(chart.row_names), len(chart.column_names)
    left = 25 + (
        LETTER * SMALL * min(max(map(len, chart.row_names), default=0), ROW_LETTERS) if names_rows(chart) else 0
    )
    below = LETTER * SMALL * min(max(map(len, chart.column_names), default=0), COLUMN_LETTERS)
    below = below if names_columns(chart) else 0
    top, bottom = 22.0, 22.0 + max(86.0, ROW_HEIGHT * rows)
    drawing = Drawing(Frame(left, top, MATRIX_WIDTH - 6, bottom, MATRIX_WIDTH, bottom + below + 22))
    x = Scale(0, max(columns, 1), left, MATRIX_WIDTH - 6)
    y = Scale(0, max(rows, 1), top, bottom)
    wide, high = ((1 - GAP) * (scale(1) - scale(0)) for scale in (x, y))
    square = f"h{_n(wide)}v{_n(high)}h-{_n(wide)}z"
    for level, _ in chart.levels:
        cells = [(row, column) for row, column, own in chart.cells if own == level]
        shapes = (f"M{_n(x(column + GAP / 2))} {_n(y(row + GAP / 2))}{square}" for row, column in cells)
        drawing.path("".join(shapes), fill=f"rating{level + 1}")
    if names_rows(chart):
        for i, name in enumerate(chart.row_names):
            drawing.text(left - 4, y(i + 0.5) + 0.35 * SMALL, _cut(name, ROW_LETTERS), anchor="end", size=SMALL)
    if names_columns(chart):
        for i, name in enumerate(chart.column_names):
            at = x(i + 0.5) + 0.35 * SMALL
            drawing.text(at, bottom + 4, _cut(name, COLUMN_LETTERS), anchor="end", size=SMALL, turned=True)
    frame = f"M{_n(x(0))} {_n(y(0))}H{_n(x(chart.core_columns))}V{_n(y(chart.core_rows))}H{_n(x(0))}z"
    drawing.path(frame, stroke="ink", width=1.4)
    others = f"; {columns - chart.core_columns} others at the right" if columns > chart.core_columns else ""
    drawing.names(f"{plural(chart.column_mode)}: {chart.core_columns} of the core{others}", chart.row_mode)
    drawing.legend([LegendEntry(name, f"rating{level + 1}") for level, name in chart.levels], left=True)
    return drawing


@drawn.register
def _(chart: Timeline) -> Drawing:
    drawing = Drawing(USUAL._replace(bottom=HEIGHT - 20))
    x = Scale(chart.starts[0], chart.starts[-1], drawing.frame.left, drawing.frame.right)
    y = _shares(drawing, [*chart.core, *chart.market])
    drawing.axes(x, time_ticks(chart.starts[0], chart.starts[-1]), y, percent_ticks(round_ticks(0, y.high, 5)))
    edges = [x(start) for start in chart.starts]
    foot = f"M{_n(edges[0])} {_n(y(0))}"
    drawing.path(f"{foot}{_stairs(edges, chart.market, y)}V{_n(y(0))}z", fill="market")
    drawing.path(f"{foot}{_stairs(edges, chart.core, y)}V{_n(y(0))}", stroke="core", width=1.6)
    drawing.names(y_name="share of its own reviews")
    drawing.legend([LegendEntry("market", "market"), LegendEntry(chart.name, "core", "line")])
    return drawing


def _stairs(edges: Sequence[float], values: Sequence[float], y: Scale) -> str:
    return "".join(f"V{_n(y(value))}H{_n(edge)}" for value, edge in zip(values, edges[1:], strict=True))


@drawn.register
def _(chart: Ratings) -> Drawing:
    drawing = Drawing(USUAL)
    x = Scale(-0.6, len(chart.values) - 0.4, drawing.frame.left, drawing.frame.right)
    y = _shares(drawing, [*chart.core, *chart.market])
    named = range(0, len(chart.values), max(1, -(-len(chart.values) // 10)))
    drawing.axes(x, [(i, chart.values[i]) for i in named], y, percent_ticks(round_ticks(0, y.high, 5)))
    for shares, role, place in ((chart.market, "market", -0.39), (chart.core, "core", 0.01)):
        drawing.bars([(x(i + place), x(i + place + 0.38), y(0), y(v)) for i, v in enumerate(shares)], role)
    drawing.names("rating", "share of its own ratings")
    drawing.legend([LegendEntry("market", "market"), LegendEntry("core", "core")])
    return drawing


@drawn.register
def _(chart: Scores) -> Drawing:
    drawing = Drawing(USUAL)
    most = max([2, *chart.counts])
    rows = 12.0 * len(chart.known)  # height below the bars, for the marks of the labelled
    margin = 0.03 * (chart.edges[-1] - chart.edges[0])
    x = Scale(chart.edges[0] - margin, chart.edges[-1] + margin, drawing.frame.left, drawing.frame.right)
    y = Scale(FOOT * 0.9, most * 1.6, drawing.frame.bottom - rows, drawing.frame.top, log=True)
    ticks = [(t, f"{t:,}") for t in (10**power for power in range(9)) if t <= y.high]
    drawing.axes(x, number_ticks(round_ticks(chart.edges[0], chart.edges[-1])), y, ticks)
    bins = zip(pairwise(chart.edges), chart.counts, strict=True)
    drawing.bars([(x(a), x(a + 0.92 * (b - a)), y(FOOT), y(n)) for (a, b), n in bins if n], "market")
    entries = []
    for i, (kind, values) in enumerate(chart.known):
        role, at = KNOWN.get(kind, "core"), drawing.frame.bottom - rows + 12 * i + 2
        drawing.path("".join(f"M{_n(x(v))} {_n(at)}v9" for v in sorted(set(values))), stroke=role, width=1.1)
        entries.append(LegendEntry(kind, role, "mark"))
    drawing.names(chart.name, "how many (log scale)")
    drawing.legend([*entries, LegendEntry("all", "market")])
    return drawing


@drawn.register
def _(chart: Curve) -> Drawing:
    drawing = Drawing(USUAL)
    left, top, right, bottom = drawing.frame[:4]
    x, y = Scale(0, 1, left, right), Scale(0, 1.02, bottom, top)
    ticks = number_ticks(round_ticks(0, 1))
    drawing.axes(x, ticks, y, ticks, grid="both")
    drawing.line([(x(i), y(v)) for i, v in enumerate(chart.chance)], "market", width=1.2, dashes="4 3")
    points = [(x(a), y(b)) for a, b in zip(chart.x, chart.y, strict=True)]
    if chart.steps:  # the value of a point holds from the one before it
        corners = [(before[0], point[1]) for before, point in pairwise(points)]
        points = [points[0], *(p for pair in zip(corners, points[1:], strict=True) for p in pair)]
    drawing.line(points, "core")
    drawing.names(chart.x_name, chart.y_name)
    drawing.legend([LegendEntry(chart.reference, "market", "line"), LegendEntry("model", "core", "line")])
    return drawing


@drawn.register
def _(chart: Training) -> Drawing:
    drawing = Drawing(USUAL)
    left, top, right, bottom = drawing.frame[:4]
    lines = [("training", "core", chart.likelihood), ("held out", "good", chart.heldout)]
    values = [v for _, _, line in lines for v in line if math.isfinite(v)] or [0.0]
    margin = 0.05 * (max(values) - min(values)) or 0.5
    first, last = chart.sweeps[0], chart.sweeps[-1]
    beside = 0.04 * (last - first) or 0.5
    x, y = (
        Scale(first - beside, last + beside, left, right),
        Scale(min(values) - margin, max(values) + margin, bottom, top),
    )
    sweeps = number_ticks(round_ticks(first, last, whole=True))
    drawing.axes(x, sweeps, y, number_ticks(round_ticks(y.low, y.high, 5)))
    for _, role, line in lines:
        points = [(x(s), y(v)) for s, v in zip(chart.sweeps, line, strict=False) if math.isfinite(v)]
        if points:
            drawing.line(points, role)
        if len(points) <= MARKED_POINTS:
            dots = "".join(f"M{_n(a - 1.8)} {_n(b)}a1.8 1.8 0 1 0 3.6 0a1.8 1.8 0 1 0 -3.6 0z" for a, b in points)
            drawing.path(dots, fill=role)
    drawing.names("sweep", chart.header[1])
    if chart.heldout:
        drawing.legend([LegendEntry(name, role, "line") for name, role, _ in lines])
    return drawing


@drawn.register
def _(chart: Components) -> Drawing:
    drawing = Drawing(USUAL)
    x = Scale(-0.6, len(chart.shares) - 0.4, drawing.frame.left, drawing.frame.right)
    y = _shares(drawing, chart.shares)
    named = range(0, len(chart.names), max(1, -(-len(chart.names) // 16)))
    drawing.axes(x, [(i, chart.names[i]) for i in named], y, percent_ticks(round_ticks(0, y.high, 5)))
    drawing.bars([(x(i - 0.375), x(i + 0.375), y(0), y(v)) for i, v in enumerate(chart.shares)], "core")
    drawing.names("component, largest first", "share of the tensor's size")
    return drawing


def _shares(drawing: Drawing, values: Sequence[float]) -> Scale:
    """A scale of shares from 0 to a little above the largest."""
    return Scale(0, 1.05 * max([*values, 1e-9]), drawing.frame.bottom, drawing.frame.top)


def _cut(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _n(number: float) -> str:
    """A place with at most two digits behind the point."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
