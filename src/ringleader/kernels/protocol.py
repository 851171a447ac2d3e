"""The protocol of a backend, and the two there are: ``numba`` (what runs) and ``reference`` (the oracle)."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ringleader.arrays import Codes, Factors, Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.kernels.layout import CHUNK, Blocks, Rule, Statistics, Terms, View, read_only
from ringleader.kernels.reference import blocks as reference

INLINE = 20_000
"""Positions below which a call stays on the caller's thread: starting threads would cost more."""

ENTRIES = 4096
"""Cells per piece of a pass over all cells. Fixed: changing it changes the last bits of likelihoods."""


class Ops(Protocol):
    """What a backend can do. ``reference`` says what each operation means."""

    name: str

    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None: ...

    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]: ...

    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None: ...

    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]: ...

    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]: ...

    def head_moments(
        self, rows: Factors, values: Floats, beta: Floats, noise: float, rule: Rule
    ) -> tuple[Floats, Floats]: ...

    def log_odds(self, view: View, codes: Codes) -> Floats: ...

    def log_likelihood(self, view: View) -> tuple[float, float]: ...

    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]: ...


class ReferenceOps:
    """Plain NumPy."""

    name = "reference"
    draw_negatives = staticmethod(reference.draw_negatives)
    group_drawn = staticmethod(reference.group_drawn)
    sweep_blocks = staticmethod(reference.sweep_blocks)
    block_moments = staticmethod(reference.block_moments)
    lambda_moments = staticmethod(reference.lambda_moments)
    head_moments = staticmethod(reference.head_moments)
    log_odds = staticmethod(reference.log_odds)
    log_likelihood = staticmethod(reference.log_likelihood)
    leave_one_out = staticmethod(reference.leave_one_out)


class NumbaOps:
    """Compiled loops that release the interpreter lock, run by ``threads`` threads.

    A thread takes the next piece of work when it is done with the last; what a piece is does not depend
    on the number of threads, and no two pieces write to the same place.
    """

    name = "numba"

    def __init__(self, threads: int) -> None:
        from ringleader.kernels.numba import blocks as numba_blocks
        from ringleader.kernels.numba import entries as numba_entries

        self._blocks: Any = numba_blocks
        self._entries: Any = numba_entries
        self._labels: Any = numba_blocks.Labels
        self.threads = threads

    def __reduce__(self) -> tuple[type[NumbaOps], tuple[int]]:
        return NumbaOps, (self.threads,)

    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None:
        codes, counter = np.ascontiguousarray(pool), np.uint64(key)
        self._over(len(tuples), 65536, lambda span: self._entries.draw_negatives(tuples, codes, modes, counter, span))

    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]:
        draws = len(tuples) * (tuples.shape[1] - modes)
        offsets, cells = np.zeros(size + 1, np.int64), np.empty(draws, np.int32)
        places = np.zeros((self.threads if draws > INLINE else 1, size), np.int64)
        kernels = self._entries
        self._over(len(places), 1, lambda span: kernels.count_drawn(tuples, modes, places, span), draws)
        kernels.offsets_of(places, offsets)
        self._over(len(places), 1, lambda span: kernels.place_drawn(tuples, modes, places, cells, span), draws)
        return offsets, cells

    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        labels = self._labels(terms, cavity)
        sums = self._sum_chunks(view, blocks, rule)
        self._tasks(blocks, lambda s: self._blocks.sweep_blocks(view, blocks, rule, labels, statistics, sums, s))

    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        count, rank = len(blocks.entities), view.factors.shape[1]
        out = np.zeros((count, rank)), np.zeros((count, rank, rank))
        sums = self._sum_chunks(view, blocks, rule)
        self._tasks(blocks, lambda s: self._blocks.block_moments(view, blocks, rule, sums, out, s))
        return out

    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        rank = view.factors.shape[1]
        sums = _room(-(-len(cells) // CHUNK) + 1, rank)
        sums[-1, -1, :rank] = view.component_weights
        plain = view._replace(component_weights=np.ones(rank))
        kernel = self._blocks.lambda_moments
        self._over(len(sums) - 1, 1, lambda span: kernel(plain, read_only(cells), rule, sums, span), CHUNK)
        total = sums[:-1].sum(axis=0)
        upper = np.triu(total[:rank, :rank])
        return total[-1, :rank].copy(), upper + np.triu(upper, 1).T

    def head_moments(
        self, rows: Factors, values: Floats, beta: Floats, noise: float, rule: Rule
    ) -> tuple[Floats, Floats]:
        return reference.head_moments(rows, values, beta, noise, rule)

    def log_odds(self, view: View, codes: Codes) -> Floats:
        out = np.empty(len(codes))
        codes = read_only(np.asarray(codes, np.int32))
        self._over(len(codes), 16384, lambda span: self._entries.log_odds(view, codes, out, span))
        return out

    def log_likelihood(self, view: View) -> tuple[float, float]:
        sums = np.zeros((-(-len(view.tuples) // ENTRIES), 2))
        kernel = self._entries.log_likelihood
        self._over(len(sums), 4, lambda span: kernel(view, sums, span, ENTRIES), ENTRIES)
        own, drawn = np.cumsum(sums, axis=0)[-1] if len(sums) else (0.0, 0.0)
        return float(own), float(drawn)

    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        out = tuple(np.full(len(view.tuples), np.nan) for _ in range(3))
        sums = self._sum_chunks(view, blocks, rule)
        self._tasks(blocks, lambda s: self._blocks.leave_one_out(view, blocks, rule, sums, out, s))
        return out[0], out[1], out[2]

    def _sum_chunks(self, view: View, blocks: Blocks, rule: Rule) -> Floats:
        sums = _room(len(blocks.chunks), view.factors.shape[1])
        self._over(len(sums), 1, lambda span: self._blocks.sum_chunks(view, blocks, rule, sums, span), CHUNK)
        return sums

    def _tasks(self, blocks: Blocks, call: Callable[[tuple[int, int]], None]) -> None:
        length = int((blocks.ends - blocks.begins).sum()) if len(blocks.entities) < INLINE else INLINE
        count = len(blocks.tasks) - 1
        if length < INLINE and count:
            call((0, count))
        else:
            self._over(count, 1, call, INLINE)

    def _over(self, count: int, piece: int, call: Callable[[tuple[int, int]], None], cost: int = 1) -> None:
        """``call`` every piece (first, last) of range(count), by as many threads as allowed."""
        if self.threads == 1 or count * cost < INLINE or count <= piece:
            if count:
                call((0, count))
            return
        _share(lambda i: call((i, min(i + piece, count))), range(0, count, piece), self.threads)


def _share(call: Callable[[int], None], pieces: range, threads: int) -> None:
    """Run ``call`` on every piece; whoever is free takes the next. The first error is raised here."""
    taken = itertools.count()
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            i = next(taken)
            if i >= len(pieces):
                return
            try:
                call(pieces[i])
            except BaseException as error:
                errors.append(error)

    helpers = [threading.Thread(target=work) for _ in range(min(threads, len(pieces)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]


def _room(count: int, rank: int) -> Floats:
    padded = (rank + 3) // 4 * 4
    return np.zeros((count, padded + 1, padded))


def get_ops(name: str = "numba", threads: int | None = None) -> Ops:
    """The backend of that name; ``threads`` None takes as many as this process may use."""
    if name == "reference":
        return ReferenceOps()
    if name == "numba":
        return NumbaOps(threads if threads else available_threads())
    raise SettingsError(f"there is no backend {name!r}; choose numba or reference")


def available_threads() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
