"""CrossSpot, MultiAspectForensics, burst and degree."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.baselines.bursts import LargestBurst
from ringleader.baselines.crossspot import CrossSpot, alternate, best_prefix, random_seed
from ringleader.baselines.degree import Degree
from ringleader.baselines.density import suspiciousness
from ringleader.baselines.multiaspect import MultiAspectForensics, spikes
from ringleader.baselines.mzoom import searched_tensor
from ringleader.errors import SettingsError
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary


def planted_market(seed: int = 0) -> SparseTensor:
    """3,000 reviews at random, and 15 reviewers who each review the same 6 products in the same 2 weeks."""
    g = np.random.default_rng(seed)
    noise = np.stack([g.integers(0, n, 3000) for n in (600, 200, 60)], axis=1)
    ring = np.stack(np.meshgrid(range(15), range(6), range(2)), axis=-1).reshape(-1, 3)
    return SparseTensor.from_arrays(np.vstack([noise, ring]), ["reviewer", "product", "week"], sizes=(600, 200, 60))


@given(seed=st.integers(0, 10**6), modes=st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_crossspot_never_lowers_suspiciousness_and_takes_the_best_prefix(seed, modes):
    g = np.random.default_rng(seed)
    tensor = SparseTensor.from_arrays(g.integers(0, 7, (80, modes)), counts=g.integers(1, 4, 80), sizes=[7] * modes)
    searched, _ = searched_tensor(tensor, None)
    member = random_seed(searched, g)
    k = int(g.integers(modes))
    chosen, value = best_prefix(searched, member, k)
    shape = [len(np.unique(tensor.coordinates[:, m])) for m in range(modes)]
    total = int(tensor.counts.sum())

    def measured(sets):
        inside = np.all([np.isin(tensor.coordinates[:, m], sets[m]) for m in range(modes)], axis=0)
        mass, sizes = int(tensor.counts[inside].sum()), [len(s) for s in sets]
        expected = total * np.prod(np.array(sizes) / np.array(shape))
        return suspiciousness(mass, sizes, total, shape) if mass > expected and min(sizes) else 0.0

    sets = [np.flatnonzero(member[searched.starts[m] : searched.starts[m + 1]]) for m in range(modes)]
    sets[k] = chosen
    assert value == pytest.approx(measured(sets), rel=1e-9, abs=1e-9)
    for _ in range(20):  # no other choice of entities is better
        sets[k] = np.flatnonzero(g.random(7) < 0.5)
        sets[k] = sets[k][np.isin(sets[k], tensor.coordinates[:, k])]
        if len(sets[k]):
            assert measured(sets) <= value * (1 + 1e-9) + 1e-9
    history = alternate(searched, member, 50)
    assert all(b > a for a, b in itertools.pairwise(history))


def test_crossspot_finds_the_planted_block():
    model = CrossSpot(n_blocks=1, n_seeds=60).fit(planted_market())
    assert [m.tolist() for m in model.blocks_[0].members] == [list(range(15)), list(range(6)), [0, 1]]
    assert set(np.flatnonzero(model.scores("reviewer"))) == set(range(15))


def test_multiaspect_finds_the_planted_group_as_a_spike():
    model = MultiAspectForensics(rank=5).fit(planted_market())
    best = model.blocks_[0]
    # A group whose values straddle two bins may lose a member to the neighbouring bin.
    assert set(best.members[0].tolist()) <= set(range(15)) and len(best.members[0]) >= 12
    assert [m.tolist() for m in best.members[1:]] == [list(range(6)), [0, 1]]
    scores = model.scores("reviewer")
    assert scores[:15].min() > np.quantile(scores[15:], 0.99)
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(model.fits_))


def test_spikes_are_piles_of_equal_values():
    smooth = np.geomspace(1e-3, 1.0, 200)
    values = np.concatenate([smooth, np.full(40, 0.05)])
    groups = spikes(values, 20, 1e-4, 5, 3.0)
    assert len(groups) == 1
    assert set(range(200, 240)) <= set(groups[0].tolist())
    assert spikes(smooth, 20, 1e-4, 5, 3.0) == []
    assert spikes(np.zeros(10), 20, 1e-4, 5, 3.0) == []


def burst_market() -> SparseTensor:
    """Steady sellers 1..9, and seller 0 with the same volume, all of it five stars in weeks 10 to 12."""
    rows = [(seller, 1 + week % 5, week) for seller in range(1, 10) for week in range(40)]
    rows += [(0, 5, 10 + i % 3) for i in range(40)]
    codes = np.array(rows) - [0, 1, 0]
    table = SparseTensor.from_arrays(codes, ["seller", "rating", "week"])
    return SparseTensor(
        table.coordinates,
        table.counts,
        (
            table.vocabularies[0],
            Vocabulary("rating", "number", pa.array([1.0, 2.0, 3.0, 4.0, 5.0])),
            Vocabulary("week", "time", pa.array(np.arange(40) * 604800), 604800),
        ),
    )


def test_burst_is_highest_for_the_bursting_seller_and_equals_the_formula():
    tensor = burst_market()
    scores = LargestBurst().fit(tensor).scores("seller")
    assert scores.argmax() == 0
    high = tensor.coordinates[:, 1] == 4
    share = tensor.counts[high].sum() / tensor.counts.sum()
    weeks = tensor.coordinates[:, 2]
    for seller in range(10):
        mine = tensor.coordinates[:, 0] == seller
        best = 0.0
        for first in range(40):
            window = (weeks >= first) & (weeks < first + 3)
            seen = tensor.counts[mine & high & window].sum()
            m = tensor.counts[mine].sum() * share * tensor.counts[window].sum() / tensor.counts.sum()
            if seen:
                best = max(best, (seen - m) / np.sqrt(m + 1.0))
        assert scores[seller] == pytest.approx(best)


def test_burst_knows_the_order_of_weeks_from_times_and_from_names():
    tensor = burst_market()
    names = [f"w{i}" for i in range(40)]
    shuffled = np.random.default_rng(0).permutation(40)
    coordinates = tensor.coordinates.copy()
    coordinates[:, 2] = np.argsort(shuffled)[coordinates[:, 2]]
    vocabularies = (*tensor.vocabularies[:2], Vocabulary.of_ids("week", [names[i] for i in shuffled]))
    other = SparseTensor(coordinates, tensor.counts, vocabularies)
    np.testing.assert_allclose(LargestBurst().fit(other).scores("seller"), LargestBurst().fit(tensor).scores("seller"))


def test_burst_without_ratings_counts_every_review_and_without_time_says_so():
    tensor = planted_market()
    scores = LargestBurst().fit(tensor).scores("product")
    assert np.median(scores[:6]) > np.median(scores[6:])
    with pytest.raises(SettingsError, match="time mode"):
        LargestBurst().fit(SparseTensor.from_arrays([[0, 0], [1, 1]], ["seller", "reviewer"]))
    with pytest.raises(SettingsError, match="no rating mode"):
        LargestBurst(high_rating=4).fit(tensor)
    with pytest.raises(SettingsError, match="the highest is 5"):
        LargestBurst(high_rating=9).fit(burst_market())


def test_degree_counts_reviews_or_cells():
    tensor = SparseTensor.from_arrays([[0, 0], [0, 0], [1, 0]], ["reviewer", "product"])
    assert Degree().fit(tensor).scores("reviewer").tolist() == [2.0, 1.0]
    assert Degree(weight="cells").fit(tensor).scores("reviewer").tolist() == [1.0, 1.0]
