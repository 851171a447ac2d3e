"""The manifest of a model: which files belong to it, with their checksums, and what it says about the model."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ringleader.errors import ModelFileError
from ringleader.runtime import outputs
from ringleader.snapshot.place import Place
from ringleader.version import __version__

FORMAT, MANIFEST, UNFINISHED = outputs.MODEL_FORMAT, outputs.MANIFEST, "unfinished.json"
VERSION, UNDIVIDED = 4, 3
"""Format 4 has parts in several files; a model without any is written as format 3. Format 2 has no batches and no
earlier generations, format 1 nothing that follows from a model but its heads."""
LIBRARIES = ("numpy", "numba", "pyarrow", "safetensors")
MOST_ROWS = 1 << 50
"""Rows of an array."""


class Manifest(NamedTuple):
    """meta : what it says of the model; digest : its own checksum.

    files : by part, name, bytes and sha256 of its file; or ``pieces``, one such for each file, and ``rows`` of the
    arrays that are cut.
    """

    meta: dict[str, Any]
    files: dict[str, dict[str, Any]]
    digest: str


def manifest_text(meta: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> tuple[str, bytes]:
    """The checksum and the text of a manifest."""
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION if any("pieces" in entry for entry in files.values()) else UNDIVIDED,
        "libraries": {"ringleader": __version__} | {name: importlib.metadata.version(name) for name in LIBRARIES},
        "meta": meta,
        "files": files,
    }
    digest = _digest(manifest)
    return digest, json.dumps({**manifest, "sha256": digest}, indent=1, allow_nan=False).encode()


def read_manifest(place: Place, name: str = MANIFEST) -> Manifest:
    """A manifest, checked. What is damaged, foreign or too new is refused, with the reason."""
    path = f"{str(place).rstrip('/')}/{name}"
    try:
        with place.open(name) as handle:
            content = handle.read(outputs.LARGEST_MANIFEST + 1)
        manifest = json.loads(content) if len(content) <= outputs.LARGEST_MANIFEST else None
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} was not written by ringleader")
    version = manifest.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path} is damaged: it has format {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"model {place} has format {version}, this ringleader reads up to {VERSION}; install a newer ringleader"
        )
    digest = manifest.pop("sha256", None)
    try:
        expected = _digest(manifest)
    except (ValueError, RecursionError):  # NaN, or text that is not valid Unicode: never written by us
        expected = None
    if expected is None or digest != expected:
        raise ModelFileError(f"{path} is damaged or was edited; restore it or fit again")
    meta, files = manifest.get("meta"), manifest.get("files")
    if not isinstance(meta, dict) or not isinstance(files, dict) or not all(map(_well_formed, files.values())):
        raise ModelFileError(f"{path} is damaged: it does not say which files belong to the model")
    return Manifest(meta, files, expected)


def is_manifest(place: Place, name: str = MANIFEST) -> bool:
    """Whether a file is a manifest of ours, in whatever state the rest may be. Raises where it may not be read."""
    try:
        with place.open(name) as handle:
            return outputs.is_manifest_text(handle.read(outputs.LARGEST_MANIFEST))
    except PermissionError as error:
        raise _unreadable(f"{str(place).rstrip('/')}/{name}", error) from error
    except OSError:
        return False


def _unreadable(path: str, error: OSError) -> ModelFileError:
    if isinstance(error, PermissionError):
        return ModelFileError(f"no permission to read {path}; change its mode or run as its owner")
    return ModelFileError(f"{path} cannot be read: {error.strerror or error}; restore it or fit again")


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _well_formed(entry: Any) -> bool:
    """Whether a manifest's entry names plain files inside the folder."""
    if isinstance(entry, dict) and "pieces" in entry:
        rows, pieces = entry.get("rows"), entry["pieces"]
        if not isinstance(rows, dict) or not isinstance(pieces, list) or len(pieces) < 2:
            return False
        counted = all(type(count) is int and 0 <= count < MOST_ROWS for count in rows.values())
        return counted and all(_well_formed(piece) and "pieces" not in piece for piece in pieces)
    if not isinstance(entry, dict) or not {"name", "bytes", "sha256"} <= set(entry):
        return False
    name, size = entry["name"], entry["bytes"]
    if type(size) is not int or size < 0:
        return False
    return isinstance(name, str) and Path(name).name == name and name not in ("", ".", "..") and "\0" not in name
