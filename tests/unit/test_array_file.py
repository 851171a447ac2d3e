"""Files of arrays are those that safetensors writes, and nothing is in memory twice while they are written or read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from ringleader.runtime import mapped
from ringleader.shares.rows import RowBlocks
from ringleader.snapshot.array_file import KINDS, read_arrays, write_arrays


@pytest.mark.parametrize("piece", [1, 50, 1 << 24])
def test_a_file_is_the_one_that_safetensors_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(mapped, "PIECE", piece)
    rng = np.random.default_rng(0)
    arrays = {f"{name} {kind}": rng.integers(0, 9, (7, 3)).astype(kind) for kind in KINDS for name in ("b", "a")}
    arrays |= {
        "none": np.zeros((0, 4), np.float32),
        "one": np.array(2.5),
        'quoted "é\n': np.ones(1),
        "flat": np.arange(5),
    }
    arrays |= {
        "column": np.arange(12).reshape(4, 3)[:, 1],
        "every other": np.arange(10.0)[::2],
        "no columns": np.ones((3, 0)),
    }
    cut = RowBlocks(7, arrays["a int32"], [(5, arrays["a int32"][5:]), (0, arrays["a int32"][:5])])
    for number, chosen in enumerate((arrays, {}, {"x": np.ones(3, bool)})):
        write_arrays(chosen | ({"a int32": cut} if "a int32" in chosen else {}), str(tmp_path / f"ours {number}"))
        save_file({name: np.ascontiguousarray(array) for name, array in chosen.items()}, tmp_path / f"theirs {number}")
        assert (tmp_path / f"ours {number}").read_bytes() == (tmp_path / f"theirs {number}").read_bytes()
    content = np.fromfile(tmp_path / "ours 0", np.uint8)
    theirs = load_file(tmp_path / "ours 0")
    for found in (theirs, read_arrays(content)):
        assert all(np.array_equal(found[name], np.atleast_1d(array)) for name, array in arrays.items())
        assert all(array.dtype == theirs[name].dtype for name, array in found.items())
    assert all(np.shares_memory(array, content) for array in read_arrays(content).values() if array.size)


def test_arrays_of_others_that_are_not_aligned_are_copied() -> None:
    written = save({"x": np.arange(3.0)})
    size = int.from_bytes(written[:8], "little") + 1
    content = np.frombuffer(
        size.to_bytes(8, "little") + written[8 : 8 + size - 1] + b" " + written[8 + size - 1 :], np.uint8
    )
    found = read_arrays(content)["x"]
    assert found.flags.aligned
    assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        "{",
        '{"x": 3}',
        '{"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}',
        '{"x": {"dtype": "F64", "shape": [-1, -1], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": "O8", "shape": [1], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        '{"x": {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]}}',
    ],
)
def test_what_is_no_file_of_arrays_is_refused(header: str) -> None:
    content = len(header).to_bytes(8, "little") + header.encode() + bytes(8)
    with pytest.raises((ValueError, LookupError, TypeError)):
        read_arrays(np.frombuffer(content, np.uint8))
    for few in (b"", bytes(7), (9).to_bytes(8, "little") + b"{}"):
        with pytest.raises(ValueError, match="header"):
            read_arrays(np.frombuffer(few, np.uint8))


def test_blocks_that_are_not_all_of_an_array_are_no_array() -> None:
    with pytest.raises(ValueError, match="blocks have 2 rows where there are 3"):
        RowBlocks(3, np.ones((1, 2)), [(0, np.ones((2, 2)))])


def test_writing_takes_the_memory_of_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "PIECE", 1 << 16)
    arrays = {"whole": np.ones((200_000, 5)), "strided": np.ones((200_000, 5))[:, 1:3]}
    tracemalloc.start()
    write_arrays(arrays, str(tmp_path / "file"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20
