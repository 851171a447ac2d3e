"""Where the time of a natural-gradient sweep goes: per mode, and gathering against sums and solving.

Run: ``python benchmarks/kernel_profile.py --cells 1000000 --rank 10``. Kernels are compiled three times: as they are,
with the sums over entries left out, and with the step of each block left out. What a left-out part took is the
difference. Processor seconds of one thread, least of several sweeps from the same state, so that other work on the
machine counts little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from machine import describe

VARIANTS = ("whole", "no-sums", "no-steps")


def leave_out(variant: str) -> None:
    """Replace a part of the kernels by nothing, before anything is compiled."""
    from numba import njit

    from ringleader.kernels.numba import blocks, sums

    @njit
    def no_sums(work: Any, count: int, rule: Any) -> None:
        return

    @njit
    def no_step(curvature: Any, gradient: Any, own: Any, rule: Any, rate: float, solver: Any) -> None:
        for r in range(solver.rank):
            solver.point[r] = own[r]

    if variant == "no-sums":
        sums._flush = no_sums
    elif variant == "no-steps":
        blocks.move = no_step


def measure(variant: str, cells: int, rank: int, repeats: int) -> dict[str, float]:
    """Least processor seconds of each part of a sweep."""
    leave_out(variant)
    from ringleader.evaluation.speed import benchmark_tensor
    from ringleader.learners import passes
    from ringleader.model.config import ModelConfig
    from ringleader.model.negatives import draw_sweep, group_negatives, view_of
    from ringleader.model.objective import log_likelihood
    from ringleader.model.problem import build_problem
    from ringleader.model.start import start_state

    tensor = benchmark_tensor(cells)
    config = ModelConfig.preset("default", rank=rank, negatives=4, threads=1, start="half-normal")
    problem = build_problem(tensor, (), config)
    first = start_state(problem)
    move = passes.Move(0, 1.0)
    least: dict[str, float] = {}

    def timed(what: str, call: Any, *arguments: Any) -> Any:
        began = time.process_time()
        out = call(*arguments)
        least[what] = min(least.get(what, 1e9), time.process_time() - began)
        return out

    for repeat in range(repeats + 1):
        state = first.copy()
        tuples = timed("drawing negatives", draw_sweep, problem, repeat)
        view = view_of(problem, state, tuples)
        drawn = timed("grouping negatives", group_negatives, problem, tuples)
        for mode in problem.sweep_order():
            contrast = mode == config.contrast
            blocks = problem.blocks(mode, drawn if contrast else None)
            name = f"{tensor.modes[mode]}{' (contrast)' if contrast else ''}"
            timed(name, passes._move_mode, problem, state, view, blocks, move)
        timed("objective", log_likelihood, problem, state)
        if repeat == 0:
            least.clear()  # that was compilation
    return least


def in_child(variant: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure in a process and a cache of its own: numba keeps what it has compiled."""
    with tempfile.TemporaryDirectory() as cache:
        line = [sys.executable, __file__, "--variant", variant, "--cells", str(options.cells)]
        line += ["--rank", str(options.rank), "--repeats", str(options.repeats)]
        done = subprocess.run(
            line, env={**os.environ, "NUMBA_CACHE_DIR": cache}, capture_output=True, text=True, check=True
        )
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--variant", choices=VARIANTS, help="measure one variant and print JSON")
    options = parser.parse_args()
    if options.variant:
        print(json.dumps(measure(options.variant, options.cells, options.rank, options.repeats)))
        return
    whole, no_sums, no_steps = (in_child(variant, options) for variant in VARIANTS)
    entries = 5 * options.cells
    print(f"{describe()}; rank {options.rank}, {options.cells:,} cells, 4 negatives, one thread\n")
    print("| part | s | ns per entry | gathering | sums | solving |")
    print("|---|---:|---:|---:|---:|---:|")
    for part, seconds in whole.items():
        row = f"| {part} | {seconds:.3f} | {seconds / entries * 1e9:.1f} |"
        if part in ("drawing negatives", "grouping negatives", "objective"):
            print(f"{row} | | |")
            continue
        sums, steps = max(seconds - no_sums[part], 0.0), max(seconds - no_steps[part], 0.0)
        rest = max(seconds - sums - steps, 0.0)
        print(f"{row} {rest / seconds:.0%} | {sums / seconds:.0%} | {steps / seconds:.0%} |")
    total = sum(whole.values())
    print(f"| all | {total:.3f} | {total / entries * 1e9:.1f} | | | |")


if __name__ == "__main__":
    main()
