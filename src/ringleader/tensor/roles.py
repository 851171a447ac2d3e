"""Who acts, on what, when, and on which side of the rating scale: the one place that says so.

``assign_roles(tensor, actor)`` gives every mode its part by its name and kind; ``sides`` divides the cells into boosts
and attacks by their ratings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools
from ringleader.errors import SettingsError
from ringleader.tensor.sparse import SparseTensor

SELLER = "seller"
ITEMS = ("product", SELLER)
"""Names of the modes that people meet on, where they are there."""

KINDS = ("id", "category", "number", "time")
"""Kinds of modes, the likeliest item first."""

STARS = (1.0, 5.0)
"""Ratings that are whole numbers between these are read as stars, also where nobody gave one of them."""


@dataclass(frozen=True)
class Roles:
    """The parts that modes play, by their positions.

    actor : whose entities act, and meet.
    items : what they meet on, each by itself.
    time, rating : the first mode of times, and the mode of ratings; None where there is none.
    window_time : the mode of times that windows are cut from: the first that neither acts nor is met on.
    side_rating : the mode of ratings by which reviews are boosts or attacks: ``rating``, unless it acts or is met on.
    counterparts : modes whose entities are counterparts of one another: those of ids and, where there are not two of
        them, of categories.
    seller : of the items those who gain by reviews: the mode of that name, else the one with the fewest entities.
    rarest_item : of the other modes of ids (of all others, where none is) the one with the most entities, where
        sharing says most.
    """

    actor: int
    items: tuple[int, ...]
    time: int | None
    rating: int | None
    window_time: int | None
    side_rating: int | None
    counterparts: tuple[int, ...]
    seller: int
    rarest_item: int

    def partner(self, mode: int) -> int:
        """The mode whose entities those of a mode share: the actor or, for the actor, the first of the items."""
        return self.actor if mode != self.actor else self.items[0]

    def rarest_partner(self, mode: int) -> int:
        """The same, but for the actor the mode where sharing says most."""
        return self.actor if mode != self.actor else self.rarest_item


def assign_roles(tensor: SparseTensor, actor: str | int = 0, items: Sequence[str] | None = None) -> Roles:
    """Gives every mode its part.

    items : names of the modes that are met on; None: ``product`` and ``seller`` if there, else the next mode of ids.
    """
    actor = tensor.mode_index(actor)
    met_on = _items(tensor, actor, items)
    kinds = [v.kind for v in tensor.vocabularies]
    ids = [k for k, kind in enumerate(kinds) if kind == "id"]
    others = [k for k in range(len(kinds)) if k != actor]
    times = [k for k, kind in enumerate(kinds) if kind == "time"]
    rating, taken = tensor.rating_mode, (actor, *met_on)
    return Roles(
        actor=actor,
        items=met_on,
        time=times[0] if times else None,
        rating=rating,
        window_time=next((k for k in times if k not in taken), None),
        side_rating=None if rating in taken else rating,
        counterparts=tuple(ids if len(ids) > 1 else [k for k, kind in enumerate(kinds) if kind in ("id", "category")]),
        seller=next((k for k in met_on if tensor.modes[k] == SELLER), min(met_on, key=lambda k: tensor.shape[k])),
        rarest_item=max([k for k in others if k in ids] or others, key=lambda k: tensor.shape[k]),
    )


def _items(tensor: SparseTensor, actor: int, names: Sequence[str] | None) -> tuple[int, ...]:
    if names is not None:
        modes = tuple(dict.fromkeys(tensor.mode_index(name) for name in names))
        if actor in modes:
            raise SettingsError(f"items name {tensor.modes[actor]!r}, the mode that acts; name another")
        return modes
    others = [k for k in range(len(tensor.modes)) if k != actor]
    usual = tuple(tensor.mode_index(name) for name in ITEMS if name in tensor.modes and name != tensor.modes[actor])
    return usual or (min(others, key=lambda k: (KINDS.index(tensor.vocabularies[k].kind), k)),)


def sides(
    tensor: SparseTensor,
    roles: Roles,
    *,
    low: float | None = None,
    high: float | None = None,
    used: npt.NDArray[np.int32] | None = None,
) -> tuple[Bools, Bools]:
    """Which cells are boosts, and which attacks, (n_cells,) each. Without ratings every cell counts as a boost.

    low, high : ratings of at most ``low`` are attacks, of at least ``high`` boosts; None: as ``rating_sides`` has it.
    used : codes of the ratings in use, where the tensor holds only some of the cells.
    """
    if roles.side_rating is None:
        return np.ones(tensor.n_cells, np.bool_), np.zeros(tensor.n_cells, np.bool_)
    ratings = np.asarray(tensor.vocabularies[roles.side_rating].values, np.float64)
    codes = tensor.coordinates[:, roles.side_rating]
    lowest, highest = rating_sides(ratings[np.unique(codes) if used is None else used])
    low, high = lowest if low is None else low, highest if high is None else high
    boost = ratings >= high
    return boost[codes], ((ratings <= low) & ~boost)[codes]


def rating_sides(values: npt.ArrayLike) -> tuple[float, float]:
    """(low, high) of a rating scale, by the ratings in use: at most low are attacks, at least high are boosts.

    A scale through zero divides by sign, any other by its lowest and highest quarter. Whole numbers from 1 to 5 are
    stars.
    """
    seen = np.asarray(values, np.float64)
    if not len(seen):
        return -math.inf, math.inf
    least, most = float(seen.min()), float(seen.max())
    if least < 0 < most:
        return float(seen[seen < 0].max()), float(seen[seen > 0].min())
    if least >= STARS[0] and most <= STARS[1] and bool((seen == np.floor(seen)).all()):
        least, most = STARS
    if least == most:
        return -math.inf, most
    return least + 0.25 * (most - least), least + 0.75 * (most - least)
