"""Temporary folders that do not outlive their process: what a killed one left is removed by the next."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ringleader.errors import StorageError
from ringleader.runtime.machine import process_space_checksum
from ringleader.runtime.outputs import is_gone

OURS = re.compile(r"ringleader-(?:(?:(?P<space>[0-9a-f]{8})-)?(?P<process>\d+)-)?[0-9a-f]{32}")
"""Names of our folders: a checksum of the process space, and the process in it. Earlier versions have neither, or no
space, and nor have those where it is unknown."""
ALIVE = "in-use"
"""A file that a process holds locked while its folder is in use."""
OLD = 3600.0
"""Seconds after which a folder without that file is one of a process that was killed while it made or removed it."""


@contextlib.contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A new folder, removed behind the block; ``parent`` is the system's folder for temporary files by default."""
    place = Path(parent) if parent is not None else Path(tempfile.gettempdir())
    _remove_abandoned(place)
    # Named before it is made: a signal in between leaves nothing.
    space = process_space_checksum()
    process = f"{space}-{os.getpid()}" if space else f"{os.getpid()}"
    folder = place / f"ringleader-{process}-{secrets.token_hex(16)}"
    descriptor = None
    try:
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot write into {place}: {error.strerror or error}") from error
        descriptor = _mark(folder)
        yield folder
    finally:
        _remove(folder)
        if descriptor is not None:
            os.close(descriptor)


def _mark(folder: Path) -> int | None:
    """Locks a file in the folder before it gets its name, so that nobody finds it there unlocked.

    None where the file system has no locks.
    """
    if os.name == "nt":  # nothing is removed there, so nothing need be marked
        return None
    import fcntl

    try:
        descriptor = os.open(folder / f".{ALIVE}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / f".{ALIVE}").rename(folder / ALIVE)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(folder: Path) -> None:
    """Removes a folder, its mark last: where a kill interrupts it, the next process knows that this one is gone."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name not in (ALIVE, f".{ALIVE}"):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(place: Path) -> None:
    """Removes folders of processes that are gone: whose lock can be had, or that have none, are old and of this space.

    The folder may be shared: a process of another machine or container cannot be asked for by its number.
    """
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            match = OURS.fullmatch(name)
            if match is None:
                continue
            with contextlib.suppress(OSError):
                about = (place / name).lstat()
                if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
                    continue  # a link that somebody planted, or a folder of somebody else
                if os.path.lexists(place / name / ALIVE):
                    _remove_unlocked(place / name)
                    continue
                known = match["space"] is not None and is_gone(match["space"], int(match["process"]))
                if known and time.time() - about.st_mtime > OLD:
                    _remove(place / name)


def _remove_unlocked(folder: Path) -> None:
    """Removes a folder whose mark no process holds locked."""
    import fcntl

    descriptor = os.open(folder / ALIVE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(descriptor)
