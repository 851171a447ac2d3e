"""Several starts of one method: the mean of what each alone would say."""

from __future__ import annotations

import numpy as np
import pytest

from ringleader.baselines.registry import baseline
from ringleader.baselines.starts import AverageOfStarts, start_seeds
from ringleader.datasets import marketplace
from ringleader.errors import SettingsError
from ringleader.tensor.encode import read_reviews


@pytest.fixture(scope="module")
def tensor():
    return read_reviews(marketplace(2_000, seed=5).reviews)


def test_scores_are_the_mean_over_the_seeds(tensor):
    model = baseline("bptf", rank=3, max_iter=4, starts=3, random_state=7).fit(tensor)
    alone = [baseline("bptf", rank=3, max_iter=4, random_state=s).fit(tensor) for s in start_seeds(7, 3)]
    np.testing.assert_array_equal(model.scores("seller"), np.mean([m.scores("seller") for m in alone], axis=0))
    assert not np.array_equal(alone[0].scores("seller"), alone[1].scores("seller"))


def test_the_first_start_is_the_method_as_it_is():
    assert start_seeds(11, 1) == [11]
    assert start_seeds(11, 4)[:2] == start_seeds(11, 2)
    assert len(set(start_seeds(11, 4))) == 4
    assert not isinstance(baseline("bptf", starts=1), AverageOfStarts)


def test_labels_reach_every_start(tensor):
    known = np.full(tensor.shape[tensor.mode_index("seller")], np.nan)
    known[:8] = np.tile([1.0, 0.0], 4)
    model = baseline("ss-natural-gradient", epochs=1, rank=3, starts=2).fit(tensor, {"seller": known})
    scores = model.scores("seller")
    assert len(model.models_) == 2 and ((scores > 0) & (scores < 1)).all()


def test_steps_of_all_starts_count_as_one_fit(tensor):
    steps = []
    baseline("bptf", rank=2, max_iter=2, tol=1e-12, starts=2).fit(tensor, callback=steps.append)
    assert [s.step for s in steps] == [1, 2, 3, 4] and {s.total for s in steps} == {4}


def test_fewer_than_one_start_is_refused(tensor):
    with pytest.raises(SettingsError, match="at least 1"):
        baseline("bptf", starts=0).fit(tensor)


def test_a_generator_or_no_seed_gives_other_starts(tensor):
    for random_state in (None, np.random.default_rng(1)):
        model = baseline("bptf", rank=2, max_iter=2, starts=2, random_state=random_state).fit(tensor)
        first, second = (one.scores("seller") for one in model.models_)
        assert not np.array_equal(first, second)
