"""The n-th call that changes a file fails, is torn or is the last: the old files or the new ones stand there, whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="the shim needs a C compiler and Linux"
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, HERE / "shim.c", "-ldl"], check=True)
    return library


def inject(shim: Path, operation: str, folder: Path, step: int) -> dict[str, Any]:
    environment = {**os.environ, "LD_PRELOAD": str(shim), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, str(HERE / "injecting.py"), operation, str(folder), str(step)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_store_survives_a_fault_at_every_second_call(shim: Path, tmp_path: Path) -> None:
    said = inject(shim, "store", tmp_path, 2)
    print(said["calls"], said["tried"])
    assert said["calls"] > 20
    assert said["wrong"] == []


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("operation", ["store", "update", "undo", "fit", "overwriting fit", "generate", "outputs"])
def test_an_operation_survives_a_fault_at_every_call(operation: str, shim: Path, tmp_path: Path) -> None:
    said = inject(shim, operation, tmp_path, 1)
    print(said["calls"], said["tried"])
    assert said["wrong"] == []
