"""Scales of the charts of a page: where a value lies, and at which values there are ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

Tick = tuple[float, str]
"""A value, and what is written beside it."""

STEPS = (1.0, 2.0, 2.5, 5.0)
"""Distances of ticks, times a power of ten."""
TIME_TICKS = 5
"""Ticks of a scale of times, at most."""
TIME_STEPS = (
    *(("s", step) for step in (1, 2, 5, 10, 15, 30)),
    *(("m", step) for step in (1, 2, 5, 10, 15, 30)),
    *(("h", step) for step in (1, 2, 3, 6, 12)),
    *(("D", step) for step in (1, 2, 7, 14)),
    *(("M", step) for step in (1, 2, 3, 6)),
    *(("Y", step * 10**power) for power in range(9) for step in (1, 2, 5)),
)
"""Units of NumPy, and how many of them lie between ticks; the shortest first."""
WRITTEN = {"s": slice(11, 19), "m": slice(5, 16), "h": slice(5, 16), "D": slice(0, 10), "M": slice(0, 7)}
"""The part of an ISO time that ticks of a unit show; years show themselves."""


class Scale(NamedTuple):
    """Values from ``low`` to ``high`` lie from ``start`` to ``end``; ``log`` where it is logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def round_ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Round values from low to high, equally far apart, ``most`` of them or fewer; ``whole`` for whole numbers."""
    if not high > low:
        return [low]
    for step in _steps((high - low) / most):
        if whole and step != int(step):
            continue
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [round(i * step, 12) for i in range(first, last + 1)] or [low]
    raise AssertionError("steps have no end")


def _steps(least: float) -> Iterator[float]:
    power = math.floor(math.log10(least))
    while True:
        yield from (step * 10.0**power for step in STEPS if step * 10.0**power >= least * 0.999)
        power += 1


def number_ticks(values: list[float]) -> list[Tick]:
    """Values with as many digits as tell them apart."""
    apart = min((abs(b - a) for a, b in pairwise(values)), default=1.0)
    digits = 0
    while digits < 9 and abs(round(apart, digits) - apart) > 1e-9 * apart:
        digits += 1
    return [(value, f"{value:,.{digits}f}".replace("-", "\u2212")) for value in values]


def percent_ticks(values: list[float]) -> list[Tick]:
    """Shares as percentages."""
    return [(value, f"{100 * value:g}%") for value in values]


def time_ticks(first: int, last: int) -> list[Tick]:
    """Few round times in UTC between two, in Unix seconds, written in digits."""
    ends = np.array([first, last], "datetime64[s]")
    for unit, step in TIME_STEPS:
        low, high = ends.astype(f"datetime64[{unit}]").astype(np.int64).tolist()
        offset = 1970 if unit == "Y" else 0  # so that years are round
        numbers = range(-(-(low + offset) // step), (high + offset) // step + 1)
        if len(numbers) > TIME_TICKS + 1:
            continue
        times = np.array([n * step - offset for n in numbers], np.int64).astype(f"datetime64[{unit}]")
        seconds = times.astype("datetime64[s]").astype(np.int64).tolist()
        inside = [(s, str(t)) for s, t in zip(seconds, times.astype("datetime64[s]"), strict=True) if first <= s]
        if len(inside) <= TIME_TICKS:
            return [(float(s), _written(text, unit)) for s, text in inside if s <= last]
    return []


def _written(text: str, unit: str) -> str:
    shown = text[WRITTEN[unit]] if unit in WRITTEN else text[: text.index("-", 1)]
    return shown.replace("T", " ")
