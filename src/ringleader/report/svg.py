"""A chart as inline SVG: drawn by matplotlib, then reduced to what a page may hold.

Only shapes, texts and their looks are kept: no styles, scripts, links or outside names. Colours become classes of the
page, so that they follow light and dark; ids are the chart's own.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import NamedTuple

from ringleader.plot.charts import Chart, Matrix
from ringleader.plot.colours import roles
from ringleader.plot.draw import COLUMN_LETTERS, ROW_LETTERS, draw, names_columns, names_rows

SHAPES = {"svg", "g", "path", "use", "defs", "clipPath", "rect", "text", "tspan"}
LOOKS = {
    *("fill", "fill-opacity", "fill-rule", "opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray"),
    *("stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-size"),
}
PLACES = {"d", "x", "y", "width", "height", "transform", "clip-path", "href", "id", "viewBox"}
SAFE_LOOK = re.compile(r"^[#\w.,%\s-]{1,60}$")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
ROLES = roles()
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "ringleader", "font.family": "DejaVu Sans", "text.usetex": False}
ROW_INCHES, LETTER_INCHES = 0.155, 0.066


class Frame(NamedTuple):
    """Inches: a matrix has the width of the page, other charts half of it. The margins hold the names of the axes."""

    width: float
    height: float
    left: float
    bottom: float
    top: float = 0.3
    right: float = 0.08


def frame(chart: Chart) -> Frame:
    """How large a chart is. Fixed margins take half the time of those that matplotlib finds."""
    if not isinstance(chart, Matrix):
        return Frame(4.3, 2.6, left=0.72, bottom=0.46)
    rows = max([0, *map(len, chart.row_names)]) if names_rows(chart) else 0
    columns = max([0, *map(len, chart.column_names)]) if names_columns(chart) else 0
    bottom = 0.3 + LETTER_INCHES * min(columns, COLUMN_LETTERS)
    height = max(1.2, ROW_INCHES * len(chart.row_names)) + bottom + 0.3
    return Frame(8.4, height, left=0.35 + LETTER_INCHES * min(rows, ROW_LETTERS), bottom=bottom)


def svgs(charts: Mapping[str, Chart]) -> dict[tuple[str, Chart], str]:
    """Each chart, by its name and itself, as an ``<svg>`` element in our own style whatever the user's is.

    The name of a chart begins its ids; NAME-title and NAME-summary describe it.
    """
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        return {(name, chart): _svg(chart, name) for name, chart in charts.items()}


def _svg(chart: Chart, name: str) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    size = frame(chart)
    figure = Figure(figsize=(size.width, size.height))
    figure.subplots_adjust(
        left=size.left / size.width,
        right=1 - size.right / size.width,
        bottom=size.bottom / size.height,
        top=1 - size.top / size.height,
    )
    canvas = FigureCanvasSVG(figure)
    axes = draw(chart, figure.add_subplot())
    axes.set_title("", loc="left")
    axes.patch.set_visible(False)
    figure.patch.set_visible(False)
    drawn = io.BytesIO()
    canvas.print_svg(  # type: ignore[no-untyped-call]
        drawn, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    made = _clean(ET.fromstring(drawn.getvalue()), _Ids(name))
    assert made is not None  # the root is an svg
    made.set("role", "img")
    made.set("aria-labelledby", f"{name}-title")
    made.set("aria-describedby", f"{name}-summary")
    return ET.tostring(made, encoding="unicode", short_empty_elements=True)


class _Ids:
    """Ids that are this chart's alone."""

    def __init__(self, name: str) -> None:
        self.name, self.known = name, dict[str, str]()

    def __call__(self, old: str) -> str:
        return self.known.setdefault(old, f"{self.name}-{len(self.known)}")


def _clean(element: ET.Element, ids: _Ids) -> ET.Element | None:
    tag = element.tag.rsplit("}", 1)[-1]
    if tag not in SHAPES:
        return None
    made = ET.Element(tag)
    looks = dict(element.attrib)
    for part in looks.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        looks[key.strip()] = value.strip()
    classes = []
    for key, value in looks.items():
        key = key.rsplit("}", 1)[-1]
        if key == "font" and (size := re.search(r"([\d.]+)px", value)):
            key, value = "font-size", size[1]
        if key in ("fill", "stroke") and value in ROLES:
            classes.append(f"{key[0]}-{ROLES[value]}")
        elif key in LOOKS and SAFE_LOOK.match(value):
            made.set(key, value.removesuffix("px") if key == "font-size" else value)
        elif key in PLACES:
            _place(made, key, value, ids)
    if classes:
        made.set("class", " ".join(classes))
    if tag in ("text", "tspan"):
        made.text = element.text
    for child in element:
        cleaned = _clean(child, ids)
        if cleaned is not None:
            made.append(cleaned)
    if tag == "svg":
        for key in ("width", "height"):
            made.attrib.pop(key, None)
    return None if tag in ("g", "defs") and not len(made) else made


def _place(made: ET.Element, key: str, value: str, ids: _Ids) -> None:
    """Where a shape lies, with fewer digits; references only within the chart."""
    if key == "id":
        if made.tag in ("path", "clipPath"):
            made.set(key, ids(value))
    elif key == "href":
        if value.startswith("#"):
            made.set(key, f"#{ids(value[1:])}")
    elif key == "clip-path":
        if value.startswith("url(#"):
            made.set(key, f"url(#{ids(value[5:-1])})")
    elif not value.startswith("rotate(-0 "):
        short = NUMBER.sub(lambda match: _rounded(float(match[0])), value)
        made.set(key, re.sub(r"\s*([MLCQzZ])\s*", r"\1", " ".join(short.split())) if key == "d" else short)


def _rounded(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
