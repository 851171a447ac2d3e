"""Bad input: a clear error or a counted warning, nothing lost, never a traceback."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import InputError, RingleaderError, SchemaError, StorageError
from ringleader.tables import files, relation, row_reader
from ringleader.tables.check import CheckReport

HEADER = "reviewer,product,rating,timestamp\n"
GOOD = "a,x,5,1500000000\nb,y,4,1500000001\n"


def put(tmp_path: Path, content: str | bytes, name: str = "reviews.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def report_of(source: object, **options: object) -> CheckReport:
    report = rl.read_reviews(source, **options).report
    assert report is not None
    assert report.rows == report.used + sum(report.rejected.values()), "a row was lost"
    return report


def places(report: CheckReport) -> dict[str, str]:
    return {example.where: example.reason for example in report.examples}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is empty"):
        rl.read_reviews(put(tmp_path, b"", name))


def test_an_empty_packed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty or not a text file"):
        rl.read_reviews(put(tmp_path, gzip.compress(b""), "a.csv.gz"))


def test_a_header_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column names but no rows"):
        rl.read_reviews(put(tmp_path, HEADER))
    with pytest.raises(InputError, match="column names but no rows"):
        rl.read_reviews(pd.DataFrame(columns=["reviewer", "product"]))


def test_a_missing_required_column_is_named_with_what_was_found(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"'reviews.csv' has no column for 'reviewer'; found 'revieweer', 'product'"):
        rl.read_reviews(put(tmp_path, "revieweer,product\na,x\n"))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["junk.csv", "junk.tsv", "junk.jsonl", "junk.parquet", "junk.csv.gz", "junk.csv.zst"])
def test_binary_junk_is_refused(tmp_path: Path, name: str, seed: int) -> None:
    junk = np.random.default_rng(seed).bytes(50_000)
    with pytest.raises(RingleaderError):
        rl.read_reviews(put(tmp_path, junk, name))


def test_a_parquet_file_named_csv_is_refused(tmp_path: Path, table: pd.DataFrame) -> None:
    table.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="not a text file"):
        rl.read_reviews(put(tmp_path, (tmp_path / "a.parquet").read_bytes()))


@pytest.mark.parametrize("packing", ["gz", "zst"])
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_truncated_packed_file_is_refused(tmp_path: Path, packing: str, share: float) -> None:
    rows = "".join(f"r{i},p{i % 7},5,{1_500_000_000 + i}\n" for i in range(50_000))
    whole = tmp_path / f"whole.csv.{packing}"
    with pa.output_stream(str(whole), compression={"gz": "gzip", "zst": "zstd"}[packing]) as out:
        out.write((HEADER + rows).encode())
    data = whole.read_bytes()
    with pytest.raises(InputError, match="damaged or truncated"):
        rl.read_reviews(put(tmp_path, data[: int(len(data) * share)], f"cut.csv.{packing}"))


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_truncated_parquet_file_is_refused(tmp_path: Path, table: pd.DataFrame, share: float) -> None:
    table.to_parquet(tmp_path / "whole.parquet")
    data = (tmp_path / "whole.parquet").read_bytes()
    with pytest.raises(InputError, match="not a Parquet file, or is truncated"):
        rl.read_reviews(put(tmp_path, data[: int(len(data) * share)], "cut.parquet"))


def test_rows_in_another_encoding_are_counted_with_their_lines(tmp_path: Path) -> None:
    body = GOOD.encode() + "café,x,5,1500000002\n".encode("latin-1") + "café,x,5,1500000003\n".encode()
    report = report_of(put(tmp_path, HEADER.encode() + body))
    assert report.rejected == {"not valid UTF-8": 1}
    assert places(report) == {"reviews.csv line 4": "not valid UTF-8"}
    assert report.modes["reviewer"] == 3


def test_utf_16_is_read_by_its_mark_and_refused_where_it_is_cut_short(tmp_path: Path) -> None:
    data = (HEADER + GOOD).encode("utf-16")
    same = rl.read_reviews(put(tmp_path, (HEADER + GOOD).encode()))
    assert (rl.read_reviews(put(tmp_path, data)).coordinates == same.coordinates).all()
    with pytest.raises(InputError, match="not text in utf-16"):
        rl.read_reviews(put(tmp_path, data[:-1]))


HOSTILE = [
    "with,comma",
    'with "quotes"',
    "two\nlines",
    "two\r\nlines",
    "nul\x00inside",
    "x" * 10_000,
    "emoji 🦊",
    "  blanks around  ",
    "case",
    "Case",
    "caf\u00e9",
    "cafe\u0301",
    "007",
    "7",
    "07",
    "NULL",
    "nan",
    "=1+1",
    "\u202egnp.exe",
    "\x1b[31mred",
    "<script>alert(1)</script>",
    "{{7*7}}",
]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "frame"])
def test_hostile_ids_are_kept_exactly_and_distinct(tmp_path: Path, kind: str) -> None:
    table = pd.DataFrame({"reviewer": HOSTILE, "product": "x"})
    source: object = table
    if kind == "parquet":
        source = tmp_path / "a.parquet"
        table.to_parquet(source)
    elif kind == "jsonl":
        source = put(tmp_path, "\n".join(json.dumps({"reviewer": h, "product": "x"}) for h in HOSTILE), "a.jsonl")
    elif kind != "frame":
        delimiter = "," if kind == "csv" else "\t"
        quoted = ['"' + h.replace('"', '""') + '"' for h in HOSTILE]
        lines = "".join(f"{q}{delimiter}x\n" for q in quoted)
        source = put(tmp_path, f"reviewer{delimiter}product\n{lines}", f"a.{kind}")
    tensor = rl.read_reviews(source)
    assert sorted(tensor.decode()["reviewer"]) == sorted(HOSTILE)
    assert tensor.shape == (len(HOSTILE), 1)


def test_numeric_ids_keep_their_zeros(tmp_path: Path) -> None:
    path = put(tmp_path, "reviewer,product\n007,0123\n7,123\n07,00123\n")
    assert sorted(rl.read_reviews(path).decode()["reviewer"]) == ["007", "07", "7"]


def test_ratings_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    body = "c,x,five,1500000000\nd,x,NaN,1500000000\ne,x,inf,1500000000\nf,x,,1500000000\ng,x,-inf,1500000000\n"
    report = report_of(put(tmp_path, HEADER + GOOD + body))
    assert report.rejected == {"rating is not finite": 3, "missing rating": 1, "rating is not a number": 1}
    assert places(report)["reviews.csv line 4"] == "rating is not a number"
    assert report.used == 2


def test_ratings_in_a_frame_may_be_mixed_objects() -> None:
    table = pd.DataFrame({"reviewer": list("abcd"), "product": "x", "rating": [5, "4", None, "bad"]})
    report = report_of(table)
    assert report.rejected == {"missing rating": 1, "rating is not a number": 1}
    assert {e.where for e in report.examples} == {"row 3", "row 4"}


def test_strange_times_are_counted_or_noted(tmp_path: Path) -> None:
    body = (
        "c,x,5,0\n"  # 1970-01-01
        "d,x,5,4102444800\n"  # 2100-01-01
        "e,x,5,1500000000000\n"  # milliseconds among seconds
        "f,x,5,-5\n"  # before 1970
        "g,x,5,yesterday\n"
        "h,x,5,\n"
        "i,x,5,9999999999\n"  # 2286
    )
    report = report_of(put(tmp_path, HEADER + GOOD + body))
    assert report.rejected == {
        "timestamp is outside 1970 to 2100": 2,
        "timestamp is in another unit than seconds": 1,
        "timestamp is not a time": 1,
        "missing timestamp": 1,
    }
    assert report.used == 4
    assert any("1 row is dated 1970-01-01" in note for note in report.warnings)
    assert report.time is not None
    assert (report.time.first, report.time.last) == ("1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z")


def test_seconds_among_milliseconds_are_not_taken_for_1970(tmp_path: Path) -> None:
    body = "a,x,5,1500000000000\nb,y,4,1500000001000\nc,x,5,1500000002\n"
    report = report_of(put(tmp_path, HEADER + body))
    assert report.rejected == {"timestamp is in another unit than milliseconds": 1}


def test_exact_duplicates_are_counted_and_kept_as_multiplicity(tmp_path: Path) -> None:
    tensor = rl.read_reviews(put(tmp_path, HEADER + GOOD + GOOD + "a,x,5,1500000060\n"))
    assert tensor.report is not None
    assert tensor.report.duplicates == 2
    assert sorted(tensor.counts) == [2, 3]


def test_one_reviewer_with_a_million_rows_is_read() -> None:
    n = 1_000_000
    table = pa.table(
        {
            "reviewer": pa.array(["whale"]).take(pa.array(np.zeros(n, np.int64))),
            "product": pa.array(np.arange(n) % 1000).cast(pa.string()),
        }
    )
    tensor = rl.read_reviews(table)
    assert tensor.shape == (1, 1000)
    assert tensor.counts.sum() == n


@pytest.mark.parametrize(
    ("body", "reason", "line"),
    [
        ("c,x,5\n", "too few fields", 4),
        ("c,x,5,1500000000,extra\n", "too many fields", 4),
        ('"c"d,x,5,1500000000\n', "quote out of place", 4),
        ('"c,x,5,1500000000\n', "quote out of place", 4),
        (",x,5,1500000000\n", "missing reviewer", 4),
        ('"two\nlines",x,5,1500000000\n,x,5,1500000000\n', "missing reviewer", 6),
    ],
)
def test_broken_rows_are_counted_with_their_lines_and_cost_nothing_else(
    tmp_path: Path, body: str, reason: str, line: int
) -> None:
    after = "".join(f"r{i},y,4,1500000001\n" for i in range(2000))
    report = report_of(put(tmp_path, HEADER + GOOD + body + after))
    assert report.rejected == {reason: 1}
    assert places(report) == {f"reviews.csv line {line}": reason}
    assert report.used >= 2002


def test_mixed_line_endings_lose_nothing(tmp_path: Path) -> None:
    report = report_of(put(tmp_path, "reviewer,product\r\na,x\nb,y\r\nc,z\n"))
    assert (report.used, report.rejected) == (3, {})


def test_broken_json_lines_are_counted_with_their_lines(tmp_path: Path) -> None:
    lines = [
        '{"reviewer": "a", "product": "x"}',
        "",
        "not json",
        "[1, 2]",
        '{"reviewer": null, "product": "x"}',
        '{"product": "x"}',
        '{"reviewer": "b", "product": "y"',
        '{"reviewer": 12, "product": "y"}',
    ]
    report = report_of(put(tmp_path, "\n".join(lines), "a.jsonl"))
    assert report.rejected == {"not a JSON object": 3, "missing reviewer": 2}
    assert places(report) == {
        "a.jsonl line 3": "not a JSON object",
        "a.jsonl line 4": "not a JSON object",
        "a.jsonl line 7": "not a JSON object",
        "a.jsonl line 5": "missing reviewer",
        "a.jsonl line 6": "missing reviewer",
    }
    assert report.used == 2


def test_a_json_array_in_one_piece_is_refused_with_advice(tmp_path: Path) -> None:
    text = json.dumps([{"reviewer": "a", "product": "x"}], indent=1)
    with pytest.raises(InputError, match="one object on each line"):
        rl.read_reviews(put(tmp_path, text, "a.json"))


def test_strict_refuses_what_would_be_counted(tmp_path: Path) -> None:
    path = put(tmp_path, HEADER + GOOD + "c,x,five,1500000000\n,x,5,1500000000\n")
    with pytest.raises(InputError, match=r"2 of 4 rows cannot be used .*first at reviews.csv line"):
        rl.read_reviews(path, strict=True)
    with pytest.raises(InputError, match=r"1 of 3 rows cannot be used \(1 too few fields\)"):
        rl.read_reviews(put(tmp_path, HEADER + GOOD + "c\n", "b.csv"), strict=True)
    assert rl.read_reviews(put(tmp_path, HEADER + GOOD), strict=True).n_cells == 2


def test_bad_rows_are_shown_in_the_order_of_their_lines(tmp_path: Path) -> None:
    path = put(tmp_path, HEADER + "c,x,five,1500000000\n" + GOOD + "c\n" + GOOD * 5 + ",x,5,1500000000\n")
    with pytest.raises(InputError, match=r"3 of 15 rows .*first at reviews.csv line 2;"):
        rl.read_reviews(path, strict=True)
    report = rl.read_reviews(path).report
    assert report is not None
    assert [e.where.rpartition(" ")[2] for e in report.examples] == ["2", "5", "16"]


def test_a_table_without_one_usable_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not one row .* can be used: 2 rating is not a number"):
        rl.read_reviews(put(tmp_path, HEADER + "a,x,bad,1500000000\nb,x,bad,1500000000\n"))
    with pytest.raises(InputError, match=r"not one row .*: 1 too few fields"):
        rl.read_reviews(put(tmp_path, HEADER + "a\n"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,x,5 stars,1500000000\n", "'rating' holds values such as '5 stars'; write plain numbers such as 5 or 4.5"),
        ("a,x,5,04.03.2017\n", "'timestamp' holds values such as '04.03.2017'; write ISO 8601 such as 2017-03-04"),
        ("a,x,,1500000000\n", "'rating' is empty; fill it, or use another column with columns={'rating': 'COLUMN'}"),
        (",x,5,1500000000\n", "'reviewer' is empty"),
    ],
)
def test_a_column_that_fails_in_every_row_is_shown_with_the_accepted_forms(
    tmp_path: Path, rows: str, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        rl.read_reviews(put(tmp_path, HEADER + rows * 3))
    assert said in str(refused.value)


def test_paths_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match="holds no readable file"):
        rl.read_reviews(tmp_path)
    with pytest.raises(InputError, match="unknown format"):
        rl.read_reviews(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="there is no file or folder"):
        rl.read_reviews(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="matches"):
        rl.read_reviews(str(tmp_path / "*.csv"))
    with pytest.raises(InputError):
        rl.read_reviews("nul\x00byte.csv")


def test_no_permission_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, HEADER + GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read anything: let opening fail as it does for others

        def refuse(self: Path, *args: object, **kwargs: object) -> None:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(files.Path, "open", refuse)
    with pytest.raises(InputError, match="no permission to read"):
        rl.read_reviews(path)


def test_a_full_disk_while_spilling_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    table = pa.table({name: pa.array(rng.integers(0, n, n)).cast(pa.string()) for name in ("reviewer", "product")})
    rows = relation.Relation.rows

    def with_little_disk(self: relation.Relation, sql: str) -> object:
        if not hasattr(self, "limited"):
            self.limited = True  # type: ignore[attr-defined]
            rows(self, "SET max_temp_directory_size = '1MB'")
        return rows(self, sql)

    monkeypatch.setattr(relation.Relation, "rows", with_little_disk)
    with pytest.raises(StorageError, match="the disk is full"):
        rl.read_reviews(table, memory_limit="64MB", temp_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_cannot_be_written_is_said_plainly(table: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write into"):
        rl.read_reviews(table, temp_directory=tmp_path / "absent")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="two columns 'product'"):
        rl.read_reviews(put(tmp_path, "reviewer,product,product\na,x,y\n"))


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path, HEADER + GOOD, "a.csv")
    put(tmp_path, "reviewer,product\na,x\n", "b.csv")
    with pytest.raises(SchemaError, match=r"'b.csv' gives the modes reviewer, product, but 'a.csv'"):
        rl.read_reviews(tmp_path)


def test_the_row_reader_and_the_fast_one_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pieces = ["a", ",", '"', "\n", "é", " ", "7", "\t"]
    rows = [["".join(rng.choice(pieces, 5)) for _ in range(3)] for _ in range(300)]
    text = "r,p,q\n" + "".join(",".join('"' + f.replace('"', '""') + '"' for f in row) + "\n" for row in rows)
    path = put(tmp_path, text)
    records = [r.fields for r in row_reader.csv_rows(path, ",", 3) if isinstance(r, row_reader.Record)]
    assert records == rows
    table = pd.DataFrame(rows, columns=["r", "p", "q"])
    fast = rl.read_reviews(path, modes=["r=r", "p=p", "q=q"]).decode()
    expected = table.value_counts().reset_index().sort_values(["r", "p", "q"]).reset_index(drop=True)
    assert sorted(map(tuple, fast[["r", "p", "q"]].to_numpy())) == sorted(
        map(tuple, expected[["r", "p", "q"]].to_numpy())
    )
