"""Do the arrays of a call fit together? Asked before any kernel runs, since kernels read memory without asking.

Backends ask in every call what costs little: shapes, and which rows are written. What needs a look at every cell is
asked once: ``check_tuples`` where a problem is built, ``check_lists`` where its blocks are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats
from ringleader.kernels.layout import STATISTICS, Blocks, Rule, Statistics, Terms, View
from ringleader.runtime.mapped import pieces


def check_tuples(codes: npt.NDArray[Any], sizes: npt.ArrayLike) -> None:
    """Codes (n, K) name entities that their modes have: column k from 0 to below ``sizes[k]``."""
    if codes.ndim != 2 or codes.shape[1] != len(np.asarray(sizes)):
        raise ValueError(f"codes have shape {codes.shape}; there must be one column for each of {np.size(sizes)} modes")
    for piece in pieces(codes):
        for k, size in enumerate(np.asarray(sizes)):
            _within(codes[piece, k], int(size), f"codes of mode {k}")


def check_view(view: View) -> None:
    """Tuples, weights, factors and component weights of a view fit each other."""
    modes, rank = len(view.starts), len(view.component_weights)
    if view.factors.shape != (view.rows, rank):
        raise ValueError(
            f"the factors have shape {view.factors.shape}, but the tuples name {view.rows:,} entities and there are "
            f"{rank} component weights; extend the state to the entities of its problem"
        )
    if not view.factors.flags.c_contiguous or view.factors.dtype.char not in "df":
        raise ValueError("the factors must be a contiguous array of float64 or float32")
    if view.tuples.ndim != 2 or view.tuples.shape[1] < modes or not 0 <= view.contrast < modes:
        raise ValueError(f"tuples of shape {view.tuples.shape} with contrast {view.contrast} do not fit {modes} modes")
    if len(view.weights) not in (1, len(view.tuples)):
        raise ValueError(f"there are {len(view.weights):,} weights for {len(view.tuples):,} cells")
    if view.starts[0] != 0 or view.starts[-1] > view.rows:
        raise ValueError("the first rows of the modes do not fit the factors")


def check_cells(view: View, cells: Codes) -> None:
    """The view fits, and cells are cells of it."""
    check_view(view)
    _within(cells, len(view.tuples), "cells")


def check_codes(view: View, codes: Codes) -> None:
    """The view fits, and codes (n, K) name entities that its modes have."""
    check_view(view)
    check_tuples(np.asarray(codes), [size_of(view, mode) for mode in range(len(view.starts))])


def check_blocks(view: View, blocks: Blocks) -> None:
    """The view fits, the blocks are blocks of its entities, and their parts are as many as they are."""
    check_view(view)
    count = len(blocks.entities)
    if not 0 <= blocks.mode < len(view.starts):
        raise ValueError(f"blocks of mode {blocks.mode} do not fit {len(view.starts)} modes")
    _within(blocks.entities, size_of(view, blocks.mode), f"entities of mode {blocks.mode}")
    lists = len(blocks.begins) == len(blocks.ends) == len(blocks.drawn_begins) == len(blocks.drawn_ends) == count
    if not lists or not len(blocks.scale) == len(blocks.rate) == len(blocks.first_chunk) - 1 == count:
        raise ValueError(f"lists, scales, rates and pieces of {count:,} blocks differ in number")
    if blocks.tasks[0] != 0 or blocks.tasks[-1] != count or blocks.first_chunk[-1] != len(blocks.chunks):
        raise ValueError("the pieces of work do not cover the blocks")


def check_lists(blocks: Blocks, n_cells: int) -> None:
    """The lists of the blocks lie within their arrays, and name cells that there are."""
    for begins, ends, cells in (
        (blocks.begins, blocks.ends, blocks.cells),
        (blocks.drawn_begins, blocks.drawn_ends, blocks.drawn_cells),
    ):
        if len(begins) and (begins.min() < 0 or ends.max() > len(cells) or (ends < begins).any()):
            raise ValueError(f"blocks lie outside their list of {len(cells):,} cells")
        _within(cells, n_cells, "cells of blocks")


def check_labels(view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
    """Label terms, carried statistics and the array of cavity rows fit the blocks' mode."""
    rank, size = view.factors.shape[1], size_of(view, blocks.mode)
    if len(terms.offsets) > 1:
        if (
            len(terms.offsets) != size + 1
            or terms.offsets[-1] != len(terms.target)
            or len(terms.value) != len(terms.target)
        ):
            raise ValueError(f"label terms of {len(terms.offsets) - 1:,} entities do not fit a mode of {size:,}")
        _within(terms.target, len(terms.beta), "targets of label terms")
        if terms.beta.shape[1:] != (rank + 1,) or len(terms.noise) != len(terms.beta):
            raise ValueError(f"heads of shape {terms.beta.shape} do not fit rank {rank}")
        if len(cavity) and cavity.shape != (len(terms.target), rank):
            raise ValueError(f"cavity rows of shape {cavity.shape} do not fit {len(terms.target):,} label terms")
    if rule.action == STATISTICS:
        expected = (size, rank * (rank + 1) // 2), (size, rank)
        if (statistics.second.shape, statistics.first.shape) != expected:
            raise ValueError(f"statistics of shape {statistics.second.shape} do not fit a mode of {size:,}")


def size_of(view: View, mode: int) -> int:
    """Entities of a mode."""
    end = view.starts[mode + 1] if mode + 1 < len(view.starts) else view.rows
    return int(end - view.starts[mode])


def _within(values: npt.NDArray[Any], size: int, what: str) -> None:
    if len(values) == 0:
        return
    # As numbers without a sign, negative ones are the largest of all: one pass finds both.
    most = values.view(np.uint32).max() if values.dtype == np.int32 and values.flags.c_contiguous else -1
    if most >= size or (most < 0 and (values.min() < 0 or values.max() >= size)):
        raise ValueError(f"{what} run from {values.min():,} to {values.max():,}; they must be from 0 to below {size:,}")
