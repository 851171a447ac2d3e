"""Lockstep beyond chance: who acts together more often than popularity and activity explain (model.md, section 6.5).

Actors (reviewers) meet in groups: on the same item, within the same window of weeks, on the same side of the rating
scale. Two who met c times where mu meetings were to be expected have LLR = c log(c / mu) - (c - mu), and more where
they met away from the crowd. A review's score is the sum, over the others in its group, of the LLR of all their *other*
meetings, so that no meeting vouches for itself; there chance knows tastes. High ratings (boosts) and low ones (attacks)
are kept apart.

``meetings`` makes the groups, ``tastes`` says what tastes explain, ``start`` makes the start of a fit, ``association``
has labels flow.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, PairRule
from ringleader.kernels.protocol import get_backend
from ringleader.runtime.executor import Threads, using_threads
from ringleader.runtime.machine import processors
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.lockstep.meetings import cuts, expose, meet
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.signals.lockstep.tastes import find_tastes
from ringleader.tensor.roles import Roles, assign_roles, sides
from ringleader.tensor.sparse import SparseTensor

PIECES = 64
"""Pieces the work is dealt into. The answer does not depend on who takes which, nor on how many there are."""

SINGLE = 0.5
"""Weight of a single meeting's LLR in association, against 1 for that of a pair in lockstep."""

TOP = 10
"""Reviews that make up an entity's loudest part."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Side:
    """Lockstep on one side of the rating scale, or on both together.

    graph : CSR (n_actors, n_actors), symmetric: LLR of every pair that met more often than by chance, not capped. What
        tastes explain is in it: the graph says who goes together, and labels, groups or a fit say what that means.
    scores : (n_cells,), how far the others of its group join each review's actor elsewhere, beyond chance and tastes;
        0 on the other side.
    direct : (n_cells,), the part of it that needs no third party.
    """

    graph: sparse.csr_array
    scores: Floats
    direct: Floats


@dataclass(frozen=True, eq=False)
class Lockstep:
    """Who acts together beyond chance.

    both, boost, attack : the two sides together (LLRs added; a review is on one side at most), and each by itself.
    single : CSR (n_actors, n_groups): who met whom at all, whatever the ratings, with the root of a meeting's weight;
        through it association reaches those who met the known only once.
    groups, skipped_groups, skipped_memberships : groups that counted, and those left out because they were too large,
        with their members; summed over sides, items and phases.
    pull : (n_cells,), log of how far the taste of its author draws each review to its item; 0 where nothing is known.
    """

    settings: LockstepSettings
    actor: int
    both: Side
    boost: Side
    attack: Side
    single: sparse.csr_array
    groups: int
    skipped_groups: int
    skipped_memberships: int
    pull: Floats

    @property
    def graph(self) -> sparse.csr_array:
        """Who acts with whom: LLR of pairs of actors, sparse and symmetric."""
        return self.both.graph

    @property
    def review_scores(self) -> Floats:
        """One number per distinct review: how far the others of its group act in step with its author."""
        return self.both.scores

    def roles(self, tensor: SparseTensor) -> Roles:
        """Who acts on what."""
        return assign_roles(tensor, self.actor, self.settings.items)

    def sides(self, tensor: SparseTensor) -> tuple[Bools, Bools]:
        """Which cells are boosts, and which attacks, (n_cells,) each."""
        return find_sides(tensor, self.actor, self.settings)

    @property
    def n_pairs(self) -> int:
        """How many pairs act in lockstep."""
        return int(self.graph.nnz) // 2

    def entity_scores(self, tensor: SparseTensor, mode: int | str) -> dict[str, Floats]:
        """Mean and top-10 mean of log(1 + score) over the reviews of each entity, (n_k,) each.

        Keys: lockstep_mean, lockstep_top10, and the same with boost_ and attack_ in place of lockstep_. The top-10 mean
        divides by ten also where there are fewer reviews: one loud review does not make a loud entity.
        """
        k = tensor.mode_index(mode)
        if len(self.review_scores) != tensor.n_cells:
            raise SettingsError(
                f"lockstep has {len(self.review_scores)} cells and the tensor {tensor.n_cells}; find it anew"
            )
        codes, size = tensor.coordinates[:, k], tensor.shape[k]
        scores: dict[str, Floats] = {}
        for name, side in (("lockstep", self.both), ("boost", self.boost), ("attack", self.attack)):
            loud = np.log1p(side.scores)
            scores[f"{name}_mean"] = _mean(loud, codes, size)
            scores[f"{name}_top10"] = top_mean(loud, codes, size)
        return scores

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same bits."""
        about = {"settings": asdict(self.settings), "actor": self.actor, "groups": self.groups}
        about |= {"skipped_groups": self.skipped_groups, "skipped_memberships": self.skipped_memberships}
        arrays = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8).copy(), **_pack("single", self.single)}
        arrays["pull"] = self.pull
        for name, side in (("boost", self.boost), ("attack", self.attack)):
            arrays |= {f"{name}_scores": side.scores, f"{name}_direct": side.direct, **_pack(name, side.graph)}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Lockstep:
        """What ``to_arrays`` gave."""
        about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        items = about["settings"]["items"]
        settings = LockstepSettings(**{**about.pop("settings"), "items": tuple(items) if items else None})
        boost, attack = (
            Side(_unpack(name, arrays), arrays[f"{name}_scores"], arrays[f"{name}_direct"])
            for name in ("boost", "attack")
        )
        sides: dict[str, Any] = {"both": _together(boost, attack), "boost": boost, "attack": attack}
        pull = arrays.get("pull", np.zeros(len(boost.scores)))  # models of before have none
        return cls(settings=settings, single=_unpack("single", arrays), pull=pull, **sides, **about)


class SideCount(NamedTuple):
    """One side, and its groups: counted, skipped, members of the skipped."""

    side: Side
    tally: Numbers  # (3,)


def find_sides(cells: SparseTensor | CellShare, actor: int, settings: LockstepSettings) -> tuple[Bools, Bools]:
    """Which of the cells held here are boosts, and which attacks, (n_cells,) each."""
    share = as_share(cells)
    roles = assign_roles(share.tensor, actor, settings.items)
    used = None if roles.side_rating is None else share.used(roles.side_rating)
    return sides(share.tensor, roles, low=settings.low, high=settings.high, used=used)


def find_lockstep(
    tensor: SparseTensor,
    settings: LockstepSettings | None = None,
    *,
    actor: int | str = 0,
    threads: int | None = None,
) -> Lockstep:
    """Find who meets whom, and how far beyond chance.

    Parameters
    ----------
    actor : the mode whose entities act together.
    threads : by default as many as this process may use; the answer is the same.
    """
    settings = LockstepSettings() if settings is None else settings
    k = tensor.mode_index(actor)
    threads = processors() if threads is None else threads
    chosen = find_sides(tensor, k, settings)
    with using_threads(threads):
        tastes = find_tastes(tensor, k, *chosen, settings)
    drawn = (None, None) if tastes is None else (tastes.boost, tastes.attack)
    shares = None if tastes is None else tastes.shares
    boost, attack = (
        _one_side(tensor, k, cells, settings, threads, shares, towards)
        for cells, towards in zip(chosen, drawn, strict=True)
    )
    both = _together(boost.side, attack.side)
    groups, skipped, memberships = (int(x) for x in boost.tally + attack.tally)
    single = _single_meetings(tensor, k, settings)
    pull = np.zeros(tensor.n_cells) if tastes is None else tastes.pull
    return Lockstep(settings, k, both, boost.side, attack.side, single, groups, skipped, memberships, pull)


def _together(boost: Side, attack: Side) -> Side:
    """The two sides as one: LLRs added; a review is on one side at most."""
    graph = _sorted(sparse.csr_array(boost.graph + attack.graph))
    return Side(graph, boost.scores + attack.scores, boost.direct + attack.direct)


def _pack(name: str, graph: sparse.csr_array) -> dict[str, npt.NDArray[Any]]:
    parts = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr}
    shape = np.array(graph.shape, np.int64)
    return {f"{name}_shape": shape, **{f"{name}_{part}": array for part, array in parts.items()}}


def _unpack(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> sparse.csr_array:
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = arrays[f"{name}_shape"].tolist()
    return sparse.csr_array(parts, shape=(rows, columns))


def _one_side(
    tensor: SparseTensor,
    actor: int,
    chosen: Bools,
    settings: LockstepSettings,
    threads: int,
    tastes: Floats | None,
    drawn: Floats | None,
) -> SideCount:
    """The largest LLR and the largest score over all cuts."""
    n = tensor.shape[actor]
    graph = sparse.csr_array((n, n))
    scores, direct = np.zeros(tensor.n_cells), np.zeros(tensor.n_cells)
    tally = np.zeros(3, np.int64)
    cells = np.flatnonzero(chosen)
    who = tensor.coordinates[cells, actor]
    for places in cuts(tensor, actor, settings) if len(cells) else ():
        here = places._replace(items=places.items[cells], windows=places.windows[cells])
        meetings = meet(who, n, here, settings)
        own, support, pairs = _count(meetings.groups, expose(meetings, tastes, drawn), settings, threads)
        where = cells[meetings.cells]
        direct[where] = np.maximum(direct[where], own[meetings.spots])
        scores[where] = np.maximum(scores[where], (own + settings.third_parties * support)[meetings.spots])
        graph = pairs if not graph.nnz else sparse.csr_array(graph.maximum(pairs))
        tally += (len(meetings.windows), meetings.skipped_groups, meetings.skipped_memberships)
    return SideCount(Side(_sorted(graph), scores, direct), tally)


def _count(
    groups: Groups, exposure: Exposure, settings: LockstepSettings, threads: int
) -> tuple[Floats, Floats, sparse.csr_array]:
    """Score and support of every membership, and the LLR of every pair, of one cut."""
    n = len(groups.actor_offsets) - 1
    rule = PairRule(settings.min_shared, settings.floor, settings.doubt)
    scores, lengths = np.zeros(len(groups.members)), np.zeros(n, np.int64)
    size = np.diff(groups.offsets)

    def count(span: tuple[int, int]) -> tuple[Codes, Floats, Floats]:
        return get_backend().lockstep_of_actors(groups, exposure, rule, scores, lengths, span)

    parts = _deal(count, _total(size[groups.actor_groups], groups.actor_offsets), n, threads)
    columns, values, beyond_tastes = (np.concatenate(column) for column in zip(*parts, strict=True))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    graph, ties = (_positive(part, columns, offsets) for part in (values, np.minimum(beyond_tastes, settings.cap)))
    support = np.zeros(len(scores))
    if settings.third_parties > 0 and ties.nnz:
        support = _support(groups, Graph(ties.indptr.astype(np.int64), ties.indices, ties.data), threads)
    return scores, support, _sorted(graph)


def _positive(values: Floats, columns: Codes, offsets: Numbers) -> sparse.csr_array:
    """The pairs whose value is not 0, actors x actors."""
    n = len(offsets) - 1
    graph = sparse.csr_array((values, columns.copy(), offsets.copy()), shape=(n, n))
    graph.eliminate_zeros()
    return graph


def _support(groups: Groups, graph: Graph, threads: int) -> Floats:
    support = np.zeros(len(groups.members))
    degree = np.diff(graph.offsets)

    def add(span: tuple[int, int]) -> None:
        get_backend().support_of_groups(groups, graph, support, span)

    _deal(add, _total(degree[groups.members] + 1, groups.offsets), len(graph.offsets) - 1, threads)
    return support


def _total(cost: Numbers, offsets: Numbers) -> Numbers:
    """Cost of everything up to and with each row of ``offsets``."""
    total: Numbers = np.concatenate([[0], np.cumsum(cost)])[offsets[1:]]
    return total


def _deal(call: Callable[[tuple[int, int]], T], cost: Numbers, room: int, threads: int) -> list[T]:
    """``call`` on ranges of about equal cost that together are everything.

    cost : running total. room : what every call has to clear first, so that small work is not cut up.
    """
    count = len(cost)
    pieces = int(np.clip(cost[-1] // (8 * max(room, 1)), 1, PIECES)) if count else 1
    edges = np.searchsorted(cost, cost[-1] * np.arange(1, pieces) / pieces) if pieces > 1 else np.zeros(0, np.int64)
    spans = [(int(a), int(b)) for a, b in itertools.pairwise(np.unique(np.concatenate([[0], edges, [count]])))]
    if not spans:
        spans = [(0, count)]
    return Threads(threads).map(call, spans)


def _single_meetings(tensor: SparseTensor, actor: int, settings: LockstepSettings) -> sparse.csr_array:
    """Memberships of the first cut without sides; a meeting weighs what it would as the only one of an average pair."""
    n = tensor.shape[actor]
    if not tensor.n_cells:
        return sparse.csr_array((n, 0))
    meetings = meet(tensor.coordinates[:, actor], n, next(cuts(tensor, actor, settings)), settings)
    groups, exposure = meetings.groups, expose(meetings)
    out = np.flatnonzero(np.diff(groups.actor_offsets))
    mean = np.bincount(exposure.slots, weights=exposure.values, minlength=exposure.n_slots) / max(len(out), 1)
    mu = max(float(mean @ mean), settings.floor)
    weight = SINGLE * np.maximum(-math.log(mu) - 0.5 * groups.log_rate - 1.0, 0.0)  # LLR of c = 1, popularity at half
    data = np.sqrt(weight)[groups.actor_groups]
    return sparse.csr_array((data, groups.actor_groups, groups.actor_offsets), shape=(n, len(weight)))


def _sorted(graph: sparse.csr_array) -> sparse.csr_array:
    graph.sort_indices()
    return graph


def _mean(values: Floats, codes: Codes, size: int) -> Floats:
    total = np.bincount(codes, weights=values, minlength=size)
    return np.asarray(total / np.maximum(np.bincount(codes, minlength=size), 1))


def top_mean(values: Floats, codes: Codes, size: int) -> Floats:
    """Mean of the ten largest values of each code, (size,), values below 0 as 0; divided by ten also where fewer."""
    loud = np.flatnonzero(values > 0)
    order = loud[np.argsort(values[loud])[::-1]]
    order = order[get_backend().stable_order(codes[order], size)]
    entity = codes[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(entity, minlength=size))])
    loudest = np.arange(len(order)) - first[entity] < TOP
    return np.asarray(np.bincount(entity[loudest], weights=values[order[loudest]], minlength=size) / TOP)
