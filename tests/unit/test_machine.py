"""What the machine has to give, on systems and in containers that are not this one."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.evaluation.machine import describe
from ringleader.runtime import machine
from ringleader.tables import read
from ringleader.tables.read import open_relation, parse_memory
from ringleader.tensor import encode, sparse

GB = 10**9
GIB = 2**30
TABLE = pd.DataFrame({"reviewer": ["a", "b", "a"], "product": ["x", "x", "y"]})


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine of 32 GiB and 16 processors whose control groups are in a folder: write files into it."""
    root = tmp_path / "cgroup"
    root.mkdir()
    membership = tmp_path / "membership"
    monkeypatch.setattr(machine, "CONTROL_GROUPS", root)
    monkeypatch.setattr(machine, "MEMBERSHIP", membership)
    monkeypatch.setattr(machine, "physical_memory", lambda: 32 * GIB)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)

    def write(lines: str, **files: str) -> None:
        membership.write_text(lines)
        for name, text in files.items():
            path = root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_the_whole_machine_is_used_where_nothing_limits_it(groups: Any) -> None:
    assert (machine.memory_limit(), machine.processors()) == (32 * GIB, 16)  # no control groups at all
    groups("0::/\n", memory_dot_max="max\n", cpu_dot_max="max 100000\n")
    assert (machine.memory_limit(), machine.processors()) == (32 * GIB, 16)


def test_a_container_of_version_2_limits_memory_and_processors(groups: Any) -> None:
    groups("0::/\n", memory_dot_max=f"{GB}\n", cpu_dot_max="250000 100000\n")
    assert (machine.memory_limit(), machine.processors()) == (GB, 3)


def test_the_narrowest_group_around_the_process_holds(groups: Any) -> None:
    groups("0::/a/b\n", a__memory_dot_max=str(2 * GB), a__b__memory_dot_max=str(3 * GB), a__cpu_dot_max="50000 100000")
    assert (machine.memory_limit(), machine.processors()) == (2 * GB, 1)
    groups("0::/elsewhere/on/the/host\n", memory_dot_max=str(GB))
    assert machine.memory_limit() == GB


def test_a_container_of_version_1_limits_memory_and_processors(groups: Any) -> None:
    lines = "9:name=systemd:/\n4:memory:/box\n3:cpu,cpuacct:/box\n"
    groups(
        lines,
        memory__memory_dot_limit_in_bytes=str(9223372036854771712),
        memory__box__memory_dot_limit_in_bytes=str(GB),
        cpu__box__cpu_dot_cfs_quota_us="400000\n",
        cpu__box__cpu_dot_cfs_period_us="200000\n",
        cpu__cpu_dot_cfs_quota_us="-1\n",
    )
    assert (machine.memory_limit(), machine.processors()) == (GB, 2)


@pytest.mark.parametrize(("size", "at_once"), [(GB, 1), (2 * GB, 2), (8 * GB, 2)])
def test_reading_takes_half_of_the_container_and_as_many_threads_as_that_lasts_for(
    groups: Any, size: int, at_once: int
) -> None:
    groups("0::/\n", memory_dot_max=str(size), cpu_dot_max="200000 100000")
    assert parse_memory(None) == size // 2
    with open_relation(TABLE) as relation:
        assert relation.memory_limit == size // 2
        memory, threads = relation.rows("SELECT current_setting('memory_limit'), current_setting('threads')")[0]
    assert threads == at_once
    number, unit = memory.split()
    scale = {"MiB": 2**20, "GiB": 2**30}[unit]
    assert float(number) == pytest.approx(size // 2 * read.DATABASE_SHARE / scale, abs=0.2)


def test_reading_does_with_little_memory(groups: Any) -> None:
    groups("0::/\n", memory_dot_max=str(10**6))
    assert parse_memory(None) == read.LEAST_MEMORY
    assert rl.read_reviews(TABLE).n_cells == 3


def test_cells_are_counted_on_disk_where_the_container_is_too_small(
    groups: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "bytes_a_row", lambda _: GB // 5)  # so that three rows are too many for half of 1 GB
    ways: list[str] = []
    for way in ("_count_in_memory", "_count_in_database"):
        real = getattr(encode, way)
        monkeypatch.setattr(encode, way, lambda *a, way=way, real=real: ways.append(way) or real(*a))
    rl.read_reviews(TABLE)
    groups("0::/\n", memory_dot_max=str(GB))
    rl.read_reviews(TABLE)
    assert ways == ["_count_in_memory", "_count_in_database"]


def test_systems_without_sysconf_are_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.delattr(ctypes, "windll", raising=False)
    assert machine.physical_memory() is None
    monkeypatch.setattr(machine, "MEMBERSHIP", Path("/nowhere"))
    assert machine.memory_limit() == machine.ASSUMED_MEMORY

    def answer(reference: Any) -> int:
        reference._obj.physical = 16 * GIB
        return reference._obj.length == 64  # as Windows checks it

    windows = SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=answer))
    monkeypatch.setattr(ctypes, "windll", windows, raising=False)
    assert machine.physical_memory() == machine.memory_limit() == 16 * GIB
    assert "16 GiB" in describe()


def test_systems_without_affinity_count_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MEMBERSHIP", Path("/nowhere"))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine.processors() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.processors() == 1


@pytest.mark.skipif(not shutil.which("ps"), reason="there is no ps here")
def test_what_a_process_is_can_be_said_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine.command_line(os.getpid()).replace("\0", " ").split()
    monkeypatch.setattr(machine, "PROCESSES", Path("nowhere"))
    assert here and machine.command_line(os.getpid()).split() == here
    monkeypatch.setenv("PATH", "")
    assert machine.command_line(os.getpid()) == ""


def test_files_that_cannot_be_linked_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    path = tmp_path / "odd[name].csv"
    TABLE.to_csv(path, index=False)
    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert rl.read_reviews(path).n_cells == 3
    assert path.exists()


@pytest.mark.parametrize("way", ["fallocate", "none", "unsupported"])
def test_reserved_files_have_their_blocks(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*args: int) -> None:
        raise OSError(95, "Operation not supported")

    if way == "none":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    elif way == "unsupported":
        monkeypatch.setattr(os, "posix_fallocate", unsupported, raising=False)
    size = machine.ZEROS + 12_345
    with tempfile.TemporaryFile() as file:
        machine.reserve(file, size)
        state = os.fstat(file.fileno())
        assert state.st_size == size
        assert getattr(state, "st_blocks", size) * 512 >= size
        assert file.tell() == 0


def test_groupings_are_mapped_without_fallocate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    tensor = sparse.SparseTensor.from_arrays([[0, 1], [1, 0], [1, 1]])
    expected = tensor.grouping(0)
    monkeypatch.setattr(sparse, "MAP_FROM_BYTES", 0)
    mapped = sparse.SparseTensor.from_arrays([[0, 1], [1, 0], [1, 1]]).grouping(0)
    assert np.array_equal(mapped.offsets, expected.offsets) and np.array_equal(mapped.cells, expected.cells)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_disk_that_is_full_is_an_error_also_while_zeros_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("wb") as file:
        machine.reserve(file, 10**5)


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    machine.return_memory()
    before = resident()
    small = [bytes(100_000) for _ in range(1_000)]  # too small for a mapping of their own
    kept = bytes(100_000)
    held = resident()
    del small
    machine.return_memory()
    assert len(kept) == 100_000
    assert resident() - before < (held - before) / 2


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory in files here")
def test_pages_of_shared_memory_are_let_go_of_and_keep_what_is_in_them() -> None:
    def held() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("RssShmem"))
        assert machine.resident_memory().shared == 1024 * kilobytes
        return kilobytes

    size = 4 * 2**20
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.truncate(size)
        memory = np.memmap(file.name, np.uint8, "r+", shape=(size,))
        before = held()
        memory[:] = 7
        assert held() - before >= 4_000
        machine.leave_shared()
        assert held() - before < 1_000
        assert int(memory.sum()) == 7 * size
        machine.return_memory()
        assert held() - before < 1_000


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_pages_of_messages_that_ray_has_in_files_are_let_go_of_too(tmp_path: Path) -> None:
    def held() -> int:
        return 1024 * int(Path("/proc/self/status").read_text().partition("RssFile:")[2].split()[0])

    size = 8 * 2**20
    path = tmp_path / "plasmaXa3b9c"
    path.write_bytes(bytes(size))
    memory = np.memmap(path, np.uint8, "r+", shape=(size,))
    memory[:] = 7
    path.unlink()
    before = held()
    machine.leave_shared()
    assert before - held() > size // 2
    assert int(memory.sum()) == 7 * size


def test_where_the_system_does_not_say_how_much_memory_is_used_it_is_none(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "STATUS", tmp_path / "none")
    assert machine.resident_memory() == (0, 0)
    (tmp_path / "none").write_text("VmRSS:  12 kB\nRssAnon: 3 kB\n")
    assert machine.resident_memory() == (0, 0)
    (tmp_path / "none").write_text("RssAnon: \t 3 kB\nRssShmem:     4 kB\n")
    assert machine.resident_memory() == (3 * 1024, 4 * 1024)


MAPPED = """
import ctypes, sys
from ringleader.runtime import machine

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
library.mallinfo2.restype = type("Info", (ctypes.Structure,), {"_fields_": [(n, ctypes.c_size_t) for n in names]})

def mapped():
    before = library.mallinfo2().hblks
    first = library.malloc(ctypes.c_size_t(20 << 20))
    library.free(first)  # from which the library would learn to keep as much
    array = library.malloc(ctypes.c_size_t(9 << 20))
    more = library.mallinfo2().hblks - before
    library.free(array)
    return more, library.mallinfo2().keepcost >= 20 << 20

getattr(machine, sys.argv[1])()
print(*mapped(), *mapped())
"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize(("how", "said"), [("return_large_arrays", "1 False"), ("share_heap", "0 True")])
def test_memory_of_large_arrays_goes_back_at_once_or_stays_in_the_heap(how: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", MAPPED, how], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*said.split(), *said.split()]


HEAPS = """
import ctypes, sys, threading
from ringleader.runtime.machine import share_heap
if sys.argv[1] == "shared":
    share_heap()
library, begun = ctypes.CDLL(None), threading.Barrier(5)
def take():
    begun.wait()
    library.malloc(100_000)
threads = [threading.Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
begun.wait()
for thread in threads:
    thread.join()
library.fopen.restype = ctypes.c_void_p
out = library.fopen(sys.argv[2].encode(), b"w")
library.malloc_info(0, ctypes.c_void_p(out))
library.fclose(ctypes.c_void_p(out))
"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_info"), reason="needs glibc")
def test_all_threads_take_their_memory_from_one_heap(tmp_path: Path) -> None:
    heaps = {}
    for how in ("shared", "not"):
        subprocess.run([sys.executable, "-c", HEAPS, how, str(tmp_path / how)], check=True)
        heaps[how] = (tmp_path / how).read_text().count("<heap nr=")
    assert heaps["shared"] == 1 < heaps["not"]
