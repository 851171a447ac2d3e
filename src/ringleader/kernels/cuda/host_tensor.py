"""A tensor that is larger than the device: its cells stay in page-locked memory of the host, sorted for every mode."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Codes, frozen
from ringleader.errors import DeviceError
from ringleader.kernels.cuda.copies import Span
from ringleader.runtime.executor import Threads

ROWS_A_PIECE = 1 << 20
"""Rows that a thread copies or sorts at a time."""

Pinned = Callable[[tuple[int, ...], Any], Any]


class Lines(NamedTuple):
    """Codes of cells, one line each, in the order of a list."""

    array: Codes  # (n, K), or (n, K + 1)
    own: int  # the column that has the numbers of the cells in the place of codes; -1: line i is cell i


class HostTensor:
    """The codes of all cells, and their lines in the order of each mode's entities."""

    def __init__(self, codes: Codes, pinned: Pinned) -> None:
        self._pinned = pinned
        self.codes: Codes = pinned(codes.shape, np.int32)
        Threads().map(lambda span: np.copyto(self.codes[slice(*span)], codes[slice(*span)]), spans_of(len(codes)))
        self._columns: dict[int, Codes] = {}
        self._lines: dict[int, tuple[weakref.ref[Codes], Lines]] = {}

    def column(self, mode: int) -> Codes:
        """Codes of one mode, (n,), read-only."""
        if mode not in self._columns:
            self._columns[mode] = frozen(np.ascontiguousarray(self.codes[:, mode]))
        return self._columns[mode]

    def lines(self, mode: int, cells: Codes) -> Lines:
        """The lines of ``cells``; of those with all codes (``mode`` -1), the number of the cell is in a column more.

        Lines of a list that nobody writes to are kept as long as it lives.
        """
        known = self._lines.get(id(cells))
        if known is not None and known[0]() is cells:
            return known[1]
        lines = Lines(self.codes, -1) if self._all_in_order(cells) else self._sorted(mode, cells)
        if not cells.flags.writeable:
            key = id(cells)
            self._lines[key] = (weakref.ref(cells, lambda _: self._lines.pop(key, None)), lines)
        return lines

    def _all_in_order(self, cells: Codes) -> bool:
        return len(cells) == len(self.codes) and all(
            np.array_equal(cells[slice(*span)], np.arange(*span)) for span in spans_of(len(cells))
        )

    def _sorted(self, mode: int, cells: Codes) -> Lines:
        modes = self.codes.shape[1]
        own = mode if mode >= 0 else modes
        lines: Codes = self._pinned((len(cells), modes + (mode < 0)), np.int32)

        def gather(span: Span) -> None:
            part = lines[slice(*span)]
            part[:, :modes] = self.codes[cells[slice(*span)]]
            part[:, own] = cells[slice(*span)]

        Threads().map(gather, spans_of(len(cells)))
        return Lines(lines, own)


class StreamedTuples:
    """Tuples (n_cells, K + m) of a tensor on the host: negatives are drawn on the device whenever they are needed."""

    ndim = 2

    def __init__(self, tensor: HostTensor, negatives: int) -> None:
        self.tensor, self.negatives = tensor, negatives
        self.modes = tensor.codes.shape[1]
        self.shape = len(tensor.codes), self.modes + negatives
        self.pool, self.key = tensor.column(0)[:1], 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: tuple[slice, int]) -> Codes:
        """One column of the codes: ``tuples[:, mode]``."""
        return self.tensor.column(places[1])

    def __setitem__(self, places: Any, values: Any) -> None:
        raise DeviceError(
            "negatives that are given beforehand need a tensor that fits into the GPU's memory; use --device cpu"
        )


@dataclass(frozen=True)
class HostDraws:
    """The cells that drew each entity, in the place of a list of them: they are found range by range."""

    tuples: StreamedTuples
    count: int

    def __len__(self) -> int:
        return self.count


def spans_of(count: int, size: int = ROWS_A_PIECE) -> list[Span]:
    """Spans of up to ``size`` that are ``range(count)`` together."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]
