"""A column that says how often each row counts: the same as those rows repeated, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parents[1] / "cluster"))
from in_process import InProcess

import ringleader as rl
from ringleader.errors import InputError, RingleaderError, SchemaError, SettingsError
from ringleader.snapshot.resume import tensor_fingerprint
from ringleader.tensor import encode

MODES = ["src=src:id", "dst=dst:id", "day=time:time=1d"]


def counted_rows(seed: int = 0, rows: int = 600) -> pd.DataFrame:
    """Rows with times, some of them in one cell and some exact copies, and how often each counts."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"src": rng.integers(0, 12, rows), "dst": rng.integers(0, 5, rows)}).astype(str)
    table["time"] = 1_700_000_000 + rng.integers(0, 40, rows) * 20_000
    table["hits"] = rng.geometric(0.3, rows)
    return table


def repeated(table: pd.DataFrame, column: str = "hits") -> pd.DataFrame:
    """The same rows, each as often as the column says."""
    return table.loc[table.index.repeat(table[column])].drop(columns=column)


def assert_same(found: rl.SparseTensor, expected: rl.SparseTensor) -> None:
    """Every array of both, and their fingerprints."""
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
    np.testing.assert_array_equal(found.counts, expected.counts)
    if expected.exact is None:
        assert found.exact is None
    else:
        np.testing.assert_array_equal(found.exact, expected.exact)
    for one, other in zip(found.vocabularies, expected.vocabularies, strict=True):
        assert one.values.equals(other.values)
    assert tensor_fingerprint(found) == tensor_fingerprint(expected)


@pytest.fixture(params=["memory", "database"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "database":
        monkeypatch.setattr(encode, "bytes_to_count", lambda *_: 1 << 60)
    yield request.param


@pytest.mark.parametrize("modes", [MODES, MODES[:2], [*MODES, "hour=time:time=1h"]], ids=["times", "none", "two times"])
def test_a_row_that_counts_five_times_is_five_rows(way: str, modes: list[str]) -> None:
    table = counted_rows()
    found = rl.read_reviews(table, modes=modes, count="hits")
    assert_same(found, rl.read_reviews(repeated(table), modes=modes))
    assert found.n_reviews == table["hits"].sum()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_files_of_every_form_have_counts(tmp_path: Path, name: str) -> None:
    table = counted_rows(1, 200)
    write: dict[str, Callable[..., Any]] = {
        "a.csv": lambda p: table.to_csv(p, index=False),
        "a.tsv": lambda p: table.to_csv(p, index=False, sep="\t"),
        "a.jsonl": lambda p: table.to_json(p, orient="records", lines=True),
        "a.parquet": table.to_parquet,
    }
    write[name](tmp_path / name)
    assert_same(
        rl.read_reviews(tmp_path / name, modes=MODES, count="hits"), rl.read_reviews(repeated(table), modes=MODES)
    )


def test_workers_that_read_files_have_the_same_counts(tmp_path: Path) -> None:
    table = counted_rows(2)
    for number, part in enumerate(np.array_split(np.arange(len(table)), 4)):
        table.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    expected = rl.read_reviews(repeated(table), modes=MODES)
    for workers in (1, 3, 5):
        found = rl.read_reviews(tmp_path, modes=MODES, count="hits", runtime=InProcess(workers))
        assert_same(found, expected)
        assert found.report is not None
        assert (found.report.rows, found.report.used, found.report.counted) == (600, 600, table["hits"].sum())


def test_a_folder_may_say_how_often_its_rows_count(tmp_path: Path) -> None:
    table = counted_rows(3, 60).drop(columns="hits")
    for often in (1, 4):
        (tmp_path / f"hits={often}").mkdir()
        table.to_parquet(tmp_path / f"hits={often}" / "a.parquet")
    assert_same(
        rl.read_reviews(tmp_path, modes=MODES, count="hits"), rl.read_reviews(pd.concat([table] * 5), modes=MODES)
    )


def test_what_was_read_says_rows_and_how_often_they_count() -> None:
    table = counted_rows()
    weighted, once = rl.read_reviews(table, modes=MODES, count="hits"), rl.read_reviews(table, modes=MODES)
    assert weighted.report is not None
    assert once.report is not None
    assert (weighted.report.count, weighted.report.counted) == ("hits", int(table["hits"].sum()))
    assert (once.report.count, once.report.counted) == (None, None)
    for name in ("rows", "used", "cells", "duplicates"):  # of the table
        assert getattr(weighted.report, name) == getattr(once.report, name)
    assert f"hits says how often each row counts: {table['hits'].sum():,} in all" in repr(weighted.report)


@pytest.mark.filterwarnings("ignore::ringleader.errors.RingleaderWarning")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2.5", "hits is not a count: not a whole number"),
        ("0", "hits is not a count: below 1"),
        ("-3", "hits is not a count: below 1"),
        ("nan", "hits is not a count: not a number"),
        ("many", "hits is not a count: not a number"),
        ("inf", "hits is not a count: above 1,000,000,000"),
        ("1e12", "hits is not a count: above 1,000,000,000"),
        ("", "missing hits"),
    ],
)
def test_what_is_no_count_is_refused_by_name_and_row(tmp_path: Path, value: str, reason: str) -> None:
    table = counted_rows(4, 50)
    table["hits"] = table["hits"].astype(str)
    table.loc[7, "hits"] = value
    table.to_csv(tmp_path / "a.csv", index=False)
    found = rl.read_reviews(tmp_path / "a.csv", modes=MODES, count="hits")
    rest = table.drop(index=7).astype({"hits": int})
    assert_same(found, rl.read_reviews(repeated(rest), modes=MODES))
    assert found.report is not None
    assert dict(found.report.rejected) == {reason: 1}
    assert found.report.used == 49
    (said,) = found.report.left_out
    assert said.startswith(f"1 row left out: {reason}, first at ")
    assert said.endswith("a.csv line 9")
    with pytest.raises(InputError, match=r"1 of 50 rows cannot be used .* first at .*a.csv line 9"):
        rl.read_reviews(tmp_path / "a.csv", modes=MODES, count="hits", strict=True)


@pytest.mark.parametrize("values", [[0.5, 1.5], [np.nan, np.nan], [0, -1], ["a", "b"], [None, None]])
def test_a_column_without_a_count_is_refused(values: list[Any]) -> None:
    table = pd.DataFrame({"src": ["a", "b"], "dst": ["x", "y"], "hits": values})
    with pytest.raises(
        InputError, match=r"not one row of the table can be used: .*hits.*or use another column with --count"
    ):
        rl.read_reviews(table, modes=MODES[:2], count="hits")


def test_numbers_of_any_type_are_counts() -> None:
    expected = rl.read_reviews(pd.DataFrame({"src": list("aabbb"), "dst": list("xxyyy")}), modes=MODES[:2])
    for kind in ("int8", "uint64", "float32", "float64", "str", "object"):
        table = pd.DataFrame({"src": ["a", "b"], "dst": ["x", "y"], "hits": pd.Series([2, 3]).astype(kind)})
        assert_same(rl.read_reviews(table, modes=MODES[:2], count="hits"), expected)


def test_the_count_is_a_column_of_its_own() -> None:
    table = counted_rows(5, 20)
    with pytest.raises(SchemaError, match=r"no column 'hist'.*did you mean 'hits'"):
        rl.read_reviews(table, modes=MODES, count="hist")
    with pytest.raises(SettingsError, match="column 'src' is the mode 'src', so it cannot be the count too"):
        rl.read_reviews(table, modes=MODES, count="src")
    with pytest.raises(SettingsError, match="count is 3; give the name of the column"):
        rl.read_reviews(table, modes=MODES, count=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["count", "Counts", "weight", "n"])
def test_a_column_that_looks_like_a_count_and_is_not_used_is_named(name: str) -> None:
    table = counted_rows(6, 20).rename(columns={"hits": name})
    with pytest.warns(
        rl.RingleaderWarning, match=f"column '{name}' is not used, so every row counts once; --count {name}"
    ):
        rl.read_reviews(table, modes=MODES)


@pytest.mark.filterwarnings("error::ringleader.errors.RingleaderWarning")
def test_a_count_that_is_used_is_not_warned_of() -> None:
    table = counted_rows(6, 20).rename(columns={"hits": "n"})
    rl.read_reviews(table, modes=MODES, count="n")
    rl.read_reviews(table.drop(columns="n"), modes=[*MODES[:2], "n=time"])


def model_of(table: Any, **how: Any) -> rl.RingDetector:
    return rl.RingDetector(rank=3, epochs=2).fit(rl.read_reviews(table, modes=MODES, **how))


def same_model(one: rl.RingDetector, other: rl.RingDetector) -> None:
    assert_same(one.tensor_, other.tensor_)
    for a, b in zip(one.state_.factors, other.state_.factors, strict=True):
        np.testing.assert_array_equal(a, b)
    for mode in ("src", "dst"):
        pd.testing.assert_frame_equal(one.scores(mode), other.scores(mode))


def test_a_model_of_counts_has_the_bits_of_one_of_rows_and_so_has_its_update(tmp_path: Path) -> None:
    first, second = counted_rows(7), counted_rows(8, 300)
    one, other = model_of(first, count="hits"), model_of(repeated(first))
    same_model(one, other)
    one.save(tmp_path / "model")
    one = rl.load(tmp_path / "model")
    assert one.reading_["count"] == "hits"
    for model, batch in ((one, second), (other, repeated(second))):
        model.partial_fit(batch)
    same_model(one, other)
    with pytest.warns(rl.RingleaderWarning, match="added before"):
        one.partial_fit(second)
    same_model(one, other)


def test_an_update_without_the_count_column_names_it() -> None:
    model = model_of(counted_rows(9, 100), count="hits")
    with pytest.raises(SchemaError, match="no column 'hits'"):
        model.partial_fit(counted_rows(10, 20).drop(columns="hits"))


def test_fit_takes_the_count_of_a_table_and_no_other() -> None:
    table = counted_rows(11).rename(columns={"src": "reviewer", "dst": "product"}).drop(columns="time")
    with pytest.warns(rl.RingleaderWarning):
        one = rl.RingDetector(rank=2, epochs=1).fit(table, count="hits")
        other = rl.RingDetector(rank=2, epochs=1).fit(repeated(table))
    assert_same(one.tensor_, other.tensor_)
    with pytest.raises(RingleaderError):
        rl.RingDetector(rank=2, epochs=1).fit(one.tensor_, count="hits")
