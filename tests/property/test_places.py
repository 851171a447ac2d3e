"""Places of values among all: those that scipy's ranks say, however many of the values are the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from ringleader.runtime.peers import Alone
from ringleader.shares.order import rank_values

VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]) | st.floats(-1e6, 1e6)


@given(st.lists(VALUES, max_size=200), st.integers(0, 300), st.randoms(use_true_random=False))
def test_places_are_those_of_rankdata(values, zeros, shuffled) -> None:
    values = values + [0.0] * zeros
    shuffled.shuffle(values)
    column = np.array(values)
    ranked = rank_values(Alone(), column)
    np.testing.assert_array_equal(ranked.places, rankdata(column) - 0.5 if len(column) else column)
    np.testing.assert_array_equal(ranked.distinct, np.unique(column))
    assert ranked.total == len(np.unique(column))
