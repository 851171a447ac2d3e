"""Models on disk: a folder of safetensors, Parquet tables and ``manifest.json``, written last. Never pickle.

Every file is written beside its final name, synced, and renamed; the manifest names the files that belong together
with their checksums. A kill at any moment leaves the last whole model. The manifests of earlier generations stay as
``generation-N.json`` with the files they name; ``unfinished.json`` is a fit that will replace the model when it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
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
from ringleader.runtime.outputs import PARTIAL, sync_file, sync_folder, temporary_beside
from ringleader.snapshot.lock import LOCK, writing
from ringleader.snapshot.manifest import MANIFEST, Manifest, is_manifest, manifest_text, open_plain, read_manifest
from ringleader.tensor.sparse import SparseTensor

UNFINISHED = "unfinished.json"
GENERATION = re.compile(r"generation-(\d+)\.json")
PART = re.compile(
    r"(?:state|tensor|labels|heldout|covariates|evidence|lockstep|strangers|cores"
    r"|(?:vocabulary|suspicion|inputs|transfer)-\d+|head_\d+)-\d+\.(?:safetensors|parquet)"
)
"""Names of the files of parts."""
OLD_PARTIAL = re.compile(r"\.(?P<stem>.+)\.partial", re.DOTALL)
"""What versions up to 0.2 left behind when they were killed."""
NUMBERED = re.compile(r"-(\d+)\.(?:safetensors|parquet|json)")
KEEP = 3
"""Earlier generations that stay."""
ATTEMPTS = 100
"""How often a reader begins again because the model was replaced while it opened it."""

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

    digest  : checksum of the manifest, by which one generation is told from another
    handles : the open files of the parts, so that what was opened can be read whoever replaces the model meanwhile
    sources : by part, the object that was written to it or read from it
    name    : of the manifest in the folder
    """

    folder: Path
    meta: dict[str, Any]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    digest: str = ""
    handles: dict[str, BinaryIO] = field(default_factory=dict, repr=False)
    sources: dict[str, object] = field(default_factory=dict, repr=False)
    name: str = MANIFEST
    reading: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __del__(self) -> None:
        for handle in self.handles.values():
            handle.close()

    def arrays(self, part: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a part that ``save`` was given."""
        name, content = self._verified(part)
        try:
            loaded: dict[str, npt.NDArray[Any]] = load_arrays(content)
        except Exception as error:  # whatever the library makes of a file that we did not write
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {error}") from error
        return loaded

    def table(self, part: str) -> pa.Table:
        name, content = self._verified(part)
        try:
            return pq.read_table(pa.BufferReader(content))
        except Exception as error:
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {error}") from error

    def has(self, part: str) -> bool:
        return part in self.files

    def verify(self) -> None:
        """Reads every part, and refuses the model where one is damaged."""
        for part in self.files:
            self._verified(part)

    def _verified(self, part: str) -> tuple[str, bytes]:
        """Name and content of the file of a part, after its size and checksum: what is checked is what is read."""
        if part not in self.files:
            raise ModelFileError(f"model {self.folder} has no part {part!r}; it is damaged, or of another kind")
        entry = self.files[part]
        name: str = entry["name"]
        if part not in self.handles:
            self.handles[part] = _open(self.folder, name)
        handle = self.handles[part]
        try:
            with self.reading:  # threads share the handle, and with it the place in the file
                handle.seek(0)
                content = handle.read()
        except OSError as error:
            reason = error.strerror or error
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {reason}; restore it") from error
        if len(content) != entry["bytes"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise ModelFileError(f"{name} of model {self.folder} is damaged; restore it or fit again")
        return name, content


def _open(folder: Path, name: str) -> BinaryIO:
    try:
        return open_plain(folder / name)
    except FileNotFoundError as error:
        raise ModelFileError(f"{name} of model {folder} is missing; restore it or fit again") from error
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{name} of model {folder} cannot be opened: {reason}; restore it or fit again") from error


def load(folder: str | os.PathLike[str], name: str = MANIFEST) -> Stored:
    """Opens a model folder. What is damaged, foreign or too new is refused, with the reason.

    Never waits: where a writer replaces the model meanwhile, the newer one is opened.
    """
    target = Path(folder)
    path = target / name
    last: ModelFileError | None = None
    for _ in range(ATTEMPTS):
        manifest = _manifest_of(target, path)
        handles: dict[str, BinaryIO] = {}
        stored = Stored(target, manifest.meta, manifest.files, manifest.digest, handles, name=name)
        try:
            for part, entry in manifest.files.items():
                handles[part] = _open(target, entry["name"])
        except ModelFileError as error:
            if last is not None and str(last) == str(error):
                raise  # twice the same file: it is missing indeed
            last = error
        else:
            return stored
    assert last is not None  # a hundred replacements, each removing another file
    raise last


def _manifest_of(folder: Path, path: Path) -> Manifest:
    if not folder.exists():
        raise ModelFileError(f"there is no model at {folder}; name the folder that fit --out wrote")
    if not path.exists():
        raise ModelFileError(
            f"{folder} holds no {path.name}, so it is no model (or a fit was stopped before its start)"
        )
    return read_manifest(path)


def save(
    folder: str | os.PathLike[str],
    meta: Mapping[str, Any],
    parts: Iterable[ModelPart],
    *,
    before: Stored | None = None,
    name: str = MANIFEST,
    keep: int = KEEP,
) -> Stored:
    """Writes a model, or the parts of it that changed, and swaps it in at once.

    before : what the folder holds; parts of the same objects stay.
    name   : of the manifest: that of the model, or UNFINISHED for a fit beside it.
    keep   : earlier generations that stay; the complete model that is replaced is one of them. Files that no manifest
    names any more are removed, once the new one is in place.
    """
    target = Path(folder)
    if not is_free(target) and not is_model(target):
        raise ModelFileError(f"{target} holds other things than a model; choose a new folder")
    with writing(target, create=True):
        try:
            return _save(target, meta, parts, before, name, keep)
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(
                f"cannot write the model to {target}: {reason}; free some space or choose another folder"
            ) from error


def _save(
    target: Path,
    meta: Mapping[str, Any],
    parts: Iterable[ModelPart],
    before: Stored | None,
    name: str,
    keep: int,
) -> Stored:
    about = json.loads(json.dumps(meta, allow_nan=False))
    current = readable_manifest(target / name)
    # Above every name that is there: until the new manifest is in place, the old one must find its own files.
    generation = max([0, *(int(match[1]) for match in map(NUMBERED.search, os.listdir(target)) if match)]) + 1
    files: dict[str, dict[str, Any]] = {}
    sources: dict[str, object] = {}
    for part in parts:
        sources[part.name] = part.source
        if before is not None and part.name in before.files and before.sources.get(part.name) is part.source:
            files[part.name] = before.files[part.name]
        else:
            files[part.name] = _write_part(target, part, generation)
    if before is not None and before.name == name and files == before.files:  # noqa: SIM102
        if {**about, "generation": before.meta.get("generation")} == before.meta:
            return before  # nothing changed
    described = {**about, "generation": generation}
    digest, text = manifest_text(described, files)
    sync_folder(target)
    if current is not None and name == MANIFEST and current.meta.get("complete") and keep:
        _retire(target, current)
    _write(target, name, lambda path: Path(path).write_bytes(text))
    if name == MANIFEST and about.get("complete"):
        (target / UNFINISHED).unlink(missing_ok=True)
    sync_folder(target)
    prune(target, keep, {entry["name"] for entry in current.files.values()} if current is not None else set())
    return Stored(target, described, files, digest, sources=sources, name=name)


def _retire(folder: Path, current: Manifest) -> None:
    """Gives the manifest of the model a second name, under which its generation stays."""
    number = current.meta.get("generation")
    kept = folder / f"generation-{number if isinstance(number, int) and number > 0 else 0}.json"
    temporary = temporary_beside(kept)
    try:
        shutil.copyfile(folder / MANIFEST, temporary)
        sync_file(temporary)
        temporary.replace(kept)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def generations(folder: Path) -> list[int]:
    """The numbers of the earlier generations that a folder holds, in ascending order."""
    return sorted(int(match[1]) for match in map(GENERATION.fullmatch, os.listdir(folder)) if match)


def prune(folder: Path, keep: int, replaced: Iterable[str] = ()) -> None:
    """Removes earlier generations but the last ``keep``, and files of ours that no manifest names any more.

    Who reads them has them open, and goes on reading them. replaced : more names to remove, whatever their form.
    """
    numbers = generations(folder)
    gone = set(replaced)
    for number in numbers[: max(len(numbers) - keep, 0)]:
        path = folder / f"generation-{number}.json"
        dropped = readable_manifest(path)
        gone |= {entry["name"] for entry in dropped.files.values()} if dropped is not None else set()
        path.unlink(missing_ok=True)
    named: set[str] = set()
    for path in (
        folder / MANIFEST,
        folder / UNFINISHED,
        *(folder / f"generation-{n}.json" for n in generations(folder)),
    ):
        if path.exists():
            manifest = readable_manifest(path)
            if manifest is None:
                return  # it may be restored, and would need files that nobody else names
            named |= {entry["name"] for entry in manifest.files.values()}
    for path in folder.iterdir():
        is_ours = PART.fullmatch(path.name) or _is_partial(path.name) or path.name in gone
        if is_ours and path.name not in named:
            with contextlib.suppress(PermissionError):  # still open elsewhere, where that forbids it
                path.unlink(missing_ok=True)


def readable_manifest(path: Path) -> Manifest | None:
    """A manifest; None where there is none, or a damaged one."""
    try:
        return read_manifest(path)
    except ModelFileError:
        return None


def _write_part(folder: Path, part: ModelPart, generation: int) -> dict[str, Any]:
    content = part.make()
    if isinstance(content, pa.Table):
        return _write(folder, f"{part.name}-{generation}.parquet", lambda path: pq.write_table(content, path))
    arrays = {name: np.ascontiguousarray(array) for name, array in content.items()}
    return _write(folder, f"{part.name}-{generation}.safetensors", lambda path: save_file(arrays, path))


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a manifest of ours, in whatever state the rest may be."""
    return is_manifest(Path(folder) / MANIFEST)


def tensor_fingerprint(tensor: SparseTensor) -> str:
    """A hash of everything a tensor says; equal data give equal fingerprints."""
    digest = hashlib.sha256()
    for v in tensor.vocabularies:
        digest.update(json.dumps([v.mode, v.kind, len(v), v.bin_seconds, v.edges]).encode())
        digest.update(pa.record_batch([v.values], names=["value"]).serialize())
    for array in (tensor.coordinates, tensor.counts):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _write(folder: Path, name: str, writer: Callable[[str], object]) -> dict[str, Any]:
    """Writes, syncs and renames one file; returns its entry for the manifest."""
    temporary = temporary_beside(folder / name)
    try:
        writer(str(temporary))
        temporary.chmod(0o644)  # safetensors writes for the owner alone
        sync_file(temporary)
        entry = {"name": name, "bytes": temporary.stat().st_size, "sha256": _checksum(temporary)}
        temporary.replace(folder / name)
    except SafetensorError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {name} into {folder}: {error}") from error
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return entry


def _checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _is_partial(name: str) -> bool:
    """Whether a file is one that a killed save left: a part, or a manifest, under its temporary name."""
    match = PARTIAL.fullmatch(name) or OLD_PARTIAL.fullmatch(name)
    stem = match["stem"] if match else ""
    return stem in (MANIFEST, UNFINISHED) or bool(GENERATION.fullmatch(stem) or PART.fullmatch(stem))


def is_free(folder: str | os.PathLike[str]) -> bool:
    """Whether there is nothing, or nothing but what a save that was killed left behind."""
    target = Path(folder)
    if not target.exists():
        return not target.is_symlink()
    return target.is_dir() and all(n == LOCK or PART.fullmatch(n) or _is_partial(n) for n in os.listdir(target))
