"""What each entity does: behaviour covariates of any mode, computed from the tensor alone.

``behaviour(tensor, "seller")`` gives one row per seller: volume, concentration, ratings, bursts against the market's
own calendar, and what its counterparts (its reviewers and products) are like. Whatever needs a mode that is not there
(rating, time, another mode of ids) is left out; every covariate that is there has a finite value for every entity,
and a neutral one for those who have too few reviews to say anything (docs/covariates.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import ColumnTable, Floats, Frozen, Numbers, packed_json, unpacked_json
from ringleader.errors import SettingsError
from ringleader.kernels.elementary import log1p
from ringleader.runtime.executor import Threads
from ringleader.runtime.machine import return_memory
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.behaviour.counterparts import SHRINK, counterpart_columns
from ringleader.signals.behaviour.market import (
    HIGH,
    LOW,
    Covariate,
    Judged,
    Market,
    judged_entities,
    ratio,
    read_market,
)
from ringleader.signals.behaviour.time import (
    Burst,
    Calendar,
    Weeks,
    active_weeks,
    dispersion,
    find_rhythms,
    largest_bursts,
    running_counts,
    say_length,
    sum_by,
)
from ringleader.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MANY", "Covariates", "Market", "behaviour", "read_market"]

MANY = 400_000
"""Entities from which memory that it took to find some columns is given back before others are found. It takes as long
to get it again as to find a column."""

SHARED, MOST_SHARED = 400_000, 4_000_000
"""Cells from which columns about the counterparts of several modes are found side by side, and up to which: of fewer,
threads would wait for the interpreter's lock; of more, the columns of all those modes would take too much memory."""

WINDOW_NAMES = ("short", "medium", "long")


@dataclass(frozen=True, eq=False)
class Covariates(Frozen):
    """Behaviour of the entities of one mode.

    names : of the columns.
    values : float64 (n_k, F), finite everywhere; computed ones have each column in one piece.
    descriptions : for each name one plain sentence.
    groups : for each name the kind of behaviour: volume, concentration, rating, deviation, burst, rhythm, counterpart,
        age or crowd.
    bursts : for each name that is a burst, the window behind it.
    table : in whose memory the values are, so that more columns can be put beside them; none where they were read.
    """

    mode: str
    names: tuple[str, ...]
    values: Floats
    descriptions: Mapping[str, str]
    groups: Mapping[str, str]
    bursts: Mapping[str, Burst]
    calendar: Calendar | None = None
    table: ColumnTable | None = None

    def frame(self, tensor: SparseTensor) -> pd.DataFrame:
        """The covariates as a table, one row per entity, indexed by its id."""
        import pandas as pd

        vocabulary = tensor.vocabulary(self.mode)
        if len(vocabulary) != len(self.values):
            raise SettingsError(
                f"{len(self.values)} rows of covariates, but the tensor has {len(vocabulary)} {self.mode} entities; "
                "pass the tensor they were computed from"
            )
        index = pd.Index(vocabulary.decode(np.arange(len(vocabulary))), name=self.mode)
        return pd.DataFrame(self.values, index=index, columns=list(self.names))

    def sentence(self, name: str, code: int) -> str:
        """What one covariate says about one entity, in words."""
        if name not in self.descriptions:
            raise SettingsError(f"there is no covariate {name!r}; there are {', '.join(self.names)}")
        if name in self.bursts and self.calendar is not None:
            burst, calendar = self.bursts[name], self.calendar
            start = str(np.datetime64(calendar.start + int(burst.start[code]) * calendar.bin_seconds, "s"))
            start = start.removesuffix("T00:00:00")
            length = say_length(burst.length, calendar.bin_seconds)
            if not self.values[code, self.names.index(name)] > 0:
                return f"{self.descriptions[name].replace(' a burst', ' no burst')} of {length}"
            return (
                f"{self.descriptions[name]}: {burst.seen[code]:.0f} in the {length} from {start}, "
                f"where {burst.expected[code]:.1f} were expected"
            )
        return f"{self.descriptions[name]}: {self.values[code, self.names.index(name)]:.3g}"


def pack_covariates(covariates: Covariates) -> dict[str, npt.NDArray[Any]]:
    """Covariates as named arrays, without their values; ``unpack_covariates`` gives back the same."""
    calendar = covariates.calendar
    about: dict[str, Any] = {name: getattr(covariates, name) for name in ("mode", "names", "descriptions", "groups")}
    about["bursts"] = {name: burst.length for name, burst in covariates.bursts.items()}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for j, burst in enumerate(covariates.bursts.values()):
        arrays |= {f"burst_{j}_{name}": getattr(burst, name) for name in ("seen", "expected", "start")}
    if calendar is not None:
        about["calendar"] = {name: getattr(calendar, name) for name in ("n_bins", "bin_seconds", "start", "windows")}
        arrays |= {"calendar_occupied": calendar.occupied, "calendar_before": calendar.before}
        arrays |= {} if calendar.rank is None else {"calendar_rank": calendar.rank}
    return {"covariates": packed_json(about), **arrays}


def unpack_covariates(arrays: Mapping[str, npt.NDArray[Any]], values: Floats) -> Covariates:
    """What ``pack_covariates`` took apart. values : (n_k, F)."""
    about: dict[str, Any] = unpacked_json(arrays["covariates"])
    names = tuple(about["names"])
    bursts = {}
    for j, (name, length) in enumerate(about["bursts"].items()):
        parts = {part: arrays[f"burst_{j}_{part}"] for part in ("seen", "expected", "start")}
        bursts[name] = Burst(z=values[:, names.index(name)], length=length, **parts)
    calendar = None
    if "calendar" in about:
        numbers = {**about["calendar"], "windows": tuple(about["calendar"]["windows"])}
        occupied, before = arrays["calendar_occupied"], arrays["calendar_before"]
        calendar = Calendar(occupied=occupied, before=before, rank=arrays.get("calendar_rank"), **numbers)
    return Covariates(about["mode"], names, values, about["descriptions"], about["groups"], bursts, calendar)


def behaviour(cells: SparseTensor | CellShare, mode: str | int, *, market: Market | None = None) -> Covariates:
    """Behaviour covariates of every entity of a mode, or of those that this process owns.

    market : of ``read_market``, to share the work between modes.
    """
    home = as_share(cells)
    k = home.tensor.mode_index(mode)
    market = (read_market(home) if market is None else market).by(k)
    name = home.tensor.modes[k]
    judged = judged_entities(market, k)
    codes, volume = judged.codes, judged.volume
    table = ColumnTable.of(len(volume))
    columns: list[Covariate] = []

    def put(covariates: Iterable[Covariate]) -> None:
        nonlocal table
        for column in covariates:
            table = table.put(column.values)
            values = table.values[:, -1]
            burst = column.burst._replace(z=values) if column.burst is not None else None
            columns.append(column._replace(values=values, burst=burst))
        if len(volume) >= MANY:
            return_memory()  # what it took to find them

    put([Covariate("reviews", "volume", "Number of its reviews (logarithm)", log1p(volume))])
    if market.calendar is not None and market.bins is not None and k != market.time:
        weeks = active_weeks(codes, market.bins, market.calendar)
        put(_rhythm(market, weeks, volume))
    if market.ratings is not None and market.side is not None and k != market.rating:
        top = next((column.burst for column in columns if column.name == "burst_medium"), None)
        put(_rating(market, judged, market.ratings, market.side, top))
    others = [counterpart_columns(market, judged, j) for j in market.ids if j != k]
    if home.alone and SHARED <= home.n_cells <= MOST_SHARED:
        columns_of_modes = Threads().map(list, others)
        while columns_of_modes:
            put(columns_of_modes.pop(0))
    else:  # one column at a time; and processes talk to each other in one order
        for columns_of_mode in others:
            put(columns_of_mode)
    return Covariates(
        name,
        tuple(column.name for column in columns),
        table.values,
        {column.name: column.sentence for column in columns},
        {column.name: column.group for column in columns},
        {column.name: column.burst for column in columns if column.burst is not None},
        market.calendar,
        table,
    )


def _rhythm(market: Market, weeks: Weeks, volume: Floats) -> list[Covariate]:
    """Bursts and the spread of an entity's reviews over the calendar."""
    assert market.calendar is not None
    calendar = market.calendar
    seen = sum_by(weeks.where, market.weights, len(weeks.keys))
    kinds, counted, shares = [("burst", "Its reviews came in a burst")], [seen], [1.0]
    if market.side is not None:
        kinds.append(("boost_burst", "Its good reviews came in a burst"))
        kinds.append(("attack_burst", "Its bad reviews came in a burst"))
        total = max(market.reviews(), 1.0)
        for side in (HIGH, LOW):
            chosen = market.side == side
            counted.append(sum_by(weeks.where, market.weights * chosen, len(weeks.keys)))
            shares.append(market.reviews(chosen) / total)
    running = running_counts(counted)
    columns = []
    for window, length in zip(WINDOW_NAMES, calendar.windows, strict=True):
        bursts = largest_bursts(weeks, running, shares, volume, calendar, length)
        columns += [
            Covariate(f"{kind}_{window}", "burst", sentence, burst.z, burst)
            for (kind, sentence), burst in zip(kinds, bursts, strict=True)
        ]
    top = next(column.burst for column in columns if column.name == "burst_medium")
    assert top is not None
    rhythms = find_rhythms(weeks, seen, volume, calendar)
    span, gap, active, together = rhythms.last - rhythms.first, rhythms.gap, rhythms.active, rhythms.together
    window = say_length(top.length, calendar.bin_seconds)
    unit = say_length(1, calendar.bin_seconds)
    return [
        *columns,
        Covariate("burst_share", "rhythm", f"Share of its reviews in its burst of {window}", ratio(top.seen, volume)),
        Covariate("active_bins", "rhythm", f"Periods ({unit}) in which it was active (logarithm)", log1p(active)),
        Covariate("span", "rhythm", "Time from its first to its last review (logarithm)", log1p(span)),
        Covariate("longest_gap", "rhythm", "Longest silence between two of its reviews (logarithm)", log1p(gap)),
        Covariate("gap_share", "rhythm", "Longest silence as a share of its life", ratio(gap, span)),
        Covariate(
            "same_time",
            "rhythm",
            f"Chance that two of its reviews fall into the same {unit}",
            ratio(together, volume * (volume - 1.0)),
        ),
        Covariate(
            "unsteadiness",
            "rhythm",
            "How unevenly its reviews lie over its life, the market's calendar allowed for",
            dispersion(rhythms, volume, calendar),
        ),
    ]


def _rating(market: Market, judged: Judged, ratings: Floats, sides: Numbers, top: Burst | None) -> list[Covariate]:
    """Level, spread and extremes of the ratings; whether its burst was kinder than the rest."""
    w, (least, most) = market.weights, market.scale

    def share(chosen: npt.NDArray[np.bool_]) -> Floats:
        return judged.mean(w, chosen)

    mean = judged.mean(w, ratings)
    apart = ratings - mean[judged.codes]
    spread = np.sqrt(ratio(sum_by(judged.codes, w * np.square(apart), len(mean)), judged.volume))
    columns = [
        Covariate("rating_mean", "rating", "Mean of its ratings", mean),
        Covariate("rating_spread", "rating", "Spread of its ratings (standard deviation)", spread),
        Covariate("rating_top", "rating", "Share of its ratings that are the highest in use", share(ratings == most)),
        Covariate(
            "rating_bottom", "rating", "Share of its ratings that are the lowest in use", share(ratings == least)
        ),
        Covariate(
            "rating_extreme",
            "rating",
            "Share of its ratings at either end of the scale",
            share((ratings == most) | (ratings == least)),
        ),
        Covariate("rating_good", "rating", "Share of its ratings that are good", share(sides == HIGH)),
        Covariate("rating_bad", "rating", "Share of its ratings that are bad", share(sides == LOW)),
    ]
    if top is not None and market.bins is not None:
        start = top.start[judged.codes]
        inside = (market.bins >= start) & (market.bins < start + top.length) & (top.z[judged.codes] > 0)
        part = sum_by(judged.codes, w * inside, len(mean))
        gain = sum_by(judged.codes, w * inside * apart, len(mean))
        # Deviations from its own mean sum to zero, so what the burst gained the rest lost.
        lift = gain / (part + SHRINK) + gain / (judged.volume - part + SHRINK)
        sentence = "How much better its ratings were in its burst than outside it"
        columns.append(Covariate("burst_lift", "rating", sentence, lift))
    return columns
