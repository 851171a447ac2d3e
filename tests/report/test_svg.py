"""Charts of a page: every shape lies where its number says, and ticks are few, round and inside."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_checks import parse

import ringleader as rl
from ringleader.plot.charts import Chart, Components, Curve, Matrix, Scores, Timeline, Training
from ringleader.report.build import build
from ringleader.report.scales import TIME_TICKS, Scale, number_ticks, round_ticks, time_ticks
from ringleader.report.svg import svgs

ABOUT: dict[str, Any] = {"title": "a title", "summary": "a summary", "header": ("a", "b"), "rows": ()}


def shapes(chart: Chart, role: str) -> list[str]:
    """The paths of a colour in the drawing of a chart."""
    (drawn,) = svgs({"name": chart}).values()
    return [p.attributes["d"] for p in parse(drawn).all("path") if role in p.attributes.get("class", "").split()]


def texts(chart: Chart) -> list[str]:
    (drawn,) = svgs({"name": chart}).values()
    return [t.text for t in parse(drawn).all("text")]


@pytest.fixture(scope="module")
def charts(model: rl.RingDetector) -> dict[str, Chart]:
    return build(model).charts()


def test_a_matrix_has_a_square_for_each_cell_and_names_every_row(charts: dict[str, Chart]) -> None:
    matrix = charts["core1"]
    assert isinstance(matrix, Matrix)
    for level, _ in matrix.levels:
        (path, *_) = shapes(matrix, f"f-rating{level + 1}")
        assert path.count("M") == sum(own == level for _, _, own in matrix.cells)
    assert set(matrix.row_names) <= set(texts(matrix))


def test_bars_are_as_high_as_their_numbers() -> None:
    chart = Components(**ABOUT, names=("7", "3", "5"), shares=(0.6, 0.3, 0.1))
    (path,) = shapes(chart, "f-core")
    feet_and_tops = [(float(foot), float(top)) for foot, top in re.findall(r"M\S+ (\S+?)V([\d.]+)H", path)]
    heights = np.array([foot - top for foot, top in feet_and_tops])
    assert heights / heights[0] == pytest.approx(np.array(chart.shares) / 0.6, abs=0.01)


def test_a_curve_goes_through_its_points_in_steps() -> None:
    chart = Curve(**ABOUT, x_name="x", y_name="y", x=(0.0, 0.5, 1.0), y=(1.0, 0.5, 0.5), chance=(0.5, 0.5), steps=True)
    line = shapes(chart, "s-core")[0]
    places = np.array([[float(n) for n in point.split()] for point in line[1:].split("L")])
    assert len(places) == 5 and places[1][0] == places[0][0] and places[1][1] == places[2][1]


def test_the_labelled_are_marked_where_they_lie() -> None:
    known = (("known bad", (0.25, 0.75)), ("known good", (0.5,)))
    chart = Scores(**ABOUT, name="probability", edges=(0.0, 0.5, 1.0), counts=(3, 1), known=known)
    bad, good = (
        [float(x) for x in re.findall(r"M(\S+) \S+v9", "".join(shapes(chart, f"s-{r}")))] for r in ("bad", "good")
    )
    assert len(bad) == 2 and good == [pytest.approx(sum(bad) / 2, abs=0.02)]


def test_charts_of_one_value_and_of_nothing_are_drawn() -> None:
    one = Training(**ABOUT, sweeps=(1,), likelihood=(-1.0,), heldout=())
    blank = Scores(**ABOUT, name="score", edges=(0.0, 0.0), counts=(1,), known=())
    for chart in (one, blank, Components(**ABOUT, names=(), shares=()), replace(one, likelihood=(float("nan"),))):
        (drawn,) = svgs({"name": chart}).values()
        assert "nan" not in drawn and "inf" not in drawn
        parse(drawn)


def test_a_drawing_holds_shapes_and_escaped_texts_alone(charts: dict[str, Chart]) -> None:
    hostile = replace(charts["time1"], name='<script>alert("x")</script>')  # type: ignore[call-arg]
    (drawn,) = svgs({"time1": hostile}).values()
    root = parse(drawn)
    assert {e.tag for e in root.all()} - {""} == {"svg", "path", "text"}
    assert '<script>alert("x")</script>' in texts(hostile)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_few_round_and_inside(low: float, span: float, most: int) -> None:
    values = round_ticks(low, low + span, most)
    assert 1 <= len(values) <= most
    slack = 1e-6 * span + math.ulp(max(abs(low), abs(low + span)))  # what a double can tell apart
    assert all(low - slack <= v <= low + span + slack for v in values)
    names = [name for _, name in number_ticks(values)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("span", [1, 60, 3_600, 86_400, 20 * 86_400, 400 * 86_400, 4_000_000_000])
def test_ticks_of_time_are_few_and_inside_and_digits_alone(span: int) -> None:
    first = 1_400_000_123
    ticks = time_ticks(first, first + span)
    assert 1 <= len(ticks) <= TIME_TICKS and len({name for _, name in ticks}) == len(ticks)
    assert all(first <= at <= first + span for at, _ in ticks)
    assert all(set(name) <= set("0123456789-: ") for _, name in ticks), "digits alone: no locale changes the page"
    if span == 86_400:
        assert [name for _, name in ticks] == ["05-13 18:00", "05-14 00:00", "05-14 06:00", "05-14 12:00"]


def test_a_logarithmic_scale_puts_ten_in_the_middle_of_one_and_a_hundred() -> None:
    assert Scale(1, 100, 0, 10, log=True)(10) == pytest.approx(5)
    assert Scale(3, 3, 0, 10)(3) == 5


def test_a_timeline_ends_where_it_began() -> None:
    chart = Timeline(**ABOUT, starts=(0, 10, 20), core=(0.5, 0.5), market=(1.0, 0.0))
    (path, *_) = shapes(chart, "f-market")
    assert path.endswith("z") and path.count("H") == 2
