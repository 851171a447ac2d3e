"""The compiled backend: cuts the work into pieces, and has the kernels run them on the threads of this machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels import elementary
from ringleader.kernels.checks import check_blocks, check_cells, check_codes, check_labels, check_view
from ringleader.kernels.host_arrays import HostArrays
from ringleader.kernels.layout import (
    CHUNK,
    LIKELIHOOD_PIECE,
    Blocks,
    OwnedDraws,
    Rule,
    Statistics,
    Terms,
    View,
    read_only,
)
from ringleader.kernels.numba import blocks as compiled_blocks
from ringleader.kernels.numba import bursts as compiled_bursts
from ringleader.kernels.numba import curves as compiled_curves
from ringleader.kernels.numba import draws as compiled_draws
from ringleader.kernels.numba import entries as compiled_entries
from ringleader.kernels.numba import grouped as compiled_grouped
from ringleader.kernels.numba import logarithms as compiled_logarithms
from ringleader.kernels.numba import pairs as compiled_pairs
from ringleader.kernels.numba import ranked as compiled_ranked
from ringleader.kernels.numba import topics as compiled_topics
from ringleader.kernels.numba import ways as compiled_ways
from ringleader.kernels.single_block import head_moments
from ringleader.kernels.tree import part_level, tree_sum
from ringleader.runtime.executor import Threads

INLINE = 20_000
"""Positions below which a call stays on the caller's thread: starting threads would cost more."""

elementary.KERNELS.update(log=compiled_logarithms.log, log1p=compiled_logarithms.log1p)


class NumbaBackend(HostArrays):
    """Compiled loops that release the interpreter lock, run by ``threads`` threads.

    A thread takes the next piece of work when it is done with the last; what a piece is does not depend
    on the number of threads, and no two pieces write to the same place.
    """

    name = "numba"
    head_moments = staticmethod(head_moments)
    largest_bursts = staticmethod(compiled_bursts.largest_bursts)
    excess_around = staticmethod(compiled_bursts.excess_around)
    rhythms = staticmethod(compiled_bursts.rhythms)
    sums_by_code = staticmethod(compiled_grouped.sums_by_code)
    weighted_sums = staticmethod(compiled_grouped.weighted_sums)
    sums_of_rows = staticmethod(compiled_grouped.sums_of_rows)
    halved_sums = staticmethod(compiled_grouped.halved_sums)
    top_sums = staticmethod(compiled_grouped.top_sums)
    keep_larger = staticmethod(compiled_grouped.keep_larger)
    counts_of_pairs = staticmethod(compiled_grouped.counts_of_pairs)
    middles = staticmethod(compiled_ranked.middles)
    dense_ranks = staticmethod(compiled_grouped.dense_ranks)
    number_places = staticmethod(compiled_ranked.number_places)
    distinct_pairs = staticmethod(compiled_grouped.distinct_pairs)
    stable_order = staticmethod(compiled_pairs.stable_order)
    lockstep_of_actors = staticmethod(compiled_pairs.lockstep_of_actors)
    often_met = staticmethod(compiled_pairs.often_met)
    lockstep_of_met = staticmethod(compiled_pairs.lockstep_of_met)
    support_of_groups = staticmethod(compiled_pairs.support_of_groups)
    topic_counts = staticmethod(compiled_topics.topic_counts)
    topic_counts_of_both = staticmethod(compiled_topics.topic_counts_of_both)
    drawn_to_items = staticmethod(compiled_topics.drawn_to_items)
    way_sums = staticmethod(compiled_ways.way_sums)
    add_others = staticmethod(compiled_ways.add_others)
    add_curve = staticmethod(compiled_curves.add_curve)

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __reduce__(self) -> tuple[type[NumbaBackend], tuple[int]]:
        return NumbaBackend, (self.threads,)

    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None:
        codes, counter = np.ascontiguousarray(pool), np.uint64(key)

        def draw(span: tuple[int, int]) -> None:
            with np.errstate(over="ignore"):  # counters wrap; without compilation NumPy would warn
                compiled_draws.draw_negatives(tuples, codes, modes, counter, span)

        self._over(len(tuples), 65536, draw)

    def draw_numbered(self, tuples: Codes, modes: int, pool: Codes, key: int, numbers: Numbers) -> None:
        codes, counter = read_only(np.ascontiguousarray(pool)), np.uint64(key)
        cells = read_only(np.ascontiguousarray(numbers, np.int64))

        def draw(span: tuple[int, int]) -> None:
            with np.errstate(over="ignore"):  # as above
                compiled_draws.draw_numbered(tuples, codes, modes, counter, cells, span)

        self._over(len(tuples), 65536, draw)

    def owned_draws(self, tuples: Codes, modes: int, bounds: Numbers) -> list[OwnedDraws]:
        drawn, edges = read_only(tuples), read_only(np.ascontiguousarray(bounds, np.int64))
        counts, never = np.zeros((2, len(edges) - 1), np.int64), np.full(len(edges) - 1, -1)
        compiled_draws.count_owned(drawn, modes, edges, *counts, never.copy())
        ends = np.cumsum(counts, axis=1)
        n_cells, n_draws = ends[:, -1]
        into = OwnedDraws(np.empty(n_cells, np.int32), np.zeros(n_cells, np.uint8), np.empty(n_draws, np.int32))
        compiled_draws.place_owned(drawn, modes, edges, ends - counts, into, never)
        of_cells, of_draws = ends[:, :-1]
        cells, times = np.split(into.cells, of_cells), np.split(into.times, of_cells)
        return [OwnedDraws(*part) for part in zip(cells, times, np.split(into.entities, of_draws), strict=True)]

    def group_owned(self, drawn: OwnedDraws, first: int, size: int) -> tuple[Numbers, Codes]:
        offsets, cells = np.zeros(size + 2, np.int64), np.empty(len(drawn.entities), np.int32)
        compiled_draws.group_owned(OwnedDraws(*(read_only(array) for array in drawn)), first, offsets, cells)
        return offsets[:-1], cells

    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]:
        draws = len(tuples) * (tuples.shape[1] - modes)
        offsets, cells = np.zeros(size + 1, np.int64), np.empty(draws, np.int32)
        places = np.zeros((self.threads if draws > INLINE else 1, size), np.int64)
        self._over(len(places), 1, lambda span: compiled_entries.count_drawn(tuples, modes, places, span), draws)
        compiled_entries.offsets_of(places, offsets)
        self._over(len(places), 1, lambda span: compiled_entries.place_drawn(tuples, modes, places, cells, span), draws)
        return offsets, cells

    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        if not view.factors.flags.writeable:
            raise ValueError("a sweep writes into the factors, and these are read-only; copy the state first")
        check_blocks(view, blocks)
        check_labels(view, blocks, rule, terms, statistics, cavity)
        labels = compiled_blocks.BlockLabels(terms, cavity)
        reading = _for_reading(view)
        nodes, moved = self._sum_chunks(reading, blocks, rule), reading._replace(factors=view.factors)
        self._tasks(blocks, lambda s: compiled_blocks.sweep_blocks(moved, blocks, rule, labels, statistics, nodes, s))

    def step_blocks(
        self,
        view: View,
        blocks: Blocks,
        rule: Rule,
        terms: Terms,
        statistics: Statistics,
        cavity: Floats,
        moments: tuple[Floats, Floats],
    ) -> None:
        check_blocks(view, blocks)
        check_labels(view, blocks, rule, terms, statistics, cavity)
        gradient, curvature = moments
        rank = view.factors.shape[1]
        sums = _zero_sums(len(blocks.entities), rank)
        sums[:, :rank, :rank], sums[:, -1, :rank] = curvature, gradient
        places = np.arange(len(blocks.entities) + 1)
        nodes = compiled_blocks.Nodes(0, 1, places[:-1].copy(), places, sums)
        labels = compiled_blocks.BlockLabels(terms, cavity)
        moved = _for_reading(view)._replace(factors=view.factors)
        self._tasks(blocks, lambda s: compiled_blocks.step_blocks(moved, blocks, rule, labels, statistics, nodes, s))

    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        check_blocks(view, blocks)
        view = _for_reading(view)
        count, rank = len(blocks.entities), view.factors.shape[1]
        out = np.zeros((count, rank)), np.zeros((count, rank, rank))
        nodes = self._sum_chunks(view, blocks, rule)
        self._tasks(blocks, lambda s: compiled_blocks.block_moments(view, blocks, rule, nodes, out, s))
        return out

    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        check_cells(view, cells)
        rank = view.factors.shape[1]
        chunks = -(-len(cells) // CHUNK)
        level = part_level(chunks)
        sums = _zero_sums(-(-chunks >> level) + 1, rank)
        sums[-1, -1, :rank] = view.component_weights
        unweighted = _for_reading(view._replace(component_weights=np.ones(rank)))
        kernel, lists = compiled_blocks.lambda_moments, read_only(cells)
        self._over(len(sums) - 1, 1, lambda span: kernel(unweighted, lists, rule, sums, level, span), CHUNK << level)
        total = tree_sum(sums[:-1])
        upper = np.triu(total[:rank, :rank])
        return total[-1, :rank].copy(), upper + np.triu(upper, 1).T

    def log_odds(self, view: View, codes: Codes) -> Floats:
        check_codes(view, codes)
        view = _for_reading(view._replace(tuples=np.asarray(codes, np.int32)))
        out = np.empty(len(codes))
        self._over(len(codes), 16384, lambda span: compiled_entries.log_odds(view, out, span))
        return out

    def log_likelihood(self, view: View) -> tuple[float, float]:
        check_view(view)
        view = _for_reading(view)
        sums = np.zeros((-(-len(view.tuples) // LIKELIHOOD_PIECE), 2))
        kernel = compiled_entries.log_likelihood
        self._over(len(sums), 4, lambda span: kernel(view, sums, span, LIKELIHOOD_PIECE), LIKELIHOOD_PIECE)
        own, drawn = tree_sum(sums)
        return float(own), float(drawn)

    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        check_blocks(view, blocks)
        view = _for_reading(view)
        out = tuple(np.full(len(view.tuples), np.nan) for _ in range(3))
        nodes = self._sum_chunks(view, blocks, rule)
        self._tasks(blocks, lambda s: compiled_blocks.leave_one_out(view, blocks, rule, nodes, out, s))
        return out[0], out[1], out[2]

    def _sum_chunks(self, view: View, blocks: Blocks, rule: Rule) -> compiled_blocks.Nodes:
        """The parts of the sums of long blocks, by as many threads as allowed."""
        chunks = np.diff(blocks.first_chunk)
        level = part_level(len(blocks.chunks))
        parts = -(-chunks >> level)
        first = np.zeros(len(chunks) + 1, np.int64)
        np.cumsum(parts, out=first[1:])
        block = np.repeat(np.arange(len(chunks)), parts)
        depth = int(parts.max(initial=0)).bit_length()
        nodes = compiled_blocks.Nodes(level, depth, block, first, _zero_sums(len(block), view.factors.shape[1]))
        kernel = compiled_blocks.sum_chunks
        self._over(len(block), 1, lambda span: kernel(view, blocks, rule, nodes, span), CHUNK << level)
        return nodes

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
        Threads(self.threads).map(lambda i: call((i, min(i + piece, count))), range(0, count, piece))


def _for_reading(view: View) -> View:
    """The view with read-only arrays: one compiled kernel, whether the caller's can be written to or not."""
    return View(
        read_only(view.tuples),
        read_only(view.weights),
        int(view.contrast),
        read_only(view.factors),
        read_only(view.starts),
        int(view.rows),
        read_only(view.component_weights),
    )


def _zero_sums(count: int, rank: int) -> Floats:
    padded = (rank + 3) // 4 * 4
    return np.zeros((count, padded + 1, padded))
