"""What the tests share: where the real data lie, small tables, and how to run the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SHARED = Path(os.environ.get("RINGLEADER_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that need it skip where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not at {folder}; set RINGLEADER_SHARED to test on them")
    return folder


@pytest.fixture
def table() -> pd.DataFrame:
    """A small clean review table with every default column."""
    rng = np.random.default_rng(7)
    n = 300
    product = rng.integers(0, 25, n)
    return pd.DataFrame(
        {
            "reviewer": [f"r{i:03d}" for i in rng.integers(0, 40, n)],
            "product": [f"p{i}" for i in product],
            "seller": [f"s{i % 5}" for i in product],
            "rating": rng.integers(1, 6, n),
            "timestamp": 1_500_000_000 + rng.integers(0, 10_000_000, n),
        }
    )


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``ringleader`` as a person would, in a process of its own."""

    def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", "from ringleader.cli import main; main()", *map(str, words)]
        return subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)

    return run
