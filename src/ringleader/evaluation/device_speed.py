"""How fast a sweep is on a GPU: a market drawn on the device, each part of a sweep timed by the device's own events.

Cells, groupings and factors never leave the device, so that sizes need no memory of the host.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import frozen
from ringleader.counters import stream_key
from ringleader.evaluation.answers import SpeedRow
from ringleader.kernels.layout import Blocks, Rule, View, no_statistics, no_terms

LARGEST = 571_000_000
"""Reviews of the largest public collection; a market of that size has its shape."""
SHAPE = (54_000_000, 48_000_000, 2_000_000, 5, 1000)
NAMES = ("reviewer", "product", "seller", "rating", "week")
RULE = Rule(0, 0, 0.8, 1.0, True, 1.0, 0.0, 0.0, 0.0, 1.0)


class SpeedMarket(NamedTuple):
    """A problem: cells sorted by reviewer and the cells of each entity, on the device or on the host, and factors."""

    sizes: tuple[int, ...]
    codes: Any  # (n, K) int32
    grouped: list[tuple[Any, Any]]
    factors: Any  # (sum of sizes, R)


def draw_market(
    backend: Any, cells: int, sizes: Sequence[int], rank: int, dtype: Any = np.float32, *, on_host: bool = False
) -> SpeedMarket:
    """A heavy-tailed market of five modes, as ``speed.benchmark_tensor`` draws one; factors are on the device."""
    xp = backend.device.xp

    def placed(array: Any) -> Any:
        return frozen(array.get()) if on_host else array

    draw = xp.random.default_rng(0)
    codes = xp.empty((cells, len(sizes)), np.int32)
    codes[:, 0] = xp.sort((sizes[0] * draw.random(cells, dtype=np.float32).astype(np.float64) ** 2).astype(np.int32))
    codes[:, 1] = (sizes[1] * draw.random(cells) ** 2.5).astype(np.int32)
    codes[:, 2] = (codes[:, 1].astype(np.int64) * 7919) % sizes[2]
    codes[:, 3] = xp.searchsorted(xp.asarray([0.1, 0.15, 0.25, 0.45]), draw.random(cells, dtype=np.float32))
    codes[:, 4] = (sizes[4] * draw.random(cells)).astype(np.int32)
    grouped = []
    for k, size in enumerate(sizes):
        keys = codes[:, k].astype(np.uint64) << np.uint64(32) | xp.arange(cells, dtype=np.uint64)
        keys.sort()
        edges = xp.arange(size + 1, dtype=np.uint64) << np.uint64(32)
        grouped.append((placed(xp.searchsorted(keys, edges).astype(np.int64)), placed(keys.astype(np.int32))))
        del keys, edges
    codes = placed(codes)
    if on_host:
        xp.get_default_memory_pool().free_all_blocks()
    factors = xp.empty((sum(sizes), rank), dtype)
    for first in range(0, len(factors), 1 << 24):
        part = factors[first : first + (1 << 24)]
        part[...] = xp.abs(draw.standard_normal(part.shape, dtype=np.float32)) * 0.5
    return SpeedMarket(tuple(sizes), codes, grouped, factors)


class DeviceSweep:
    """Natural-gradient sweeps of a market; ``run`` does one and returns the milliseconds of each part."""

    def __init__(self, backend: Any, market: SpeedMarket, negatives: int) -> None:
        self.backend, self.market, self.negatives, self.sweep = backend, market, negatives, 0
        self.tuples = backend.place_tuples(market.codes, negatives)
        self.plans: dict[int, Blocks] = {k: backend.plan(k, market.grouped[k]) for k in range(1, len(market.sizes))}
        rank = market.factors.shape[1]
        starts = np.concatenate([[0], np.cumsum(market.sizes)[:-1]])
        rows = len(market.factors)
        self.view = View(self.tuples, np.ones(1), 0, market.factors, starts, rows, np.ones(rank))

    def run(self) -> dict[str, float]:
        backend, modes = self.backend, len(self.market.sizes)
        marks: list[tuple[str, Any]] = [("", self._mark())]

        def timed(name: str, call: Callable[[], Any]) -> Any:
            result = call()
            marks.append((name, self._mark()))
            return result

        key = stream_key(0, self.sweep)
        pool = self.tuples[:, 0]
        timed("drawing negatives", lambda: backend.draw_negatives(self.tuples, modes, pool, key))
        for k in range(1, modes):
            timed(NAMES[k], lambda k=k: self._sweep(self.plans[k]))  # type: ignore[misc]
        drawn = timed("grouping negatives", lambda: backend.group_drawn(self.tuples, modes, self.market.sizes[0]))
        blocks = timed("planning", lambda: backend.plan(0, self.market.grouped[0], drawn))
        timed(NAMES[0], lambda: self._sweep(blocks))
        timed("log-likelihood", lambda: backend.log_likelihood(self.view))
        self.sweep += 1
        marks[-1][1].synchronize()
        elapsed = backend.device.xp.cuda.get_elapsed_time
        return {name: elapsed(before, after) for (_, before), (name, after) in itertools.pairwise(marks)}

    def _sweep(self, blocks: Blocks) -> None:
        rank = self.market.factors.shape[1]
        self.backend.sweep_blocks(self.view, blocks, RULE, no_terms(rank), no_statistics(rank), np.zeros((0, rank)))

    def _mark(self) -> Any:
        event = self.backend.device.xp.cuda.Event()
        event.record()
        return event


def gathered_bytes(mode: int, cells: int, negatives: int, rank: int, modes: int, itemsize: int = 4) -> float:
    """Bytes of factor rows, tuples and lists that the sums of a mode gather at the least."""
    row, line = rank * itemsize, 4 * (modes + negatives)
    if mode == 0:
        return cells * (1 + negatives) * ((modes - 1) * row + line + 4)
    return cells * ((modes - 1 + negatives) * row + line + 4)


def copy_rate(xp: Any) -> float:
    """Bytes per second of a copy within the device, read and written counted."""
    source = xp.random.default_rng(0).random(1 << 29, dtype=np.float32)
    target, times = xp.empty_like(source), []
    for _ in range(6):
        first, last = xp.cuda.Event(), xp.cuda.Event()
        first.record()
        target[...] = source
        last.record()
        last.synchronize()
        times.append(xp.cuda.get_elapsed_time(first, last))
    return float(2 * source.nbytes / statistics.median(times[1:]) * 1e3)


def market_sizes(cells: int) -> tuple[int, ...]:
    """Entities of each mode in a market of that many reviews."""
    if cells >= LARGEST:
        return SHAPE
    return (max(cells // 8, 50), max(cells // 31, 20), max(cells // 100, 10), 5, 157)


def device_table(
    backend: Any, cells: int, *, rank: int = 24, negatives: int = 4, repeats: int = 5, on_host: bool = False
) -> list[SpeedRow]:
    """How fast sweeps of a market of that many reviews are: medians of warm runs, by the device's events.

    on_host : cells and lists begin on the host; they stay there where they do not fit into the memory that is allowed.
    """
    xp = backend.device.xp
    pool = xp.get_default_memory_pool()
    limit = pool.get_limit()
    pool.set_limit(size=0)  # the drawing may take what it needs
    market = draw_market(backend, cells, market_sizes(cells), rank, on_host=on_host)
    pool.free_all_blocks()
    pool.set_limit(size=limit)
    sweep = DeviceSweep(backend, market, negatives)
    pool.free_all_blocks()  # what laying it out took
    sweep.run()  # compiles
    runs = [sweep.run() for _ in range(repeats)]
    memory = pool.total_bytes()
    totals = [sum(run.values()) for run in runs]
    middle, entries = statistics.median(totals), cells * (1 + negatives)
    what = f"{cells:,} reviews, {negatives} negatives, rank {rank}"
    note = f"{backend.kind}, likelihood included; spread {(max(totals) - min(totals)) / middle:.1%}"
    rows = [
        SpeedRow(f"{what}: entries", entries / middle / 1e3, "M entries/s", "400; stretch 800 at 60,000,000", note),
        SpeedRow(f"{what}: one sweep", middle / 1e3, "s", "8; stretch 5 at 571,000,000", note),
        SpeedRow(f"{what}: device memory", memory / 2**30, "GiB", "100 at 571,000,000"),
    ]
    del sweep, market
    pool.free_all_blocks()
    pool.set_limit(size=0)
    rate = copy_rate(xp)
    pool.set_limit(size=limit)
    for name in runs[0]:
        spent, note = statistics.median(run[name] for run in runs), ""
        if name in NAMES:
            least = gathered_bytes(NAMES.index(name), cells, negatives, rank, len(NAMES)) / rate * 1e3
            note = f"gathering alone {least:.1f} ms at {rate / 1e12:.2f} TB/s: {least / spent:.0%}"
        rows.append(SpeedRow(f"{what}: {name}", spent, "ms", note=note))
    return rows
