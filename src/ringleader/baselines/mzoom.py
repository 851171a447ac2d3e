"""M-Zoom and M-Biz: dense blocks of a tensor (Shin, Hooi, Faloutsos 2016; 2018).

M-Zoom finds one block after another. For each it removes entities greedily and keeps the densest block on the way;
the cells of the block are then taken out of the tensor and the search runs on what is left. As in the authors'
program, the density and the mass of a block are reported in the whole tensor, so blocks may overlap.

M-Biz (``local_search=True``) goes on from each block by single removals and insertions until none makes it denser.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.baselines.blocks import (
    DenseBlock,
    block_scores,
    dense_block,
    occurring_entities,
    searched_tensor,
)
from ringleader.baselines.density import DENSITIES
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress
from ringleader.baselines.mzoom_kernels import Measure, greedy_removal, local_search
from ringleader.baselines.searched import Searched, cells_inside, masses_of
from ringleader.errors import SettingsError
from ringleader.settings import Choice, Constraint, Flag, Whole, check_setting
from ringleader.tensor.sparse import SparseTensor


class MZoom(Baseline):
    """Dense blocks by greedy removal, with local search as an option.

    Parameters
    ----------
    density : "ari" average degree, "geo" geometric average, "susp" suspiciousness.
    n_blocks : how many blocks to look for. Fewer come back when the tensor is used up.
    min_size, max_size : bounds on the sum of a block's sizes over the modes; None for no upper bound.
    local_search : refine each block by M-Biz.
    max_moves : most moves of the local search per block.
    ties : which of several entities of equal mass goes first. "fingerprint": by a seeded hash of their surroundings, so
        that neither row order nor names matter. "heap": as they lie in a binary heap filled in the order of the codes,
        which on a tensor whose codes and cells are in the order of the file is what the authors' program does.
    random_state : seed of the fingerprints.

    Attributes
    ----------
    blocks_ : list of DenseBlock, in the order of the search.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "density": Choice(*DENSITIES),
        "n_blocks": Whole(1),
        "min_size": Whole(1),
        "max_size": Whole(1, optional=True),
        "local_search": Flag(),
        "max_moves": Whole(0),
        "ties": Choice("fingerprint", "heap"),
        "random_state": Whole(0),
    }

    def __init__(
        self,
        *,
        density: str = "susp",
        n_blocks: int = 5,
        min_size: int = 1,
        max_size: int | None = None,
        local_search: bool = False,
        max_moves: int = 100_000,
        ties: str = "fingerprint",
        random_state: int = 0,
    ) -> None:
        self.density = density
        self.n_blocks = n_blocks
        self.min_size = min_size
        self.max_size = max_size
        self.local_search = local_search
        self.max_moves = max_moves
        self.ties = ties
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        # A block has at least one member of each mode.
        check_setting("max_size", self.max_size, Whole(max(self.min_size, len(tensor.modes)), optional=True))
        total = float(tensor.counts.sum(dtype=np.float64))
        if total >= 2.0**62:
            raise SettingsError(f"the counts add up to {total:.3g}; masses must stay below 2^62")
        self.blocks_: list[DenseBlock] = []
        searched, order = searched_tensor(tensor, self.random_state if self.ties == "fingerprint" else None)
        alive = np.ones(tensor.n_cells, np.uint8)
        for number in range(1, self.n_blocks + 1):
            block = self._next_block(searched, order, alive)
            if block is None:
                break
            self.blocks_.append(block)
            callback(Progress(number, self.n_blocks, block.density))
            if not alive.any():
                break

    def _next_block(self, searched: Searched, order: list[Numbers], alive: npt.NDArray[np.uint8]) -> DenseBlock | None:
        """The densest block of the living cells, which then die. None when none fits the size bounds."""
        mass = masses_of(searched, alive)
        shape = occurring_entities(searched)
        measure = Measure(
            kind=DENSITIES[self.density],
            total=int(mass[: searched.starts[1]].sum()),
            log_shape=sum(math.log(n) for n in shape),
            least=self.min_size,
            most=2**62 if self.max_size is None else self.max_size,
            by_number=self.ties == "fingerprint",
        )
        member, reached = greedy_removal(searched, alive.copy(), mass, measure)
        if reached < 0.0:
            return None
        if self.local_search:
            reached, _ = local_search(searched, alive, member, measure, self.max_moves)
        inside = cells_inside(searched, member)
        block = dense_block(searched, order, member, inside, self.density, float(reached))
        alive[inside.view(np.bool_)] = 0
        return block

    def _scores(self, k: int) -> Floats:
        return block_scores(self.blocks_, k, self.shape_[k])
