"""A page or a chart is of one model, whatever another thread has the detector learn meanwhile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from ring_market import ring_table

import ringleader as rl
from ringleader import report
from ringleader.evaluation import truth
from ringleader.plot import axes, core_data, score_data
from ringleader.report import build


@pytest.fixture(scope="module")
def after(model: rl.RingDetector) -> rl.RingDetector:
    """The model that has learned from more reviews and labels."""
    more = ring_table().tail(60).assign(product="another", reviewer=[f"late{i % 9}" for i in range(60)])
    labels = pd.DataFrame({"mode": "reviewer", "entity": ["late0", "late1", "late2"], "label": [1, 1, 0]})
    return copy.copy(model).partial_fit(more, labels)


def updated_within(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, model: rl.RingDetector, after: rl.RingDetector
) -> None:
    """Has the model learn at the call of a function, as another thread would."""
    call: Callable[..., Any] = getattr(where, name)

    def learn_and_call(*values: Any, **named: Any) -> Any:
        model.snapshot_ = after.snapshot_
        return call(*values, **named)

    monkeypatch.setattr(where, name, learn_and_call)


@pytest.fixture(scope="module")
def pages(model: rl.RingDetector, after: rl.RingDetector) -> tuple[str, str]:
    """Before and after it."""
    before, later = report.page(model), report.page(after)
    assert before != later
    return before, later


@pytest.mark.parametrize(
    "where",
    ["_components", "_heldout", *(pytest.param(name, marks=pytest.mark.slow) for name in ("subjects", "ranking"))],
)
def test_a_model_that_learns_while_its_page_is_built_gives_the_page_of_the_old_one(
    where: str,
    model: rl.RingDetector,
    after: rl.RingDetector,
    pages: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = copy.copy(model)
    updated_within(monkeypatch, build, where, mine, after)
    assert report.page(mine) == pages[0]
    assert mine.snapshot_ is after.snapshot_


def test_what_changed_since_is_against_the_earlier_model_as_it_was(
    model: rl.RingDetector, after: rl.RingDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, mine = build.build(after, model), copy.copy(model)
    updated_within(monkeypatch, build, "subjects", mine, after)
    assert build.build(after, mine).since == expected.since is not None


def test_charts_and_figures_are_of_one_model_too(
    model: rl.RingDetector, after: rl.RingDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(axes, "_on", lambda chart, ax, size=None: drawn.append(chart))
    expected = [
        score_data.roc(*score_data.judged(model, score_data.heldout(model), "seller", None)[:2], "seller", "abuse")
    ]
    expected.append(core_data.matrix(model.tensor_, model.cores()[0], model.config_.contrast))
    for where, name, draw in ((score_data, "heldout", axes.roc), (axes, "_core", axes.core)):
        mine = copy.copy(model)
        updated_within(monkeypatch, where, name, mine, after)
        draw(mine, *(("seller",) if draw is axes.roc else (1,)))
    assert drawn == expected
    assert model.heldout_ is not None
    figures, mine = truth.evaluate(model, model.heldout_), copy.copy(model)
    updated_within(monkeypatch, truth, "known_codes", mine, after)
    assert truth.evaluate(mine, model.heldout_) == figures
