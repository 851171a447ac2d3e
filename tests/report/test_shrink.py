"""A page of any size becomes small enough, or as small as it gets; it always ends, and says what it leaves out."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_checks import faults, parse

import ringleader as rl
from ringleader import report
from ringleader.plot.charts import Chart, Components, Curve, Matrix, Ratings, Scores, Timeline, Training
from ringleader.plot.score_data import SWEEPS_DRAWN, SWEEPS_LISTED, training
from ringleader.report.build import build
from ringleader.report.context import (
    AccountPage,
    Context,
    CoreMembers,
    CoreSection,
    HeldOut,
    Piece,
    Ranked,
    RankingSection,
    ShownReason,
    Table,
)
from ringleader.report.render import render
from ringleader.report.shrink import PARTS, shrink

SWEEPS, LIMIT = 8_000, 400_000
"""Sweeps whose page is far beyond a limit, and the limit, a fifth of the one of reports."""
MOST_STEPS = 40
"""Halvings of a list of a million, and one step for each part, with room to spare."""


def size(value: Any) -> int:
    """How many values there are in a context, at any depth; what says what was left out does not count."""
    if is_dataclass(value):
        return sum(size(getattr(value, field.name)) for field in fields(value) if field.name != "left_out")
    if isinstance(value, tuple):
        return sum(1 + size(item) for item in value)
    return 0 if value is None else 1


def all_rows(chart: Chart | Table) -> int:
    return len(chart.rows) + chart.left_out


def rows(number: int) -> tuple[tuple[str, ...], ...]:
    return tuple((f"{i}", "1") for i in range(number))


def about(number: int) -> dict[str, Any]:
    return {"title": "a chart of something", "summary": "in words", "header": ("a", "b"), "rows": rows(number)}


def long_training(sweeps: int = SWEEPS) -> Training:
    """A training chart with a point and a row for every sweep, as none is made any more."""
    values = tuple(-1.0 / (i + 1) for i in range(sweeps))
    return Training(**about(sweeps), sweeps=tuple(range(1, sweeps + 1)), likelihood=values, heldout=values)


def core(number: int, members: int, charts: bool) -> CoreSection:
    matrix = Matrix(
        **about(members),
        row_mode="seller",
        column_mode="reviewer",
        row_names=("a",),
        column_names=("b",),
        core_rows=1,
        core_columns=1,
        cells=((0, 0, 4),),
        levels=((4, "5"),),
    )
    timeline = Timeline(**about(members), starts=(0, 86_400), core=(1.0,), market=(1.0,))
    ratings = Ratings(**about(members), values=("5",), levels=(4,), core=(1.0,), market=(1.0,))
    who = CoreMembers(f"{members} sellers", Table(("seller", "chance"), rows(members)))
    drawn = (matrix, timeline, ratings) if charts else (None, None, None)
    return CoreSection(number, f"Core {number}", "They act together.", "", (), *drawn, (who,))


def ranking(key: int, entities: int, known: int) -> RankingSection:
    ranked = Ranked(1, "a", "", "0.5", "", None, None, None, "3", "", "", (), ())
    marks = (("known bad", (0.5,) * known),) if known else ()
    chart = Scores(**about(entities), name="score", edges=(0.0, 0.5, 1.0), counts=(1, 2), known=marks)
    ranks = tuple(replace(ranked, rank=i + 1) for i in range(entities))
    return RankingSection(
        f"ranking{key}", "Sellers to look at first", True, "seller", "seller", "score", False, "", 1000, ranks, chart
    )


def account(number: int) -> AccountPage:
    some, few = Table(("a", "b"), rows(3)), (ShownReason((Piece("It is so"),), "+1.00"),)
    said = ("seller", f"s{number}", "ranking0", "Rank 1.", "", "what it adds")
    return AccountPage(f"account{number}", *said, few, (), "Nothing.", some, (), some, some, None, some)


NUMBERS = st.integers(0, 160)


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    curve = Curve(**about(draw(NUMBERS)), x_name="x", y_name="y", x=(0.0,), y=(1.0,), chance=(0.0, 1.0), steps=False)
    held = HeldOut("Held-out sellers", (), "few", (curve,) * draw(st.integers(0, 2)))
    bars = draw(NUMBERS)
    shares = Components(**about(bars), names=tuple(map(str, range(bars))), shares=(0.1,) * bars)
    has_charts = draw(st.booleans())
    tables = [Table(("a", "b"), rows(draw(NUMBERS)), draw(NUMBERS)) for _ in range(5)]
    return Context(
        title="Ringleader report",
        lead="",
        unfinished="",
        facts=(),
        findings=(),
        rankings=tuple(ranking(i, draw(NUMBERS), draw(NUMBERS)) for i in range(draw(st.integers(0, 12)))),
        cores_table=tables[0],
        cores=tuple(core(i + 1, draw(NUMBERS), has_charts) for i in range(draw(st.integers(0, 12)))),
        cores_total=500,
        heldout=(held,) * draw(st.integers(0, 60)),
        heldout_note="",
        heldout_others=tables[4],
        training=draw(st.sampled_from([None, long_training(700)])),
        components=shares if draw(st.booleans()) else None,
        quality=("a note",) * draw(NUMBERS),
        examples=tables[1],
        modes=tables[2],
        settings=tables[3],
        command="ringleader fit",
        command_notes=(),
        version="1",
        accounts=tuple(account(i) for i in range(draw(st.integers(0, 60)))),
    )


@settings(max_examples=20, deadline=None)
@given(contexts())
def test_a_context_becomes_smaller_at_every_step_until_nothing_can_go(context: Context) -> None:
    tables = ("cores_table", "examples", "modes", "settings")
    totals = [all_rows(getattr(context, name)) for name in tables]
    notes, left = len(context.quality), size(context)
    for _ in range(MOST_STEPS):
        smaller = shrink(context)
        if smaller == context:
            break
        larger, left = left, size(smaller)
        assert left < larger
        assert [all_rows(getattr(smaller, name)) for name in tables] == totals, "what is cut is counted"
        assert len(smaller.quality) + dict(smaller.left_out).get("note", 0) == notes
        for one, other in ((context.training, smaller.training), (context.components, smaller.components)):
            assert other is None or (one is not None and all_rows(one) == all_rows(other))
        if smaller.training is not None:
            assert context.training is not None
            assert smaller.training.sweeps[0] == 1 and smaller.training.sweeps[-1] == context.training.sweeps[-1]
            lengths = {len(smaller.training.sweeps), len(smaller.training.likelihood), len(smaller.training.heldout)}
            assert len(lengths) == 1
        context = smaller
    assert shrink(context) == context, "it ends"
    assert not context.charts() and not context.cores and not context.heldout


@settings(max_examples=8, deadline=None)
@given(contexts(), st.integers(0, 20))
def test_a_page_is_good_at_every_size(context: Context, steps: int) -> None:
    for _ in range(steps):
        context = shrink(context)
    text = render(context)
    assert faults(text) == []
    assert ("To stay small, this page leaves out" in text) == bool(context.left_out)


def test_the_report_of_many_sweeps_ends(model: rl.RingDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(build(model), training=long_training())
    monkeypatch.setattr(report, "LARGEST", LIMIT)
    assert len(render(large).encode()) > 2 * LIMIT
    monkeypatch.setattr(report.build, "build", lambda *_: large)
    text = report.page(model)
    assert len(text.encode()) <= LIMIT and faults(text) == []
    section = next(s for s in parse(text).all("section") if s.attributes.get("id") == "model")
    listed = len(section.all("tbody")[0].all("tr"))
    assert f"{SWEEPS - listed:,} more left out of this page" in section.text


def test_a_page_that_cannot_be_small_enough_is_written_and_says_what_it_leaves_out(
    model: rl.RingDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "LARGEST", 10)
    text = report.page(model)
    assert faults(text) == [] and "<svg" not in text
    main = parse(text).all("main")[0].text
    assert "To stay small, this page leaves out: the charts of the cores" in main
    assert all(name in main for name in PARTS)
    assert "No sweep was done yet" not in main and "The first 0 have a section" not in main


@pytest.mark.parametrize("number", [1, 99, 40_000])
def test_training_is_drawn_and_told_in_few_sweeps(number: int) -> None:
    names = ("log_posterior", "log_likelihood", "heldout_log_likelihood", "effective_rank")
    history = [dict.fromkeys(names, -1.0 / (i + 1)) for i in range(number)]
    chart = training(SimpleNamespace(history_=history))  # type: ignore[arg-type]
    assert all_rows(chart) == number and len(chart.rows) == min(number, SWEEPS_LISTED)
    assert len(chart.sweeps) == len(chart.likelihood) == len(chart.heldout) == min(number, SWEEPS_DRAWN)
    assert (chart.sweeps[0], chart.sweeps[-1], chart.rows[-1][0]) == (1, number, f"{number}")
    assert f"{number:,} sweep" in chart.title
