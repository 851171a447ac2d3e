"""Cores: sellers, products and reviewers who act in lockstep, when, and in which reviews.

``board`` lays the reviews out as actors x places (an item in a window), ``search`` finds blocks that hold far more of
them than chance deals there, ``significance`` says how surprising they are, ``describe`` what is reported.
"""

from __future__ import annotations

import numpy as np

from ringleader.cores.blocks import Limits, side_by_side
from ringleader.cores.board import Board
from ringleader.cores.describe import Report, describe, read_reported
from ringleader.cores.group import CoreSettings
from ringleader.cores.layout import BoardHolder, Group, SearchedReviews
from ringleader.cores.listing import Cores
from ringleader.cores.rows import CellSet, contains
from ringleader.cores.search import search
from ringleader.cores.significance import agree, taste, taste_rows
from ringleader.cores.widen import Others, Wide, combine, join, widen
from ringleader.errors import SettingsError
from ringleader.kernels.elementary import log
from ringleader.runtime.peers import led
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.lockstep import Lockstep
from ringleader.tensor.sparse import SparseTensor

SAME = 0.7
"""Part of its people in a stronger core from which a core is a part of that one."""


def find_cores(
    cells: SparseTensor | CellShare,
    lockstep: Lockstep,
    settings: CoreSettings | None = None,
    *,
    actor: int | str = 0,
) -> Cores:
    """Find the groups that act in lockstep, the most significant first; none where chance or taste explain them.

    Parameters
    ----------
    cells : all, or those that this process holds. Then the first process searches, and the others answer it.
    lockstep : of the same cells and the same actors, from ``find_lockstep``.
    actor : the mode whose entities act together.
    """
    home, settings = as_share(cells), CoreSettings() if settings is None else settings
    k = home.tensor.mode_index(actor)
    if k != lockstep.actor:
        named = home.tensor.modes[lockstep.actor], home.tensor.modes[k]
        raise SettingsError(f"lockstep is that of {named[0]!r}, not of {named[1]!r}; find it with actor={k}")
    if len(lockstep.both.direct) != home.tensor.n_cells:
        raise SettingsError(
            f"lockstep has {len(lockstep.both.direct)} cells and the tensor {home.tensor.n_cells}; compute it again"
        )
    holder = BoardHolder(home, lockstep, settings.min_reviews)
    if home.alone:
        return _search(holder.market(), settings, k)
    holder.tidy()
    return led(home.peers, lambda ask: _search(holder.asking(ask), settings, k), holder.answer)


def _search(market: SearchedReviews, settings: CoreSettings, actor: int) -> Cores:
    boards = market.boards
    limits = Limits(settings.min_reviewers, settings.min_places, settings.max_seeds)
    covered = CellSet(market.n_cells)
    candidates = [(number, block) for number, board in enumerate(boards) for block in search(board, limits, covered)]
    chosen = combine(boards, candidates, CellSet(market.n_cells))
    owned = [boards[number].inside(block.actors, block.places).cells.astype(np.int64) for number, block in chosen]
    others = Others(boards, owned)
    widened = [
        widen(boards[number], block, others.at(number, own)) for (number, block), own in zip(chosen, owned, strict=True)
    ]
    wides = side_by_side(widened, market.fetch)
    looks = log(max(len(boards), 1))
    finest = [_finest(market, boards[number]) for number, _ in chosen]
    tastes = [taste_rows(board, wide.actors) for board, wide in zip(finest, wides, strict=True)]
    side_by_side(tastes, market.fetch)
    reported: list[Report] = []
    met = market.met([_group(boards[number], wide) for (number, _), wide in zip(chosen, wides, strict=True)])
    for (number, block), wide, fine, reviews in zip(chosen, wides, finest, met, strict=True):
        board = boards[number]
        net = min(block.net - looks, taste(fine, wide.actors))
        same = board.count_inside(wide.actors, wide.places)
        if -net <= log(settings.significance) and agree(same, reviews, board.n_reviews / market.n_cells):
            reported.append(Report(net, board, wide, same / max(reviews, 1)))
    distinct = _merged(reported)
    read_reported(market, distinct)
    return Cores(tuple(describe(market, actor, at + 1, report) for at, report in enumerate(distinct)))


def _finest(market: SearchedReviews, board: Board) -> Board:
    """The board of the same side with the most items."""
    return max((b for b in market.boards if b.side == board.side), key=lambda b: market.about.shape[b.mode])


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


def _group(board: Board, wide: Wide) -> Group:
    facts = board.facts(wide.places)
    return board.mode, wide.actors, facts.item * board.n_windows + facts.window
