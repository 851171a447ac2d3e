"""Every format, frame and packing gives the same tensor; times and ratings mean what they say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import InputError, SettingsError
from ringleader.tensor.sparse import SparseTensor


def same(a: SparseTensor, b: SparseTensor) -> bool:
    return (
        np.array_equal(a.coordinates, b.coordinates)
        and np.array_equal(a.counts, b.counts)
        and all(x.values.equals(y.values) for x, y in zip(a.vocabularies, b.vocabularies, strict=True))
    )


def write(table: pd.DataFrame, path: Path) -> Path:
    unpacked = path.name.removesuffix(".gz").removesuffix(".zst")
    kind = unpacked.rsplit(".", 1)[1]
    target = path.with_name(unpacked)
    if kind == "parquet":
        table.to_parquet(target)
    elif kind == "jsonl":
        table.to_json(target, orient="records", lines=True)
    else:
        table.to_csv(target, index=False, sep="\t" if kind == "tsv" else ",")
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(target.read_bytes()))
    elif path.suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as out:
            out.write(target.read_bytes())
    if path != target:
        target.unlink()
    return path


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_tensor(table: pd.DataFrame, tmp_path: Path, kind: str, packing: str) -> None:
    path = write(table, tmp_path / f"reviews.{kind}{packing}")
    assert same(rl.read_reviews(path), rl.read_reviews(table))


def test_frames_of_three_libraries_give_the_same_tensor(table: pd.DataFrame) -> None:
    before = table.copy(deep=True)
    tensor = rl.read_reviews(table)
    pd.testing.assert_frame_equal(table, before)
    assert same(rl.read_reviews(pl.from_pandas(table)), tensor)
    assert same(rl.read_reviews(pl.from_pandas(table).lazy()), tensor)
    assert same(rl.read_reviews(pa.Table.from_pandas(table)), tensor)
    assert same(rl.read_reviews(pa.RecordBatch.from_pandas(table)), tensor)


@pytest.mark.parametrize("pattern", ["", "*.csv", "**/*.csv"])
def test_a_folder_or_glob_is_read_as_one_table(table: pd.DataFrame, tmp_path: Path, pattern: str) -> None:
    folder = tmp_path / "with [brackets]" if not pattern else tmp_path / "plain"
    folder.mkdir()
    for number in range(3):
        table[number::3].to_csv(folder / f"part-{number}.csv", index=False)
    (folder / "notes.txt").write_text("not a table")
    source = str(folder / pattern) if pattern else folder
    assert same(rl.read_reviews(source), rl.read_reviews(table))


def test_files_of_different_formats_in_a_folder_are_one_table(table: pd.DataFrame, tmp_path: Path) -> None:
    write(table[:100], tmp_path / "a.csv.gz")
    write(table[100:200], tmp_path / "b.parquet")
    write(table[200:], tmp_path / "c.jsonl")
    assert same(rl.read_reviews(tmp_path), rl.read_reviews(table))


def test_a_file_name_that_looks_like_a_pattern_is_a_file(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "reviews[1].csv"
    table.to_csv(path, index=False)
    assert same(rl.read_reviews(path), rl.read_reviews(table))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_csv_file_is_found(table: pd.DataFrame, tmp_path: Path, separator: str) -> None:
    table.to_csv(tmp_path / "a.csv", index=False, sep=separator)
    assert same(rl.read_reviews(tmp_path / "a.csv"), rl.read_reviews(table))


def test_a_byte_order_mark_and_windows_lines_are_read(table: pd.DataFrame, tmp_path: Path) -> None:
    text = table.to_csv(index=False).replace("\n", "\r\n")
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    tensor = rl.read_reviews(tmp_path / "a.csv")
    assert same(tensor, rl.read_reviews(table))
    assert tensor.report is not None
    assert tensor.report.rejected == {}


OLD_DUCKDB = int(duckdb.__version__.split(".")[0]) < 2
BASE = 1_500_000_000


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        ([BASE, BASE + 700_000], "seconds"),
        ([BASE * 1000, (BASE + 700_000) * 1000], "milliseconds"),
        ([BASE * 10**6, (BASE + 700_000) * 10**6], "microseconds"),
        ([float(BASE), BASE + 700_000.0], "seconds"),
        ([str(BASE), str(BASE + 700_000)], "seconds"),
        (["2017-07-14T02:40:00Z", "2017-07-22T05:06:40Z"], "ISO 8601"),
        (["2017-07-14 02:40:00", "2017-07-22 05:06:40"], "ISO 8601"),
        (["2017-07-14T04:40:00+02:00", "2017-07-22T07:06:40.000+02:00"], "ISO 8601"),
        (["2017-07-14", "2017-07-22"], "ISO 8601"),
        ([20170714, 20170722], "YYYYMMDD"),
        ([20170714.0, 20170722.0], "YYYYMMDD"),
        (["20170714", " 20170722"], "YYYYMMDD"),
        ([pd.Timestamp(BASE, unit="s"), pd.Timestamp(BASE + 700_000, unit="s")], "timestamps"),
    ],
)
def test_the_unit_of_times_is_found_on_the_column(times: list[Any], unit: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"reviewer": ["a", "b"], "product": ["x", "x"], "timestamp": times})
    table.to_csv(tmp_path / "t.csv", index=False)
    weeks = [np.datetime64("2017-07-10"), np.datetime64("2017-07-17")]
    tensor = rl.read_reviews(table)
    assert list(tensor.vocabulary("week").decode([0, 1]).astype("datetime64[D]")) == weeks
    assert tensor.report is not None and tensor.report.time is not None
    assert tensor.report.time.unit == unit
    from_text = rl.read_reviews(tmp_path / "t.csv")
    assert same(from_text, tensor)


def test_weeks_begin_on_mondays_and_minutes_on_the_minute() -> None:
    times = pd.to_datetime(["2024-03-03T23:59:59", "2024-03-04T00:00:00", "2024-03-04T00:01:00"])
    table = pd.DataFrame({"reviewer": list("abc"), "product": list("xyz"), "timestamp": times})
    weeks = rl.read_reviews(table).vocabulary("week").decode([0, 1])
    assert [str(w) for w in weeks] == ["2024-02-26T00:00:00", "2024-03-04T00:00:00"]
    minutes = rl.read_reviews(table, modes=["reviewer", "product", "minute=timestamp:time=1min"])
    assert len(minutes.vocabulary("minute")) == 3


def test_any_consistent_rating_scale_is_taken() -> None:
    table = pd.DataFrame({"reviewer": list("abcd"), "product": list("wxyz"), "rating": [-10, 10, 0, 3.5]})
    assert list(rl.read_reviews(table).vocabulary("rating").decode(range(4))) == [-10, 0, 3.5, 10]


def test_more_than_fifty_distinct_ratings_are_binned_and_it_is_said() -> None:
    rng = np.random.default_rng(0)
    n = 1000
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(n)], "product": "x", "rating": rng.normal(size=n)})
    tensor = rl.read_reviews(table)
    sizes = np.bincount(tensor.coordinates[:, tensor.mode_index("rating")])
    assert len(sizes) == 20
    assert sizes.sum() == n and abs(sizes - 50).max() <= (1 if OLD_DUCKDB else 0)  # whose quantiles are one off
    assert tensor.report is not None
    assert "rating has 1,000 distinct values; they are put into 20 bins" in " ".join(tensor.report.warnings)


def test_fifty_distinct_ratings_are_kept() -> None:
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(50)], "product": "x", "rating": range(50)})
    assert rl.read_reviews(table).shape[2] == 50


def times_of(times: list[Any]) -> tuple[str, list[str], dict[str, int], tuple[str, ...]]:
    """Unit, days, refused rows and notes of a column of times."""
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(len(times))], "product": "x", "timestamp": times})
    tensor = rl.read_reviews(table, modes=["reviewer", "product", "day=timestamp:time=1d"])
    assert tensor.report is not None and tensor.report.time is not None
    days = tensor.vocabulary("day").decode(range(tensor.shape[2])).astype("datetime64[D]")
    return tensor.report.time.unit, [str(d) for d in days], dict(tensor.report.rejected), tensor.report.warnings


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.float64, str])
def test_dates_written_as_numbers_are_dates_in_every_type(kind: Any, tmp_path: Path) -> None:
    dates = [19991231, 20190103, 20200229]
    table = pd.DataFrame({"reviewer": list("abc"), "product": "x", "timestamp": np.array(dates).astype(kind)})
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "odd.csv").write_text(text + "too,many,fields,here\n")  # which the row reader takes over
    for name in ("t.parquet", "t.csv", "odd.csv"):
        tensor = rl.read_reviews(tmp_path / name, modes=["reviewer", "product", "day=timestamp:time=1d"])
        days = tensor.vocabulary("day").decode([0, 1, 2]).astype("datetime64[D]")
        assert [str(day) for day in days] == ["1999-12-31", "2019-01-03", "2020-02-29"], name
        assert tensor.report is not None and tensor.report.time is not None
        assert tensor.report.time.unit == "YYYYMMDD"
        assert tensor.report.warnings == ()


@pytest.mark.parametrize(("early", "warned"), [(4, False), (5, False), (6, True), (10, True)])
def test_times_before_1995_are_warned_of_where_most_are_so_in_every_format(
    early: int, warned: bool, tmp_path: Path
) -> None:
    times = [700_000_000 + i for i in range(early)] + [1_600_000_000] * (10 - early)
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(10)], "product": "x", "timestamp": times})
    table.to_parquet(tmp_path / "t.parquet")
    table.assign(timestamp=table["timestamp"] * 1_000).to_parquet(tmp_path / "milliseconds.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    for path in sorted(tmp_path.iterdir()):
        report = rl.read_reviews(path).report
        assert report is not None
        assert any("most times lie before 1995" in note for note in report.warnings) == warned, path


def test_missing_times_and_words_do_not_keep_the_others_from_being_dates() -> None:
    unit, days, rejected, _ = times_of(["20190103", "", "soon", "0", "20190104"])
    assert (unit, days) == ("YYYYMMDD", ["2019-01-03", "2019-01-04"])
    assert rejected == {"missing day": 1, "day is not a time": 2}
    assert times_of([20190103.0, None])[:2] == ("YYYYMMDD", ["2019-01-03"])


def test_dates_before_1970_are_outside_as_others_are() -> None:
    assert times_of([19691231, 19700102])[1:3] == (["1970-01-02"], {"day is outside 1970 to 2100": 1})


@pytest.mark.parametrize("other", [20190230, 20191301, 18991231, 21010101, 1_546_473_600, 20190103.5, -20190103])
@pytest.mark.parametrize("kind", [None, str])
def test_one_time_that_spells_no_date_leaves_all_of_them_seconds_and_it_is_said(other: Any, kind: Any) -> None:
    times = [20190103, 20190104, 20190105, other]
    unit, days, _, notes = times_of(times if kind is None else [kind(t) for t in times])
    assert unit == "seconds" and "1970-08-22" in days
    assert any("20190103 looks like a date" in n and n.endswith("write it as 2019-01-03") for n in notes)


def test_seconds_of_august_1970_are_seconds() -> None:
    unit, days, _, notes = times_of(list(range(20_190_000, 20_190_400)))
    assert (unit, days) == ("seconds", ["1970-08-22"])
    assert notes == ("most times lie before 1995 when read as seconds; is that the right column and unit?",)


def test_what_two_columns_of_times_have_in_common_is_said_once() -> None:
    table = pd.DataFrame({"reviewer": ["a"], "t": ["2019-01-03"], "u": ["2019-01-04"]})
    report = rl.read_reviews(table, modes=["reviewer=reviewer", "t=t:time=1d", "u=u:time=1d"]).report
    assert report is not None
    assert report.warnings == ("times without a zone are read as UTC",)


def test_categories_are_words_also_where_they_are_numbers() -> None:
    table = pd.DataFrame({"a": list("xyz"), "b": ["10", "9", "10"], "c": ["red", "9", "red"]})
    tensor = rl.read_reviews(table, modes=["a=a", "b=b:category", "c=c:category"])
    assert list(tensor.vocabulary("b").decode([0, 1])) == ["10", "9"]
    assert list(tensor.vocabulary("c").decode([0, 1])) == ["9", "red"]


def test_the_guess_and_the_dropped_modes_are_reported(tmp_path: Path) -> None:
    lines = [{"reviewerID": f"A{i}", "asin": "B1", "overall": 5.0, "unixReviewTime": BASE} for i in range(3)]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
    report = rl.read_reviews(tmp_path / "a.json").report
    assert report is not None
    assert report.guessed == {
        "reviewer": "reviewerID",
        "product": "asin",
        "rating": "overall",
        "timestamp": "unixReviewTime",
    }
    assert report.dropped == ("seller",)


@pytest.mark.skipif(
    OLD_DUCKDB, reason="DuckDB before 2.0 reads CSV in blocks of 512 MiB, and is refused so little memory"
)
def test_a_tiny_memory_limit_spills_and_gives_the_same_tensor(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    table = pd.DataFrame(
        {
            "reviewer": [f"reviewer-{i:08d}" for i in rng.integers(0, 200_000, n)],
            "product": [f"product-{i:08d}" for i in rng.integers(0, 50_000, n)],
            "timestamp": BASE + rng.integers(0, 10**7, n),
        }
    )
    table = pd.concat([table, table[:1000]])
    table.to_csv(tmp_path / "big.csv", index=False)
    small = rl.read_reviews(tmp_path / "big.csv", memory_limit="64MB")  # too small to count in memory
    large = rl.read_reviews(table)
    assert same(small, large)
    assert small.report is not None and large.report is not None
    assert small.report.duplicates == large.report.duplicates >= 1000


@pytest.mark.parametrize("limit", ["a lot", "1KB", "-1GB", ""])
def test_a_memory_limit_that_makes_no_sense_is_an_error(table: pd.DataFrame, limit: str) -> None:
    with pytest.raises(SettingsError, match="memory limit"):
        rl.read_reviews(table, memory_limit=limit)


def test_what_cannot_be_a_table_is_an_error() -> None:
    for source in (42, [1, 2], None, pd.Series([1])):
        with pytest.raises(InputError, match="cannot read a table from"):
            rl.read_reviews(source)


def test_no_temporary_files_are_left(table: pd.DataFrame, tmp_path: Path) -> None:
    rl.read_reviews(table, temp_directory=tmp_path)
    with pytest.raises(InputError):
        rl.read_reviews(table.assign(reviewer=""), temp_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
