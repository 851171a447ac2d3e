"""Random numbers from (seed, purpose, index): no order, no state, the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(counter: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection of 64 bits that leaves no pattern."""
    x = counter.copy()
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def stream_key(seed: int, stream: int) -> int:
    """One key per (seed, stream): the sweep's number, or a number set apart for another use."""
    whole = np.array([(seed + 1) & (2**64 - 1)], np.uint64) * GOLDEN
    return int(mixed(mixed(whole) + np.array([stream & (2**64 - 1)], np.uint64) * GOLDEN)[0])


def uniforms(key: int, cells: npt.NDArray[Any], draw: int) -> Floats:
    """Uniform numbers in [0, 1) for draw ``draw`` (below 256) of each cell: a function of its arguments alone."""
    counter = (np.asarray(cells, np.uint64) << np.uint64(8)) + np.uint64(draw)
    return (mixed(np.uint64(key) + counter * GOLDEN) >> np.uint64(11)).astype(np.float64) * 2.0**-53
