"""Compiled ranks of numbers, which are sorted by the digits of their bits, and the middle ones of many short lists."""

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

DIGIT, DIGITS = 11, 6
"""Bits that are sorted by in one pass, and passes that go through all 64."""
SIZE = 1 << DIGIT
SIGN, LAST, ZERO = np.uint64(1 << 63), np.uint64(SIZE - 1), np.uint64(0)
FEW = 24
"""Values that are sorted by moving each to where it belongs."""
ROUNDS = 64
"""Times that values are parted around one of them before they are sorted: chance needs a third of that for millions."""
CANDIDATES = 31
"""Numbers, about, whose middle one is taken for the most frequent."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def _sort(keys: Any, owners: Any, count: int) -> int:
    """Sort the first ``count`` keys of ``keys[0]``, with their owners; in which of the two rows they are afterwards.

    keys, owners : (2, n), the second rows are memory
    """
    digits = np.zeros((DIGITS, SIZE), np.int32)
    for i in range(count):
        key = keys[0, i]
        for d in range(DIGITS):
            digits[d, np.int64((key >> np.uint64(d * DIGIT)) & LAST)] += 1
    row = 0
    for d in range(DIGITS):
        shift, begin = np.uint64(d * DIGIT), 0
        if count == 0 or digits[d, np.int64((keys[row, 0] >> shift) & LAST)] == count:
            continue  # all have this digit
        for value in range(SIZE):
            begin, digits[d, value] = begin + digits[d, value], begin
        for i in range(count):
            key = keys[row, i]
            digit = np.int64((key >> shift) & LAST)
            at = digits[d, digit]
            keys[1 - row, at], owners[1 - row, at] = key, owners[row, i]
            digits[d, digit] = at + 1
        row = 1 - row
    return row


@compiled
def _rank(values: Any, bits: Any, common: float, key: Any, places: Any, distinct: Any, distinct_places: Any) -> int:
    """Fill places of all, and distinct numbers as bits with their places, of which there are so many.

    common : a number that may stand there often, left out of the sorting. key : its bits, as they are sorted
    """
    n = len(values)
    keys, owners = np.empty((2, n), np.uint64), np.empty((2, n), np.int32)
    others = 0
    for i in range(n):
        if values[i] != common:
            keys[0, others] = ~bits[i] if bits[i] & SIGN else bits[i] | SIGN  # ascend with the numbers
            owners[0, others] = i
            others += 1
    row = _sort(keys, owners, others)
    common_place, count, before, begin = -1.0, 0, 0, 0
    while begin < others or (common_place < 0.0 and others < n):
        if common_place < 0.0 and others < n and (begin == others or keys[row, begin] > key):
            distinct[count], before = key, n - others
            common_place = begin + before / 2
            distinct_places[count] = common_place
        else:
            first, end = keys[row, begin], begin + 1
            while end < others and keys[row, end] == first:
                end += 1
            place = before + begin + (end - begin) / 2
            distinct[count], distinct_places[count] = first, place
            for i in range(begin, end):
                places[owners[row, i]] = place
            begin = end
        count += 1
    if others < n:
        for i in range(n):
            if values[i] == common:
                places[i] = common_place
    for i in range(count):
        distinct[i] = distinct[i] ^ SIGN if distinct[i] & SIGN else ~distinct[i]
    return count


def number_places(values: Any) -> tuple[Floats, Floats, Floats]:
    """The place of each of values (n,), none of them NaN: how many are less, and half of those that equal it. Distinct
    values, ascending, and theirs.

    Same as: ``reference.grouped.number_places``.
    """
    own = np.ascontiguousarray(values, np.float64) + 0.0  # one zero, not two
    places, distinct, distinct_places = np.empty((3, len(own)))
    if not len(own):
        return places, distinct, distinct_places
    common = np.sort(own[:: max(len(own) // CANDIDATES, 1)])
    common = common[len(common) // 2 :][:1]
    key = common.view(np.uint64)[0]
    key = ~key if key & SIGN else key | SIGN
    bits = distinct.view(np.uint64)
    count = _rank(read_only(own), read_only(own.view(np.uint64)), float(common[0]), key, places, bits, distinct_places)
    return places, distinct[:count].copy(), distinct_places[:count].copy()


@compiled
def _select(values: Any, begin: int, end: int, place: int) -> None:
    """Reorder a range of values so that one stands at its place as if they were sorted, those before it no larger and
    those behind it no less: Hoare's selection. Few are sorted, and those of which no half is ruled out often enough.
    """
    low, high, rounds = begin, end - 1, ROUNDS
    while high - low >= FEW:
        rounds -= 1
        if rounds < 0:
            values[low : high + 1].sort()
            return
        pivot, i, j = values[place], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < place:
            low = i
        if place < i:
            high = j
    for i in range(low + 1, high + 1):
        value, at = values[i], i
        while at > low and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@compiled
def _middles(codes: Any, values: Any, middles: Any) -> None:
    begin = 0
    while begin < len(codes):
        code, end = codes[begin], begin
        while end < len(codes) and codes[end] == code:
            end += 1
        lower, upper = begin + (end - begin - 1) // 2, begin + (end - begin) // 2
        _select(values, begin, end, upper)
        largest = values[upper]
        if lower < upper:
            largest = values[begin]
            for i in range(begin + 1, upper):
                largest = max(largest, values[i])
        middles[code, 0], middles[code, 1] = largest, values[upper]
        begin = end


def middles(codes: Any, values: Any, size: int) -> Floats:
    """The lower and the upper middle one of the values of each code below ``size``, (size, 2); 0 where it has none.

    codes : (n,), ascending.

    Same as: ``reference.grouped.middles``.
    """
    made = np.zeros((size, 2))
    if len(codes):
        if len(codes) != len(values) or codes[0] < 0 or codes[-1] >= size:
            raise ValueError(f"{len(codes)} codes from {codes[0]} to {codes[-1]} of {len(values)} values, size {size}")
        _middles(read_only(np.ascontiguousarray(codes)), np.array(values, np.float64), made)
    return made
