"""Faults of a cluster at random moments of a fit: does it end in the bits of one process, or with a sentence?

    python benchmarks/cluster_faults.py --fault worker --moments 20

Every moment is one fit. ``worker`` and ``stop`` kill and stop a worker of a local cluster, ``driver`` kills the whole
program and resumes it, ``disk`` fills the disk of a worker (Linux, as root), ``corrupt`` cuts or overwrites one of a
hundred files. ``node`` kills a node, ``cut`` cuts it off the network, which every node has a namespace of (Linux, as
root). The exit status is 1 where a fit ended in other bits, without a sentence, or not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ringleader as rl
from ringleader.errors import InputError, RingleaderError, StorageError
from ringleader.runtime.peers import Peers

SETTINGS: dict[str, Any] = {"rank": 8, "epochs": 4, "threads": 1, "random_state": 3}
STORE = 100 * 2**20
STOPPED_SECONDS = 15.0
"""Time-out of workers where one is stopped."""
MAIN = "from ringleader.cli import main; main()"


def write_market(folder: Path, files: int, rows: int) -> tuple[Path, Path]:
    """Reviews of ``files`` packed files, and labels."""
    rng = np.random.default_rng(0)
    (folder / "reviews").mkdir(parents=True)
    for number in range(files):
        frame = pd.DataFrame(
            {
                "reviewer": [f"u{n}" for n in rng.integers(0, 6_000, rows)],
                "product": [f"p{n}" for n in rng.integers(0, 400, rows)],
                "seller": [f"s{n}" for n in rng.integers(0, 40, rows)],
                "rating": rng.integers(1, 6, rows),
                "timestamp": rng.integers(1_600_000_000, 1_610_000_000, rows),
            }
        )
        frame.to_csv(folder / "reviews" / f"part-{number:03d}.csv.gz", index=False)
    lines = [f"reviewer,u{n},{n % 2}" for n in range(0, 300, 3)] + [f"seller,s{n},{n % 2}" for n in range(12)]
    (folder / "labels.csv").write_text("\n".join(["mode,entity,label", *lines]) + "\n")
    return folder / "reviews", folder / "labels.csv"


def bits(folder: Path) -> str:
    """A hash of a model folder but for its time stamps, and the numbers in the names of its files."""
    digest = hashlib.sha256()
    manifest = json.loads((folder / "manifest.json").read_text())
    for batch in manifest["meta"]["batches"]:
        del batch["at"]
    digest.update(json.dumps({**manifest["meta"], "generation": 0}, sort_keys=True).encode())
    for part, entry in sorted(manifest["files"].items()):
        digest.update(f"{part} {entry['sha256']}".encode())
    return digest.hexdigest()


class Trial:
    """One market, the bits of one process on it, and what came of every moment."""

    def __init__(self, folder: Path, *, files: int = 8, rows: int = 4_000) -> None:
        self.folder = folder
        self.reviews, self.labels = write_market(folder, files, rows)
        began = time.perf_counter()
        self.fit(folder / "one")
        self.seconds = time.perf_counter() - began
        self.expected = bits(folder / "one")
        self.outcomes: Counter[str] = Counter()
        self.sentences: Counter[str] = Counter()

    def fit(self, out: Path, **how: Any) -> None:
        rl.RingDetector(**SETTINGS).fit(self.reviews, self.labels, checkpoint=out, **how)

    def timed(self, runtime: Any) -> float:
        """Seconds of a fit on workers that is not disturbed, the less of two: the first warms them up."""
        seconds = []
        for number in range(2):
            began = time.perf_counter()
            self.fit(self.folder / f"warm-{number}", runtime=runtime)
            seconds.append(time.perf_counter() - began)
        assert bits(self.folder / "warm-1") == self.expected
        print(f"fits that are not disturbed: {', '.join(f'{s:.1f}' for s in seconds)} s", flush=True)
        return min(seconds)

    def attempt(self, number: int, runtime: Any, disturb: Callable[[], None], delay: float) -> None:
        """A fit that is disturbed after some seconds; where it stops with a sentence, it is resumed."""
        out, began = self.folder / f"disturbed-{number}", time.perf_counter()
        timer = threading.Timer(delay, disturb)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            timer.start()
            try:
                self.fit(out, runtime=runtime)
                outcome = "same bits"
            except RingleaderError as error:
                self.sentences[str(error)[:160]] += 1
                self.fit(out, resume=True)
                outcome = "stopped with a sentence, resumed to the same bits"
                if not re.search(r"worker \d.* is gone: ", str(error)):
                    outcome = "stopped, worker and cause UNNAMED"
            timer.join()
        said = [str(w.message) for w in heard if "worker" in str(w.message) and "is gone" in str(w.message)]
        if outcome == "same bits":
            outcome = "workers were lost, same bits" if said else "not noticed, same bits"
        self.outcomes[outcome if bits(out) == self.expected else "OTHER BITS"] += 1
        took = time.perf_counter() - began
        print(f"{number}: after {delay:.2f} s: {outcome}; {took:.0f} s in all", *said[:1], flush=True)


def lose_workers(trial: Trial, moments: int, kind: signal.Signals) -> None:
    """kill -9, or SIGSTOP, of a random worker of two."""
    with rl.Ray(workers=2, threads=1, object_store=STORE, timeout=STOPPED_SECONDS).start() as workers:
        seconds = trial.timed(workers)
        for number in range(moments):
            victim = random.choice(workers.processes)

            def disturb(process: int = victim) -> None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, kind)

            trial.attempt(number, workers, disturb, random.uniform(0, seconds))
            if kind == signal.SIGSTOP:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGCONT)


def kill_driver(trial: Trial, moments: int) -> None:
    """kill -9 of the program that started the cluster; then a fit in one process goes on."""
    words = [sys.executable, "-c", MAIN, "fit", str(trial.reviews), "--labels", str(trial.labels), "--ray"]
    words += ["--workers", "2", "--rank", "8", "--epochs", "4", "--seed", "3", "--threads", "1", "--json", "--out"]
    began = time.perf_counter()
    subprocess.run([*words, str(trial.folder / "whole")], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    for number in range(moments):
        out, delay = trial.folder / f"driver-{number}", random.uniform(0.3, 1) * seconds
        with subprocess.Popen([*words, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as driver:
            time.sleep(delay)
            driver.kill()
        resumed = out.exists()
        trial.fit(out, resume=True)
        same = bits(out) == trial.expected
        trial.outcomes["resumed to the same bits" if same else "OTHER BITS"] += 1
        print(f"{number}: after {delay:.2f} s: {'same' if same else 'OTHER'} bits (begun: {resumed})", flush=True)


def _use_folder(memory: dict[str, Any], peers: Peers, folder: str | None) -> None:
    """In a worker: where temporary files go."""
    tempfile.tempdir = folder if peers.rank == 1 else None


def fill_disk(trial: Trial, moments: int) -> None:
    """The second worker has a small disk of its own for temporary files, of a random size."""
    small = trial.folder / "small"
    small.mkdir()
    needed = sum(path.stat().st_size for path in trial.reviews.iterdir()) * 3
    with rl.Ray(workers=2, threads=1, object_store=STORE).start() as workers:
        for number in range(moments):
            size = max(4096, int(random.uniform(0, 1) * needed))
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)], check=True)
            out = trial.folder / f"disk-{number}"
            try:
                workers.run(_use_folder, [(str(small),)] * 2)
                trial.fit(out, runtime=workers)
                outcome = "enough space, same bits"
            except StorageError as error:
                named = "worker 1" in str(error)
                trial.sentences[str(error).split("while")[0].strip()] += 1
                outcome = "stopped, worker and cause named; again with space to the same bits" if named else "UNNAMED"
                workers.run(_use_folder, [(None,)] * 2)
                trial.fit(out, resume=True, runtime=workers)
                print(error)
            finally:
                workers.run(_use_folder, [(None,)] * 2)
                subprocess.run(["umount", "-l", str(small)], check=True)
            trial.outcomes[outcome if bits(out) == trial.expected else "OTHER BITS"] += 1
            print(f"{number}: {size:,} bytes: {outcome}", flush=True)


def corrupt_files(trial: Trial, moments: int) -> None:
    """One file of a hundred cut short, or some of its bytes overwritten."""
    files = sorted(trial.reviews.iterdir())
    with rl.Ray(workers=2, threads=1, object_store=STORE).start() as workers:
        for number in range(moments):
            path = random.choice(files)
            content = path.read_bytes()
            at = random.randrange(len(content))
            cut = number % 2 == 0
            damaged = content[:at] if cut else content[:at] + bytes(64) + content[at + 64 :]
            path.write_bytes(damaged)
            try:
                rl.read_reviews(trial.reviews, runtime=workers)
                outcome = "NOT NOTICED"
            except InputError as error:
                outcome = "refused, file named" if path.name in str(error) else "UNNAMED"
                trial.sentences[str(error).replace(path.name, "FILE")[:90]] += 1
            path.write_bytes(content)
            how = "cut short" if cut else "overwritten"
            trial.outcomes[f"{how}: {outcome}"] += 1
            print(f"{number}: {path.name} {how} at {at}: {outcome}", flush=True)
    trial.fit(trial.folder / "again")
    trial.outcomes["mended: same bits" if bits(trial.folder / "again") == trial.expected else "OTHER BITS"] += 1


def lose_nodes(trial: Trial, moments: int, cut: bool) -> None:
    """kill -9 of the raylet of one of two nodes, or its link cut: for good, and every other time for three seconds.

    Nodes are in network namespaces. After each moment the node joins again.
    """
    from network_nodes import network_nodes

    with network_nodes(2) as nodes, contextlib.ExitStack() as connected:
        began = time.perf_counter()
        ray = nodes.connect()
        connected.callback(ray.shutdown)  # before the nodes end: else it waits for them
        nodes.join(ray)
        print(
            f"one process: {trial.seconds:.1f} s; two nodes joined after {time.perf_counter() - began:.1f} s",
            flush=True,
        )
        runtime = rl.Ray(workers=2, threads=1, timeout=STOPPED_SECONDS)
        with runtime.start() as workers:
            seconds = trial.timed(workers)
        for number in range(moments):
            victim = random.randrange(2)

            def disturb(victim: int = victim, short: bool = number % 2 == 1) -> None:
                if not cut:
                    nodes.kill(victim)
                    return
                nodes.link(victim, up=False)
                if short:
                    time.sleep(3)
                    nodes.link(victim, up=True)

            with runtime.start() as workers:
                trial.attempt(number, workers, disturb, random.uniform(0, seconds))
            nodes.link(victim, up=True)
            nodes.clear(victim)
            nodes.join(ray)


FAULTS: dict[str, Callable[[Trial, int], None]] = {
    "worker": lambda trial, moments: lose_workers(trial, moments, signal.SIGKILL),
    "stop": lambda trial, moments: lose_workers(trial, moments, signal.SIGSTOP),
    "node": lambda trial, moments: lose_nodes(trial, moments, cut=False),
    "cut": lambda trial, moments: lose_nodes(trial, moments, cut=True),
    "driver": kill_driver,
    "disk": fill_disk,
    "corrupt": corrupt_files,
}


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=FAULTS, required=True)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    signal.signal(signal.SIGTERM, lambda *about: sys.exit(143))  # nodes and networks are taken down
    with scratch() as folder:
        files, rows = (100, 320) if chosen.fault == "corrupt" else (8, 4_000)
        trial = Trial(folder, files=files, rows=rows)
        FAULTS[chosen.fault](trial, chosen.moments)
    print(json.dumps({"fault": chosen.fault, "outcomes": trial.outcomes, "sentences": trial.sentences}, indent=1))
    return int(any(word.isupper() for outcome in trial.outcomes for word in outcome.split()))


if __name__ == "__main__":
    sys.exit(main())
