"""Memory and processors that this process may use, space on disk and the time, on Linux, macOS and Windows.

A container has less than its machine: control groups of Linux say how much. Version 2 keeps its limits in
``memory.max`` and ``cpu.max``, version 1 in a folder for each controller.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import math
import mmap
import os
import platform
import subprocess
import sys
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

CONTROL_GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
"""One line for each hierarchy: ``0::/path`` for version 2, ``N:controllers:/path`` for version 1."""

PROCESSES = Path("/proc")
"""A folder for each process, on Linux."""

ASSUMED_MEMORY = 4 * 2**30
"""Bytes, where the system does not say how much memory it has."""

LIBRARY_ADDRESSES = 7 * 2**28
THREAD_ADDRESSES = 2**27
"""Bytes of addresses, most of them never used: a fit of 3,000 reviews by two threads needs 1.7 to 2.0 GB of them. The C
library of Linux takes 64 to 128 MiB for the heap of each thread."""

ZEROS = 1 << 22
"""Bytes written at a time where blocks cannot be reserved otherwise."""

MAPPINGS = Path("/proc/self/maps")
"""What memory this process has, one line for each range: ``first-last rwxs offset device number path``."""
STATUS = Path("/proc/self/status")
"""What this process uses, one line each: ``RssAnon:   123 kB`` for its own pages in memory, ``RssShmem`` for those of
shared memory that it has."""
SHARED_MEMORY = ("/dev/shm/", "/plasma")
"""What is in the paths of shared memory: where the system has it, and what Ray calls its files. Messages that find no
place there are in such a file in Ray's folder for temporary files."""
DO_NOT_NEED = 4
"""MADV_DONTNEED: of shared memory it takes pages from this process alone."""

MAPPED_FROM_OPTION, MAPPED_FROM = -3, 8 << 20
HEAPS_OPTION, HEAPS = -8, 2
"""M_MMAP_THRESHOLD, bytes from which an array has memory of its own; M_ARENA_MAX, heaps of all threads."""
IN_HEAP, KEPT_OPTION, KEPT = 32 << 20, -1, 192 << 20
"""Bytes up to which the heap of all threads has arrays, the most that the library takes; M_TRIM_THRESHOLD, bytes at the
end of the heap that stay when they are free: what two threads have at once of arrays that come and go."""

MAPPED: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""Temporary files that are mapped into the memory of this process (``runtime/mapped.py``)."""

NOT_SUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""How a system or a file system says that it cannot reserve blocks."""


def memory_limit() -> int:
    """Bytes that this process may use: physical memory or, if smaller, the limit of the container."""
    texts = _group_settings("memory", "memory.max", "memory.limit_in_bytes", MEMBERSHIP, CONTROL_GROUPS)
    limits = [int(text) for text in texts if text.isdigit()]
    return min([physical_memory() or ASSUMED_MEMORY, *(limit for limit in limits if limit > 0)])


def address_space() -> int | None:
    """Bytes of addresses that this process may hold (``ulimit -v``); None where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def least_address_space() -> int:
    """Bytes of addresses that commands need, whatever the data: libraries, and heap and stack of each thread.

    With less, DuckDB and Arrow end the process where they should say that memory is short.
    """
    return LIBRARY_ADDRESSES + processors() * THREAD_ADDRESSES


def physical_memory() -> int | None:
    """Bytes of memory in the machine; None where the system does not say."""
    try:
        pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _windows_memory()
    return pages if pages > 0 else None


def processors() -> int:
    """Processors that this process may run on, at least 1: its affinity or, if smaller, the quota of the container."""
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    else:
        number = os.cpu_count() or 1
    return max(1, min([number, *(math.ceil(quota) for quota in _processor_quotas(MEMBERSHIP, CONTROL_GROUPS))]))


def command_line(process: int) -> str:
    """What a process of this machine was started with, NULs or blanks between the words; "" where it is gone."""
    try:
        return (PROCESSES / str(process) / "cmdline").read_text(errors="replace")
    except OSError:  # gone, or no Linux
        line = ["ps", "-ww", "-o", "command=", "-p", str(process)]
        with contextlib.suppress(OSError):  # Windows has no ps
            return subprocess.run(line, capture_output=True, text=True, check=False).stdout
    return ""


def process_space() -> str:
    """What tells processes of the same numbers apart: the boot of the machine, and the container; "" where unknown.

    Elsewhere than on Linux there may be no harmless way to ask whether a process lives.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def process_space_checksum() -> str:
    """The process space in 8 hexadecimal digits, for names of files; "" where it is unknown.

    Elsewhere than on Linux it is that of the machine's name: a number that is in use again after a boot is of a process
    that lives, so that nothing is taken for abandoned that is not.
    """
    space = process_space() or ("" if sys.platform == "linux" else platform.node())
    return hashlib.sha256(space.encode()).hexdigest()[:8] if space else ""


def reserve(file: IO[bytes], size: int) -> None:
    """Makes an empty file ``size`` bytes long with all its blocks on disk; OSError where the disk is full.

    A file that is only given its length has none: a full disk would end the process at the first write to it.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
    zeros = bytes(min(size, ZEROS))
    for start in range(0, size, ZEROS):
        file.write(zeros[: size - start])
    file.flush()
    file.seek(0)


@lru_cache(maxsize=8)
def _processor_quotas(membership: Path, groups: Path) -> list[float]:
    """Processors that each limited group around this process may keep busy. Read once: kernels ask for it each time."""
    quotas = []
    for text in _group_settings("cpu", "cpu.max", "cpu.cfs_quota_us", membership, groups):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and int(quota) > 0:
            quotas.append(int(quota) / (int(period) if period.isdigit() and int(period) > 0 else 100_000))
    return quotas


def _group_settings(controller: str, current: str, legacy: str, membership: Path, groups: Path) -> Iterator[str]:
    """One setting of every control group around this process, as it is written; none where there are no groups."""
    try:
        lines = membership.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            root, name = groups, current
        elif controller in controllers.split(","):
            root, name = groups / controller, legacy
        else:
            continue
        # In a container the path may be that of the host, and only its end, or nothing of it, is mounted.
        group = root / path.strip("/")
        for folder in dict.fromkeys((group, *(p for p in group.parents if p.is_relative_to(root)), root)):
            text = _text(folder / name)
            if text and name == "cpu.cfs_quota_us":
                text = f"{text} {_text(folder / 'cpu.cfs_period_us')}"
            if text:
                yield text


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("physical", "free", "paged", "free_paged", "virtual", "free_virtual")),
        ("free_extended", ctypes.c_uint64),
    )


def _windows_memory() -> int | None:
    """Physical memory by the Windows API; None on other systems."""
    library = getattr(ctypes, "windll", None)
    if library is None:
        return None
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    return int(status.physical) if library.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def return_memory() -> None:
    """Give memory that was freed back to the system: the C library of Linux, and Arrow, keep much of it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
        leave_shared()
    arrow = sys.modules.get("pyarrow")  # where it is used
    if arrow is not None:
        arrow.default_memory_pool().release_unused()


def share_heap() -> None:
    """From now on, have the C library of Linux keep one heap for all threads: for whoever has the process to himself.

    With one for each, memory that one thread has freed is of no use to the others: a new review in a market of a
    million took 0.3 GB more, and the system cleared twice as many pages for it (docs/performance.md). Arrays of some
    megabytes, which come and go in every loop, have their memory in it from the first one on.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            library = ctypes.CDLL(None)
            for option, value in ((HEAPS_OPTION, 1), (MAPPED_FROM_OPTION, IN_HEAP), (KEPT_OPTION, KEPT)):
                library.mallopt(option, value)


def return_large_arrays() -> None:
    """From now on, have the C library of Linux give back what large arrays took as soon as they are freed.

    It would learn from the first ones that are freed to keep up to 32 MB of each in its heaps, one for each of many
    threads. What lies behind them there cannot be given back: a worker had 200 MB at the end that nothing used.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(MAPPED_FROM_OPTION, MAPPED_FROM)
            library.mallopt(HEAPS_OPTION, HEAPS)


class ResidentMemory(NamedTuple):
    """Bytes that this process has in memory.

    own    : its own, with what was freed and not given back to the system
    shared : of shared memory, what it has read or written and not let go of
    """

    own: int
    shared: int


def resident_memory() -> ResidentMemory:
    """Both are 0 where the system does not say."""
    try:
        text = STATUS.read_bytes()
        own, shared = (int(text.partition(name)[2].split(None, 1)[0]) * 1024 for name in (b"RssAnon:", b"RssShmem:"))
        return ResidentMemory(own, shared)
    except (OSError, ValueError, IndexError):
        return ResidentMemory(0, 0)


def leave_mapped() -> None:
    """Let go of the pages of mapped temporary files that this process has read or written; the files have them."""
    for mapping in list(MAPPED):
        if hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)


def leave_shared() -> None:
    """Let go of the pages of shared memory under ``SHARED_MEMORY``, and of mapped files, that this process has read or
    written.

    They stay what they are, and are there again when they are used. Ray's messages lie in such memory; what a process
    has seen of it would count as its own to the end.
    """
    leave_mapped()
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL(None, use_errno=True)
        for line in MAPPINGS.read_text().splitlines():
            span, _, rest = line.partition(" ")
            if rest[3:4] == "s" and any(name in rest for name in SHARED_MEMORY):
                first, last = (int(end, 16) for end in span.split("-"))
                library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), DO_NOT_NEED)
