"""Where a fit starts: one component for each of the strongest groups in lockstep (model.md, section 6, 3 and 5).

Each process has the pairs of the actors that it owns, and gets their rows; one process owns all.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.tiles import product
from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.shares.graphs import OwnedRows
from ringleader.shares.runs import Runs
from ringleader.signals.lockstep.pairs import Lockstep

POWER_STEPS = 12
"""Power steps for a component, begun at one actor and its counterparts. More only help near-equal groups to mix."""

REFINEMENTS = 20
"""Multiplicative updates of all components together."""

NOTHING = 1e-6
"""Share of the largest value below which a component is nothing."""

QUANTILE = 0.998
EMPTY = 0.05
"""Share of the scale below which all of a component is as good as nothing."""

BASE, SLOPE, MOST = 0.15, 1.5, 2.0
"""row = clip(BASE + SLOPE * component, 0, MOST), with components scaled so that their QUANTILE is 1."""


def start_rows(
    lockstep: Lockstep, rank: int, seed: int = 0, peers: Peers | None = None, begins: Numbers | None = None
) -> Floats | None:
    """Factor rows of the actors to start a fit from, (n_actors, rank), or None where no pair is in lockstep.

    Columns go from the strongest group to the weakest. Columns beyond the groups there are get a little noise (from
    ``seed``) around BASE, so that they can become something else; nothing else is random.

    peers, begins : the processes that own the actors, and where the range of each begins, (P + 1,); lockstep and rows
    are those of this one's.
    """
    peers = Alone() if peers is None else peers
    begins = np.array([0, lockstep.graph.shape[0]]) if begins is None else begins
    parts = components(lockstep, rank, peers, begins)
    if parts is None:
        return None
    largest = np.max(gather(peers, parts.max(axis=0, initial=0.0)), axis=0)
    scale = _quantile(peers, parts, int(begins[-1]) * rank)
    if scale <= 0.0:
        scale = float(largest.max())
    empty = np.flatnonzero(largest < EMPTY * scale)
    rows = parts  # one array for all accounts is enough
    rows *= SLOPE
    rows /= scale
    rows += BASE
    np.clip(rows, 0.0, MOST, out=rows)
    if len(empty):
        generator = np.random.PCG64([seed, 0x10C5])
        generator.advance(int(begins[peers.rank]) * len(empty))  # a number each, in the order of the actors
        rows[:, empty] = np.random.Generator(generator).uniform(0.0, 2.0 * BASE, (len(rows), len(empty)))
    return rows


def _quantile(peers: Peers, values: Floats, count: int) -> float:
    """The QUANTILE of ``count`` numbers, none below 0, of which each process has some.

    Same as: ``np.quantile(all, QUANTILE)``. Only those that are larger travel.
    """
    before = QUANTILE * (count - 1)
    wanted = count - int(before)  # so many from the largest on
    positive = values[values > 0.0]
    if len(positive) > wanted:
        positive = np.partition(positive, len(positive) - wanted)[len(positive) - wanted :]
    largest = np.sort(np.concatenate(gather(peers, positive)))[::-1]
    pair = [float(largest[n]) if 0 <= n < len(largest) else 0.0 for n in (wanted - 1, max(wanted - 2, 0))]
    return float(np.quantile(pair, before - int(before)))


class OwnedPairs:
    """Actors in lockstep with somebody, numbered in their order, as one of the processes that own them sees them.

    graph : CSR (n_own, n), capped LLRs of its own actors with all
    own   : numbers of its own; codes : which of the actors that it owns they are
    """

    def __init__(self, lockstep: Lockstep, peers: Peers, begins: Numbers) -> None:
        graph, self.peers = lockstep.graph, peers
        self.codes = np.flatnonzero(np.diff(graph.indptr))
        every = gather(peers, self.codes + begins[peers.rank])
        self.begins = np.cumsum([0, *map(len, every)])
        self.own = slice(int(self.begins[peers.rank]), int(self.begins[peers.rank + 1]))
        number = np.searchsorted(np.concatenate(every), graph.indices).astype(np.int32)
        llrs = np.minimum(graph.data, lockstep.settings.cap)
        offsets = np.append(graph.indptr[self.codes], graph.nnz)
        self.graph = sparse.csr_array((llrs, number, offsets), shape=(len(self.codes), self.count))
        self.runs = Runs(peers, begins)

    @property
    def count(self) -> int:
        """Actors of all processes."""
        return int(self.begins[-1])

    def whole(self, own: Floats) -> Floats:
        """Numbers of all actors, (n,), from those that each process gives of its own."""
        return np.concatenate(gather(self.peers, own))

    def gram(self, parts: Floats) -> Floats:
        """parts' parts over all processes."""
        return self.runs.products(self.codes, parts, parts)


def components(
    lockstep: Lockstep, rank: int, peers: Peers | None = None, begins: Numbers | None = None
) -> Floats | None:
    """H >= 0, (n_actors, rank), with H H' close to the capped LLRs of the pairs; None where there is no pair.

    Groups are taken off one after another: the actor with most lockstep left, its counterparts, some power steps, then
    what that component explains is taken from its pairs. The leading vector of one group moves little when the data
    do; eigenvectors of all of them at once rotate. Multiplicative updates then fit all components together, with the
    diagonal left out (nobody is in lockstep with themselves). Arguments as ``start_rows``.
    """
    peers = Alone() if peers is None else peers
    begins = np.array([0, lockstep.graph.shape[0]]) if begins is None else begins
    pairs = OwnedPairs(lockstep, peers, begins)
    if not pairs.count or rank < 1:
        return None
    parts = _refine(pairs, _peel(pairs, rank))
    whole = np.zeros((lockstep.graph.shape[0], rank))
    whole[pairs.codes] = parts[:, np.argsort(-np.diag(pairs.gram(parts)), kind="stable")]
    return whole


def _peel(pairs: OwnedPairs, rank: int) -> Floats:
    """One component after another, each from what the ones before it left; of the actors owned here.

    Every process has the numbers of all actors of one component at a time.
    """
    left = pairs.graph.copy()
    row = np.repeat(np.arange(pairs.own.start, pairs.own.stop), np.diff(left.indptr))
    parts = np.zeros((left.shape[0], rank))
    for r in range(rank):
        strength = pairs.whole(np.asarray(left.sum(axis=1)).reshape(-1))
        first = int(np.argmax(strength))
        if strength[first] <= 0.0:
            break
        x = np.zeros(len(strength))
        x[first] = 1.0
        most = max(gather(pairs.peers, float(left.data[row == first].max(initial=0.0))))
        x += pairs.whole(left @ x) / most
        for _ in range(POWER_STEPS):
            x = _unit(x)
            y = pairs.whole(left @ x)
            x = y + 1e-3 * np.sqrt(np.square(y).sum()) * x  # the small shift keeps a group of two from swinging
        x = _unit(x)
        # The best multiple of x x', without its diagonal: 1 - sum(x^4) is its square norm.
        x *= np.sqrt((x * pairs.whole(left @ x)).sum() / (1.0 - np.square(np.square(x)).sum()))
        parts[:, r] = x[pairs.own]
        left.data = np.maximum(left.data - x[row] * x[left.indices], 0.0)
    return parts


def _unit(x: Floats) -> Floats:
    """Length one, with what is next to nothing set to nothing: tiny numbers are slow to multiply."""
    x = np.where(x > NOTHING * x.max(), x, 0.0)
    return np.asarray(x / np.sqrt(np.square(x).sum()))


def _refine(pairs: OwnedPairs, parts: Floats) -> Floats:
    """H <- H (1/2 + 1/2 (A H) / (H H' H)), with the diagonal of A always as H has it."""
    near = OwnedRows(pairs.peers, pairs.graph, pairs.begins)
    parts = parts.copy()
    for _ in range(REFINEMENTS):
        wanted = near @ parts
        wanted += np.square(parts).sum(axis=1, keepdims=True) * parts
        have = product(parts, pairs.gram(parts))
        wanted *= 0.5
        wanted /= np.maximum(have, 1e-12, out=have)
        wanted += 0.5
        parts *= wanted
        del wanted, have
        parts[parts < NOTHING * max(gather(pairs.peers, float(parts.max(initial=0.0))))] = 0.0
    return parts
