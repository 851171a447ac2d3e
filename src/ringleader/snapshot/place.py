"""Place: where the files of a model are, a folder of this machine or an object store. Files appear whole or not at all.

In a folder a file is written beside its name, synced and renamed. An object store has no rename and needs none: an
object appears when all of it has arrived, and one that is replaced answers with the old or the new content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from safetensors import SafetensorError

from ringleader.errors import ModelFileError
from ringleader.runtime.outputs import sync_file, sync_folder, temporary_beside
from ringleader.runtime.stores import as_os_errors, local_path, open_store
from ringleader.runtime.temporary import temporary_folder

Entry = dict[str, Any]
"""What a manifest says of a file: name, bytes, sha256."""
Writer = Callable[[str], object]
"""Writes a file of this machine, whose path it is given."""


class Place(Protocol):
    """Errors are OSError; ``str`` is how people name the place."""

    def key(self) -> str:
        """By which two names of the same place are known as one."""

    def exists(self) -> bool:
        """Whether there is anything."""

    def names(self) -> list[str]:
        """The names of all files."""

    def is_free_of(self, left_behind: Callable[[list[str]], set[str]]) -> bool:
        """Whether there is nothing but files that may be left behind, chosen of all names; a model may be written."""

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""

    def open(self, name: str) -> BinaryIO:
        """A file to read."""

    def write(self, name: str, writer: Writer) -> Entry:
        """Writes a file whole; returns its entry for the manifest."""

    def copy(self, name: str, to: str) -> None:
        """Gives a file a second name."""

    def move(self, name: str, to: str) -> None:
        """Gives a file another name; one that has it already is replaced."""

    def remove(self, name: str) -> None:
        """Removes a file; nothing where there is none."""

    def sync(self) -> None:
        """Waits until the names are durable."""


class Folder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def key(self) -> str:
        return os.path.realpath(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def names(self) -> list[str]:
        return os.listdir(self.path)

    def is_free_of(self, left_behind: Callable[[list[str]], set[str]]) -> bool:
        if not self.path.exists():
            return not self.path.is_symlink()
        return self.path.is_dir() and set(self.names()) <= left_behind(self.names())

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def open(self, name: str) -> BinaryIO:
        return open_regular(self.path / name)

    def write(self, name: str, writer: Writer) -> Entry:
        temporary = temporary_beside(self.path / name)
        try:
            mode = stat.S_IMODE(temporary.stat().st_mode)  # what the umask leaves
            writer(str(temporary))
            temporary.chmod(mode)  # safetensors puts a file of its own there, for the owner alone
            sync_file(temporary)
            entry = {"name": name, "bytes": temporary.stat().st_size, "sha256": _checksum(temporary)}
            temporary.replace(self.path / name)
        except BaseException as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, SafetensorError):
                raise _os_error(error) from error
            raise
        return entry

    def copy(self, name: str, to: str) -> None:
        temporary = temporary_beside(self.path / to)
        try:
            shutil.copyfile(self.path / name, temporary)
            sync_file(temporary)
            temporary.replace(self.path / to)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def move(self, name: str, to: str) -> None:
        (self.path / name).replace(self.path / to)

    def remove(self, name: str) -> None:
        with contextlib.suppress(PermissionError):  # still open elsewhere, where that forbids it
            (self.path / name).unlink(missing_ok=True)

    def sync(self) -> None:
        sync_folder(self.path)


class Store:
    """A folder of an object store."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.filesystem, self.path = open_store(self.url)

    def __str__(self) -> str:
        return self.url

    def key(self) -> str:
        return f"{self.url.partition('://')[0]}://{self.path}"

    def exists(self) -> bool:
        return bool(self.names())

    def names(self) -> list[str]:
        with as_os_errors():
            self.filesystem.invalidate_cache()
            try:
                entries = self.filesystem.ls(self.path, detail=False)
            except FileNotFoundError:
                return []
        inside = [str(path).rstrip("/").rpartition("/")[2] for path in entries if self._is_inside(str(path))]
        return [name for name in inside if name]

    def is_free_of(self, left_behind: Callable[[list[str]], set[str]]) -> bool:
        names = self.names()
        return set(names) <= left_behind(names)

    def has(self, name: str) -> bool:
        return name in self.names()

    def open(self, name: str) -> BinaryIO:
        with as_os_errors():
            self.filesystem.invalidate_cache()
            handle: BinaryIO = self.filesystem.open(self._path(name), "rb", cache_type="none")
        return _OsErrors(handle, name)  # type: ignore[return-value]

    def write(self, name: str, writer: Writer) -> Entry:
        with temporary_folder() as folder:
            local = folder / name
            try:
                writer(str(local))
            except SafetensorError as error:
                raise _os_error(error) from error
            entry = {"name": name, "bytes": local.stat().st_size, "sha256": _checksum(local)}
            with as_os_errors():
                self.filesystem.put_file(str(local), self._path(name))
                self.filesystem.invalidate_cache()
                arrived = int(self.filesystem.info(self._path(name))["size"])
        if arrived != entry["bytes"]:
            raise OSError(f"{name} arrived with {arrived} of {entry['bytes']} bytes")
        return entry

    def put(self, name: str, content: bytes, *, new: bool = False) -> None:
        """Writes a small file; with ``new`` only where there is none, else FileExistsError."""
        with as_os_errors():
            if not new:
                self.filesystem.pipe_file(self._path(name), content)
                return
            try:
                self.filesystem.pipe_file(self._path(name), content, mode="create")
            except FileExistsError:
                raise
            except OSError as error:
                if "PreconditionFailed" in repr(error) or "pre-condition" in str(error).lower():
                    raise FileExistsError(name) from error
                raise

    def read(self, name: str) -> bytes:
        with as_os_errors():
            self.filesystem.invalidate_cache()
            return bytes(self.filesystem.cat_file(self._path(name)))

    def copy(self, name: str, to: str) -> None:
        self.put(to, self.read(name))

    def move(self, name: str, to: str) -> None:
        self.copy(name, to)
        self.remove(name)

    def remove(self, name: str) -> None:
        with as_os_errors(), contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(self._path(name))

    def sync(self) -> None:
        """What was answered is durable."""

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _is_inside(self, path: str) -> bool:
        return path.rstrip("/") != self.path.rstrip("/")


class _OsErrors:
    """A file of a store whose errors are OSError."""

    def __init__(self, handle: BinaryIO, name: str) -> None:
        self.handle, self.name = handle, name

    def read(self, size: int = -1) -> bytes:
        try:
            with as_os_errors():
                return self.handle.read(size)
        except FileNotFoundError as error:
            raise OSError("it was removed since the model was opened, by a newer one; open it again") from error

    def seek(self, position: int) -> int:
        return self.handle.seek(position)

    def close(self) -> None:
        self.handle.close()

    def __enter__(self) -> _OsErrors:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _os_error(error: SafetensorError) -> OSError:
    """What the system said, out of what safetensors makes of it."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))


def place_of(folder: str | os.PathLike[str] | Place) -> Place:
    """The place that a path or an address names; a place is itself."""
    if isinstance(folder, (Folder, Store)):
        return folder
    if folder == "":
        raise ModelFileError("the folder of the model has no name; give one")
    if not isinstance(folder, (str, os.PathLike)):
        raise ModelFileError(f"the folder of a model is {folder!r}; give a path or an address")
    path = local_path(folder)
    return Store(os.fspath(folder)) if path is None else Folder(Path(path))


def open_regular(path: Path) -> BinaryIO:
    """Opens a plain file to read; a link, a pipe, a folder or a device is refused and not waited for."""
    if path.is_symlink():  # what it leads to may change, and is none of the model's
        raise OSError(f"{path.name} is a link, not a regular file")
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_NOFOLLOW"))
    descriptor = os.open(path, sum(flags, os.O_RDONLY))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(descriptor, "rb")


def _checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
