"""Which mode is the rating: the one declared or called so, never a category that happens to be numbered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.baselines.bursts import LargestBurst
from ringleader.cores import find_cores
from ringleader.plot import core_data
from ringleader.signals.behaviour.market import read_market
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.roles import assign_roles, sides
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

WEEK = 7 * 86_400
BASE = ["reviewer=reviewer", "product=product", "seller=seller"]
RATED = ["rating=rating:rating", "week=timestamp:time=1w"]


@pytest.fixture(scope="module")
def reviews() -> pd.DataFrame:
    """Everyone alone, but for eight people who praise the same six products; seven devices, numbered."""
    rng = np.random.default_rng(0)
    n = 3_000
    product = rng.integers(0, 120, n)
    honest = pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 600, n)],
            "product": product,
            "rating": rng.choice([1, 2, 3, 4, 5], n, p=[0.15, 0.1, 0.1, 0.25, 0.4]),
            "timestamp": 1_400_000_000 + rng.integers(0, 100 * WEEK, n),
        }
    )
    ring = pd.DataFrame(
        [(f"ring{i}", p, 5, 1_400_000_000 + (10 + 12 * p) * WEEK + i) for p in range(6) for i in range(8)],
        columns=["reviewer", "product", "rating", "timestamp"],
    )
    table = pd.concat([honest, ring], ignore_index=True)
    return table.assign(
        product=[f"p{p}" for p in table["product"]],
        seller=[f"s{p % 40}" for p in table["product"]],
        device=[hash_of(name) for name in table["reviewer"]],
    )


def hash_of(name: str) -> int:
    return sum(map(ord, name)) % 7


def read(reviews: pd.DataFrame, *axes: str) -> SparseTensor:
    return rl.read_reviews(reviews, modes=[*BASE, *axes])


@pytest.mark.parametrize("before", [True, False])
def test_a_numbered_category_is_never_the_rating(reviews: pd.DataFrame, before: bool) -> None:
    device = ["device=device:category"]
    tensor = read(reviews, *(device + RATED if before else RATED + device))
    assert tensor.vocabulary("device").kind == "category"
    assert set(tensor.vocabulary("device").values.to_pylist()) == set("0123456")
    assert tensor.rating_mode == tensor.mode_index("rating")
    boost, attack = sides(tensor, assign_roles(tensor))
    stars = tensor.decode()["rating"].to_numpy()
    assert np.array_equal(boost, stars >= 4) and np.array_equal(attack, stars <= 2)
    market = read_market(tensor)
    assert market.rating == tensor.rating_mode and market.scale == (1.0, 5.0)


def test_a_numbered_category_moves_no_burst_no_core_and_no_plot(reviews: pd.DataFrame) -> None:
    base, more = read(reviews, *RATED), read(reviews, "device=device:category", *RATED)
    for mode in ("seller", "reviewer"):
        np.testing.assert_allclose(LargestBurst().fit(more).scores(mode), LargestBurst().fit(base).scores(mode))
    core_lists = [find_cores(tensor, find_lockstep(tensor)) for tensor in (base, more)]
    frames = [cores.frame(tensor) for cores, tensor in zip(core_lists, (base, more), strict=True)]
    assert len(frames[0]) == 1
    assert frames[1]["rating"].tolist() == frames[0]["rating"].tolist() == ["5"]
    assert frames[1]["side"].tolist() == frames[0]["side"].tolist() == ["boost"]
    drawn = core_data.ratings(more, core_lists[1].cores[0])
    assert drawn.values == ("1", "2", "3", "4", "5") and drawn.core[-1] == 1.0


def test_a_category_that_is_called_a_rating_is_the_rating(reviews: pd.DataFrame) -> None:
    for axis in ("rating=rating:category", "Stars=rating:category", "grade=rating:category"):
        tensor = read(reviews, "device=device:category", axis, "week=timestamp:time=1w")
        assert tensor.rating_mode == 4, axis
        assert tensor.vocabularies[4].kind == "number"
        assert tensor.report is not None and not tensor.report.warnings


def test_only_one_category_can_be_the_rating_and_a_declared_one_comes_first(reviews: pd.DataFrame) -> None:
    table = reviews.assign(score=reviews["device"])
    tensor = read(table, "score=score:category", *RATED)
    assert tensor.vocabulary("score").kind == "category"
    tensor = read(table, "score=score:category", "grade=rating:category")
    assert [v.kind for v in tensor.vocabularies[3:]] == ["number", "category"]


def test_ratings_written_as_words_stay_words() -> None:
    table = pd.DataFrame({"a": list("xyz"), "rating": ["good", "bad", "5"]})
    tensor = rl.read_reviews(table, modes=["a=a", "rating=rating:category"])
    assert tensor.vocabulary("rating").kind == "category" and tensor.rating_mode is None


def test_numbers_without_a_rating_beside_them_are_noted_once(reviews: pd.DataFrame) -> None:
    tensor = read(reviews, "device=device:category")
    assert tensor.rating_mode is None
    assert tensor.report is not None
    (said,) = tensor.report.warnings
    assert said.endswith("if they are ratings, write device=device:rating")
    again = rl.read_reviews(
        reviews, modes=[*BASE, "device=device:category"], vocabularies=tensor.vocabularies
    )  # what was settled once is not asked again
    assert again.report is not None and not again.report.warnings


def test_of_several_modes_of_numbers_the_one_called_rating_is_it() -> None:
    vocabularies = (
        Vocabulary.of_ids("reviewer", ["a", "b"]),
        Vocabulary("device", "number", pa.array([0.0, 6.0])),
        Vocabulary("rating", "number", pa.array([1.0, 5.0])),
    )
    codes = np.array([[0, 0, 1], [1, 1, 0]], np.int32)
    assert SparseTensor(codes, np.ones(2, np.int64), vocabularies).rating_mode == 2
    assert SparseTensor(codes[:, :2], np.ones(2, np.int64), vocabularies[:2]).rating_mode == 1


def test_a_model_whose_category_was_kept_as_numbers_still_loads_and_updates(
    reviews: pd.DataFrame, tmp_path: Path
) -> None:
    old = read(reviews, "device=device:rating", *RATED)  # as numbered categories used to be stored
    rl.RingDetector(rank=2, epochs=1).fit(old).save(tmp_path / "model")
    model = rl.load(tmp_path / "model")
    assert model.tensor_.rating_mode == 4
    assert np.isfinite(model.suspicion("seller")).all()
    monday = reviews[:50].assign(device=9)
    model.partial_fit(monday)
    assert model.tensor_.vocabulary("device").decode([7]).tolist() == [9.0]
    modes = [*BASE, "device=device:category", *RATED]
    read_again = rl.read_reviews(monday, modes=modes, vocabularies=old.vocabularies)
    assert read_again.vocabulary("device").kind == "number"
