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
from matplotlib.dates import num2date
from ring_market import detector, ring_labels, ring_table

import ringleader as rl
from ringleader.errors import LabelError, SettingsError
from ringleader.plot import core_data
from ringleader.plot.charts import Timeline
from ringleader.plot.draw import TIME_TICKS, draw
from ringleader.plot.score_data import calibration

Draw = Callable[..., Axes]

CHARTS: dict[str, Draw] = {
    "core": lambda m, **k: rl.plot.core(m, 1, **k),
    "timeline": lambda m, **k: rl.plot.timeline(m, 1, **k),
    "ratings": lambda m, **k: rl.plot.ratings(m, 1, **k),
    "scores": lambda m, **k: rl.plot.scores(m, "seller", **k),
    "scores without labels": lambda m, **k: rl.plot.scores(m, "product", **k),
    "precision_recall": lambda m, **k: rl.plot.precision_recall(m, "reviewer", **k),
    "roc": lambda m, **k: rl.plot.roc(m, "seller", **k),
    "training": lambda m, **k: rl.plot.training(m, **k),
    "components": lambda m, **k: rl.plot.components(m, **k),
    "account": lambda m, **k: rl.plot.account(m, "seller", "rings0", **k),
    "calibration": lambda m, **k: rl.plot.calibration(m, "seller", **k),
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


def test_cores_have_the_numbers_they_have_in_tables(model: rl.RingDetector) -> None:
    first = model.cores()[0]
    assert first.number == 1
    title = core_data.matrix(model.tensor_, first, model.config_.contrast).title
    assert rl.plot.core(model).get_title(loc="left") == rl.plot.core(model, 1).get_title(loc="left") == title
    plt.close("all")


def test_every_chart_is_a_public_function() -> None:
    assert set(rl.plot.__all__) == {n for n in CHARTS if " " not in n}


def test_curves_take_a_truth_of_their_own(model: rl.RingDetector) -> None:
    truth = rl.read_labels(ring_labels())
    drawn = rl.plot.roc(model, "reviewer", truth=truth)
    assert "AUC" in drawn.get_title(loc="left")
    plt.close("all")


def test_calibration_shows_the_rare_high_probabilities_too() -> None:
    score = np.concatenate([np.full(5_000, 0.01), np.linspace(0.85, 0.95, 50)])
    labels = np.concatenate([np.zeros(5_000), np.ones(45), np.zeros(5)])
    chart = calibration(labels, score, "seller", "abuse")
    assert len(chart.x) == 3 and chart.x[0] == pytest.approx(0.01) and chart.x[-1] > 0.85
    few = calibration(labels[-30:], score[-30:], "seller", "abuse")
    assert len(few.x) == 1 and "too few to rely on" in few.title
    assert chart.reference != "chance"


def test_where_no_account_is_left_to_measure_on_every_curve_says_so(model: rl.RingDetector) -> None:
    assert model.labels_ is not None
    for curve in (rl.plot.roc, rl.plot.precision_recall, rl.plot.calibration):
        with pytest.raises(LabelError, match="evaluation needs both bad and good accounts"):
            curve(model, "seller", truth=model.labels_)


def test_scores_are_of_the_target_that_the_model_has() -> None:
    model = detector().fit(rl.read_reviews(ring_table()), rl.read_labels(ring_labels().assign(target="risk")))
    assert "a probability of risk above 50%" in rl.plot.scores(model, "seller").get_title(loc="left")
    plt.close("all")


def test_what_cannot_be_drawn_says_why(model: rl.RingDetector) -> None:
    bare = detector().fit(rl.read_reviews(ring_table()[["reviewer", "seller"]].rename(columns={"seller": "product"})))
    tiny = detector().fit(rl.SparseTensor.from_arrays([[0, 0], [1, 1], [1, 0]]))
    for call, message in (
        (lambda: rl.plot.core(model, 2), "there is no core 2; cores count from 1 to 1"),
        (lambda: rl.plot.core(model, 0), "there is no core 0; cores count from 1 to 1"),
        (lambda: rl.plot.core(model, -1), "there is no core -1"),
        (lambda: rl.plot.core(tiny, 1), "this model has none"),
        (lambda: rl.plot.timeline(bare, 1), "have no time"),
        (lambda: rl.plot.ratings(bare, 1), "have no rating"),
        (lambda: rl.plot.precision_recall(bare, "reviewer"), "fit with holdout=0.2"),
        (lambda: rl.plot.roc(model, "product"), "name no product"),
        (lambda: rl.plot.scores(model, "nobody"), "there is no mode"),
    ):
        with pytest.raises(SettingsError, match=message):
            call()


def test_rl_plot_is_imported_only_when_it_is_used() -> None:
    script = (
        "import sys, ringleader as rl; assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules;"
        "rl.plot.core; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def timeline_of(span: int, first: int = 1_400_000_123) -> Timeline:
    """A timeline of so many seconds, in 40 bins or fewer."""
    starts = np.unique(np.linspace(first, first + span, 41).astype(np.int64)).tolist()
    shares = (1 / (len(starts) - 1),) * (len(starts) - 1)
    return Timeline(title="", summary="", header=(), rows=(), starts=tuple(starts), core=shares, market=shares)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("span", [1, 60, 3_600, 86_400, 20 * 86_400, 400 * 86_400, 4_000_000_000])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland"])
def test_ticks_of_time_are_few_and_inside_and_in_utc(span: int, zone: str) -> None:
    figure, axes = plt.subplots()
    chart = timeline_of(span)
    with matplotlib.rc_context({"timezone": zone}):
        draw(chart, axes)
        figure.canvas.draw()
    seconds = [date.timestamp() for date in num2date(axes.get_xticks())]
    inside = [chart.starts[0] <= s <= chart.starts[-1] for s in seconds]
    names = [label.get_text() for label, is_in in zip(axes.get_xticklabels(), inside, strict=True) if is_in]
    assert 1 <= len(names) <= TIME_TICKS and len(set(names)) == len(names)
    assert all(set(name) <= set("0123456789-:.") for name in names), "digits alone: no locale changes the page"
    if span == 86_400:
        assert names == ["18:00", "05-14", "06:00", "12:00"]
        assert axes.xaxis.get_offset_text().get_text() == "2014-05-14"
    plt.close(figure)
