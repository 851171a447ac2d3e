"""Compiled kernels compute the same bits on every x86-64 processor, and run without compilation too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def run(*words: object, **variables: str) -> str:
    line = [sys.executable, "-W", "error::RuntimeWarning", *map(str, words)]
    done = subprocess.run(line, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # compiles every kernel twice
def test_a_processor_without_wide_registers_or_fma_computes_the_same_bits(tmp_path: Path) -> None:
    script = FOLDER / "bits.py"
    native = run(script, "numba", 3000, 7, 24, NUMBA_CACHE_DIR=str(tmp_path / "native"))
    generic = run(script, "numba", 3000, 7, 24, NUMBA_CACHE_DIR=str(tmp_path / "generic"), NUMBA_CPU_NAME="generic")
    assert native.splitlines() == generic.splitlines()
    assert len(native.splitlines()) == 2 * 18


def test_without_compilation_every_operation_agrees_with_the_reference() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "import numpy as np\n"
        "from bits import results\n"
        "from ringleader.kernels.protocol import get_backend\n"
        "for rank in (3, 9):\n"
        "    made, expected = (results(get_backend(name, 1), rank, 100) for name in ('numba', 'reference'))\n"
        "    for operation, arrays in made.items():\n"
        "        for a, b in zip(arrays, expected[operation], strict=True):\n"
        "            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7, err_msg=operation)\n"
        "print(len(made))\n"
    )
    assert run("-c", script, NUMBA_DISABLE_JIT="1").strip() == "18"
