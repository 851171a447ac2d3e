"""Ray: workers on a Ray cluster, or on a cluster of its own on this machine.

Needs the extra ``ray``, which is imported when workers are started. One actor is one worker; the driver carries
references to messages from one to the next, and Ray carries the messages themselves, from worker to worker.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ringleader.errors import ClusterError, RingleaderError, SettingsError, WorkerLost
from ringleader.runtime.machine import memory_limit, processors
from ringleader.runtime.peers import Worker
from ringleader.settings import Settings, Text, Whole

QUIET = {"RAY_IGNORE_UNHANDLED_ERRORS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
"""An error of a worker is raised once; Ray would also print it for every message that it had to send. And nothing is
sent to anybody: Ray would report how it is used."""

LEAST_STORE = 80 * 2**20
MOST_STORE = 2 * 2**30
LOG_LINES = 5
KNOCK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Ray(Settings):
    """Where a fit runs: workers of a Ray cluster. The answer does not depend on it.

    address: of the cluster, such as ``auto`` or ``ray://host:10001``; None starts one on this machine, which nothing
    outside it can reach, and stops it afterwards. workers: processes that share the work; None for one for each
    processor. threads: of each worker; None for all processors, dealt evenly. object_store: bytes of shared memory
    of a local cluster for messages under way (more goes to disk).
    """

    address: Annotated[str | None, Text(optional=True)] = None
    workers: Annotated[int | None, Whole(1, 4096, optional=True)] = None
    threads: Annotated[int | None, Whole(1, 1024, optional=True)] = None
    object_store: Annotated[int | None, Whole(LEAST_STORE, optional=True)] = None

    @contextmanager
    def start(self) -> Iterator[RayWorkers]:
        """Workers, for as long as the block runs."""
        ray = _import_ray()
        mine = not ray.is_initialized()
        if mine:
            self._connect(ray)
        try:
            available = int(ray.cluster_resources().get("CPU", 1))
            count = self.workers or available
            workers = RayWorkers(ray, count, self.threads or max(1, available // count))
            try:
                yield workers
            finally:
                workers.close()
        finally:
            if mine:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address is not None:
                _knock(self.address)
                ray.init(address=self.address, **quiet)
                return
            store = self.object_store or min(max(memory_limit() // 10, LEAST_STORE), MOST_STORE)
            with _loopback(ray):
                ray.init(
                    address="local",  # not one of somebody else that runs here
                    num_cpus=max(processors(), (self.workers or 1) * (self.threads or 1)),
                    include_dashboard=False,
                    object_store_memory=store,
                    **quiet,
                )
        except Exception as error:  # Ray raises many kinds; all of them mean that there is no cluster
            where = f"no Ray cluster answers at {self.address}" if self.address else "Ray does not start here"
            raise ClusterError(f"{where}: {_first_line(error)}") from error


class RayWorkers:
    """Workers that are Ray actors."""

    def __init__(self, ray: Any, count: int, threads: int) -> None:
        self.ray, self.count, self.threads = ray, count, threads
        self.actors: list[Any] = []
        self.processes: list[int] = []
        self.restart()

    def start(self) -> AbstractContextManager[RayWorkers]:
        """Workers that run already are a runtime too."""
        return nullcontext(self)

    def restart(self) -> None:
        self.close()
        actor = self.ray.remote(max_restarts=0, num_cpus=self.threads, scheduling_strategy="SPREAD")(_Actor)
        fit = uuid.uuid4().hex[:8]  # names in Ray's dashboard must differ from those of other fits
        self.actors = [
            actor.options(name=f"ringleader {fit} worker {rank}").remote(rank, self.count) for rank in range(self.count)
        ]
        self.processes = self._get([a.process.remote() for a in self.actors])

    def close(self) -> None:
        """End the workers; the cluster stays."""
        for actor in self.actors:
            self.ray.kill(actor, no_restart=True)
        self.actors = []

    def run(self, call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        try:
            return self._run(call, arguments)
        except WorkerLost:
            raise
        except Exception:
            # What one worker cannot do, the others need not wait for: they close what they have open.
            self._get([actor.abandon.remote() for actor in self.actors])
            raise

    def _run(self, call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        size, ranks = self.count + 1, range(self.count)
        answers = [
            _as_list(actor.start.options(num_returns=size).remote(call, *given))
            for actor, given in zip(self.actors, arguments, strict=True)
        ]
        while True:
            ended = self._get([answer[0] for answer in answers])
            if all(ended):
                return self._get([answer[1] for answer in answers])
            if any(ended):
                raise RuntimeError("some workers ended their program and others wait for messages")
            answers = [
                _as_list(
                    self.actors[p].go_on.options(num_returns=size).remote(*(answers[q][1 + p] for q in ranks if q != p))
                )
                for p in ranks
            ]

    def _get(self, references: list[Any]) -> list[Any]:
        """The values of one reference of each worker; errors name the worker."""
        values = []
        for rank, reference in enumerate(references):
            try:
                values.append(self.ray.get(reference))
            except self.ray.exceptions.RayTaskError as error:
                cause = error.cause
                if isinstance(cause, self.ray.exceptions.RayError):
                    raise self._lost(rank, cause) from error
                if isinstance(cause, RingleaderError):
                    raise cause from None  # what one process would have said
                cause.add_note(f"in worker {rank}: {error}")
                raise cause from None
            except self.ray.exceptions.RayError as error:
                raise self._lost(rank, error) from error
        return values

    def _lost(self, rank: int, error: Exception) -> WorkerLost:
        process = self.processes[rank] if rank < len(self.processes) else None
        log = _end_of_log(self.ray, process)
        return WorkerLost(f"worker {rank} (process {process}) is gone: {_first_line(error)}{log}")


class _Actor(Worker):
    """A worker inside Ray."""

    def process(self) -> int:
        return os.getpid()


def _import_ray() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise SettingsError("a cluster needs Ray; install it with: pip install 'ringleader[ray]'") from error
    return ray


@contextmanager
def _loopback(ray: Any) -> Iterator[None]:
    """Within it Ray starts on the loopback address, as it does on Windows and macOS; refuses to start on another."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
    address = ray.util.get_node_ip_address()
    if not address.startswith("127."):
        ray.shutdown()
        raise ConnectionError(f"it listens on {address}, and a cluster of this machine alone must not")


def _knock(address: str) -> None:
    """Raise where nobody listens at an address: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()


def _as_list(references: Any) -> list[Any]:
    return list(references)


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


def _end_of_log(ray: Any, process: int | None) -> str:
    """The last lines that a worker of this machine wrote before it ended; nothing where it has no log here."""
    try:
        logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
        files = sorted(logs.glob(f"worker-*-{process}.err")) if process else []
        lines = [line for file in files for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except (AttributeError, OSError):
        return ""
    lines = [line for line in lines if not line.startswith(":")]  # marks that Ray writes for itself
    return f"; its log ends: {' / '.join(lines[-LOG_LINES:])}" if lines else ""
