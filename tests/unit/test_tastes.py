"""Tastes: what they explain of lockstep, and what they must not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.datasets import taste_market
from ringleader.datasets.tastes import Rings
from ringleader.kernels.protocol import Backend, backend_names, get_backend, unavailable
from ringleader.kernels.topic_layout import TopicRows
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from ringleader.signals.lockstep.tastes import attractions, find_tastes, find_topics
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

RUNNABLE = [name for name in backend_names() if unavailable(name) is None]
every_backend = pytest.mark.parametrize("backend", [get_backend(name) for name in RUNNABLE], ids=RUNNABLE)


@every_backend
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.integers(1, 8), st.integers(1, 5))
def test_reviews_are_divided_among_topics_as_the_plain_sum_has_it(
    backend: Backend, seed: int, rows: int, topics: int
) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 6, rows))])
    columns = rng.integers(0, 7, offsets[-1]).astype(np.int32)
    own, other = rng.random((rows, topics)), rng.random((7, topics))
    counts = np.full((rows, topics), np.nan)
    for span in ((0, rows // 2), (rows // 2, rows)):
        backend.topic_counts(offsets, columns, own, other, counts, span)
    for r in range(rows):
        expected = np.zeros(topics)
        for c in columns[offsets[r] : offsets[r + 1]]:
            expected += own[r] * other[c] / (own[r] * other[c]).sum()
        np.testing.assert_allclose(counts[r], expected, atol=1e-12)


@every_backend
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.integers(1, 30), st.integers(1, 9))
def test_the_taste_of_an_author_is_that_of_its_other_reviews(backend: Backend, seed: int, n: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    rows = TopicRows(*rng.random((4, 5, size)), rng.random(size))
    authors, items = rng.integers(0, 5, (2, n)).astype(np.int32)
    drawn = np.full(n, np.nan)
    for span in ((0, n // 2), (n // 2, n)):
        backend.drawn_to_items(authors, items, rows, drawn, span)
    for found, a, c in zip(drawn, authors, items, strict=True):
        own = rows.shares[a] * rows.chances[c] / (rows.shares[a] * rows.chances[c]).sum()
        others = np.maximum(rows.counts[a] - own, 0) + rows.prior
        assert found == pytest.approx(np.average(rows.nearer[c], weights=others), abs=1e-12)


def two_communities(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Reviews (who, what): people 0-199 review products 0-49, people 200-399 products 50-99, and all some of any."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, 400, 6_000)
    what = np.where(
        rng.random(6_000) < 0.85, rng.integers(0, 50, 6_000) + 50 * (who >= 200), rng.integers(0, 100, 6_000)
    )
    return who.astype(np.int32), what.astype(np.int32)


def cells_of(who: np.ndarray, what: np.ndarray) -> SparseTensor:
    """One cell for each review, in the order given."""
    vocabularies = tuple(
        Vocabulary.of_ids(name, map(str, range(n))) for name, n in (("reviewer", 400), ("product", 100))
    )
    return SparseTensor(np.stack([who, what], axis=1), np.ones(len(who), np.int64), vocabularies)


def test_topics_are_the_communities() -> None:
    who, what = two_communities()
    topics = find_topics(cells_of(who, what), 0, 1, 2)
    np.testing.assert_allclose(topics.shares.sum(axis=1), 1)
    np.testing.assert_allclose(topics.items.sum(axis=0), 1)
    side = topics.shares[:, 0] > 0.5
    assert (
        max((side[:200] == 1).mean() + (side[200:] == 0).mean(), (side[:200] == 0).mean() + (side[200:] == 1).mean())
        > 1.9
    )


def test_topics_do_not_depend_on_how_accounts_are_numbered() -> None:
    who, what = two_communities(1)
    rng = np.random.default_rng(5)
    people, products, order = rng.permutation(400), rng.permutation(100), rng.permutation(len(who))
    one = find_topics(cells_of(who, what), 0, 1, 4)
    two = find_topics(cells_of(people[who][order], products[what][order]), 0, 1, 4)
    np.testing.assert_allclose(two.shares[people], one.shares, atol=1e-9)


@pytest.fixture(scope="module")
def loyal() -> tuple[SparseTensor, np.ndarray]:
    """A market of very loyal tastes with rings in it, and which reviewers are bad."""
    market = taste_market(15_000, kind="very-loyal", seed=31, communities=6, rings=(Rings(number=4),))
    tensor = rl.read_reviews(market.reviews)
    rows = market.truth[market.truth["mode"] == "reviewer"].set_index("entity")["label"]
    return tensor, rows.loc[tensor.vocabulary("reviewer").decode(np.arange(tensor.shape[0]))].to_numpy() == 1


def test_what_shared_tastes_explain_is_no_lockstep_and_what_rings_do_is(loyal: tuple[SparseTensor, np.ndarray]) -> None:
    tensor, bad = loyal
    plain, tasted = (find_lockstep(tensor, LockstepSettings(topics=count)) for count in (0, 12))
    before, after = (one.entity_scores(tensor, "reviewer")["boost_mean"] for one in (plain, tasted))
    assert after[~bad].sum() < 0.75 * before[~bad].sum()
    assert after[bad].sum() > 0.85 * before[bad].sum()
    assert (plain.pull == 0).all() and tasted.pull.min() >= 0 and tasted.pull.max() > 0.5


def test_the_graph_of_pairs_is_that_of_chance_alone(loyal: tuple[SparseTensor, np.ndarray]) -> None:
    tensor, _ = loyal
    plain, tasted = (find_lockstep(tensor, LockstepSettings(topics=count)) for count in (0, 12))
    np.testing.assert_array_equal(plain.graph.indices, tasted.graph.indices)
    np.testing.assert_array_equal(plain.graph.data, tasted.graph.data)


def test_a_taste_is_what_disagrees_about_its_products() -> None:
    """Two groups meet on their own products all the time; one of them always with the highest rating."""
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(12_000):
        person = int(rng.integers(0, 300))
        honest, ring = person < 100, person >= 280
        first = 0 if honest else (60 if ring else 20)
        inside = rng.random() < 0.8 and (honest or ring)
        product = int(rng.integers(first, first + 20)) if inside else int(rng.integers(0, 200))
        rating = 5 if ring and inside else int(rng.choice([1, 3, 5]))
        rows.append((f"r{person}", f"p{product}", rating, 1_400_000_000 + int(rng.integers(0, 60)) * 7 * 86_400))
    import pandas as pd

    tensor = rl.read_reviews(pd.DataFrame(rows, columns=["reviewer", "product", "rating", "timestamp"]))
    lockstep = find_lockstep(tensor, LockstepSettings(topics=3))
    boost, attack = lockstep.sides(tensor)
    tastes = find_tastes(tensor, 0, boost, attack, lockstep.settings)
    assert tastes is not None
    names = [int(str(name)[1:]) for name in tensor.vocabulary("reviewer").decode(np.arange(tensor.shape[0]))]
    honest, ring = (np.flatnonzero(chosen) for chosen in (np.array(names) < 100, np.array(names) >= 280))
    assert (tastes.shares[honest] @ tastes.boost[honest].T).mean() > 1.5
    assert (tastes.shares[ring] @ tastes.boost[ring].T).mean() < 1.1


def test_how_topics_attract_is_a_count_of_meetings() -> None:
    """Shares of 0 and 1: the matrix is met over expected, both counted by hand."""
    import pandas as pd

    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "reviewer": rng.integers(0, 30, 500),
            "product": rng.integers(0, 12, 500),
            "rating": rng.choice([1, 5], 500),
        }
    ).astype({"reviewer": str, "product": str})
    tensor = rl.read_reviews(table.drop_duplicates())
    who, what = tensor.coordinates[:, 0], tensor.coordinates[:, 1]
    boost = find_lockstep(tensor, LockstepSettings(topics=0)).sides(tensor)[0]
    topic = np.arange(tensor.shape[0]) % 2
    met, total = np.zeros((2, 2)), 0
    for i in np.flatnonzero(boost):
        for j in np.flatnonzero(~boost & (what == what[i])):
            met[topic[who[i]], topic[who[j]]] += 1
            total += 1
    seats = [np.bincount(topic[who[side]], minlength=2) for side in (boost, ~boost)]
    expected = np.outer(*seats) * total / (seats[0].sum() * seats[1].sum())
    wanted = (met + met.T + 1000) / (expected + expected.T + 1000)
    (found,) = attractions(tensor, 0, np.eye(2)[topic], [(boost, ~boost)], LockstepSettings())
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_tastes(loyal: tuple[SparseTensor, np.ndarray], threads: int) -> None:
    one, more = (find_lockstep(loyal[0], threads=count) for count in (1, threads))
    np.testing.assert_array_equal(one.review_scores, more.review_scores)
    np.testing.assert_array_equal(one.pull, more.pull)


def test_where_nobody_disagrees_tastes_explain_nothing(loyal: tuple[SparseTensor, np.ndarray]) -> None:
    tensor, _ = loyal
    everyone = np.ones(tensor.n_cells, np.bool_)
    assert find_tastes(tensor, 0, everyone, ~everyone, LockstepSettings()) is None
