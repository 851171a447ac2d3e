"""M-Zoom and M-Biz: dense blocks of a tensor (Shin, Hooi, Faloutsos 2016; 2018).

M-Zoom finds one block after another. For each it removes entities greedily and keeps the densest block on the way;
the cells of the block are then taken out of the tensor and the search runs on what is left. As in the authors'
program, the density and the mass of a block are reported in the whole tensor, so blocks may overlap.

M-Biz (``local_search=True``) goes on from each block by single removals and insertions until none makes it denser.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from ringleader.baselines.density import Block, block_scores, density, density_kind
from ringleader.baselines.method import Baseline, Callback, Labels, Progress, check_choice, check_whole
from ringleader.baselines.mzoom_kernels import (
    Measure,
    Searched,
    cells_inside,
    fingerprints,
    greedy_removal,
    grouped_cells,
    local_search,
    masses_of,
)
from ringleader.errors import SettingsError
from ringleader.tensor.sparse import SparseTensor

FINGERPRINT_ROUNDS = 3
"""Rounds of colour refinement: after three, an entity's fingerprint knows what lies within three reviews of it."""


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
    blocks_ : list of Block, in the order they were found.
    """

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

    def _fit(self, tensor: SparseTensor, labels: Labels, callback: Callback) -> None:
        density_kind(self.density)
        check_whole("n_blocks", self.n_blocks, 1)
        check_whole("min_size", self.min_size, 1)
        check_whole("max_moves", self.max_moves, 0)
        check_choice("ties", self.ties, ("fingerprint", "heap"))
        check_whole("random_state", self.random_state, 0)
        if self.max_size is not None:
            check_whole("max_size", self.max_size, max(self.min_size, len(tensor.modes)))
        total = float(tensor.counts.sum(dtype=np.float64))
        if total >= 2.0**62:
            raise SettingsError(f"the counts add up to {total:.3g}; masses must stay below 2^62")
        self.blocks_: list[Block] = []
        searched, order = searched_tensor(tensor, self.random_state if self.ties == "fingerprint" else None)
        alive = np.ones(tensor.n_cells, np.uint8)
        for found in range(self.n_blocks):
            block = self._next_block(searched, order, alive)
            if block is None:
                break
            self.blocks_.append(block)
            callback(Progress(found + 1, self.n_blocks, block.density))
            if not alive.any():
                break

    def _next_block(
        self, searched: Searched, order: list[npt.NDArray[np.int64]], alive: npt.NDArray[np.uint8]
    ) -> Block | None:
        """The densest block of the living cells, which then die. None when none fits the size bounds."""
        mass = masses_of(searched, alive)
        shape = _shape_of(searched)
        measure = Measure(
            kind=density_kind(self.density),
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
        block = described(searched, order, member, inside, self.density, float(reached))
        alive[inside.view(np.bool_)] = 0
        return block

    def _scores(self, k: int) -> npt.NDArray[np.float64]:
        return block_scores(self.blocks_, k, self.shape_[k])


def searched_tensor(tensor: SparseTensor, seed: int | None) -> tuple[Searched, list[npt.NDArray[np.int64]]]:
    """The tensor with its entities numbered by fingerprint, and per mode the codes in that order.

    The kernels break ties by number. With these numbers neither the order of rows nor the names of entities matter.
    Without a seed entities are numbered by their codes.
    """
    starts = np.concatenate([[0], np.cumsum(tensor.shape)]).astype(np.int64)
    if seed is None:
        bounds, grouped = grouped_cells(tensor.coordinates, starts)
        order = [np.arange(n, dtype=np.int64) for n in tensor.shape]
        return Searched(tensor.coordinates, tensor.counts, starts, bounds, grouped), order
    prints = fingerprints(tensor.coordinates, tensor.counts, starts, seed, FINGERPRINT_ROUNDS)
    order = []
    coordinates = np.empty_like(tensor.coordinates)
    for k, size in enumerate(tensor.shape):
        codes: npt.NDArray[np.int64] = np.argsort(prints[starts[k] : starts[k + 1]], kind="stable")
        number = np.empty(size, np.int32)
        number[codes] = np.arange(size, dtype=np.int32)
        coordinates[:, k] = number[tensor.coordinates[:, k]]
        order.append(codes)
    # Ties go by number, so with the cells in the order of the first mode most removals read memory in sequence.
    by_first = np.argsort(coordinates[:, 0], kind="stable")
    coordinates = coordinates[by_first]
    bounds, grouped = grouped_cells(coordinates, starts)
    counts = tensor.counts[by_first]
    coordinates.flags.writeable = counts.flags.writeable = False  # as those of the tensor: one compilation for both
    return Searched(coordinates, counts, starts, bounds, grouped), order


def described(
    searched: Searched,
    order: list[npt.NDArray[np.int64]],
    member: npt.NDArray[np.uint8],
    inside: npt.NDArray[np.uint8],
    measure: str,
    search_density: float,
) -> Block:
    """A Block with its mass and density in the whole tensor."""
    starts = searched.starts
    mass = int(searched.counts[inside.view(np.bool_)].sum())
    members = tuple(np.sort(codes[member[starts[k] : starts[k + 1]] == 1]) for k, codes in enumerate(order))
    sizes = [len(m) for m in members]
    value = density(measure, mass, sizes, int(searched.counts.sum()), _shape_of(searched))
    return Block(members, value, mass, search_density)


def _shape_of(searched: Searched) -> list[int]:
    """How many entities of each mode occur."""
    occurs = np.diff(searched.bounds) > 0
    return [int(np.count_nonzero(occurs[a:b])) for a, b in itertools.pairwise(searched.starts)]
