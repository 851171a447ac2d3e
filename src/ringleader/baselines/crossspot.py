"""CrossSpot: the most suspicious blocks by local search (Jiang, Beutel, Cui, Hooi, Yang, Faloutsos 2015).

From a seed block, each mode in turn is solved exactly with the others held: its entities are sorted by their mass in
the block and the prefix of highest suspiciousness is taken. Suspiciousness never falls, so the search ends. The best
of many seeds are reported. A block no denser than the tensor has suspiciousness 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.baselines.blocks import Member, block_scores, most_suspicious, occurring_entities, searched_tensor
from ringleader.baselines.crossspot_kernels import masses_within
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed, random_generator
from ringleader.baselines.searched import Searched
from ringleader.settings import Choice, Constraint, Whole
from ringleader.tensor.sparse import SparseTensor


class CrossSpot(Baseline):
    """Suspicious blocks by alternating local search.

    Parameters
    ----------
    n_blocks : how many of the best distinct blocks to keep.
    n_seeds : local searches.
    seeding : "entity" starts from what one random entity touches, "random" from random halves of each mode.
    max_sweeps : most rounds over the modes per search.

    Attributes
    ----------
    blocks_ : list of DenseBlock, most suspicious first.
    histories_ : for each seed the suspiciousness after each change.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "n_blocks": Whole(1),
        "n_seeds": Whole(1),
        "seeding": Choice("entity", "random"),
        "max_sweeps": Whole(1),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        n_blocks: int = 5,
        n_seeds: int = 40,
        seeding: str = "entity",
        max_sweeps: int = 50,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.n_blocks = n_blocks
        self.n_seeds = n_seeds
        self.seeding = seeding
        self.max_sweeps = max_sweeps
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        searched, order = searched_tensor(tensor, None)
        self.histories_: list[list[float]] = []
        self.blocks_ = most_suspicious(searched, order, self._searches(searched, callback), self.n_blocks)

    def _searches(self, searched: Searched, callback: Callback) -> Iterator[tuple[float, Member]]:
        """The suspiciousness and the members that each seed ends at."""
        generator = random_generator(self.random_state)
        best = 0.0
        for seed in range(1, self.n_seeds + 1):
            member = (entity_seed if self.seeding == "entity" else random_seed)(searched, generator)
            history = alternate(searched, member, self.max_sweeps)
            self.histories_.append(history)
            best = max(best, history[-1])
            callback(Progress(seed, self.n_seeds, best))
            yield history[-1], member

    def _scores(self, k: int) -> Floats:
        return block_scores(self.blocks_, k, self.shape_[k])


def entity_seed(searched: Searched, generator: np.random.Generator) -> Member:
    """A random entity of a random review, with everything it touches in the other modes."""
    modes = searched.coordinates.shape[1]
    cell = int(generator.integers(len(searched.counts)))
    mode = int(generator.integers(modes))
    entity = searched.starts[mode] + searched.coordinates[cell, mode]
    cells = searched.grouped[searched.bounds[entity] : searched.bounds[entity + 1]]
    member = np.zeros(searched.starts[-1], np.uint8)
    for k in range(modes):
        member[searched.starts[k] + searched.coordinates[cells, k]] = 1
    return member


def random_seed(searched: Searched, generator: np.random.Generator) -> Member:
    """Each entity with probability one half, and at least those of one review."""
    member: Member = (generator.random(searched.starts[-1]) < 0.5).astype(np.uint8)
    cell = int(generator.integers(len(searched.counts)))
    member[searched.starts[:-1] + searched.coordinates[cell]] = 1
    return member


def alternate(searched: Searched, member: Member, max_sweeps: int) -> list[float]:
    """Improve a block, in place, one mode after the other. Returns its suspiciousness after each change."""
    modes = searched.coordinates.shape[1]
    history = [0.0]
    unchanged = 0
    for _, k in itertools.product(range(max_sweeps), range(modes)):
        chosen, value = best_prefix(searched, member, k)
        if value > history[-1] * (1.0 + 1e-12):
            member[searched.starts[k] : searched.starts[k + 1]] = 0
            member[searched.starts[k] + chosen] = 1
            history.append(value)
            unchanged = 0
        else:
            unchanged += 1
        if unchanged == modes:
            break
    return history


def best_prefix(searched: Searched, member: Member, k: int) -> tuple[Numbers, float]:
    """The entities of mode k that make the block most suspicious with its other modes held, and how suspicious."""
    starts = searched.starts
    degrees = np.diff(searched.bounds)
    sizes = [int(member[a:b].sum()) for a, b in itertools.pairwise(starts)]
    work = [int(degrees[a:b][member[a:b] == 1].sum()) for a, b in itertools.pairwise(starts)]
    anchor = min((m for m in range(len(sizes)) if m != k), key=lambda m: work[m])
    mass = masses_within(searched, member, k, anchor)
    entities = np.flatnonzero(mass)
    if len(entities) == 0:
        return entities, 0.0
    entities = entities[np.argsort(-mass[entities], kind="stable")]
    inside = np.cumsum(mass[entities]).astype(np.float64)
    shape = occurring_entities(searched)
    total = float(searched.counts.sum())
    rest = sum(math.log(sizes[m] / shape[m]) for m in range(len(sizes)) if m != k)
    spread = rest + np.log(np.arange(1, len(entities) + 1) / shape[k])
    expected = total * np.exp(spread)
    values = inside * (np.log(inside / total) - 1.0) + expected - inside * spread
    values[inside <= expected] = 0.0
    best = int(np.argmax(values))
    return entities[: best + 1], float(values[best])
