"""Load: shapes of markets that would find anything quadratic. Each prints its seconds and its memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.faults]
SCRIPT = """
import json, resource, sys, time
import numpy as np, pandas as pd
import ringleader as rl
shape, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
codes = {
    "one product": (np.arange(n), np.zeros(n, int), np.zeros(n, int)),
    "one reviewer": (np.zeros(n, int), np.arange(n), np.arange(n) % 1000),
    "a review a seller": (rng.integers(0, n // 5, n), np.arange(n), np.arange(n)),
    "long ids": (rng.integers(0, 200, n), rng.integers(0, 100, n), rng.integers(0, 30, n)),
    "many targets": (rng.integers(0, 200, n), rng.integers(0, 100, n), rng.integers(0, 30, n)),
}[shape]
long = "x" * 9_990 if shape == "long ids" else ""
names = [np.array([f"{letter}{long}{i}" for i in range(c.max() + 1)], object)[c] for letter, c in zip("rps", codes)]
frame = pd.DataFrame(dict(zip(("reviewer", "product", "seller"), names)))
frame["rating"], frame["timestamp"] = rng.integers(1, 6, n), rng.integers(1_500_000_000, 1_530_000_000, n)
labels = None
if shape == "many targets":
    rows = [("seller", f"s{i}", k % 2, f"t{t}") for t in range(1000) for k, i in enumerate(range(4))]
    labels = pd.DataFrame(rows, columns=["mode", "entity", "label", "target"])
started = time.perf_counter()
model = rl.RingDetector(preset="paper" if shape == "many targets" else "default", epochs=2).fit(frame, labels)
assert np.isfinite(model.scores("seller")["score"].astype(float)).all()
seconds = time.perf_counter() - started
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"shape": shape, "reviews": n, "seconds": round(seconds, 1), "GB": round(memory, 2)}))
"""


@pytest.mark.parametrize(
    ("shape", "reviews"),
    [
        ("one product", 200_000),
        ("one reviewer", 200_000),
        ("a review a seller", 1_000_000),
        ("long ids", 5_000),
        ("many targets", 5_000),
    ],
)
def test_a_market_of_an_odd_shape_is_learned(shape: str, reviews: int) -> None:
    line = [sys.executable, "-c", SCRIPT, shape, str(reviews)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    print(json.loads(done.stdout))
