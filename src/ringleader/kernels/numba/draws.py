"""Compiled draws of negatives, for all cells or for those of any numbers, and who owns the entities that were drawn.

As in ``blocks``, a checksum of the files whose code is compiled here keeps numba's disk cache honest.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return, arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from ringleader.kernels.layout import OwnedDraws
from ringleader.kernels.numba.elementary import INNER, OUTER

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""


@njit(**INNER)
def _picked(key: int, number: Any, j: int, count: int) -> Any:
    """Which of ``count`` is draw j of cell ``number``. Same as: ``int(counters.uniforms(key, number, j) * count)``."""
    x = uint64(key) + ((number << uint64(8)) + uint64(j)) * uint64(0x9E3779B97F4A7C15)
    x ^= x >> uint64(30)
    x *= uint64(0xBF58476D1CE4E5B9)
    x ^= x >> uint64(27)
    x *= uint64(0x94D049BB133111EB)
    x ^= x >> uint64(31)
    return np.int64(np.float64(x >> uint64(11)) * 2.0**-53 * count)


@njit(**OUTER)
def draw_negatives(tuples: Any, codes: Any, modes: int, key: int, span: tuple[int, int]) -> None:
    """Fill columns ``modes:`` of rows ``span`` from the pool ``codes``. Same as: ``reference.draw_negatives``."""
    count = len(codes)
    for i in range(span[0], span[1]):
        for j in range(tuples.shape[1] - modes):
            tuples[i, modes + j] = codes[_picked(key, uint64(i), j, count)]


@njit(**OUTER)
def draw_numbered(tuples: Any, codes: Any, modes: int, key: int, numbers: Any, span: tuple[int, int]) -> None:
    """Fill columns ``modes:`` of rows ``span``, the draws of cells ``numbers``, from the pool ``codes``.

    Same as: ``reference.draw_numbered``.
    """
    count = len(codes)
    for i in range(span[0], span[1]):
        number = uint64(numbers[i])
        for j in range(tuples.shape[1] - modes):
            tuples[i, modes + j] = codes[_picked(key, number, j, count)]


@njit(**INNER)
def _owner(bounds: Any, code: int) -> int:
    """The range of ascending bounds that a code lies in."""
    low, high = 0, len(bounds) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if bounds[middle] <= code:
            low = middle
        else:
            high = middle
    return low


@njit(**OUTER)
def count_owned(tuples: Any, modes: int, bounds: Any, cells: Any, draws: Any, last: Any) -> None:
    """Count the cells that drew entities of each range, and those draws. last : (P,), -1."""
    for i in range(len(tuples)):
        for j in range(modes, tuples.shape[1]):
            owner = _owner(bounds, tuples[i, j])
            draws[owner] += 1
            if last[owner] != i:
                last[owner] = i
                cells[owner] += 1


@njit(**OUTER)
def place_owned(tuples: Any, modes: int, bounds: Any, places: Any, into: OwnedDraws, last: Any) -> None:
    """Write the cells, draws of each and entities of all ranges, those of range p from ``places[:, p]`` on.

    places : (2, P), where the next cell and the next draw of a range go; moved on. Same as: ``reference.owned_draws``.
    """
    for i in range(len(tuples)):
        for j in range(modes, tuples.shape[1]):
            entity = tuples[i, j]
            owner = _owner(bounds, entity)
            if last[owner] != i:
                last[owner] = i
                into.cells[places[0, owner]] = i
                places[0, owner] += 1
            into.times[places[0, owner] - 1] += 1
            into.entities[places[1, owner]] = entity
            places[1, owner] += 1


@njit(**OUTER)
def group_owned(drawn: OwnedDraws, first: int, offsets: Any, cells: Any) -> None:
    """The cells that drew each entity from ``first`` on. offsets : (size + 2,), zeros; afterwards the first size + 1.

    Same as: ``reference.group_owned``.
    """
    for n in range(len(drawn.entities)):
        offsets[drawn.entities[n] - first + 2] += 1
    for n in range(2, len(offsets)):
        offsets[n] += offsets[n - 1]
    n = 0
    for i in range(len(drawn.cells)):
        for _ in range(drawn.times[i]):
            entity = drawn.entities[n] - first + 1
            cells[offsets[entity]] = drawn.cells[i]
            offsets[entity] += 1
            n += 1
