"""Processor seconds of a fit without labels at several commits, in turn.

    python benchmarks/fit_cost.py CHECKOUT CHECKOUT ... [--reviews 1000000] [--turns 2]

Each checkout is a folder with src/ of some commit. One market (medium, seed 77); one process for each fit, one thread,
warmed up on a small market first. The fit, and the suspicion of sellers and reviewers after it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import describe
from ringleader.datasets import marketplace

PROGRAM = """
import json, sys, time
import ringleader as rl
for path in sys.argv[1:]:
    tensor = rl.read_reviews(path)
    began = time.process_time()
    model = rl.RingDetector(random_state=0, threads=1).fit(tensor)
    fitted = time.process_time()
    for mode in ("seller", "reviewer"):
        model.suspicion(mode)
    print(json.dumps([fitted - began, time.process_time() - fitted]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+")
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    print(describe(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{size}.parquet") for size in (5_000, options.reviews)]
        for size, path in zip((5_000, options.reviews), paths, strict=True):
            marketplace(size, difficulty="medium", seed=77).reviews.to_parquet(path, index=False)
        for turn in range(options.turns):
            for checkout in options.checkouts:
                threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
                environment = {**os.environ, **threads, "PYTHONPATH": str(Path(checkout) / "src")}
                line = [sys.executable, "-c", PROGRAM, *paths]
                done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
                fit, suspicion = json.loads(done.stdout.splitlines()[-1])
                commit = subprocess.run(
                    ["git", "describe", "--always", "--dirty"], cwd=checkout, capture_output=True, text=True, check=True
                )
                print(f"{turn + 1} {commit.stdout.strip()} fit {fit:.1f} s, suspicion {suspicion:.1f} s", flush=True)


if __name__ == "__main__":
    main()
