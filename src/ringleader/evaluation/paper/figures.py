"""The paper's figures as SVG: learning curves in four panels, and lambda over the iterations."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from ringleader.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"natural-gradient": "#0072b2", "sgd": "#d55e00", "online-em": "#009e73"}
"""Distinguishable also by the colour-blind."""
MARKERS = {"natural-gradient": "o", "sgd": "s", "online-em": "^"}


def paper_figures(frames: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """SVG text by file name, of what has been measured so far."""
    made = {}
    if "epochs" in frames:
        for preset, rows in frames["epochs"].groupby("preset", sort=False):
            made[f"figures/epochs-{preset}.svg"] = _svg(_learning_curves(rows, str(preset)))
    if "shrinkage" in frames:
        made["figures/shrinkage.svg"] = _svg(_shrinkage(frames["shrinkage"]))
    return made


def _learning_curves(rows: pd.DataFrame, preset: str) -> Figure:
    figure = _figure(8.0, 5.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True, squeeze=False)
    for i, mode in enumerate(("seller", "reviewer")):
        for j, side in enumerate(("train", "test")):
            axes = panels[i][j]
            for learner, own in rows[rows["mode"] == mode].groupby("learner", sort=False):
                mean = own.groupby("epoch")[f"{side}_auc"].mean()
                axes.plot(mean.index, mean, color=COLOURS[str(learner)], marker=MARKERS[str(learner)], label=learner)
            axes.axhline(0.5, color="0.7", linewidth=0.8, label="chance")
            axes.set_title(f"{plural(mode)}, {'labelled' if side == 'train' else 'tested'}", fontsize=10)
            axes.set_ylabel("AUC")
            if i:
                axes.set_xlabel("epoch")
    panels[0][0].legend(fontsize=8, frameon=False)
    seeds = rows["seed"].nunique()
    markets = f"mean of {seeds} markets" if seeds > 1 else "one market"
    figure.suptitle(f"AUC over six epochs, preset {preset}, {markets}")
    return figure


def _shrinkage(rows: pd.DataFrame) -> Figure:
    figure = _figure(8.0, 3.2)
    panels = figure.subplots(1, 2, squeeze=False)[0]
    for axes, column, title in (
        (panels[0], "left", "mean weight relative to its start"),
        (panels[1], "shrunk", "share of components below a tenth of their start"),
    ):
        for learner, own in rows.groupby("learner", sort=False):
            axes.plot(own["iteration"], own[column], color=COLOURS[str(learner)], label=learner)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("iteration (a batch of 512)")
        axes.set_ylim(bottom=0)
    panels[0].legend(fontsize=8, frameon=False)
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure) -> str:
    """The same bytes for the same figure."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "ringleader", "svg.fonttype": "none"}):
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
