"""One rule for who acts, on what, when and on which side; it answers as the rules that it replaces did."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.errors import SettingsError
from ringleader.tensor.roles import Roles, assign_roles, rating_sides, sides
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Kind, Vocabulary

# The rules as they stood in lockstep, behaviour, judge and explain, each in its own words.


def old_item_modes(tensor: SparseTensor, actor: int, items: Sequence[str] | None) -> tuple[int, ...]:
    if items is not None:
        modes = tuple(dict.fromkeys(tensor.mode_index(name) for name in items))
        if actor in modes:
            raise SettingsError(f"items name {tensor.modes[actor]!r}, the mode that acts; name another")
        return modes
    named = tuple(tensor.mode_index(m) for m in ("product", "seller") if m in tensor.modes)
    named = tuple(k for k in named if k != actor)
    if named:
        return named
    kinds = ("id", "category", "number", "time")
    others = [k for k in range(len(tensor.modes)) if k != actor]
    return (min(others, key=lambda k: (kinds.index(tensor.vocabularies[k].kind), k)),)


def old_window_time(tensor: SparseTensor, actor: int, items: Sequence[str] | None) -> int | None:
    taken = (actor, *old_item_modes(tensor, actor, items))
    return next((k for k, v in enumerate(tensor.vocabularies) if v.kind == "time" and k not in taken), None)


def old_first_time(tensor: SparseTensor) -> int | None:
    return next((k for k, v in enumerate(tensor.vocabularies) if v.kind == "time"), None)


def old_market_ids(tensor: SparseTensor) -> tuple[int, ...]:
    kinds = [v.kind for v in tensor.vocabularies]
    ids = tuple(k for k, kind in enumerate(kinds) if kind == "id")
    if len(ids) < 2:
        ids = tuple(k for k, kind in enumerate(kinds) if kind in ("id", "category"))
    return ids


def old_rarest(tensor: SparseTensor, mode: int) -> int:
    others = [k for k in range(len(tensor.modes)) if k != mode]
    ids = [k for k in others if tensor.vocabularies[k].kind == "id"] or others
    return max(ids, key=lambda k: tensor.shape[k])


def old_partners(tensor: SparseTensor, mode: int, actor: int, items: Sequence[str] | None) -> int:
    return actor if mode != actor else old_item_modes(tensor, mode, items)[0]


def old_rating_sides(values: npt.ArrayLike) -> tuple[float, float]:
    seen = np.asarray(values, np.float64)
    if not len(seen):
        return -math.inf, math.inf
    least, most = float(seen.min()), float(seen.max())
    if least < 0 < most:
        return float(seen[seen < 0].max()), float(seen[seen > 0].min())
    if least >= 1.0 and most <= 5.0 and bool((seen == np.floor(seen)).all()):
        least, most = 1.0, 5.0
    if least == most:
        return -math.inf, most
    return least + 0.25 * (most - least), least + 0.75 * (most - least)


def old_sides(
    tensor: SparseTensor, actor: int, items: Sequence[str] | None, low: float | None, high: float | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    taken = (actor, *old_item_modes(tensor, actor, items))
    rating = tensor.rating_mode
    if rating is None or rating in taken:
        return np.ones(tensor.n_cells, np.bool_), np.zeros(tensor.n_cells, np.bool_)
    values = np.asarray(tensor.vocabularies[rating].values, np.float64)
    bounds = old_rating_sides(values[np.unique(tensor.coordinates[:, rating])])
    low = bounds[0] if low is None else low
    high = bounds[1] if high is None else high
    rated = values[tensor.coordinates[:, rating]]
    return rated >= high, (rated <= low) & (rated < high)


VALUES = {
    "number": pa.array([-2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    "time": pa.array(np.arange(7) * 604_800),
}


def make(*modes: tuple[str, Kind], seed: int = 0, cells: int = 60, sizes: Sequence[int] = ()) -> SparseTensor:
    rng = np.random.default_rng(seed)
    vocabularies = []
    for k, (name, kind) in enumerate(modes):
        size = sizes[k] if sizes else int(rng.integers(2, 7))
        words = pa.array([f"{name}{i}" for i in range(size)], pa.large_string())
        values = VALUES[kind][7 - size :] if kind in VALUES else words
        vocabularies.append(Vocabulary(name, kind, values, 604_800 if kind == "time" else None))
    codes = np.stack([rng.integers(0, len(v), cells) for v in vocabularies], axis=1).astype(np.int32)
    codes = np.unique(codes, axis=0)
    return SparseTensor(codes, np.ones(len(codes), np.int64), tuple(vocabularies))


REVIEWER, PRODUCT, SELLER = ("reviewer", "id"), ("product", "id"), ("seller", "id")
RATING, WEEK = ("rating", "number"), ("week", "time")
TENSORS = {
    "default": make(REVIEWER, PRODUCT, SELLER, RATING, WEEK),
    "no time": make(REVIEWER, PRODUCT, SELLER, RATING),
    "no seller": make(REVIEWER, PRODUCT, RATING, WEEK),
    "no product": make(REVIEWER, SELLER, RATING, WEEK),
    "two ids": make(("src", "id"), ("dst", "id")),
    "ids and a time": make(("src", "id"), ("dst", "id"), ("minute", "time")),
    "categories": make(("device", "category"), ("country", "category"), ("colour", "category")),
    "one id": make(("device", "category"), ("user", "id"), WEEK),
    "an id and a time": make(("user", "id"), WEEK),
    "an id and a rating": make(("user", "id"), RATING),
    "rating by another name": make(("user", "id"), ("film", "id"), ("price", "number"), ("overall", "number"), WEEK),
    "numbers only": make(("a", "number"), ("b", "number")),
    "two times": make(("user", "id"), ("posted", "time"), ("read", "time"), RATING),
    "time first": make(WEEK, REVIEWER, PRODUCT),
    "alike in size": make(REVIEWER, PRODUCT, SELLER, RATING, WEEK, sizes=(5, 4, 4, 5, 6)),
    "empty": make(REVIEWER, PRODUCT, RATING, cells=0),
}


def same_answers(tensor: SparseTensor, actor: int, items: tuple[str, ...] | None = None) -> None:
    roles = assign_roles(tensor, actor, items)
    assert roles == Roles(
        actor=actor,
        items=old_item_modes(tensor, actor, items),
        time=old_first_time(tensor),
        rating=tensor.rating_mode,
        window_time=old_window_time(tensor, actor, items),
        side_rating=roles.side_rating,
        counterparts=old_market_ids(tensor),
        seller=roles.seller,
        rarest_item=old_rarest(tensor, actor),
    )
    for mode in range(len(tensor.modes)):
        assert roles.partner(mode) == old_partners(tensor, mode, actor, items)
        assert roles.rarest_partner(mode) == (actor if mode != actor else old_rarest(tensor, mode))
    for low, high in ((None, None), (2.0, None), (None, 3.0), (1.0, 1.0), (4.0, 2.0)):
        for mine, theirs in zip(
            sides(tensor, roles, low=low, high=high), old_sides(tensor, actor, items, low, high), strict=True
        ):
            assert mine.dtype == np.bool_ and np.array_equal(mine, theirs)


@pytest.mark.parametrize("name", TENSORS)
def test_every_tensor_keeps_its_roles_whoever_acts(name: str) -> None:
    tensor = TENSORS[name]
    for actor in range(len(tensor.modes)):
        same_answers(tensor, actor)
        for item in range(len(tensor.modes)):
            if item != actor:
                same_answers(tensor, actor, (tensor.modes[item], tensor.modes[item]))


names = st.sampled_from(["reviewer", "product", "seller", "rating", "week", "overall", "stars", "device", "x", "y"])
kinds: st.SearchStrategy[Kind] = st.sampled_from(["id", "category", "number", "time"])


@settings(max_examples=200, deadline=None)
@given(st.lists(names, min_size=2, max_size=6, unique=True), st.data(), st.integers(0, 99))
def test_any_tensor_keeps_its_roles(chosen: list[str], data: st.DataObject, seed: int) -> None:
    tensor = make(*((name, data.draw(kinds)) for name in chosen), seed=seed)
    same_answers(tensor, data.draw(st.integers(0, len(chosen) - 1)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-10, 10) | st.integers(-1, 6), max_size=6))
def test_any_rating_scale_keeps_its_sides(values: list[float]) -> None:
    assert rating_sides(values) == old_rating_sides(values)


def test_the_default_table_has_the_usual_roles() -> None:
    roles = assign_roles(TENSORS["default"])
    assert roles == Roles(0, (1, 2), 4, 3, 4, 3, (0, 1, 2), 2, roles.rarest_item)
    assert assign_roles(TENSORS["default"], "seller").items == (1,)
    assert assign_roles(TENSORS["default"], items=["seller"]).items == (2,)


def test_sellers_are_those_called_so_or_the_fewest_of_the_items() -> None:
    assert assign_roles(make(REVIEWER, PRODUCT, SELLER, sizes=(5, 2, 6))).seller == 2
    assert assign_roles(make(REVIEWER, SELLER, PRODUCT, sizes=(5, 6, 2))).seller == 1
    assert assign_roles(make(REVIEWER, PRODUCT)).seller == 1
    films = make(("user", "id"), ("film", "id"), ("studio", "id"), sizes=(5, 6, 3))
    assert assign_roles(films, items=["film", "studio"]).seller == 2


def test_a_mode_cannot_act_on_itself() -> None:
    with pytest.raises(SettingsError, match="items name 'reviewer', the mode that acts"):
        assign_roles(TENSORS["default"], 0, ["product", "reviewer"])
    with pytest.raises(SettingsError, match="no mode 'shop'"):
        assign_roles(TENSORS["default"], 0, ["shop"])


def test_unused_ratings_do_not_move_the_sides() -> None:
    tensor = make(("user", "id"), ("film", "id"), RATING, sizes=(5, 5, 7))
    rated = tensor.coordinates[tensor.coordinates[:, 2] >= 3]  # 2 to 5 stars; the vocabulary begins at -2
    fewer = SparseTensor(rated, np.ones(len(rated), np.int64), tensor.vocabularies)
    boost, attack = sides(fewer, assign_roles(fewer))
    stars = fewer.decode()["rating"].to_numpy()
    assert np.array_equal(boost, stars >= 4) and np.array_equal(attack, stars <= 2)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1, 2, 3, 4, 5], 2, 4),
        ([3, 4, 5], 2, 4),
        ([-10, -1, 0, 1, 10], -1, 1),
        ([0, 1], 0.25, 0.75),
        (list(range(1, 11)), 3.25, 7.75),
        ([0, 100], 25, 75),
        ([7], -np.inf, 7),
        ([], -np.inf, np.inf),
    ],
)
def test_sides_of_a_rating_scale(values: list[float], low: float, high: float) -> None:
    assert rating_sides(values) == (low, high)
