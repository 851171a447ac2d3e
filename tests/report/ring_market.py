"""A small market with one planted ring, its labels, and names that attack."""

from __future__ import annotations

import numpy as np
import pandas as pd

import ringleader as rl

WEEK = 604_800
RING_REVIEWERS, RING_SELLERS = 14, 6

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "template": "{{7*7}}{% raw %}",
    "formula": '=HYPERLINK("http://example.com","x")',
    "ansi": "\x1b[31mred\x1b[0m",
    "override": "abc\u202edcba",
    "nul": "nul\x00nul",
    "long": "L" * 10_000,
    "lines": "first\nsecond\r\nthird",
    "math": r"$\frac{1}{0}$ and $x",
    "close": "</title></style></svg><b>",
    "entity": "&lt;b&gt; &amp;",
}


def ring_table(seed: int = 3) -> pd.DataFrame:
    """2,000 reviews at random, and a ring whose members meet at the same sellers in the same weeks; some cover."""
    rng = np.random.default_rng(seed)
    n = 2_000
    product = rng.integers(0, 90, n)
    honest = pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 300, n)],
            "product": [f"p{i}" for i in product],
            "seller": [f"s{i % 30}" for i in product],
            "rating": rng.choice([1, 2, 3, 4, 5], n, p=[0.15, 0.1, 0.15, 0.25, 0.35]),
            "timestamp": 1_420_070_400 + rng.integers(0, 60 * WEEK, n),
        }
    )
    ring = [
        (
            f"ring{i}",
            f"ringp{j}",
            f"rings{j}",
            5,
            1_420_070_400 + (10 + 4 * j) * WEEK + int(rng.integers(0, 6 * 86_400)),
        )
        for i in range(RING_REVIEWERS)
        for j in range(RING_SELLERS)
        if rng.random() < 0.85
    ]
    known = [(f"r{i}", f"ringp{i % 6}", f"rings{i % 6}", 1 + i % 5, 1_420_070_400 + 5 * i * WEEK) for i in range(12)]
    cover = [
        (f"ring{i}", f"p{i}", f"s{i % 30}", 1 + i % 5, 1_420_070_400 + 4 * i * WEEK) for i in range(RING_REVIEWERS)
    ]
    return pd.concat([honest, pd.DataFrame([*ring, *known, *cover], columns=honest.columns)], ignore_index=True)


def ring_labels() -> pd.DataFrame:
    bad = [("reviewer", f"ring{i}", 1) for i in range(8)] + [("seller", f"rings{j}", 1) for j in range(4)]
    good = [("reviewer", f"r{i}", 0) for i in range(16)] + [("seller", f"s{j}", 0) for j in range(8)]
    return pd.DataFrame(bad + good, columns=["mode", "entity", "label"])


def detector(**changes: object) -> rl.RingDetector:
    return rl.RingDetector(rank=3, epochs=2, **changes)  # type: ignore[arg-type]
