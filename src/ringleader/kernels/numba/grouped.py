"""Compiled sums of numbers by the code of each: ``np.bincount`` without its copies and the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.arrays import Floats
from ringleader.kernels.layout import read_only
from ringleader.kernels.numba.elementary import OUTER

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def _add_numbers(codes: Any, values: Any, sums: Any) -> None:
    """Add values (n,) to sums (size,)."""
    last, total = codes[0], sums[codes[0]]
    for i in range(len(codes)):
        code = codes[i]
        if code != last:  # numbers of one code in a row stay in a register
            sums[last] = total
            last, total = code, sums[code]
        total += values[i]
    sums[last] = total


@compiled
def _add_rows(codes: Any, values: Any, sums: Any) -> None:
    """Add values (n, m) to sums (size, m)."""
    for i in range(len(codes)):
        code = codes[i]
        for k in range(values.shape[1]):
            sums[code, k] += values[i, k]


def sums_by_code(codes: Any, values: Any, size: int) -> Floats:
    """Sums of values (n,) or (n, m) by their codes, which are below ``size``, each in the order in which they come.

    Same as: ``reference.grouped.sums_by_code``.
    """
    sums = np.zeros((size, *values.shape[1:]))
    if not len(codes) and not len(values):
        return sums
    if len(codes) != len(values) or codes.min() < 0 or codes.max() >= size:
        raise ValueError(f"{len(codes)} codes from {codes.min()} to {codes.max()} of {len(values)} values, size {size}")
    numbers = read_only(np.ascontiguousarray(values, np.float64))
    (_add_numbers if values.ndim == 1 else _add_rows)(read_only(np.ascontiguousarray(codes)), numbers, sums)
    return sums
