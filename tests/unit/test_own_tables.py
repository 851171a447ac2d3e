"""Tables as people have them: other encodings, spreadsheets, and lists of some accounts only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

import ringleader as rl
from ringleader.cli import score
from ringleader.cli.rows import put_frame, write_frame
from ringleader.errors import InputError, SettingsError
from ringleader.known.covariates import read_covariates

ROWS = [("Zoë", "lamp", "Müller", 5, "2017-03-01"), ("Ben", "lamp", "Müller", 4, "2017-03-09")]
ROWS += [("Zoë", "chair", "Ömer", 1, "2017-05-01")]
COLUMNS = ["user", "item", "shop", "stars", "date"]


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=COLUMNS)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_a_table_reads_the_same_in_every_encoding(table: pd.DataFrame, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes(table.to_csv(index=False).encode(encoding))
    marked = encoding == "utf-16"  # it begins with its mark, so nothing need be said
    tensor = rl.read_reviews(path, encoding=None if marked else encoding)
    assert sorted(tensor.vocabulary("seller").decode([0, 1])) == ["Müller", "Ömer"]
    assert tensor.report is not None and not tensor.report.rejected


def test_rows_in_another_encoding_are_refused_with_the_words_to_type(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes(
        table.to_csv(index=False).encode("latin-1") + b"Ann,lamp,Shop,3,2017-03-02\nJo,chair,Shop,3,2017-03-03\n"
    )
    with pytest.warns(rl.RingleaderWarning, match='for Latin-1 give encoding="latin-1"'):
        tensor = rl.read_reviews(path)
    assert tensor.report is not None and tensor.report.rejected == {"not valid UTF-8": 3}


@pytest.mark.parametrize("strict", [False, True])
def test_where_no_row_at_all_is_in_the_encoding_the_words_to_type_are_said_too(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes("reviewer,product\ncafé,lamp\nthé,lamp\n".encode("latin-1"))
    with pytest.raises(InputError, match=r'2 not valid UTF-8.*; for Latin-1 give encoding="latin-1"'):
        rl.read_reviews(path, strict=strict)
    assert rl.read_reviews(path, encoding="latin-1").shape[0] == 2


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_without_its_mark_is_refused_with_its_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes("reviewer,product\ncafé,lamp\nthé,lamp\n".encode(encoding))
    with pytest.raises(InputError, match=f'UTF-16 without its mark; read it with encoding="{encoding}"'):
        rl.read_reviews(path)
    assert rl.read_reviews(path, encoding=encoding).shape[0] == 2


def test_a_header_in_another_encoding_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes("user,item,größe\na,b,c\n".encode("latin-1"))
    with pytest.raises(InputError, match='with encoding="latin-1"'):
        rl.read_reviews(path)
    with pytest.raises(SettingsError, match="no encoding 'klingon'"):
        rl.read_reviews(path, encoding="klingon")


def test_labels_and_covariates_are_read_in_the_encoding_too(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_bytes("mode,entity,label\nseller,Ömer,1\n".encode("latin-1"))
    with pytest.raises(InputError):
        rl.read_labels(tmp_path / "labels.csv")
    assert rl.read_labels(tmp_path / "labels.csv", encoding="latin-1").entries[0].entity == "Ömer"
    table = read_covariates(tmp_path / "labels.csv", encoding="latin-1").table
    assert list(table["entity"]) == ["Ömer"]


@pytest.mark.parametrize("name", ["hex", "rot13", "undefined", "bz2"])
def test_an_encoding_of_no_text_is_refused_in_a_sentence(table: pd.DataFrame, tmp_path: Path, name: str) -> None:
    table.to_csv(tmp_path / "reviews.csv", index=False)
    with pytest.raises(SettingsError, match=f"no encoding '{name}' of text"):
        rl.read_reviews(tmp_path / "reviews.csv", encoding=name)


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_spreadsheets_are_read_as_tables_are(table: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("openpyxl" if suffix == ".xlsx" else "odf")
    table.to_excel(tmp_path / f"reviews{suffix}", index=False)
    tensor, same = rl.read_reviews(tmp_path / f"reviews{suffix}"), rl.read_reviews(table)
    assert (tensor.coordinates == same.coordinates).all() and tensor.modes == same.modes
    known = pd.DataFrame({"mode": ["seller"], "entity": ["Ömer"], "label": [1]})
    known.to_excel(tmp_path / f"labels{suffix}", index=False)
    assert rl.read_labels(tmp_path / f"labels{suffix}") == rl.read_labels(known)


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_accounts_of_a_spreadsheet_may_be_called_like_nothing(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("openpyxl" if suffix == ".xlsx" else "odf")
    names = ["NA", "null", "None", "nan", "", "n/a"]
    pd.DataFrame({"reviewer": names, "product": "p"}).to_excel(tmp_path / f"reviews{suffix}", index=False)
    with pytest.warns(rl.RingleaderWarning, match="1 row left out: missing reviewer"):
        tensor = rl.read_reviews(tmp_path / f"reviews{suffix}")
    assert set(tensor.vocabulary("reviewer").decode(range(5))) == {*names} - {""}


def test_what_is_said_of_changed_names_is_of_the_kind_of_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"entity": ["=1+1"]})
    write_frame(frame, str(tmp_path / "a.xlsx"), raw=True)
    said = capsys.readouterr().err
    assert "in a spreadsheet a quote is put" in said and "--raw" not in said
    write_frame(frame, str(tmp_path / "a.csv"), raw=False)
    assert "in CSV a quote is put" in (said := capsys.readouterr().err) and "--raw leaves them" in said


def test_a_spreadsheet_holds_no_formula_that_a_name_brought(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"entity": ["=1+1", "S1"], "score": [0.5, 0.25]})
    assert put_frame(frame, str(tmp_path / "scores.xlsx"), raw=True)
    sheet = openpyxl.load_workbook(tmp_path / "scores.xlsx").active
    assert [cell.value for cell in sheet["A"]] == ["entity", "'=1+1", "S1"]
    assert all(cell.data_type != "f" for row in sheet for cell in row)


def test_score_lists_only_whom_one_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame(
        [(f"u{i % 9}", f"p{i % 7}", i % 5 + 1, 1_500_000_000 + 86_400 * i) for i in range(200)]
        + [("late", "p1", 5, 1_500_000_000 + 86_400 * 400)],
        columns=["reviewer", "product", "rating", "timestamp"],
    )
    known = pd.DataFrame({"mode": "reviewer", "entity": ["u1", "u2"], "label": [1, 0]})
    model = rl.RingDetector(epochs=1).fit(table, known)
    model.save(tmp_path / "m")

    def entities(**asked: object) -> set[str]:
        score.command(str(tmp_path / "m"), mode="reviewer", as_json=True, **asked)  # type: ignore[arg-type]
        return {row["entity"] for row in json.loads(capsys.readouterr().out)["rows"]}

    everybody = {*(f"u{i}" for i in range(9)), "late"}
    assert entities() == everybody
    assert entities(unlabelled=True) == everybody - {"u1", "u2"}
    assert entities(since="2018-06-01") == {"late"}
    assert entities(min_reviews=2) == everybody - {"late"}
    with pytest.raises(SettingsError, match="is not a date"):
        entities(since="soon")


def test_pipes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="save the output of a pipe to a file"):
        rl.read_reviews(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="standard input is not read"):
        rl.read_reviews("-")
