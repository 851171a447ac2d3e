"""Plain NumPy of ``ways`` and ``curves``: the specification, and the oracle of the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Floats
from ringleader.kernels.way_layout import ReviewWays


def way_sums(
    ways: ReviewWays, worth: tuple[float, float], codes: Any, others: Any, sizes: tuple[int, int]
) -> tuple[Floats, Floats]:
    """See ``ways.way_sums``."""
    ratio = np.maximum(np.maximum(ways.lockstep, ways.strangers), ways.attack)
    own, around = ways.loud * (1.0 + worth[0] * ways.evidence), worth[1] * ways.campaign
    whole = own + around
    strangers = (ways.strangers > 0) & (ways.strangers == ratio)
    attack = (ways.attack > 0) & (ways.attack == ratio)
    parts = [
        np.where(strangers | attack, 0.0, ways.loud * whole),
        np.where(strangers & ~attack, ways.loud * whole, 0.0),
        np.where(attack, ways.loud * whole, 0.0),
        (own - ways.loud) * whole,
        around * whole,
    ]
    total = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    sums = [np.bincount(codes, weights=part * ways.fair, minlength=sizes[0]) for part in parts]
    of_all = np.bincount(others, weights=total, minlength=sizes[1])
    return np.stack(sums, axis=1).astype(np.float64), of_all.astype(np.float64)


def add_others(places: Any, sides: Any, loud: Any, count: int, made: Floats) -> None:
    """See ``ways.add_others``."""
    taken = sides < 2
    place = places * 2 + np.minimum(sides, 1)
    number = np.bincount(place, weights=taken, minlength=2 * count)
    total = np.bincount(place, weights=loud * taken, minlength=2 * count)
    made += taken * np.maximum(total[place] - loud, 0.0) / np.maximum(number[place], 1.0)


def add_curve(weights: Floats, table: Floats, turned: Floats, base: float, levels: Any, total: Floats) -> None:
    """See ``curves.add_curve``."""
    curve = np.zeros(len(table))
    for weight, row in zip(weights, table.T, strict=True):
        curve += weight * row
    total += (curve - base)[levels]
