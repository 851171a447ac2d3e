"""Tables that once gave a wrong answer, a crash or a lost row."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ringleader as rl
from ringleader.errors import InputError, RingleaderError, SchemaError, SettingsError, StorageError
from ringleader.runtime import mapped
from ringleader.tables import row_reader
from ringleader.tensor import sparse


def ids(tensor: rl.SparseTensor, mode: str = "reviewer") -> list[str]:
    return sorted(tensor.decode()[mode])


def test_parquet_columns_that_differ_by_case_are_not_mixed_up(tmp_path: Path) -> None:
    table = pa.table({"Reviewer": ["W", "W"], "reviewer": ["a", "b"], "product": ["x", "y"]})
    pq.write_table(table, tmp_path / "r.parquet")
    assert ids(rl.read_reviews(tmp_path / "r.parquet")) == ["a", "b"]
    assert ids(rl.read_reviews(table)) == ["a", "b"]


def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["a"]), pa.array(["b"]), pa.array(["x"])], names=["reviewer"] * 2 + ["product"]
    )
    pq.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(SchemaError, match="two columns 'reviewer'"):
        rl.read_reviews(tmp_path / "r.parquet")


def test_folder_names_do_not_override_columns(tmp_path: Path) -> None:
    (tmp_path / "reviewer=zzz").mkdir()
    pq.write_table(pa.table({"reviewer": ["a"], "product": ["x"]}), tmp_path / "reviewer=zzz" / "r.parquet")
    assert ids(rl.read_reviews(tmp_path)) == ["a"]


def test_a_parquet_column_called_file_row_number_is_no_obstacle(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"reviewer": ["a", ""], "product": ["x", "y"], "file_row_number": [7, 8]}), tmp_path / "r.parquet"
    )
    report = rl.read_reviews(tmp_path / "r.parquet").report
    assert report is not None
    assert report.examples[0].where == "r.parquet row 2"


@pytest.mark.parametrize(
    ("body", "expected"),
    [('a, "b"\nc, "d"\n', ["b", "d"]), ("a,b,\nc,d,\n", ["b", "d"]), ('a,"b" \nc," d"\n', [" d", "b"])],
)
def test_one_bad_row_does_not_change_how_the_others_are_read(tmp_path: Path, body: str, expected: list[str]) -> None:
    (tmp_path / "good.csv").write_text("reviewer,product\n" + body)
    (tmp_path / "bad.csv").write_text("reviewer,product\n" + body + "x\n")
    assert ids(rl.read_reviews(tmp_path / "good.csv"), "product") == expected
    assert ids(rl.read_reviews(tmp_path / "bad.csv"), "product") == expected


def test_one_bad_json_line_does_not_change_how_the_others_are_read(tmp_path: Path) -> None:
    lines = [
        '{"reviewer": 1.10, "product": 1e5}',
        '{"reviewer": [1, 2], "product": {"a": "é"}}',
        '{"reviewer": "x", "reviewer": "y", "product": true}',
        '{"reviewer": 12345678901234567890123, "product": -0}',
    ]
    (tmp_path / "good.jsonl").write_text("\n".join(lines))
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines, "oops"]))
    good, bad = (rl.read_reviews(tmp_path / f"{name}.jsonl") for name in ("good", "bad"))
    assert ids(good) == ids(bad)
    assert ids(good, "product") == ids(bad, "product")


def test_json_that_only_some_readers_take_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"reviewer": "a", "product": "x",}\n{"reviewer": "b", "product": "y, ]"}\n')
    report = rl.read_reviews(tmp_path / "a.jsonl").report
    assert report is not None
    assert (report.used, report.rejected) == (1, {"not a JSON object": 1})


def test_a_json_key_that_comes_late_is_found(tmp_path: Path) -> None:
    early = ['{"reviewer": "a", "product": "x"}'] * 300
    late = ['{"reviewer": "b", "product": "y", "rating": 4}'] * 10
    (tmp_path / "a.jsonl").write_text("\n".join(early + late))
    tensor = rl.read_reviews(tmp_path / "a.jsonl")
    assert "rating" in tensor.modes
    assert tensor.report is not None
    assert tensor.report.rejected == {"missing rating": 300}


def test_a_mode_called_count_is_kept() -> None:
    table = pd.DataFrame({"a": ["x", "y"], "b": ["1", "2"]})
    decoded = rl.read_reviews(table, modes={"count": "a", "b": "b"}).decode()
    assert list(decoded["count"]) == ["x", "y"]
    assert list(decoded["count_"]) == [1, 1]


def test_folders_that_tools_keep_for_themselves_are_not_read(tmp_path: Path) -> None:
    for folder in (".", ".ipynb_checkpoints", "_temporary", "deep/.hidden"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "a.csv").write_text("reviewer,product\na,x\n")
    assert rl.read_reviews(tmp_path).counts.sum() == 1


def test_a_file_may_be_called_as_the_folder_of_an_unfinished_job(tmp_path: Path) -> None:
    (tmp_path / "_temporary").write_text("")
    (tmp_path / "a.csv").write_text("reviewer,product\na,x\n")
    assert rl.read_reviews(tmp_path).counts.sum() == 1


def test_float_ids_are_whole_numbers_with_gaps() -> None:
    for table in (
        pa.table({"reviewer": [1.0, float("nan"), 2.5], "product": ["a", "b", "c"]}),
        pd.DataFrame({"reviewer": [1.0, None, 2.5], "product": ["a", "b", "c"]}),
    ):
        tensor = rl.read_reviews(table)
        assert ids(tensor) == ["1", "2.5"]
        assert tensor.report is not None
        assert tensor.report.rejected == {"missing reviewer": 1}
    labels = rl.read_labels(pd.DataFrame({"mode": "reviewer", "entity": [1.0, 2.5], "label": [1, 0]}))
    assert labels.align(tensor).unknown == {}


@pytest.mark.parametrize("width", [pa.float32(), pa.float64()])
def test_labels_name_numbers_as_reviews_do(tmp_path: Path, width: pa.DataType) -> None:
    numbers = [7.0, -3.0, 2.5, 0.1, 1e-7, 123456789.0, 2.0**53, 1e16, -1e16, 1e22, float("inf"), 2.0**53 - 1, 1.5e300]
    ids = pa.array(numbers if width == pa.float64() else numbers[:-2], width)
    pq.write_table(pa.table({"reviewer": ids, "product": ["p"] * len(ids)}), tmp_path / "reviews.parquet")
    known = {"mode": ["reviewer"] * len(ids), "entity": ids, "label": [1] * len(ids)}
    pq.write_table(pa.table(known), tmp_path / "labels.parquet")
    tensor, labels = rl.read_reviews(tmp_path / "reviews.parquet"), rl.read_labels(tmp_path / "labels.parquet")
    assert labels.align(tensor).unknown == {} and len(labels) == len(set(ids.to_pylist()))


def test_labels_of_bytes_are_text(tmp_path: Path) -> None:
    names = pa.array(["Zoë".encode(), b"a"], pa.binary())
    pq.write_table(pa.table({"reviewer": names, "product": ["p", "p"]}), tmp_path / "reviews.parquet")
    labels = pa.table({"mode": pa.array([b"reviewer"] * 2, pa.binary()), "entity": names, "label": [1, 0]})
    pq.write_table(labels, tmp_path / "labels.parquet")
    tensor = rl.read_reviews(tmp_path / "reviews.parquet")
    assert rl.read_labels(tmp_path / "labels.parquet").align(tensor).n_labels == 2
    pq.write_table(labels.set_column(1, "entity", pa.array([b"a", b"\xff"], pa.binary())), tmp_path / "labels.parquet")
    with pytest.raises(InputError, match=r"column 'entity' at labels\.parquet row 2 holds bytes"):
        rl.read_labels(tmp_path / "labels.parquet")


def test_pandas_periods_are_dates() -> None:
    table = pd.DataFrame({"reviewer": ["a"], "product": ["x"], "timestamp": pd.period_range("2015-03-02", periods=1)})
    assert str(rl.read_reviews(table).vocabulary("week").decode([0])[0]) == "2015-03-02T00:00:00"


def test_pandas_columns_nobody_asked_for_may_hold_anything() -> None:
    odd = [np.arange(2), 1 + 2j, "\ud800"]
    table = pd.DataFrame({"reviewer": ["a", 2**70, pd.NA], "product": "x"})
    table["odd"] = pd.Series(odd, dtype=object)
    tensor = rl.read_reviews(table)
    assert ids(tensor) == [str(2**70), "a"]
    with pytest.raises(InputError, match="row 3 of column 'odd' holds text that is not valid Unicode"):
        rl.read_reviews(table, modes=["reviewer", "odd=odd"])


def test_what_is_no_frame_of_polars_is_refused() -> None:
    with pytest.raises(InputError):
        rl.read_reviews(pl.Series([1, 2]))


def test_numbers_with_leading_zeros_are_names_in_a_category() -> None:
    table = pd.DataFrame({"a": list("xyz"), "b": ["007", "7", "7.0"]})
    assert rl.read_reviews(table, modes=["a=a", "b=b:category"]).shape == (3, 3)


def test_old_ratings_stay_single_values_without_a_false_note() -> None:
    old = rl.read_reviews(pd.DataFrame({"reviewer": list("abc"), "product": "x", "rating": [1, 2, 3]}))
    many = pd.DataFrame({"reviewer": [f"r{i}" for i in range(100)], "product": "x", "rating": range(100)})
    new = rl.read_reviews(many, vocabularies=old.vocabularies)
    assert new.shape[2] == 100
    assert new.report is not None
    assert not new.report.warnings


def test_empty_paths_are_refused() -> None:
    with pytest.raises(InputError, match="the path is empty"):
        rl.read_reviews("")


@pytest.mark.parametrize("length", [1, 58, 59, 60, 61])
def test_no_name_of_a_mode_or_column_reaches_sql(length: int) -> None:
    attack = "END reason FROM frame)GROUP BY ALL;CREATE TABLE pw(b INT)--" + "x" * 10
    for name in (attack[:length] + "'", "'" * length, "\\'; DROP TABLE frame --", 'a"b', "f0", "x", "reason", "rowid"):
        table = pd.DataFrame({name: ["a", "b", ""], "rating; --'": ["1", "q", "3"]})
        tensor = rl.read_reviews(table, modes={name: f"{name}:id", "n": "rating; --':rating"})
        assert tensor.n_cells == 1
        assert tensor.report is not None
        assert sum(tensor.report.rejected.values()) == 2


def test_a_column_called_x_does_not_hide_the_times(tmp_path: Path) -> None:
    table = pa.table({"reviewer": ["a"], "product": ["p"], "timestamp": ["2020-01-01T00:00:00Z"], "x": [1.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert rl.read_reviews(tmp_path / "a.parquet").n_cells == 1


@pytest.mark.parametrize("worst", [-(2**63), 2**63 - 1, -1])
def test_the_worst_whole_times_cost_one_row(worst: int) -> None:
    table = pd.DataFrame({"reviewer": list("abc"), "product": "x", "timestamp": [1_500_000_000, 1_500_000_001, worst]})
    report = rl.read_reviews(table).report
    assert report is not None
    assert (report.used, sum(report.rejected.values())) == (2, 1)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(np.array([1.5, 2.5], np.float16)),
        pa.array([1, 2]).cast(pa.decimal256(40, 2)),
        pa.array([[1], [2]]),
        pa.array([1, 2], pa.uint64()),
        pa.array([True, False]),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([b"a", b"b"]),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("kind", ["id", "category"])
def test_odd_types_become_two_entities(column: pa.Array, kind: str, tmp_path: Path) -> None:
    table = pa.table({"reviewer": ["a", "b"], "odd": column})
    assert rl.read_reviews(table, modes=["reviewer", f"odd=odd:{kind}"]).shape == (2, 2)


@pytest.mark.skipif(os.name != "posix", reason="only there may a file have such a name")
@pytest.mark.parametrize("suffix", [b".csv", b".csv.gz"])
def test_file_names_that_are_no_unicode_are_read(tmp_path: Path, suffix: bytes) -> None:
    import gzip

    text = b"reviewer,product\na,x\n"
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff" + suffix))
    path.write_bytes(gzip.compress(text) if suffix.endswith(b"gz") else text)
    assert rl.read_reviews(path).n_cells == 1


@pytest.mark.parametrize("limit", ["infGB", "1e400GB", "1" + "0" * 400, "nanGB", float("nan"), -5, 0, [1], b"1GB"])
def test_memory_limits_without_sense_do_not_crash(limit: object) -> None:
    table = pd.DataFrame({"reviewer": ["a"], "product": ["x"]})
    try:
        assert rl.read_reviews(table, memory_limit=limit).n_cells == 1
    except SettingsError as error:
        assert "memory limit" in str(error)


def test_a_full_disk_under_mapped_arrays_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sparse, "MAP_FROM_BYTES", 0)
    monkeypatch.setattr(mapped, "reserve", full)
    with pytest.raises(StorageError, match="No space left on device"):
        sparse.SparseTensor.from_arrays([[0, 1], [1, 0]]).grouping(0)


def test_a_full_disk_under_the_row_reader_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.csv").write_text("reviewer,product\na,x\nb\n")
    monkeypatch.setattr(row_reader, "to_parquet", full)
    with pytest.raises(StorageError, match="No space left on device"):
        rl.read_reviews(tmp_path / "a.csv")


def test_labels_that_are_no_unicode_or_none_at_all_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"mode": "seller", "entity": "\\ud800", "label": true}')
    (tmp_path / "b.csv").write_text("mode,entity,label\n")
    (tmp_path / "c.csv").write_text("mode,entity,label,label\nseller,a,1,0\n")
    for name in ("a.jsonl", "b.csv", "c.csv"):
        with pytest.raises(RingleaderError):
            rl.read_labels(tmp_path / name)


@pytest.mark.parametrize(
    "options",
    [
        {"modes": [1, 2]},
        {"modes": ["reviewer", "reviewer"]},
        {"columns": ["a"]},
        {"columns": {"reviewer": None}},
        {"columns": {"product": "x"}, "modes": ["a=reviewer", "b=product"]},
        {"threads": "x"},
        {"threads": -1},
        {"threads": 0},
        {"threads": True},
        {"threads": 1.5},
        {"threads": 10**6},
    ],
)
def test_arguments_without_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        rl.read_reviews(pd.DataFrame({"reviewer": ["a"], "product": ["x"]}), **options)


def test_strict_names_the_first_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("reviewer,product,rating\na,x,5\nb,x,zzz\n,x,4\n")
    with pytest.raises(InputError, match=r"first at a\.csv line 3"):
        rl.read_reviews(tmp_path / "a.csv", strict=True)
