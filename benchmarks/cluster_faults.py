"""Faults of a cluster at random moments of a fit: does it end in the bits of one process, or with a sentence?

    python benchmarks/cluster_faults.py --fault worker --moments 20

Every moment is one fit. ``worker`` and ``stop`` kill and stop a worker of a local cluster, ``driver`` kills the whole
program and resumes it, ``disk`` fills the disk of a worker while files are read or the model is written (Linux, as
root; it starts an S3 server), ``corrupt`` cuts or overwrites one of a hundred files. ``node`` kills a node, ``freeze``
stops all its processes, ``cut`` cuts it off the network, which every node has a namespace of (Linux, as root). The exit
status is 1 where a fit ended in other bits, without a sentence, or not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
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
from ringleader.snapshot import pieces
from ringleader.snapshot.place import place_of

SETTINGS: dict[str, Any] = {"rank": 8, "epochs": 4, "threads": 1, "random_state": 3}
STORE = 100 * 2**20
LARGE_DISK = 64 << 20
"""Bytes of a disk with enough space."""
PATIENT_SECONDS = 180.0
"""Time-out of workers where the fault is another: on a busy machine they may be silent for long."""
SMALL_PIECES = 20_000
"""Bytes of an array of the model above which workers write it in pieces, in the fits that a full disk meets late."""
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


def bits(folder: Path | str) -> str:
    """A hash of a model folder but for its time stamps, and the numbers in the names of its files."""
    digest = hashlib.sha256()
    with place_of(folder).open("manifest.json") as handle:
        manifest = json.loads(handle.read())
    for batch in manifest["meta"]["batches"]:
        del batch["at"]
    digest.update(json.dumps({**manifest["meta"], "generation": 0}, sort_keys=True).encode())
    for part, entry in sorted(manifest["files"].items()):
        for file in pieces.files_of(entry):
            digest.update(f"{part} {file['sha256']}".encode())
    return digest.hexdigest()


class Trial:
    """One market, the bits of one process on it, and what came of every moment."""

    def __init__(self, folder: Path, *, files: int, rows: int, timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        self.reviews, self.labels = write_market(folder, files, rows)
        began = time.perf_counter()
        self.fit(folder / "one")
        self.seconds = time.perf_counter() - began
        self.expected = bits(folder / "one")
        self.outcomes: Counter[str] = Counter()
        self.sentences: Counter[str] = Counter()

    def fit(self, out: Path | str, **how: Any) -> None:
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
    timeout = trial.timeout if kind == signal.SIGSTOP else PATIENT_SECONDS
    with rl.Ray(workers=2, threads=1, object_store=STORE, timeout=timeout).start() as workers:
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
    subprocess.run([*words, str(trial.folder / "whole")], check=True, stdout=subprocess.DEVNULL)
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


class SmallDisk:
    """A disk for temporary files of the second worker."""

    def __init__(self, folder: Path, workers: Any) -> None:
        self.folder, self.workers = folder, workers

    @contextlib.contextmanager
    def mounted(self, size: int) -> Iterator[None]:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.folder)], check=True)
        try:
            self.workers.run(_use_folder, [(str(self.folder),)] * 2)
            yield
        finally:
            self.workers.run(_use_folder, [(None,)] * 2)
            subprocess.run(["umount", "-l", str(self.folder)], check=True)

    def fill(self) -> None:
        """Leave no space; what is open there keeps what it has."""
        if not self.folder.is_mount():
            return  # the fit has ended
        with contextlib.suppress(OSError), (self.folder / "other").open("wb", buffering=0) as handle:
            for _ in range(LARGE_DISK // 4096):
                handle.write(bytes(4096))


@contextlib.contextmanager
def s3_bucket() -> Iterator[str]:
    """A bucket of an S3 server in this process, which the workers find by their environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update(keys, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    import s3fs

    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    server.stop()


def fill_disk(trial: Trial, moments: int) -> None:
    """The second worker's disk is full: while it unpacks its files, and at every other moment behind a sweep.

    Then the model goes to an object store, which a worker writes by way of its temporary files.
    """
    small = trial.folder / "small"
    small.mkdir()
    share = sum(len(gzip.decompress(path.read_bytes())) for path in trial.reviews.iterdir()) // 2
    whole, expected = pieces.LARGEST, {False: trial.expected}
    pieces.LARGEST = SMALL_PIECES
    trial.fit(trial.folder / "one-in-pieces")
    expected[True] = bits(trial.folder / "one-in-pieces")
    with (
        s3_bucket() as bucket,
        rl.Ray(workers=2, threads=1, object_store=STORE, timeout=PATIENT_SECONDS).start() as workers,
    ):
        disk = SmallDisk(small, workers)
        for number in range(moments):
            late = number % 2 == 1
            pieces.LARGEST = SMALL_PIECES if late else whole
            size = LARGE_DISK if late else max(4096, int(random.uniform(0, 0.8) * share))
            sweep, delay = random.randint(1, SETTINGS["epochs"]), random.uniform(0, 5)
            out: Path | str = f"{bucket}/disk-{number}" if late else trial.folder / f"disk-{number}"

            def disturb(info: Any, late: bool = late, sweep: int = sweep, delay: float = delay) -> None:
                if late and info.sweep == sweep:
                    threading.Timer(delay if sweep == SETTINGS["epochs"] else 0, disk.fill).start()

            what = f"disk full from sweep {sweep} on" if late else f"{size:,} bytes for {share:,}"
            try:
                with disk.mounted(size):
                    trial.fit(out, runtime=workers, callback=disturb)
                outcome = "enough space, same bits"
            except StorageError as error:
                named = "worker 1" in str(error)
                trial.sentences[str(error)[:160]] += 1
                outcome = "stopped, worker and cause named; again with space to the same bits" if named else "UNNAMED"
                trial.fit(out, resume=True, runtime=workers)
                print(error)
            outcome = f"{'writing' if late else 'reading'}: {outcome}"
            trial.outcomes[outcome if bits(out) == expected[late] else "OTHER BITS"] += 1
            print(f"{number}: {what}: {outcome}", flush=True)


def corrupt_files(trial: Trial, moments: int) -> None:
    """A fit with one file of a hundred cut short, or some of its bytes overwritten; and once more with it mended."""
    files = sorted(trial.reviews.iterdir())
    with rl.Ray(workers=2, threads=1, object_store=STORE, timeout=PATIENT_SECONDS).start() as workers:
        for number in range(moments):
            path, out = random.choice(files), trial.folder / f"corrupt-{number}"
            content = path.read_bytes()
            at = random.randrange(len(content))
            cut = number % 2 == 0
            damaged = content[:at] if cut else content[:at] + bytes(64) + content[at + 64 :]
            path.write_bytes(damaged)
            try:
                trial.fit(out, runtime=workers)
                outcome = "NOT NOTICED"
            except InputError as error:
                outcome = "refused, file named" if path.name in str(error) else "UNNAMED"
                trial.sentences[str(error).replace(path.name, "FILE")[:90]] += 1
            path.write_bytes(content)
            trial.fit(out, resume=True, runtime=workers)
            outcome += "; mended: same bits" if bits(out) == trial.expected else "; mended: OTHER BITS"
            how = "cut short" if cut else "overwritten"
            trial.outcomes[f"{how}: {outcome}"] += 1
            print(f"{number}: {path.name} {how} at {at}: {outcome}", flush=True)


def lose_nodes(trial: Trial, moments: int, how: str) -> None:
    """One of two nodes is killed (kill -9 of its raylet), all its processes are stopped, or its link is cut.

    Stopped or cut for good; and every other time for three seconds (cut), or until long behind the time-out (stopped),
    so that the node wakes when others do its work. Nodes are in network namespaces. After each moment the node joins
    again.
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
        runtime = rl.Ray(workers=2, threads=1, timeout=PATIENT_SECONDS if how == "kill" else trial.timeout)
        with runtime.start() as workers:
            seconds = trial.timed(workers)
        for number in range(moments):
            victim = random.randrange(2)

            def disturb(victim: int = victim, short: bool = number % 2 == 1) -> None:
                if how == "kill":
                    nodes.kill(victim)
                elif how == "freeze":
                    nodes.signal(victim, signal.SIGSTOP)
                    if short:
                        time.sleep(3 * trial.timeout)
                        nodes.signal(victim, signal.SIGCONT)
                else:
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
    "node": lambda trial, moments: lose_nodes(trial, moments, "kill"),
    "freeze": lambda trial, moments: lose_nodes(trial, moments, "freeze"),
    "cut": lambda trial, moments: lose_nodes(trial, moments, "cut"),
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
    parser.add_argument("--rows", type=int, help="reviews of a file: 4,000 in each of 8, or 320 in each of 100")
    parser.add_argument("--timeout", type=float, default=15.0, help="seconds, of what is stopped or cut off")
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    signal.signal(signal.SIGTERM, lambda *about: sys.exit(143))  # nodes and networks are taken down
    with scratch() as folder:
        files, rows = (100, 320) if chosen.fault == "corrupt" else (8, 4_000)
        trial = Trial(folder, files=files, rows=chosen.rows or rows, timeout=chosen.timeout)
        FAULTS[chosen.fault](trial, chosen.moments)
    print(json.dumps({"fault": chosen.fault, "outcomes": trial.outcomes, "sentences": trial.sentences}, indent=1))
    return int(any(word.isupper() for outcome in trial.outcomes for word in outcome.split()))


if __name__ == "__main__":
    sys.exit(main())
