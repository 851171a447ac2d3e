"""Ray: workers on a Ray cluster, or on a cluster of its own on this machine.

Needs the extra ``ray``, which is imported when workers are started. One actor is one worker; the driver carries
references to messages from one to the next, and Ray carries the messages themselves, from worker to worker.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from ringleader.errors import (
    ClusterError,
    RingleaderError,
    RunWarning,
    SettingsError,
    StorageError,
    WorkerLost,
    warn_of,
)
from ringleader.runtime.machine import (
    command_line,
    leave_shared,
    memory_limit,
    processors,
    resident_memory,
    return_large_arrays,
    return_memory,
)
from ringleader.runtime.nodes import capacity, check_local, reduced, share_out
from ringleader.runtime.outputs import error_of_worker
from ringleader.runtime.peers import LEAVE_FROM, Worker
from ringleader.runtime.workers import Watch
from ringleader.settings import Number, Settings, Text, Whole
from ringleader.wording import counted

ENVIRONMENT = {
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_agent_register_timeout_ms": "120000",
}
"""An error of a worker is raised once; Ray would also print it for every message that it had to send. Nothing is sent
to anybody: Ray would report how it is used. And a busy machine may take its time to start a node."""

LEAST_STORE = 80 * 2**20
MOST_STORE = 2 * 2**30
LOG_LINES = 5
CONNECT_SECONDS = 10.0
CHECK_SECONDS = 5.0
"""After so long without an answer, workers are asked whether they live."""
NODE_SECONDS = 20.0
"""How long a node is waited for that may be gone."""
START_CHECKS, START_ATTEMPTS = 60, 3
"""How often new workers are looked for before they are given up, and how often they are started anew."""
TIMEOUT = 60.0
ALIVE = "alive"
"""The thread of a worker that answers while another works."""


@dataclass(frozen=True, kw_only=True)
class Ray(Settings):
    """Where a fit runs: workers of a Ray cluster. The answer does not depend on it.

    address: of the cluster, such as ``auto`` or ``ray://host:10001``; None starts one on this machine, which nothing
    outside it can reach, and stops it afterwards. workers: processes that share the work; None for one for each
    processor. threads: of each worker; None for the most that the nodes have processors for. object_store: bytes of
    shared memory of a local cluster for messages under way (more goes to disk). timeout: seconds after which a worker
    that does not answer counts as lost.
    """

    address: Annotated[str | None, Text(optional=True)] = None
    workers: Annotated[int | None, Whole(1, 4096, optional=True)] = None
    threads: Annotated[int | None, Whole(1, 1024, optional=True)] = None
    object_store: Annotated[int | None, Whole(LEAST_STORE, optional=True)] = None
    timeout: Annotated[float, Number(least=1, most=86_400)] = TIMEOUT

    @contextmanager
    def start(self) -> Iterator[RayWorkers]:
        """Workers, for as long as the block runs."""
        ray = _import_ray()
        mine = not ray.is_initialized()
        if mine:
            check_local(None if self.address else self.workers)
            self._connect(ray)
            _silence_ends(ray)
        try:
            count, _ = share_out(_node_processors(ray), self.workers, self.threads)
            workers = RayWorkers(ray, count, self.threads if self.workers else self.threads or 1, self.timeout)
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
                _check_listening(self.address)
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

    def __init__(self, ray: Any, count: int, threads: int | None, timeout: float) -> None:
        """threads : of each; None for the most that the nodes have processors for."""
        self.ray, self.count, self.threads, self.timeout = ray, count, threads or 1, timeout
        self.wanted, self.wanted_threads, self.restarts = count, threads, 0
        self.actors: list[Any] = []
        self.about: list[WorkerPlace] = []
        self.watch: Watch | None = None
        self._start()

    @property
    def processes(self) -> list[int]:
        """The process of each worker."""
        return [about.process for about in self.about]

    def start(self) -> AbstractContextManager[RayWorkers]:
        """Workers that run already are a runtime too."""
        return nullcontext(self)

    def restart(self) -> None:
        self.restarts += 1
        for about in self.about:
            # Ray asks a process to end itself; one that is stopped does not hear it, and would keep its processors.
            self._on_node(about.node, _kill, about.process)
        for attempt in range(START_ATTEMPTS):
            try:
                return self._start()
            except WorkerLost:
                if attempt == START_ATTEMPTS - 1:
                    raise

    def _start(self) -> None:
        """New workers, as many as the nodes that are there have processors for."""
        self.close()
        self.count, self.threads = reduced(_node_processors(self.ray), self.wanted, self.wanted_threads)
        if not self.count:
            raise ClusterError(f"no node of the cluster has {counted(max(self.threads, 1), 'processor')} for a worker")
        if self.count < self.wanted:
            said = f"only {self.count} of {counted(self.wanted, 'worker')} fit on the cluster; they do the work of all"
            warn_of([said], RunWarning)
        actor = self.ray.remote(
            max_restarts=0, num_cpus=self.threads, scheduling_strategy="SPREAD", concurrency_groups={ALIVE: 1}
        )(_Actor)
        fit = uuid.uuid4().hex[:8]  # names in Ray's dashboard must differ from those of other fits
        self.about = []
        self.actors = [
            actor.options(name=f"ringleader {fit} worker {rank}").remote(rank, self.count) for rank in range(self.count)
        ]
        answers = [a.place.options(concurrency_group=ALIVE).remote() for a in self.actors]
        for _ in range(START_CHECKS):
            ready, waiting = self.ray.wait(answers, num_returns=len(answers), timeout=CHECK_SECONDS)
            if not waiting:
                break
            if capacity(_node_processors(self.ray), self.threads) < self.count:
                raise WorkerLost("a node went while workers were started on it")
        else:
            raise ClusterError(
                f"{len(ready)} of {counted(self.count, 'worker')} started within five minutes; the cluster is busy "
                "with other work: wait for it, or ask for fewer with --workers"
            )
        self.about = self._get(answers)

    def close(self) -> None:
        """End the workers; the cluster stays."""
        for actor in self.actors:
            self.ray.kill(actor, no_restart=True)
        self.actors = []

    def run(self, call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        try:
            return self._run(call, arguments)
        except WorkerLost:
            raise
        except Exception:
            # What one worker cannot do, the others need not wait for: they close what they have open.
            self._get([actor.abandon.remote() for actor in self.actors])
            raise

    def _run(self, call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        size, ranks = self.count + 1, range(self.count)
        named = call.__name__.strip("_").replace("_", " ")  # as Ray's dashboard lists it
        answers, each = [], iter(arguments)
        for actor in self.actors:
            answers.append(_as_list(actor.start.options(num_returns=size, name=named).remote(call, *next(each))))
            if resident_memory().shared > LEAVE_FROM:  # they are on their way
                leave_shared()
        for exchanges in itertools.count():
            ended = self._get([answer[0] for answer in answers])
            if self.watch is not None:
                self.watch(named, exchanges)
            if all(ended):
                return_memory()
                return self._get([answer[1] for answer in answers])
            if any(ended):
                raise RuntimeError("some workers ended their program and others wait for messages")
            answers = [
                _as_list(
                    self.actors[p]
                    .go_on.options(num_returns=size, name=named)
                    .remote(*(answers[q][1 + p] for q in ranks if q != p))
                )
                for p in ranks
            ]
        raise AssertionError("a program ends or fails")

    def _get(self, references: list[Any]) -> list[Any]:
        """The values of one reference of each worker; errors name the worker."""
        waiting = list(references)
        while waiting:
            _, waiting = self.ray.wait(waiting, num_returns=len(waiting), timeout=CHECK_SECONDS, fetch_local=False)
            if waiting:
                self._check_alive([rank for rank, reference in enumerate(references) if reference in waiting])
        values = []
        for rank, reference in enumerate(references):
            try:
                values.append(self._fetched(rank, reference))
            except self.ray.exceptions.RayTaskError as error:
                cause = error.cause
                if isinstance(cause, self.ray.exceptions.RayError):
                    raise self._lost(rank, _first_line(cause)) from error
                raise self._said_by(rank, cause, error) from None
            except self.ray.exceptions.RayError as error:
                raise self._lost(rank, _first_line(error)) from error
        return values

    def _fetched(self, rank: int, reference: Any) -> Any:
        """A value that is there, brought here; it may take long where it is large."""
        while True:
            try:
                return self.ray.get(reference, timeout=self.timeout)
            except self.ray.exceptions.GetTimeoutError:
                self._check_alive([rank])

    def _check_alive(self, ranks: list[int]) -> None:
        """Raises where a worker does not answer in time: its process is stopped, or its node is cut off."""
        answers = [self.actors[rank].place.options(concurrency_group=ALIVE).remote() for rank in ranks]
        _, silent = self.ray.wait(answers, num_returns=len(answers), timeout=self.timeout, fetch_local=False)
        if silent:
            raise self._lost(ranks[answers.index(silent[0])], f"it has not answered for {self.timeout:g} seconds")

    def _said_by(self, rank: int, cause: Exception, error: Exception) -> Exception:
        """What is raised here for an error of a worker."""
        worker = f"{self._name(rank)} on {self.about[rank].host}"
        if isinstance(cause, StorageError):
            return StorageError(f"{cause.message}; in {worker}")
        if isinstance(cause, RingleaderError):
            return cause  # what one process would have said
        if isinstance(cause, OSError):
            return error_of_worker(cause, worker)
        cause.add_note(f"in worker {rank}: {error}")
        return cause

    def _name(self, rank: int) -> str:
        if rank >= len(self.about):
            return f"worker {rank}"
        return f"worker {rank} (process {self.about[rank].process})"

    def _lost(self, rank: int, cause: str) -> WorkerLost:
        log = ""
        if rank < len(self.about):
            lines = self._on_node(self.about[rank].node, _end_of_log, self.about[rank].process)
            log = f" (on {self.about[rank].host})" + (f"; its log ends: {' / '.join(lines)}" if lines else "")
        return WorkerLost(f"{self._name(rank)} is gone: {cause.rstrip('.')}{log}")

    def _on_node(self, node: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """A short call on a node; None where it is gone."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node, soft=False)
        task = self.ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(call)
        try:
            return self.ray.get(task.remote(*arguments), timeout=NODE_SECONDS)
        except self.ray.exceptions.RayError:
            return None


def _node_processors(ray: Any) -> list[int]:
    """The processors of each node that is there."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


class WorkerPlace(NamedTuple):
    """Where a worker runs: its process, the name of its machine, and the node of the cluster."""

    process: int
    host: str
    node: str


class _Actor(Worker):
    """A worker inside Ray."""

    def __init__(self, rank: int, count: int) -> None:
        return_large_arrays()
        super().__init__(rank, count)

    def place(self) -> WorkerPlace:
        """Answers while the worker works: it runs on a thread of its own."""
        import ray

        return WorkerPlace(os.getpid(), socket.gethostname(), ray.get_runtime_context().get_node_id())


def _kill(process: int) -> None:
    """On the node of a worker: end its process, if it is one of Ray's still."""
    with contextlib.suppress(OSError):
        if "ray" in command_line(process):
            os.kill(process, signal.SIGKILL)


def _end_of_log(process: int) -> list[str]:
    """On the node of a worker: the last lines that it wrote before it ended."""
    import ray

    try:
        logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
        files = sorted(logs.glob(f"worker-*-{process}.err"))
        lines = [line for file in files for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except (AttributeError, OSError):
        return []
    return [line for line in lines if not line.startswith(":")][-LOG_LINES:]  # colons mark what Ray writes for itself


def _import_ray() -> Any:
    for name, value in ENVIRONMENT.items():
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


def _silence_ends(ray: Any) -> None:
    """Ray prints a paragraph for every process that ends; what became of a worker is said in one sentence, by us."""
    inside: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(inside, "print_to_stdstream"):
        inside.print_to_stdstream = lambda *about, **more: None


def _check_listening(address: str) -> None:
    """Raise where nobody listens at an address: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def _as_list(references: Any) -> list[Any]:
    return list(references)


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
