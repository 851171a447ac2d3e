"""Reading by workers: the tensor and the report of one process, whoever reads which file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from in_process import InProcess, Mortal

import ringleader as rl
from ringleader.errors import InputError, SchemaError, WorkerLost
from ringleader.runtime.peers import Alone
from ringleader.tables.distinct import number_ids
from ringleader.tensor.sparse import SparseTensor


def review_files(folder: Path, *, bad: bool = False, files: int = 5, rows: int = 400) -> Path:
    """Parquet and CSV in turn; ids beyond ASCII, copies of rows, and with ``bad`` rows that cannot be used."""
    rng = np.random.default_rng(0)
    for i in range(files):
        frame = pd.DataFrame(
            {
                "reviewer": [f"é{x * 7919 % 1000}" if x % 3 else f"u{x}" for x in rng.integers(0, 90, rows)],
                "product": rng.integers(0, 300, rows),
                "seller": [f"s{x}" for x in rng.integers(0, 9, rows)],
                "rating": rng.integers(1, 6, rows),
                "timestamp": rng.integers(1_500_000_000, 1_600_000_000, rows),
            }
        )
        frame = pd.concat([frame, frame.iloc[:5]])
        if bad and i % 2:
            frame = frame.astype(object)
            frame.iloc[3, 0], frame.iloc[7, 3], frame.iloc[8, 4] = "", "x", "soon"
            frame.iloc[10:13, 2] = None
        name = f"part-{i}.{'csv' if i % 2 else 'parquet'}"
        frame.to_csv(folder / name, index=False) if i % 2 else frame.to_parquet(folder / name, index=False)
        if bad and i % 2:
            with (folder / name).open("a", encoding="utf-8") as handle:
                handle.write('a,b\n"c,d\n')
    return folder


def assert_same(found: SparseTensor, expected: SparseTensor) -> None:
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.exact, expected.exact)
    for a, b in zip(found.vocabularies, expected.vocabularies, strict=True):
        assert (a.mode, a.kind, a.bin_seconds, a.edges) == (b.mode, b.kind, b.bin_seconds, b.edges)
        assert a.values.equals(b.values)
    assert found.report == expected.report


@pytest.mark.parametrize(
    ("workers", "bad"),
    [
        *((1, False), (2, True), (3, False), (8, True)),
        *(pytest.param(*other, marks=pytest.mark.slow) for other in ((1, True), (2, False), (3, True), (8, False))),
    ],
)
def test_workers_read_the_tensor_and_the_report_of_one_process(tmp_path: Path, bad: bool, workers: int) -> None:
    folder = review_files(tmp_path, bad=bad)
    expected = rl.read_reviews(folder)
    assert_same(rl.read_reviews(folder, runtime=InProcess(workers)), expected)
    assert bool(expected.report.rejected) == bad  # type: ignore[union-attr]
    assert expected.report.duplicates > 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "columns",
    [
        {"timestamp": ["2020-01-05T10:00:00", "20200110", "1578400000"] * 20},  # the unit is decided on all files
        {"timestamp": pd.date_range("2020-01-01", periods=60, freq="D")},
        {"rating": np.linspace(0, 10, 60)},  # too many distinct values: bins of all files together
        {"device": ["7", "8", "x"] * 20, "timestamp": np.arange(60) + 1_500_000_000_000},
    ],
    ids=["mixed times", "timestamps", "binned numbers", "categories"],
)
def test_what_is_decided_on_the_whole_column_is_decided_on_all_files(tmp_path: Path, columns: dict) -> None:
    rng = np.random.default_rng(1)
    for i in range(3):
        frame = pd.DataFrame({"reviewer": rng.integers(0, 20, 60), "product": rng.integers(0, 30, 60)})
        for name, values in columns.items():
            frame[name] = np.roll(np.asarray(values), i)[: 60 - i].tolist() + list(values[:i])
        frame.to_parquet(tmp_path / f"{i}.parquet")
    modes = ["reviewer", "product", "device=device:category"] if "device" in columns else None
    expected = rl.read_reviews(tmp_path, modes=modes)
    for workers in (2, 3):
        assert_same(rl.read_reviews(tmp_path, modes=modes, runtime=InProcess(workers)), expected)


def test_workers_cut_times_to_the_microsecond_as_one_process_does(tmp_path: Path) -> None:
    nanoseconds = 1_500_000_000 * 10**9 + np.arange(60) * 123_457_011
    moments = pd.Series(nanoseconds).astype("datetime64[ns, UTC]")
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(60)], "product": "p", "timestamp": nanoseconds})
    for kind, times in (("numbers", nanoseconds), ("timestamps", moments)):
        folder = tmp_path / kind
        folder.mkdir()
        other = table.assign(timestamp=times)
        for i in range(2):  # each review stands in both files
            other.to_parquet(folder / f"{i}.parquet") if i else other.to_csv(folder / f"{i}.csv", index=False)
        expected = rl.read_reviews(folder)
        assert sorted(expected.exact) == sorted((nanoseconds // 1000).tolist() * 2)  # type: ignore[arg-type]
        assert expected.report.duplicates == 60  # type: ignore[union-attr]
        for workers in (2, 3):
            assert_same(rl.read_reviews(folder, runtime=InProcess(workers)), expected)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"PAR1 cut short", InputError, "'part-3.parquet' is not a Parquet file, or is truncated"),
        (None, SchemaError, r"'part-3.parquet' gives the modes reviewer, product, but 'part-[02].parquet' gives"),
    ],
)
def test_a_bad_file_among_good_ones_is_named_as_one_process_names_it(
    tmp_path: Path, content: bytes | None, error: type[Exception], message: str
) -> None:
    folder = review_files(tmp_path, files=3)
    if content is None:
        pd.DataFrame({"reviewer": ["a"], "product": ["b"]}).to_parquet(folder / "part-3.parquet")
    else:
        (folder / "part-3.parquet").write_bytes(content)
    for runtime in (None, InProcess(2), InProcess(3)):
        with pytest.raises(error, match=message):
            rl.read_reviews(folder, runtime=runtime)


def test_files_are_read_again_where_a_worker_is_lost(tmp_path: Path) -> None:
    folder = review_files(tmp_path)
    with pytest.warns(UserWarning, match="worker 1 is gone; new workers read the files again"):
        found = rl.read_reviews(folder, runtime=Mortal(2, {1}))
    assert_same(found, rl.read_reviews(folder))
    with pytest.warns(UserWarning), pytest.raises(WorkerLost, match="the files were read 3 times; look at its machine"):
        rl.read_reviews(folder, runtime=Mortal(2, {1, 2, 3}))


def test_strict_reading_refuses_with_the_same_sentence(tmp_path: Path) -> None:
    folder = review_files(tmp_path, bad=True)
    said = []
    for runtime in (None, InProcess(3)):
        with pytest.raises(InputError) as refused:
            rl.read_reviews(folder, strict=True, runtime=runtime)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_not_one_usable_row_is_explained_as_by_one_process(tmp_path: Path) -> None:
    for i in range(3):
        frame = pd.DataFrame({"reviewer": ["a", "b"], "product": ["x", "y"], "timestamp": ["soon", "later"]})
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
    said = []
    for runtime in (None, InProcess(2)):
        with pytest.raises(InputError) as refused:
            rl.read_reviews(tmp_path, runtime=runtime)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_ids_are_numbered_as_sorted_by_one_process() -> None:
    rng = np.random.default_rng(2)
    alphabet = np.array(list("abzé漢😀~"))
    ids = [["".join(rng.choice(alphabet, rng.integers(1, 6))) for _ in range(n)] for n in (0, 1, 500, 90)]
    sets = [pa.array(sorted(set(some)), pa.large_string()) for some in ids]
    every = sorted(set().union(*ids))
    numbered = InProcess(4).run(lambda memory, peers, some: number_ids(peers, some), [(some,) for some in sets])
    assert [text for part in numbered for text in part.range.to_pylist()] == every
    for some, part in zip(sets, numbered, strict=True):
        assert [every[code] for code in part.codes] == some.to_pylist()
        assert part.size == len(every)
    alone = number_ids(Alone(), pa.array(every, pa.large_string()))
    assert alone.codes.tolist() == list(range(len(every)))
