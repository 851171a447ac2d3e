"""Lockstep beyond chance: who acts together more often than popularity and activity explain (model.md, section 6.5).

Actors (reviewers) meet in groups: on the same item, within the same window of weeks, on the same side of the rating
scale. Two who met c times where mu meetings were to be expected have LLR = c log(c / mu) - (c - mu), and more where
they met away from the crowd. A review's score is the sum, over the others in its group, of the LLR of all their *other*
meetings, so that no meeting vouches for itself; there chance knows tastes. High ratings (boosts) and low ones (attacks)
are kept apart.

``meetings`` makes the groups, ``counting`` counts the pairs, ``tastes`` says what tastes explain, ``start`` makes the
start of a fit, ``association`` has labels flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Bools, Codes, Floats, Frozen, packed_json, unpacked_json
from ringleader.errors import SettingsError
from ringleader.kernels.elementary import log, log1p
from ringleader.kernels.protocol import get_backend
from ringleader.runtime.executor import using_threads
from ringleader.runtime.machine import processors
from ringleader.runtime.mapped import in_file, mapped_rows
from ringleader.runtime.peers import Peers, gather
from ringleader.shares.cells import CellShare, as_share, sent_to_owners
from ringleader.shares.rows import HeldRows, elsewhere
from ringleader.signals.lockstep.carried import CountedBefore
from ringleader.signals.lockstep.counting import WantedSide, count_sides
from ringleader.signals.lockstep.meetings import Meetings, chance_to_meet, cuts_on, in_order, meet
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.signals.lockstep.tastes import find_tastes
from ringleader.tensor.roles import Roles, assign_roles, sides
from ringleader.tensor.sparse import SparseTensor

SINGLE = 0.5
"""Weight of a single meeting's LLR in association, against 1 for that of a pair in lockstep."""

TOP = 10
"""Reviews that make up an entity's loudest part."""


class HeldGraph(NamedTuple):
    """The size of a graph whose rows lie with other processes."""

    shape: tuple[int, int]
    nnz: int

    @classmethod
    def of(cls, graph: sparse.csr_array) -> HeldGraph:
        return cls(graph.shape, int(graph.nnz))

    @classmethod
    def joined(cls, parts: Sequence[HeldGraph]) -> HeldGraph:
        """Of all rows, those of some processes each."""
        return cls((sum(part.shape[0] for part in parts), parts[0].shape[1]), sum(part.nnz for part in parts))


@dataclass(frozen=True, eq=False)
class Side(Frozen):
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
class Lockstep(Frozen):
    """Who acts together beyond chance.

    both, boost, attack : the two sides together (LLRs added; a review is on one side at most), and each by itself.
    single : CSR (n_actors, n_groups): who met whom at all, whatever the ratings, with the root of a meeting's weight;
        through it association reaches those who met the known only once.
    groups, skipped_groups, skipped_memberships : groups that counted, and those left out because they were too large,
        with their members; summed over sides, items and phases.
    pull : (n_cells,), log of how strongly the author's taste leads to the item of each review; 0 where unknown.
    crowded_attacks : (n_cells,), the scores of ``attack`` where a meeting in a crowd says as much as any
        (``popularity`` 0). Popular items attract praise; bad ratings that crowd are no less of an attack.
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
    crowded_attacks: Floats

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

    def for_driver(self) -> Lockstep:
        """What a process tells of its part: its direct scores, and the sizes of the rest; cores are found in that."""
        none = np.zeros(0)
        boost, attack = (Side(HeldGraph.of(side.graph), none, none) for side in (self.boost, self.attack))
        both, single = Side(HeldGraph.of(self.both.graph), none, self.both.direct), HeldGraph.of(self.single)
        return replace(self, both=both, boost=boost, attack=attack, single=single, pull=none, crowded_attacks=none)

    def held_arrays(self, peers: Peers) -> dict[str, npt.NDArray[Any]]:
        """Those of ``to_arrays`` that have a number for each cell, pair or meeting, as rows held by this process: one
        behind those of the process before, they are the arrays of all.
        """
        cells = [f"{side}_{what}" for side in ("boost", "attack") for what in ("scores", "direct")]
        arrays = self.to_arrays()
        held = {name: arrays[name] for name in ("pull", "crowded_attacks", *cells)}
        for name, graph in (("single", self.single), ("boost", self.boost.graph), ("attack", self.attack.graph)):
            sizes, kinds = zip(*gather(peers, (int(graph.nnz), graph.indices.dtype.str)), strict=True)
            index = np.result_type(*kinds)
            ends = graph.indptr[1:].astype(np.int64) + sum(sizes[: peers.rank])
            offsets = ends if peers.rank else np.concatenate([[0], ends])
            held |= {f"{name}_data": graph.data, f"{name}_indices": graph.indices.astype(index, copy=False)}
            held[f"{name}_indptr"] = offsets.astype(index)
        return held

    def entity_scores(self, cells: SparseTensor | CellShare, mode: int | str) -> dict[str, Floats]:
        """Mean and top-10 mean of log(1 + score) over the reviews of each entity, (n_k,) each.

        Keys: lockstep_mean, lockstep_top10, and the same with boost_ and attack_ in place of lockstep_. The top-10 mean
        divides by ten also where there are fewer reviews: one high-scoring review does not make a high-scoring entity.

        cells : all, or those held here, as the scores are; then it is of the entities that this process owns.
        """
        home = as_share(cells)
        k, number = home.tensor.mode_index(mode), home.tensor.n_cells
        if len(self.review_scores) != number:
            raise SettingsError(
                f"lockstep has {len(self.review_scores)} cells and the tensor {number}; compute it again"
            )
        scores: dict[str, Floats] = {}
        reviews = np.maximum(home.degrees(k), 1)
        for name, side in (("lockstep", self.both), ("boost", self.boost), ("attack", self.attack)):
            loud = log1p(side.scores)
            scores[f"{name}_mean"] = home.entity_sums(k, loud) / reviews
            scores[f"{name}_top10"] = top_mean(home, loud, k)
        return scores

    def in_files(self) -> Lockstep:
        """The same in temporary files, of which only what is looked at is in memory."""
        both, boost, attack = (
            Side(_graph_in_files(side.graph), in_file(side.scores), in_file(side.direct))
            for side in (self.both, self.boost, self.attack)
        )
        pull, crowded = in_file(self.pull), in_file(self.crowded_attacks)
        single = _graph_in_files(self.single)
        return replace(self, both=both, boost=boost, attack=attack, single=single, pull=pull, crowded_attacks=crowded)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same bits."""
        about = {"settings": asdict(self.settings), "actor": self.actor, "groups": self.groups}
        about |= {"skipped_groups": self.skipped_groups, "skipped_memberships": self.skipped_memberships}
        arrays = {"about": packed_json(about), **_pack("single", self.single)}
        arrays |= {"pull": self.pull, "crowded_attacks": self.crowded_attacks}
        for name, side in (("boost", self.boost), ("attack", self.attack)):
            arrays |= {f"{name}_scores": side.scores, f"{name}_direct": side.direct, **_pack(name, side.graph)}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Lockstep:
        """What ``to_arrays`` gave."""
        about: dict[str, Any] = unpacked_json(arrays["about"])
        items = about["settings"]["items"]
        settings = LockstepSettings(**{**about.pop("settings"), "items": tuple(items) if items else None})
        boost, attack = (
            Side(_unpack(name, arrays), arrays[f"{name}_scores"], arrays[f"{name}_direct"])
            for name in ("boost", "attack")
        )
        sides: dict[str, Any] = {"both": _together(boost, attack), "boost": boost, "attack": attack}
        pull = arrays.get("pull", np.zeros(len(boost.scores)))  # models of before have none
        crowded = arrays.get("crowded_attacks", attack.scores)
        return cls(
            settings=settings, single=_unpack("single", arrays), pull=pull, crowded_attacks=crowded, **sides, **about
        )


def find_sides(cells: SparseTensor | CellShare, actor: int, settings: LockstepSettings) -> tuple[Bools, Bools]:
    """Which of the cells held here are boosts, and which attacks, (n_cells,) each."""
    share = as_share(cells)
    roles = assign_roles(share.tensor, actor, settings.items)
    used = None if roles.side_rating is None else share.used(roles.side_rating)
    return sides(share.tensor, roles, low=settings.low, high=settings.high, used=used)


def find_lockstep(
    cells: SparseTensor | CellShare,
    settings: LockstepSettings | None = None,
    *,
    actor: int | str = 0,
    threads: int | None = None,
    backend: str = "numba",
    before: CountedBefore | None = None,
) -> Lockstep:
    """Find who meets whom, and how far beyond chance.

    Parameters
    ----------
    cells : all, or those that this process holds; then graphs have the rows of the actors that it owns, and scores are
        those of the cells held here.
    actor : the mode whose entities act together.
    threads : by default as many as this process may use; the answer is the same.
    backend : which one counts the pairs; that of a GPU may differ in the last bits.
    before : what was counted of fewer reviews, and is not counted again where it holds; what is counted now is kept
        there. The answer is the same.
    """
    home = as_share(cells)
    settings = LockstepSettings() if settings is None else settings
    k = home.tensor.mode_index(actor)
    threads = processors() if threads is None else threads
    chosen = find_sides(home, k, settings)
    with using_threads(threads):
        tastes = find_tastes(home, k, *chosen, settings)
    unknown = np.ones((home.size(k), 1))
    shares, *drawn = (unknown, unknown, unknown) if tastes is None else (tastes.shares, tastes.boost, tastes.attack)
    wanted = [
        WantedSide(cells, own, settings, name) for name, (cells, own) in enumerate(zip(chosen, drawn, strict=True))
    ]
    if settings.popularity:
        wanted.append(wanted[1]._replace(settings=settings.replace(popularity=0.0), name=2))
    counted = count_sides(home, k, wanted, threads, shares, backend, before if home.alone else None)
    boost, attack = (Side(side.graph, side.scores, side.direct) for side in counted[:2])
    crowded = counted[-1].scores
    groups, skipped, memberships = (int(x) for x in home.count(counted[0].tally + counted[1].tally))
    single = _single_meetings(home, k, settings)
    pull = np.zeros(home.tensor.n_cells) if tastes is None else tastes.pull
    both = _together(boost, attack)
    return Lockstep(settings, k, both, boost, attack, single, groups, skipped, memberships, pull, crowded)


def joined_lockstep(parts: Sequence[Lockstep], cells: int) -> Lockstep:
    """What several processes tell of their parts (``for_driver``), as one; ``cells`` of all, which lie elsewhere."""
    nothing = elsewhere([HeldRows(cells, np.zeros(0))])
    both, boost, attack = (
        Side(HeldGraph.joined([getattr(part, name).graph for part in parts]), nothing, nothing)
        for name in ("both", "boost", "attack")
    )
    both = replace(both, direct=mapped_rows([part.both.direct for part in parts]))
    single = HeldGraph.joined([part.single for part in parts])
    return replace(
        parts[0], both=both, boost=boost, attack=attack, single=single, pull=nothing, crowded_attacks=nothing
    )


def _together(boost: Side, attack: Side) -> Side:
    """The two sides as one: LLRs added; a review is on one side at most."""
    graph = _sorted(sparse.csr_array(boost.graph + attack.graph))
    return Side(graph, boost.scores + attack.scores, boost.direct + attack.direct)


def _pack(name: str, graph: sparse.csr_array | HeldGraph) -> dict[str, npt.NDArray[Any]]:
    shape = np.array(graph.shape, np.int64)
    if isinstance(graph, HeldGraph):
        return {f"{name}_shape": shape}
    parts = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr}
    return {f"{name}_shape": shape, **{f"{name}_{part}": array for part, array in parts.items()}}


def _unpack(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> sparse.csr_array:
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = arrays[f"{name}_shape"].tolist()
    return sparse.csr_array(parts, shape=(rows, columns))


def _graph_in_files(graph: sparse.csr_array) -> sparse.csr_array:
    parts = tuple(map(in_file, (graph.data, graph.indices, graph.indptr)))
    return sparse.csr_array(parts, shape=graph.shape)


def _single_meetings(home: CellShare, actor: int, settings: LockstepSettings) -> sparse.csr_array:
    """Memberships of the first cut without sides; a meeting weighs what it would as the only one of an average pair."""
    n = home.size(actor)
    if not home.n_cells:
        return sparse.csr_array((n, 0))
    item = assign_roles(home.tensor, actor, settings.items).items[0]
    there = home.by(item)
    who, places = there.tensor.coordinates[:, actor], next(cuts_on(there.tensor, actor, item, settings))
    meetings = meet(there, np.ascontiguousarray(who), home.shape[actor], places, settings)
    mine, group, log_rate, groups = _own_memberships(there, actor, meetings)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(mine, minlength=n))]).astype(np.int64)
    seats, chance = chance_to_meet(there, meetings)
    out = home.count(int(np.count_nonzero(np.diff(offsets))))
    mean = seats * np.sqrt(chance) / max(out, 1)  # of how often an actor is out, by window
    mu = max(float((mean * mean).sum()), settings.floor)
    weight = SINGLE * np.maximum(-log(mu) - 0.5 * log_rate - 1.0, 0.0)  # LLR of c = 1, popularity at half
    order = in_order(mine, n)
    return sparse.csr_array((np.sqrt(weight)[order], group[order], offsets), shape=(n, groups))


def _own_memberships(share: CellShare, actor: int, meetings: Meetings) -> tuple[Codes, Codes, Floats, int]:
    """Memberships of the actors owned here, by group: actor from the first one, number of the group among those of all
    processes, and its log rate; and how many groups there are."""
    size = np.diff(meetings.offsets)
    numbers = np.cumsum([0, *gather(share.peers, len(size))])
    group = np.repeat(np.arange(len(size), dtype=np.int32), size)
    columns: tuple[Any, ...] = (meetings.members, group + np.int32(numbers[share.peers.rank]), meetings.log_rate[group])
    if not share.alone:
        columns = sent_to_owners(share.peers, share.bounds[actor], meetings.members, columns)
    return columns[0] - np.int32(share.own(actor)[0]), columns[1], columns[2], int(numbers[-1])


def _sorted(graph: sparse.csr_array) -> sparse.csr_array:
    graph.sort_indices()
    return graph


def top_mean(cells: SparseTensor | CellShare, values: Floats, mode: int) -> Floats:
    """Mean of the ten largest values of each entity, (n_k,), values below 0 as 0; divided by ten also where fewer.

    cells : all, or those held here, as the values are; then it is of the entities that this process owns.
    """
    home = as_share(cells)
    there = home.by(mode)
    return get_backend().top_sums(there.own_codes(mode), home.move(values, there), there.size(mode), TOP) / TOP
