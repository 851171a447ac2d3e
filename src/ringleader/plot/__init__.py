"""Charts of a model: axes in, axes out. ``rl.plot.core(model, 1)`` draws on new axes; ``ax=`` draws on yours.
Cores count from 1.

``axes`` holds the public functions, ``charts`` what a chart is, ``account_data``, ``core_data`` and ``score_data`` make
them, ``draw`` puts them on axes: the report draws the same ones.
"""

from ringleader.plot.axes import (
    account,
    calibration,
    components,
    core,
    precision_recall,
    ratings,
    roc,
    scores,
    timeline,
    training,
)

__all__ = [
    "account",
    "calibration",
    "components",
    "core",
    "precision_recall",
    "ratings",
    "roc",
    "scores",
    "timeline",
    "training",
]
