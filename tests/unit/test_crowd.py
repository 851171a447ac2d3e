"""Crowd: what it counts, and that no mode is chosen."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.evaluation.metrics import auc
from ringleader.signals.crowd import review_crowd


def tensor_of(rows: np.ndarray, names: tuple[str, ...] = ("src", "dst", "port")) -> rl.SparseTensor:
    table = pd.DataFrame(rows, columns=list(names)).astype(str)
    return rl.read_reviews(table, modes=[f"{name}={name}:id" for name in names])


def by_hand(tensor: rl.SparseTensor, most: int) -> np.ndarray:
    """The same cell by cell, over every subset of at most so many modes."""
    own, n, whole = tensor.coordinates, tensor.n_cells, tensor.counts.sum()
    modes = range(len(tensor.shape))
    subsets = [chosen for size in range(1, most + 1) for chosen in combinations(modes, size)]
    total = np.zeros(n)
    for chosen in subsets:
        roots = np.zeros(n)
        for cell in range(n):
            c = tensor.counts[np.all(own[:, chosen] == own[cell, chosen], axis=1)].sum()
            parts = [tensor.counts[own[:, k] == own[cell, k]].sum() / whole for k in chosen]
            e = 1 + (whole / tensor.shape[chosen[0]] if len(chosen) == 1 else whole * np.prod(parts))
            roots[cell] = np.sqrt(c * np.log(c / e) - (c - e)) if c > e else 0.0
        if roots.any():
            total += roots / np.average(roots, weights=tensor.counts)
    return np.asarray(total / len(subsets))


def test_crowd_is_what_counting_by_hand_gives() -> None:
    tensor = tensor_of(np.random.default_rng(1).integers(0, 4, (60, 3)))
    np.testing.assert_allclose(review_crowd(tensor), by_hand(tensor, most=3))


def test_what_is_seen_once_is_no_crowd_however_rare() -> None:
    rng = np.random.default_rng(5)
    rows = np.concatenate([rng.integers(0, 30, (2_000, 5)), [[97, 97, 97, 97, 97]]])
    tensor = tensor_of(rows, tuple("abcde"))
    alone = [vocabulary.lookup(["97"])[0] for vocabulary in tensor.vocabularies]
    rare = np.all(tensor.coordinates == alone, axis=1)
    assert rare.sum() == 1
    assert review_crowd(tensor)[rare] == 0.0


def test_a_flood_is_found_whichever_modes_it_fixes() -> None:
    rng = np.random.default_rng(2)
    weight = rng.pareto(1.2, 60) + 0.2
    usual = rng.choice(60, (4_000, 3), p=weight / weight.sum())
    for fixed in combinations(range(3), 2):
        flood = rng.choice(60, (400, 3), p=weight / weight.sum())
        flood[:, fixed] = np.argsort(weight)[20:22]  # in the middle of the popular ones
        tensor = tensor_of(np.concatenate([usual, flood]))
        names = [tensor.vocabularies[k].decode(tensor.coordinates[:, k]) for k in fixed]
        bad = np.all(
            [np.array([str(v) for v in column]) == str(flood[0, k]) for k, column in zip(fixed, names, strict=True)],
            axis=0,
        )
        assert auc(bad.astype(float), review_crowd(tensor)) > 0.9


def test_the_numbers_of_accounts_do_not_matter() -> None:
    rows = np.random.default_rng(3).integers(0, 5, (200, 3))
    one, two = tensor_of(rows), tensor_of((rows * 7 + 3) % 101)
    np.testing.assert_allclose(np.sort(review_crowd(one)), np.sort(review_crowd(two)))


@pytest.mark.parametrize(("modes", "most"), [(8, 8), (9, 3)])
def test_of_more_than_eight_modes_three_are_counted_at_once(modes: int, most: int) -> None:
    tensor = tensor_of(np.random.default_rng(4).integers(0, 2, (20, modes)), tuple("abcdefghi"[:modes]))
    np.testing.assert_allclose(review_crowd(tensor), by_hand(tensor, most))


def test_the_order_of_modes_does_not_matter() -> None:
    rows = np.random.default_rng(6).integers(0, 3, (60, 10))
    one, two = tensor_of(rows, tuple("abcdefghij")), tensor_of(rows[:, ::-1], tuple("jihgfedcba"))
    np.testing.assert_allclose(np.sort(review_crowd(one)), np.sort(review_crowd(two)))
