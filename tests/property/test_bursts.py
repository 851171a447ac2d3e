"""The search for bursts of every backend against the reference, on random times of reviews."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.kernels.burst_layout import BurstRule, FoundBursts, ReviewTimes
from ringleader.kernels.protocol import backend_names, get_backend, unavailable

RUNNABLE = [name for name in backend_names() if unavailable(name) is None]


@pytest.mark.parametrize("name", RUNNABLE)
@settings(max_examples=100, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 12)), max_size=30),
    st.integers(1, 7),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_the_largest_burst_is_the_first_window_that_stands_out_most(
    name: str, met: set[tuple[int, int]], length: int, kinds: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    entity, bins = np.array(sorted(met), np.int64).reshape(-1, 2).T
    reviews = rng.integers(0, 4, (kinds, len(entity)))
    running = np.concatenate([np.zeros((kinds, 1)), np.cumsum(reviews, axis=1)], axis=1)
    volume = np.bincount(entity, weights=reviews.sum(axis=0), minlength=6)
    times = ReviewTimes(entity * 40 + bins, entity.copy(), bins.copy(), running, volume)
    calm = rng.choice([0.1, 0.2], (2, len(entity)))  # few values, so that windows stand out alike
    rule = BurstRule(calm, rng.choice([0.25, 0.5], kinds), length, 1.0)
    found, expected = (FoundBursts(*np.zeros((3, kinds, 6)), np.zeros((kinds, 6), np.int64)) for _ in range(2))
    get_backend(name).largest_bursts(times, rule, found)
    get_backend("reference").largest_bursts(times, rule, expected)
    for own, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, wanted)
