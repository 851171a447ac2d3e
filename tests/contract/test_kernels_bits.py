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
    assert len(native.splitlines()) == 2 * 45


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
    assert run("-c", script, NUMBA_DISABLE_JIT="1").strip() == "45"


MATRICES = """
import hashlib
import numpy as np
from ringleader.kernels.eigen import left_vectors, symmetric_eigen
from scipy import sparse
from ringleader.kernels.tiles import graph_times, gram, inverse_factor, outer_products, product, row_lengths
from ringleader.kernels.tiles import times_vector, vector_times
rng = np.random.default_rng(5)
rows, weight = rng.normal(size=(90, 110)), rng.uniform(0.01, 0.25, 90)
block = gram(rows, weight) + np.eye(110)
factor, single = inverse_factor(block), rows.astype(np.float32)
made = [block, factor, product(rows, factor.T), left_vectors(rows, 3)]
made += [row_lengths(lambda part: single[part], 90, factor.T)]
made += [times_vector(rows, factor[-1]), vector_times(weight, rows), *symmetric_eigen(block[:40, :40])]
made += [outer_products(np.array([0, 50, 90]), rows[:, :24], rows[:, :7])]
graph = sparse.random_array((70, 90), density=0.2, rng=rng, format='csr')
made += [graph_times(graph, rows[:, :20]), graph_times(graph.T, rows[:70, :20])]
for array in made:
    print(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())
"""


@pytest.mark.slow  # compiles for another processor
def test_matrices_have_the_same_bits_on_a_processor_without_wide_registers_or_fma(tmp_path: Path) -> None:
    generic = run("-c", MATRICES, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_CPU_NAME="generic")
    assert run("-c", MATRICES).splitlines() == generic.splitlines()
    assert len(generic.splitlines()) == 12
