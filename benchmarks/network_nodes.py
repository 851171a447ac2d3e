"""Nodes of a Ray cluster in network namespaces of this machine (Linux, as root), which can be killed and cut off.

Every node has a namespace with an address of its own; a bridge joins them. What travels between two nodes travels over
that network, and stops when a node's link is down.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringleader.runtime.ray import ENVIRONMENT

NETWORK = "10.77.0"
PORT = 6390
STORE = 80 * 2**20
JOIN_TRIES = 3
JOIN_SECONDS = 120.0
RAY = [str(Path(sys.executable).parent / "ray"), "start", "--num-cpus=1", f"--object-store-memory={STORE}"]
QUIET = ["--disable-usage-stats", "--block", "--include-dashboard=false"]


def run(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, check=check, capture_output=True, text=True)
    return done.stdout


class Nodes:
    """A head without processors in this namespace, and nodes of one processor each in namespaces of their own."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.head: subprocess.Popen[str] | None = None
        self.started: dict[int, subprocess.Popen[str]] = {}
        self.address = f"{NETWORK}.1:{PORT}"
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))  # of this cluster alone
        os.environ.update(ENVIRONMENT)  # a busy machine may take its time to start a node

    def open(self) -> None:
        self.close()  # what a program that was killed has left
        run("ip", "link", "add", "ringleader0", "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}.1/24", "dev", "ringleader0")
        run("ip", "link", "set", "ringleader0", "up")
        words = [*RAY, "--head", f"--node-ip-address={NETWORK}.1", f"--port={PORT}", *QUIET]
        words[2] = "--num-cpus=0"
        self.head = self._popen(words)
        for number in range(self.count):
            name = f"ringleader-{number}"
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"rl{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"rl{number}", "master", "ringleader0", "up")
            run("ip", "-n", name, "address", "add", f"{NETWORK}.{number + 2}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def connect(self) -> Any:
        """The driver of this process; returns ray."""
        import ray

        ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        return ray

    def join(self, ray: Any) -> None:
        """Start every node that does not run, and wait until all are there."""
        for number in range(self.count):
            if number in self.started and self.started[number].poll() is None and self.pids(number, "raylet"):
                continue
            self.clear(number)
            run("ip", "link", "set", f"rl{number}", "up")
            where = ["ip", "netns", "exec", f"ringleader-{number}"]
            own = [f"--address={self.address}", f"--node-ip-address={NETWORK}.{number + 2}", *QUIET[:2]]
            for tries in range(JOIN_TRIES):  # Ray gives a node half a minute to start, which a busy machine may take
                try:
                    self.started[number] = self._popen([*where, *RAY, *own])
                    break
                except RuntimeError:
                    self.clear(number)
                    if tries == JOIN_TRIES - 1:
                        raise
        until = time.monotonic() + JOIN_SECONDS
        while int(ray.cluster_resources().get("CPU", 0)) != self.count:
            if time.monotonic() > until:
                raise TimeoutError(f"the nodes have {ray.cluster_resources().get('CPU', 0)} processors")
            time.sleep(0.5)

    def pids(self, number: int, name: str | None = None) -> list[int]:
        """The processes of a node; with a name, those of that name."""
        found = [int(line) for line in run("ip", "netns", "pids", f"ringleader-{number}", check=False).split()]
        return [pid for pid in found if name is None or _name_of(pid) == name]

    def kill(self, number: int) -> None:
        """kill -9 of a node's raylet; its workers end themselves."""
        for pid in self.pids(number, "raylet"):
            os.kill(pid, signal.SIGKILL)

    def signal(self, number: int, kind: signal.Signals) -> None:
        """A signal to all processes of a node, also to those that it starts meanwhile."""
        reached: set[int] = set()
        while new := set(self.pids(number)) - reached:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
            reached |= new

    def link(self, number: int, up: bool) -> None:
        run("ip", "link", "set", f"rl{number}", "up" if up else "down")

    def clear(self, number: int) -> None:
        """End all processes of a node."""
        for pid in self.pids(number):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if number in self.started:
            self.started[number].wait()

    def close(self) -> None:
        for number in range(self.count):
            self.clear(number)
            run("ip", "link", "delete", f"rl{number}", check=False)  # it lives as long as a process in the namespace
            run("ip", "netns", "delete", f"ringleader-{number}", check=False)
        if self.head is not None:
            os.killpg(self.head.pid, signal.SIGKILL)
        run("ip", "link", "delete", "ringleader0", check=False)

    def _popen(self, words: list[str]) -> subprocess.Popen[str]:
        """Start a node, and wait until it says that it is there: who connects before that may wait for ever."""
        node = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        assert node.stdout is not None
        said = []
        for line in node.stdout:
            said.append(line)
            if "Ray runtime started" in line:
                return node
        raise RuntimeError("".join(said[-10:]))


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@contextlib.contextmanager
def network_nodes(count: int) -> Iterator[Nodes]:
    """The network has one name on a machine: a second program waits until the first has taken it down."""
    nodes = Nodes(count)
    with open(Path(tempfile.gettempdir()) / "ringleader-network.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            nodes.open()
            yield nodes
        finally:
            nodes.close()
