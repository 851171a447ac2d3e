"""Folders as other programs write them: Hive's partitions, Spark's marks, tables that hold deleted rows too."""

from __future__ import annotations

import shutil
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ringleader as rl
from ringleader.errors import InputError, SchemaError
from ringleader.tables.files import partitions_of


def table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "reviewer": [f"u{n}" for n in rng.integers(0, 40, rows)],
            "product": [f"p{n}" for n in rng.integers(0, 9, rows)],
            "rating": rng.integers(1, 6, rows).astype(str),
            "date": rng.choice(["2024-01-01", "2024-01-09", "2024-02-01"], rows),
        }
    )


def spark_folder(folder: Path, frame: pd.DataFrame, keys: list[str]) -> Path:
    """As ``frame.write.partitionBy(*keys).parquet(folder)`` leaves it."""
    for number, (values, part) in enumerate(frame.groupby(keys)):
        inside = folder.joinpath(*(f"{key}={value}" for key, value in zip(keys, values, strict=True)))
        inside.mkdir(parents=True, exist_ok=True)
        name = f"part-{number:05d}-aa.c000.snappy.parquet"
        pq.write_table(pa.Table.from_pandas(part.drop(columns=keys), preserve_index=False), inside / name)
        (inside / f".{name}.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("keys", [["date"], ["date", "rating"]])
def test_columns_that_are_names_of_folders_are_read(tmp_path: Path, keys: list[str]) -> None:
    frame = table()
    found = rl.read_reviews(spark_folder(tmp_path / "r", frame, keys))
    expected = rl.read_reviews(frame)
    assert found.modes == expected.modes
    assert np.array_equal(found.coordinates, expected.coordinates)
    assert np.array_equal(found.counts, expected.counts)


def test_a_partition_of_no_known_name_is_read_where_it_is_named(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path / "r", table().rename(columns={"date": "landed"}), ["landed"])
    assert "week" not in rl.read_reviews(folder).modes
    named = rl.read_reviews(folder, columns={"timestamp": "landed"})
    assert named.shape[named.modes.index("week")] == 3


def test_the_files_own_columns_come_before_the_names_of_folders(tmp_path: Path) -> None:
    frame = table()
    frame["timestamp"] = 1_600_000_000
    folder = spark_folder(tmp_path / "r", frame, ["date"])
    tensor = rl.read_reviews(folder)
    assert tensor.report is not None
    assert tensor.report.columns["week"] == "timestamp"


def test_a_partition_without_a_value_has_rows_without_one(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path / "r", table(), ["date"])
    (folder / "date=2024-01-09").rename(folder / "date=__HIVE_DEFAULT_PARTITION__")
    tensor = rl.read_reviews(folder)
    assert tensor.report is not None
    assert sum(tensor.report.rejected.values()) == int((table()["date"] == "2024-01-09").sum())


def test_text_files_have_partitions_too(tmp_path: Path) -> None:
    frame = table()
    for day, part in frame.groupby("date"):
        (tmp_path / f"date={day}").mkdir()
        part.drop(columns="date").to_csv(tmp_path / f"date={day}" / "a.csv.gz", index=False)
    assert np.array_equal(rl.read_reviews(tmp_path).coordinates, rl.read_reviews(frame).coordinates)


def test_folders_above_a_pattern_name_columns_on_this_machine_and_in_a_store(tmp_path: Path) -> None:
    text = "reviewer,product\na,x\nb,y\n"
    (tmp_path / "day" / "seller=s1").mkdir(parents=True)
    (tmp_path / "day" / "seller=s1" / "a.csv").write_text(text)
    store = fsspec.filesystem("memory")
    store.pipe(f"/{tmp_path.name}/day/seller=s1/a.csv", text.encode())
    for root in (str(tmp_path), f"memory://{tmp_path.name}"):
        tensor = rl.read_reviews(f"{root}/day/seller=s1/*.csv")
        assert tensor.vocabulary("seller").decode([0]).tolist() == ["s1"], root


def test_names_of_folders_are_unquoted() -> None:
    path = Path("shop=a%20b%2Fc", "no", "day=__HIVE_DEFAULT_PARTITION__", "=x", "part.parquet")
    assert partitions_of(path) == (("shop", "a b/c"), ("day", None))


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("metadata/v1.metadata.json", "Iceberg"),
        ("_temporary/0/task_1/part-0.parquet", "_temporary and no _SUCCESS"),
    ],
)
def test_tables_whose_files_are_not_all_of_one_time_are_refused(tmp_path: Path, inside: str, said: str) -> None:
    folder = spark_folder(tmp_path / "r", table(), ["date"])
    (folder / "_SUCCESS").unlink()
    rl.read_reviews(folder)
    (folder / inside).parent.mkdir(parents=True)
    (folder / inside).write_bytes(b"{}")
    with pytest.raises(InputError, match=said):
        rl.read_reviews(folder)


def test_a_finished_job_that_left_its_temporary_folder_is_read(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path / "r", table(), ["date"])
    (folder / "_temporary/0/x").mkdir(parents=True)
    (folder / "_temporary/0/x/part-0.parquet").write_bytes(b"half")
    assert rl.read_reviews(folder).counts.sum() == 300


def test_what_dask_writes_is_read(tmp_path: Path) -> None:
    frame = table()
    for number in range(12):
        part = frame.iloc[number::12].rename_axis("__null_dask_index__")
        part.to_parquet(tmp_path / f"part.{number}.parquet", index=True)
    (tmp_path / "_metadata").write_bytes(b"x")
    (tmp_path / "_common_metadata").write_bytes(b"x")
    assert np.array_equal(rl.read_reviews(tmp_path).coordinates, rl.read_reviews(frame).coordinates)


def test_what_bigquery_writes_is_read(tmp_path: Path) -> None:
    frame = table().rename(columns={"date": "timestamp"})
    when = pa.array(pd.to_datetime(frame["timestamp"])).cast(pa.timestamp("us", tz="UTC"))
    exported = pa.table(
        {
            "reviewer": pa.array(frame["reviewer"]),
            "product": pa.array(frame["product"]),
            "rating": pa.array(frame["rating"].astype(int)).cast(pa.decimal128(38, 9)),
            "timestamp": when,
        }
    )
    pq.write_table(exported, tmp_path / "reviews-000000000000.parquet")
    assert np.array_equal(rl.read_reviews(tmp_path).coordinates, rl.read_reviews(frame).coordinates)


def test_a_corrupt_file_among_a_hundred_is_named(tmp_path: Path) -> None:
    table(20).to_parquet(tmp_path / "part-000.parquet")
    for number in range(1, 100):
        shutil.copy(tmp_path / "part-000.parquet", tmp_path / f"part-{number:03d}.parquet")
    path = tmp_path / "part-057.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"'part-057.parquet' is not a Parquet file, or is truncated"):
        rl.read_reviews(tmp_path)
    path.write_bytes(content[:40] + bytes(len(content) // 3) + content[40 + len(content) // 3 :])  # the footer is whole
    with pytest.raises(InputError, match=r"part-057.parquet"):
        rl.read_reviews(tmp_path)


def test_a_file_of_nothing_but_partitions_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "reviewer=a" / "product=b"
    inside.mkdir(parents=True)
    pd.DataFrame({"note": ["x"]}).to_parquet(inside / "a.parquet")
    with pytest.raises(SchemaError, match="no column of its own"):
        rl.read_reviews(tmp_path)
