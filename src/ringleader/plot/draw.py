"""Draws a chart on axes. Every text that came from the data is shown as it is: no mathematics, no line breaks."""

from __future__ import annotations

import textwrap
from functools import singledispatch
from typing import TYPE_CHECKING, Literal

import numpy as np

from ringleader.plot.charts import Chart, Components, Curve, Matrix, Ratings, Scores, Timeline, Training
from ringleader.plot.colours import BAD, CORE, DARK, GOOD, GRID, INK, LIGHT, MARKET, MUTED, RATINGS
from ringleader.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXT, SMALL = 9.0, 7.0
LETTERS_PER_INCH = 13
"""Letters of a title that fit into an inch."""
DARK_GROUND = 1.5
"""Sum of red, green and blue below which axes are dark."""
NAMED_ROWS, NAMED_COLUMNS = 40, 45
"""Rows and columns of a matrix up to which every one is named."""
ROW_LETTERS, COLUMN_LETTERS = 24, 14
"""Letters of their names that fit."""
SQUARE = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)])
SQUARE_CODES = np.array([1, 2, 2, 2, 79], np.uint8)  # matplotlib's MOVETO, LINETO and CLOSEPOLY
FOOT = 0.7
"""Where the bars of a logarithmic histogram stand, so that one entity is seen."""
MARKED_POINTS = 60
"""Points of a line up to which each has a mark."""
TIME_TICKS = 6
"""Ticks of a time axis, at most."""
TICK_FORMATS = ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S.%f"]
"""Of ticks that are years, months, days, hours, minutes, seconds apart."""
ZERO_FORMATS = ["", "%Y", "%m-%d", "%m-%d", "%H:%M", "%H:%M"]
"""Of the ticks that begin the next larger unit."""
OFFSET_FORMATS = ["", "", "%Y", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M"]
"""Of what all ticks share, written below the axis."""
GAP = 0.12
"""Of a cell of the matrix, between neighbours."""


@singledispatch
def draw(chart: Chart, ax: Axes) -> Axes:
    """Draws the chart and returns the axes."""
    raise TypeError(f"{type(chart).__name__} cannot be drawn")


def draw_on(chart: Chart, ax: Axes, *, narrow: bool) -> Axes:
    """Draws the chart on axes of a notebook: on a dark ground in the colours of the dark.

    narrow : whether others stand beside them, so that the title must keep to their width.
    """
    from matplotlib.colors import to_rgb

    draw(chart, ax)
    if narrow:
        letters = max(int(ax.get_window_extent().width / ax.figure.dpi * LETTERS_PER_INCH), 20)
        title = textwrap.fill(ax.get_title(loc="left"), letters)
        ax.set_title(title, loc="left", fontsize=TEXT + 1, color=INK, wrap=False, pad=_pad(ax))
    if sum(to_rgb(ax.get_facecolor())) < DARK_GROUND:
        _darken(ax)
    return ax


def _pad(ax: Axes) -> float:
    """Points between axes and title: room for the names of what is drawn, where there are any."""
    return TEXT * 2.2 if ax.get_legend() is not None else 6.0


def _darken(ax: Axes) -> None:
    """Colours of the light, wherever they are used, as those of the dark."""
    from matplotlib.collections import Collection
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    dark = {LIGHT[role]: DARK[role] for role in reversed(LIGHT)}
    ax.tick_params(axis="both", labelcolor=DARK["muted"], color=DARK["market"])
    for artist in ax.findobj():
        if isinstance(artist, (Line2D, Text)):
            artist.set_color(dark.get(to_hex(artist.get_color()), artist.get_color()))
        elif isinstance(artist, (Patch, Collection)) and artist is not ax.patch:
            for part in ("facecolor", "edgecolor"):
                colour = getattr(artist, f"get_{part}")()
                if isinstance(colour, tuple) and colour[3] > 0 and to_hex(colour) in dark:
                    getattr(artist, f"set_{part}")(dark[to_hex(colour)])


@draw.register(Matrix)
def _matrix(chart: Matrix, ax: Axes) -> Axes:
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    height, width = len(chart.row_names), len(chart.column_names)
    ax.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    for level, name in chart.levels:
        drawn = [(column, row) for row, column, own_level in chart.cells if own_level == level]
        corners = np.array(drawn, float).reshape(-1, 2)
        # One path for all squares of a colour: each a corner, three sides and a close.
        squares = corners[:, None, :] - 0.5 + GAP / 2 + (1 - GAP) * SQUARE[None]
        codes = np.tile(SQUARE_CODES, len(corners))
        path = Path(squares.reshape(-1, 2), codes)
        ax.add_patch(PathPatch(path, facecolor=RATINGS[level], edgecolor="none", linewidth=0, label=name))
    frame = Rectangle((-0.5, -0.5), chart.core_columns, chart.core_rows, fill=False, edgecolor=INK, linewidth=1.4)
    frame.set_clip_on(False)
    ax.add_patch(frame)
    _prepare(ax, chart, grid=None)
    rows = chart.row_names if names_rows(chart) else ()
    columns = chart.column_names if names_columns(chart) else ()
    ax.set_yticks(range(len(rows)), [_label(name, ROW_LETTERS) for name in rows])
    ax.set_xticks(range(len(columns)), [_label(name, COLUMN_LETTERS) for name in columns])
    ax.tick_params(axis="both", labelsize=SMALL, length=0)
    ax.tick_params(axis="x", labelrotation=90)
    others = f"; {width - chart.core_columns} others at the right" if width > chart.core_columns else ""
    ax.set_xlabel(
        _dollars(f"{plural(chart.column_mode)}: {chart.core_columns} of the core{others}"), color=MUTED, fontsize=TEXT
    )
    ax.set_ylabel(_dollars(chart.row_mode), color=MUTED, fontsize=TEXT)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    _legend(ax, left=True)
    return ax


@draw.register(Timeline)
def _timeline(chart: Timeline, ax: Axes) -> Axes:
    starts = np.array(chart.starts, "datetime64[s]")
    ax.stairs(chart.market, starts, fill=True, color=MARKET, label="market")
    ax.stairs(chart.core, starts, fill=False, color=CORE, linewidth=1.6, label=_dollars(chart.name))
    _prepare(ax, chart, grid="y")
    _time_ticks(ax)
    ax.yaxis.set_major_formatter(_percents)
    ax.set_xlim(starts[0], starts[-1])
    ax.set_ylim(0, None)
    ax.set_ylabel("share of its own reviews", color=MUTED, fontsize=TEXT)
    _legend(ax)
    return ax


@draw.register(Ratings)
def _ratings(chart: Ratings, ax: Axes) -> Axes:
    at = np.arange(len(chart.values))
    ax.bar(at - 0.2, chart.market, 0.38, color=MARKET, label="market")
    ax.bar(at + 0.2, chart.core, 0.38, color=CORE, label="core")
    _prepare(ax, chart, grid="y")
    named = at[:: max(1, -(-len(at) // 10))]
    ax.set_xticks(named, [chart.values[i] for i in named])
    ax.yaxis.set_major_formatter(_percents)
    ax.set_xlabel("rating", color=MUTED, fontsize=TEXT)
    ax.set_ylabel("share of its own ratings", color=MUTED, fontsize=TEXT)
    _legend(ax)
    return ax


@draw.register(Scores)
def _scores(chart: Scores, ax: Axes) -> Axes:
    edges = np.array(chart.edges)
    counts = np.array(chart.counts)
    some = counts > 0
    width = np.diff(edges)[some] * 0.92
    ax.bar(edges[:-1][some], counts[some] - FOOT, width, bottom=FOOT, align="edge", color=MARKET, label="all")
    most = max([2, *chart.counts])
    floor = 0.45 if not chart.known else 0.45 * float(most) ** (-0.13 * len(chart.known))
    ax.set_yscale("log")
    ax.set_ylim(floor, most * 1.6)
    span = np.log(0.7 / floor) if chart.known else 0.0
    for i, (kind, values) in enumerate(chart.known):
        colour = {"known bad": BAD, "known good": GOOD}.get(kind, CORE)
        height = 0.62 * np.exp(-span * (i + 0.45) / len(chart.known))
        ax.plot(values, np.full(len(values), height), linestyle="none", marker="|", markersize=9, markeredgewidth=1.1,
                color=colour, label=kind)  # fmt: skip
    _prepare(ax, chart, grid="y")
    ticks = [t for t in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000) if t <= most * 1.6]
    ax.set_yticks(ticks, [f"{t:,}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel(_dollars(chart.name), color=MUTED, fontsize=TEXT)
    ax.set_ylabel("how many (log scale)", color=MUTED, fontsize=TEXT)
    _legend(ax)
    return ax


@draw.register(Curve)
def _curve(chart: Curve, ax: Axes) -> Axes:
    ax.plot((0, 1), chart.chance, color=MARKET, linewidth=1.2, linestyle=(0, (4, 3)), label=chart.reference)
    marker = "o" if chart.reference != "chance" else ""
    style = "steps-pre" if chart.steps else "default"
    ax.plot(chart.x, chart.y, color=CORE, linewidth=1.8, marker=marker, markersize=3.5, drawstyle=style,
            label="model", clip_on=False)  # fmt: skip
    _prepare(ax, chart, grid="both")
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set_xlabel(chart.x_name, color=MUTED, fontsize=TEXT)
    ax.set_ylabel(chart.y_name, color=MUTED, fontsize=TEXT)
    _legend(ax)
    return ax


@draw.register(Training)
def _training(chart: Training, ax: Axes) -> Axes:
    from matplotlib.ticker import MaxNLocator

    marker = "o" if len(chart.sweeps) <= MARKED_POINTS else ""
    for values, colour, name in ((chart.likelihood, CORE, "training"), (chart.heldout, GOOD, "held out")):
        if values:
            ax.plot(chart.sweeps, values, color=colour, linewidth=1.8, marker=marker, markersize=3.5, label=name)
    _prepare(ax, chart, grid="y")
    if chart.heldout:
        _legend(ax)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel("sweep", color=MUTED, fontsize=TEXT)
    ax.set_ylabel(chart.header[1], color=MUTED, fontsize=TEXT)
    return ax


@draw.register(Components)
def _components(chart: Components, ax: Axes) -> Axes:
    at = np.arange(len(chart.shares))
    ax.bar(at, chart.shares, 0.75, color=CORE)
    _prepare(ax, chart, grid="y")
    named = at[:: max(1, -(-len(at) // 16))]
    ax.set_xticks(named, [chart.names[i] for i in named])
    ax.yaxis.set_major_formatter(_percents)
    ax.set_xlabel("component, largest first", color=MUTED, fontsize=TEXT)
    ax.set_ylabel("share of the tensor's size", color=MUTED, fontsize=TEXT)
    return ax


def _prepare(ax: Axes, chart: Chart, grid: Literal["both", "x", "y"] | None) -> None:
    """Title, spines and grid as all charts have them."""
    ax.set_title(_dollars(chart.title), loc="left", fontsize=TEXT + 1, color=INK, wrap=True)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(MARKET)
        spine.set_linewidth(0.8)
    ax.tick_params(axis="both", labelsize=TEXT, labelcolor=MUTED, color=MARKET, length=3)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(True, axis=grid, color=GRID, linewidth=0.7)


def _time_ticks(ax: Axes) -> None:
    """Few round times in UTC, written in digits: names of months would follow the user's locale."""
    from datetime import UTC

    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=UTC, minticks=2, maxticks=TIME_TICKS)  # type: ignore[no-untyped-call]
    form = ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator, tz=UTC, formats=TICK_FORMATS, zero_formats=ZERO_FORMATS, offset_formats=OFFSET_FORMATS
    )
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(form)
    ax.xaxis.get_offset_text().set(color=MUTED, fontsize=SMALL)


def _legend(ax: Axes, *, left: bool = False) -> None:
    """Names of what is drawn, in one line above the axes and below the title."""
    handles, names = ax.get_legend_handles_labels()
    if handles:
        ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=TEXT + 1, color=INK, wrap=True, pad=TEXT * 2.2)
        ax.legend(
            handles,
            names,
            loc="lower left" if left else "lower right",
            bbox_to_anchor=(0.0 if left else 1.0, 1.0),
            ncols=len(names),
            frameon=False,
            fontsize=TEXT,
            labelcolor=INK,
            handlelength=1.1,
            handleheight=0.9,
            columnspacing=1.2,
            borderpad=0.2,
            handletextpad=0.5,
        )


def _percents(value: float, _: float) -> str:
    return f"{100 * value:g}%"


def names_rows(chart: Matrix) -> bool:
    """Whether the rows of a matrix are few enough to be named."""
    return len(chart.row_names) <= NAMED_ROWS


def names_columns(chart: Matrix) -> bool:
    """Whether the columns of a matrix are few enough to be named."""
    return len(chart.column_names) <= NAMED_COLUMNS


def _label(name: str, letters: int) -> str:
    return _dollars(name if len(name) <= letters else f"{name[: letters - 1]}…")


def _dollars(text: str) -> str:
    """Text in which dollars begin no mathematics."""
    return text.replace("$", r"\$")
