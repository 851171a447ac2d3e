"""Cores: sellers, products and reviewers who act in lockstep, when, and in which reviews.

``board`` lays the reviews out as actors x places (an item in a window), ``search`` finds blocks that hold far more of
them than chance deals there, ``significance`` says how surprising they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Numbers
from ringleader.cores.board import Board, BoardRows, boards, contains, taken
from ringleader.cores.group import SIDES, Core, CoreSettings, Members
from ringleader.cores.listing import Cores
from ringleader.cores.search import SURE, Limits, Wide, combine, join, search, widen
from ringleader.cores.significance import agree, taste
from ringleader.errors import SettingsError
from ringleader.kernels.elementary import log, logistic
from ringleader.signals.lockstep import Lockstep
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

SAME = 0.7
"""Part of its people in a stronger core from which a core is a part of that one."""


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
    looks = log(max(len(laid), 1))
    reported: list[Report] = []
    grouping = tensor.grouping(k)
    of_actor = BoardRows(grouping.offsets, grouping.cells)
    candidates = [(number, block) for number, board in enumerate(laid) for block in search(board, limits, covered)]
    chosen = combine(laid, candidates, tensor.n_cells)
    owned = [laid[number].cells[laid[number].inside(block.actors, block.places)] for number, block in chosen]
    holders = np.bincount(np.concatenate([*owned, _none()]), minlength=tensor.n_cells).astype(np.int32)
    for (number, block), own in zip(chosen, owned, strict=True):
        board = laid[number]
        holders[own] -= 1
        wide = widen(board, block, board.sums(holders[board.cells] > 0))
        holders[own] += 1
        finest = max((b for b in laid if b.side == board.side), key=lambda b: tensor.shape[b.mode])
        net = min(block.net - looks, taste(finest, wide.actors))
        there = board.whatever_rating(np.sort(taken(of_actor, wide.actors)), wide.places)
        same = len(board.inside(wide.actors, wide.places))
        if -net <= log(settings.significance) and agree(same, len(there), len(board.cells) / tensor.n_cells):
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
    distinct: list[Report] = []
    for report in sorted(reports, key=lambda r: -r.net):
        for at, strong in enumerate(distinct):
            shared = contains(strong.wide.actors, report.wide.actors).mean()
            if strong.board.side == report.board.side and shared >= SAME:
                if strong.board is report.board:
                    distinct[at] = strong._replace(wide=join(strong.wide, report.wide))
                break
        else:
            distinct.append(report)
    return distinct


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
    cells = np.sort(board.cells[rows]).astype(np.int64)
    members = {
        name: Members(m.codes[named_there], m.strength[named_there])
        for name, m in ((name, members[name]) for name in tensor.modes if name in members)
        if len(named_there := np.flatnonzero(np.isin(m.codes, tensor.coordinates[cells, tensor.mode_index(name)])))
    }
    log10_p = min(-net / log(10.0), 0.0)
    # Of the reviews that are reported, so that anyone can count them again: their people, their places and, of what
    # is expected there, the part of the items that are named.
    actors, places = wide.actors[people], np.unique(board.place[rows]).astype(np.int64)
    pairs = max(len(actors) * len(places), 1)
    near = taken(board.of_place, places)
    for name, named in members.items():
        if name != tensor.modes[actor]:
            near = near[np.isin(tensor.coordinates[board.cells[near], tensor.mode_index(name)], named.codes)]
    size = np.bincount(board.place[near], minlength=len(board.size))[places].astype(np.float64)
    expected = float((board.activity(actors) * board.shares(places, size)).sum())
    time = assign_roles(tensor).time
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
    price = log(max(len(board.who), 1)) - log(size) - log(max(len(named), 1))
    strength = logistic(count[named] * log(lift) - (lift - 1.0) * expected[named] - price)
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
