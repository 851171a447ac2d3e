"""The structures that kernels take, as ``source/warp.h`` declares them, and what a launch is compiled for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ringleader.kernels.layout import DEVICE_MODES, Rule, View

LANES = 32
MAX_MODES = DEVICE_MODES  # of ``View`` in source/warp.h

FIXED_FROM = 200_000
"""Cells from which kernels are compiled for the number of rows of an entry: seconds once, and twice as fast then."""

POINTER, WHOLE, NUMBER, INTEGER = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_double, ctypes.c_int
Pointer = Callable[[Any], int]


class Form(NamedTuple):
    """What a kernel is compiled for: rank, type of the factors, and the rows that an entry multiplies."""

    rank: int
    stored: str  # "float" or "double"
    others: int  # modes in the product, besides the contrast mode where its rows are apart
    contrast_rows: int  # rows of the contrast mode of a cell and its negatives; 0 where it is among the others
    fixed: bool = False  # whether these two are known to the compiler

    @property
    def definitions(self) -> tuple[str, ...]:
        """What the compiler is told."""
        others, contrast_rows = (self.others, self.contrast_rows) if self.fixed else (-1, -1)
        shape = f"-DRANK={self.rank}", f"-DSTORED={self.stored}", f"-DBLOCKS={warps_wanted(self.rank)}"
        return (*shape, f"-DOTHERS={others}", f"-DCONTRAST_ROWS={contrast_rows}")

    @property
    def sums(self) -> int:
        """Numbers of a block's sums in memory: ``SUMS`` in source/sums.h."""
        return 32 * self._tiles * (self._tiles + 1) + 8 * self._tiles

    @property
    def _tiles(self) -> int:
        return -(-self.rank // 8)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a warp: ``scratch_of`` in source/warp.h."""
        stride = 8 * self._tiles + 4
        numbers = max(LANES, self.rank) * stride + stride + 2 * (stride + 2) + 3 * LANES
        return 8 * numbers + 4 * LANES * (self.others + self.contrast_rows)


def warps_wanted(rank: int) -> int:
    """Warps that a multiprocessor should hold at once: bounds the registers of a lane."""
    return 16 if rank <= 24 else 12 if rank <= 40 else 8


class ViewArgument(ctypes.Structure):
    _fields_ = (
        *((name, POINTER) for name in ("tuples", "weights", "factors", "lambdas", "own_row")),
        ("first_row", WHOLE),
        ("contrast_first", WHOLE),
        ("firsts", WHOLE * MAX_MODES),
        ("columns", INTEGER * MAX_MODES),
        *((name, INTEGER) for name in ("width", "modes", "contrast", "others", "contrast_rows", "uniform")),
        ("share", NUMBER),
    )


class ListsArgument(ctypes.Structure):
    _fields_ = (
        *((name, POINTER) for name in ("entities", "begins", "ends", "cells")),
        *((name, POINTER) for name in ("drawn_begins", "drawn_ends", "drawn_cells", "scale", "rate")),
        *((name, POINTER) for name in ("chunks", "first_chunk", "sums")),
        ("count", WHOLE),
        ("n_chunks", WHOLE),
        ("is_contrast", INTEGER),
    )


class RuleArgument(ctypes.Structure):
    _fields_ = (
        *((name, INTEGER) for name in ("action", "curvature", "nonnegative")),
        *((name, NUMBER) for name in ("step", "half", "variance", "scale", "shape", "floor", "decay")),
    )


class LabelsArgument(ctypes.Structure):
    _fields_ = tuple((name, POINTER) for name in ("offsets", "target", "value", "beta", "noise", "cavity"))


class CarriedArgument(ctypes.Structure):
    _fields_ = tuple((name, POINTER) for name in ("second", "first"))


def rule_argument(rule: Rule) -> RuleArgument:
    return RuleArgument(**rule._asdict())


def form_of(view: View, leave: int, *, apart: bool = True) -> Form:
    """The form of a kernel whose design rows leave out mode ``leave`` (-1: none).

    ``apart``: the rows of the contrast mode are multiplied on last, the cell's own and those of its negatives.
    """
    modes = len(view.starts)
    negatives = view.tuples.shape[1] - modes
    stored = "float" if view.factors.dtype.char == "f" else "double"
    fixed = len(view.tuples) >= FIXED_FROM
    if leave == view.contrast or not apart:
        return Form(view.factors.shape[1], stored, modes - (leave >= 0), 0, fixed)
    return Form(view.factors.shape[1], stored, modes - 1 - (leave >= 0), 1 + negatives, fixed)


def view_argument(view: View, leave: int, form: Form, pointer: Pointer, own_row: Any = None) -> ViewArgument:
    """``view``, whose arrays are on the device, as kernels of that form read it."""
    modes, apart = len(view.starts), form.contrast_rows > 0
    others = [k for k in range(modes) if k != leave and not (apart and k == view.contrast)]
    starts = [int(start) for start in view.starts]
    rest = [0] * (MAX_MODES - len(others))
    return ViewArgument(
        tuples=pointer(view.tuples),
        weights=pointer(view.weights),
        factors=pointer(view.factors),
        lambdas=pointer(view.component_weights),
        own_row=None if own_row is None else pointer(own_row),
        first_row=starts[max(leave, 0)],
        contrast_first=starts[view.contrast],
        firsts=(WHOLE * MAX_MODES)(*(starts[k] for k in others), *rest),
        columns=(INTEGER * MAX_MODES)(*others, *rest),
        width=view.tuples.shape[1],
        modes=modes,
        contrast=view.contrast,
        others=form.others,
        contrast_rows=form.contrast_rows,
        uniform=int(len(view.weights) == 1),
        share=1 / max(view.tuples.shape[1] - modes, 1),
    )
