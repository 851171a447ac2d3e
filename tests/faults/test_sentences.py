"""What goes wrong is said in a sentence that names the file and what to do, whatever the file is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.cli.app import app
from ringleader.errors import InputError, ModelFileError, ResumeError
from ringleader.wording import defused

GOLDEN = Path(__file__).parents[1] / "golden" / "model-format-2" / "model"
LABELS = "mode,entity,label\nseller,Caf\u00e9,1\nseller,Bar,0\n"


def run(*words: Any) -> None:
    app([str(word) for word in words], standalone_mode=False)


def reviews(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 40, n)],
            "product": [f"p{i}" for i in rng.integers(0, 20, n)],
            "seller": [("Caf\u00e9", "Bar", "S3", "S4")[i] for i in rng.integers(0, 4, n)],
        }
    )


@pytest.mark.parametrize("words", [("fit", "REVIEWS", "--out", ""), ("score", "", "--mode", "seller")])
def test_a_model_without_a_name_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    reviews().to_parquet(tmp_path / "r.parquet")
    with pytest.raises(ModelFileError, match="the folder of the model has no name"):
        run(*(str(tmp_path / "r.parquet") if word == "REVIEWS" else word for word in words))


def test_a_fit_into_a_folder_of_other_things_says_so(tmp_path: Path) -> None:
    reviews().to_parquet(tmp_path / "r.parquet")
    for more, said in (
        ((), "contains other files"),
        (["--resume"], "is not a model"),
        (["--overwrite"], "is not a model"),
    ):
        with pytest.raises(ModelFileError, match=said):
            run("fit", tmp_path, "--out", tmp_path, *more)
    assert os.listdir(tmp_path) == ["r.parquet"]


WITHOUT_PRIVILEGES = """
import ctypes, os, sys
for capability in (1, 2):  # what lets root read and write whatever the mode of a file is
    ctypes.CDLL(None).prctl(24, capability)
os.execv(sys.executable, [sys.executable, "-c", "from ringleader.cli import main; main()", *sys.argv[1:]])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capabilities of Linux")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("score closed-model --mode seller", "no permission to read closed-model/manifest.json; change its mode"),
        ("history closed-model", "no permission to read closed-model/manifest.json; change its mode"),
        ("score model --mode seller --output closed/s.csv", r"writing in \S+/closed is denied; choose another folder"),
        ("report model --output closed/new/r.html", r"writing in \S+/closed is denied; choose another folder"),
        ("cores model --output closed/c", r"writing in \S+/closed is denied; choose another folder"),
        ("generate closed --reviews 1000", r"writing in \S+/closed is denied; choose another folder"),
    ],
)
def test_what_may_not_be_read_or_written_is_said_as_that(words: str, said: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "model")
    shutil.copytree(GOLDEN, tmp_path / "closed-model")
    (tmp_path / "closed-model" / "manifest.json").chmod(0)
    (tmp_path / "closed").mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGES, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and re.match(f"error: .*{said}", done.stderr.splitlines()[-1]), done.stderr
    assert os.listdir(tmp_path / "closed") == []


def test_every_format_is_named_where_one_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "r.doc").write_text("x")
    with pytest.raises(InputError, match=r"\.csv, \.tsv, \.jsonl or \.parquet, .*\.xlsx or \.ods"):
        rl.read_reviews(tmp_path / "r.doc")
    (tmp_path / "r.doc").rename(tmp_path / "r.xlsx")
    with pytest.raises(InputError, match=r"a spreadsheet is read alone, such as 'r\.xlsx'"):
        rl.read_reviews(tmp_path)


ENCODINGS = ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_are_read_in_every_encoding_or_the_option_is_named(encoding: str, kind: str, tmp_path: Path) -> None:
    table = reviews()
    text = (
        table.to_csv(index=False) if kind == "csv" else table.to_json(orient="records", lines=True, force_ascii=False)
    )
    path = tmp_path / f"r.{kind}"
    path.write_bytes(text.encode(encoding))
    marked = encoding in ("utf-8-sig", "utf-16", "utf-32")
    read = rl.read_reviews(path, encoding=None if marked else encoding)
    assert set(read.vocabulary("seller").values.to_pylist()) == set(table["seller"])
    if not marked and encoding != "latin-1":
        with pytest.raises(InputError, match=f'looks like {encoding[:6].upper()} without its mark; .*"{encoding}"'):
            rl.read_reviews(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_truth_is_read_like_any_other_table(encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rl.RingDetector(rank=2, epochs=1, random_state=0).fit(reviews()).save(tmp_path / "m")
    (tmp_path / "t.csv").write_bytes(LABELS.encode(encoding))
    more = ("--encoding", encoding) if encoding == "latin-1" else ()
    run("evaluate", tmp_path / "m", "--truth", tmp_path / "t.csv", *more, "--json")
    assert '"accounts": 2' in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e.endswith("e") or e == "latin-1"])
def test_labels_in_another_encoding_name_the_option(encoding: str, kind: str, tmp_path: Path) -> None:
    line = '{"mode": "seller", "entity": "Caf\u00e9", "label": 1}\n'
    (tmp_path / f"l.{kind}").write_bytes((LABELS if kind == "csv" else line).encode(encoding))
    with pytest.raises(InputError, match=rf"l\.{kind}.* encoding=\"{encoding}\""):
        rl.read_labels(tmp_path / f"l.{kind}")
    assert "Caf\u00e9" in {known.entity for known in rl.read_labels(tmp_path / f"l.{kind}", encoding=encoding).entries}


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_a_parquet_file_with_flipped_bits_is_named_among_others(at: float, tmp_path: Path) -> None:
    """Flips that leave valid values are read: the format has no checksum unless its writer adds one."""
    for name in ("a", "b", "c"):
        reviews(40_000).to_parquet(tmp_path / f"{name}.parquet", compression="snappy")
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    for k in range(64):
        content[int(at * len(content)) + k] ^= 0xFF
    (tmp_path / "b.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"'b\.parquet' is damaged: .*; fetch or write it again"):
        rl.read_reviews(tmp_path)


@pytest.mark.parametrize("source", ["", "*/*.parquet"])
def test_a_damaged_file_of_a_partitioned_folder_is_named_with_its_folder(source: str, tmp_path: Path) -> None:
    for day in ("1", "2", "3"):
        (tmp_path / f"day={day}").mkdir()
        reviews().to_parquet(tmp_path / f"day={day}" / "part.0.parquet")
    (tmp_path / "day=2" / "part.0.parquet").write_bytes(b"PAR1garbage")
    with pytest.raises(InputError, match=r"day=2/part\.0\.parquet' is not a Parquet file, or is truncated or damaged"):
        rl.read_reviews(tmp_path / source)


def test_a_parquet_file_whose_footer_is_damaged_is_named(tmp_path: Path) -> None:
    reviews().to_parquet(tmp_path / "a.parquet")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    for k in range(40, 80):
        content[-k] ^= 0xFF
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"'a\.parquet' is not a Parquet file, or is truncated or damaged"):
        rl.read_reviews(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"'a\.parquet' is not a Parquet file, or is truncated or damaged"):
        rl.read_labels(tmp_path / "a.parquet")


@pytest.mark.parametrize("end", ["\r", "\u2028", "\u2029", "\x85"])
def test_no_name_ends_a_row_of_a_csv(end: str, tmp_path: Path) -> None:
    table = reviews()
    name = f"Bar{end}S9,=1+1"
    table["seller"] = table["seller"].replace("Bar", name)
    rl.RingDetector(rank=2, epochs=1, random_state=0).fit(table).save(tmp_path / "m")
    run("score", tmp_path / "m", "--mode", "seller", "--output", tmp_path / "s.csv")
    text = (tmp_path / "s.csv").read_text(encoding="utf-8")
    assert end not in text and len(text.splitlines()) == 1 + table["seller"].nunique()
    assert defused(name) == name.replace(end, f"\\u{ord(end):04x}") and defused(name) in set(
        pd.read_csv(tmp_path / "s.csv")["entity"]
    )
    run("score", tmp_path / "m", "--mode", "seller", "--output", tmp_path / "raw.csv", "--raw")
    assert end.encode() in (tmp_path / "raw.csv").read_bytes()


def test_a_complete_model_is_not_taken_for_a_stopped_fit(tmp_path: Path) -> None:
    detector = rl.RingDetector(rank=2, epochs=1, random_state=0)
    detector.fit(reviews(), checkpoint=tmp_path / "m")
    other = reviews(200)  # a fit of these with --overwrite, stopped before its first checkpoint, leaves nothing
    with pytest.raises(ResumeError, match=r"no stopped fit .* is complete, and differs .*the reviews changed"):
        rl.RingDetector(rank=2, epochs=1, random_state=0).fit(other, checkpoint=tmp_path / "m", resume=True)


def test_every_part_that_is_a_link_is_refused_by_name(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "real")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "reached").symlink_to("real")
    rl.load(tmp_path / "reached").scores("seller")  # the folder itself may be reached through a link
    for path in sorted((tmp_path / "real").iterdir()):
        path.rename(tmp_path / "elsewhere" / path.name)
        path.symlink_to(Path("..") / "elsewhere" / path.name)  # the same bytes: the checksum fits
        with pytest.raises(ModelFileError, match=f"{path.name}.* is a link, not a regular file"):
            rl.load(tmp_path / "real")
        path.unlink()
        (tmp_path / "elsewhere" / path.name).rename(path)
    rl.load(tmp_path / "real").scores("seller")
