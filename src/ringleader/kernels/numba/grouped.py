"""Compiled sums of numbers by the code of each, of all or of the largest: without NumPy's copies and its lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.layout import read_only
from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import fetch, start

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

AHEAD, LINE = 12, 8
"""Rows by which memory is asked for before it is read, and numbers of a line of the cache."""

FEW, NEAR = 24, 4
"""Codes that are sorted by moving each to where it belongs. Others are counted, where there are up to so many times as
many that they may be as there are of them."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""


@compiled
def _add_numbers(codes: Any, values: Any, sums: Any) -> bool:
    """Add values (n,) to sums (size,); False where a code is none of these, and what was added means nothing."""
    last, total = codes[0], 0.0
    if last < 0 or last >= len(sums):
        return False
    for i in range(len(codes)):
        code = codes[i]
        if code != last:  # numbers of one code in a row stay in a register
            if code < 0 or code >= len(sums):
                return False
            sums[last] = total
            last, total = code, sums[code]
        total += values[i]
    sums[last] = total
    return True


@compiled
def _add_weighted(codes: Any, others: Any, weights: Any, values: Any, sums: Any, totals: Any) -> bool:
    """Add weights times values to sums by codes, and to totals by others; False where one is none of these."""
    for i in range(len(codes)):
        code, other = codes[i], others[i]
        if code < 0 or code >= len(sums) or other < 0 or other >= len(totals):
            return False
        number = weights[i] * values[i]
        sums[code] += number
        totals[other] += number
    return True


def weighted_sums(codes: Any, others: Any, weights: Any, values: Any, sizes: tuple[int, int]) -> tuple[Floats, Floats]:
    """Sums of weights times values, (n,) each, by two codes of each, which are below ``sizes``, as they come.

    Same as: ``reference.grouped.weighted_sums``.
    """
    sums, totals = np.zeros(sizes[0]), np.zeros(sizes[1])
    numbers = np.ascontiguousarray(values, None if values.dtype == np.bool_ else np.float64)
    parts = (codes, others, np.ascontiguousarray(weights, np.float64), numbers)
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"{len(codes)} and {len(others)} codes of {len(values)} values and {len(weights)} weights")
    if not _add_weighted(*(read_only(np.ascontiguousarray(part)) for part in parts), sums, totals):
        _check(codes, values, sizes[0])
        _check(others, weights, sizes[1])
    return sums, totals


@compiled
def _count_pairs(first: Any, second: Any, counts: Any) -> None:
    for i in range(len(first)):
        counts[first[i], second[i]] += 1.0


def counts_of_pairs(first: Any, second: Any, sizes: tuple[int, int]) -> Floats:
    """How often each pair of codes, which are below ``sizes``, occurs: ``sizes`` whole numbers.

    Same as: ``reference.grouped.counts_of_pairs``.
    """
    counts = np.zeros(sizes)
    if len(first):
        _check(first, second, sizes[0])
        _check(second, first, sizes[1])
        _count_pairs(*(read_only(np.ascontiguousarray(codes)) for codes in (first, second)), counts)
    return counts


@compiled
def _add_rows(codes: Any, values: Any, sums: Any) -> bool:
    """The same of values (n, m) and sums (size, m)."""
    for i in range(len(codes)):
        code = codes[i]
        if code < 0 or code >= len(sums):
            return False
        for k in range(values.shape[1]):
            sums[code, k] += values[i, k]
    return True


def sums_by_code(codes: Any, values: Any, size: int) -> Floats:
    """Sums of values (n,) or (n, m) by their codes, which are below ``size``, each in the order in which they come.

    Same as: ``reference.grouped.sums_by_code``.
    """
    sums = np.zeros((size, *values.shape[1:]))
    if not len(codes):
        return sums
    numbers = read_only(np.ascontiguousarray(values, np.float64))
    add = _add_numbers if values.ndim == 1 else _add_rows
    if len(codes) != len(values) or not add(read_only(np.ascontiguousarray(codes)), numbers, sums):
        _check(codes, values, size)
    return sums


@compiled
def _add_chosen(codes: Any, places: Any, rows: Any, sums: Any) -> None:
    width, last = rows.shape[1], len(codes) - 1
    memory = start(sums)
    for i in range(len(codes)):
        later = np.int64(codes[min(i + AHEAD, last)]) * width
        for k in range(0, width, LINE):
            fetch(memory, later + k)
        code, place = codes[i], places[i]
        for k in range(width):
            sums[code, k] += rows[place, k]


def sums_of_rows(codes: Any, places: Any, rows: Any, size: int) -> Floats:
    """Sums by code, below ``size``, of the row at each place of ``rows`` (m, K): (size, K), added as they come.

    Same as: ``reference.grouped.sums_of_rows``.
    """
    sums = np.zeros((size, rows.shape[1]))
    if len(codes):
        _check(codes, places, size)
        _check(places, codes, len(rows))
        whole, chosen = (read_only(np.ascontiguousarray(part)) for part in (codes, places))
        _add_chosen(whole, chosen, read_only(np.ascontiguousarray(rows, np.float64)), sums)
    return sums


@compiled
def _add_halves(codes: Any, values: Any, scale: float, finer: float, upper: Any, lower: Any) -> None:
    for i in range(len(codes)):
        code = codes[i]
        for k in range(values.shape[1]):
            high = np.rint(values[i, k] * scale)
            upper[code, k] += high
            lower[code, k] += np.rint((values[i, k] - high / scale) * finer)


def halved_sums(codes: Any, values: Any, size: int, scale: float, finer: float) -> Floats:
    """Sums by code, below ``size``, of the two whole numbers that each of values (n, K) is cut into: (2, size, K).

    scale : of the first of them. finer : of the second, which is of what the first leaves.

    Same as: ``reference.grouped.halved_sums``.
    """
    sums = np.zeros((2, size, values.shape[1]))
    if len(codes):
        _check(codes, values, size)
        numbers = read_only(np.ascontiguousarray(values, np.float64))
        _add_halves(read_only(np.ascontiguousarray(codes)), numbers, scale, finer, sums[0], sums[1])
    return sums


@compiled
def _top_sums(codes: Any, values: Any, most: int, sums: Any) -> None:
    begins = np.zeros(len(sums) + 1, np.int64)
    for i in range(len(codes)):
        if values[i] > 0.0:
            begins[codes[i] + 1] += 1
    for code in range(len(sums)):
        begins[code + 1] += begins[code]
    own = np.empty(begins[-1], np.float64)  # the values of each code side by side; then begins are their ends
    for i in range(len(codes)):
        if values[i] > 0.0:
            own[begins[codes[i]]] = values[i]
            begins[codes[i]] += 1
    largest = np.zeros(most, np.float64)  # descending
    begin = 0
    for code in range(len(sums)):
        for i in range(begin, begins[code]):
            if own[i] > largest[most - 1]:
                place = most - 1
                while place > 0 and largest[place - 1] < own[i]:
                    largest[place] = largest[place - 1]
                    place -= 1
                largest[place] = own[i]
        total = 0.0
        for k in range(most):
            total += largest[k]
            largest[k] = 0.0
        sums[code] = total
        begin = begins[code]


def top_sums(codes: Any, values: Any, size: int, most: int) -> Floats:
    """Sums of the ``most`` largest values of each code below ``size``, largest first, values below 0 as 0, (size,).

    Same as: ``reference.grouped.top_sums``.
    """
    sums = np.zeros(size)
    if len(codes):
        _check(codes, values, size)
        _top_sums(
            read_only(np.ascontiguousarray(codes)), read_only(np.ascontiguousarray(values, np.float64)), most, sums
        )
    return sums


@compiled
def _keep_larger(most: Any, places: Any, values: Any, which: Any) -> None:
    for i in range(len(places)):
        value = values[which[i]]
        if value > most[places[i]]:
            most[places[i]] = value


def keep_larger(most: Floats, places: Any, values: Any, which: Any) -> None:
    """Raise ``most`` at each of some places to the value of number ``which``, where that is larger.

    Same as: ``reference.grouped.keep_larger``.
    """
    if len(places):
        _check(places, which, len(most))
        _check(which, places, len(values))
        _keep_larger(most, *(read_only(np.ascontiguousarray(part)) for part in (places, values, which)))


@compiled
def _rank(numbers: Any, places: Any, ranks: Any) -> int:
    for i in range(len(numbers)):
        places[numbers[i]] = 1
    count = 0
    for number in range(len(places)):
        if places[number]:
            places[number] = count
            count += 1
    for i in range(len(numbers)):
        ranks[i] = places[numbers[i]]
    return count


@compiled
def _put_distinct(numbers: Any, ranks: Any, distinct: Any) -> None:
    for i in range(len(numbers)):
        distinct[ranks[i]] = numbers[i]


def dense_ranks(numbers: Any, size: int) -> tuple[Numbers, Numbers]:
    """Distinct numbers (n,) from 0 and below ``size``, ascending, and the rank of each among them: by a table.

    Same as: ``reference.grouped.dense_ranks``.
    """
    ranks = np.empty(len(numbers), np.int64)
    if not len(numbers):
        return ranks, ranks.copy()
    _check(numbers, numbers, size)
    own = read_only(np.ascontiguousarray(numbers))
    distinct = np.empty(_rank(own, np.zeros(size, np.int32), ranks), np.int64)
    _put_distinct(own, ranks, distinct)
    return distinct, ranks


@compiled
def _sort_few(codes: Any, places: Any, begin: int, end: int) -> None:
    """Sort the codes of a range, with their places; equal ones stay as they are. By moving each to where it belongs."""
    for i in range(begin + 1, end):
        code, place, at = codes[i], places[i], i
        while at > begin and codes[at - 1] > code:
            codes[at], places[at] = codes[at - 1], places[at - 1]
            at -= 1
        codes[at], places[at] = code, place


@compiled
def _sort_counted(codes: Any, places: Any, begin: int, end: int, least: int, table: Any, copies: Any) -> None:
    """The same by counting. table : zeros for all codes from ``least`` on, before and after. copies : (2, n) memory."""
    for i in range(begin, end):
        table[codes[i] - least] += 1
        copies[0, i], copies[1, i] = codes[i], places[i]
    at = begin
    for code in range(len(table)):
        at, table[code] = at + table[code], at
    for i in range(begin, end):
        at = table[copies[0, i] - least]
        codes[at], places[at] = copies[0, i], copies[1, i]
        table[copies[0, i] - least] += 1
    table[:] = 0


@compiled
def _sort_merging(codes: Any, places: Any, begin: int, end: int, copies: Any) -> None:
    """The same by merging runs that are twice as long each time."""
    for run in range(begin, end, FEW):
        _sort_few(codes, places, run, min(run + FEW, end))
    length = FEW
    while length < end - begin:
        for i in range(begin, end):
            copies[0, i], copies[1, i] = codes[i], places[i]
        for run in range(begin, end, 2 * length):
            middle, last = min(run + length, end), min(run + 2 * length, end)
            a, b = run, middle
            for i in range(run, last):
                if b >= last or (a < middle and copies[0, a] <= copies[0, b]):
                    codes[i], places[i] = copies[0, a], copies[1, a]
                    a += 1
                else:
                    codes[i], places[i] = copies[0, b], copies[1, b]
                    b += 1
        length *= 2


@compiled
def _number_pairs(first: Any, second: Any, begins: Any, one: Any, two: Any, where: Any, memory: Any) -> int:
    """Fill ``where`` with the number of each pair, and ``one`` and ``two`` with the pairs of these numbers, ascending,
    of which there are so many.

    begins : (size + 1,) zeros, memory. memory : (4, n), of NumPy, which asks for large pages
    """
    for i in range(len(first)):
        begins[first[i] + 1] += 1
    for code in range(1, len(begins)):
        begins[code] += begins[code - 1]
    codes, places = memory[0], memory[1]
    for i in range(len(first)):  # afterwards begins are ends
        at = begins[first[i]]
        codes[at], places[at] = second[i], i
        begins[first[i]] += 1
    copies, table = memory[2:], np.zeros(0, np.int32)
    begin, count = 0, 0
    for code in range(len(begins) - 1):
        end = begins[code]
        ascends, least, most = True, np.int32(0), np.int32(0)
        if end > begin:
            least = most = codes[begin]
        for i in range(begin + 1, end):
            ascends = ascends and codes[i - 1] <= codes[i]
            least, most = min(least, codes[i]), max(most, codes[i])
        if not ascends and end - begin <= FEW:
            _sort_few(codes, places, begin, end)
        elif not ascends:
            width = np.int64(most) - least + 1
            if width <= NEAR * (end - begin):
                if width > len(table):
                    table = np.zeros(2 * width, np.int32)
                _sort_counted(codes, places, begin, end, least, table[:width], copies)
            else:
                _sort_merging(codes, places, begin, end, copies)
        for i in range(begin, end):
            if i == begin or codes[i] != codes[i - 1]:
                one[count], two[count] = code, codes[i]
                count += 1
            where[places[i]] = count - 1
        begin = end
    return count


def distinct_pairs(first: Any, second: Any, sizes: tuple[int, int]) -> tuple[Numbers, Numbers, Numbers]:
    """Each pair of codes that occurs, in ascending order (first and second), and which one every place has.

    Same as: ``reference.grouped.distinct_pairs``.
    """
    first, second = (read_only(np.ascontiguousarray(codes, np.int32)) for codes in (first, second))
    one, two, where = (np.empty(len(first), np.int64) for _ in range(3))
    if len(first):
        _check(first, second, sizes[0])
        _check(second, first, sizes[1])
    begins, memory = np.zeros(sizes[0] + 1, np.int32), np.empty((4, len(first)), np.int32)
    count = _number_pairs(first, second, begins, one, two, where, memory)
    return one[:count].copy(), two[:count].copy(), where


def _check(codes: Any, values: Any, size: int) -> None:
    """Kernels read and write memory without asking."""
    if len(codes) != len(values) or codes.min() < 0 or codes.max() >= size:
        raise ValueError(f"{len(codes)} codes from {codes.min()} to {codes.max()} of {len(values)} values, size {size}")
