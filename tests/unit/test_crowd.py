"""Crowd: what it counts, and that no mode is chosen."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

import ringleader as rl
from ringleader.evaluation.metrics import auc
from ringleader.signals.crowd import review_crowd


def tensor_of(rows: np.ndarray, names: tuple[str, ...] = ("src", "dst", "port")) -> rl.SparseTensor:
    table = pd.DataFrame(rows, columns=list(names)).astype(str)
    return rl.read_reviews(table, modes=[f"{name}={name}:id" for name in names])


def test_crowd_is_what_counting_by_hand_gives() -> None:
    rows = np.random.default_rng(1).integers(0, 4, (60, 3))
    tensor = tensor_of(rows)
    own, n = tensor.coordinates, tensor.n_cells
    total = np.zeros(n)
    subsets = [chosen for size in (1, 2, 3) for chosen in combinations(range(3), size)]
    for chosen in subsets:
        roots = np.zeros(n)
        for cell in range(n):
            c = tensor.counts[np.all(own[:, chosen] == own[cell, chosen], axis=1)].sum()
            parts = [tensor.counts[own[:, k] == own[cell, k]].sum() / 60 for k in chosen]
            e = 1 + (60 / tensor.shape[chosen[0]] if len(chosen) == 1 else 60 * np.prod(parts))
            roots[cell] = np.sqrt(c * np.log(c / e) - (c - e)) if c > e else 0.0
        total += roots / np.average(roots, weights=tensor.counts)
    np.testing.assert_allclose(review_crowd(tensor), total / len(subsets))


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


def test_with_many_modes_few_are_counted_at_once() -> None:
    names = tuple("abcdefghij")
    tensor = tensor_of(np.random.default_rng(4).integers(0, 3, (100, 10)), names)
    assert np.isfinite(review_crowd(tensor)).all()
