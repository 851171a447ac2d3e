"""Plain NumPy of ``topics``: the specification, and the oracle of the tests. Slow and dense."""

from __future__ import annotations

from typing import Any

import numpy as np


def topic_counts(offsets: Any, columns: Any, own: Any, other: Any, counts: Any, span: tuple[int, int]) -> None:
    """See ``topics.topic_counts``."""
    for r in range(*span):
        joint = own[r] * other[columns[offsets[r] : offsets[r + 1]]]
        chance = joint.sum(axis=1, keepdims=True)
        counts[r] = np.where(chance > 0, joint / np.where(chance > 0, chance, 1.0), 0.0).sum(axis=0)
