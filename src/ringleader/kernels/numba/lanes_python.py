"""Lanes without compilation: four numbers are an array of shape (4,), a pointer is a flat view. Slow.

``fma`` rounds twice here, so the last bits differ from those of compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MIDDLE = np.int64(0x3FE6A09E667F3BCD)
_SHIFT = np.int64(52)


def spread(number: float) -> Any:
    """One number in all four lanes."""
    return np.full(4, number, np.float64)


def lane(value: Any, place: int) -> float:
    """One of the four."""
    return float(value[place])


def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c."""
    return a * b + c


def start(array: Any) -> Any:
    """A contiguous array, flat."""
    return np.asarray(array).reshape(-1)


def after(pointer: Any, offset: int) -> Any:
    return pointer[offset:]


def load(pointer: Any, offset: int) -> Any:
    return pointer[offset : offset + 4].astype(np.float64)


def load_some(pointer: Any, offset: int, count: int) -> Any:
    """The first ``count`` of ``load``, then zeros."""
    value = np.zeros(4)
    value[: min(count, 4)] = pointer[offset : offset + min(count, 4)]
    return value


def store(pointer: Any, offset: int, value: Any) -> None:
    pointer[offset : offset + 4] = value


def fetch(pointer: Any, offset: int) -> None:
    """Nothing to do."""


def sums(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sums of the lanes of four values, in the four lanes of one."""
    return np.array([(x[0] + x[1]) + (x[2] + x[3]) for x in (a, b, c, d)])


def less(a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    return np.where(a < b, then, otherwise)


def size(value: Any) -> Any:
    return np.abs(value)


def whole(value: Any) -> Any:
    return np.rint(value)


def halvings(value: Any) -> Any:
    return 2.0**-value


def exponents(value: Any) -> Any:
    """k of four numbers from 1 up, where number = 2^k z and z lies between the roots of 1/2 and of 2."""
    return ((value.view(np.int64) - _MIDDLE) >> _SHIFT).astype(np.float64)


def mantissas(value: Any) -> Any:
    """z of ``exponents``."""
    bits = value.view(np.int64)
    return (bits - (((bits - _MIDDLE) >> _SHIFT) << _SHIFT)).view(np.float64)
