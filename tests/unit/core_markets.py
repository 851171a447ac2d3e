"""Small markets in which everyone acts alone, but for the groups that are planted."""

from __future__ import annotations

import numpy as np
import pandas as pd

import ringleader as rl
from ringleader.tensor.sparse import SparseTensor

WEEK = 7 * 86_400
OPENING = 1_400_000_000
COLUMNS = ["reviewer", "product", "seller", "rating", "timestamp"]


def honest(seed: int = 0, weeks: int = 150) -> pd.DataFrame:
    """A market in which everyone acts alone, by popularity and activity. A seller has three products."""
    reviewers, products, n = 1_500, 300, 9_000
    rng = np.random.default_rng(seed)
    activity, popularity = rng.lognormal(0, 0.8, reviewers), rng.lognormal(0, 1, products)
    product = rng.choice(products, n, p=popularity / popularity.sum())
    return pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.choice(reviewers, n, p=activity / activity.sum())],
            "product": [f"p{i}" for i in product],
            "seller": [f"s{i % 100}" for i in product],
            "rating": rng.choice([1, 2, 3, 4, 5], n, p=[0.12, 0.08, 0.1, 0.25, 0.45]),
            "timestamp": OPENING + rng.integers(0, weeks * WEEK, n),
        }
    )


def gang(
    name: str, ratings: tuple[int, ...], weeks: float, first: int = 0, people: int = 9, items: int = 7, seed: int = 1
) -> pd.DataFrame:
    """People who nearly all review the same products, each product within so many weeks."""
    rng = np.random.default_rng(seed)
    rows = [
        (
            f"{name}{i}",
            f"p{first + p}",
            f"s{(first + p) % 100}",
            int(rng.choice(ratings)),
            int(OPENING + (max(140 - weeks, 0) * p / items + rng.random() * weeks) * WEEK),
        )
        for p in range(items)
        for i in range(people)
        if rng.random() < 0.9
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def market(*gangs: pd.DataFrame, seed: int = 0, drop: tuple[str, ...] = ()) -> SparseTensor:
    return rl.read_reviews(pd.concat([honest(seed), *gangs], ignore_index=True).drop(columns=list(drop)))
