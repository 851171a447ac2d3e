"""Models on disk: a folder of safetensors, Parquet tables and ``manifest.json``, written last. Never pickle.

Every file appears whole (``place``); the manifest names the files that belong together with their checksums. A kill at
any moment leaves the last whole model. The manifests of earlier generations stay as ``generation-N.json`` with the
files they name; ``unfinished.json`` is a fit that will replace the model when it ends. Large arrays are in pieces.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ringleader.arrays import Array, NamedArrays
from ringleader.errors import ModelFileError, RingleaderError, StorageError
from ringleader.runtime.executor import Threads
from ringleader.runtime.outputs import reason_of
from ringleader.settings import Whole, check_setting
from ringleader.snapshot.array_file import read_arrays
from ringleader.snapshot.content import Content, checked_content, column_of, table_of
from ringleader.snapshot.lease import LOCK
from ringleader.snapshot.leftovers import GENERATION, is_first, leftovers
from ringleader.snapshot.lock import check_held, writing
from ringleader.snapshot.manifest import MANIFEST, UNFINISHED, Manifest, is_manifest, manifest_text, read_manifest
from ringleader.snapshot.pieces import (
    Cuts,
    cut,
    entry_of,
    file_name,
    file_names,
    files_of,
    join,
    piece_of,
    shapes_of,
    write_piece,
)
from ringleader.snapshot.place import Entry, Folder, Place, place_of

NUMBERED = re.compile(r"-(\d{1,12})\.(?:safetensors|parquet|json)")
"""Files with the number of a generation; longer numbers are not ours, and names with the next one may be too long."""
KEEP = 3
"""Earlier generations that stay."""
ATTEMPTS = 100
"""How often a reader begins again because the model was replaced while it opened it."""

T = TypeVar("T")


class ModelPart(NamedTuple):
    """One part of a model: a file, or several where its arrays are large.

    source : the object it is made of. Where the folder holds the part of the very same object, it stays as it is.
    make   : its arrays, or its table
    write  : writes the pieces of the arrays, under names in order, where they are; None, or None returned: they are
    written from here
    """

    name: str
    source: object
    make: Callable[[], NamedArrays | pa.Table]
    write: Callable[[Place, Cuts, list[str]], list[Entry] | None] | None = None


@dataclass
class Stored:
    """A model folder: its manifest, and its parts, read when they are asked for.

    digest  : checksum of the manifest, by which one generation is told from another
    handles : the open files by name, so that what was opened can be read whoever replaces the model meanwhile
    sources : by part, the object that was written to it or read from it
    name    : of the manifest in the folder
    """

    folder: Place
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

    def arrays(self, part: str, *, mapped: bool = False) -> dict[str, Array]:
        """The arrays of a part that ``save`` was given.

        mapped : whether they stay in their files, or in temporary ones where they are put together out of pieces
        """
        entry = self._entry(part)
        files = files_of(entry)
        if len(files) == 1:
            return self._parsed(files[0], read_arrays, mapped=mapped)
        pieces = (self._parsed(file, read_arrays, mapped=mapped) for file in files)
        said, size = f"{part} of model {self.folder}", sum(int(file["bytes"]) for file in files)
        return join(said, entry["rows"], size, pieces, mapped=mapped)

    def table(self, part: str) -> pa.Table:
        return self._parsed(self._entry(part), table_of)

    def column(self, part: str, name: str) -> pa.Array:
        """A column of a table as one array."""
        return self._parsed(self._entry(part), lambda content: column_of(content, name))

    def has(self, part: str) -> bool:
        return part in self.files

    def verify(self) -> None:
        """Reads every part, and refuses the model where one is damaged."""
        for entry in self.files.values():
            for file in files_of(entry):
                self._verified(file, mapped=True)

    def _entry(self, part: str) -> Entry:
        if part not in self.files:
            raise ModelFileError(f"model {self.folder} has no part {part!r}; it is damaged, or of another kind")
        return self.files[part]

    def _parsed(self, file: Entry, parse: Callable[[Content], T], *, mapped: bool = False) -> T:
        content = self._verified(file, mapped=mapped)
        try:
            return parse(content)
        except MemoryError:
            raise
        except Exception as error:  # whatever the library makes of a file that we did not write
            raise ModelFileError(f"{file.get('name')} of model {self.folder} cannot be read: {error}") from error

    def _verified(self, file: Entry, *, mapped: bool) -> Content:
        """The content of a file, after its size and checksum."""
        if "name" not in file:
            raise ModelFileError(f"model {self.folder} has a table in pieces; it is damaged, or of another kind")
        name: str = file["name"]
        handle = self.handles[name]
        try:
            with self.reading:  # threads share the handle, and with it the place in the file
                content = checked_content(handle, file["bytes"], file["sha256"], mapped=mapped)
        except OSError as error:
            reason = error.strerror or error
            raise ModelFileError(f"{name} of model {self.folder} cannot be read: {reason}; restore it") from error
        if content is None:
            raise ModelFileError(f"{name} of model {self.folder} is damaged; restore it or fit again")
        return content


def _open(place: Place, name: str) -> BinaryIO:
    try:
        return place.open(name)
    except FileNotFoundError as error:
        raise ModelFileError(f"{name} of model {place} is missing; restore it or fit again") from error
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{name} of model {place} cannot be opened: {reason}; restore it or fit again") from error


def load(folder: str | os.PathLike[str], name: str = MANIFEST) -> Stored:
    """Opens a model folder. What is damaged, foreign or too new is refused, with the reason.

    Never waits: where a writer replaces the model meanwhile, the newer one is opened.
    """
    target = place_of(folder)
    last: ModelFileError | None = None
    for _ in range(ATTEMPTS):
        manifest = _manifest_of(target, name)
        handles: dict[str, BinaryIO] = {}
        stored = Stored(target, manifest.meta, manifest.files, manifest.digest, handles, name=name)
        try:
            for file in sorted(file_names(manifest.files)):
                handles[file] = _open(target, file)
        except ModelFileError as error:
            if last is not None and str(last) == str(error):
                raise  # twice the same file: it is missing indeed
            last = error
        else:
            return stored
    assert last is not None  # a hundred replacements, each removing another file
    raise last


def _manifest_of(place: Place, name: str) -> Manifest:
    try:
        if not place.exists():
            raise ModelFileError(f"there is no model at {place}; name the folder that fit --out wrote")
        if not place.has(name):
            raise ModelFileError(
                f"{place} holds no {name}, so it is not a model (or a fit was stopped before its start)"
            )
    except OSError as error:
        raise ModelFileError(f"the model at {place} cannot be opened: {error.strerror or error}") from error
    return read_manifest(place, name)


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
    check_setting("keep", keep, Whole(0))
    target = place_of(folder)
    if not is_free(folder) and not is_model(folder):
        raise ModelFileError(f"{target} contains other files than a model; choose a new folder")
    with writing(folder, create=True):
        was = readable_manifest(target, name)
        try:
            return _save(target, meta, parts, before, name, keep)
        except BaseException as error:
            with contextlib.suppress(OSError, RingleaderError):
                _clear_up(target)
            if isinstance(error, OSError):
                raise _not_written(target, was, readable_manifest(target, name), reason_of(error)) from error
            raise


def _clear_up(target: Place) -> None:
    """Removes what a save that failed wrote."""
    check_held(target)  # who took the lock over may be writing
    current = readable_manifest(target)
    for name in (f"generation-{number}.json" for number in generations(target)):
        earlier = readable_manifest(target, name)
        if current is not None and earlier is not None and earlier.digest == current.digest:
            target.remove(name)  # the model was about to be replaced
    prune(target, len(generations(target)))


def _not_written(target: Place, was: Manifest | None, now: Manifest | None, reason: str) -> StorageError:
    """That a save failed, what is there, and what to do. was, now : the manifest before it, and behind it."""
    if now is None:
        return StorageError(f"cannot write the model to {target}: {reason}; free some space or choose another folder")
    if was is None or was.digest != now.digest:
        return StorageError(f"the model is in {target}, but may not survive a crash: {reason}; fix that and try again")
    advice = "the earlier model is unchanged; free some space, or fix the problem, and try again"
    return StorageError(f"cannot write the model to {target}: {reason}; {advice}")


def _save(
    target: Place,
    meta: Mapping[str, Any],
    parts: Iterable[ModelPart],
    before: Stored | None,
    name: str,
    keep: int,
) -> Stored:
    about = json.loads(json.dumps(meta, allow_nan=False))
    current = readable_manifest(target, name)
    # Above every name that is there: until the new manifest is in place, the old one must find its own files.
    generation = max([0, *(int(match[1]) for match in map(NUMBERED.search, target.names()) if match)]) + 1
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
    stored = Stored(target, described, files, digest, sources=sources, name=name)
    for file in sorted(file_names(files)):  # while they are there: who replaces the model removes them
        stored.handles[file] = target.open(file)
    target.sync()
    check_held(target)
    if current is not None and name == MANIFEST and current.meta.get("complete") and keep:
        _retire(target, current)
    target.write(name, lambda path: Path(path).write_bytes(text))
    if name == MANIFEST and about.get("complete") and (before is None or before.name == UNFINISHED):
        target.remove(UNFINISHED)  # an update of the model leaves a fit that was stopped and will replace it
    target.sync()
    prune(target, keep, file_names(current.files) if current is not None else set())
    return stored


def _retire(place: Place, current: Manifest) -> None:
    """Gives the manifest of the model a second name, under which its generation stays."""
    number = current.meta.get("generation")
    place.copy(MANIFEST, f"generation-{number if type(number) is int and number > 0 else 0}.json")


def generations(place: Place) -> list[int]:
    """The numbers of the earlier generations that a folder holds, in ascending order."""
    return sorted(int(match[1]) for match in map(GENERATION.fullmatch, place.names()) if match)


def prune(place: Place, keep: int, replaced: Iterable[str] = ()) -> None:
    """Removes earlier generations but the last ``keep``, and files of ours that no manifest names any more.

    Who reads them has them open, and goes on reading them. replaced : more names to remove, whatever their form.
    """
    numbers = generations(place)
    gone = set(replaced)
    for number in numbers[: max(len(numbers) - keep, 0)]:
        name = f"generation-{number}.json"
        dropped = readable_manifest(place, name)
        gone |= file_names(dropped.files) if dropped is not None else set()
        place.remove(name)
    there = set(place.names())
    named: set[str] = set()
    for name in (MANIFEST, UNFINISHED, *(f"generation-{n}.json" for n in generations(place))):
        if name in there:
            manifest = readable_manifest(place, name)
            if manifest is None:
                return  # it may be restored, and would need files that nobody else names
            named |= file_names(manifest.files)
    left = (leftovers(there, beside_a_model=True) | (gone & there)) - named
    for name in sorted(
        left, key=lambda name: (is_first(name), name)
    ):  # a kill in between leaves a name to know them by
        place.remove(name)


def readable_manifest(place: Place, name: str = MANIFEST) -> Manifest | None:
    """A manifest; None where there is none, or a damaged one."""
    try:
        return read_manifest(place, name)
    except ModelFileError:
        return None


def _write_part(place: Place, part: ModelPart, generation: int) -> Entry:
    content = part.make()
    if isinstance(content, pa.Table):
        return place.write(f"{part.name}-{generation}.parquet", lambda path: pq.write_table(content, path))
    cuts = cut(shapes_of(content))
    count = len(cuts.spans)
    names = [file_name(part.name, generation, number, count) for number in range(count)]
    if part.write is not None:
        written = part.write(place, cuts, names)
        if written is not None:
            return entry_of(cuts, written)

    def write(number: int) -> Entry:
        return write_piece(place, names[number], piece_of(content, cuts.spans[number]))

    # Side by side, for copies and checksums take most of the time; the first before others that are known by it.
    alone = 1 if is_first(names[0]) else 0
    threads = Threads(None if isinstance(place, Folder) else 1)
    return entry_of(cuts, [write(number) for number in range(alone)] + threads.map(write, range(alone, count)))


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a manifest of ours, in whatever state the rest may be."""
    return is_manifest(place_of(folder))


def is_free(folder: str | os.PathLike[str]) -> bool:
    """Whether there is nothing, or nothing but what a save that was killed left behind."""
    target = place_of(folder)
    try:
        return target.is_free_of(lambda names: {LOCK} | leftovers(names, beside_a_model=False))
    except OSError as error:
        raise ModelFileError(f"{target} cannot be accessed: {error.strerror or error}") from error
