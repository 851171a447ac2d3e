"""Faults of a cluster at random moments: the bits of one process, or a sentence and a resume to the same bits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster_faults.py"
AS_ROOT = ("disk", "node", "cut")


def outcomes(fault: str, moments: int) -> None:
    """The script ends with 0 only where every fit came out right."""
    pytest.importorskip("ray")
    if fault in AS_ROOT and (not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None):
        pytest.skip(f"the fault {fault!r} mounts a disk or makes network namespaces: needs Linux, root and iproute2")
    words = [sys.executable, str(SCRIPT), "--fault", fault, "--moments", str(moments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_worker_that_stops_answering_costs_no_bit() -> None:
    outcomes("stop", 1)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["worker", "stop", "driver", "disk", "corrupt", "node", "cut"])
def test_faults_at_twenty_random_moments(fault: str) -> None:
    outcomes(fault, 20)
