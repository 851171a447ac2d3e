"""Ringleader finds the sellers who buy reviews and the reviewers who sell them.

Names are imported when they are first used, so that ``import ringleader`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ringleader.version import __version__

if TYPE_CHECKING:
    from ringleader import datasets, plot
    from ringleader.detector import RingDetector, load
    from ringleader.errors import RingleaderError, RingleaderWarning
    from ringleader.evaluation.truth import evaluate_frame as evaluate
    from ringleader.known.labels import Labels, read_labels
    from ringleader.runtime.ray import Ray
    from ringleader.tensor.encode import read_reviews
    from ringleader.tensor.sparse import SparseTensor

_HOMES = {
    "Labels": "ringleader.known.labels",
    "Ray": "ringleader.runtime.ray",
    "RingDetector": "ringleader.detector",
    "RingleaderError": "ringleader.errors",
    "RingleaderWarning": "ringleader.errors",
    "SparseTensor": "ringleader.tensor.sparse",
    "load": "ringleader.detector",
    "read_labels": "ringleader.known.labels",
    "read_reviews": "ringleader.tensor.encode",
}
_MODULES = ("datasets", "plot")

__all__ = [
    "Labels",
    "Ray",
    "RingDetector",
    "RingleaderError",
    "RingleaderWarning",
    "SparseTensor",
    "__version__",
    "datasets",
    "evaluate",
    "load",
    "plot",
    "read_labels",
    "read_reviews",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "evaluate":
        return importlib.import_module("ringleader.evaluation.truth").evaluate_frame
    if name in _MODULES:
        return importlib.import_module(f"ringleader.{name}")
    raise AttributeError(f"module 'ringleader' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
