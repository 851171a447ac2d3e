"""Encoding loses nothing, whatever the table and however it is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.tensor.sparse import SparseTensor

ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
rows = st.lists(st.tuples(ids, ids, st.integers(-3, 5), st.integers(10**9, 10**9 + 3_000_000)), min_size=1, max_size=30)
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def frame(table: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(table, columns=["reviewer", "product", "rating", "timestamp"])


def week(seconds: int) -> np.datetime64:
    monday = 4 * 86_400
    return np.datetime64((seconds - monday) // 604_800 * 604_800 + monday, "s")


def multiset(tensor: SparseTensor) -> dict[tuple[Any, ...], int]:
    decoded = tensor.decode()
    keys = zip(*(decoded[m] for m in tensor.modes), strict=True)
    return dict(zip(keys, decoded["count"], strict=True))


def expected(table: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    counted: dict[tuple[Any, ...], int] = {}
    for reviewer, product, rating, seconds in table:
        key = (reviewer, product, float(rating), pd.Timestamp(week(seconds)))
        counted[key] = counted.get(key, 0) + 1
    return counted


@quick
@given(rows)
def test_decoding_gives_back_the_distinct_table(table: list[tuple[Any, ...]]) -> None:
    tensor = rl.read_reviews(frame(table))
    assert multiset(tensor) == expected(table)
    assert tensor.report is not None
    assert tensor.report.duplicates == len(table) - len(set(table))


@quick
@given(rows, st.randoms(use_true_random=False))
def test_permuting_rows_changes_nothing(table: list[tuple[Any, ...]], random: Any) -> None:
    first = rl.read_reviews(frame(table))
    random.shuffle(table)
    second = rl.read_reviews(frame(table))
    assert np.array_equal(first.coordinates, second.coordinates)
    assert np.array_equal(first.counts, second.counts)
    assert all(a.values.equals(b.values) for a, b in zip(first.vocabularies, second.vocabularies, strict=True))


@quick
@given(st.data())
def test_splitting_a_file_in_parts_changes_nothing(tmp_path_factory: Any, data: Any) -> None:
    whole, cut = frame(data.draw(rows)), data.draw(st.integers(0, 30))
    folder = tmp_path_factory.mktemp("parts")
    for number, part in enumerate((whole[:cut], whole[cut:])):
        if len(part):
            part.to_parquet(folder / f"{number}.parquet")
    parts, one = rl.read_reviews(folder), rl.read_reviews(whole)
    assert np.array_equal(parts.coordinates, one.coordinates)
    assert np.array_equal(parts.counts, one.counts)


@quick
@given(rows, rows)
def test_codes_are_append_only(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    old = rl.read_reviews(frame(first))
    new = rl.read_reviews(frame(second), vocabularies=old.vocabularies)
    for before, after in zip(old.vocabularies, new.vocabularies, strict=True):
        assert after.values[: len(before)].equals(before.values)
        assert len(set(after.values.to_pylist())) == len(after)
    assert multiset(new) == expected(second)
