"""Association with the known: labels flow along lockstep (model.md, section 6.6).

q <- (1 - restart) W q + restart z, from the known labels z, where W averages over those an actor acts in lockstep
with; what has flowed in is q - restart z. Nobody's own label is in its own association: the labelled are dealt into
folds, and each takes its association from a flow without the labels of its fold. Folds depend on who is labelled,
never on how.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Floats, frozen
from ringleader.errors import SettingsError
from ringleader.kernels.elementary import log1p
from ringleader.kernels.tiles import LANES
from ringleader.runtime.executor import Threads
from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.runtime.remembered import Remembered, computed_once
from ringleader.shares.cells import CellShare, as_share
from ringleader.shares.graphs import OwnedGraph, OwnedRows, both_ways, cell_graph, meeting_graph, turned
from ringleader.signals.lockstep.folds import Flow, LabelSet, OwnSpan, hold_out, read_folds
from ringleader.signals.lockstep.pairs import Lockstep
from ringleader.tensor.sparse import SparseTensor

PRIOR = 2.0
"""LLR's worth of not knowing in every average: who has few ties is not sure to be like them."""

ENTITY_PRIOR = 10.0
"""The same in the flow from entities, where ties are in units of log(1 + score)."""

SHARED_PRIOR = 5.0
"""Reviews' worth added to every degree where labels spread without regard to lockstep."""

WHISPER = 1.5
"""log(1 + score) of a review up to which it ties its actor to no entity."""

COLUMN_PIECES = 2
"""Pieces into which the columns of a flow are cut for threads: each goes through the whole graph."""

FLOWS = 24
"""Flows that are remembered, the latest: those of two modes in a head, and in its first round."""

ALONG_PAIRS = 0.5
"""Share of its pairs in an actor's average, where labels flow from entities; the rest is the entities it is tied to."""


class Associations(NamedTuple):
    """Association of the labelled mode's entities, and of the actors, with the known entities."""

    entities: Floats  # (n_k,)
    actors: Floats  # (n_actors,)


Walk = Callable[[Floats], Floats]
"""Numbers of entities, (n, m), -> the average over whom each is tied to, a new array (n, m). No label enters it. Where
several processes share the entities, each gives and gets those that it owns."""


class Ties:
    """The graphs that labels flow along: made of the reviews alone, each laid out once.

    Of several processes each has those of its own entities, and everything below is of these.
    """

    def __init__(self, cells: SparseTensor | CellShare, lockstep: Lockstep) -> None:
        self.share, self.lockstep = as_share(cells), lockstep
        if len(lockstep.review_scores) != self.tensor.n_cells:
            raise SettingsError(
                f"lockstep has {len(lockstep.review_scores)} cells and the tensor {self.tensor.n_cells}; "
                "compute it again"
            )
        self._walks: dict[tuple[Hashable, ...], Remembered[None, Walk]] = {}
        self._graphs: dict[tuple[int, int], OwnedGraph] = {}
        self._flows: dict[tuple[Hashable, ...], Floats] = {}
        self._lock = threading.Lock()

    @property
    def tensor(self) -> SparseTensor:
        """The cells held here."""
        return self.share.tensor

    def partner(self, mode: int) -> int:
        """The mode whose entities those of a mode share: those who act or, for them, the items they meet on."""
        return self.lockstep.roles(self.tensor).partner(mode)

    def pairs(self, prior: float = PRIOR) -> Walk:
        """``averaged_over_pairs`` of the actors."""
        return self._walk(("pairs", prior), lambda: self._pair_graph.averaged(prior))

    @computed_once
    def _pair_graph(self) -> PairGraph:
        return PairGraph(self.lockstep, self.share.peers)

    def entities(self, mode: int) -> Walk:
        """``averaged_over_entities`` of a mode and the actors."""
        return self._walk(("entities", mode), lambda: averaged_over_entities(self.share, self.lockstep, mode))

    def shared(self, mode: int, other: int, restart: float) -> Walk:
        """``averaged_over_shared`` of a mode through another."""
        key = ("shared", mode, other, restart)
        return self._walk(key, lambda: averaged_over_shared(self.share, mode, other, restart))

    def _walk(self, key: tuple[Hashable, ...], make: Callable[[], Walk]) -> Walk:
        with self._lock:
            walk = self._walks.setdefault(key, Remembered())
        return walk.get(None, make)  # flows that begin at the same time lay out each graph once

    def meetings(self, mode: int, other: int) -> OwnedGraph:
        """The graph (n_k, n_other) with 1 where an entity of a mode meets one of the other, however often."""
        if (mode, other) not in self._graphs:
            self._graphs[mode, other] = self._both_ways(mode, other)
        return self._graphs[mode, other]

    def _both_ways(self, mode: int, other: int) -> OwnedGraph:
        bounds = self.share.bounds
        return both_ways(self.share.peers, meeting_graph(self.share, mode, other), bounds[mode], bounds[other])

    def associate(self, sets: Sequence[LabelSet], flow: Flow) -> list[Floats]:
        """``associate`` of several sets of labels of the actors."""
        return self._spread(("pairs", 0, 0), self.pairs(), self._span(self.lockstep.actor), sets, flow)

    def associate_through(self, mode: int, sets: Sequence[LabelSet], flow: Flow) -> list[Associations]:
        """``associate_through`` of several sets of labels of a mode."""
        n, n_actors = self.share.size(mode), self.share.size(self.lockstep.actor)
        spread = self._spread(("entities", mode, 0), self.entities(mode), self._span(mode), sets, flow, more=n_actors)
        return [Associations(both[:n], both[n:]) for both in spread]

    def associate_shared(self, mode: int, other: int, sets: Sequence[LabelSet], flow: Flow) -> list[Floats]:
        """How far each entity of a mode shares counterparts with the known, in lockstep or not, (n_k,), for each set.

        Labels spread over the graph of the two modes, each tie divided by the root of the degrees at its two ends.
        """
        two_steps = flow.replace(iterations=2 * flow.iterations)
        walk = self.shared(mode, other, flow.restart)
        return self._spread(("shared", mode, other), walk, self._span(mode), sets, two_steps)

    def _span(self, mode: int) -> OwnSpan:
        return OwnSpan(*self.share.own(mode), self.share.shape[mode])

    def _spread(
        self,
        kind: tuple[str, int, int],
        walk: Walk,
        own: OwnSpan,
        sets: Sequence[LabelSet],
        flow: Flow,
        *,
        more: int = 0,
    ) -> list[Floats]:
        """``spread_labels``, but for sets that flowed before: a decision on one account leaves other modes' alone."""
        keys = [(*kind, flow, _fingerprint(labels)) for labels in sets]
        with self._lock:  # other threads may forget them meanwhile
            spread = {key: self._flows[key] for key in keys if key in self._flows}
        missing = {key: labels for key, labels in zip(keys, sets, strict=True) if key not in spread}
        flowed = spread_labels(walk, own, list(missing.values()), flow, more=more) if missing else []
        spread.update(zip(missing, map(frozen, flowed), strict=True))
        with self._lock:
            others = [(key, known) for key, known in self._flows.items() if key not in spread]
            self._flows = dict([*others, *((key, spread[key]) for key in keys)][-FLOWS:])
        return [spread[key] for key in keys]


def associate(lockstep: Lockstep, codes: npt.ArrayLike, values: npt.ArrayLike, **flow: Any) -> Floats:
    """How far each actor acts with the known bad (positive) or good (negative), (n_actors,); 0 where nothing is known.

    codes, values : as ``LabelSet``. flow : settings of ``Flow``.
    """
    sets, n = [LabelSet(codes, values)], lockstep.graph.shape[0]
    return spread_labels(averaged_over_pairs(lockstep), OwnSpan(0, n, n), sets, Flow(**flow))[0]


def associate_through(
    lockstep: Lockstep,
    tensor: SparseTensor,
    mode: int | str,
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    **flow: Any,
) -> Associations:
    """The same from labels on another mode, such as sellers: joined by actors who act in lockstep on them."""
    k = tensor.mode_index(mode)
    if k == lockstep.actor:
        raise SettingsError(f"{tensor.modes[k]!r} is the mode that acts; use associate for its labels")
    return Ties(tensor, lockstep).associate_through(k, [LabelSet(codes, values)], Flow(**flow))[0]


def averaged_over_pairs(lockstep: Lockstep, prior: float = PRIOR) -> Walk:
    """W: numbers of actors -> their mean over those that each acts in lockstep with, and ``prior`` LLR's worth of 0."""
    return PairGraph(lockstep, Alone()).averaged(prior)


class PairGraph:
    """Who acts in lockstep with whom; peers : those who have the rows of the other actors."""

    def __init__(self, lockstep: Lockstep, peers: Peers) -> None:
        capped, single = _capped(lockstep), lockstep.single
        counts = gather(peers, len(capped.indptr) - 1)
        actors = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        groups = single.shape[1] * np.arange(peers.count + 1) // peers.count
        self.pairs = OwnedRows(peers, capped, actors)
        self.own = frozen(np.asarray(single.power(2).sum(axis=1)).reshape(-1))
        met = np.zeros(len(self.own))
        self.anybody = any(gather(peers, bool(single.nnz)))
        if self.anybody:
            back, there = turned(peers, single, actors, groups), OwnedRows(peers, single, groups)
            met = there @ np.asarray(back.sum(axis=1)).reshape(-1) - self.own
            # What is large is read in order.
            self.there = OwnedRows(peers, back.T, groups) if peers.count == 1 else there
            self.here = OwnedRows(peers, single.T if peers.count == 1 else back, actors)
        self.ties = frozen(np.asarray(capped.sum(axis=1)).reshape(-1) + met)

    def averaged(self, prior: float) -> Walk:
        """``averaged_over_pairs``"""
        ties = self.ties + prior

        def average(q: Floats) -> Floats:
            flow = self.pairs @ q
            if self.anybody:
                flow += self.there @ (self.here @ q)
                flow -= self.own[:, None] * q
            flow /= ties[:, None]
            return flow

        return average


def averaged_over_entities(share: CellShare, lockstep: Lockstep, mode: int) -> Walk:
    """Numbers of the entities of a mode, then of the actors -> means over those each is tied to.

    An entity is tied to an actor by what log(1 + direct score) of the actor's reviews of it has above WHISPER. Labels
    flow from entities to these actors, among the actors along their pairs, and back to entities.
    """
    n, actor = share.size(mode), lockstep.actor
    loud = np.maximum(log1p(lockstep.both.direct) - WHISPER, 0.0)
    ties = cell_graph(share, mode, actor, loud)
    ties.eliminate_zeros()
    peers, bounds, capped = share.peers, share.bounds, _capped(lockstep)
    back = turned(peers, ties, bounds[mode], bounds[actor])
    of_entities = np.asarray(ties.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR
    of_actors = np.asarray(back.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR
    of_pairs = np.asarray(capped.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR
    pairs, here = OwnedRows(peers, capped, bounds[actor]), OwnedRows(peers, back, bounds[mode])
    there = OwnedRows(peers, back.T if share.alone else ties, bounds[actor])

    def average(q: Floats) -> Floats:
        entities, actors = q[:n], q[n:]
        made = np.empty(q.shape)
        np.divide(there @ actors, of_entities, out=made[:n])
        paired, seen = pairs @ actors, here @ entities
        paired *= ALONG_PAIRS
        paired /= of_pairs
        seen *= 1 - ALONG_PAIRS
        seen /= of_actors
        np.add(seen, paired, out=made[n:])
        return made

    return average


def averaged_over_shared(share: CellShare, mode: int, other: int, restart: float) -> Walk:
    """Numbers of the entities of a mode -> those of whom they share counterparts with: two steps of the graph at once.

    Each of the two steps keeps ``1 - restart`` of what it carries.
    """
    rows = cell_graph(share, mode, other, share.home.tensor.counts.astype(np.float64))
    own = np.sqrt(np.asarray(rows.sum(axis=1)).reshape(-1) + SHARED_PRIOR)
    met = share.lookup(other, rows.indices)
    ends = met.rows(np.sqrt(share.added(other, rows.indices, rows.data) + SHARED_PRIOR))
    rows.data /= np.repeat(own, np.diff(rows.indptr)) * ends[met.places(rows.indices)]
    graph = both_ways(share.peers, rows, share.bounds[mode], share.bounds[other])
    keep = 1 - restart

    def average(q: Floats) -> Floats:
        return np.asarray(keep * graph.through(q))

    return average


def spread_labels(walk: Walk, own: OwnSpan, sets: Sequence[LabelSet], flow: Flow, *, more: int = 0) -> list[Floats]:
    """What has flowed into each entity, (n_own + more,), for each set of labels (``read_folds``).

    more : entities of the walk behind the labelled mode's, none of whom is labelled.
    """
    held = [hold_out(labels, own, flow) for labels in sets]
    size = own.last - own.first + more
    rows = np.unique(np.concatenate([np.zeros(0, np.int64), *(part.places for part in held)]))
    ends = np.cumsum([0, *(part.labels.shape[1] for part in held)])
    known = np.zeros((len(rows), ends[-1]))  # of the others all are zero
    for part, first, last in zip(held, ends, ends[1:], strict=False):
        known[np.searchsorted(rows, part.places), first:last] = part.labels

    def spread(columns: Floats) -> Floats:
        width = columns.shape[1]
        labels = np.zeros((len(rows), -(-width // LANES) * LANES))  # further columns stay zero
        labels[:, :width] = columns
        q, again = np.zeros((size, labels.shape[1])), flow.restart * labels
        q[rows] = labels
        for _ in range(flow.iterations):
            q = walk(q)
            q *= 1 - flow.restart
            q += 0.0  # what the others have again: a zero loses its sign
            q[rows] += again
        q[rows] -= again
        return q[:, :width]

    # No column feels another, so that they may be cut up among threads.
    pieces = np.array_split(known, min(COLUMN_PIECES, Threads().count), axis=1)
    flowed = Threads().map(spread, [part for part in pieces if part.shape[1]])
    whole = flowed[0] if len(flowed) == 1 else np.concatenate([*flowed, np.zeros((size, 0))], axis=1)
    return [
        read_folds(whole[:, first:last], part.folds_of(size))
        for part, first, last in zip(held, ends, ends[1:], strict=False)
    ]


def _fingerprint(labels: LabelSet) -> str:
    digest = hashlib.sha256(np.asarray(labels.codes, np.int64).tobytes())
    digest.update(np.asarray(labels.values, np.float64).tobytes())
    return digest.hexdigest()


def _capped(lockstep: Lockstep) -> sparse.csr_array:
    pairs = sparse.csr_array(lockstep.graph, copy=True)
    pairs.data = np.minimum(pairs.data, lockstep.settings.cap)
    return pairs
