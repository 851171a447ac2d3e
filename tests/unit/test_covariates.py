"""Behaviour covariates against plain Python, entity by entity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_covariates import (
    SIZES,
    WEEK,
    make_tensor,
    mean,
    naive,
    random_tensor,
    rows_of,
)

from ringleader.errors import SettingsError
from ringleader.signals.behaviour import Covariates, behaviour, distinct, read_market, time
from ringleader.signals.behaviour.distinct import distinct_pairs
from ringleader.signals.behaviour.time import Calendar, near_keys, say_length, windows_for
from ringleader.tensor.roles import rating_sides
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

MODE_SETS = [
    tuple(SIZES),
    ("reviewer", "product", "rating", "week"),
    ("reviewer", "product", "seller", "week"),
    ("reviewer", "product", "seller", "rating"),
    ("reviewer", "product", "rating"),
    ("reviewer", "product", "week"),
    ("reviewer", "product"),
    ("week", "product", "rating", "reviewer"),
]


@pytest.mark.parametrize("modes", MODE_SETS, ids="-".join)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_covariate_is_what_plain_python_makes_of_it(modes: tuple[str, ...], seed: int) -> None:
    tensor = random_tensor(seed, modes, n=[12, 50, 90][seed])
    for mode in ("reviewer", "product", "seller"):
        if mode not in modes:
            continue
        found, slow = behaviour(tensor, mode), naive(tensor, mode)
        present = tensor.degrees(mode) > 0
        checked = set(found.names) - {"burst_share", "burst_lift"}  # these have tests of their own
        assert checked == set(slow)
        for name in checked:
            values = found.values[:, found.names.index(name)]
            expected = np.array(slow[name])
            expected = expected[present] if len(expected) == len(present) else expected
            np.testing.assert_allclose(values[present], expected, atol=1e-9, err_msg=f"{mode} {name}")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(MODE_SETS), st.integers(1, 40))
def test_every_value_is_finite_and_named(seed: int, modes: tuple[str, ...], n: int) -> None:
    tensor = random_tensor(seed, modes, n)
    market = read_market(tensor)
    for k, mode in enumerate(modes):
        found = behaviour(tensor, k, market=market)
        assert found.mode == mode
        assert found.values.shape == (tensor.shape[k], len(found.names))
        assert found.values.dtype == np.float64
        assert np.isfinite(found.values).all()
        assert len(set(found.names)) == len(found.names)
        assert set(found.descriptions) == set(found.groups) == set(found.names)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(MODE_SETS))
def test_permuting_ids_permutes_covariates(seed: int, modes: tuple[str, ...]) -> None:
    tensor = random_tensor(seed, modes)
    rng = np.random.default_rng(seed)
    orders = [
        rng.permutation(n) if v.kind == "id" else np.arange(n)
        for n, v in zip(tensor.shape, tensor.vocabularies, strict=True)
    ]
    moved = np.stack([order[tensor.coordinates[:, k]] for k, order in enumerate(orders)], axis=1)
    other = make_tensor(moved, tensor.counts, modes)
    for k in range(len(modes)):
        before, after = behaviour(tensor, k), behaviour(other, k)
        np.testing.assert_allclose(after.values[orders[k]], before.values, atol=1e-9)


def test_the_same_tensor_gives_the_same_bits() -> None:
    tensor = random_tensor(5)
    assert (behaviour(tensor, "seller").values == behaviour(tensor, "seller", market=read_market(tensor)).values).all()


@pytest.mark.parametrize("modes", [tuple(SIZES), ("reviewer", "product", "seller")])
def test_a_count_says_the_same_as_a_repeated_row(modes: tuple[str, ...]) -> None:
    tensor = random_tensor(3, modes, n=30)
    repeated = np.repeat(tensor.coordinates, tensor.counts, axis=0)
    again = make_tensor(repeated, np.ones(len(repeated)), modes)
    np.testing.assert_array_equal(behaviour(again, "product").values, behaviour(tensor, "product").values)


def column(covariates: Covariates, name: str) -> np.ndarray:
    return covariates.values[:, covariates.names.index(name)]


def test_who_has_no_reviews_gets_the_markets_mean_or_nothing() -> None:
    tensor = random_tensor(0, n=40, sizes={"seller": 3})
    wide = make_tensor(tensor.coordinates, tensor.counts, sizes={"seller": 4})
    found = behaviour(wide, "seller")
    rows = rows_of(wide)
    assert column(found, "reviews")[3] == 0
    assert column(found, "rating_mean")[3] == pytest.approx(mean([r["rating"] for r in rows]))
    assert column(found, "reviewer_evenness")[3] == 1
    for name in found.names:
        if found.groups[name] in ("burst", "volume", "rhythm") or name.endswith(("_same", "_repeats", "top_share")):
            assert column(found, name)[3] == 0, name


def test_one_review_is_no_burst_no_crowd_and_no_concentration() -> None:
    codes = np.array([[0, 0, 0, 4, 2], [1, 1, 1, 0, 3], [1, 1, 1, 4, 7], [2, 1, 1, 4, 7]])
    found = behaviour(make_tensor(codes, np.ones(4)), "seller")
    for name in found.names:
        if found.groups[name] in ("burst", "rhythm") and name != "active_bins":
            assert column(found, name)[0] == 0, name
    assert column(found, "reviewer_same")[0] == 0
    assert column(found, "product_crowd")[0] == 0


def test_a_tensor_with_a_single_entity_works() -> None:
    codes = np.zeros((3, 5), int)
    codes[:, 4] = [0, 1, 2]
    sizes = {"reviewer": 1, "product": 1, "seller": 1}
    found = behaviour(make_tensor(codes, np.ones(3), sizes=sizes), "seller")
    assert np.isfinite(found.values).all()
    assert column(found, "burst_medium")[0] == 0  # the market's calendar is its own


def test_a_tensor_without_cells_works() -> None:
    tensor = make_tensor(np.zeros((0, 5), int), np.zeros(0))
    for mode in tensor.modes:
        assert np.isfinite(behaviour(tensor, mode).values).all()


def holiday_market(seed: int, burst_of: int | None) -> SparseTensor:
    """Twenty sellers whose reviews follow a calendar with a tenfold peak in one week; one may have its own burst."""
    rng = np.random.default_rng(seed)
    weeks, sellers, n = 50, 20, 8_000
    calendar = np.ones(weeks)
    calendar[30] = 10.0
    when = rng.choice(weeks, n, p=calendar / calendar.sum())
    seller = rng.integers(0, sellers, n)
    if burst_of is not None:
        mine = np.flatnonzero(seller == burst_of)[:80]
        when[mine] = rng.integers(10, 13, len(mine))
    codes = np.stack([rng.integers(0, 400, n), seller, np.full(n, 4), when * 11 % weeks], axis=1)
    return SparseTensor(
        np.unique(codes, axis=0).astype(np.int32),
        np.ones(len(np.unique(codes, axis=0)), np.int64),
        (
            Vocabulary.of_ids("reviewer", [str(i) for i in range(400)]),
            Vocabulary.of_ids("seller", [str(i) for i in range(sellers)]),
            Vocabulary("rating", "number", pa.array([1.0, 2, 3, 4, 5])),
            Vocabulary("week", "time", pa.array([w * WEEK for w in np.argsort(np.arange(weeks) * 11 % weeks)]), WEEK),
        ),
    )


def test_a_holiday_of_the_whole_market_is_no_burst() -> None:
    calm = behaviour(holiday_market(0, None), "seller")
    assert column(calm, "burst_short").max() < 5  # the peak alone would be 68 where 8 are usual: z above 20
    loud = behaviour(holiday_market(0, 7), "seller")
    z = column(loud, "burst_medium")
    assert z.argmax() == 7
    assert z[7] > 10
    burst = loud.bursts["burst_medium"]
    assert 8 <= burst.start[7] <= 12
    assert burst.seen[7] >= 80
    assert burst.expected[7] < 40


def test_a_burst_is_told_in_words() -> None:
    tensor = holiday_market(0, 7)
    text = behaviour(tensor, "seller").sentence("boost_burst_medium", 7)
    assert text.startswith("Its good reviews came in a burst: ")
    assert "in the 3 weeks from 1970-" in text
    assert "were expected" in text
    assert "Its bad reviews came in no burst of 3 weeks" in behaviour(tensor, "seller").sentence(
        "attack_burst_medium", 7
    )
    assert "Mean of its ratings: 5" in behaviour(tensor, "seller").sentence("rating_mean", 7)
    with pytest.raises(SettingsError, match="there is no covariate 'nothing'"):
        behaviour(tensor, "seller").sentence("nothing", 7)


def test_the_share_and_the_lift_of_a_burst() -> None:
    # Seller 0: four fives in week 5, and ones in weeks 0 and 8. Seller 1 keeps the calendar busy.
    mine = [[r, 0, 0, 4, 1] for r in range(4)] + [[4, 0, 0, 0, 0], [5, 0, 0, 0, 7]]
    rest = [[r, 1, 1, 2, w] for r in range(6) for w in range(9)]
    tensor = make_tensor(np.array(mine + rest), np.ones(6 + 54))
    found = behaviour(tensor, "seller")
    assert column(found, "burst_share")[0] == pytest.approx(4 / 6)
    own = (4 * 5 + 2 * 1) / 6
    gain = 4 * (5 - own)
    assert column(found, "burst_lift")[0] == pytest.approx(gain / (4 + 1) + gain / (2 + 1))
    assert column(found, "burst_lift")[1] == pytest.approx(0.0)


def test_the_table_is_indexed_by_id() -> None:
    tensor = random_tensor(1)
    table = behaviour(tensor, "seller").frame(tensor)
    assert list(table.index) == ["seller0", "seller1", "seller2"]
    assert table.index.name == "seller"
    with pytest.raises(SettingsError, match="pass the tensor they were computed from"):
        behaviour(tensor, "seller").frame(random_tensor(1, sizes={"seller": 5}))


def test_a_missing_mode_drops_its_covariates_and_no_others() -> None:
    tensor = random_tensor(2)
    full = behaviour(tensor, "reviewer")
    keep = [0, 1, 2, 4]
    no_rating = behaviour(make_tensor(tensor.coordinates[:, keep], tensor.counts, MODE_SETS[2]), "reviewer")
    assert {full.groups[n] for n in set(full.names) - set(no_rating.names)} == {"rating", "deviation", "burst"}
    no_time = behaviour(make_tensor(tensor.coordinates[:, :4], tensor.counts, MODE_SETS[3]), "reviewer")
    gone = set(full.names) - set(no_time.names)
    assert {full.groups[n] for n in gone - {"burst_lift"}} == {"burst", "rhythm", "age", "crowd"}
    shared = list(no_time.names)
    np.testing.assert_allclose(no_time.values, np.stack([column(full, n) for n in shared], axis=1))


def test_categories_are_counterparts_where_there_is_no_second_id() -> None:
    tensor = SparseTensor(
        np.array([[0, 0], [0, 1], [1, 1]], np.int32),
        np.array([1, 2, 1]),
        (
            Vocabulary.of_ids("user", ["a", "b"]),
            Vocabulary("country", "category", pa.array(["x", "y"], pa.large_string())),
        ),
    )
    assert "country_top_share" in behaviour(tensor, "user").names


def test_windows_follow_the_bins() -> None:
    assert windows_for(WEEK) == (1, 3, 6)
    assert windows_for(86_400) == (7, 21, 42)
    assert windows_for(30 * 86_400) == (1, 2, 3)
    assert windows_for(60) == (1, 10, 60)
    assert say_length(3, WEEK) == "3 weeks"
    assert say_length(1, WEEK) == "1 week"
    assert say_length(10, 60) == "10 minutes"
    assert say_length(90, 1) == "90 seconds"


def test_minutes_and_weeks_tell_the_same_story_in_their_own_units() -> None:
    tensor = random_tensor(4)
    minutes = make_tensor(tensor.coordinates, tensor.counts, bin_seconds=60)
    weekly, minutely = behaviour(tensor, "seller"), behaviour(minutes, "seller")
    assert weekly.names == minutely.names
    np.testing.assert_allclose(column(weekly, "burst_short"), column(minutely, "burst_short"))


def test_a_calendar_too_long_for_a_table_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = random_tensor(6)
    table = behaviour(tensor, "reviewer").values
    monkeypatch.setattr("ringleader.signals.behaviour.time.LONGEST_TABLE", 0)
    np.testing.assert_array_equal(behaviour(tensor, "reviewer").values, table)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([1, 2, 3, 4, 5], 2, 4), ([3, 4], 2, 4), ([-10, -1, 2, 10], -1, 2), ([0, 100], 25, 75), ([7, 7], -np.inf, 7)],
)
def test_sides_of_a_rating_scale(values: list[float], low: float, high: float) -> None:
    assert rating_sides(np.array(values, float)) == (low, high)


@pytest.mark.parametrize("dense", [0, 16], ids=["compared", "counted"])
@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("in_order", [False, True])
def test_distinct_pairs_are_as_unique_has_them(
    dense: int, n: int, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct, "DENSE", dense)
    sizes = (1200, 9)  # more than there are cells, so that some codes never occur
    codes = np.random.default_rng(n).integers(0, sizes, (n, 2))
    codes = codes[np.lexsort(codes.T[::-1])] if in_order else codes
    keys, inverse = np.unique(codes[:, 0] * sizes[1] + codes[:, 1], return_inverse=True)
    found = distinct_pairs(codes[:, 0], codes[:, 1], sizes)
    assert np.array_equal(found.first * sizes[1] + found.second, keys)
    assert np.array_equal(found.where, inverse.reshape(-1))


@pytest.mark.parametrize("few", [0, 12], ids=["searched", "compared"])
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 200])
def test_near_keys_are_counted_on_either_side(few: int, length: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "FEW_BINS", few)
    keys = np.sort(np.random.default_rng(n).choice(2 * n + 1, n, replace=False))
    behind, ahead = near_keys(keys, length)
    assert behind.tolist() == [int(((keys > key - length) & (keys <= key)).sum()) for key in keys]
    assert ahead.tolist() == [int(((keys >= key) & (keys < key + length)).sum()) for key in keys]


@pytest.mark.parametrize("n", [3, 50], ids=["fewer than bins", "more than bins"])
def test_shares_around_bins_are_those_of_each_window(n: int) -> None:
    occupied = np.array([0, 1, 4, 5, 9])
    calendar = Calendar(occupied, np.array([0.0, 0.25, 0.375, 0.5, 0.75, 1.0]), 10, WEEK, 0, (1, 3, 6), None)
    bins = np.random.default_rng(n).integers(0, 10, n)
    for start, length in ((0, 3), (-2, 3), (-5, 6)):
        wanted = calendar.share(bins + start, bins + start + length)
        assert np.array_equal(calendar.share_around(bins, start, length), wanted)
