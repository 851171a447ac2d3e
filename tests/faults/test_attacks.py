"""What attacks found in readers and settings, each as the test that would have found it."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ringleader as rl
from ringleader.errors import InputError, RingleaderError, SchemaError
from ringleader.known.covariates import MOST_COLUMNS, read_covariates
from ringleader.runtime.machine import least_address_space
from ringleader.tables import files, row_reader, spreadsheets
from ringleader.tables.relation import UNPARSED_EXAMPLES
from ringleader.wording import defused

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.filterwarnings("default::ringleader.errors.RingleaderWarning"),
]
CORPUS = Path(__file__).parent / "corpus"
LABELS = pd.DataFrame({"mode": ["seller"] * 8, "entity": [f"s{i}" for i in range(8)], "label": [1, 0] * 4})


def table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "reviewer": [f"r{i}" for i in rng.integers(0, 40, rows)],
            "product": [f"p{i}" for i in rng.integers(0, 20, rows)],
            "seller": [f"s{i}" for i in rng.integers(0, 10, rows)],
            "rating": rng.integers(1, 6, rows).astype(float),
            "timestamp": rng.integers(1_500_000_000, 1_520_000_000, rows),
        }
    )


def test_a_rating_too_large_to_compute_with_is_refused_as_a_row() -> None:
    reviews = table()
    reviews.loc[5, "rating"] = 1e155
    model = rl.RingDetector(rank=2, epochs=1).fit(reviews, LABELS)
    assert model.report_["rejected"] == {"rating is too large": 1}
    more = table(50, seed=1)
    more.loc[3, "rating"] = -1e200
    model.partial_fit(more)
    model.partial_fit(table(30, seed=2))
    assert np.isfinite(model.scores("seller")["score"]).all()


def test_a_header_above_the_limit_of_the_csv_module_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(f'reviewer,product,"{"x" * 200_000}"\na,b,c\nd,e,f\n')
    assert rl.read_reviews(path).shape == (2, 2)
    path.write_text(
        ",".join(["reviewer", "product", *(f"c{i}" for i in range(30_000))]) + "\na,b\n" + "c,d" + ",1" * 30_000
    )
    report = rl.read_reviews(path).report
    assert report is not None and (report.used, dict(report.rejected)) == (1, {"too few fields": 1})
    path.write_text("reviewer,product," + "x" * (1 << 20) + "\na,b,c\n")
    with pytest.raises(InputError, match="longer than a megabyte"):
        rl.read_reviews(path)
    path.write_text('reviewer,product,"x\n' + "a,b,c\n" * 10)
    with pytest.raises(InputError, match="quote out of place"):
        rl.read_reviews(path)


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\u0085"])
def test_a_line_separator_of_unicode_belongs_to_the_name(letter: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(f"reviewer,no{letter}te,product\n" + "a,n,b\nc,n,d\n", encoding="utf-8")
    tensor = rl.read_reviews(path)
    assert tensor.report is not None
    assert tensor.report.used == 2
    assert rl.read_reviews(path, columns={"product": f"no{letter}te"}).modes == ("reviewer", "product")


def test_the_first_line_behind_a_byte_order_mark_counts(tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    lines = [json.dumps({"reviewer": f"r{i}", "product": "p"}) for i in range(5)]
    path.write_text("\n".join([*lines, "no object"]), encoding="utf-8-sig")
    report = rl.read_reviews(path).report
    assert report is not None
    assert (report.used, dict(report.rejected)) == (5, {"not a JSON object": 1})


@pytest.mark.parametrize("place", ["last", "middle"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_line_longer_than_any_review_is_counted(
    place: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringleader.tables import formats

    for module in (row_reader, formats):
        monkeypatch.setattr(module, "LONGEST_LINE", 100_000)
    path = tmp_path / f"long.{kind}"
    lines = ["reviewer,product", "a,b", "c,d"] if kind == "csv" else ['{"reviewer":"a","product":"b"}'] * 2
    long = "x" * 1_000_000
    lines = [*lines, long] if place == "last" else [*lines[:2], long, *lines[2:]]
    path.write_text("\n".join(lines))
    report = rl.read_reviews(path).report
    assert report is not None
    assert dict(report.rejected) == {"line too long": 1}
    assert report.rows == report.used + 1 == 3


def test_rejected_rows_are_counted_and_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('reviewer,product\na,b\n"x' + "a\n" * 30_000)
    bad = row_reader.to_parquet(row_reader.csv_rows(path, ",", 2), [0, 1], tmp_path / "rows.parquet")
    assert bad.counts == {"quote out of place": 1, "too few fields": 29_999}
    assert len(bad.examples) == UNPARSED_EXAMPLES


def test_a_packed_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as out:
        out.write(b"reviewer,product\n" + b"a,b\n" * 3_000_000)
    with pytest.raises(InputError, match="200 times its size"):
        rl.read_reviews(path)


@pytest.mark.parametrize(
    ("name", "number"), [("far-cell.xlsx", "17,179,869,184"), ("repeated.ods", "17,184"), ("spaces.ods", "999,999,999")]
)
def test_a_sheet_with_room_for_too_many_cells_is_refused(name: str, number: str) -> None:
    with pytest.raises(InputError, match=number):
        rl.read_reviews(CORPUS / f"reviews-found-{name}")


def test_a_spreadsheet_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheets, "MOST_UNPACKED", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("xl/worksheets/sheet1.xml", b"a" * 10_000_000)
    with pytest.raises(InputError, match="200 times its size"):
        rl.read_labels(tmp_path / "bomb.xlsx")


def test_a_damaged_part_of_a_spreadsheet_is_not_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(CORPUS / "reviews-sheet.ods") as good, zipfile.ZipFile(tmp_path / "odd.ods", "w") as odd:
        for name in good.namelist():
            odd.writestr(name, b"<no \x1b[31m xml" if name == "styles.xml" else good.read(name))
    assert rl.read_reviews(tmp_path / "odd.ods").shape == (3, 2, 2, 3, 3)  # the cells are whole
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("column", ["entity", "label", "x"])
def test_times_out_of_range_in_side_tables_are_refused_by_column(column: str, tmp_path: Path) -> None:
    columns: dict[str, Any] = {"mode": ["seller"], "entity": ["s1"], "label": [1], "x": [1.0]}
    columns[column] = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    read = read_covariates if column == "x" else rl.read_labels
    with pytest.raises(InputError, match=f"column '{column}'.* out of range"):
        read(tmp_path / "odd.parquet")


@pytest.mark.parametrize("text", ['"\\ud800"', '["\\ud800"]', '{"\\udfff": 1}'])
def test_lone_surrogates_in_side_tables_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(f'{{"mode": "seller", "entity": {text}, "label": 1}}\n')
    with pytest.raises(InputError, match="not valid Unicode"):
        rl.read_labels(path)
    path.write_text('{"mode": "seller", "entity": "s1", "\\ud800": 1}\n')
    with pytest.raises(InputError, match="not valid Unicode"):
        read_covariates(path)


def test_a_name_that_is_no_unicode_is_nobody() -> None:
    assert rl.read_reviews(table()).vocabulary("seller").lookup(["s1", "\ud800"])[1] == -1


def test_two_covariate_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("mode,entity,x,x\nseller,s1,1,2\n")
    with pytest.raises(SchemaError, match="two columns 'x'"):
        read_covariates(tmp_path / "twice.csv")


def test_more_covariates_than_a_head_can_bear_are_refused() -> None:
    frame = pd.DataFrame({"mode": ["seller"], "entity": ["s1"], **{f"x{i}": [1.0] for i in range(MOST_COLUMNS + 1)}})
    with pytest.raises(InputError, match="301 columns"):
        read_covariates(frame)


def test_json_lines_whose_keys_all_differ_are_read_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringleader.tables import formats

    looked_at = []
    called = formats.roles_called

    def counting(names: Any) -> set[str]:
        looked_at.append(len(list(names)))
        return called(names)

    monkeypatch.setattr(formats, "roles_called", counting)
    path = tmp_path / "keys.jsonl"
    path.write_text("".join(f'{{"reviewer":"r{i % 9}","product":"p{i % 7}","k{i}":1}}\n' for i in range(3000)))
    assert rl.read_reviews(path).shape == (9, 7)
    assert sum(looked_at) == 3002  # every key once


def test_columns_without_a_known_name_are_compared_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringleader.tables import schema

    compared = []
    monkeypatch.setattr(schema, "_likeness", lambda name, known: compared.append(name) or 0.0)
    columns = 3 * schema.MOST_COMPARED
    pq.write_table(pa.table({f"c{i}": [1] for i in range(columns)}), tmp_path / "wide.parquet")
    with pytest.raises(SchemaError, match="no column for 'reviewer'"):
        rl.read_reviews(tmp_path / "wide.parquet")
    assert len(set(compared)) == schema.MOST_COMPARED


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize(
    "name", [".manifest.json.partial", ".state-1.safetensors.partial", "state-1.safetensors", ".lock"]
)
def test_a_planted_link_is_not_written_through(name: str, tmp_path: Path) -> None:
    model, outside = tmp_path / "model", tmp_path / "outside"
    outside.write_text("mine")
    model.mkdir()
    (model / name).symlink_to(outside)
    with contextlib.suppress(RingleaderError):  # refused or written beside, as the link is one that it knows or not
        rl.RingDetector(rank=2, epochs=1).fit(table(60)).save(model)
    assert outside.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("megabytes", [400, 700, 1050, 1300, 2300])
@pytest.mark.parametrize("command", ["check", "fit", "score", "report"])
def test_too_little_memory_ends_in_a_sentence(command: str, megabytes: int, tmp_path: Path) -> None:
    import resource

    table(3000).to_csv(tmp_path / "reviews.csv", index=False)
    model = Path(__file__).parents[1] / "golden" / "model-format-2" / "model"
    words = {
        "check": ["check", tmp_path / "reviews.csv"],
        "fit": ["fit", tmp_path / "reviews.csv", "--out", tmp_path / "m", "--epochs", "1"],
        "score": ["score", model, "--mode", "seller"],
        "report": ["report", model, "--output", tmp_path / "r.html"],
    }[command]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    line = [sys.executable, "-c", "from ringleader.cli import main; main()", *map(str, words)]
    done = subprocess.run(line, preexec_fn=limit, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert ("ulimit -v" in done.stderr) == (megabytes << 20 < least_address_space())


def test_a_rank_far_above_the_data_and_labels_of_weeks_with_a_zone_warn_of_nothing() -> None:
    model = rl.RingDetector(rank=60).fit(table(120))
    assert np.isfinite(model.scores("seller")["score"]).all()
    weeks = model.tensor_.vocabulary("week")
    assert weeks.lookup([str(weeks.decode([0])[0]) + "+00:00"])[0] == 0
    assert weeks.lookup(["2017-07-13T09:00:00+09:00"])[0] == weeks.lookup(["2017-07-13"])[0]


def test_a_formula_behind_another_separator_is_defused() -> None:
    assert defused("a;=1+1") == "a;'=1+1"
    assert defused('a; "@x') == "a; \"'@x"
    assert defused("a|-1") == "a|'-1"
    assert defused("mother-in-law; 3+4") == "mother-in-law; 3+4"


@pytest.mark.skipif(sys.platform == "win32", reason="such names are none there")
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_no_id_key_or_file_name_reaches_sql(kind: str, tmp_path: Path) -> None:
    names = ["'; DROP TABLE frame; --", 'a"; --', "a') UNION SELECT 1 --", "$1", "\\'", "x'||y", "*", "{0}", "%s"]
    for key in names:
        table = pd.DataFrame({"reviewer": names, key: names[::-1], "of no matter '\"": 1})
        path = tmp_path / f"a{key.replace('*', '')}.{kind}"
        if kind == "csv":
            table.to_csv(path, index=False)
        elif kind == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            table.to_parquet(path)
        tensor = rl.read_reviews(path, columns={"product": key})
        assert sorted(tensor.decode()[["reviewer", "product"]].itertuples(index=False, name=None)) == sorted(
            zip(names, names[::-1], strict=True)
        )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_while_a_table_is_read_ends_in_its_status_and_leaves_no_folder(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    big = tmp_path / "big.csv"
    rows = "".join(f"r{i % 5003},p{i % 2003},s{i % 307},{i % 5 + 1},{1_500_000_000 + i}\n" for i in range(200_000))
    big.write_text("reviewer,product,seller,rating,timestamp\n" + rows * 8)
    line = [sys.executable, "-c", "from ringleader.cli import main; main()", "check", str(big)]
    place = tmp_path / "temporary"
    place.mkdir()
    process = subprocess.Popen([*line, "--temp-directory", str(place)], stderr=subprocess.PIPE, text=True)
    while not list(place.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=120)[1]
    assert process.returncode in (status, 0)  # 0 where it was done before the signal came
    assert "bug" not in said
    assert not list(place.iterdir())


def test_no_probability_is_0_or_1_and_nothing_is_nan_at_the_edges() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reviews, settings in (
            (table(1), {}),
            (table(3), {}),
            (table(60), {"prevalence": 1e-12}),
            (table(60), {"prevalence": 1 - 1e-12}),
            (table(60).assign(rating=1e30), {}),
            (table(60).assign(timestamp=0), {}),
        ):
            model = rl.RingDetector(rank=2, epochs=1, **settings).fit(reviews, LABELS)
            for mode in model.tensor_.modes:
                scores = model.scores(mode)
                assert np.isfinite(scores["score"].astype(float)).all()
                for name in ("probability", "lower", "upper"):
                    shares = scores[name].dropna().astype(float)
                    assert ((shares > 0) & (shares < 1)).all()


@pytest.mark.skipif(os.name == "nt", reason="timers of Unix")
def test_a_signal_within_a_finaliser_is_not_lost() -> None:
    """What is raised in __del__, or in what that calls, is printed and forgotten: the command would go on."""
    script = (
        "import os, signal, time\n"
        "from ringleader.cli.progress import stop_signals\n"
        "class Held:\n"
        "    def close(self): os.kill(os.getpid(), signal.SIGTERM); sum(range(1000))\n"
        "    def __del__(self): self.close()\n"
        "with stop_signals():\n"
        "    held = Held(); del held\n"
        "    time.sleep(20)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "")


@pytest.mark.skipif(os.name == "nt", reason="timers of Unix")
def test_a_ctrl_c_while_a_kernel_is_loaded_is_not_lost() -> None:
    """llvmlite is called from C then: what is raised there is printed and forgotten, and the command would go on."""
    script = (
        "import ctypes, os, signal, sys, time\n"
        "from ringleader.cli import app, main\n"
        "@ctypes.CFUNCTYPE(None)\n"
        "def _raw_object_cache_getbuffer(): os.kill(os.getpid(), signal.SIGINT); sum(range(1000))\n"
        "def command(): _raw_object_cache_getbuffer(); time.sleep(20)\n"
        "app.app = command\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "stopped\n")
