"""The plot functions: axes in, axes out, and an error that says why where there is nothing to draw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from ring_market import detector, ring_labels, ring_table

import ringleader as rl
from ringleader.errors import SettingsError
from ringleader.plot.dates import MOST, time_ticks

Draw = Callable[..., Axes]

CHARTS: dict[str, Draw] = {
    "core": lambda m, **k: rl.plot.core(m, 0, **k),
    "timeline": lambda m, **k: rl.plot.timeline(m, 0, **k),
    "ratings": lambda m, **k: rl.plot.ratings(m, 0, **k),
    "scores": lambda m, **k: rl.plot.scores(m, "seller", **k),
    "scores without labels": lambda m, **k: rl.plot.scores(m, "product", **k),
    "precision_recall": lambda m, **k: rl.plot.precision_recall(m, "reviewer", **k),
    "roc": lambda m, **k: rl.plot.roc(m, "seller", **k),
    "training": lambda m, **k: rl.plot.training(m, **k),
    "components": lambda m, **k: rl.plot.components(m, **k),
}


@pytest.mark.parametrize("name", CHARTS)
def test_axes_that_are_given_are_drawn_on_and_returned(model: rl.RingDetector, name: str) -> None:
    plt.close("all")  # what other tests of the same process left open
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    drawn = CHARTS[name](model, ax=axes[1])
    figure.canvas.draw()
    assert drawn is axes[1]
    assert len(drawn.get_title(loc="left")) > 20
    assert drawn.has_data() and not axes[0].has_data()
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)


@pytest.mark.parametrize("name", ["core", "scores"])
def test_without_axes_new_ones_are_made(model: rl.RingDetector, name: str) -> None:
    plt.close("all")
    drawn = CHARTS[name](model)
    assert plt.get_fignums() == [drawn.figure.number]  # type: ignore[union-attr]
    plt.close("all")


def test_every_chart_is_a_public_function() -> None:
    assert set(rl.plot.__all__) == {n for n in CHARTS if " " not in n}


def test_curves_take_a_truth_of_their_own(model: rl.RingDetector) -> None:
    truth = rl.read_labels(ring_labels())
    drawn = rl.plot.roc(model, "reviewer", truth=truth)
    assert "AUC" in drawn.get_title(loc="left")
    plt.close("all")


def test_what_cannot_be_drawn_says_why(model: rl.RingDetector) -> None:
    bare = detector().fit(rl.read_reviews(ring_table()[["reviewer", "seller"]].rename(columns={"seller": "product"})))
    tiny = detector().fit(rl.SparseTensor.from_arrays([[0, 0], [1, 1], [1, 0]]))
    for draw, message in (
        (lambda: rl.plot.core(model, 1), "count from 0 to 0"),
        (lambda: rl.plot.core(model, -1), "there is no core -1"),
        (lambda: rl.plot.core(tiny, 0), "this model has none"),
        (lambda: rl.plot.timeline(bare, 0), "have no time"),
        (lambda: rl.plot.ratings(bare, 0), "have no rating"),
        (lambda: rl.plot.precision_recall(bare, "reviewer"), "fit with holdout=0.2"),
        (lambda: rl.plot.roc(model, "product"), "name no product"),
        (lambda: rl.plot.scores(model, "nobody"), "there is no mode"),
    ):
        with pytest.raises(SettingsError, match=message):
            draw()


def test_rl_plot_is_imported_only_when_it_is_used() -> None:
    script = (
        "import sys, ringleader as rl; assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules;"
        "rl.plot.core; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("span", [1, 60, 3_600, 86_400, 20 * 86_400, 400 * 86_400, 4_000_000_000])
def test_ticks_of_time_are_few_and_inside(span: int) -> None:
    ticks, names = time_ticks(1_400_000_123, 1_400_000_123 + span)
    assert 1 <= len(ticks) <= MOST
    assert len(set(names)) == len(names) == len(ticks)
    seconds = ticks.astype("datetime64[s]").astype(np.int64)
    assert (seconds >= 1_400_000_123).all() and (seconds <= 1_400_000_123 + span).all()
