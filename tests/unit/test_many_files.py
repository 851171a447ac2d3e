"""Files of one format and one schema are read in one go, and everything said of them is as if each was read alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ringleader as rl
from ringleader.errors import InputError
from ringleader.tables import parts
from ringleader.tables.check import check
from ringleader.tables.read import open_relation
from ringleader.tensor.sparse import SparseTensor

KINDS = ["parquet", "csv", "tsv", "jsonl"]
kinds = pytest.mark.parametrize("kind", KINDS)


def reviews(seed: int, rows: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "reviewer": [f"r{x}" for x in rng.integers(0, 20, rows)],
            "product": [f"p{x}" for x in rng.integers(0, 9, rows)],
            "seller": [f"s{x}" for x in rng.integers(0, 4, rows)],
            "rating": rng.integers(1, 6, rows),
            "timestamp": rng.integers(1_500_000_000, 1_510_000_000, rows),
        }
    )


def spoilt(table: pd.DataFrame) -> pd.DataFrame:
    """Five reviewers are missing, and one time lies before 1970."""
    table = table.copy()
    table.loc[[1, 3, 7, 8, 20], "reviewer"] = ""
    table.loc[5, "timestamp"] = -5
    return table


def write(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_dict("records")))
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


def write_all(
    folder: Path, kind: str, files: int = 12, change: Callable[[pd.DataFrame], pd.DataFrame] = spoilt
) -> Path:
    for i in range(files):
        write(change(reviews(i)) if i % 2 else reviews(i), folder / f"f{i:03}.{kind}")
    return folder


def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet files are read one by one from now on."""
    monkeypatch.setattr(parts.Parts, "_opens", lambda self, group: False)


def assert_same(found: SparseTensor, expected: SparseTensor) -> None:
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.exact, expected.exact)
    for a, b in zip(found.vocabularies, expected.vocabularies, strict=True):
        assert a.values.equals(b.values)
    assert found.report == expected.report


@kinds
def test_files_of_one_schema_are_one_part(tmp_path: Path, kind: str) -> None:
    with open_relation(write_all(tmp_path, kind)) as relation:
        assert len(relation.parts) == 1 and len(relation.parts[0].files) == 12
        assert check(relation).rows == 360


def test_files_of_several_formats_and_schemas_are_few_parts_in_the_order_of_their_files(tmp_path: Path) -> None:
    for i in range(20):
        table = reviews(i).assign(rating=lambda t: t["rating"].astype(float)) if i % 3 else reviews(i)
        write(table, tmp_path / f"f{i:02}.{KINDS[i // 2 % 4]}")
    with open_relation(tmp_path) as relation:
        assert [min(file.number for file in part.files.values()) for part in relation.parts] == [0, 1, 2]
        assert relation.parts[2].types == ("VARCHAR",) * 5  # every text file
    everything = pd.concat([reviews(i) for i in range(20)])
    assert rl.read_reviews(tmp_path).n_cells == rl.read_reviews(everything).n_cells


@kinds
def test_refused_rows_are_named_by_their_file_and_row(tmp_path: Path, kind: str) -> None:
    report = rl.read_reviews(write_all(tmp_path, kind, 5)).report
    assert report is not None and report.rejected == {
        "missing reviewer": 10,
        "timestamp is outside 1970 to 2100": 2,
    }
    first = {"csv": 2, "tsv": 2, "jsonl": 1, "parquet": 1}[kind]
    word = "row" if kind == "parquet" else "line"
    expected = [
        (
            f"f00{i}.{kind} {word} {first + row}",
            "missing reviewer" if row != 5 else "timestamp is outside 1970 to 2100",
        )
        for i in (1, 3)
        for row in (1, 3, 5, 7)  # three of each reason
    ]
    assert [(example.where, example.reason) for example in report.examples] == expected
    with pytest.raises(InputError, match=f"first at {expected[0][0]};"):
        rl.read_reviews(tmp_path, strict=True)


@pytest.mark.parametrize("folders", [["x=1"], ["shop=a", "shop=b%20c", "shop=__HIVE_DEFAULT_PARTITION__", "shop=d'e"]])
def test_parquet_read_in_one_go_is_parquet_read_one_by_one(
    tmp_path: Path, folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = None if len(folders) == 1 else {"seller": "shop"}
    for i in range(8):
        table = spoilt(reviews(i)) if i % 3 else reviews(i)
        table = table.assign(timestamp=table["timestamp"].astype(str)) if i % 4 == 1 else table
        write(
            table if columns is None else table.drop(columns="seller"),
            tmp_path / folders[i % len(folders)] / f"{i}.parquet",
        )
    found = rl.read_reviews(tmp_path, columns=columns)
    with open_relation(tmp_path, columns=columns) as relation:
        assert len(relation.parts) == 2
    apart(monkeypatch)
    with open_relation(tmp_path, columns=columns) as relation:
        assert len(relation.parts) == 8
    assert_same(found, rl.read_reviews(tmp_path, columns=columns))
    assert found.report is not None and len(found.report.examples) > 8


@kinds
def test_every_row_has_the_value_of_its_own_folder(tmp_path: Path, kind: str) -> None:
    for i in range(9):
        write(reviews(i).drop(columns="seller"), tmp_path / f"shop=s{i}" / f"part.{kind}")
    tensor = rl.read_reviews(tmp_path, columns={"seller": "shop"})
    frame = pd.concat([reviews(i).assign(seller=f"s{i}") for i in range(9)])
    expected = rl.read_reviews(frame)
    np.testing.assert_array_equal(tensor.coordinates, expected.coordinates)
    with open_relation(tmp_path, columns={"seller": "shop"}) as relation:
        assert len(relation.parts) == 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_text_files_out_of_order_are_one_part_beside_those_in_order(tmp_path: Path, kind: str) -> None:
    write_all(tmp_path, kind, 10, change=lambda table: table)
    for i in (2, 3, 7):
        with (tmp_path / f"f00{i}.{kind}").open("a") as handle:
            handle.write("\nx\n")
    with open_relation(tmp_path) as relation:
        assert [len(part.files) for part in relation.parts] == [7, 3]
    report = rl.read_reviews(tmp_path).report
    assert report is not None and (report.rows, report.used) == (303, 300)
    assert [example.where.partition(" ")[0] for example in report.examples] == [f"f00{i}.{kind}" for i in (2, 3, 7)]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_the_damaged_one_among_a_hundred_is_named(tmp_path: Path, damage: str) -> None:
    for i in range(100):
        reviews(i, 2000 if i == 61 else 30).to_parquet(tmp_path / f"f{i:03}.parquet")
    path = tmp_path / "f061.parquet"
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        for k in range(len(content) // 5, len(content) // 4):
            content[k] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^'f061\.parquet' is .*damaged"):
        rl.read_reviews(tmp_path)


@pytest.mark.parametrize("name", ["filename", "FILE_ROW_NUMBER", "Reviewer"])
def test_names_that_stand_in_the_way_of_one_scan_are_read_one_by_one(tmp_path: Path, name: str) -> None:
    write_all(tmp_path, "parquet", 3, change=lambda table: table.assign(**{name: "x"}))
    with open_relation(tmp_path, columns={"reviewer": "reviewer"}) as relation:
        assert len(relation.parts) == 2  # the first and the third are without the column
    expected = rl.read_reviews(pd.concat([reviews(i) for i in range(3)]))
    assert rl.read_reviews(tmp_path, columns={"reviewer": "reviewer"}).n_cells == expected.n_cells


def test_paths_that_the_database_writes_in_another_way_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path, "parquet", 3)
    expected = rl.read_reviews(tmp_path)
    rows = parts.Relation.rows

    def other_names(self: parts.Relation, sql: str) -> list[tuple[object, ...]]:
        found = rows(self, sql)
        return [(f"file:{name}",) for (name,) in found] if sql.endswith("GROUP BY filename") else found

    monkeypatch.setattr(parts.Relation, "rows", other_names)
    with open_relation(tmp_path) as relation:
        assert len(relation.parts) == 3
    assert_same(rl.read_reviews(tmp_path), expected)


def test_types_that_only_look_alike_are_read_apart(tmp_path: Path) -> None:
    """A column of whole numbers and one of text are cast each in its own way: 007 is a name, 7 a number."""
    for i, values in enumerate([pa.array([7, 8]), pa.array(["007", "8"]), pa.array([7.0, None])]):
        pq.write_table(pa.table({"reviewer": values, "product": ["a", "b"]}), tmp_path / f"{i}.parquet")
    tensor = rl.read_reviews(tmp_path)
    assert tensor.vocabularies[0].values.to_pylist() == ["007", "7", "8"]
    assert tensor.report is not None and tensor.report.used == 5
