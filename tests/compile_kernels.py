"""Compiles the kernels that the tests use, by two processes, so that those that run tests find them compiled.

    python compile_kernels.py

Without it each of these would compile all of them at the same time, two minutes of a processor each.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import ringleader as rl
from ringleader.baselines.registry import baseline
from ringleader.datasets import marketplace
from ringleader.tensor.sparse import SparseTensor

sys.path.append(str(Path(__file__).parent / "cluster"))
from in_process import InProcess

PARTS = ("single", "double")
"""Precision of the factors. About as much is compiled for either."""


def compile_for(part: str, reviews: SparseTensor, labels: object) -> None:
    """Fits every kind of model that has kernels of its own."""
    if part == "double":
        for name in ("bptf", "bnbcp", "bnbcp-svi", "mzoom", "mbiz", "crossspot"):
            baseline(name).fit(reviews)
    settings = {"preset": "default" if part == "single" else "corrected", "rank": 2, "epochs": 1}
    model = rl.RingDetector(**settings).fit(reviews, labels)
    for mode in reviews.modes:
        model.scores(mode)
    model.cores()
    rl.RingDetector(**settings).fit(reviews, labels, runtime=InProcess(2))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        running = [subprocess.Popen([sys.executable, __file__, part]) for part in PARTS]
        sys.exit(max(process.wait() for process in running))
    warnings.simplefilter("ignore")
    market = marketplace(4000, difficulty="easy", seed=1)
    compile_for(sys.argv[1], rl.read_reviews(market.reviews), market.labels)
