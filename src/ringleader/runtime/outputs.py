"""Files that appear whole: written beside their name, synced to disk, then renamed.

Whatever interrupts a write, a full disk or a kill, what stood under the name stays as it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

LONGEST_STEM = 100
"""Characters of a name that its temporary file repeats, so that a long name stays a valid one."""

PARTIAL = re.compile(r"\.(?P<stem>.+)\.(?P<process>\d+)-[0-9a-f]{8}\.partial", re.DOTALL)
"""Names of temporary files."""


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; behind the block it is synced and takes the name of ``path``.

    Where the block fails, the temporary file is removed. A link is followed; a pipe or a device is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    temporary = temporary_beside(target)
    try:
        yield temporary
        sync_file(temporary)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def temporary_beside(target: Path) -> Path:
    """A new empty file beside ``target``, made by nobody else, with the mode of the file that it will replace."""
    _remove_abandoned(target)
    name = f".{target.name[:LONGEST_STEM]}.{os.getpid()}-{secrets.token_hex(4)}.partial"
    temporary = target.with_name(name)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    if target.is_file():
        with contextlib.suppress(OSError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    return temporary


def reason_of(error: OSError) -> str:
    """Why the system refused, in its own words; libraries put theirs around them."""
    return os.strerror(error.errno) if error.errno else str(error)


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
    """Removes what a killed process left beside a name."""
    if os.name == "nt":  # no harmless way to ask whether a process lives
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            match = PARTIAL.fullmatch(name)
            if match and match["stem"] == target.name[:LONGEST_STEM] and not is_alive(int(match["process"])):
                target.with_name(name).unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
