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
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.runtime.executor import Threads
from ringleader.settings import Number, Settings, Whole
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


class LabelSet(NamedTuple):
    """Labelled entities of one mode, each once, and their labels: +1 and -1, or any numbers."""

    codes: npt.ArrayLike
    values: npt.ArrayLike


Walk = Callable[[Floats], Floats]
"""Numbers of entities, (n, m), -> the average over whom each is tied to, a new array (n, m). No label enters it."""


@dataclass(frozen=True)
class Flow(Settings):
    """How labels flow.

    folds : the labelled are held out in so many parts; at most as many as there are labels.
    restart : share of the labels themselves in every step. iterations : steps.
    """

    folds: Annotated[int, Whole(2)] = 10
    seed: Annotated[int, Whole(0)] = 0
    restart: Annotated[float, Number(above=0, below=1)] = 0.15
    iterations: Annotated[int, Whole(1)] = 10


class Ties:
    """The graphs that labels flow along: made of the reviews alone, each laid out once."""

    def __init__(self, tensor: SparseTensor, lockstep: Lockstep) -> None:
        if len(lockstep.review_scores) != tensor.n_cells:
            raise SettingsError(
                f"lockstep has {len(lockstep.review_scores)} cells and the tensor {tensor.n_cells}; find it anew"
            )
        self.tensor, self.lockstep = tensor, lockstep
        self._walks: dict[tuple[str, float, float], Walk] = {}
        self._graphs: dict[tuple[int, int], sparse.csr_array] = {}
        self._flows: dict[tuple[Hashable, ...], tuple[Floats, Numbers]] = {}
        self._lock = threading.Lock()

    def partner(self, mode: int) -> int:
        """The mode whose entities those of a mode share: those who act or, for them, the items they meet on."""
        return self.lockstep.roles(self.tensor).partner(mode)

    def pairs(self, prior: float = PRIOR) -> Walk:
        """``averaged_over_pairs`` of the actors."""
        return self._walk(("pairs", prior, 0), lambda: averaged_over_pairs(self.lockstep, prior))

    def entities(self, mode: int) -> Walk:
        """``averaged_over_entities`` of a mode and the actors."""
        return self._walk(("entities", mode, 0), lambda: averaged_over_entities(self.tensor, self.lockstep, mode))

    def shared(self, mode: int, other: int) -> Walk:
        """``averaged_over_shared`` of a mode through another."""
        return self._walk(("shared", mode, other), lambda: averaged_over_shared(self.tensor, mode, other))

    def _walk(self, key: tuple[str, float, float], make: Callable[[], Walk]) -> Walk:
        if key not in self._walks:
            self._walks[key] = make()
        return self._walks[key]

    def meetings(self, mode: int, other: int) -> sparse.csr_array:
        """CSR (n_k, n_other) with 1 where an entity of a mode meets one of the other, however often."""
        if (mode, other) not in self._graphs:
            self._graphs[mode, other] = meeting_graph(self.tensor, mode, other)
        return self._graphs[mode, other]

    def associate(self, sets: Sequence[LabelSet], flow: Flow) -> list[Floats]:
        """``associate`` of several sets of labels of the actors."""
        n = self.tensor.shape[self.lockstep.actor]
        spread = self._spread(("pairs", 0, 0), self.pairs(), n, sets, flow)
        return [read_folds(q, fold) for q, fold in spread]

    def associate_through(self, mode: int, sets: Sequence[LabelSet], flow: Flow) -> list[Associations]:
        """``associate_through`` of several sets of labels of a mode."""
        n, n_actors = self.tensor.shape[mode], self.tensor.shape[self.lockstep.actor]
        spread = self._spread(("entities", mode, 0), self.entities(mode), n, sets, flow, more=n_actors)
        nobody = np.full(n_actors, -1)
        return [Associations(read_folds(q[:n], fold), read_folds(q[n:], nobody)) for q, fold in spread]

    def associate_shared(self, mode: int, other: int, sets: Sequence[LabelSet], flow: Flow) -> list[Floats]:
        """How far each entity of a mode shares counterparts with the known, in lockstep or not, (n_k,), for each set.

        Labels spread over the graph of the two modes, each tie divided by the root of the degrees at its two ends.
        """
        two_steps = flow.replace(iterations=2 * flow.iterations)
        walk, n = self.shared(mode, other), self.tensor.shape[mode]
        spread = self._spread(("shared", mode, other), walk, n, sets, two_steps)
        return [read_folds(q, fold) for q, fold in spread]

    def _spread(
        self, kind: tuple[str, int, int], walk: Walk, n: int, sets: Sequence[LabelSet], flow: Flow, *, more: int = 0
    ) -> list[tuple[Floats, Numbers]]:
        """``spread_labels``, but for sets that flowed before: a decision on one account leaves other modes' alone."""
        keys = [(*kind, flow, _fingerprint(labels)) for labels in sets]
        missing = {key: labels for key, labels in zip(keys, sets, strict=True) if key not in self._flows}
        flowed = spread_labels(walk, n, list(missing.values()), flow, more=more) if missing else []
        with self._lock:
            known: dict[tuple[Hashable, ...], tuple[Floats, Numbers]] = dict(self._flows)
            known.update(zip(missing, flowed, strict=True))
            latest = [*(key for key in known if key not in keys), *keys][-FLOWS:]
            self._flows = {key: known[key] for key in latest}
        return [known[key] for key in keys]


def associate(lockstep: Lockstep, codes: npt.ArrayLike, values: npt.ArrayLike, **flow: Any) -> Floats:
    """How far each actor acts with the known bad (positive) or good (negative), (n_actors,); 0 where nothing is known.

    codes, values : as ``LabelSet``. flow : settings of ``Flow``.
    """
    sets = [LabelSet(codes, values)]
    spread = spread_labels(averaged_over_pairs(lockstep), lockstep.graph.shape[0], sets, Flow(**flow))
    return read_folds(*spread[0])


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
    """W: numbers of actors -> their mean over those that each acts in lockstep with.

    prior : LLR's worth of 0 in every mean.
    """
    n, pairs = lockstep.graph.shape[0], _capped(lockstep)
    single, back = lockstep.single, sparse.csr_array(lockstep.single.T)
    own = np.asarray(single.power(2).sum(axis=1)).reshape(-1)
    met = single @ np.asarray(back.sum(axis=1)).reshape(-1) - own if single.nnz else np.zeros(n)
    ties = np.asarray(pairs.sum(axis=1)).reshape(-1) + met + prior

    def average(q: Floats) -> Floats:
        flow: Floats = pairs @ q
        if single.nnz:
            flow += back.T @ (single.T @ q)
            flow -= own[:, None] * q
        flow /= ties[:, None]
        return flow

    return average


def averaged_over_entities(tensor: SparseTensor, lockstep: Lockstep, mode: int) -> Walk:
    """Numbers of the entities of a mode, then of the actors -> means over those each is tied to.

    An entity is tied to an actor by what log(1 + direct score) of the actor's reviews of it has above WHISPER. Labels
    flow from entities to these actors, among the actors along their pairs, and back to entities.
    """
    n, n_actors = tensor.shape[mode], tensor.shape[lockstep.actor]
    where = (tensor.coordinates[:, mode], tensor.coordinates[:, lockstep.actor])
    loud = np.maximum(np.log1p(lockstep.both.direct) - WHISPER, 0.0)
    ties = sparse.csr_array(sparse.coo_array((loud, where), shape=(n, n_actors)))
    ties.eliminate_zeros()
    back, pairs = sparse.csr_array(ties.T), _capped(lockstep)
    of_entities = np.asarray(ties.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR
    of_actors = np.asarray(back.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR
    of_pairs = np.asarray(pairs.sum(axis=1)).reshape(-1, 1) + ENTITY_PRIOR

    def average(q: Floats) -> Floats:
        entities, actors = q[:n], q[n:]
        seen = (1 - ALONG_PAIRS) * (back @ entities) / of_actors + ALONG_PAIRS * (pairs @ actors) / of_pairs
        return np.concatenate([(back.T @ actors) / of_entities, seen])

    return average


def averaged_over_shared(tensor: SparseTensor, mode: int, other: int) -> Walk:
    """Numbers of the entities of a mode -> those of whom they share counterparts with: two steps of the graph at once.

    Each of the two steps keeps ``1 - Flow.restart`` of what it carries.
    """
    n, m = tensor.shape[mode], tensor.shape[other]
    where = (tensor.coordinates[:, mode], tensor.coordinates[:, other])
    graph = sparse.csr_array(sparse.coo_array((tensor.counts.astype(np.float64), where), shape=(n, m)))
    ends = [np.sqrt(np.asarray(graph.sum(axis=axis)).reshape(-1) + SHARED_PRIOR) for axis in (1, 0)]
    graph.data /= ends[0][np.repeat(np.arange(n), np.diff(graph.indptr))] * ends[1][graph.indices]
    there, back = two_ways(graph)
    keep = 1 - Flow().restart

    def average(q: Floats) -> Floats:
        return np.asarray(keep * (there @ (back @ q)))

    return average


def two_ways(graph: sparse.csr_array) -> tuple[sparse.sparray, sparse.sparray]:
    """The graph and its transpose, both by the rows of the larger side: that is read in order, and only what is small
    is read out of order. Sums are added in the order in which the rows of each have them.
    """
    if graph.shape[0] >= graph.shape[1]:
        return graph, graph.T
    rows = sparse.csr_array(graph.T)
    return rows.T, rows


def meeting_graph(tensor: SparseTensor, mode: int, other: int, cells: Bools | None = None) -> sparse.csr_array:
    """CSR (n_k, n_other) with 1 where an entity of a mode meets one of the other, however often.

    cells : which of the reviews count, all where None.
    """
    counted = tensor.coordinates if cells is None else tensor.coordinates[cells]
    where = (counted[:, mode], counted[:, other])
    graph = sparse.csr_array(
        sparse.coo_array((np.ones(len(counted)), where), shape=(tensor.shape[mode], tensor.shape[other]))
    )
    graph.data[:] = 1.0
    return graph


def spread_labels(
    walk: Walk, n: int, sets: Sequence[LabelSet], flow: Flow, *, more: int = 0
) -> list[tuple[Floats, Numbers]]:
    """What has flowed in, (n + more, folds), and the fold of each entity or -1, for each set of labels.

    more : entities of the walk behind the labelled mode's, none of whom is labelled.
    """
    held = [_hold_out(labels, n, flow) for labels in sets]
    known = np.concatenate([*(labels for labels, _ in held), np.zeros((n, 0))], axis=1)
    known = np.concatenate([known, np.zeros((more, known.shape[1]))])

    def spread(labels: Floats) -> Floats:
        q, again = labels, flow.restart * labels
        for _ in range(flow.iterations):
            q = walk(q)
            q *= 1 - flow.restart
            q += again
        q -= again
        return q

    # No column feels another, so that they may be cut up among threads.
    columns = [np.ascontiguousarray(part) for part in np.array_split(known, COLUMN_PIECES, axis=1) if part.size]
    flowed = np.concatenate([*Threads().map(spread, columns), np.zeros((len(known), 0))], axis=1)
    ends = np.cumsum([labels.shape[1] for labels, _ in held])[:-1]
    return [(part, fold) for part, (_, fold) in zip(np.split(flowed, ends, axis=1), held, strict=True)]


def _fingerprint(labels: LabelSet) -> str:
    digest = hashlib.sha256(np.asarray(labels.codes, np.int64).tobytes())
    digest.update(np.asarray(labels.values, np.float64).tobytes())
    return digest.hexdigest()


def _hold_out(labels: LabelSet, n: int, flow: Flow) -> tuple[Floats, Numbers]:
    """z with the labels of each fold left out in turn, (n, folds), and the fold of each entity or -1."""
    who, values = np.asarray(labels.codes, np.int64).reshape(-1), np.asarray(labels.values, np.float64).reshape(-1)
    if len(who) != len(values):
        raise SettingsError(f"{len(who)} labelled entities, but {len(values)} labels")
    if len(np.unique(who)) != len(who):
        raise SettingsError("an entity is labelled twice; keep one label each")
    if len(who) and not (who.min() >= 0 and who.max() < n):
        raise SettingsError(f"labels name entities from {who.min()} to {who.max()}, but there are {n}")
    if not np.isfinite(values).all():
        raise SettingsError("labels must be finite numbers")
    folds = max(min(flow.folds, len(who)), 1)
    order = np.argsort(who)
    fold = np.full(n, -1, np.int64)
    fold[who[order]] = np.random.default_rng([flow.seed, 0xF01D]).permutation(len(who)) % folds
    columns = np.zeros((n, folds))
    columns[who] = values[:, None]
    columns[who, fold[who]] = 0.0
    return columns, fold


def read_folds(flow: Floats, fold: Numbers) -> Floats:
    """The labelled from the flow without their fold, everyone else from the mean of all: the same number of labels."""
    values: Floats = flow.mean(axis=1)
    labelled = np.flatnonzero(fold >= 0)
    values[labelled] = flow[labelled, fold[labelled]]
    return values


def _capped(lockstep: Lockstep) -> sparse.csr_array:
    pairs = sparse.csr_array(lockstep.graph, copy=True)
    pairs.data = np.minimum(pairs.data, lockstep.settings.cap)
    return pairs
