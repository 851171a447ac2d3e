"""A learner on workers: the sweeps of a fit on a cluster, with the bits of one process.

The driver deals cells and rows out, and collects the rows after every sweep. A worker that is lost costs one sweep: new
workers get the cells and the rows from before it, and do it again.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ringleader.arrays import Floats, Numbers
from ringleader.errors import SettingsError, WorkerLost
from ringleader.kernels.layout import LIKELIHOOD_PIECE
from ringleader.kernels.protocol import get_backend
from ringleader.kernels.tree import TreeNodes
from ringleader.known.labels import Target
from ringleader.learners.passes import Move, Touched, move_share, read_evidence
from ringleader.model.config import ModelConfig
from ringleader.model.evidence import ReviewEvidence
from ringleader.model.negatives import negative_pool
from ringleader.model.priors import labelled_evidence
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.runtime.mapped import copy_rows, mapped_array, mapped_rows
from ringleader.runtime.peers import Peers
from ringleader.runtime.remembered import Remembered
from ringleader.runtime.workers import Workers, repeat
from ringleader.shares import Deal, Part, Ranges, cut_ranges, deal_cells
from ringleader.shares.deal import ChunkPlaces, chunk_places, deal_keys, joined_deals
from ringleader.shares.part import Rows, joined
from ringleader.shares.rows import CARRIED, send_arrays, write_state
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

ONLY_HERE = ("gibbs",)
"""Learners that run in one process only."""

T = TypeVar("T")


class SweepResult(NamedTuple):
    """What a worker tells the driver of a sweep: what it carries, and nodes of likelihoods, where they are wanted."""

    rows: Rows
    training: TreeNodes | None
    heldout: TreeNodes | None


class ClusterLearner:
    """A ``Learner`` whose sweeps run on workers."""

    def __init__(self, workers: Workers, learner: Any, dealt_from: int | None = None) -> None:
        """learner : the one whose moves the workers make. dealt_from : as in ``cut_ranges``."""
        self.name: str = learner.name
        self.workers, self.learner, self.dealt_from = workers, learner, dealt_from
        self._dealt: Problem | None = None
        self._held: State | None = None
        self._restarts = workers.restarts
        self._likelihoods = (float("nan"), float("nan"))

    def sweep(self, problem: Problem, state: State, touched: Touched | None = None) -> State:
        """One pass over the data on the workers; the state is collected from them."""
        if touched is not None:
            raise SettingsError("a cluster updates all entities; add new reviews with one process")
        check_cluster(problem.config)
        moved = self._again(lambda: self._sweep(problem, state), f"sweep {state.sweep + 1}")
        return read_evidence(problem, moved, self.learner.complete_move(problem.config, state.steps), self.evidence)

    def evidence(self, problem: Problem, state: State) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every cell, found by the workers."""
        return self._again(lambda: self._evidence(problem, state), "the evidence of the reviews")

    def _again(self, work: Callable[[], T], what: str) -> T:
        """What the workers do, done again by new ones where some are lost."""
        return repeat(self.workers, work, self._forget, f"do {what}", f"{what} was tried")

    def _forget(self) -> None:
        """New workers hold nothing."""
        self._dealt = self._held = None

    def _evidence(self, problem: Problem, state: State) -> ReviewEvidence:
        self._hold(problem, state)
        evidence = ReviewEvidence(*(np.empty(problem.tensor.n_cells) for _ in ReviewEvidence._fields))
        for numbers, part in self.workers.run(_evidence_of_part, [()] * self.workers.count):
            for whole, column in zip(evidence, part, strict=True):
                whole[numbers] = column
        return evidence

    def keep_evidence(self, problem: Problem, state: State, edges: Sequence[int]) -> None:
        """The same, which stays with the workers: each has that of cells ``edges[p]`` to below ``edges[p + 1]``.

        A worker that is lost is for the caller to replace.
        """
        self._hold(problem, state)
        self.workers.run(_keep_evidence, [(list(edges),)] * self.workers.count)

    def release(self) -> None:
        """Give back the memory of the workers."""
        self._forget()
        with suppress(WorkerLost):  # whoever needs the workers next starts new ones
            self.workers.run(_release_part, [()] * self.workers.count)

    def likelihoods(self, problem: Problem, state: State) -> tuple[float, float]:
        """Those of the sweep that was made last: training, and held out per held-out cell; NaN where not asked for."""
        return self._likelihoods

    def holds(self, state: State) -> bool:
        """Whether the workers have the rows of a state."""
        return self._held is state and self._restarts == self.workers.restarts

    def write_rows(
        self,
        state: State,
        spans: Sequence[Mapping[str, tuple[int, int]]],
        write: Callable[[int, Mapping[str, Any]], Any],
    ) -> list[Any]:
        """The arrays of a state in pieces, each written by a worker that has much of it; what ``write`` returned.

        spans : by piece, the rows [low, high) of each array that it has. write : of the number and the arrays of a
        piece; it runs in the worker. ``state`` is one that the workers hold.
        """
        common = {name: array for name, array in state.to_arrays().items() if name not in CARRIED}
        edges = [int(edge) for edge in state.starts]
        writers = [self._nearest(edges, span) for span in spans]
        parts = [{name: common[name][low:high] for name, (low, high) in s.items() if name in common} for s in spans]
        tasks = [
            (edges, spans, writers, [part if writers[n] == rank else {} for n, part in enumerate(parts)], write)
            for rank in range(self.workers.count)
        ]
        results: list[dict[int, Any]] = self.workers.run(write_state, tasks)
        written = {number: result for pieces in results for number, result in pieces.items()}
        return [written[number] for number in range(len(spans))]

    def _nearest(self, edges: list[int], span: Mapping[str, tuple[int, int]]) -> int:
        """The worker that owns the entity in the middle of a piece."""
        low, high = next((span[name] for name in CARRIED if name in span), (0, 0))
        row = min((low + high) // 2, edges[-1] - 1)
        mode = int(np.searchsorted(edges, row, side="right")) - 1
        owners = range(self.workers.count)
        return next((rank for rank in owners if row - edges[mode] < self.ranges.own(mode, rank)[1]), 0)

    def _sweep(self, problem: Problem, state: State) -> State:
        count = self.workers.count
        self._hold(problem, state)
        move = self.learner.complete_move(problem.config, state.steps)
        results: list[SweepResult] = self.workers.run(_sweep_part, [(move,)] * count)
        moved = self._collected(state, [result.rows for result in results])
        pieces = -(-self.ranges.n_cells // LIKELIHOOD_PIECE)
        training = [r.training for r in results if r.training is not None]
        heldout = [r.heldout for r in results if r.heldout is not None]
        self._likelihoods = (
            float(np.sum(joined(training, pieces))) if training else float("nan"),
            float(np.sum(joined(heldout, pieces))) / float(problem.heldout.sum()) if heldout else float("nan"),
        )
        self._held = moved
        return moved

    def _hold(self, problem: Problem, state: State) -> None:
        """Have the workers hold the cells of a problem and the rows of a state."""
        if self._restarts != self.workers.restarts:  # others who use them lost some
            self._forget()
        self._restarts = self.workers.restarts
        if self._dealt is not problem:
            self._deal(problem)
        if self._held is not state:
            rows = [self._rows(state, rank) for rank in range(self.workers.count)]
            carried = [{(n, mode): part for n in CARRIED for mode, part in getattr(own, n).items()} for own in rows]
            send_arrays(self.workers, "rows", carried)
            self.workers.run(_hold_rows, [(own.common,) for own in rows])
            self._held = state

    def _deal(self, problem: Problem) -> None:
        self.ranges = cut_ranges(problem.tensor, problem.config, self.workers.count, self.dealt_from)
        pool = mapped_rows([negative_pool(problem, problem.tensor.coordinates)])
        config = dataclasses.replace(problem.config, threads=self.workers.threads)
        chunks = chunk_places(problem, self.ranges)
        send_arrays(self.workers, "pool", [{"pool": pool}] * self.workers.count)
        self.workers.run(_open_part, [(self.ranges, config, problem.targets, own) for own in chunks])
        alike = None if problem.weighted else problem.weights
        for key in deal_keys(self.ranges):
            for deals in deal_cells(problem, self.ranges, key, chunks):
                self.workers.run(_take_cells, [(deal,) for deal in deals])
            self.workers.run(_hold_cells, [(key, alike)] * self.workers.count)
        self._dealt = problem

    def _rows(self, state: State, rank: int) -> Rows:
        """What a worker carries of a state."""
        factors, second, first = {}, {}, {}
        for mode in range(state.modes):
            rows = state.rows(mode)
            low, high = self.ranges.own(mode, rank)
            factors[mode] = rows[low:high] if self.ranges.dealt[mode] else rows
            if len(state.first):
                begin = int(state.starts[mode])
                second[mode] = state.second[begin + low : begin + high]
                first[mode] = state.first[begin + low : begin + high]
        common = state.replace(
            factors=np.zeros((0, state.rank), state.factors.dtype),
            second=state.second[-1:],
            first=state.first[-1:],
            evidence=self._label_evidence(state),
        )
        return Rows(factors, second, first, common)

    def _label_evidence(self, state: State) -> Floats:
        """The evidence of the labelled entities, target by target; empty where no head reads it."""
        if not len(state.evidence) or self._dealt is None:
            return np.zeros(0)
        by_target = [labelled_evidence(self._dealt, state, target) for target in range(len(self._dealt.targets))]
        return np.concatenate([np.zeros(0), *by_target])

    def _collected(self, before: State, parts: list[Rows]) -> State:
        """The state of all workers together, with arrays of its own; its rows are in temporary files."""
        common = parts[0].common
        factors, second, first = (mapped_array(getattr(before, n).shape, getattr(before, n).dtype) for n in CARRIED)
        for mode in range(before.modes):
            begin = int(before.starts[mode])
            for rank, part in enumerate(parts):
                low, high = self.ranges.own(mode, rank)
                mine = part.factors[mode]
                own = slice(begin + low, begin + high)
                copy_rows(mine if self.ranges.dealt[mode] else mine[low:high], factors[own])
                if len(before.first):
                    copy_rows(part.second[mode], second[own])
                    copy_rows(part.first[mode], first[own])
        if len(before.first):
            second[-1:], first[-1:] = common.second, common.first
        copies = {
            name: np.array(getattr(common, name))
            for name in ("component_weights", "shrinkage", "heads", "noise", "cavities", "evidence_slopes")
        }
        return before.replace(
            factors=factors, second=second, first=first, **copies, sweep=common.sweep, steps=common.steps
        )


def check_cluster(config: ModelConfig) -> None:
    """Refuse what only one process can do yet, by its name."""
    if config.learner in ONLY_HERE:
        raise SettingsError(f"the learner {config.learner} runs in one process only; leave out --ray")
    if config.batch_size:
        raise SettingsError(
            f"steps on batches of {config.batch_size} cells (learner {config.learner}) run in one process only; "
            "leave out --ray, or choose another preset or learner (settings={'batch_size': 0} in Python)"
        )
    if config.backend != "numba":
        raise SettingsError(f"the backend {config.backend} runs in one process only; a cluster needs numba")


def _open_part(
    memory: dict[str, Any],
    peers: Peers,
    ranges: Ranges,
    config: ModelConfig,
    targets: tuple[Target, ...],
    chunks: dict[int, ChunkPlaces],
) -> None:
    """In a worker: begin a fit. What negatives are drawn from came before."""
    names = [f"mode{k}" for k in range(len(ranges.shape))]
    empty = tuple(Vocabulary(name, "id", pa.array([], pa.large_string())) for name in names)
    none = np.zeros((0, len(names)), np.int32)
    problem = Problem(
        tensor=SparseTensor(none, np.zeros(0, np.int64), empty),
        targets=targets,
        config=config,
        start_rows={},
        weights=np.ones(1),
        heldout=np.zeros(0),
        starts=np.zeros(len(names), np.int64),
        fixed_negatives=None,
        backend=get_backend(config.backend, config.threads),
        plans=Remembered(),
        draws=Remembered(1),
    )
    memory["part"] = Part(peers, ranges, problem, memory.pop("pool")["pool"], chunks)


def _take_cells(memory: dict[str, Any], peers: Peers, cells: Deal) -> None:
    """In a worker: take some cells. They are copied out of the memory in which they came, which is small."""
    arrays = {name: np.array(value) for name, value in cells._asdict().items() if name != "own"}
    memory.setdefault("dealt", []).append(Deal(own=cells.own, **arrays))


def _hold_cells(memory: dict[str, Any], peers: Peers, key: int, weights: Floats | None) -> None:
    """In a worker: hold the cells that were taken. weights : (1,) where all weigh alike"""
    memory["part"].hold(key, joined_deals(memory.pop("dealt"), weights))


def _hold_rows(memory: dict[str, Any], peers: Peers, common: State) -> None:
    """In a worker: hold the rows to start from, which came before, by their array and mode."""
    sent = memory.pop("rows")
    factors, second, first = ({mode: part for (n, mode), part in sent.items() if n == name} for name in CARRIED)
    memory["part"].rows = Rows(factors, second, first, common.copy())


def _sweep_part(memory: dict[str, Any], peers: Peers, move: Move) -> SweepResult:
    """In a worker: one sweep."""
    part: Part = memory["part"]
    part.peers = peers
    config = part.problem.config
    assert part.rows is not None  # the driver has sent them
    part.open(part.rows)
    state = move_share(part, move)
    training = part.likelihoods(heldout=False) if config.track_objective else None
    heldout = part.likelihoods(heldout=True) if config.heldout else None
    part.rows = part.close(state)
    return SweepResult(part.rows, training, heldout)


def _evidence_of_part(memory: dict[str, Any], peers: Peers) -> tuple[Numbers, ReviewEvidence]:
    """In a worker: the numbers of its cells, and their evidence."""
    part: Part = memory["part"]
    part.peers = peers
    assert part.rows is not None  # the driver has sent them
    part.open(part.rows, after=True)
    evidence = part.review_evidence()
    part.close(part.state)
    return evidence


def _keep_evidence(memory: dict[str, Any], peers: Peers, edges: list[int]) -> None:
    """In a worker: find evidence, and keep that of its range of cells."""
    numbers, evidence = _evidence_of_part(memory, peers)
    cuts = np.searchsorted(numbers, edges)
    letters = [(numbers[a:b], *(column[a:b] for column in evidence)) for a, b in itertools.pairwise(cuts)]
    first, last = edges[peers.rank], edges[peers.rank + 1]
    own = ReviewEvidence(*(np.empty(last - first) for _ in evidence))
    for places, *columns in peers.exchange(letters):
        for mine, column in zip(own, columns, strict=True):
            mine[places - first] = column
    memory["evidence"] = own


def _release_part(memory: dict[str, Any], peers: Peers) -> None:
    """In a worker: forget the cells and rows of the sweeps."""
    memory.pop("part", None)
