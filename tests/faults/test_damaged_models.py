"""Every file of a model truncated, flipped, swapped, replaced by a link, a pipe or a folder: refused by its name."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringleader.errors import ModelFileError
from ringleader.snapshot import folder as store
from ringleader.snapshot import load, pieces
from ringleader.snapshot.parts import save

sys.path.insert(0, str(Path(__file__).parent))

from forging import reseal
from probing import in_a_child, use

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of format 2, saved anew."""
    folder = tmp_path_factory.mktemp("newest") / "model"
    save(load(GOLDEN / "model-format-2" / "model")[0], folder)
    return folder


@pytest.fixture(scope="module")
def in_pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in format 4: every array above 128 kB is cut into ranges of rows."""
    folder = tmp_path_factory.mktemp("pieces") / "model"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, "LARGEST", 1 << 17)
        save(load(GOLDEN / "model-format-2" / "model")[0], folder)
    assert json.loads((folder / "manifest.json").read_text())["version"] == 4
    return folder


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def removed(path: Path) -> None:
    path.unlink()


def a_link_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname" if os.path.exists("/etc/hostname") else os.devnull)


def a_link_in_a_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def swapped(path: Path) -> None:
    other = next(p for p in sorted(path.parent.iterdir()) if p != path and p.read_bytes() != path.read_bytes())
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def sealed(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest with its own checksum."""
    manifest.pop("sha256", None)
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


DAMAGES = [
    truncated,
    emptied,
    flipped,
    lengthened,
    removed,
    a_link_in_a_circle,
    a_link_elsewhere,
    a_pipe,
    a_folder,
    swapped,
]


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes by name, and links need a privilege")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("version", ["1", "2", "3", "4"])
def test_a_damaged_file_is_refused_by_its_name(
    damage: Callable[[Path], None], version: str, newest: Path, in_pieces: Path, tmp_path: Path
) -> None:
    source = {"3": newest, "4": in_pieces}.get(version, GOLDEN / f"model-format-{version}" / "model")
    for name in sorted(path.name for path in source.iterdir()):
        folder = tmp_path / "model"
        shutil.copytree(source, folder, copy_function=os.link)
        for path in folder.iterdir() if damage is swapped else [folder / name]:
            content = path.read_bytes()
            path.unlink()  # the others are the files of the source themselves
            path.write_bytes(content)
        damage(folder / name)
        with pytest.raises(ModelFileError) as refused:
            store.load(folder).verify()
        if damage is not swapped:
            assert name in str(refused.value)
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "..", ".", "", "a/b", "..\\outside", "x\0y"])
def test_a_path_that_climbs_out_is_refused(name: str, newest: Path, tmp_path: Path) -> None:
    shutil.copytree(newest, tmp_path / "model")
    (tmp_path / "outside").write_bytes(b"x")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    entry = manifest["files"].pop("state")
    reseal(tmp_path / "model", manifest)
    manifest["files"]["state"] = {**entry, "name": name}
    sealed(tmp_path / "model", manifest)
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "model").verify()


def test_a_model_in_pieces_is_the_model(in_pieces: Path, newest: Path) -> None:
    cut, whole = store.load(in_pieces), store.load(newest)
    assert any("pieces" in entry for entry in cut.files.values())
    for part, entry in cut.files.items():
        if not entry.get("name", "").endswith(".parquet"):
            arrays = whole.arrays(part)
            assert cut.arrays(part).keys() == arrays.keys()
            assert all(np.array_equal(array, arrays[name]) for name, array in cut.arrays(part).items())


def _drop(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return entries[:-1]


def _repeat(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*entries, entries[-1]]


def _turn(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return entries[::-1]


def _empty(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return []


STRANGE_ROWS = [-1, 0, 10**12, 1.5, "3", None, [1], True]


@pytest.mark.parametrize("change", [_drop, _repeat, _turn, _empty])
def test_pieces_that_do_not_fit_together_are_refused(change: Any, in_pieces: Path, tmp_path: Path) -> None:
    """The checksums are right: what is wrong is which pieces there are, and in which order."""
    for part in [part for part, entry in store.load(in_pieces).files.items() if "pieces" in entry]:
        folder = tmp_path / part
        shutil.copytree(in_pieces, folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][part]["pieces"] = change(manifest["files"][part]["pieces"])
        sealed(folder, manifest)
        if change is _turn and hasattr(os, "fork"):  # rows in another order: another model, which may hold together
            assert in_a_child(partial(use, folder)).startswith(("answered", "refused"))
        else:
            with pytest.raises(ModelFileError):
                store.load(folder).arrays(part)


@pytest.mark.parametrize("rows", STRANGE_ROWS)
def test_rows_of_pieces_that_cannot_be_are_refused(rows: Any, in_pieces: Path, tmp_path: Path) -> None:
    shutil.copytree(in_pieces, tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    part, entry = next((part, entry) for part, entry in manifest["files"].items() if "pieces" in entry)
    entry["rows"] = dict.fromkeys(entry["rows"], rows)
    sealed(tmp_path / "model", manifest)
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "model").arrays(part)
