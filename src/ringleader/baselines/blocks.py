"""Blocks of a tensor: what the block finders search, what they return, and how a block scores its entities."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Numbers
from ringleader.baselines.density import density
from ringleader.baselines.searched import Searched, cells_inside, fingerprints, grouped_cells
from ringleader.tensor.sparse import SparseTensor

Member = npt.NDArray[np.uint8]
"""(sum n_k,), 1 for the entities of a block; the modes one after the other, as in ``Searched``."""
Inside = npt.NDArray[np.uint8]
"""(n_cells,), 1 for the cells of a block."""

FINGERPRINT_ROUNDS = 3
"""Rounds of colour refinement: after three, an entity's fingerprint knows what lies within three reviews of it."""


class DenseBlock(NamedTuple):
    """A dense block: in each mode, the codes of its entities.

    Attributes
    ----------
    members : per mode, ascending int64 codes.
    density : of the block in the whole tensor.
    mass : reviews of the whole tensor inside the block.
    search_density : in the tensor that was searched, that is without the cells of earlier blocks.
    """

    members: tuple[Numbers, ...]
    density: float
    mass: int
    search_density: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(m) for m in self.members)


def searched_tensor(tensor: SparseTensor, seed: int | None) -> tuple[Searched, list[Numbers]]:
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
        codes: Numbers = np.argsort(prints[starts[k] : starts[k + 1]], kind="stable")
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


def dense_block(
    searched: Searched, order: list[Numbers], member: Member, inside: Inside, measure: str, search_density: float
) -> DenseBlock:
    """The block of some entities, with its mass and density in the whole tensor."""
    starts = searched.starts
    mass = int(searched.counts[inside.view(np.bool_)].sum())
    members = tuple(np.sort(codes[member[starts[k] : starts[k + 1]] == 1]) for k, codes in enumerate(order))
    sizes = [len(m) for m in members]
    value = density(measure, mass, sizes, int(searched.counts.sum()), occurring_entities(searched))
    return DenseBlock(members, value, mass, search_density)


def most_suspicious(
    searched: Searched, order: list[Numbers], candidates: Iterable[tuple[float, Member]], most: int
) -> list[DenseBlock]:
    """The distinct blocks of highest suspiciousness, at most so many; of equals the one that came first.

    candidates : (suspiciousness, member). A block no denser than the tensor has suspiciousness 0 and is left out.
    """
    distinct: dict[bytes, tuple[float, Member]] = {}
    for value, member in candidates:
        if value > 0.0:
            distinct.setdefault(member.tobytes(), (value, member))
    best = sorted(distinct.values(), key=lambda pair: -pair[0])[:most]  # a stable sort
    return [
        dense_block(searched, order, member, cells_inside(searched, member), "susp", value) for value, member in best
    ]


def occurring_entities(searched: Searched) -> list[int]:
    """How many entities of each mode occur."""
    occurs = np.diff(searched.bounds) > 0
    return [int(np.count_nonzero(occurs[a:b])) for a, b in itertools.pairwise(searched.starts)]


def block_scores(blocks: Sequence[DenseBlock], k: int, size: int) -> Floats:
    """How every block finder scores the entities of mode k: the density of the densest block with the entity.

    Entities in no block have 0. Shape (size,).
    """
    scores = np.zeros(size)
    for block in blocks:
        scores[block.members[k]] = np.maximum(scores[block.members[k]], block.density)
    return scores
