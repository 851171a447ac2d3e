"""The lock of a model folder: one writer at a time. It dies with its process; readers need none.

That of a model in an object store is a ``lease``.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import socket
import stat
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from ringleader.errors import ModelBusyError, ModelFileError, StorageError
from ringleader.runtime.outputs import sync_folder
from ringleader.snapshot.lease import LOCK, Holder, Lease, store_holder
from ringleader.snapshot.place import Place, Store, place_of

PAUSE = 0.1
"""Seconds between two attempts of a writer that waits."""

WINDOWS_BYTE = 1 << 30
"""The byte that is locked on Windows, behind the text: what is locked cannot be read there."""
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""How a lock file is opened: a link is not followed, and a pipe not waited for."""


class LockFile:
    """A lock file that is locked. It is unlocked when it is released, or when nobody holds this object any more: an
    interrupt may come at any moment, that of the release too."""

    def __init__(self, folder: Path, handle: FileIO) -> None:
        self.path, self.handle, self.process = folder / LOCK, handle, os.getpid()

    def release(self) -> None:
        """Removes the file while it is locked: who waits for it finds that it is another one, and tries again.

        Not the one of another folder that took the place of this one, and not in a process that was forked meanwhile.
        """
        if os.getpid() != self.process:
            self.handle.close()
            return
        with contextlib.suppress(OSError):  # Windows removes no open file
            if _is_still(self.path, self.handle.fileno()):
                self.path.unlink()
        self.handle.close()
        if os.name == "nt":
            with contextlib.suppress(OSError):
                self.path.unlink()


_HELD: weakref.WeakValueDictionary[tuple[str, int, int], LockFile | Lease] = weakref.WeakValueDictionary()
"""Folders locked by this process, with the process and the thread that hold them."""


def _forget_locks() -> None:
    """In a forked process: closes the files of its parent, which would stay locked for as long as this one lives."""
    for lock in list(_HELD.values()):
        if isinstance(lock, LockFile):
            lock.handle.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


@contextlib.contextmanager
def writing(
    folder: str | os.PathLike[str],
    command: str = "a Python program",
    *,
    wait: bool = False,
    create: bool = False,
    on_wait: Callable[[Holder], None] | None = None,
) -> Iterator[None]:
    """Holds the lock of a model folder. Within it, the same thread may ask for it again.

    command : what a second writer is told
    wait    : whether to wait for another writer; without, ModelBusyError says who holds the lock
    create  : whether the folder is made where it is missing; without, nothing is locked there
    on_wait : called once with the holder before waiting
    """
    place = place_of(folder)
    key = _key(place)
    if key in _HELD:
        yield
        return
    if isinstance(place, Store):
        with _held(key, _leased(place, command, wait, on_wait)):
            yield
        return
    target = Path(str(place))
    if not create and not target.is_dir():
        yield
        return
    made: list[Path] = []
    try:
        _make_folder(target, made)
        lock = _acquire(target, command, wait, on_wait)
    except FileExistsError as error:
        raise ModelFileError(f"{target} is a file; give a folder for the model") from error
    except OSError as error:
        _remove_empty(made)
        reason = error.strerror or error
        advice = "free some space or choose another folder" if error.errno == errno.ENOSPC else "choose another folder"
        raise StorageError(f"cannot write the model to {target}: {reason}; {advice}") from error
    try:
        with _held(key, lock):
            yield
    finally:
        _remove_empty(made)


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Makes a folder and those above it that are missing, and waits until their names are on disk.

    made : where those that were made are put, the outermost first
    """
    missing = list(itertools.takewhile(lambda above: not above.exists(), (folder, *folder.parents)))
    for above in reversed(missing):
        with contextlib.suppress(FileExistsError):  # somebody else made it meanwhile
            above.mkdir()
            made.append(above)
            sync_folder(above.parent)
    if not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def _remove_empty(folders: Sequence[Path]) -> None:
    """Removes folders, the innermost first, up to one into which something was written."""
    with contextlib.suppress(OSError):
        for folder in reversed(folders):
            folder.rmdir()


@contextlib.contextmanager
def _held(key: tuple[str, int, int], lock: LockFile | Lease) -> Iterator[None]:
    """Within it this thread holds a lock; it is released behind."""
    _HELD[key] = lock
    try:
        yield
    finally:
        _HELD.pop(key, None)
        lock.release()


def _leased(place: Store, command: str, wait: bool, on_wait: Callable[[Holder], None] | None) -> Lease:
    """The lock of a model in an object store, acquired."""
    lease = Lease(place, command)
    try:
        lease.acquire(wait, on_wait)
    except OSError as error:
        raise StorageError(f"cannot write the model to {place}: {error.strerror or error}") from error
    return lease


def check_held(place: Place) -> None:
    """Raises where the lock that this thread holds was taken over by somebody else."""
    held = _HELD.get(_key(place))
    if isinstance(held, Lease):
        held.check()


def _key(place: Place) -> tuple[str, int, int]:
    return place.key(), os.getpid(), threading.get_ident()


def holder(folder: str | os.PathLike[str]) -> Holder | None:
    """Who writes to a model now; None where nobody does."""
    place = place_of(folder)
    if isinstance(place, Store):
        return store_holder(place)
    try:
        handle, _ = _open_lock(Path(str(place)) / LOCK, create=False)
    except OSError:
        return None
    with handle:
        return None if _try_lock(handle.fileno()) else _read_holder(handle.fileno())


def _acquire(folder: Path, command: str, wait: bool, on_wait: Callable[[Holder], None] | None) -> LockFile:
    """The lock file, locked."""
    path, said = folder / LOCK, False
    while True:
        handle, writable = _open_lock(path, create=True)
        descriptor = handle.fileno()
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ModelFileError(f"{path} is not a regular file; remove it")
            if _try_lock(descriptor):
                is_still = _is_still(path, descriptor)
                if is_still and not writable:  # a process of another user left it
                    path.unlink()
                elif is_still:
                    about = {"command": command, "process": os.getpid(), "host": socket.gethostname()}
                    with contextlib.suppress(
                        OSError
                    ):  # a full disk: it is locked all the same, and undo needs no space
                        os.ftruncate(descriptor, 0)
                        os.write(descriptor, json.dumps(about).encode())
                    return LockFile(folder, handle)
            elif not wait:
                said_by = _read_holder(descriptor)
                raise ModelBusyError(
                    f"model {folder} is being written to by {said_by}; wait for it with --wait, or try again later"
                )
            elif not said and on_wait is not None:
                on_wait(_read_holder(descriptor))
                said = True
        except BaseException:
            handle.close()
            raise
        handle.close()
        threading.Event().wait(PAUSE)


def _open_lock(path: Path, *, create: bool) -> tuple[FileIO, bool]:
    """The lock file, and whether it may be written to: one that another user made is only read.

    create : whether it is made where it is missing
    """
    flags = os.O_RDWR | (os.O_CREAT if create else 0) | SAFELY
    try:
        return FileIO(path, "r+", opener=lambda name, _: os.open(name, flags, 0o666)), True
    except PermissionError:
        with contextlib.suppress(OSError):
            return FileIO(path, "r", opener=lambda name, _: os.open(name, os.O_RDONLY | SAFELY)), False
        raise


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether a name is that of the open file still."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read_holder(descriptor: int) -> Holder:
    since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        about = json.loads(os.read(descriptor, 4096))
        return Holder(str(about["command"])[:100], int(about["process"]), str(about["host"])[:100], since)
    except (OSError, ValueError, KeyError, TypeError):  # it has locked the file, and not yet written into it
        return Holder("", None, "", since)


def _try_lock(descriptor: int) -> bool:
    if os.name == "nt":
        import msvcrt

        os.lseek(descriptor, WINDOWS_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
