"""A model of every kind that has a page: labels or none, numbers, several targets, columns missing, few rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
from ring_market import detector, ring_labels, ring_table

import ringleader as rl

Model = rl.RingDetector


def rated(changes: Callable[[pd.DataFrame], pd.DataFrame], **reading: object) -> rl.SparseTensor:
    return rl.read_reviews(changes(ring_table()), **reading)  # type: ignore[arg-type]


@cache
def several_targets() -> Model:
    labels = ring_labels()
    return detector(holdout=0.4).fit(
        rated(lambda t: t), rl.read_labels(pd.concat([labels, labels.assign(target="boost")]))
    )


@cache
def real_target(name: str = "abuse") -> Model:
    labels = ring_labels().assign(target=name)
    numbers = labels["label"] * 3.0 + np.linspace(0, 1, len(labels))
    return detector(holdout=0.4).fit(
        rated(lambda t: t), rl.read_labels(labels.assign(label=numbers), target_kind="real")
    )


def tiny() -> Model:
    table = pd.DataFrame({"reviewer": ["a", "b", "a"], "product": ["x", "y", "y"]})
    return detector().fit(rl.read_reviews(table))


def one_label() -> Model:
    table = pd.DataFrame({"reviewer": ["a", "b"], "product": ["x", "y"], "rating": [5, 5], "timestamp": [1.5e9, 1.5e9]})
    return detector().fit(rl.read_reviews(table), pd.DataFrame({"mode": ["reviewer"], "entity": ["a"], "label": [1]}))


def updated() -> Model:
    table = ring_table()
    return detector().fit(rl.read_reviews(table[:1500]), ring_labels()).partial_fit(table[1500:])


KINDS: dict[str, tuple[Callable[[], Model], str]] = {
    "no labels": (lambda: detector().fit(rated(lambda t: t)), "No account is labelled"),
    "no rating": (
        lambda: detector().fit(rated(lambda t: t.drop(columns="rating")), ring_labels()),
        "no column for rating",
    ),
    "no time": (lambda: detector().fit(rated(lambda t: t.drop(columns="timestamp")), ring_labels()), "Core 1"),
    "two axes": (
        lambda: detector().fit(rated(lambda t: t, modes=["who=reviewer", "where=seller"])),
        "--axis who=reviewer:id",
    ),
    "several targets": (
        several_targets,
        "nearly the same come first as above: sellers by boost; reviewers by boost.",
    ),
    "real target": (real_target, "rank correlation on held-out"),
    "real target by name": (lambda: real_target("loss in euro"), "(value of loss in euro "),
    "real target of few": (real_target, "are too few to rely on"),
    "paper preset": (lambda: detector(preset="paper").fit(rated(lambda t: t), ring_labels()), "--preset paper"),
    "tiny": (tiny, "None: nobody acts together"),
    "one label": (one_label, "1 label"),
    "arrays": (lambda: detector().fit(rl.SparseTensor.from_arrays([[0, 0], [1, 1], [1, 0]])), "came as arrays"),
    "updated": (updated, "the table that was read last"),
}
