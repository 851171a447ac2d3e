"""Models on disk: a folder of safetensors, Parquet tables and ``manifest.json``, written last. Never pickle.

Every file is written beside its final name, synced, and renamed; the manifest names the files that
belong together with their checksums. A kill at any moment leaves the last whole model.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save_file

from ringleader.errors import ModelFileError, StorageError
from ringleader.tensor.sparse import SparseTensor

FORMAT = "ringleader-model"
VERSION = 2
MANIFEST = "manifest.json"
OURS = re.compile(
    r"\.?(?:state|tensor|labels|heldout|covariates|evidence|lockstep|strangers|cores"
    r"|(?:vocabulary|suspicion|inputs|transfer)-\d+|head_\d+)-\d+\.(?:safetensors|parquet)(?:\.partial)?"
)
"""Names of the files of a model, besides its manifest."""
NUMBERED = re.compile(r"-(\d+)\.(?:safetensors|parquet)")
LIBRARIES = ("ringleader", "numpy", "numba", "pyarrow", "safetensors")

Arrays = Mapping[str, npt.NDArray[Any]]


class ModelPart(NamedTuple):
    """One file of a model.

    source : the object it is made of. Where the folder holds the part of the very same object, it stays as it is.
    make   : its arrays, or its table
    """

    name: str
    source: object
    make: Callable[[], Arrays | pa.Table]


@dataclass
class Stored:
    """A model folder: its manifest, and its parts, read when they are asked for.

    handles : the open files of the parts, so that what was opened can be read whoever replaces the model meanwhile
    sources : by part, the object that was written to it or read from it
    """

    folder: Path
    meta: dict[str, Any]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    handles: dict[str, BinaryIO] = field(default_factory=dict, repr=False)
    sources: dict[str, object] = field(default_factory=dict, repr=False)

    def __del__(self) -> None:
        for handle in self.handles.values():
            handle.close()

    def arrays(self, part: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a part that ``save`` was given."""
        name, content = self._verified(part)
        try:
            loaded: dict[str, npt.NDArray[Any]] = load_arrays(content)
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {error}") from error
        return loaded

    def table(self, part: str) -> pa.Table:
        name, content = self._verified(part)
        try:
            return pq.read_table(pa.BufferReader(content))
        except (pa.ArrowInvalid, OSError) as error:
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {error}") from error

    def has(self, part: str) -> bool:
        return part in self.files

    def _verified(self, part: str) -> tuple[str, bytes]:
        """Name and content of the file of a part, after its size and checksum: what is checked is what is read."""
        if part not in self.files:
            raise ModelFileError(f"model {self.folder} has no part {part!r}; it is damaged, or of another kind")
        entry = self.files[part]
        name: str = entry["name"]
        if part not in self.handles:
            self.handles[part] = _open(self.folder, name)
        handle = self.handles[part]
        handle.seek(0)
        content = handle.read()
        if len(content) != entry["bytes"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise ModelFileError(f"{name} of model {self.folder} is damaged; restore it or fit again")
        return name, content


def _open(folder: Path, name: str) -> BinaryIO:
    path = folder / name
    if not path.is_file():
        raise ModelFileError(f"{name} of model {folder} is missing; restore it or fit again")
    return path.open("rb")


def save(
    folder: str | os.PathLike[str], meta: Mapping[str, Any], parts: Iterable[ModelPart], *, before: Stored | None = None
) -> Stored:
    """Writes a model, or the parts of it that changed, and swaps it in at once.

    before : what the folder holds; parts of the same objects stay. Files that the new manifest does not name are
    removed, once it is in place.
    """
    target = Path(folder)
    if not is_free(target) and not is_model(target):
        raise ModelFileError(f"{target} holds other things than a model; choose a new folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        # Above every name that is there: until the new manifest is in place, the old one must find its own files.
        numbers = (int(match[1]) for match in map(NUMBERED.search, os.listdir(target)) if match)
        generation = max([0, *numbers]) + 1
        replaced = _named_before(target)
        files: dict[str, dict[str, Any]] = {}
        sources: dict[str, object] = {}
        for part in parts:
            sources[part.name] = part.source
            if before is not None and part.name in before.files and before.sources.get(part.name) is part.source:
                files[part.name] = before.files[part.name]
            else:
                files[part.name] = _write_part(target, part, generation)
        described = {**meta, "generation": generation}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
            "meta": described,
            "files": files,
        }
        manifest["sha256"] = _digest(manifest)
        text = json.dumps(manifest, indent=1, allow_nan=False).encode()
        _write(target, MANIFEST, lambda p: Path(p).write_bytes(text))
        _sync_folder(target)
        _tidy(target, {entry["name"] for entry in files.values()}, replaced)
    except OSError as error:
        raise StorageError(
            f"cannot write the model to {target}: {error.strerror or error}; free some space or choose another folder"
        ) from error
    return Stored(target, described, files, sources=sources)


def _write_part(folder: Path, part: ModelPart, generation: int) -> dict[str, Any]:
    content = part.make()
    if isinstance(content, pa.Table):
        return _write(folder, f"{part.name}-{generation}.parquet", lambda path: pq.write_table(content, path))
    arrays = {name: np.ascontiguousarray(array) for name, array in content.items()}
    return _write(folder, f"{part.name}-{generation}.safetensors", lambda path: save_file(arrays, path))


def load(folder: str | os.PathLike[str]) -> Stored:
    """Opens a model folder. What is damaged, foreign or too new is refused, with the reason."""
    target = Path(folder)
    if not target.exists():
        raise ModelFileError(f"there is no model at {target}; name the folder that fit --out wrote")
    path = target / MANIFEST
    if not path.is_file():
        raise ModelFileError(f"{target} holds no {MANIFEST}, so it is no model (or a fit was stopped before its start)")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} was not written by ringleader")
    version = manifest.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path} is damaged: it has format {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"model {target} has format {version}, this ringleader reads up to {VERSION}; install a newer ringleader"
        )
    if manifest.pop("sha256", None) != _digest(manifest):
        raise ModelFileError(f"{path} is damaged or was edited; restore it or fit again")
    meta, files = manifest.get("meta"), manifest.get("files")
    if not isinstance(meta, dict) or not isinstance(files, dict) or not all(map(_well_formed, files.values())):
        raise ModelFileError(f"{path} is damaged: it does not say which files belong to the model")
    return Stored(target, meta, files, {part: _open(target, entry["name"]) for part, entry in files.items()})


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a manifest of ours, in whatever state the rest may be."""
    try:
        return bool(json.loads((Path(folder) / MANIFEST).read_bytes()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def tensor_fingerprint(tensor: SparseTensor) -> str:
    """A hash of everything a tensor says; equal data give equal fingerprints."""
    digest = hashlib.sha256()
    for v in tensor.vocabularies:
        digest.update(json.dumps([v.mode, v.kind, len(v), v.bin_seconds, v.edges]).encode())
        digest.update(pa.record_batch([v.values], names=["value"]).serialize())
    for array in (tensor.coordinates, tensor.counts):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _write(folder: Path, name: str, writer: Any) -> dict[str, Any]:
    """Writes, syncs and renames one file; returns its entry for the manifest."""
    temporary = folder / f".{name}.partial"
    try:
        writer(str(temporary))
        temporary.chmod(0o644)  # safetensors writes for the owner alone
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        entry = {"name": name, "bytes": temporary.stat().st_size, "sha256": _checksum(temporary)}
        temporary.replace(folder / name)
    except SafetensorError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {name} into {folder}: {error}") from error
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return entry


def _checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there, and renaming is enough
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _named_before(folder: Path) -> set[str]:
    """The files that the manifest in a folder names, if there is one."""
    try:
        return {entry["name"] for entry in load(folder).files.values()}
    except ModelFileError:
        return set()


def _tidy(folder: Path, named: set[str], replaced: set[str]) -> None:
    """Removes files of ours that the manifest does not name any more, and nothing else."""
    for path in folder.iterdir():
        if (path.name in replaced or _ours(path.name)) and path.name not in named:
            with contextlib.suppress(
                PermissionError
            ):  # still open elsewhere, where that forbids it; the next save will
                path.unlink(missing_ok=True)


def _ours(name: str) -> bool:
    return name == f".{MANIFEST}.partial" or OURS.fullmatch(name) is not None


def is_free(folder: str | os.PathLike[str]) -> bool:
    """Whether there is nothing, or nothing but what a save that was killed left behind."""
    target = Path(folder)
    return not target.exists() or (target.is_dir() and all(map(_ours, os.listdir(target))))


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _well_formed(entry: Any) -> bool:
    """Whether a manifest's entry names a plain file inside the folder."""
    if not isinstance(entry, dict) or not {"name", "bytes", "sha256"} <= set(entry):
        return False
    name = entry["name"]
    return isinstance(name, str) and Path(name).name == name and name not in ("", ".", "..")
