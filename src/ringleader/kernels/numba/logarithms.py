"""Compiled logarithms of long arrays, with the bits of ``kernels/elementary``: nothing is fused here either."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from numba import njit

from ringleader.kernels.numba.elementary import INNER, OUTER
from ringleader.kernels.numba.lanes import exponents, lane, less, load, mantissas, spread, start, store

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""
inlined = cast(Callable[[Kernel], Kernel], njit(**INNER))


@inlined
def _logarithm(value: Any) -> Any:
    """log of four finite numbers above 0 that have all their bits, step by step as ``elementary._log`` has it."""
    k, f = exponents(value), mantissas(value) - spread(1.0)
    k = less(k, spread(2048.0), k, k - spread(4096.0))  # twelve bits, of which the first is the sign
    s = f / (spread(2.0) + f)
    z = s * s
    w = z * z
    even = (w * spread(1.531383769920937332e-01) + spread(2.222219843214978396e-01)) * w
    even = even + spread(3.999999999940941908e-01)
    odd = (w * spread(1.479819860511658591e-01) + spread(1.818357216161805012e-01)) * w
    odd = (odd + spread(2.857142874366239149e-01)) * w + spread(6.666666666666735130e-01)
    rest = w * even + z * odd
    half = spread(0.5) * f * f
    small = s * (half + rest) + k * spread(1.90821492927058770002e-10)
    return k * spread(6.93147180369123816490e-01) - ((half - small) - f)


@inlined
def _sum(lanes: Any) -> float:
    return lane(lanes, 0) + lane(lanes, 1) + lane(lanes, 2) + lane(lanes, 3)


@compiled
def log(numbers: Any, beyond: float, made: Any) -> float:
    """Fill ``made`` with the logarithms of numbers, of which there are whole fours; how many are finite and larger
    than ``beyond``. What is made of the others means nothing, nor of those that have fewer bits than others.

    Same as: ``elementary.log``.
    """
    x, y = start(numbers), start(made)
    zero, one, least, most = spread(0.0), spread(1.0), spread(beyond), spread(math.inf)
    common = zero
    for i in range(0, len(numbers), 4):
        value = load(x, i)
        common = common + less(value, most, less(least, value, one, zero), zero)
        store(y, i, _logarithm(value))
    return float(_sum(common))


@compiled
def log1p(numbers: Any, beyond: float, made: Any) -> float:
    """The same of log(1 + x). Same as: ``elementary.log1p``."""
    x, y = start(numbers), start(made)
    zero, one, least, most = spread(0.0), spread(1.0), spread(beyond), spread(math.inf)
    common = zero
    for i in range(0, len(numbers), 4):
        value = load(x, i)
        common = common + less(value, most, less(least, value, one, zero), zero)
        above = one + value
        store(y, i, _logarithm(above) + (value - (above - one)) / above)
    return float(_sum(common))
