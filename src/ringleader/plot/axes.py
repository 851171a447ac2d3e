"""Charts of a model: axes in, axes out.

``rl.plot.core(model, 1)`` draws on new axes and returns them; ``rl.plot.core(model, 1, ax=ax)`` draws on yours.
``ringleader report`` shows the same charts, written as SVG (``report.svg``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.arrays import Floats
from ringleader.cores import Core
from ringleader.detector import RingDetector
from ringleader.errors import SettingsError
from ringleader.plot import account_data, core_data, score_data
from ringleader.plot.charts import Chart
from ringleader.plot.draw import draw_on
from ringleader.snapshot.answers import as_of_now

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    *("account", "calibration", "components", "core", "precision_recall", "ratings", "roc", "scores", "timeline"),
    "training",
]


def account(model: RingDetector, mode: str, entity: Any, target: str | None = None, *, ax: Axes | None = None) -> Axes:
    """When an account had its reviews, and when the market did."""
    described = model.explain(mode, entity, target).account
    return _on(account_data.activity(described), ax)


def calibration(
    model: RingDetector, mode: str, target: str | None = None, *, truth: Any = None, ax: Axes | None = None
) -> Axes:
    """Observed shares of bad accounts against predicted probabilities, on the labels held out or on ``truth``."""
    labels, score, name = _judged(model, truth, mode, target)
    return _on(score_data.calibration(labels, score, mode, name), ax)


def core(model: RingDetector, number: int = 1, *, ax: Axes | None = None) -> Axes:
    """Who reviewed whom in a core: the core is the framed block, the colour is the rating. Cores count from 1."""
    model = as_of_now(model)
    chart = core_data.matrix(model.tensor_, _core(model, number), model.config_.contrast)
    return _on(chart, ax, (8.0, 4.5))


def timeline(model: RingDetector, number: int = 1, *, ax: Axes | None = None) -> Axes:
    """When a core wrote its reviews, and when the market did. Cores count from 1."""
    model = as_of_now(model)
    return _on(core_data.timeline(model.tensor_, _core(model, number)), ax)


def ratings(model: RingDetector, number: int = 1, *, ax: Axes | None = None) -> Axes:
    """Which ratings a core gave, and which the market gives. Cores count from 1."""
    model = as_of_now(model)
    return _on(core_data.ratings(model.tensor_, _core(model, number)), ax)


def scores(model: RingDetector, mode: str, target: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The distribution of the scores of a mode, and the labelled accounts."""
    model = as_of_now(model)
    chosen = model.snapshot_.target(mode, target)
    return _on(score_data.scores(model.scores(mode, target), mode, chosen.name if chosen is not None else None), ax)


def precision_recall(
    model: RingDetector, mode: str, target: str | None = None, *, truth: Any = None, ax: Axes | None = None
) -> Axes:
    """Precision over recall on the labels that were held out, or on ``truth``; never on those that trained."""
    labels, score, name = _judged(model, truth, mode, target)
    return _on(score_data.precision_recall(labels, score, mode, name), ax)


def roc(
    model: RingDetector, mode: str, target: str | None = None, *, truth: Any = None, ax: Axes | None = None
) -> Axes:
    """The ROC on the labels that were held out, or on ``truth``; never on those that trained."""
    labels, score, name = _judged(model, truth, mode, target)
    return _on(score_data.roc(labels, score, mode, name), ax)


def training(model: RingDetector, *, ax: Axes | None = None) -> Axes:
    """The log-likelihood, sweep by sweep."""
    return _on(score_data.training(model), ax)


def components(model: RingDetector, *, ax: Axes | None = None) -> Axes:
    """The share of the tensor that each component explains."""
    return _on(score_data.components(as_of_now(model)), ax)


def _judged(model: RingDetector, truth: Any, mode: str, target: str | None) -> tuple[Floats, Floats, str]:
    model = as_of_now(model)
    return score_data.judged(model, score_data.heldout(model, truth), mode, target)


def _core(model: RingDetector, number: int) -> Core:
    cores = model.cores()
    if not 1 <= number <= len(cores):
        numbers = f"cores count from 1 to {len(cores)}" if len(cores) else "this model has none"
        raise SettingsError(f"there is no core {number}; {numbers}")
    return cores[number - 1]


def _on(chart: Chart, ax: Axes | None, size: tuple[float, float] = (6.4, 3.6)) -> Axes:
    if ax is not None:
        return draw_on(chart, ax, narrow=True)
    import matplotlib.pyplot as plt

    _, own = plt.subplots(figsize=size, layout="constrained")
    return draw_on(chart, own, narrow=False)
