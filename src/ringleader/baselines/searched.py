"""The tensor as searches for dense blocks see it, and compiled loops over it that they share.

Entities of all modes are numbered in one row: entity n of mode k is ``starts[k] + n``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.baselines.jit import compiled


class Searched(NamedTuple):
    """The tensor as the searches see it.

    The cells of entity e, of mode k, are ``grouped[bounds[e] : bounds[e + 1]]``.
    """

    coordinates: npt.NDArray[np.int32]  # (n_cells, K)
    counts: npt.NDArray[np.int64]  # (n_cells,)
    starts: npt.NDArray[np.int64]  # (K + 1,)
    bounds: npt.NDArray[np.int64]  # (sum n_k + 1,)
    grouped: npt.NDArray[np.int32]  # (K * n_cells,)


@compiled
def grouped_cells(coordinates, starts):  # type: ignore[no-untyped-def]
    """The cells of each entity, ascending: counting sort of the cells by each mode.

    Same as: ``np.concatenate([np.argsort(coordinates[:, k], kind="stable") for k in range(K)])``, with its bounds.
    """
    cells, modes = coordinates.shape
    bounds = np.zeros(starts[-1] + 1, np.int64)
    for i in range(cells):
        for k in range(modes):
            bounds[starts[k] + coordinates[i, k] + 1] += 1
    for e in range(starts[-1]):
        bounds[e + 1] += bounds[e]
    free = bounds[:-1].copy()
    grouped = np.empty(modes * cells, np.int32)
    for i in range(cells):
        for k in range(modes):
            e = starts[k] + coordinates[i, k]
            grouped[free[e]] = i
            free[e] += 1
    return bounds, grouped


@compiled
def _mixed(value):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: spreads 64 bits."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def fingerprints(coordinates, counts, starts, seed, rounds):  # type: ignore[no-untyped-def]
    """uint64 (sum n_k,): a hash of each entity's surroundings that knows neither its number nor the order of cells.

    Weisfeiler and Leman's colour refinement: an entity's colour is mixed with the sum of the colours of its cells, a
    cell's with those of its entities in turn. Entities with equal colours after enough rounds can change places.
    """
    cells, modes = coordinates.shape
    colour = np.empty(starts[-1], np.uint64)
    for k in range(modes):
        for e in range(starts[k], starts[k + 1]):
            colour[e] = _mixed(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k + 1))
    for _ in range(rounds):
        gathered = np.zeros(starts[-1], np.uint64)
        for i in range(cells):
            cell = np.uint64(counts[i])
            for k in range(modes):
                cell = _mixed(cell * np.uint64(0x9E3779B97F4A7C15) + colour[starts[k] + coordinates[i, k]])
            for k in range(modes):
                gathered[starts[k] + coordinates[i, k]] += cell
        for e in range(starts[-1]):
            colour[e] = _mixed(colour[e] * np.uint64(0x9E3779B97F4A7C15) + gathered[e])
    return colour


@compiled
def masses_of(searched, alive):  # type: ignore[no-untyped-def]
    """Mass of each entity over the living cells, (sum n_k,).

    Same as: ``np.bincount(starts[k] + coordinates[alive, k], counts[alive])`` for each mode.
    """
    mass = np.zeros(searched.starts[-1], np.int64)
    modes = searched.coordinates.shape[1]
    for i in range(len(alive)):
        if alive[i]:
            for k in range(modes):
                mass[searched.starts[k] + searched.coordinates[i, k]] += searched.counts[i]
    return mass


@compiled
def cells_inside(searched, member):  # type: ignore[no-untyped-def]
    """uint8 (n_cells,): 1 where all entities of the cell are members.

    Same as: ``np.all([member[starts[k] + coordinates[:, k]] for k in range(K)], axis=0)``.
    """
    cells, modes = searched.coordinates.shape
    inside = np.ones(cells, np.uint8)
    for i in range(cells):
        for k in range(modes):
            if not member[searched.starts[k] + searched.coordinates[i, k]]:
                inside[i] = 0
                break
    return inside
