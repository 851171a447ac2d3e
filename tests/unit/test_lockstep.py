"""Lockstep: what lights up, what must not, and that labels do not leak."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from core_markets import OPENING, WEEK, honest
from scipy import sparse

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.errors import SettingsError
from ringleader.shares.cells import as_share
from ringleader.signals.lockstep import (
    Lockstep,
    LockstepSettings,
    associate,
    associate_through,
    find_lockstep,
    start_rows,
)
from ringleader.signals.lockstep.counting import _OnItems
from ringleader.signals.lockstep.meetings import Meetings
from ringleader.signals.lockstep.start import components
from ringleader.tensor.sparse import SparseTensor

RING, ITEMS = 8, 6


def gang(name: str, rating: int, spread_weeks: float, seed: int = 1, first: int = 0) -> pd.DataFrame:
    """RING people who all review the same ITEMS products, each product within ``spread_weeks`` weeks."""
    rng = np.random.default_rng(seed)
    rows = [
        (
            f"{name}{i}",
            f"p{first + p}",
            f"s{(first + p) % 100}",
            rating,
            OPENING + (5 + 20 * p + rng.random() * spread_weeks) * WEEK,
        )
        for p in range(ITEMS)
        for i in range(RING)
    ]
    frame = pd.DataFrame(rows, columns=["reviewer", "product", "seller", "rating", "timestamp"])
    return frame.astype({"timestamp": np.int64})


def market(*gangs: pd.DataFrame, seed: int = 0, drop: tuple[str, ...] = ()) -> SparseTensor:
    return rl.read_reviews(pd.concat([honest(seed), *gangs], ignore_index=True).drop(columns=list(drop)))


def of(tensor: SparseTensor, prefix: str) -> np.ndarray:
    """Codes of the reviewers of a gang, or (``r``) of everyone else."""
    ids = tensor.vocabulary("reviewer").decode(np.arange(tensor.shape[0]))
    return np.flatnonzero([str(i).rstrip("0123456789") == prefix for i in ids])


def reviewer_means(tensor: SparseTensor, lockstep: Lockstep, key: str = "lockstep_mean") -> np.ndarray:
    return lockstep.entity_scores(tensor, "reviewer")[key]


def test_a_planted_ring_lights_up() -> None:
    tensor = market(gang("ring", 5, 3))
    lockstep = find_lockstep(tensor)
    mean = reviewer_means(tensor, lockstep)
    assert mean[of(tensor, "ring")].min() > 3.0
    assert mean[of(tensor, "ring")].min() > 1.5 * mean[of(tensor, "r")].max()
    assert np.median(mean[of(tensor, "r")]) < 0.5
    ring = lockstep.graph[of(tensor, "ring")][:, of(tensor, "ring")].toarray()
    assert (ring[~np.eye(RING, dtype=bool)] > 5).all()


def test_boosts_and_attacks_are_kept_apart() -> None:
    tensor = market(gang("boost", 5, 3), gang("attack", 1, 3, first=50))
    lockstep = find_lockstep(tensor)
    scores = lockstep.entity_scores(tensor, "reviewer")
    boost, attack = of(tensor, "boost"), of(tensor, "attack")
    assert scores["boost_mean"][boost].min() > 3 and scores["boost_mean"][attack].max() == 0
    assert scores["attack_mean"][attack].min() > 3 and scores["attack_mean"][boost].max() == 0
    assert scores["lockstep_mean"][np.r_[boost, attack]].min() > 3
    np.testing.assert_allclose(lockstep.review_scores, lockstep.boost.scores + lockstep.attack.scores)
    assert not ((lockstep.boost.scores > 0) & (lockstep.attack.scores > 0)).any()


def test_an_attack_says_as_much_in_a_crowd() -> None:
    tensor = market(gang("boost", 5, 3), gang("attack", 1, 3, first=50))
    lockstep, anywhere = (find_lockstep(tensor, LockstepSettings(popularity=p)) for p in (0.5, 0.0))
    np.testing.assert_array_equal(lockstep.crowded_attacks, anywhere.attack.scores)
    assert (lockstep.crowded_attacks != lockstep.attack.scores).any()
    assert not lockstep.crowded_attacks[lockstep.boost.scores > 0].any()
    stored = Lockstep.from_arrays(lockstep.to_arrays())
    np.testing.assert_array_equal(stored.crowded_attacks, lockstep.crowded_attacks)


def test_a_taste_community_without_shared_weeks_does_not_light_up() -> None:
    tensor = market(gang("fan", 5, 140, seed=4), gang("ring", 5, 3, first=50))
    mean = reviewer_means(tensor, find_lockstep(tensor))
    assert mean[of(tensor, "fan")].mean() < 0.2 * mean[of(tensor, "ring")].mean()
    assert mean[of(tensor, "fan")].max() < mean[of(tensor, "ring")].min()


def test_a_viral_product_does_not_light_up() -> None:
    rng = np.random.default_rng(5)
    viral = pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.choice(1_500, 150, replace=False)],
            "product": "viral",
            "seller": "s1",
            "rating": 5,
            "timestamp": OPENING + 60 * WEEK + rng.integers(0, WEEK, 150),
        }
    )
    tensor = market(viral, gang("ring", 5, 3))
    loud = np.log1p(find_lockstep(tensor).review_scores)
    of_viral = tensor.coordinates[:, 1] == tensor.vocabulary("product").code("viral")
    of_ring = np.isin(tensor.coordinates[:, 0], of(tensor, "ring"))
    assert np.quantile(loud[of_viral], 0.9) < 0.6 * np.quantile(loud[of_ring], 0.1)
    assert loud[of_viral].mean() < 0.4 * loud[of_ring].mean()


def test_chance_alone_leaves_little() -> None:
    """Who reviews is shuffled within each month: products, calendar and activity stay, and lockstep goes."""
    generated = marketplace(40_000, difficulty="easy", seed=3)
    reviews, truth = generated.reviews, generated.truth
    rng = np.random.default_rng(0)
    month = reviews["timestamp"] // (4 * WEEK)
    shuffled = reviews.assign(reviewer=reviews.groupby(month)["reviewer"].transform(rng.permutation))
    real, null = (rl.read_reviews(table) for table in (reviews, shuffled))
    paid = truth.loc[(truth["mode"] == "reviewer") & (truth["target"] == "abuse") & (truth["label"] == 1), "entity"]
    before, after = (reviewer_means(tensor, find_lockstep(tensor)) for tensor in (real, null))
    ring_before, ring_after = (v[t.vocabulary(0).lookup(list(paid))] for v, t in ((before, real), (after, null)))
    assert np.median(ring_after) < 0.2 * np.median(ring_before)
    assert np.quantile(after, 0.99) < 0.5 * np.median(ring_before)


@pytest.mark.parametrize(
    "drop",
    [
        ("timestamp",),
        ("rating",),
        ("seller",),
        ("timestamp", "rating"),
        ("timestamp", "rating", "seller"),
        ("product",),
    ],
)
def test_a_ring_lights_up_with_columns_missing(drop: tuple[str, ...]) -> None:
    tensor = market(gang("ring", 5, 3), drop=drop)
    lockstep = find_lockstep(tensor)
    mean = reviewer_means(tensor, lockstep)
    assert np.median(mean[of(tensor, "ring")]) > np.quantile(mean[of(tensor, "r")], 0.95)
    if "rating" in drop:
        assert lockstep.attack.graph.nnz == 0 and not lockstep.attack.scores.any()


def test_ratings_through_zero_divide_by_sign() -> None:
    table = pd.concat([honest(), gang("ring", 5, 3)], ignore_index=True)
    table["rating"] = np.where(table["rating"] >= 3, 2, -table["rating"])
    tensor = rl.read_reviews(table)
    scores = find_lockstep(tensor).entity_scores(tensor, "reviewer")
    assert scores["boost_mean"][of(tensor, "ring")].min() > 2
    assert scores["attack_mean"][of(tensor, "ring")].max() == 0


def test_sides_can_be_set() -> None:
    tensor = market(gang("ring", 3, 3))
    assert find_lockstep(tensor).entity_scores(tensor, 0)["boost_mean"][of(tensor, "ring")].max() == 0
    lockstep = find_lockstep(tensor, LockstepSettings(high=3, low=1))
    assert lockstep.entity_scores(tensor, 0)["boost_mean"][of(tensor, "ring")].min() > 3


def test_no_meeting_vouches_for_itself() -> None:
    """Two strangers who meet once have no score; when they meet again, each meeting speaks for the other."""
    once, again = (
        pd.DataFrame(
            {
                "reviewer": ["stranger1", "stranger2"],
                "product": name,
                "seller": f"seller of {name}",
                "rating": 5,
                "timestamp": OPENING + week * WEEK,
            }
        )
        for name, week in (("quiet", 20), ("quieter", 60))
    )
    for gangs, met in (((once,), False), ((once, again), True)):
        tensor = market(*gangs)
        lockstep = find_lockstep(tensor)
        scores = lockstep.review_scores[np.isin(tensor.coordinates[:, 0], of(tensor, "stranger"))]
        assert (scores > 0).all() if met else not scores.any()
        assert bool(lockstep.graph[of(tensor, "stranger")].nnz) == met


def test_nothing_to_find_is_found() -> None:
    alone = SparseTensor.from_arrays([[0, 0], [1, 1], [2, 2]], ["reviewer", "product"])
    lockstep = find_lockstep(alone)
    assert lockstep.graph.nnz == 0 and lockstep.groups == 0 and lockstep.review_scores.tolist() == [0, 0, 0]
    assert start_rows(lockstep, 4, 0) is None
    assert associate(lockstep, [0], [1.0]).tolist() == [0, 0, 0]
    through = associate_through(lockstep, alone, "product", [0, 1], [1.0, -1.0])
    assert not through.entities.any() and not through.actors.any()
    single = SparseTensor.from_arrays([[0, 0]], ["reviewer", "product"])
    assert find_lockstep(single).entity_scores(single, 0)["lockstep_mean"].tolist() == [0.0]
    empty = SparseTensor(alone.coordinates[:0], alone.counts[:0], alone.vocabularies)
    assert find_lockstep(empty).graph.shape == (3, 3)


def test_large_groups_are_skipped_and_reported() -> None:
    tensor = market(gang("ring", 5, 3))
    small = find_lockstep(tensor, LockstepSettings(max_group=5))
    assert small.skipped_groups > 0 and small.skipped_memberships > 5 * small.skipped_groups
    assert find_lockstep(tensor).skipped_groups == 0
    assert small.review_scores.sum() < find_lockstep(tensor).review_scores.sum()


def test_another_mode_can_act() -> None:
    """Sellers in lockstep: reviewed by the same people in the same weeks."""
    tensor = market(gang("ring", 5, 3))
    lockstep = find_lockstep(tensor, LockstepSettings(items=("reviewer",)), actor="seller")
    assert lockstep.graph.shape == (tensor.shape[tensor.mode_index("seller")],) * 2
    assert lockstep.actor == tensor.mode_index("seller")
    with pytest.raises(SettingsError, match="the mode that acts"):
        find_lockstep(tensor, LockstepSettings(items=("seller",)), actor="seller")


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_the_answer(threads: int) -> None:
    tensor = rl.read_reviews(marketplace(20_000, difficulty="medium", seed=1).reviews)
    one, more = find_lockstep(tensor, threads=1), find_lockstep(tensor, threads=threads)
    np.testing.assert_array_equal(one.review_scores, more.review_scores)
    np.testing.assert_array_equal(one.graph.indices, more.graph.indices)
    np.testing.assert_array_equal(one.graph.data, more.graph.data)


def test_no_thread_waits_for_another_to_add_what_it_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is held up while it adds; the others bring theirs and go on, and the first one adds it all."""
    tensor = market()
    there = as_share(tensor)
    on_items = _OnItems(there, 0, np.ones(tensor.n_cells, np.bool_))
    cells = np.arange(tensor.n_cells)
    none = np.zeros(0, np.int64)
    meetings = Meetings(none, none.astype(np.int32), none, none.astype(np.int32), 1, none * 1.0, cells, cells, 0, 0)
    began, go_on = threading.Event(), threading.Event()
    take = on_items._take

    def slowly(*brought: Any) -> None:
        began.set()
        assert go_on.wait(30)
        take(*brought)

    monkeypatch.setattr(on_items, "_take", slowly)
    pairs = sparse.csr_array((tensor.shape[0], tensor.shape[0]))
    first = threading.Thread(target=on_items.add, args=(meetings, cells * 1.0, cells * 2.0, pairs))
    first.start()
    assert began.wait(30)
    for factor in (3.0, 2.0):
        on_items.add(meetings, cells * factor, cells * 1.0, pairs)  # from this thread, which does not wait
    assert not on_items.loud.any()
    go_on.set()
    first.join(30)
    np.testing.assert_array_equal(on_items.loud, cells * 3.0)
    np.testing.assert_array_equal(on_items.louder, cells * 2.0)


def test_permuting_ids_permutes_the_result() -> None:
    tensor = market(gang("ring", 5, 3))
    rng = np.random.default_rng(0)
    new = [
        rng.permutation(n) if v.kind == "id" else np.arange(n)
        for n, v in zip(tensor.shape, tensor.vocabularies, strict=True)
    ]
    codes = np.stack([new[k][tensor.coordinates[:, k]] for k in range(len(new))], axis=1).astype(np.int32)
    order = rng.permutation(len(codes))
    other = SparseTensor(codes[order], tensor.counts[order], tensor.vocabularies)
    a, b = find_lockstep(tensor), find_lockstep(other)
    np.testing.assert_allclose(b.review_scores, a.review_scores[order], rtol=1e-9, atol=1e-9)
    back = b.graph[new[0]][:, new[0]]
    assert abs(back - a.graph).max() < 1e-9
    labels = np.array([1.0, -1.0, 1.0])
    z = associate(a, [3, 10, 50], labels, folds=3)
    w = associate(b, new[0][[3, 10, 50]], labels, folds=3)
    unlabelled = np.setdiff1d(np.arange(tensor.shape[0]), [3, 10, 50])
    np.testing.assert_allclose(w[new[0]][unlabelled], z[unlabelled], atol=1e-9)


def test_the_start_has_a_component_for_each_ring() -> None:
    tensor = market(*(gang(f"{name}-", 5, 3, seed=s, first=20 * s) for s, name in enumerate("abc")))
    lockstep = find_lockstep(tensor)
    rows = start_rows(lockstep, 6, 0)
    assert rows is not None and rows.shape == (tensor.shape[0], 6)
    assert rows.min() >= 0 and rows.max() <= 2
    owners = set()
    for name in "abc":
        ring = of(tensor, f"{name}-")
        best = int(np.argmax(rows[ring].mean(axis=0)))
        owners.add(best)
        assert set(np.argsort(-rows[:, best])[:RING]) == set(ring)
    assert len(owners) == 3
    np.testing.assert_array_equal(rows, start_rows(lockstep, 6, 0))


def test_the_start_hardly_moves_when_a_hundredth_of_the_data_goes() -> None:
    tensor = rl.read_reviews(marketplace(30_000, difficulty="easy", seed=2).reviews)
    keep = np.random.default_rng(0).random(tensor.n_cells) > 0.01
    fewer = SparseTensor(tensor.coordinates[keep], tensor.counts[keep], tensor.vocabularies)
    before, after = (components(find_lockstep(t), 3) for t in (tensor, fewer))
    assert before is not None and after is not None
    likeness = (before / np.linalg.norm(before, axis=0)).T @ (after / np.linalg.norm(after, axis=0))
    assert likeness.max(axis=1).min() > 0.95


def test_columns_beyond_the_groups_are_small_noise() -> None:
    tensor = market(gang("ring", 5, 3))
    lockstep = find_lockstep(tensor, LockstepSettings(doubt=12, cap=1.0))
    assert lockstep.graph.nnz == RING * (RING - 1)
    rows = start_rows(lockstep, 6, 0)
    assert rows is not None
    assert rows[of(tensor, "ring"), 0].min() > 1
    assert rows[:, -1].max() <= 0.3 and rows[:, -1].std() > 0


def test_labels_flow_to_the_rest_of_the_ring() -> None:
    tensor = market(gang("bad", 5, 3), gang("club", 5, 3, first=50))
    bad, club = of(tensor, "bad"), of(tensor, "club")
    q = associate(find_lockstep(tensor), [bad[0], bad[1], club[0], club[1]], [1, 1, -1, -1])
    assert q[bad].min() > 0 > q[club].max()
    assert q[bad[2:]].min() > q[of(tensor, "r")].max()


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_no_actor_sees_its_own_label(folds: int) -> None:
    tensor = market(gang("ring", 5, 3))
    lockstep = find_lockstep(tensor)
    rng = np.random.default_rng(0)
    codes = rng.choice(tensor.shape[0], 60, replace=False)
    values = rng.choice([-1.0, 1.0], 60)
    before = associate(lockstep, codes, values, folds=folds)
    for i in range(60):
        flipped = values.copy()
        flipped[i] *= -1
        assert associate(lockstep, codes, flipped, folds=folds)[codes[i]] == before[codes[i]]


@pytest.mark.parametrize("mode", ["seller", "product"])
def test_no_entity_sees_its_own_label_through_actors(mode: str) -> None:
    tensor = market(gang("ring", 5, 3))
    lockstep = find_lockstep(tensor)
    rng = np.random.default_rng(0)
    codes = rng.choice(tensor.shape[tensor.mode_index(mode)], 20, replace=False)
    values = rng.choice([-1.0, 1.0], 20)
    before = associate_through(lockstep, tensor, mode, codes, values).entities
    for i in range(20):
        flipped = values.copy()
        flipped[i] *= -1
        assert associate_through(lockstep, tensor, mode, codes, flipped).entities[codes[i]] == before[codes[i]]


def test_labels_flow_from_sellers_to_sellers_and_reviewers() -> None:
    tensor = market(gang("ring", 5, 3), gang("club", 5, 3, first=20))
    sellers = tensor.vocabulary("seller")
    known = [sellers.code("s0"), sellers.code("s1"), sellers.code("s20"), sellers.code("s21")]
    found = associate_through(find_lockstep(tensor), tensor, "seller", known, [1, 1, -1, -1])
    others = found.entities[[sellers.code(f"s{i}") for i in range(40, 100)]]
    for i in range(2, ITEMS):
        assert found.entities[sellers.code(f"s{i}")] > others.max() >= 0
        assert found.entities[sellers.code(f"s{20 + i}")] < others.min() <= 0
    assert found.actors[of(tensor, "ring")].min() > 0 > found.actors[of(tensor, "club")].max()
    assert found.actors[of(tensor, "ring")].min() > found.actors[of(tensor, "r")].max()


def test_labels_that_make_no_sense_are_refused() -> None:
    tensor = market()
    lockstep = find_lockstep(tensor)
    for codes, values, match in [
        ([1], [1, 2], "2 labels"),
        ([1, 1], [1, 1], "twice"),
        ([10**6], [1], "but there are"),
        ([1], [np.nan], "finite"),
    ]:
        with pytest.raises(SettingsError, match=match):
            associate(lockstep, codes, values)
    with pytest.raises(SettingsError, match="folds"):
        associate(lockstep, [1], [1], folds=1)
    with pytest.raises(SettingsError, match="use associate"):
        associate_through(lockstep, tensor, "reviewer", [1], [1])
    assert not associate(lockstep, [], []).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"window_weeks": 0},
        {"window_weeks": np.nan},
        {"phases": 0},
        {"phases": 1.5},
        {"min_group": 1},
        {"max_group": 3, "min_group": 4},
        {"min_shared": 1},
        {"doubt": -1},
        {"popularity": -1},
        {"third_parties": np.inf},
        {"cap": "20"},
        {"low": 4, "high": 2},
        {"items": "product"},
        {"items": ()},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        LockstepSettings(**wrong)


def test_scores_of_another_tensor_are_refused() -> None:
    tensor, other = market(), market(gang("ring", 5, 3))
    with pytest.raises(SettingsError, match="compute it again"):
        find_lockstep(tensor).entity_scores(other, "seller")
