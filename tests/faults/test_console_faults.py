"""The n-th call that changes the log of decisions fails, is torn or is the last: what was acknowledged is there."""

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


def decided_with_faults(folder: Path, step: int) -> dict[str, Any]:
    library = folder / "shim.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, HERE / "shim.c", "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, str(HERE / "deciding.py"), str(folder / "work"), str(step)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    print(said["calls"], said["tried"])
    return said


def test_decisions_survive_a_fault_at_every_fifth_call(tmp_path: Path) -> None:
    said = decided_with_faults(tmp_path, 5)
    assert said["calls"] > 20 and said["tried"]["said"] > 0
    assert said["wrong"] == []


@pytest.mark.slow
@pytest.mark.faults
def test_decisions_survive_a_fault_at_every_call(tmp_path: Path) -> None:
    assert decided_with_faults(tmp_path, 1)["wrong"] == []
