"""Dividing a block in two: sparse tables give what dense ones give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ringleader.cores import split


def block_of_two(actors: int, places: int, seed: int) -> np.ndarray:
    """Reviews of two rings at places of their own, and a few at those of the other; 0, 1 or 2 of each."""
    rng = np.random.default_rng(seed)
    ring, owner = rng.random(actors) < 0.4, rng.random(places) < 0.5
    dense: np.ndarray = np.minimum(rng.poisson(np.where(ring[:, None] == owner, 0.4, 0.03)), 2).astype(np.float64)
    return dense


def divided_simply(table: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What ``_divided`` does, by whole tables."""
    places = np.zeros(table.shape[1], np.bool_)
    for _ in range(split.ROUNDS):
        if second.all() or not second.any():
            break
        mine, yours = table[second].sum(axis=0), table[~second].sum(axis=0)
        places = mine * max(yours.sum(), 1.0) > yours * max(mine.sum(), 1.0)
        mine, yours = table[:, places].sum(axis=1), table[:, ~places].sum(axis=1)
        moved = mine * max(yours.sum(), 1.0) > yours * max(mine.sum(), 1.0)
        if np.array_equal(moved, second):
            break
        second = moved
    return places


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("actors", "places"), [(30, 12), (12, 60), (300, 200)])
def test_a_block_is_divided_as_a_dense_table_would_be(actors: int, places: int, seed: int) -> None:
    dense = block_of_two(actors, places, seed)
    second = np.random.default_rng(seed).random(actors) < 0.5
    np.testing.assert_array_equal(split._divided(sparse.csr_array(dense), second), divided_simply(dense, second))


@pytest.mark.parametrize(("actors", "places"), [(40, 25), (450, 430)])  # the second by an iterative decomposition
def test_directions_are_singular_vectors_of_the_scaled_table(actors: int, places: int) -> None:
    dense = block_of_two(actors, places, 0)
    rows, columns = np.sqrt(dense.sum(axis=1) + 1.0), np.sqrt(dense.sum(axis=0) + 1.0)
    expected = np.linalg.svd(dense / rows[:, None] / columns[None, :], full_matrices=False)[0]
    found = split._directions(sparse.csr_array(dense))
    assert len(found) == split.VECTORS
    assert abs(found[0] @ expected[:, 1]) > 1 - 1e-9  # the one that tells the rings apart; a sign is free
