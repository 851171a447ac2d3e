"""The bits of a labelled fit and its heads, whatever the cores, the threads of BLAS, the hash seed, locale and zone."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, os, sys
if sys.argv[1] == "one core" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import ringleader as rl
from ringleader.datasets import marketplace
market = marketplace(2000, difficulty="easy", seed=2)
made = rl.RingDetector(rank=6, epochs=2).fit(market.reviews, market.labels)
frames = [made.scores(mode) for mode in made.tensor_.modes]
numbers = [frame.select_dtypes("number").to_numpy(float).tobytes() for frame in frames]
print(hashlib.sha256(b"".join([made.state_.factors.tobytes(), *numbers])).hexdigest())
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WAYS: dict[str, dict[str, str]] = {
    "one core": {},
    "one thread of BLAS": dict.fromkeys(THREADS[:3], "1"),
    "another hash seed, locale and zone": {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
}


@functools.cache
def bits(way: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in THREADS} | WAYS.get(way, {})
    line = [sys.executable, "-c", SCRIPT, way]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_and_its_heads_have_the_same_bits(way: str) -> None:
    assert bits(way) == bits("as it is") != ""
