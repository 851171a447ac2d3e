"""Files that appear whole: written beside their name, synced to disk, then renamed. What exists is replaced when asked.

Whatever interrupts a write, a full disk or a kill, what stood under the name stays as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ringleader.errors import StorageError
from ringleader.runtime.machine import process_space_checksum
from ringleader.runtime.stores import is_url

MANIFEST, MODEL_FORMAT = "manifest.json", "ringleader-model"
"""The file by which a folder is known as that of a model, and what it says of its format."""
LARGEST_MANIFEST = 1 << 28
"""Bytes of a manifest; a larger one is none of ours."""
SHOWN = 3
"""Files that a message names; the others it counts."""
LONGEST_STEM = 200
"""Bytes of a name that its temporary file repeats, so that a long name stays a valid one."""

PARTIAL = re.compile(r"\.(?P<stem>.+)\.(?:(?P<space>[0-9a-f]{8})-)?(?P<process>\d+)-[0-9a-f]{8}\.partial", re.DOTALL)
"""Names of temporary files: a checksum of the process space, and the process in it. Earlier versions wrote no space,
and nor do those where it is unknown."""


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; behind the block it is synced and takes the name of ``path``.

    What ``check_writable`` refuses is refused. Where the block fails, the temporary file is removed. A link is
    followed; a pipe or a device is written to as it is.
    """
    check_writable(path, overwrite=overwrite)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = temporary_beside(target)
    try:
        yield temporary
        sync_file(temporary)
        check_writable(path, overwrite=overwrite)  # whoever wrote meanwhile
        _give_name(temporary, target, overwrite=overwrite)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _give_name(temporary: Path, target: Path, *, overwrite: bool) -> None:
    """Gives a finished file the name of ``target``; unless overwriting, one that appeared at the last moment stays."""
    if not overwrite:
        try:
            os.link(temporary, target)
        except FileExistsError:
            check_writable(target)  # which refuses it
            raise
        except OSError:  # no links on this file system: a name that was free a moment ago is taken
            pass
        else:
            with contextlib.suppress(OSError):  # the output is whole, and the next one removes what is left
                temporary.unlink()
            return
    temporary.replace(target)


def check_writable(*paths: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuses files that must not be written, by name: before the work, and again when they are written.

    Refused are files that exist, unless they may be overwritten; folders; files in the folder of a model, which holds
    its own alone, or where nobody may write; and addresses. Pipes and devices may be written to.
    """
    there_now = {os.fspath(path): _is_there(os.fspath(path)) for path in paths}
    files = {path: is_there for path, is_there in there_now.items() if is_there is not None}
    for folder, path in {Path(os.path.realpath(path)).parent: path for path in files}.items():
        _check_folder(folder, path)
    there = [path for path, is_there in files.items() if is_there]
    if there and not overwrite:
        others = f" and {len(there) - SHOWN:,} more" if len(there) > SHOWN else ""
        verb, them = ("exists", "it") if len(there) == 1 else ("exist", "them")
        named = f"{', '.join(there[:SHOWN])}{others} {verb} already"
        raise StorageError(f"{named}; choose another name, or replace {them} with --overwrite")


def _is_there(path: str) -> bool | None:
    """Whether a plain file is there; None for a pipe or a device. What can never be a file is refused."""
    if is_url(path):
        raise StorageError(
            f"{path} is an address; outputs are files of this machine: write one here, and copy it there"
        )
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"cannot write {path}: {reason_of(error)}; choose another place") from error
    if stat.S_ISDIR(mode):
        raise StorageError(f"{path} is a folder; name a file")
    return True if stat.S_ISREG(mode) else None


def _check_folder(folder: Path, path: str) -> None:
    """Refuses a folder in which nothing can or may be written; one that is missing will be made. path : a file in it"""
    if is_model_folder(folder):
        raise StorageError(f"{folder} is the folder of a model, where nothing else is written; choose another")
    nearest = next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent)), folder)
    if not nearest.is_dir():
        raise StorageError(f"cannot write {path}: {nearest} is not a directory; choose another folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StorageError(f"cannot write {path}: writing in {nearest} is denied; choose another folder")


def is_model_folder(folder: Path) -> bool:
    """Whether a folder of this machine is that of a model, in whatever state the model may be."""
    manifest = folder / MANIFEST
    try:
        if not manifest.is_file():  # a pipe would be waited for
            return False
        with manifest.open("rb") as handle:
            return is_manifest_text(handle.read(LARGEST_MANIFEST))
    except OSError:
        return False


def is_manifest_text(content: bytes) -> bool:
    """Whether a file is the manifest of a model, in whatever state the rest of it may be."""
    try:
        return bool(json.loads(content).get("format") == MODEL_FORMAT)
    except (ValueError, AttributeError, RecursionError):
        return False


def temporary_beside(target: Path) -> Path:
    """A new empty file beside ``target``, made by nobody else, with the mode of the file that it will replace."""
    _remove_abandoned(target)
    space = process_space_checksum()
    process = f"{space}-{os.getpid()}" if space else f"{os.getpid()}"
    temporary = target.with_name(f".{_stem(target)}.{process}-{secrets.token_hex(4)}.partial")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    if target.is_file():
        with contextlib.suppress(OSError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    return temporary


def _stem(target: Path) -> str:
    """What the temporary file of a name repeats of it."""
    return os.fsencode(target.name)[:LONGEST_STEM].decode(errors="ignore")


def reason_of(error: OSError) -> str:
    """Why the system refused, in its own words, and in which worker; libraries put theirs around them."""
    return os.strerror(error.errno) + vars(error).get("where", "") if error.errno else str(error)


def error_of_worker(error: OSError, worker: str) -> OSError:
    """An error of a worker as one of this process, with its name."""
    where = f" in {worker}"
    raised = OSError(error.errno, f"{error.strerror or error}{where}")
    vars(raised)["where"] = where
    return raised


def sync_file(path: Path) -> None:
    """Waits until the content of a file is on disk."""
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk."""
    if os.name == "nt":  # a folder cannot be opened there, and renaming is enough
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(target: Path) -> None:
    """Removes what a killed process of this machine, or container, left beside a name.

    The folder may be shared: a process of another one cannot be asked for by its number.
    """
    if os.name == "nt":  # no harmless way to ask whether a process lives
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            match = PARTIAL.fullmatch(name)
            if match and match["stem"] == _stem(target) and is_gone(match["space"], int(match["process"])):
                target.with_name(name).unlink(missing_ok=True)


def is_gone(space: str | None, process: int) -> bool:
    """Whether a process has ended that wrote its space (``process_space_checksum``) and number into a name.

    Of one that wrote no space, or another one, nothing is known.
    """
    return bool(space) and space == process_space_checksum() and not is_alive(process)


def is_alive(process: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
