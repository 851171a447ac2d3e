"""Faults of a cluster at twenty random moments: the bits of one process, or a sentence and a resume to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster_faults.py"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["worker", "stop", "node", "freeze", "cut", "driver", "disk", "corrupt"])
def test_faults_at_twenty_random_moments(fault: str) -> None:
    """The script ends with 0 only where every fit came out right."""
    pytest.importorskip("ray")
    if fault in ("disk", "node", "freeze", "cut") and (not hasattr(os, "geteuid") or os.geteuid() != 0):
        pytest.skip("a small disk is mounted, and nodes have network namespaces: needs Linux and root")
    if fault == "disk":
        pytest.importorskip("moto")
        pytest.importorskip("s3fs")
    words = [sys.executable, str(SCRIPT), "--fault", fault, "--moments", "20"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
