"""Large arrays are cut into files by their sizes alone, and come back bit for bit; what does not fit is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringleader.errors import ModelFileError
from ringleader.runtime.executor import using_threads
from ringleader.snapshot import folder as store
from ringleader.snapshot import pieces
from ringleader.snapshot.folder import ModelPart
from ringleader.snapshot.pieces import Cuts, Shape, cut, file_names
from ringleader.snapshot.place import Entry, Place

ARRAYS: dict[str, Any] = {
    "factors": np.arange(700, dtype=np.float32).reshape(100, 7),
    "second": np.arange(303, dtype=np.float64).reshape(101, 3),
    "small": np.arange(4),
    "nothing": np.zeros((0, 7), np.float32),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGEST", 600)


def saved(folder: Path, write: Any = None) -> dict[str, Any]:
    store.save(folder, {"complete": True}, [ModelPart("state", ARRAYS, lambda: ARRAYS, write)])
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def test_a_large_part_is_several_files_and_comes_back_bit_for_bit(tmp_path: Path) -> None:
    manifest = saved(tmp_path / "m")
    assert manifest["version"] == 4
    assert manifest["files"]["state"]["rows"] == {"factors": 100, "second": 101}
    assert len(manifest["files"]["state"]["pieces"]) == 5  # 600 bytes hold 21 rows of 28 bytes, or 25 of 24
    loaded = store.load(tmp_path / "m").arrays("state")
    assert loaded.keys() == ARRAYS.keys()
    assert all(loaded[name].tobytes() == array.tobytes() for name, array in ARRAYS.items())
    assert all(loaded[name].shape == array.shape for name, array in ARRAYS.items())


def test_a_small_model_has_the_format_that_older_versions_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGEST", 1 << 20)
    manifest = saved(tmp_path / "m")
    assert manifest["version"] == 3
    assert sorted(manifest["files"]["state"]) == ["bytes", "name", "sha256"]


def test_the_cuts_follow_from_the_sizes() -> None:
    cuts = cut({"a": Shape(10, 4), "b": Shape(3, 100), "c": Shape(1, 10**6)}, largest=16)
    assert cuts.rows == {"a": 10, "b": 3}
    assert cuts.spans[0] == {"a": (0, 4), "b": (0, 1), "c": (0, 1)}
    assert cuts.spans[2] == {"a": (8, 10), "b": (2, 3)}


def test_the_folder_is_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    for threads in (1, 2, 5):
        with using_threads(threads):
            saved(tmp_path / str(threads))
    contents = [{path.name: path.read_bytes() for path in (tmp_path / str(threads)).iterdir()} for threads in (1, 2, 5)]
    assert len(contents[0]) == 6
    assert contents[0] == contents[1] == contents[2]


def test_the_piece_by_which_others_are_known_is_there_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[list[str]] = []

    def write(place: Place, name: str, arrays: Any) -> Entry:
        before.append([other for other in place.names() if other.endswith(".safetensors")])
        return pieces.write_piece(place, name, arrays)

    monkeypatch.setattr(store, "write_piece", write)
    with using_threads(3):
        saved(tmp_path / "m")
    assert before[0] == []
    assert all("state.00000-1.safetensors" in names for names in before[1:])


def test_pieces_that_others_write_are_listed_as_if_written_here(tmp_path: Path) -> None:
    def elsewhere(place: Place, cuts: Cuts, names: list[str]) -> list[Entry]:
        spans = zip(names, cuts.spans, strict=True)
        return [pieces.write_piece(place, name, pieces.piece_of(ARRAYS, span)) for name, span in spans]

    assert saved(tmp_path / "a") == saved(tmp_path / "b", elsewhere)
    assert saved(tmp_path / "c", lambda *_: None)["files"] == saved(tmp_path / "d")["files"]


def test_pieces_that_no_manifest_names_any_more_are_removed(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    store.save(tmp_path / "m", {"complete": True, "x": 2}, [ModelPart("state", 1, lambda: {"a": np.zeros(3)})], keep=0)
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["manifest.json", "state-2.safetensors"]


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_piece_is_named(tmp_path: Path, damage: str) -> None:
    manifest = saved(tmp_path / "m")
    name = manifest["files"]["state"]["pieces"][3]["name"]
    path = tmp_path / "m" / name
    path.write_bytes(path.read_bytes()[:-1]) if damage == "cut" else path.unlink()
    with pytest.raises(ModelFileError, match=name):
        store.load(tmp_path / "m").arrays("state")


def drop_a_piece(part: dict[str, Any]) -> None:
    del part["pieces"][-1]


def name_one_twice(part: dict[str, Any]) -> None:
    part["pieces"][1] = part["pieces"][0]


def promise_more_rows(part: dict[str, Any]) -> None:
    part["rows"]["factors"] = 10**12


def promise_other_rows(part: dict[str, Any]) -> None:
    part["rows"] = {"small": 4}


def say_rows_in_words(part: dict[str, Any]) -> None:
    part["rows"] = {"factors": "many"}


def nest(part: dict[str, Any]) -> None:
    part["pieces"][0] = {"rows": {}, "pieces": part["pieces"][:2]}


def leave(part: dict[str, Any]) -> None:
    part["pieces"][0] = {**part["pieces"][0], "name": "../x"}


@pytest.mark.parametrize(
    "forge",
    [drop_a_piece, name_one_twice, promise_more_rows, promise_other_rows, say_rows_in_words, nest, leave],
)
def test_a_forged_list_of_pieces_is_refused(tmp_path: Path, forge: Callable[[dict[str, Any]], None]) -> None:
    import hashlib

    manifest = saved(tmp_path / "m")
    forge(manifest["files"]["state"])
    del manifest["sha256"]
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "m").arrays("state")


def test_the_files_of_a_manifest_are_those_of_all_pieces(tmp_path: Path) -> None:
    manifest = saved(tmp_path / "m")
    assert file_names(manifest["files"]) == {p.name for p in (tmp_path / "m").iterdir()} - {"manifest.json"}
