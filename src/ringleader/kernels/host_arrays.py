"""Where the arrays of a fit live on backends of the CPU: where NumPy put them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.arrays import Codes, Factors, Floats
from ringleader.kernels.checks import check_lists
from ringleader.kernels.layout import DUAL_FROM, Blocks, Grouped, Rule, plan_blocks
from ringleader.kernels.single_block import column_squares, head_moments, rows_log_prior
from ringleader.runtime.executor import Threads

COPIED = 65536
"""Rows that a thread copies at a time."""


class HostArrays:
    """The part of a backend that lays a problem out, for those that work on NumPy arrays."""

    kind = "cpu"
    threads = 1  # that go through the rows of all entities
    head_moments = staticmethod(head_moments)

    def place_tuples(self, codes: Codes, negatives: int) -> Codes:
        tuples = np.empty((len(codes), codes.shape[1] + negatives), np.int32)
        tuples[:, : codes.shape[1]] = codes
        return tuples

    def place(self, factors: Factors) -> Factors:
        placed = np.empty(factors.shape, factors.dtype)

        def copy(first: int) -> None:
            placed[first : first + COPIED] = factors[first : first + COPIED]

        Threads(self.threads).map(copy, range(0, len(factors), COPIED))
        return placed

    def fetch(self, array: Any) -> Any:
        return array

    def take(self, array: Any, places: Any) -> Any:
        return array[places]

    def rows_log_prior(self, factors: Factors, span: tuple[int, int], rule: Rule) -> float:
        return rows_log_prior(factors[span[0] : span[1]], rule, threads=self.threads)

    def column_squares(self, factors: Factors, span: tuple[int, int]) -> Floats:
        return column_squares(factors[span[0] : span[1]], threads=self.threads)

    def plan(self, mode: int, own: Grouped, drawn: Grouped | None = None, entities: Any = None) -> Blocks:
        chosen = np.arange(len(own[0]) - 1) if entities is None else np.asarray(entities)
        lists = [
            (offsets[chosen], offsets[chosen + 1], cells)
            for offsets, cells in ((own,) if drawn is None else (own, drawn))
        ]
        blocks = plan_blocks(mode, chosen, *lists, dual=len(own[0]) - 1 > DUAL_FROM)
        check_lists(blocks, len(own[1]))
        return blocks
