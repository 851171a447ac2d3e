"""Every file of a model truncated, flipped, swapped, replaced by a link, a pipe or a folder: refused by its name."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleader.errors import ModelFileError
from ringleader.snapshot import folder as store
from ringleader.snapshot import load
from ringleader.snapshot.parts import save

sys.path.insert(0, str(Path(__file__).parent))

from forging import reseal

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of format 2, saved anew."""
    folder = tmp_path_factory.mktemp("newest") / "model"
    save(load(GOLDEN / "model-format-2" / "model")[0], folder)
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
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_damaged_file_is_refused_by_its_name(
    damage: Callable[[Path], None], version: str, newest: Path, tmp_path: Path
) -> None:
    source = newest if version == "3" else GOLDEN / f"model-format-{version}" / "model"
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
    manifest.pop("sha256")
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (tmp_path / "model" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError):
        store.load(tmp_path / "model").verify()
