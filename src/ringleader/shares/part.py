"""Part: a fit as one of several workers has it: what it holds, and its side of every sweep."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Codes, Factors, Floats, Numbers
from ringleader.counters import stream_key
from ringleader.kernels.layout import (
    CHUNK,
    DUAL_FROM,
    LIKELIHOOD_PIECE,
    Blocks,
    Rule,
    Statistics,
    Terms,
    View,
    plan_blocks,
    read_only,
)
from ringleader.kernels.protocol import DivisibleBackend
from ringleader.kernels.tree import TreeNodes, join_nodes, whole_nodes
from ringleader.known.labels import Target
from ringleader.model.evidence import ReviewEvidence, without_own_pull
from ringleader.model.posterior import CellEvidence
from ringleader.model.priors import labelled_rows
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.runtime.peers import Peers, gather
from ringleader.shares.deal import RANGE, ChunkPlaces, Deal
from ringleader.shares.draws import DrawnCells, send_drawn
from ringleader.shares.ranges import Ranges
from ringleader.shares.table import Named, RowTable
from ringleader.tensor.sparse import group_codes

SLACK = 50
"""Space for one in so many more cells of others than a sweep has sent: another sweep sends about as many."""


class Rows(NamedTuple):
    """What a worker carries from sweep to sweep."""

    factors: dict[int, Factors]  # of each mode: its own rows; all of them where the mode is not dealt out
    second: dict[int, Factors]  # statistics of its own entities, where the learner carries any
    first: dict[int, Floats]
    common: State  # what every worker has: no rows of factors, of the statistics only lambda's, evidence of labels


class Part:
    """The share of one worker; ``Share`` says what a pass asks of it.

    ``open`` begins a sweep: draws its negatives, and lays out the rows that are needed for it.
    """

    def __init__(
        self,
        peers: Peers,
        ranges: Ranges,
        problem: Problem,
        pool: Codes,
        chunks: Mapping[int, ChunkPlaces],
    ) -> None:
        """problem : settings and the labels of all; its tensor is empty. pool : what negatives are drawn from."""
        backend = problem.backend
        assert isinstance(backend, DivisibleBackend)  # others are refused before anything is dealt
        self.peers, self.ranges, self.backend = peers, ranges, backend
        self.problem = self.all_targets = problem
        self.pool, self.chunks = pool, chunks
        self.deals: dict[int, Deal] = {}
        self._lists: dict[int, tuple[Numbers, Codes]] = {}
        self.tuples: dict[int, Codes] = {}  # by key, those of its cells; of the contrast mode's, others behind them
        self.rows: Rows | None = None
        self._table: RowTable | None = None

    @property
    def table(self) -> RowTable:
        """The rows of the sweep that was begun last."""
        assert self._table is not None  # one was begun
        return self._table

    def hold(self, key: int, cells: Deal) -> None:
        """Take some of the cells that belong to this worker."""
        self.deals[key] = cells
        width = len(self.ranges.shape) + self.problem.config.negatives
        self.tuples[key] = np.zeros((len(cells.numbers), width), np.int32)
        for mode, dealt in enumerate(self.ranges.dealt):
            if dealt and self._deal_of(mode) == key:
                first, last = self.ranges.own(mode, self.peers.rank)
                self._lists[mode] = group_codes(cells.codes[: cells.own, mode] - first, last - first)
            elif not dealt and key == RANGE:
                self._lists[mode] = group_codes(cells.codes[:, mode], self.ranges.shape[mode])

    def open(self, rows: Rows, *, after: bool = False) -> None:
        """Begin a sweep from these rows; or, ``after`` one, lay out what it ended with and its negatives."""
        config, ranges = self.problem.config, self.ranges
        contrast, modes = config.contrast, len(ranges.shape)
        sweep = max(rows.common.sweep - after, 0)
        stream = sweep if self.problem.redraws else 0
        key = stream_key(config.seed, stream)
        drawn = {}
        for k, cells in self.deals.items():
            tuples = self._own_tuples(k)
            self.backend.draw_numbered(tuples, modes, self.pool, key, cells.numbers)
            drawn[k] = tuples[:, modes:]
        of_contrast = self._deal_of(contrast)
        held = None if of_contrast == RANGE else len(self.deals[of_contrast].numbers)
        cells, bounds = self.deals[RANGE], ranges.bounds[contrast]
        foreign = send_drawn(
            self.peers, self.backend, bounds, cells, self._own_tuples(RANGE), self.problem.weighted, held
        )
        dealt_modes = [mode for mode, dealt in enumerate(ranges.dealt) if dealt]
        named = {
            k: list(drawn.values()) if k == contrast else [part[:, k] for part in foreign.codes] for k in dealt_modes
        }
        if self._table is None:
            self._table = self._lay_out(named)
        table = self._table
        table.peers = self.peers
        table.begin(named)
        # The rows that move first need not come before they have moved.
        table.fill(rows.factors, self.problem.sweep_order()[0 if after else 1 :])
        if not table.holds_all(contrast):
            for codes in drawn.values():
                codes[:] = table.places(contrast, codes)
        self._put_behind(of_contrast, foreign)
        self.contrast_weights = self.deals[self._deal_of(contrast)].weights
        if self.problem.weighted:
            self.contrast_weights = np.concatenate([self.contrast_weights, foreign.weights])
        first, last = ranges.own(contrast, self.peers.rank)
        self.contrast_lists = self.backend.group_owned(foreign.draws, first, last - first)
        self._open_state(rows)

    def _own_tuples(self, key: int) -> Codes:
        """The tuples of the cells of one key, without those that come behind them for a sweep."""
        return self.tuples[key][: len(self.deals[key].numbers)]

    def _lay_out(self, draws: Named) -> RowTable:
        """Rows that keep their places from sweep to sweep, and with them the tuples of the worker's own cells."""
        modes, cells = range(len(self.ranges.shape)), list(self.deals.values())
        dealt = [mode for mode in modes if self.ranges.dealt[mode]]
        table = RowTable(self.ranges, self.peers, {k: [deal.codes[:, k] for deal in cells] for k in dealt}, draws)
        for key, deal in self.deals.items():
            tuples = self._own_tuples(key)
            for mode in modes:
                tuples[:, mode] = table.places(mode, deal.codes[:, mode])
            if key != RANGE:  # codes are sent of cells in the range alone
                self.deals[key] = deal._replace(codes=np.zeros((0, len(modes)), np.int32))
        return table

    def _put_behind(self, key: int, foreign: DrawnCells) -> None:
        """The tuples of others' cells, behind those of one key; of the contrast mode they have what is never read."""
        modes, own = len(self.ranges.shape), self._own_tuples(key)
        count = sum(len(part) for part in foreign.codes)
        if len(self.tuples[key]) < len(own) + count:
            self.tuples[key] = np.zeros((len(own) + count + count // SLACK, own.shape[1]), np.int32)
            self._own_tuples(key)[:] = own
        end = len(own)
        for part in foreign.codes:
            behind = self.tuples[key][end : end + len(part)]
            for mode in range(modes):
                if mode != self.problem.config.contrast:
                    behind[:, mode] = self.table.places(mode, part[:, mode])
            end += len(part)
        self.contrast_cells = end

    def _open_state(self, rows: Rows) -> None:
        """The state of a sweep over the rows in the table, and the worker's own labels among them."""
        table, common = self.table, rows.common
        second, first = common.second, common.first
        if rows.first:
            count = int(table.starts[-1]) + 1
            second = np.zeros((count, common.second.shape[1]), common.second.dtype)  # pages are made when written
            first = np.zeros((count, common.first.shape[1]))
            second[-1], first[-1] = common.second[-1], common.first[-1]
            for mode, statistics in rows.first.items():
                here = self._own_rows(mode)
                second[here], first[here] = rows.second[mode], statistics
        targets, self.label_places = [], []
        begin, label_numbers = 0, []
        for target in self.all_targets.targets:
            low, high = self.ranges.own(target.mode, self.peers.rank)
            mine = np.flatnonzero((target.codes >= low) & (target.codes < high))
            codes = table.places(target.mode, target.codes[mine])
            targets.append(Target(target.mode, target.name, target.kind, codes, target.values[mine]))
            self.label_places.append(mine)
            label_numbers.append(begin + mine)
            begin += len(target.codes)
        self.problem = dataclasses.replace(self.all_targets, targets=tuple(targets))
        self.cavities = common.cavities.copy()
        # Of evidence a worker has that of all labels, and of its own in the rows of their entities.
        evidence = np.zeros(int(table.starts[-1]) if len(common.evidence) else 0)
        if len(evidence):
            for t, target in enumerate(targets):
                place = int(table.starts[target.mode]) + target.codes
                evidence[place] = self._evidence_of_labels(common, t)[self.label_places[t]]
        self.label_evidence = common.evidence
        own_labels = np.concatenate([np.zeros(0, np.int64), *label_numbers])
        self.state = State(
            factors=table.rows,
            starts=table.starts,
            component_weights=common.component_weights.copy(),
            shrinkage=common.shrinkage.copy(),
            heads=common.heads.copy(),
            noise=common.noise.copy(),
            cavities=common.cavities[own_labels],
            second=second,
            first=first,
            sweep=common.sweep,
            steps=common.steps,
            evidence=evidence,
            evidence_slopes=common.evidence_slopes.copy(),
        )

    def close(self, state: State) -> Rows:
        """End a sweep: what the worker carries to the next one."""
        table, modes = self.table, range(len(self.ranges.shape))
        factors = {
            k: (table.mode_rows(k)[table.own(k)] if self.ranges.dealt[k] else table.mode_rows(k)).copy() for k in modes
        }
        second: dict[int, Factors] = {}
        first: dict[int, Floats] = {}
        if len(state.first):
            second = {k: state.second[self._own_rows(k)].copy() for k in modes}
            first = {k: state.first[self._own_rows(k)].copy() for k in modes}
        if self.problem.config.learn_lambda:  # balancing lambda has scaled the rows of labels once more
            for target in range(len(self.problem.targets)):
                self.labelled_rows(target)
        common = state.replace(
            factors=np.zeros((0, state.rank), state.factors.dtype),
            cavities=self.cavities,
            second=state.second[-1:].copy(),
            first=state.first[-1:].copy(),
            evidence=self.label_evidence,
        )
        self.contrast_lists = np.zeros(0, np.int64), np.zeros(0, np.int32)  # freed before those of the next sweep
        return Rows(factors, second, first, common)

    def movable(self, mode: int) -> int:
        return self.ranges.shape[mode]

    def sweep(self, mode: int, rule: Rule, rate: float, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
        config = self.problem.config
        if not self.ranges.dealt[mode]:
            self._sweep_together(mode, rule, rate, terms, statistics, cavity)
            return
        blocks = self._blocks(mode)
        blocks = blocks._replace(rate=read_only(np.full(len(blocks.entities), rate)))
        self.backend.sweep_blocks(self._view(mode), blocks, rule, terms, statistics, cavity)
        last = mode == config.contrast
        if not last or config.learn_lambda or config.track_objective or config.heldout:
            self.table.refresh([mode])

    def labelled_rows(self, target: int) -> Floats:
        mine = labelled_rows(self.problem, self.state, target)
        rows = labelled_rows(self.all_targets, self.state.replace(cavities=self.cavities), target)
        for places, received in gather(self.peers, (self.label_places[target], mine)):
            rows[places] = received
        return rows

    def labelled_evidence(self, target: int) -> Floats:
        return self._evidence_of_labels(self.state.replace(evidence=self.label_evidence), target)

    def _evidence_of_labels(self, common: State, target: int) -> Floats:
        begin, end = self.all_targets.label_offsets[target : target + 2]
        return common.evidence[begin:end]

    def lambda_moments(self, rule: Rule) -> tuple[Floats, Floats]:
        view = self._view(RANGE)

        def sums(first: int, last: int) -> Floats:
            gradient, curvature = self.backend.lambda_moments(view, np.arange(first, last, dtype=np.int32), rule)
            return np.concatenate([gradient[None], curvature])

        parts = gather(self.peers, self._nodes_of_range(CHUNK, sums, (self.state.rank + 1, self.state.rank)))
        total = joined(parts, -(-self.ranges.n_cells // CHUNK))
        return total[0], total[1:]

    def likelihoods(self, heldout: bool) -> TreeNodes:
        """Log-likelihoods of cells and negatives, in pieces that begin in this range; ``joined`` adds them up."""
        view, cells = self._view(RANGE), self.deals[RANGE]
        weights = cells.heldout if heldout else cells.weights

        def sums(first: int, last: int) -> Floats:
            part = view._replace(
                tuples=view.tuples[first:last], weights=weights if len(weights) == 1 else weights[first:last]
            )
            return np.array(self.backend.log_likelihood(part))

        return self._nodes_of_range(LIKELIHOOD_PIECE, sums, (2,))

    def review_evidence(self) -> tuple[Numbers, ReviewEvidence]:
        """The numbers of the cells of this worker's contrast entities, and their evidence."""
        contrast = self.problem.config.contrast
        cells = self.deals[self._deal_of(contrast)]
        view, blocks = self._view(contrast), self._blocks(contrast)
        seen = self.backend.leave_one_out(view, blocks, self.problem.rule(contrast))
        own = CellEvidence(*(column[: cells.own] for column in seen))
        weights = cells.weights if len(cells.weights) == 1 else cells.weights[: cells.own]
        return cells.numbers[: cells.own], without_own_pull(own, weights)

    def _nodes_of_range(self, size: int, sums: Any, shape: tuple[int, ...]) -> TreeNodes:
        """Nodes of sums over all cells, in chunks of ``size`` that begin in this worker's range."""
        first, last = (int(c) for c in self.ranges.cells[self.peers.rank : self.peers.rank + 2])
        owner, level, place = whole_nodes(-(-first // size), -(-last // size))
        node_sums = np.zeros((len(owner), *shape))
        for n, (high, p) in enumerate(zip(level, place, strict=True)):
            end = min(((int(p) + 1) << int(high)) * size, self.ranges.n_cells)
            node_sums[n] = sums((int(p) << int(high)) * size - first, end - first)
        return TreeNodes(owner, level, place, node_sums)

    def _sweep_together(
        self, mode: int, rule: Rule, rate: float, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        """Move a mode whose cells lie with everyone: sums to the owners, who step and send the rows to all."""
        chunks, (begins, cells) = self.chunks[mode], self._lists[mode]
        entity, level, place = whole_nodes(-(-chunks.first // CHUNK), -(-chunks.last // CHUNK))
        first = (place << level) * CHUNK
        end = np.minimum(((place + 1) << level) * CHUNK, chunks.length[entity])
        shift = begins[entity] - chunks.first[entity]
        blocks = plan_blocks(mode, entity, (first + shift, end + shift, cells))
        gradient, curvature = self.backend.block_moments(self._view(RANGE), blocks, rule)
        sums = np.concatenate([gradient[:, None], curvature], axis=1)
        cuts = self.ranges.cuts(mode, entity)
        parts = self.peers.exchange(
            [TreeNodes(entity[a:b], level[a:b], place[a:b], sums[a:b]) for a, b in itertools.pairwise(cuts)]
        )
        nodes = TreeNodes(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        low, high = self.ranges.own(mode, self.peers.rank)
        leaves = -(-chunks.length[low:high] // CHUNK)
        total = join_nodes(nodes._replace(owner=nodes.owner - low), leaves)
        none = np.zeros(high - low, np.int64)
        own = plan_blocks(mode, np.arange(low, high), (none, none, cells), rate=np.full(high - low, rate))
        moments = total[:, 0], total[:, 1:]
        self.backend.step_blocks(self._view(RANGE), own, rule, terms, statistics, cavity, moments)
        self.table.spread(mode)

    def _blocks(self, mode: int) -> Blocks:
        """The blocks of the worker's own entities of a dealt mode."""
        offsets, cells = self._lists[mode]
        own = self.table.own(mode)
        drawn = None
        if mode == self.problem.config.contrast and self.problem.config.negatives:
            places, drawn_cells = self.contrast_lists
            drawn = (places[:-1], places[1:], drawn_cells)
        dual = self.ranges.shape[mode] > DUAL_FROM
        lists = (offsets[:-1], offsets[1:], cells)
        return plan_blocks(mode, np.arange(own.start, own.stop), lists, drawn, dual=dual)

    def _view(self, key: int) -> View:
        """The view of the cells of a dealt mode, or of this worker's range."""
        config, table = self.problem.config, self.table
        deal = self._deal_of(key) if key != RANGE else RANGE
        tuples, weights = self.tuples[deal], self.deals[deal].weights
        if key == config.contrast:
            weights, tuples = self.contrast_weights, tuples[: self.contrast_cells]
        else:
            tuples = self._own_tuples(deal)
        starts, rows = table.starts[:-1], int(table.starts[-1])
        return View(tuples, weights, config.contrast, table.rows, starts, rows, self.state.component_weights)

    def _deal_of(self, mode: int) -> int:
        """The key of the cells of a dealt mode."""
        return RANGE if mode == 0 else mode

    def _own_rows(self, mode: int) -> slice:
        own, start = self.table.own(mode), int(self.table.starts[mode])
        return slice(start + own.start, start + own.stop)


def joined(parts: list[TreeNodes], leaves: int) -> Floats:
    """The sum over all cells from the nodes of every worker."""
    nodes = TreeNodes(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    return np.asarray(join_nodes(nodes, [leaves])[0])
