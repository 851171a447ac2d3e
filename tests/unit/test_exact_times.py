"""What bins leave out is kept: the exact time of every review, however the table came, and which reviews are known."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from decimal import Decimal
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.tables.relation import Relation
from ringleader.tensor import encode, sparse
from ringleader.tensor import merge as merging
from ringleader.tensor.overlap import overlap, without
from ringleader.tensor.sparse import UNKNOWN, SparseTensor, exact_values


def reviews(seed: int, rows: int = 300, *, spread: int = 3) -> pd.DataFrame:
    """Few people who review few products over and over, at few moments of a few weeks."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 4, rows)],
            "product": [f"p{i}" for i in rng.integers(0, 3, rows)],
            "seller": "s",
            "rating": rng.integers(1, 3, rows),
            "timestamp": 1_500_000_000 + rng.integers(0, 4, rows) * 300_000 + rng.integers(0, spread, rows),
        }
    )


def rows_of(tensor: SparseTensor) -> Counter[tuple[Any, ...]]:
    """Every review of a tensor as its codes and its exact value."""
    cells = np.repeat(tensor.coordinates, tensor.counts, axis=0).tolist()
    return Counter((*cell, exact) for cell, exact in zip(cells, exact_values(tensor).tolist(), strict=True))


def assert_same(found: SparseTensor, expected: SparseTensor) -> None:
    for name in ("coordinates", "counts", "exact"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.report is not None and expected.report is not None
    assert found.report.duplicates == expected.report.duplicates


@pytest.mark.parametrize("way", ["_count_in_memory", "_count_in_database"])
def test_every_review_has_its_exact_time_in_the_order_of_its_cell(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "bytes_a_row", lambda _: 64 if way == "_count_in_memory" else 1 << 50)
    table = reviews(0)
    tensor = rl.read_reviews(table)
    expected: list[int] = []
    weeks = (table["timestamp"] - 345_600) // 604_800
    for _, cell in sorted(table.groupby(["reviewer", "product", "rating", weeks])):
        expected += sorted(cell["timestamp"] * 1_000_000)
    assert tensor.exact is not None and tensor.exact.tolist() == expected
    assert tensor.report is not None and tensor.report.duplicates == table.duplicated().sum()


def test_the_same_instants_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    table = reviews(1)
    table["timestamp"] += np.arange(len(table)) % 7 * 0.123  # to the millisecond
    moments = pd.to_datetime((table["timestamp"] * 1000).round().astype(np.int64), unit="ms", utc=True)
    expected = rl.read_reviews(table.assign(timestamp=moments))
    written = {
        "seconds": table["timestamp"],
        "milliseconds": (table["timestamp"] * 1000).round().astype(np.int64),
        "nanoseconds": (table["timestamp"] * 1000).round().astype(np.int64) * 1_000_000,
        "a zone": moments.dt.tz_convert("Asia/Kolkata"),
        "no zone": moments.dt.tz_localize(None),
        "text": moments.dt.tz_convert("America/New_York").map(lambda t: t.isoformat()),
    }
    for column in written.values():
        other = table.assign(timestamp=column).sample(frac=1, random_state=0)
        assert_same(rl.read_reviews(other), expected)
        other[:100].to_csv(tmp_path / "a.csv", index=False)
        other[100:].to_csv(tmp_path / "b.csv", index=False)
        assert_same(rl.read_reviews(tmp_path / "*.csv"), expected)
        other.to_parquet(tmp_path / "c.parquet")
        assert_same(rl.read_reviews(tmp_path / "c.parquet"), expected)


def test_digits_below_a_microsecond_are_cut_off_however_they_are_written(tmp_path: Path) -> None:
    nanoseconds = np.sort(1_500_000_000 * 10**9 + np.random.default_rng(0).integers(0, 10**18 // 10, 1_000))
    nanoseconds[::10] += 999 - nanoseconds[::10] % 1000  # the last of its microsecond
    moments = pd.Series(nanoseconds).astype("datetime64[ns, UTC]")
    written: dict[str, Any] = {
        "whole numbers": nanoseconds,
        "unsigned": nanoseconds.astype(np.uint64),
        "text": nanoseconds.astype(str),
        "decimals": [Decimal(int(t)).scaleb(-9) for t in nanoseconds],
        "seconds": [f"{t // 10**9}.{t % 10**9:09}" for t in nanoseconds.tolist()],
        "milliseconds": [f"{t // 10**6}.{t % 10**6:06}" for t in nanoseconds.tolist()],
        "powers of ten": [f"{t}e-9" for t in nanoseconds.tolist()],
        "timestamps": moments.dt.tz_localize(None),
        "a zone": moments.dt.tz_convert("Asia/Kolkata"),
        "ISO 8601": moments.map(lambda t: t.isoformat()),
    }
    table = pd.DataFrame({"reviewer": [f"r{i:03}" for i in range(1_000)], "product": "p"})
    read: set[bytes] = set()  # some are written with the same bytes
    for name, column in written.items():
        other = table.assign(timestamp=column)
        paths = [tmp_path / f"t.{kind}" for kind in ("parquet", "csv", "jsonl")]
        other.to_parquet(paths[0])
        other.to_csv(paths[1], index=False)
        lines = other.assign(timestamp=[t if isinstance(t, int) else str(t) for t in other["timestamp"].tolist()])
        lines.to_json(paths[2], orient="records", lines=True)
        contents = {path: path.read_bytes() for path in paths}
        for source in (other, *(path for path in paths if contents[path] not in read)):
            tensor = rl.read_reviews(source)
            assert tensor.exact is not None and tensor.exact.tolist() == (nanoseconds // 1000).tolist(), (name, source)
        read.update(contents.values())


@pytest.mark.parametrize("unit", [1, 1e3, 1e6, 1e9], ids=["seconds", "milliseconds", "microseconds", "nanoseconds"])
def test_a_float_is_the_time_that_a_text_file_has_of_it(unit: float, tmp_path: Path) -> None:
    times = (1.5e9 + np.random.default_rng(0).random(1_000) * 1e8) * unit
    table = pd.DataFrame({"reviewer": [f"r{i:03}" for i in range(1_000)], "product": "p", "timestamp": times})
    table.to_csv(tmp_path / "t.csv", index=False)
    expected = [int(Decimal(repr(t)) / int(unit) * 10**6) for t in times.tolist()]
    for source in (table, tmp_path / "t.csv"):
        tensor = rl.read_reviews(source)
        assert tensor.exact is not None and tensor.exact.tolist() == expected


@pytest.mark.parametrize("times", [1, 2], ids=["binned ratings", "binned ratings and two times"])
def test_what_is_binned_besides_the_time_tells_reviews_apart(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = reviews(2).assign(rating=rng.integers(0, 4000, 300) / 1000)
    table["paid"] = table["timestamp"] + rng.integers(0, 2, 300)
    axes = ["reviewer=reviewer:id", "rating=rating:rating", "week=timestamp:time=1w", "paid=paid:time=1w"][: 2 + times]
    tensor = rl.read_reviews(table, modes=axes)
    assert tensor.binned_modes == ("rating", "week", "paid")[: 1 + times]
    whole = ["reviewer", "rating", "timestamp", "paid"][: 2 + times]
    assert len(rows_of(tensor)) == len(table[whole].drop_duplicates())
    monkeypatch.setattr(encode, "bytes_a_row", lambda _: 1 << 50)
    assert_same(rl.read_reviews(table, modes=axes), tensor)


AXES = {
    "no times": ["reviewer=r", "product=p"],
    "plain": ["reviewer=r", "product=p", "seller=p", "rating=n:rating", "week=t:time=1w"],
    "binned ratings": ["reviewer=r", "product=p", "rating=x:rating", "week=t:time=1w"],
    "two words": ["reviewer=r", "product=p", *(f"a{i}=r" for i in range(4)), "week=t:time=1w"],
    "four exact columns": ["reviewer=r", "x=x:rating", "y=y:rating", "week=t:time=1w", "day=t:time=1d"],
    "many modes": ["reviewer=r", *(f"a{i}=n:category" for i in range(12)), "week=t:time=1w"],
}


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("axes", AXES)
def test_counting_in_memory_needs_what_it_is_said_to_need(
    axes: str, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, rows = np.random.default_rng(0), 40_000
    table = pd.DataFrame({"r": [f"r{i // copies}" for i in range(rows)], "p": "p", "n": 5, "t": 1_500_000_000})
    table = table.assign(t=table["t"] + rng.integers(0, 50_000, rows))
    for name in ("x", "y"):  # cells of several rows need ratings of one bin
        table[name] = np.repeat(rng.random(rows // copies), copies)
    needs = []

    def measured(coding: Any, n_rows: int) -> Any:
        tracemalloc.start()
        cells = count(coding, n_rows)
        needs.append((tracemalloc.get_traced_memory()[1] / n_rows, encode.bytes_a_row(coding)))
        tracemalloc.stop()
        return cells

    count = encode._count_in_memory
    monkeypatch.setattr(encode, "UNPACK_ROWS", 256)  # of a large table they are nothing, and a batch is little
    monkeypatch.setattr(sparse, "SORT_ROWS", 256)  # so are they
    monkeypatch.setattr(Relation, "batches", partialmethod(Relation.batches, size=2048))
    monkeypatch.setattr(encode, "_count_in_memory", measured)
    rl.read_reviews(table, modes=AXES[axes])
    ((peak, bound),) = needs
    assert peak <= bound


@pytest.mark.parametrize("rows_at_a_time", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize("most", [1, 2, 5, 300])
def test_values_sorted_in_pieces_are_those_sorted_at_once(
    most: int, rows_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(most)
    counts = rng.integers(1, most + 1, 200)
    exact = rng.integers(-3, 3, counts.sum())
    exact[:: most + 1] = UNKNOWN
    at_once = exact[np.lexsort((exact, np.repeat(np.arange(len(counts)), counts)))]
    monkeypatch.setattr(sparse, "SORT_ROWS", rows_at_a_time)
    sparse.sort_within_cells(exact, counts)
    np.testing.assert_array_equal(exact, at_once)


@pytest.mark.parametrize("most", [1, 2, 5, 100_000])
def test_sorting_needs_no_more_memory_for_a_larger_table(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SORT_ROWS", 2048)
    rng, needs = np.random.default_rng(0), []
    for rows in (100_000, 400_000):
        counts = np.full(rows // most, most)
        exact = rng.integers(0, 9, counts.sum())
        tracemalloc.start()
        sparse.sort_within_cells(exact, counts)
        needs.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(needs) < 50 * 2048
    assert needs[1] < 1.1 * needs[0] + 2048


def test_without_bins_nothing_more_is_kept() -> None:
    tensor = rl.read_reviews(reviews(3).drop(columns="timestamp"))
    assert tensor.exact is None and tensor.binned_modes == ()


@pytest.mark.parametrize("few", [0, 1000], ids=["sorted", "inserted"])
@pytest.mark.parametrize("missing", ["neither", "old", "new"])
def test_merging_keeps_the_exact_times_of_both(few: int, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FEW", few)
    old = rl.read_reviews(reviews(4))
    new = rl.read_reviews(reviews(5), vocabularies=old.vocabularies)
    old, new = (_without_times(t) if missing == name else t for name, t in (("old", old), ("new", new)))
    both = merging.merge(old, new)
    assert rows_of(both) == rows_of(old) + rows_of(new)
    cells = np.repeat(np.arange(both.n_cells), both.counts)
    assert both.exact is not None
    order = np.lexsort((both.exact, cells))
    assert np.array_equal(order, np.arange(len(order)))  # ascending within each cell


def _without_times(tensor: SparseTensor) -> SparseTensor:
    return SparseTensor(tensor.coordinates, tensor.counts, tensor.vocabularies, tensor.report)


def _known(old: list[int], new: list[int]) -> int:
    """How many of the new reviews of one cell are known, by pairing them off one by one."""
    old, left = list(old), []
    for exact in new:
        if exact != UNKNOWN and exact in old:
            old.remove(exact)
        else:
            left.append(exact)
    known = len(new) - len(left)
    for exact in sorted(left):  # those that are not held first
        match = [e for e in sorted(old, reverse=True) if UNKNOWN in (e, exact)]
        if match:
            old.remove(match[0])
            known += 1
    return known


@pytest.mark.parametrize("seed", range(12))
def test_known_reviews_are_those_that_pair_off_one_by_one(seed: int) -> None:
    first = rl.read_reviews(reviews(seed, 200))
    second = rl.read_reviews(reviews(seed + 100, 150), vocabularies=first.vocabularies)
    old, new = first, second
    if seed % 4:  # as models that earlier versions wrote, and updated by this one
        old = merging.merge(
            _without_times(first), rl.read_reviews(reviews(seed + 50, 60), vocabularies=first.vocabularies)
        )
    if seed % 4 == 2:
        new = merging.merge(_without_times(second), second)
    by_cell: dict[int, dict[tuple[int, ...], list[int]]] = {0: {}, 1: {}}
    for side, tensor in enumerate((old, new)):
        for (*cell, exact), count in rows_of(tensor).items():
            by_cell[side].setdefault(tuple(cell), []).extend([exact] * count)
    found = overlap(old, new)
    assert found.known.sum() == sum(_known(by_cell[0].get(cell, []), rows) for cell, rows in by_cell[1].items())
    exactly = sum((rows_of(old) & rows_of(new)).values())
    assert found.known.sum() - found.by_cell == exactly - sum(
        min(n, rows_of(new)[row]) for row, n in rows_of(old).items() if row[-1] == UNKNOWN
    )
    cells = {cell: min(len(rows), len(by_cell[0].get(cell, []))) for cell, rows in by_cell[1].items()}
    assert found.alike == sum(cells.values()) - found.known.sum()
    rest = without(new, found.known)
    assert rest.n_reviews == new.n_reviews - found.known.sum() and rest.counts.min() > 0
    assert rows_of(rest) <= rows_of(new)


def test_the_same_reviews_are_all_known_and_leave_nothing() -> None:
    tensor = rl.read_reviews(reviews(6))
    found = overlap(tensor, rl.read_reviews(reviews(6), vocabularies=tensor.vocabularies))
    assert found.known.all() and found.by_cell == 0
    assert without(tensor, found.known).n_cells == 0
