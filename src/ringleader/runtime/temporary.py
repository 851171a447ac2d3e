"""Temporary folders that do not outlive their process: what a killed one left is removed by the next."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ringleader.errors import StorageError

PREFIX = "ringleader-"
ALIVE = "in-use"
"""A file that a process holds locked while its folder is in use."""


@contextlib.contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A new folder, removed behind the block; ``parent`` is the system's folder for temporary files by default."""
    place = Path(parent) if parent is not None else Path(tempfile.gettempdir())
    _remove_abandoned(place)
    folder = place / f"{PREFIX}{secrets.token_hex(16)}"  # named before it is made: a signal in between leaves nothing
    descriptor = None
    try:
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot write into {place}: {error.strerror or error}") from error
        descriptor = _mark(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _mark(folder: Path) -> int | None:
    """Locks a file in the folder before it gets its name, so that nobody finds it there unlocked."""
    if os.name == "nt":  # nothing is removed there, so nothing need be marked
        return None
    import fcntl

    try:
        descriptor = os.open(folder / f".{ALIVE}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / f".{ALIVE}").rename(folder / ALIVE)
    except OSError:
        return None
    return descriptor


def _remove_abandoned(place: Path) -> None:
    """Removes folders of processes that are gone: whose lock can be had."""
    if os.name == "nt":
        return
    import fcntl

    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            if not name.startswith(PREFIX):
                continue
            with contextlib.suppress(OSError):
                descriptor = os.open(place / name / ALIVE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(place / name, ignore_errors=True)
                finally:
                    os.close(descriptor)
