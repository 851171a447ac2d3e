"""How fast a fit is, beside pyttb's ``gcp_opt`` in the same run; ``answers`` has how soon a model answers.

An entry is one positive or negative tuple carried through all modes. Figures are medians of warm
runs; compilation is measured apart.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.evaluation.answers import SpeedRow, answer_table
from ringleader.kernels.protocol import get_backend
from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

REPEATS = 5


class Rate(NamedTuple):
    """One measured figure."""

    job: str
    seconds: float  # median of a run
    entries: int  # per run
    spread: float  # (slowest - fastest) / median

    @property
    def per_second(self) -> float:
        return self.entries / self.seconds


def benchmark_tensor(cells: int, seed: int = 0) -> SparseTensor:
    """A heavy-tailed five-mode tensor shaped like a marketplace of that many reviews."""
    rng = np.random.default_rng(seed)
    sizes = (max(cells // 8, 50), max(cells // 31, 20), max(cells // 100, 10), 5, 157)
    rows = int(cells * 1.02)
    product = (sizes[1] * rng.random(rows) ** 2.5).astype(np.int64)
    columns = [
        (sizes[0] * rng.random(rows) ** 2).astype(np.int64),
        product,
        (product * 7919) % sizes[2],
        rng.choice(5, rows, p=[0.1, 0.05, 0.1, 0.2, 0.55]),
        rng.integers(0, sizes[4], rows),
    ]
    order = np.lexsort(columns[::-1])
    codes = np.stack([column[order] for column in columns], axis=1).astype(np.int32)
    fresh = np.ones(rows, np.bool_)
    fresh[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    codes = codes[fresh][:cells]
    names = ("reviewer", "product", "seller", "rating", "week")
    vocabularies = tuple(
        Vocabulary.of_ids(name, map(str, range(size))) for name, size in zip(names, sizes, strict=True)
    )
    return SparseTensor(codes, np.ones(len(codes), np.int64), vocabularies)


def fit_rate(
    tensor: SparseTensor, *, rank: int, negatives: int = 4, threads: int = 0, repeats: int = REPEATS, sweeps: int = 1
) -> Rate:
    """Entries per second of warm natural-gradient sweeps, objective included as in a fit."""
    run = fit_run(tensor, rank=rank, negatives=negatives, threads=threads, sweeps=sweeps)
    entries = tensor.n_cells * (1 + negatives) * sweeps
    job = f"ringleader, rank {rank}, {negatives} negatives, {threads or 'all'} threads"
    return _rate(job, [run() for _ in range(repeats)], entries)


def fit_run(
    tensor: SparseTensor, *, rank: int, negatives: int = 4, threads: int = 0, sweeps: int = 1
) -> Callable[[], float]:
    """A warm fit: each call does so many sweeps more and returns the seconds they took."""
    config = ModelConfig.preset("default", rank=rank, negatives=negatives, threads=threads, start="half-normal")
    problem = build_problem(tensor, (), config)
    state = start_state(problem)
    state, _ = fit_loop(problem, state, sweeps=1)  # compiles, and builds the groupings

    def run() -> float:
        nonlocal state
        began = time.perf_counter()
        state, _ = fit_loop(problem, state, sweeps=sweeps)
        return time.perf_counter() - began

    return run


def compile_seconds() -> float:
    """Seconds until the first sweep of a tiny fit is done; compilation, or loading it from numba's cache."""
    tiny = benchmark_tensor(500)
    began = time.perf_counter()
    problem = build_problem(tiny, (), ModelConfig.preset("default", rank=2, start="half-normal"))
    fit_loop(problem, start_state(problem), sweeps=1)
    return time.perf_counter() - began


def compare_with_pyttb(
    tensor: SparseTensor, *, rank: int, repeats: int = REPEATS, batch: int = 100_000, steps: int = 10
) -> tuple[Rate, Rate]:
    """Both programs by turns on the same tensor."""
    ours, theirs = fit_run(tensor, rank=rank), pyttb_run(tensor, rank=rank, batch=batch, steps=steps)
    jobs = [f"ringleader, rank {rank}, beside pyttb", f"pyttb gcp_opt, rank {rank}, batches of {2 * batch:,}"]
    return _by_turns(jobs, [ours, theirs], [tensor.n_cells * 5, 2 * batch * steps], repeats)


def pyttb_run(tensor: SparseTensor, *, rank: int, batch: int, steps: int) -> Callable[[], float]:
    """pyttb's gcp_opt, warm: Bernoulli logit, Adam, semi-stratified sampling. Each call returns the seconds it took.

    Batches are far larger than its default (3,000 of each kind at a million reviews), which spreads Adam's
    update of all factors over more samples and makes it faster by this measure.
    """
    import pyttb as ttb
    from pyttb.gcp.optimizers import Adam
    from pyttb.gcp.samplers import GCPSampler, Samplers, StratifiedCount

    data = ttb.sptensor(tensor.coordinates.astype(np.int64), np.ones((tensor.n_cells, 1)), tensor.shape)
    sampler = GCPSampler(
        data,
        # Its own default for sparse data, but few: the objective is not what is measured, and many overflow it.
        function_sampler=Samplers.STRATIFIED,
        function_samples=StratifiedCount(num_nonzeros=100, num_zeros=100),
        gradient_sampler=Samplers.SEMISTRATIFIED,
        gradient_samples=StratifiedCount(num_nonzeros=batch, num_zeros=batch),
    )
    rng = np.random.default_rng(0)

    def run() -> float:
        init = ttb.ktensor([rng.random((n, rank)) * 0.1 for n in tensor.shape], np.ones(rank))
        optimizer = Adam(epoch_iters=steps, max_iters=1, printitn=0, f_est_tol=-np.inf, max_fails=10)
        began = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            ttb.gcp_opt(data, rank, _logit(), optimizer, init=init, sampler=sampler, printitn=0)
        return time.perf_counter() - began

    run()  # warms caches, as for the other program
    return run


def has_pyttb() -> bool:
    return importlib.util.find_spec("pyttb") is not None


def slope(small: Rate, large: Rate) -> float:
    """Slope of log time on log entries between two sizes."""
    return float(np.log(large.seconds / small.seconds) / np.log(large.entries / small.entries))


def floor(rank: int, modes: int, negatives: int) -> dict[str, float]:
    """What one entry costs at the least: bytes gathered and floating-point operations, all modes together.

    A mode's update of one cell with its negatives gathers a factor row per other mode and per negative,
    and adds one symmetric rank-one term per entry to the curvature.
    """
    entries = 1 + negatives
    rows = (modes - 1 + negatives) / entries  # gathered per entry and mode
    return {
        "bytes": modes * (rows * rank * 8 + 4 * (modes + negatives) / entries),
        "flops": modes * (rank * (rank + 1) + 2 * rank + 2 * rank + rank * (modes - 2) / entries + rank),
    }


def _logit() -> Any:
    from pyttb.gcp.handles import Objectives

    return Objectives.BERNOULLI_LOGIT


def _by_turns(
    jobs: list[str], runs: list[Callable[[], float]], entries: list[int], repeats: int = REPEATS
) -> tuple[Rate, Rate]:
    """Two measurements by turns, so that other work of the machine affects both alike."""
    pairs = [(runs[0](), runs[1]()) for _ in range(repeats)]
    first, second = (_rate(jobs[i], [pair[i] for pair in pairs], entries[i]) for i in range(2))
    return first, second


def _rate(job: str, seconds: list[float], entries: int) -> Rate:
    middle = statistics.median(seconds)
    return Rate(job, middle, entries, (max(seconds) - min(seconds)) / middle)


Say = Callable[[str], None]


def speed_report(
    cells: int, *, large: int = 0, answers: Sequence[int] = (), say: Say = lambda text: None
) -> dict[str, list[dict[str, Any]]]:
    """The tables of ``ringleader benchmark speed`` by name, as rows.

    answers : reviews of the models of which to measure how soon they answer; that table is left out where empty.
    """
    tables = {"speed": fit_table(cells, large=large, say=say)}
    if answers:
        tables["answers"] = answer_table(answers)
    report: dict[str, list[dict[str, Any]]] = {}
    for name, rows in tables.items():
        report[name] = []
        for row in rows:
            report[name].append(row._asdict())
            say(f"{row.what}: {row.value:,.2f} {row.unit}")
    return report


def device_report(sizes: Sequence[int], *, say: Say = lambda text: None) -> dict[str, list[dict[str, Any]]]:
    """The table of ``ringleader benchmark speed --device cuda``: sweeps of drawn markets of so many reviews.

    Where the memory of the GPU is limited, or several share the work, the markets begin on the host.
    """
    from ringleader.evaluation.device_speed import device_table

    backend: Any = get_backend("cuda")
    on_host = len(backend.devices) > 1 or backend.device.limit is not None
    rows = []
    for cells in sizes:
        for row in device_table(backend, cells, on_host=on_host):
            rows.append(row._asdict())
            say(f"{row.what}: {row.value:,.2f} {row.unit}")
    return {"device": rows}


def fit_table(cells: int, *, large: int, say: Say) -> Iterator[SpeedRow]:
    """How fast a fit of that many reviews is, and of ``large`` (0: no other); pyttb beside it where installed."""
    yield SpeedRow("compilation or loading of kernels", compile_seconds(), "s", note="apart from all that follows")
    tensor = benchmark_tensor(cells)
    yield _entries_row(fit_rate(tensor, rank=10))
    one, two = _by_turns(
        [f"ringleader, rank 24, 4 negatives, {threads} threads" for threads in (1, 2)],
        [fit_run(tensor, rank=24, threads=threads) for threads in (1, 2)],
        [tensor.n_cells * 5] * 2,
    )
    yield _entries_row(one)
    yield _entries_row(two)
    yield SpeedRow("two threads over one, rank 24", one.seconds / two.seconds, "times", "at least 1.8")
    yield SpeedRow(f"20 sweeps of {cells:,} reviews, rank 24", 20 * two.seconds, "s", "at most 75 at 1,000,000")
    least = floor(24, 5, 4)
    yield SpeedRow("bytes gathered per entry, rank 24", least["bytes"], "bytes")
    yield SpeedRow("floating-point operations per entry, rank 24", least["flops"], "flops")
    yield SpeedRow("operations per second, rank 24", least["flops"] * two.per_second / 1e9, "Gflop/s")
    title = f"slope of log time from {cells:,} to {10 * cells:,} entries, rank 24"
    yield SpeedRow(title, _growth(cells), "", "at most 1.1")
    if large not in (0, cells):
        big = fit_rate(benchmark_tensor(large), rank=24, threads=2, repeats=3)
        yield _entries_row(big._replace(job=f"{big.job}, {large:,} reviews"))
        yield SpeedRow(f"slope of log time from {cells:,} to {large:,} reviews, rank 24", slope(two, big), "")
    # Before the other program runs, so that its memory does not count.
    yield SpeedRow("peak memory", peak_gib(), "GiB", "at most 1.4 (1.5 GB) at 1,000,000; 7.5 (8 GB) at 10,000,000")
    if not has_pyttb():
        say("pyttb is not installed (pip install 'ringleader[bench]'): no comparison")
        return
    own, other = compare_with_pyttb(tensor, rank=10)
    yield _entries_row(own)
    yield _entries_row(other, unit="M samples/s")
    yield SpeedRow("ringleader over pyttb, rank 10", own.per_second / other.per_second, "times", "at least 12")


def _entries_row(rate: Rate, unit: str = "M entries/s") -> SpeedRow:
    return SpeedRow(rate.job, rate.per_second / 1e6, unit, note=f"spread {rate.spread:.0%}")


def _growth(cells: int) -> float:
    """Slope of log time on log entries from a fifth of the reviews to twice as many, by turns."""
    few, many = benchmark_tensor(cells // 5), benchmark_tensor(2 * cells)
    small, wide = _by_turns(
        ["few", "many"],
        [fit_run(few, rank=24, threads=2, sweeps=10), fit_run(many, rank=24, threads=2)],
        [few.n_cells * 50, many.n_cells * 5],
    )
    return 1 + float(np.log(small.per_second / wide.per_second) / np.log(many.n_cells / few.n_cells))


def peak_gib() -> float:
    """Peak memory of this process; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
