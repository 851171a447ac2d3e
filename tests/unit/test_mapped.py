"""Arrays in temporary files: what they hold, what a process has of them in memory, and what a full disk says."""

from __future__ import annotations

import gc
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from ringleader.errors import StorageError
from ringleader.runtime import machine, mapped
from ringleader.runtime.mapped import is_mapped


def file_pages() -> int:
    """Bytes of files that this process has in memory."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition("RssFile:")[2].split()[0])


def test_rows_of_several_arrays_are_one_below_the_other_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "PIECE", 16)  # a row and a half of these
    parts = [np.arange(12.0).reshape(4, 3), np.zeros((0, 3)), -np.ones((2, 3))]
    rows = mapped.mapped_rows(parts)
    assert is_mapped(rows) and is_mapped(rows[1:, :2])
    assert not is_mapped(parts[0])
    np.testing.assert_array_equal(rows, np.concatenate(parts))
    assert rows.dtype == np.float64
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(again, rows)


def test_arrays_side_by_side_are_in_a_file_where_one_of_them_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "PIECE", 16)
    arrays = [np.arange(5.0), np.ones(5)]
    assert not is_mapped(mapped.mapped_stack(arrays))
    stacked = mapped.mapped_stack([mapped.mapped_rows(arrays[:1]), arrays[1]])
    assert is_mapped(stacked) and stacked.dtype == np.float64
    np.testing.assert_array_equal(stacked, np.stack(arrays))
    assert mapped.mapped_stack([mapped.mapped_array((0,), np.int32)] * 2).shape == (2, 0)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_an_empty_array_needs_no_file(shape: tuple[int, ...]) -> None:
    array = mapped.mapped_array(shape, np.int32)
    assert array.shape == shape and array.dtype == np.int32
    assert not is_mapped(array)


def test_pieces_are_ranges_of_all_rows_and_none_is_larger_than_asked() -> None:
    array = np.zeros((10, 4), np.int32)
    assert [(p.start, p.stop) for p in mapped.pieces(array, 48)] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert [(p.start, p.stop) for p in mapped.pieces(array, 1)] == [(i, i + 1) for i in range(10)]
    assert [(p.start, p.stop) for p in mapped.pieces(array[:, 1], 48)] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert list(mapped.pieces(array[:0])) == []
    assert list(mapped.pieces(np.zeros((2, 0)))) == [slice(0, 2)]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_what_is_written_to_a_file_leaves_the_memory_of_the_process_and_stays_what_it_is() -> None:
    size = 8 * 2**20
    before = file_pages()
    array = mapped.mapped_array((size,), np.uint8)
    array[:] = 7
    assert file_pages() - before >= size
    machine.return_memory()
    assert file_pages() - before < size // 4
    most = 0
    for piece in mapped.pieces(array, 2**20):
        assert (array[piece] == 7).all()
        most = max(most, file_pages() - before)
    assert most < size // 2


def test_the_space_comes_back_with_the_last_view() -> None:
    gc.collect()  # what other tests left
    array = mapped.mapped_array((1000,), np.int64)
    view, files = array[10:20], len(machine.MAPPED)
    del array
    gc.collect()
    assert len(machine.MAPPED) == files
    del view
    gc.collect()
    assert len(machine.MAPPED) == files - 1


def test_a_full_disk_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*about: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped, "reserve", full)
    with pytest.raises(StorageError, match=r"cannot keep 8 MB in a temporary file: No space left on device; .*TMPDIR"):
        mapped.mapped_array((1_000_000,), np.int64)


def test_an_array_in_a_file_is_a_copy_that_nobody_writes_to() -> None:
    array = np.arange(12.0).reshape(4, 3)
    copy = mapped.in_file(array)
    assert is_mapped(copy) and not copy.flags.writeable
    np.testing.assert_array_equal(copy, array)
    assert mapped.in_file(copy) is copy
