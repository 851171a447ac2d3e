"""Where a row stands, in messages and examples: ``line N`` counts lines of text from 1, ``row N`` data rows from 1."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import InputError, LabelError, RingleaderError
from ringleader.known.covariates import read_covariates

Writer = Callable[[pd.DataFrame, Path], Any]


def text(separator: str, name: str, tail: str = "") -> Writer:
    def write(table: pd.DataFrame, folder: Path) -> Path:
        content = table.to_csv(sep=separator, index=False) + tail
        path = folder / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
        return path

    return write


def lines(table: pd.DataFrame, folder: Path) -> Path:
    path = folder / "t.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in table.to_dict("records")))
    return path


def parquet(table: pd.DataFrame, folder: Path) -> Path:
    table.to_parquet(folder / "t.parquet", row_group_size=2)
    return folder / "t.parquet"


def unnumbered(table: pd.DataFrame, folder: Path) -> Path:
    """A file with a column of the name that row numbers go by."""
    return parquet(table.assign(file_row_number=7), folder)


KINDS: dict[str, tuple[Writer, str]] = {
    "csv": (text(",", "t.csv"), "t.csv line 4"),
    "tsv.gz": (text("\t", "t.tsv.gz"), "t.tsv.gz line 4"),
    "jsonl": (lines, "t.jsonl line 3"),
    "parquet": (parquet, "t.parquet row 3"),
    "pandas": (lambda table, folder: table.set_index(table.index + 100), "row 3"),
    "polars": (lambda table, folder: pl.from_pandas(table), "row 3"),
    "arrow": (lambda table, folder: pa.Table.from_pandas(table), "row 3"),
}
kinds = pytest.mark.parametrize("kind", KINDS)
reviews = pd.DataFrame({"reviewer": ["a", "b", "", "d"], "product": ["x", "x", "y", "y"]})


@kinds
def test_the_third_review_is_named_alike(kind: str, tmp_path: Path) -> None:
    write, where = KINDS[kind]
    source = write(reviews, tmp_path)
    report = rl.read_reviews(source).report
    assert report is not None and [example.where for example in report.examples] == [where]
    with pytest.raises(InputError, match=f"first at {where};"):
        rl.read_reviews(source, strict=True)


@pytest.mark.parametrize(
    ("write", "places"),
    [
        (text(",", "t.csv", "too,many,fields\n"), ["t.csv line 4", "t.csv line 6"]),  # read row by row
        (unnumbered, ["t.parquet row 3"]),
    ],
)
def test_other_ways_of_reading_count_alike(write: Writer, places: list[str], tmp_path: Path) -> None:
    report = rl.read_reviews(write(reviews, tmp_path)).report
    assert report is not None and [example.where for example in report.examples] == places


@kinds
def test_the_third_label_is_named_alike(kind: str, tmp_path: Path) -> None:
    write, where = KINDS[kind]
    table = pd.DataFrame({"mode": "seller", "entity": ["a", "b", "c", "d"], "label": ["1", "0", "perhaps", "1"]})
    with pytest.raises(LabelError, match=f"'perhaps' at {where} is neither"):
        rl.read_labels(write(table, tmp_path))


@kinds
def test_the_third_covariate_is_named_alike(kind: str, tmp_path: Path) -> None:
    write, where = KINDS[kind]
    table = pd.DataFrame({"mode": "seller", "entity": ["a", "b", "c", "d"], "age": ["1", "2", "old", "4"]})
    with pytest.raises(RingleaderError, match=f"^{where} of the covariates has age 'old'"):
        read_covariates(write(table, tmp_path))
    twice = table.assign(entity=["a", "b", "b", "d"], age="1")
    first = where[:-1] + str(int(where[-1]) - 1)
    with pytest.raises(RingleaderError, match=f"^{where} of the covariates repeats seller 'b' of {first}$"):
        read_covariates(write(twice, tmp_path))
