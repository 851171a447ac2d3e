"""The bits of a labelled fit and all it answers, whatever the processor, the cores, the threads, locale and zone."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath as numpy_core

SCRIPT = Path(__file__).parent / "fit_bits.py"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
DISPATCHED = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
WIDE = [name for name in DISPATCHED if name.startswith(("AVX512", "X86_V4"))]
"""What NumPy has code of its own for, of what this processor has; and what of it is AVX-512."""

NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": " ".join(WIDE), "OPENBLAS_CORETYPE": "Haswell"}
BASELINE = {"NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED), "OPENBLAS_CORETYPE": "Nehalem"}
PLAIN_LIBM = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-FMA4"}
GENERIC = {"NUMBA_CPU_NAME": "generic"}
PROCESSORS: dict[str, dict[str, str]] = {
    "without AVX-512": NO_AVX512,
    "the baseline of x86-64": BASELINE,
    "a C library without FMA": PLAIN_LIBM,
    "kernels compiled for any processor": GENERIC,
    "all of these": BASELINE | PLAIN_LIBM | GENERIC,
}
WAYS: dict[str, dict[str, str]] = {
    "one core": {},
    "one thread of BLAS": dict.fromkeys(THREADS[:3], "1"),
    "another hash seed, locale and zone": {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
}
x86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="these are ways of x86-64")


def run(environment: dict[str, str], *words: str) -> list[str]:
    whole = {name: value for name, value in os.environ.items() if name not in THREADS} | environment
    line = [sys.executable, str(SCRIPT), *words]
    done = subprocess.run(line, env=whole, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@functools.cache
def here(*words: str) -> list[str]:
    lines = run({}, *words)
    assert len(lines) > 200
    return lines


@x86
def test_a_fit_on_a_processor_without_wide_registers_has_the_same_bits() -> None:
    """Labels of one mode alone; of all modes the processors one by one, below."""
    assert run(BASELINE | PLAIN_LIBM, "as it is", "seller") == here("as it is", "seller")


@x86
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("words", [("as it is",), ("with cores",)], ids=["small", "with cores"])
@pytest.mark.parametrize("way", [way for way, what in PROCESSORS.items() if not what.keys() & GENERIC.keys()])
def test_a_fit_and_its_answers_have_the_same_bits_on_any_processor(way: str, words: tuple[str, ...]) -> None:
    assert run(PROCESSORS[way], *words) == here(*words)


@x86
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("way", [way for way, what in PROCESSORS.items() if what.keys() & GENERIC.keys()])
def test_so_it_has_with_kernels_compiled_for_any_processor(way: str, tmp_path: Path) -> None:
    """Labels of one mode alone: without FMA every product of a head is a call of the C library."""
    made = run(PROCESSORS[way] | {"NUMBA_CACHE_DIR": str(tmp_path)}, "as it is", "seller")
    assert made == here("as it is", "seller")


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_and_its_heads_have_the_same_bits(way: str) -> None:
    assert run(WAYS[way], way) == here("as it is")
