"""Crowd: how far the counts around a review exceed what their margins expect, where counts are the signal.

``counts_lead`` says whether they are: it is the one place that decides which signal orders a data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.elementary import surprise
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.lockstep.meetings import ranks
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import rounded_percent

MANY_MODES, FEW_AT_ONCE = 8, 3
"""Where there are more modes than so many, only subsets of so few of them are counted: there are too many of all."""

REPEATED = 0.5
"""Share of the rows that repeat who met what from which a table without ratings holds counts."""

CROWD_NAME = "suspicion_crowd"
"""Name of the part of the suspicion that is made of crowds."""

FEW_ROWS = 1.0
"""Rows in no crowd that every entity is believed to have besides its own, so that one crowded row is not all."""


def repeated_share(cells: SparseTensor | CellShare, actor: int) -> float:
    """Share of the rows whose entity of the mode that acts met the same items in another row before."""
    home = as_share(cells)
    there = home.by(actor)
    codes, place = there.tensor.coordinates, there.own_codes(actor).astype(np.int64)
    for k in assign_roles(there.tensor, actor).items:
        place = ranks(place * there.shape[k] + codes[:, k])[1]
    pairs = home.count(int(place.max(initial=-1)) + 1)
    return 1 - pairs / max(home.count(int(home.tensor.counts.sum())), 1)


def counts_lead(cells: SparseTensor | CellShare, actor: int) -> bool:
    """Whether counts are the signal of a tensor, as of connections, views or logins; else it is who acts with whom.

    An opinion is given once: where there are ratings, or where those who act seldom meet the same item again, the rows
    are reviews. Where there are none, and most rows repeat who met what, how often they do is what there is to see.
    """
    return as_share(cells).tensor.rating_mode is None and repeated_share(cells, actor) > REPEATED


def say_order(cells: SparseTensor | CellShare, actor: int) -> str:
    """By which signal a tensor is sorted where no label speaks, and why, in words."""
    if as_share(cells).tensor.rating_mode is not None:
        return "who acts with whom: there are ratings"
    share = rounded_percent(repeated_share(cells, actor))
    why = f"there are no ratings, and {share} of the rows repeat who met what"
    if counts_lead(cells, actor):
        return f"crowd, how far the counts around a row exceed the expected counts: {why}"
    return f"who acts with whom: {why}; from {REPEATED:.0%} on it would be counts"


def review_crowd(cells: SparseTensor | CellShare) -> Floats:
    """How crowded the places of each cell are, (n_cells,): mean over the subsets of modes of the root of its surprise.

    A place is where some modes are as in the cell. The margins expect e = N prod(n_k / N) others there, with N in all
    and n_k of each of the entities; of one entity as many as of any other of its mode. The cell itself is there, so
    with c at the place where 1 + e are to be expected its surprise is c log(c / (1 + e)) - (c - 1 - e), 0 where c is
    less: what is there alone is no surprise, however rare. Its root grows as a number of standard deviations does.
    Each subset is taken in units of its own mean over the tensor, so that all count the same and none is chosen. For
    tensors such as connections, views or logins; popularity is not taken out. A rating is an opinion and no place.

    cells : all, or those held here; a subset is counted by the owners of its mode with the most entities.
    """
    home = as_share(cells)
    tensor = home.tensor
    modes = [k for k, v in enumerate(tensor.vocabularies) if v.kind in ("id", "category", "time")]
    modes.sort(key=lambda k: -tensor.shape[k])
    total, places = np.zeros(tensor.n_cells), 0
    whole = float(home.count(int(tensor.counts.sum())))
    if not whole:
        return total
    margins = {k: home.count(np.bincount(tensor.coordinates[:, k], tensor.counts, tensor.shape[k])) for k in modes}
    most = FEW_AT_ONCE if len(modes) > MANY_MODES else len(modes)
    for at, first in enumerate(modes):
        there = home.by(first)
        codes, counts = there.tensor.coordinates, there.tensor.counts
        part, own = np.zeros(there.tensor.n_cells), ranks(there.own_codes(first).astype(np.int64))[1]
        for chosen, place in _places(there.tensor, modes[at + 1 :], most - 1, (first,), own):
            count = np.asarray(np.bincount(place, weights=counts)[place], np.float64)
            if len(chosen) == 1:
                expected = np.full(len(part), whole / max(int((margins[first] > 0).sum()), 1))
            else:
                expected = np.full(len(part), whole)
                for k in sorted(chosen):
                    expected *= (margins[k] / whole)[codes[:, k]]
            root = np.sqrt(surprise(count, expected + 1.0))
            mean = float(there.cell_total(root * counts)) / whole
            part += root / mean if mean > 0 else 0.0
            places += 1
        total += there.move(part, home)
    return total / max(places, 1)


def _places(
    tensor: SparseTensor, modes: Sequence[int], most: int, chosen: tuple[int, ...], place: Numbers
) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """``chosen`` and every subset that adds ``most`` of ``modes`` or fewer to it, and each cell's place there.

    place : (n_cells,) those of ``chosen``. Numbered anew for each mode: products of many sizes would not fit into 64
    bits. Where every cell is alone, more modes leave it so.
    """
    yield chosen, place
    alone = int(place.max(initial=-1)) + 1 == tensor.n_cells
    for at, k in enumerate(modes if most else ()):
        inner = place
        if not alone:
            inner = ranks(place.astype(np.int64) * tensor.shape[k] + tensor.coordinates[:, k])[1]
        yield from _places(tensor, modes[at + 1 :], most - 1, (*chosen, k), inner)


def entity_crowd(cells: SparseTensor | CellShare, mode: int, crowd: Floats) -> Floats:
    """How crowded the rows of every entity of a mode are, (n_k,): the mean over them and ``FEW_ROWS`` in no crowd.

    cells : all, or those held here; then it is of the entities that this process owns. crowd : of these cells.
    """
    home = as_share(cells)
    counts = home.tensor.counts.astype(np.float64)
    return np.asarray(home.entity_sums(mode, counts * crowd) / (home.entity_sums(mode, counts) + FEW_ROWS))
