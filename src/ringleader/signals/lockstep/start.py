"""Where a fit starts: one component for each of the strongest groups in lockstep (model.md, section 6, 3 and 5)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ringleader.arrays import Floats
from ringleader.kernels.tiles import gram, product
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


def start_rows(lockstep: Lockstep, rank: int, seed: int = 0) -> Floats | None:
    """Factor rows of the actors to start a fit from, (n_actors, rank), or None where no pair is in lockstep.

    Columns go from the strongest group to the weakest. Columns beyond the groups there are get a little noise (from
    ``seed``) around BASE, so that they can become something else; nothing else is random.
    """
    parts = components(lockstep, rank)
    if parts is None:
        return None
    scale = float(np.quantile(parts, QUANTILE))
    if scale <= 0.0:
        scale = float(parts.max())
    empty = np.flatnonzero(parts.max(axis=0) < EMPTY * scale)
    rows = parts  # one array for all accounts is enough
    rows *= SLOPE
    rows /= scale
    rows += BASE
    np.clip(rows, 0.0, MOST, out=rows)
    if len(empty):
        noise = np.random.default_rng([seed, 0x10C5]).uniform(0.0, 2.0 * BASE, (len(rows), len(empty)))
        rows[:, empty] = noise
    return rows


def components(lockstep: Lockstep, rank: int) -> Floats | None:
    """H >= 0, (n_actors, rank), with H H' close to the capped LLRs of the pairs; None where there is no pair.

    Groups are taken off one after another: the actor with most lockstep left, its counterparts, some power steps, then
    what that component explains is taken from its pairs. The leading vector of one group moves little when the data
    do; eigenvectors of all of them at once rotate. Multiplicative updates then fit all components together, with the
    diagonal left out (nobody is in lockstep with themselves).
    """
    graph = lockstep.graph
    active = np.flatnonzero(np.diff(graph.indptr))
    if not len(active) or rank < 1:
        return None
    pairs = sparse.csr_array(graph[active][:, active])
    pairs.data = np.minimum(pairs.data, lockstep.settings.cap)
    parts = _refine(pairs, _peel(pairs, rank))
    parts = parts[:, np.argsort(-np.square(parts).sum(axis=0), kind="stable")]
    whole = np.zeros((graph.shape[0], rank))
    whole[active] = parts
    return whole


def _peel(pairs: sparse.csr_array, rank: int) -> Floats:
    """One component after another, each from what the ones before it left."""
    left = pairs.copy()
    row = np.repeat(np.arange(pairs.shape[0]), np.diff(pairs.indptr))
    parts = np.zeros((pairs.shape[0], rank))
    for r in range(rank):
        strength = np.asarray(left.sum(axis=1)).reshape(-1)
        first = int(np.argmax(strength))
        if strength[first] <= 0.0:
            break
        x = np.zeros(len(strength))
        x[first] = 1.0
        x += (left @ x) / left.data[left.indptr[first] : left.indptr[first + 1]].max()
        for _ in range(POWER_STEPS):
            x = _unit(x)
            y = left @ x
            x = y + 1e-3 * np.sqrt(np.square(y).sum()) * x  # the small shift keeps a group of two from swinging
        x = _unit(x)
        # The best multiple of x x', without its diagonal: 1 - sum(x^4) is its square norm.
        x *= np.sqrt((x * (left @ x)).sum() / (1.0 - np.power(x, 4).sum()))
        parts[:, r] = x
        left.data = np.maximum(left.data - x[row] * x[left.indices], 0.0)
    return parts


def _unit(x: Floats) -> Floats:
    """Length one, with what is next to nothing set to nothing: tiny numbers are slow to multiply."""
    x = np.where(x > NOTHING * x.max(), x, 0.0)
    return np.asarray(x / np.sqrt(np.square(x).sum()))


def _refine(pairs: sparse.csr_array, parts: Floats) -> Floats:
    """H <- H (1/2 + 1/2 (A H) / (H H' H)), with the diagonal of A always as H has it."""
    parts = parts.copy()
    for _ in range(REFINEMENTS):
        own = np.square(parts).sum(axis=1, keepdims=True)
        wanted = pairs @ parts + own * parts
        have = product(parts, gram(parts, np.ones(len(parts))))
        parts *= 0.5 + 0.5 * wanted / np.maximum(have, 1e-12)
        parts[parts < NOTHING * parts.max()] = 0.0
    return parts
