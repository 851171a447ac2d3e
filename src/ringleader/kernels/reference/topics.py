"""Plain NumPy of ``topics``: the specification, and the oracle of the tests. Slow and dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.kernels.topic_layout import TopicRows


def topic_counts(offsets: Any, columns: Any, own: Any, other: Any, counts: Any, span: tuple[int, int]) -> None:
    """See ``topics.topic_counts``."""
    for r in range(*span):
        joint = own[r] * other[columns[offsets[r] : offsets[r + 1]]]
        chance = joint.sum(axis=1, keepdims=True)
        counts[r] = np.where(chance > 0, joint / np.where(chance > 0, chance, 1.0), 0.0).sum(axis=0)


def topic_counts_of_both(offsets: Any, columns: Any, own: Any, other: Any, counts: Any, other_counts: Any) -> None:
    """See ``topics.topic_counts_of_both``."""
    topic_counts(offsets, columns, own, other, counts, (0, len(own)))
    row = np.repeat(np.arange(len(own)), np.diff(offsets))
    order = np.argsort(columns, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(other)))])
    topic_counts(ends, row[order], other, own, other_counts, (0, len(other)))


def drawn_to_items(authors: Any, items: Any, topics: TopicRows, drawn: Any, span: tuple[int, int]) -> None:
    """See ``topics.drawn_to_items``."""
    for i in range(*span):
        a, c = authors[i], items[i]
        own = topics.shares[a] * topics.chances[c]
        left = np.maximum(topics.counts[a] - own / max(float(own.sum()), 1e-300), 0.0) + topics.prior
        drawn[i] = (left * topics.nearer[c]).sum() / left.sum()
