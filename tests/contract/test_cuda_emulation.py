"""The emulated GPU: what its tests can find, and that host and kernels agree on the layout of what they share."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from bits import results

from ringleader.kernels.cuda import arguments, emulated, pairs
from ringleader.kernels.cuda.backend import CudaBackend
from ringleader.kernels.cuda.device import FILES, source_text
from ringleader.kernels.cuda.emulated import OPTIONS, SOURCE, EmulatedDevice, compiler
from ringleader.kernels.protocol import get_backend

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no g++ or clang++ to compile the emulation with")


def compiled(folder: Path, text: str, *options: str) -> ctypes.CDLL:
    (folder / "kernel.cpp").write_text(text)
    line = [str(compiler()), *OPTIONS, *options]
    line += [f"-I{SOURCE}", "-include", "emulation.h", str(folder / "kernel.cpp"), "-o", str(folder / "kernel.so")]
    subprocess.run(line, check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


@pytest.mark.parametrize("rank", [7, pytest.param(33, marks=pytest.mark.slow)])
def test_the_order_in_which_lanes_take_turns_does_not_change_a_bit(rank: int) -> None:
    """A missing __syncwarp would: one lane would read what another has not written yet."""
    host = get_backend("numba", 1)
    one, other = (CudaBackend("cuda-emulated", EmulatedDevice(descending), host) for descending in (False, True))
    made, again = results(one, rank, 200), results(other, rank, 200)
    for operation, arrays in made.items():
        for a, b in zip(arrays, again[operation], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=operation)


RACE = """
extern "C" __global__ void race(double* out) {
    SHARED(memory);
    double* shared = (double*)memory;
    shared[threadIdx.x] = threadIdx.x;
    MEET
    out[threadIdx.x] = shared[31 - threadIdx.x];
}
KERNEL(race)
"""


@pytest.mark.parametrize(("meet", "differs"), [("__syncwarp();", False), ("", True)])
def test_a_race_shows_as_a_difference_between_the_orders(tmp_path: Path, meet: str, differs: bool) -> None:
    library = compiled(tmp_path, RACE.replace("MEET", meet))
    made = []
    for descending in (0, 1):
        out = np.zeros(32)
        place = ctypes.c_void_p(out.ctypes.data)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(place))
        assert library.launch_race(1, ctypes.c_size_t(256), pointers, descending) == 0
        made.append(out)
    assert np.array_equal(made[0], made[1], equal_nan=True) != differs


def test_lanes_that_meet_at_different_lines_are_an_error(tmp_path: Path) -> None:
    text = """
extern "C" __global__ void diverge(int) {
    if (threadIdx.x % 2) {
        __syncwarp();
    } else {
        __syncwarp();
    }
}
KERNEL(diverge)
"""
    number = ctypes.c_int(0)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(number))
    assert compiled(tmp_path, text).launch_diverge(1, ctypes.c_size_t(0), pointers, 0) == 1


@pytest.mark.parametrize("rank", [1, 33, *(pytest.param(rank, marks=pytest.mark.slow) for rank in (8, 24, 64))])
def test_host_and_kernels_agree_on_structures_and_sizes(tmp_path: Path, rank: int) -> None:
    text = """
#include "sums.h"
#include "pairs.cu"
extern "C" size_t sizes(int which) {
    const size_t all[] = {sizeof(View), sizeof(Lists), sizeof(Rule), sizeof(Labels), sizeof(Carried), sizeof(Meetings),
                          sizeof(Chance), FILTER_BITS, SUMS};
    return all[which];
}
extern "C" size_t scratch() { return (char*)scratch_of((char*)0).places - (char*)0; }
"""
    options = (f"-DRANK={rank}", "-DSTORED=float", "-DOTHERS=-1", "-DCONTRAST_ROWS=-1")
    library = compiled(tmp_path, text, *options)
    form = arguments.Form(rank, "float", 3, 5)
    structures = [arguments.ViewArgument, arguments.ListsArgument, arguments.RuleArgument]
    structures += [arguments.LabelsArgument, arguments.CarriedArgument]
    structures += [pairs.MeetingsArgument, pairs.ChanceArgument]
    expected = [ctypes.sizeof(structure) for structure in structures] + [pairs.FILTER_BITS, form.sums]
    assert [library.sizes(which) for which in range(9)] == expected
    assert library.scratch() + 4 * 32 * 8 == form.shared


def test_the_text_for_the_device_includes_each_file_once() -> None:
    for name in FILES:
        text = source_text(name)
        assert "#include" not in text
        assert text.count("struct View {") == 1
        assert all(f" {kernel}(" in text for kernel in FILES[name])


@pytest.mark.parametrize("writable", [True, False])
def test_compiled_kernels_leave_no_temporary_folder(tmp_path: Path, monkeypatch, writable: bool) -> None:
    libraries, temporary = tmp_path / "libraries", tmp_path / "temporary"
    temporary.mkdir()
    if not writable:
        libraries.write_text("a file, where a folder should be")
    monkeypatch.setattr(emulated, "LIBRARIES", libraries)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    nothing = [str(compiler()), "-shared", "-x", "c++", "/dev/null", "-o"]
    monkeypatch.setattr(emulated, "_compile", lambda _, path: subprocess.run([*nothing, path], check=True))
    assert isinstance(emulated._library.__wrapped__(("-DRANK=7",)), ctypes.CDLL)
    assert not list(temporary.iterdir())
    assert writable == libraries.is_dir()
