"""Cores: sellers, products and reviewers who act in lockstep, when, and in which reviews.

``cores_board`` lays the reviews out as actors x places (an item in a window), ``cores_search`` finds blocks that hold
far more of them than chance deals there, ``cores_significance`` says how surprising they are, ``cores_files`` writes
them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from threadpoolctl import threadpool_limits

from ringleader.cores_board import Board, Rows, boards, contains, taken
from ringleader.cores_files import frame, members_frame, reviews_frame, write_blocks
from ringleader.cores_search import SURE, Limits, Wide, combine, join, search, widen
from ringleader.cores_significance import agree, taste
from ringleader.errors import SettingsError
from ringleader.kernels.pairs import Floats, Numbers
from ringleader.lockstep import Lockstep
from ringleader.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Core", "CoreSettings", "Cores", "Members", "find_cores", "write_blocks"]

SIDES = ("boost", "attack", "both")
UNTIMED = (
    "the reviews have no times, so people of one taste look like people in lockstep: log10_p speaks of chance alone, "
    "and groups may be communities"
)
SAME = 0.7
"""Part of its people in a stronger core from which a core is a part of that one."""


@dataclass(frozen=True)
class CoreSettings:
    """What a core must be, and where to look.

    significance : largest chance, over the whole market, that a market without lockstep shows any such core.
    min_reviewers : least number of actors in a core.
    min_places : least number of places (an item in a window) in which they meet.
    min_reviews : reviews that a place needs.
    max_seeds : places from which the search begins, the loudest first, on each side and for each mode they meet on.
    """

    significance: float = 0.01
    min_reviewers: int = 3
    min_places: int = 2
    min_reviews: int = 3
    max_seeds: int = 5_000

    def __post_init__(self) -> None:
        value = self.significance
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            raise SettingsError(f"significance is {value!r}; it must be a number between 0 and 1")
        for name, least in (("min_reviewers", 2), ("min_places", 2), ("min_reviews", 2), ("max_seeds", 1)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
                raise SettingsError(f"{name} is {number!r}; it must be a whole number of at least {least}")


class Members(NamedTuple):
    """Members of a core in one mode: codes ascending, and the probability that each belongs."""

    codes: Numbers
    strength: Floats


@dataclass(frozen=True, eq=False)
class Core:
    """A group in lockstep.

    number : from 1, the most significant first.
    members : by name of the mode: reviewers and, where there are such modes, products and sellers.
    window : codes of the first and the last time of its reviews; None without times.
    ratings : codes of the lowest and the highest rating of its reviews; None without ratings.
    side : "boost" (high ratings), "attack" (low ones), or "both" where there are no ratings.
    cells : the reviews, as numbers of cells of the tensor, ascending.
    density : reviews per reviewer and place. A place is an item (a seller, or a product) in one window of weeks.
    expected : the same, as the members' activity in each window, the popularity of each place and the share of such
        ratings predict it.
    log10_p : log of a bound on the chance that a market without lockstep shows any core like this anywhere. Honest
        towards chance: valid for a market whose reviewers are dealt anew within each window, whichever of all possible
        groups the search came upon (a weighted Bonferroni correction over all sets of actors and of places, and over
        sides and modes). Towards shared taste it is as strict as the items' other customers tell: the larger of the
        two stands. It says nothing about honest groups who do act together in the same weeks.
    score : what cores are ranked by, -log10_p.
    agreement : part of the members' reviews at these places that are on this side of the rating scale.
    """

    number: int
    members: dict[str, Members]
    window: tuple[int, int] | None
    ratings: tuple[int, int] | None
    side: str
    cells: Numbers
    density: float
    expected: float
    log10_p: float
    score: float
    agreement: float


@dataclass(frozen=True, eq=False)
class Cores(Sequence[Core]):
    """Cores, the most significant first."""

    found: tuple[Core, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Core]:
        return iter(self.found)

    @overload
    def __getitem__(self, at: int) -> Core: ...
    @overload
    def __getitem__(self, at: slice) -> Cores: ...
    def __getitem__(self, at: int | slice) -> Core | Cores:
        return Cores(self.found[at]) if isinstance(at, slice) else self.found[at]

    def of(self, mode: str, code: int) -> tuple[Core, ...]:
        """The cores an entity is in."""
        return tuple(core for core in self.found if mode in core.members and code in core.members[mode].codes)

    @property
    def doubt(self) -> str:
        """What their significance does not say; empty where it says all it should."""
        return UNTIMED if any(core.window is None for core in self.found) else ""

    def frame(self, tensor: SparseTensor) -> pd.DataFrame:
        """One row per core: core, side, how many of each mode, reviews, first, last, rating and its numbers."""
        return frame(self.found, tensor)

    def members_frame(self, tensor: SparseTensor) -> pd.DataFrame:
        """One row per member: core, mode, entity, strength, reviews; surest first."""
        return members_frame(self.found, tensor)

    def reviews_frame(self, tensor: SparseTensor) -> pd.DataFrame:
        """One row per review: core, a column for each mode, and count."""
        return reviews_frame(self.found, tensor)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as numeric arrays, for files without pickle. Ragged parts lie end to end beside their lengths."""
        names = list(dict.fromkeys(name for core in self.found for name in core.members))
        parts = [core.members.get(name, Members(_none(), np.zeros(0))) for core in self.found for name in names]
        return {
            "modes": np.frombuffer(json.dumps(names).encode(), np.uint8).copy(),
            "member_lengths": np.array([len(m.codes) for m in parts], np.int64),
            "member_codes": _joined([m.codes for m in parts], np.int64),
            "member_strength": _joined([m.strength for m in parts], np.float64),
            "cell_lengths": np.array([len(core.cells) for core in self.found], np.int64),
            "cells": _joined([core.cells for core in self.found], np.int64),
            "spans": np.array(
                [(*(c.window or (-1, -1)), *(c.ratings or (-1, -1)), SIDES.index(c.side)) for c in self.found], np.int64
            ).reshape(-1, 5),
            "numbers": np.array(
                [(c.number, c.density, c.expected, c.log10_p, c.score, c.agreement) for c in self.found], np.float64
            ).reshape(-1, 6),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Cores:
        """What ``to_arrays`` gave."""
        names: list[str] = json.loads(np.asarray(arrays["modes"], np.uint8).tobytes())
        ends = np.cumsum(arrays["member_lengths"])[:-1]
        codes, strength = np.split(arrays["member_codes"], ends), np.split(arrays["member_strength"], ends)
        cells = np.split(arrays["cells"], np.cumsum(arrays["cell_lengths"])[:-1])
        cores = []
        for i, (span, numbers) in enumerate(zip(arrays["spans"].tolist(), arrays["numbers"].tolist(), strict=True)):
            at = range(i * len(names), (i + 1) * len(names))
            members = {name: Members(codes[j], strength[j]) for name, j in zip(names, at, strict=True) if len(codes[j])}
            window = None if span[0] < 0 else (span[0], span[1])
            ratings = None if span[2] < 0 else (span[2], span[3])
            cores.append(Core(int(numbers[0]), members, window, ratings, SIDES[span[4]], cells[i], *numbers[1:]))
        return cls(tuple(cores))


def find_cores(
    tensor: SparseTensor, lockstep: Lockstep, settings: CoreSettings | None = None, *, actor: int | str = 0
) -> Cores:
    """Find the groups that act in lockstep, the most significant first; none where chance or taste explain them.

    Parameters
    ----------
    lockstep : of the same tensor and the same actors, from ``find_lockstep``.
    actor : the mode whose entities act together.
    """
    settings = CoreSettings() if settings is None else settings
    k = tensor.mode_index(actor)
    if k != lockstep.actor:
        raise SettingsError(
            f"lockstep is that of {tensor.modes[lockstep.actor]!r}, not of {tensor.modes[k]!r}; find it with actor={k}"
        )
    if len(lockstep.review_scores) != tensor.n_cells:
        raise SettingsError(
            f"lockstep has {len(lockstep.review_scores)} cells and the tensor {tensor.n_cells}; find it anew"
        )
    laid = boards(tensor, lockstep, settings.min_reviews)
    limits = Limits(settings.min_reviewers, settings.min_places, settings.max_seeds)
    covered = np.zeros(tensor.n_cells, np.bool_)
    looks = math.log(max(len(laid), 1))
    reported: list[Report] = []
    grouping = tensor.grouping(k)
    of_actor = Rows(grouping.offsets, grouping.cells.astype(np.int64))
    with threadpool_limits(1):  # many small decompositions: threads would only wait for each other
        found = [(number, block) for number, board in enumerate(laid) for block in search(board, limits, covered)]
        kept = combine(laid, found, tensor.n_cells)
    owned = [laid[number].cells[laid[number].inside(block.actors, block.places)] for number, block in kept]
    holders = np.bincount(np.concatenate([*owned, _none()]), minlength=tensor.n_cells)
    for (number, block), own in zip(kept, owned, strict=True):
        board = laid[number]
        holders[own] -= 1
        wide = widen(board, block, board.sums(holders[board.cells] > 0))
        holders[own] += 1
        finest = max((b for b in laid if b.side == board.side), key=lambda b: tensor.shape[b.mode])
        net = min(block.net - looks, taste(finest, wide.actors))
        there = board.whatever_rating(np.sort(taken(of_actor, wide.actors)), wide.places)
        same = len(board.inside(wide.actors, wide.places))
        if -net <= math.log(settings.significance) and agree(same, len(there), len(board.cells) / tensor.n_cells):
            reported.append(Report(net, board, wide, same / max(len(there), 1)))
    described = [_describe(tensor, k, at + 1, *row) for at, row in enumerate(_merged(reported))]
    return Cores(tuple(described))


class Report(NamedTuple):
    """A significant block: its net, where it was found, who belongs to it, and how far they agree."""

    net: float
    board: Board
    wide: Wide
    agreement: float


def _merged(reports: list[Report]) -> list[Report]:
    """The most significant first. One whose people are nearly all in a stronger one is the same ring again."""
    kept: list[Report] = []
    for report in sorted(reports, key=lambda r: -r.net):
        for at, strong in enumerate(kept):
            shared = contains(strong.wide.actors, report.wide.actors).mean()
            if strong.board.side == report.board.side and shared >= SAME:
                if strong.board is report.board:
                    kept[at] = strong._replace(wide=join(strong.wide, report.wide))
                break
        else:
            kept.append(report)
    return kept


def _describe(
    tensor: SparseTensor, actor: int, number: int, net: float, board: Board, wide: Wide, agreement: float
) -> Core:
    """A core as it is reported: members of every mode of ids, and the reviews between them."""
    rows = board.inside(wide.actors, wide.places)
    members: dict[str, Members] = {}
    for k, vocabulary in enumerate(tensor.vocabularies):
        if vocabulary.kind == "id" and k not in (actor, board.mode):
            named = _named(tensor, k, board, wide, rows)
            rows = rows[np.isin(tensor.coordinates[board.cells[rows], k], named.codes)]
            members[vocabulary.mode] = named
    people = np.isin(wide.actors, board.who[rows])
    items = np.unique(board.item[board.place[rows]])
    strength = np.zeros(len(items))
    at = np.searchsorted(items, board.item[wide.places])
    there = np.isin(board.item[wide.places], items)
    np.maximum.at(strength, at[there], wide.place_strength[there])
    members[tensor.modes[actor]] = Members(wide.actors[people], wide.actor_strength[people])
    members[tensor.modes[board.mode]] = Members(items, strength)
    cells = np.sort(board.cells[rows])
    members = {
        name: Members(m.codes[kept], m.strength[kept])
        for name, m in ((name, members[name]) for name in tensor.modes if name in members)
        if len(kept := np.flatnonzero(np.isin(m.codes, tensor.coordinates[cells, tensor.mode_index(name)])))
    }
    log10_p = min(-net / math.log(10.0), 0.0)
    # Of the reviews that are reported, so that anyone can count them again: their people, their places and, of what
    # is expected there, the part of the items that are named.
    actors, places = wide.actors[people], np.unique(board.place[rows])
    pairs = max(len(actors) * len(places), 1)
    near = taken(board.of_place, places)
    for name, named in members.items():
        if name != tensor.modes[actor]:
            near = near[np.isin(tensor.coordinates[board.cells[near], tensor.mode_index(name)], named.codes)]
    size = np.bincount(board.place[near], minlength=len(board.size))[places].astype(np.float64)
    expected = float(board.activity(actors) @ board.shares(places, size))
    time = next((k for k, v in enumerate(tensor.vocabularies) if v.kind == "time"), None)
    window, rated = (None if k in (actor, board.mode) else _span(tensor, k, cells) for k in (time, tensor.rating_mode))
    return Core(
        number=number,
        members=members,
        window=window,
        ratings=rated,
        side="both" if rated is None else SIDES[board.side],
        cells=cells,
        density=len(rows) / pairs,
        expected=expected / pairs,
        log10_p=log10_p,
        score=-log10_p,
        agreement=agreement,
    )


def _named(tensor: SparseTensor, k: int, board: Board, wide: Wide, rows: Numbers) -> Members:
    """Entities of another mode that the core's reviews name more often than the places' other reviews explain."""
    there = taken(board.of_place, wide.places)
    codes = tensor.coordinates[board.cells[there], k].astype(np.int64)
    chance = board.activity(wide.actors) / np.maximum(board.calendar, 1.0)
    expected = np.bincount(codes, weights=chance[board.window[board.place[there]]], minlength=tensor.shape[k])
    count = np.bincount(tensor.coordinates[board.cells[rows], k], minlength=tensor.shape[k])
    named = np.flatnonzero(count)
    size = np.bincount(codes, minlength=tensor.shape[k])[named]
    lift = max(count.sum() / max(float(expected.sum()), 1e-12), 3.0)
    price = math.log(max(len(board.who), 1)) - np.log(size) - math.log(max(len(named), 1))
    strength = expit(count[named] * math.log(lift) - (lift - 1.0) * expected[named] - price)
    sure = strength >= min(SURE, float(strength.max(initial=0.0)))
    return Members(named[sure], strength[sure])


def _span(tensor: SparseTensor, k: int | None, cells: Numbers) -> tuple[int, int] | None:
    """Codes of the least and the largest value of a mode."""
    if k is None or not len(cells):
        return None
    codes = np.unique(tensor.coordinates[cells, k])
    values = np.asarray(tensor.vocabularies[k].values)[codes]
    return int(codes[values.argmin()]), int(codes[values.argmax()])


def _none() -> Numbers:
    return np.zeros(0, np.int64)


def _joined(parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate([*parts, np.zeros(0, kind)]).astype(kind)
