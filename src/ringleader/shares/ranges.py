"""Ranges: which worker answers for which entities and cells.

Every entity of every mode has one owner, and its row moves there. The cells of an entity lie with its owner in modes
that are dealt out; in the others (few entities, such as ratings) everyone has all rows and sums over its own cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Numbers
from ringleader.kernels.layout import CHUNK, DUAL_FROM
from ringleader.model.config import ModelConfig
from ringleader.tensor.sparse import SparseTensor

DEALT_FROM = DUAL_FROM
"""Entities from which a mode is dealt out; up to DUAL_FROM it changes no bit. The sums of an entity are 5 KB (rank 24)
that travel, a dealt mode is one more copy of the cells. Of 1,000, 5,000 and 20,000 the last cost a quarter more
(500,000 cells)."""

CHUNKS_EACH = 2
"""Chunks of an entity's cells for each worker, on average, below which a mode is dealt out whatever its size: a chunk
is added up where it begins, and where lists are short nearly all of them begin with the first worker."""


class Ranges(NamedTuple):
    """Worker p answers for entities ``bounds[k][p]`` to below ``bounds[k][p + 1]`` of mode k, and so for cells."""

    shape: tuple[int, ...]  # entities of each mode
    n_cells: int
    bounds: tuple[Numbers, ...]  # of each mode (P + 1,)
    dealt: tuple[bool, ...]  # of each mode: whether the cells of an entity lie with its owner
    cells: Numbers  # (P + 1,)

    @property
    def workers(self) -> int:
        return len(self.cells) - 1

    def own(self, mode: int, rank: int) -> tuple[int, int]:
        """First entity of a worker, and the first that is not its any more."""
        return int(self.bounds[mode][rank]), int(self.bounds[mode][rank + 1])

    def cuts(self, mode: int, codes: npt.NDArray[Any]) -> Numbers:
        """Where the entities of each worker begin in ascending codes, (P + 1,)."""
        return np.asarray(np.searchsorted(codes, self.bounds[mode]), np.int64)


def cut_ranges(tensor: SparseTensor, config: ModelConfig, workers: int, dealt_from: int | None = None) -> Ranges:
    """Ranges of about equal work, which goes with the cells: most of a sweep is spent on lists of cells.

    dealt_from : entities above which a mode is dealt out; None to decide by the lengths of its lists as well. The
    contrast mode always is: its lists change with every sweep.
    """
    bounds, dealt = [], []
    for mode, size in enumerate(tensor.shape):
        degrees = tensor.cells_of_each(mode)
        cost = np.concatenate([[0], np.cumsum(degrees + 1)])
        wanted = cost[-1] * np.arange(1, workers) / workers
        inner = np.searchsorted(cost, wanted)
        bounds.append(np.concatenate([[0], inner, [size]]).astype(np.int64))
        many = size > (DEALT_FROM if dealt_from is None else dealt_from)
        short = dealt_from is None and _short_lists(degrees, workers)
        dealt.append(mode == config.contrast or many or short)
    cells = np.linspace(0, tensor.n_cells, workers + 1).astype(np.int64)
    if dealt[0]:
        # Cells are sorted by their first code: those of a range of entities are a range of cells.
        cells = tensor.first_cells(bounds[0])
    return Ranges(tensor.shape, tensor.n_cells, tuple(bounds), tuple(dealt), np.asarray(cells, np.int64))


def _short_lists(degrees: Numbers, workers: int) -> bool:
    """Whether lists have too few chunks to share them, and none of them is more than a worker's part of all cells."""
    cells = int(degrees.sum())
    few = cells < CHUNKS_EACH * CHUNK * workers * len(degrees)
    return workers > 1 and few and int(degrees.max()) * workers <= cells
