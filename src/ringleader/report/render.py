"""A context as one page of HTML: no script, nothing loaded, styles allowed by their hash alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from ringleader.plot.charts import Chart
from ringleader.plot.colours import DARK, LIGHT
from ringleader.report.context import Context, Table
from ringleader.report.svg import svgs
from ringleader.wording import defused

SHOWN = 10
"""Ranks that are seen at once; the others open on demand."""
SHORT = 16
"""Letters of a cell that is not broken into lines."""
PAGE = {"light": "#f4f6f8", "dark": "#0d1218"}
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b", re.ASCII)
NUMERIC = re.compile(r"^[-+<>]?\s?[\d.,]+(e[-+]?\d+)?%?$")


def render(context: Context, known: dict[tuple[str, Chart], str] | None = None) -> str:
    """The page. The same context gives the same bytes.

    known : charts that were drawn before, by name and chart; those drawn now are added.
    """
    style = stylesheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    charts = context.charts()
    known = {} if known is None else known
    known |= svgs({name: chart for name, chart in charts.items() if (name, chart) not in known})
    drawn = {name: Markup(known[name, chart]) for name, chart in charts.items()}  # shapes, and texts that are escaped
    return _template().render(
        report=context,
        svgs=drawn,
        style=Markup(style),  # our own file
        style_hash=f"sha256-{digest}",
        shown=SHOWN,
        with_section=frozenset(core.number for core in context.cores),
        with_ranking=frozenset(ranking.key for ranking in context.rankings),
        with_page=frozenset(
            [*(account.key for account in context.accounts), *(f"core{core.number}" for core in context.cores)]
        )
        - {""},
        words={fact.name: {"key": f"word-{i}", "meaning": fact.value} for i, fact in enumerate(context.words)},
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["numeric"] = lambda text: bool(NUMERIC.match(text))
    environment.filters["kind"] = _kind
    environment.filters["aside"] = _aside
    environment.filters["dated"] = _dated
    environment.filters["csv_address"] = csv_address
    return environment.from_string(_file("page.html.j2"))


def stylesheet() -> str:
    """The styles of the page, with the colours of the charts for light and dark."""
    light = _variables({**LIGHT, "page": PAGE["light"]})
    dark = _variables({**DARK, "page": PAGE["dark"]})
    classes = "".join(f".f-{role}{{fill:var(--{role})}}.s-{role}{{stroke:var(--{role})}}" for role in LIGHT)
    shades = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f"{shades}\n{_file('page.css')}{classes}"


def csv_address(table: Table) -> str:
    """A table as a CSV within a link, so that it can be saved without a program."""
    text = io.StringIO()
    rows = [[defused(cell) for cell in row] for row in (table.header, *table.rows)]
    csv.writer(text, lineterminator="\n").writerows(rows)
    return "data:text/csv;charset=utf-8," + quote(text.getvalue(), safe=",:;/()!*=@")


def _kind(cell: str, name: bool = False) -> str:
    """The class of a cell: numbers that are no names go to the right, short texts such as dates stay in one line."""
    kind = "n" if NUMERIC.match(cell) and not name else "w" if len(cell) <= SHORT else "t"
    return f' class="{kind}"' if cell else ""


def _aside(text: str) -> Markup:
    """A text that may be in any script: set apart, so that its direction does not spill over."""
    return escape(text) if text.isascii() else Markup("<bdi>{}</bdi>").format(text)


def _dated(text: str) -> Markup:
    """A sentence whose dates are not broken into lines."""
    return Markup(DATE.sub(r"<time>\g<0></time>", str(_aside(text))))


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


def _file(name: str) -> str:
    return (files("ringleader.report") / name).read_text(encoding="utf-8")
