"""Ticks of a time axis: round times, few enough to be read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MOST = 6
STEPS: tuple[tuple[str, tuple[int, ...], int], ...] = (
    ("s", (1, 5, 15, 30), 19),
    ("m", (1, 5, 15, 30), 16),
    ("h", (1, 3, 6, 12), 13),
    ("D", (1, 2, 7, 14), 10),
    ("M", (1, 3, 6), 7),
    ("Y", (1, 2, 5, 10, 20, 50), 4),
)
"""Units of NumPy's times, how many of them lie between ticks, and the letters of an ISO time that tell them."""


def time_ticks(first: int, last: int) -> tuple[npt.NDArray[np.datetime64], list[str]]:
    """Round times between two Unix seconds, at most MOST of them, and how they are written."""
    start, end = np.datetime64(first, "s"), np.datetime64(last, "s")
    for unit, sizes, letters in STEPS:
        for size in sizes:
            ticks = _round_times(start, end, unit, size)
            if len(ticks) <= MOST:
                return ticks, [_written(tick, unit, letters) for tick in ticks]
    return np.array([start, end]), [str(start)[:10], str(end)[:10]]


def _round_times(start: np.datetime64, end: np.datetime64, unit: str, size: int) -> npt.NDArray[np.datetime64]:
    low = start.astype(f"datetime64[{unit}]").astype(np.int64)
    high = end.astype(f"datetime64[{unit}]").astype(np.int64)
    if (high - low) // size > 100 * MOST:
        return np.full(MOST + 1, start)
    counts = np.arange(-(-low // size) * size, high + 1, size)
    ticks = counts.astype(f"datetime64[{unit}]").astype("datetime64[s]")
    return ticks[(ticks >= start) & (ticks <= end)]


def _written(tick: np.datetime64, unit: str, letters: int) -> str:
    text = str(tick)[:letters].replace("T", " ")
    return text[5:] + ":00" if unit == "h" else text[5:] if unit == "m" else text[11:] if unit == "s" else text
