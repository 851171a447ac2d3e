"""Association with the known: labels flow along lockstep (model.md, section 6.6).

q <- (1 - restart) W q + restart z, from the known labels z, where W averages over those an actor acts in lockstep
with; what has flowed in is q - restart z. Nobody's own label is in its own association: the labelled are dealt into
folds, and each takes its association from a flow without the labels of its fold. Folds depend on who is labelled,
never on how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Floats
from ringleader.errors import SettingsError
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

ALONG_PAIRS = 0.5
"""Share of its pairs in an actor's average, where labels flow from entities; the rest is the entities it is tied to."""


class Associations(NamedTuple):
    """Association of the labelled mode's entities, and of the actors, with the known entities."""

    entities: Floats  # (n_k,)
    actors: Floats  # (n_actors,)


def associate(
    lockstep: Lockstep,
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    folds: int = 10,
    seed: int = 0,
    restart: float = 0.15,
    iterations: int = 10,
) -> Floats:
    """How far each actor acts with the known bad (positive) or good (negative), (n_actors,); 0 where nothing is known.

    Parameters
    ----------
    codes, values : labelled actors, each once, and their labels: +1 and -1, or any numbers.
    folds : the labelled are held out in so many parts; at most as many as there are labels.
    """
    labels, fold = _labels(codes, values, lockstep.graph.shape[0], folds, seed, restart, iterations)
    return _read(_flow(averaged_over_pairs(lockstep), labels, restart, iterations), fold)


def averaged_over_pairs(lockstep: Lockstep, prior: float = PRIOR) -> Callable[[Floats], Floats]:
    """W: numbers of actors, (n_actors, m), -> their mean over those that each acts in lockstep with.

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
            flow = flow + single @ (back @ q) - own[:, None] * q
        return flow / ties[:, None]

    return average


def associate_through(
    lockstep: Lockstep,
    tensor: SparseTensor,
    mode: int | str,
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    folds: int = 10,
    seed: int = 0,
    restart: float = 0.15,
    iterations: int = 10,
) -> Associations:
    """The same from labels on another mode, such as sellers: joined by actors who act in lockstep on them.

    An entity is tied to an actor by what log(1 + direct score) of the actor's reviews of it has above WHISPER. Labels
    flow from entities to these actors, among the actors along their pairs, and back to entities.
    """
    k = tensor.mode_index(mode)
    if k == lockstep.actor:
        raise SettingsError(f"{tensor.modes[k]!r} is the mode that acts; use associate for its labels")
    if len(lockstep.review_scores) != tensor.n_cells:
        raise SettingsError(
            f"lockstep has {len(lockstep.review_scores)} cells and the tensor {tensor.n_cells}; find it anew"
        )
    n, n_actors = tensor.shape[k], tensor.shape[lockstep.actor]
    labels, fold = _labels(codes, values, n, folds, seed, restart, iterations)
    where = (tensor.coordinates[:, k], tensor.coordinates[:, lockstep.actor])
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
        return np.concatenate([(ties @ actors) / of_entities, seen])

    known = np.concatenate([labels, np.zeros((n_actors, labels.shape[1]))])
    flow = _flow(average, known, restart, iterations)
    return Associations(_read(flow[:n], fold), _read(flow[n:], np.full(n_actors, -1)))


def associate_shared(
    tensor: SparseTensor,
    mode: int | str,
    other: int | str,
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    folds: int = 10,
    seed: int = 0,
    restart: float = 0.15,
    iterations: int = 20,
) -> Floats:
    """How far each entity of a mode shares counterparts with the known, in lockstep or not, (n_k,).

    Labels spread over the graph of the two modes, each tie divided by the root of the degrees at its two ends.
    """
    k, j = tensor.mode_index(mode), tensor.mode_index(other)
    n, m = tensor.shape[k], tensor.shape[j]
    labels, fold = _labels(codes, values, n, folds, seed, restart, iterations)
    where = (tensor.coordinates[:, k], tensor.coordinates[:, j])
    graph = sparse.csr_array(sparse.coo_array((tensor.counts.astype(np.float64), where), shape=(n, m)))
    ends = [np.sqrt(np.asarray(graph.sum(axis=axis)).reshape(-1) + SHARED_PRIOR) for axis in (1, 0)]
    graph.data /= ends[0][np.repeat(np.arange(n), np.diff(graph.indptr))] * ends[1][graph.indices]
    back = sparse.csr_array(graph.T)

    def average(q: Floats) -> Floats:
        # Two steps at once: from an entity to its counterparts and to theirs.
        return np.asarray((1 - restart) * (graph @ (back @ q)))

    return _read(_flow(average, labels, restart, iterations), fold)


def _labels(
    codes: npt.ArrayLike, values: npt.ArrayLike, n: int, folds: int, seed: int, restart: float, iterations: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """z with the labels of each fold left out in turn, (n, folds), and the fold of each entity or -1."""
    who, given = np.asarray(codes, np.int64).reshape(-1), np.asarray(values, np.float64).reshape(-1)
    if len(who) != len(given):
        raise SettingsError(f"{len(who)} labelled entities, but {len(given)} labels")
    if len(np.unique(who)) != len(who):
        raise SettingsError("an entity is labelled twice; keep one label each")
    if len(who) and not (who.min() >= 0 and who.max() < n):
        raise SettingsError(f"labels name entities from {who.min()} to {who.max()}, but there are {n}")
    if not np.isfinite(given).all():
        raise SettingsError("labels must be finite numbers")
    if folds < 2 or iterations < 1 or not 0 < restart < 1:
        raise SettingsError(
            f"folds is {folds}, iterations {iterations} and restart {restart}; "
            "they must be at least 2, at least 1, and between 0 and 1"
        )
    folds = max(min(folds, len(who)), 1)
    order = np.argsort(who)
    fold = np.full(n, -1, np.int64)
    fold[who[order]] = np.random.default_rng([seed, 0xF01D]).permutation(len(who)) % folds
    labels = np.zeros((n, folds))
    labels[who] = given[:, None]
    labels[who, fold[who]] = 0.0
    return labels, fold


def _flow(average: Callable[[Floats], Floats], labels: Floats, restart: float, iterations: int) -> Floats:
    q = labels
    for _ in range(iterations):
        q = (1 - restart) * average(q) + restart * labels
    return q - restart * labels


def _read(flow: Floats, fold: npt.NDArray[np.int64]) -> Floats:
    """The labelled from the flow without their fold, everyone else from the mean of all: the same number of labels."""
    found: Floats = flow.mean(axis=1)
    labelled = np.flatnonzero(fold >= 0)
    found[labelled] = flow[labelled, fold[labelled]]
    return found


def _capped(lockstep: Lockstep) -> sparse.csr_array:
    pairs = sparse.csr_array(lockstep.graph, copy=True)
    pairs.data = np.minimum(pairs.data, lockstep.settings.cap)
    return pairs
