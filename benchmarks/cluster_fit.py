"""A whole fit in one process or on workers: time, and the most memory of the driver and of each worker.

    python benchmarks/cluster_fit.py write --reviews 1000000 --folder /tmp/reviews
    python benchmarks/cluster_fit.py fit --folder /tmp/reviews --threads 2     # one process with two threads
    python benchmarks/cluster_fit.py fit --folder /tmp/reviews --workers 2     # two workers with a thread each
    python benchmarks/cluster_fit.py fit --folder /tmp/reviews --workers 2 --steps   # and what each process did when

    python benchmarks/cluster_fit.py table --folder /tmp/reviews --write cluster_fits.jsonl # 1, 2, 4 workers and none

Every fit is a line of JSON in the file behind ``--write``; ``cluster_whole_fit.py`` makes the tables of docs/scale.md
from ``cluster_fits.jsonl`` beside it. The market is copies of a generated one with rings in it, and has two hundred
labels. Reading, lockstep, sweeps, evidence, behaviour, heads, cores, scores and the model folder are all in the time;
Ray's start is not.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import ringleader as rl
from cluster_whole_fit import Fit
from machine import describe
from ringleader.datasets import taste_market
from ringleader.runtime.peers import Peers
from ringleader.runtime.workers import started


class Used(NamedTuple):
    """What a process has used so far."""

    seconds: float  # of processors
    megabytes: float  # at the most


def used(memory: dict[str, Any] | None = None, peers: Peers | None = None) -> Used:
    """In the driver or in a worker."""
    return Used(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)


class Step(NamedTuple):
    """What a process used where it was in a function: CPU seconds, and its most memory."""

    seconds: float = 0.0
    megabytes: float = 0.0
    shared: float = 0.0  # of these megabytes those of shared memory: messages
    files: float = 0.0  # and those of files: libraries, and what is mapped


Stack = tuple[str, ...]
"""Functions of the package, the outermost first."""


class Steps:
    """Samples this process: where in the package it is, how long, and the most memory there."""

    def __init__(self, depth: int = 14, every: float = 0.005) -> None:
        self.depth, self.every = depth, every
        self.found: dict[Stack, Step] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, args=(threading.get_ident(),), daemon=True)

    def __enter__(self) -> Steps:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self, thread: int) -> None:
        """thread : of the driver; a worker has others for its programs."""
        last = time.process_time()
        while not self._ended.wait(self.every):
            key = where(thread)[: self.depth]
            now = time.process_time()
            before = self.found.get(key, Step())
            most = max(before[1:], resident_megabytes())
            self.found[key] = Step(before.seconds + now - last, *most)
            last = now


def where(thread: int) -> Stack:
    """Where the program is that a worker runs, or else that thread."""
    programs, parts = [], []
    frames = sys._current_frames()
    del frames[threading.get_ident()]  # it holds this table, which would hold all arrays of the others
    for frame in frames.values():
        stack = functions(frame)
        if stack[:1] == ("runtime/peers._run",):
            (parts if stack[1:2] == ("runtime/peers._with_peers",) else programs).append(stack[1:])
    if not programs:
        return functions(frames.get(thread))
    active = [part for part in parts if part[-1] != "runtime/peers.exchange"]
    return programs[0] + active[0] if active and "runtime/peers.together" in programs[0] else programs[0]


def functions(frame: Any) -> Stack:
    """Those of the package in a stack of calls."""
    stack = []
    while frame is not None:
        _, inside, file = frame.f_code.co_filename.partition("/ringleader/")
        if inside:
            stack.append(f"{file.removesuffix('.py')}.{frame.f_code.co_name}")
        frame = frame.f_back
    return tuple(reversed(stack))


def resident_megabytes() -> tuple[float, float, float]:
    """All of this process, as ``used`` has it, and what of it is shared memory, and files."""
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    whole, shared, files = (int(lines[name].split()[0]) / 1000 for name in ("VmRSS", "RssShmem", "RssFile"))
    return whole, shared, files


def begin_steps(memory: dict[str, Any], peers: Peers) -> None:
    """In a worker."""
    memory["steps"] = Steps().__enter__()


def end_steps(memory: dict[str, Any], peers: Peers) -> dict[Stack, Step]:
    """In a worker."""
    steps: Steps = memory.pop("steps")
    steps.__exit__()
    return steps.found


def print_steps(found: dict[Stack, Step]) -> None:
    """As a tree in the order of time: CPU seconds and most memory of each step that took or held much."""
    prefixes = dict.fromkeys(key[: n + 1] for key in found for n in range(len(key)))
    most = max(step.megabytes for step in found.values())
    for prefix in prefixes:
        below = [step for key, step in found.items() if key[: len(prefix)] == prefix]
        seconds, at_most = sum(step.seconds for step in below), max(below, key=lambda step: step.megabytes)
        if seconds > 0.5 or at_most.megabytes > 0.93 * most or len(prefix) == 1:
            held = f"{at_most.megabytes:6.0f} MB ({at_most.shared:4.0f} shared, {at_most.files:4.0f} files)"
            print(f"{seconds:7.1f} s {held}  {'  ' * len(prefix)}{prefix[-1]}")


def write(folder: Path, reviews: int) -> None:
    """Copies of a generated market, each with names of its own, as Parquet files; and labels of some reviewers."""
    market = taste_market(100_000, kind="everything", seed=1)
    (folder / "reviews").mkdir(parents=True, exist_ok=True)
    for copy in range(max(round(reviews / len(market.reviews)), 1)):
        table = market.reviews.copy()
        for name in ("reviewer", "product", "seller"):
            table[name] = f"{copy}-" + table[name].astype(str)
        table.to_parquet(folder / "reviews" / f"part-{copy}.parquet", index=False)
    reviewers = market.truth[market.truth["mode"] == "reviewer"]
    rows = ["mode,entity,label"]
    for label, kind in ((1, reviewers["label"] > 0), (0, reviewers["label"] <= 0)):
        rows += [f"reviewer,0-{entity},{label}" for entity in reviewers[kind]["entity"].sample(100, random_state=0)]
    (folder / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def fit(folder: Path, workers: int, threads: int, store: int, by_steps: bool) -> Fit:
    """Fit once, and say what it took."""
    steps = Steps() if by_steps else None
    runtime = rl.Ray(workers=workers, threads=threads, object_store=store * 2**20) if workers else None
    with started(runtime) as running, tempfile.TemporaryDirectory() as models:
        before = [used(), *(running.run(used, [()] * workers) if running is not None else [])]
        detector = rl.RingDetector(threads=threads if workers == 0 else 1, random_state=0, device="cpu")
        if steps is not None and running is not None:
            running.run(begin_steps, [()] * workers)
        sweeps: list[float] = []  # when each ended
        wall = time.perf_counter()
        with steps or nullcontext():
            detector.fit(
                folder / "reviews",
                folder / "labels.csv",
                checkpoint=Path(models) / "model",
                runtime=running,
                callback=lambda info: sweeps.append(time.perf_counter() - wall),
            )
        elapsed = time.perf_counter() - wall
        of_workers = [] if steps is None or running is None else running.run(end_steps, [()] * workers)
        after = [used(), *(running.run(used, [()] * workers) if running is not None else [])]
    busy = [b.seconds - a.seconds for a, b in zip(before, after, strict=True)]
    if steps is not None:
        print("of the driver:")
        print_steps(steps.found)
    for rank, found in enumerate(of_workers):
        print(f"of worker {rank}:")
        print_steps(found)
    tensor = detector.tensor_
    return Fit(
        tensor.n_cells,
        tensor.shape[0],
        workers,
        threads,
        round(elapsed, 1),
        round(busy[0], 1),
        round(after[0].megabytes),
        tuple(round(seconds, 1) for seconds in busy[1:]),
        tuple(round(u.megabytes) for u in after[1:]),
        tuple(round(ended, 1) for ended in sweeps),
        describe(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "fit", "table"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--store", type=int, default=500, help="megabytes of Ray's object store")
    parser.add_argument("--steps", action="store_true", help="say what each step of each process took")
    parser.add_argument("--write", type=Path, help="a file of JSON lines to add the figures to")
    chosen = parser.parse_args()
    if chosen.what == "write":
        write(chosen.folder, chosen.reviews)
    elif chosen.what == "table":
        for workers in (0, 1, 2, 4):
            words = ["--workers", str(workers), "--threads", "1" if workers else "2", "--write", str(chosen.write)]
            subprocess.run([sys.executable, __file__, "fit", "--folder", str(chosen.folder), *words], check=True)
    else:
        row = fit(chosen.folder, chosen.workers, chosen.threads, chosen.store, chosen.steps)
        line = json.dumps(row._asdict())
        print(line)
        if chosen.write:
            with chosen.write.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    main()
