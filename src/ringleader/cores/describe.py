"""Describe: a significant block as the core that is reported, with its members of every mode and its reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Codes, Numbers
from ringleader.cores.board import Board, Reviews
from ringleader.cores.group import SIDES, Core, Members
from ringleader.cores.layout import SearchedReviews
from ringleader.cores.rows import contains
from ringleader.cores.widen import SURE, Wide
from ringleader.kernels.elementary import log, logistic
from ringleader.tensor.roles import assign_roles


class Report(NamedTuple):
    """A significant block: its net, where it was found, who belongs to it, and how far they agree."""

    net: float
    board: Board
    wide: Wide
    agreement: float


def read_reported(market: SearchedReviews, reports: Sequence[Report]) -> None:
    """Have all that the descriptions of reports need."""
    for report in reports:
        market.codes.lacks(report.board.reviews_at(report.wide.places).cells.astype(np.int64))
    market.fetch()


def describe(market: SearchedReviews, actor: int, number: int, report: Report) -> Core:
    """A core as it is reported: members of every mode of ids, and the reviews between them."""
    about, board, wide = market.about, report.board, report.wide
    rows = board.inside(wide.actors, wide.places)
    members: dict[str, Members] = {}
    for k, vocabulary in enumerate(about.vocabularies):
        if vocabulary.kind == "id" and k not in (actor, board.mode):
            named = _named(market, k, board, wide, rows)
            rows = rows.of(contains(named.codes, _codes(market, rows.cells, k)))
            members[vocabulary.mode] = named
    people = np.isin(wide.actors, rows.who)
    item = board.facts(wide.places).item
    items = np.unique(item[np.isin(wide.places, rows.place)])
    strength = np.zeros(len(items))
    there = contains(items, item)
    np.maximum.at(strength, np.searchsorted(items, item[there]), wide.place_strength[there])
    members[about.modes[actor]] = Members(wide.actors[people], wide.actor_strength[people])
    members[about.modes[board.mode]] = Members(items, strength)
    cells = rows.cells.astype(np.int64)
    members = {
        name: Members(m.codes[named_there], m.strength[named_there])
        for name, m in ((name, members[name]) for name in about.modes if name in members)
        if len(named_there := np.flatnonzero(np.isin(m.codes, _codes(market, cells, about.mode_index(name)))))
    }
    log10_p = min(-report.net / log(10.0), 0.0)
    # Of the reviews that are reported, so that anyone can count them again: their people, their places and, of what
    # is expected there, the part of the items that are named.
    actors, places = wide.actors[people], np.unique(rows.place)
    pairs = max(len(actors) * len(places), 1)
    near = board.reviews_at(places)
    for name, named in members.items():
        if name != about.modes[actor]:
            near = near.of(contains(named.codes, _codes(market, near.cells, about.mode_index(name))))
    size = np.bincount(np.searchsorted(places, near.place), minlength=len(places)).astype(np.float64)
    expected = float((board.activity(actors) * board.shares(board.facts(places).window, size)).sum())
    time = assign_roles(about).time
    window, rated = (None if k in (actor, board.mode) else _span(market, k, cells) for k in (time, about.rating_mode))
    return Core(
        number=number,
        members=members,
        window=window,
        ratings=rated,
        side="both" if rated is None else SIDES[board.side],
        cells=cells,
        density=len(cells) / pairs,
        expected=expected / pairs,
        log10_p=log10_p,
        score=-log10_p,
        agreement=report.agreement,
    )


def _codes(market: SearchedReviews, cells: Numbers | Codes, mode: int) -> Numbers:
    """The entities of a mode that cells, ascending, are of."""
    codes: Numbers = market.codes.read(np.asarray(cells, np.int64)).values("codes")[:, mode].astype(np.int64)
    return codes


def _named(market: SearchedReviews, k: int, board: Board, wide: Wide, rows: Reviews) -> Members:
    """Entities of another mode that the core's reviews name more often than the places' other reviews explain."""
    there = board.reviews_at(wide.places)
    facts = board.facts(wide.places)
    chance = board.activity(wide.actors) / np.maximum(board.calendar, 1.0)
    codes, at = np.unique(_codes(market, there.cells, k), return_inverse=True)
    window = facts.window[np.searchsorted(wide.places, there.place)]
    expected = np.bincount(at, weights=chance[window], minlength=len(codes))
    count = np.bincount(np.searchsorted(codes, _codes(market, rows.cells, k)), minlength=len(codes))
    named = np.flatnonzero(count)
    size = np.bincount(at, minlength=len(codes))[named]
    lift = max(count.sum() / max(float(expected.sum()), 1e-12), 3.0)
    price = log(max(board.n_reviews, 1)) - log(size) - log(max(len(named), 1))
    strength = logistic(count[named] * log(lift) - (lift - 1.0) * expected[named] - price)
    sure = strength >= min(SURE, float(strength.max(initial=0.0)))
    return Members(codes[named[sure]], strength[sure])


def _span(market: SearchedReviews, k: int | None, cells: Numbers) -> tuple[int, int] | None:
    """Codes of the least and the largest value of a mode."""
    if k is None or not len(cells):
        return None
    codes = np.unique(_codes(market, cells, k))
    values = np.asarray(market.about.vocabularies[k].values)[codes]
    return int(codes[values.argmin()]), int(codes[values.argmax()])
