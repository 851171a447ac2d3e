"""The charts of one core: who reviewed whom, when, and with which rating, beside the whole market."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores import Core
from ringleader.errors import SettingsError
from ringleader.plot.charts import Matrix, Ratings, Row, Timeline
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted, harmless, percent, plural

ROWS, COLUMNS = 30, 80
"""Items and actors of a core that are drawn; the busiest first."""
OTHER_ROWS, OTHER_COLUMNS = 10, 30
"""Items and actors beside the core, to compare with."""
BINS = 170
"""Bins of a timeline."""
RATINGS_NAMED = 12
"""Ratings that the summary names: those that the core gives most."""
LEVELS = 5
WEEK, DAY, HOUR = 604_800, 86_400, 3_600
UNITS = {WEEK: "week", DAY: "day", HOUR: "hour", 60: "minute"}


def matrix(tensor: SparseTensor, core: Core, actor: int) -> Matrix:
    """Who reviewed whom: the core's items and actors first, the busiest others beside them."""
    item = item_mode(tensor, core, actor)
    row_mode, column_mode = (harmless(tensor.modes[k], 30) for k in (item, actor))
    items, actors = (core.members[tensor.modes[k]].codes.astype(np.int64) for k in (item, actor))
    pairs = _pairs(tensor, item, actor, items, actors)
    inside = np.isin(pairs.item, items) & np.isin(pairs.actor, actors)
    rows = _busiest(pairs.item[inside], pairs.reviews[inside], ROWS)
    columns = _busiest(pairs.actor[inside], pairs.reviews[inside], COLUMNS)
    met, came = np.isin(pairs.actor, columns), np.isin(pairs.item, rows)
    beside = met & ~np.isin(pairs.item, items)
    others = came & ~np.isin(pairs.actor, actors)
    all_rows = np.concatenate([rows, _busiest(pairs.item[beside], pairs.reviews[beside], OTHER_ROWS)])
    all_columns = np.concatenate([columns, _busiest(pairs.actor[others], pairs.reviews[others], OTHER_COLUMNS)])
    drawn = np.isin(pairs.item, all_rows) & np.isin(pairs.actor, all_columns)
    at_row, at_column = _positions(all_rows, pairs.item[drawn]), _positions(all_columns, pairs.actor[drawn])
    levels = pairs.level[drawn]
    order = np.lexsort((at_column, at_row))
    fill = int(inside.sum()) / max(len(items) * len(actors), 1)
    usual = tensor.n_cells / max(tensor.shape[item] * tensor.shape[actor], 1)
    title = (
        f"{counted(len(actors), column_mode)} and {counted(len(items), row_mode)} form a block: {percent(fill)} of "
        f"their pairs have a review, at most {percent(min(usual, 1.0))} of all pairs in the market"
    )
    cut = len(rows) < len(items) or len(columns) < len(actors)
    shown = f"; the {len(rows)} and {len(columns)} busiest of them are drawn" if cut else ""
    summary = (
        f"A matrix with a row for each {row_mode} and a column for each {column_mode}. The framed block at the upper "
        f"left is the core: {counted(len(items), row_mode)} and {counted(len(actors), column_mode)}{shown}. Below it "
        f"are the other {plural(row_mode)} they reviewed most, to its right the busiest other {plural(column_mode)} "
        f"of these {plural(row_mode)}. "
        + ("The colour is the rating." if has_ratings(tensor) else "A filled cell is a review.")
    )
    return Matrix(
        title=title,
        summary=summary,
        header=(row_mode, f"reviews by the core's {plural(column_mode)}", "all its reviews", "in the core"),
        rows=_matrix_rows(tensor, item, all_rows, pairs, actors, len(rows)),
        left_out=len(items) - len(rows),
        row_mode=row_mode,
        column_mode=column_mode,
        row_names=_names(tensor, item, all_rows),
        column_names=_names(tensor, actor, all_columns),
        core_rows=len(rows),
        core_columns=len(columns),
        cells=tuple(zip(at_row[order].tolist(), at_column[order].tolist(), levels[order].tolist(), strict=True)),
        levels=_level_names(tensor, levels),
    )


def timeline(tensor: SparseTensor, core: Core) -> Timeline:
    """When the core wrote its reviews, and when the market did."""
    k = _first(tensor, "time")
    if k is None:
        raise SettingsError("the reviews of this model have no time, so there is no timeline")
    vocabulary = tensor.vocabularies[k]
    starts = np.asarray(vocabulary.values, np.int64)
    width = int(vocabulary.bin_seconds or 1)
    span = int(starts.max() - starts.min()) // width + 1
    together = -(-span // BINS)
    bins = -(-span // together)
    at = (starts - starts.min()) // (width * together)
    market = np.bincount(at[tensor.coordinates[:, k]], weights=tensor.counts, minlength=bins)
    own = np.bincount(at[tensor.coordinates[core.cells, k]], weights=tensor.counts[core.cells], minlength=bins)
    edges = starts.min() + np.arange(bins + 1) * width * together
    shares, usual = own / max(own.sum(), 1.0), market / max(market.sum(), 1.0)
    loud = np.argsort(-shares, kind="stable")
    half = int(np.searchsorted(np.cumsum(shares[loud]), 0.5 - 1e-9)) + 1
    spans = _spans(bins, width, together)
    title = (
        f"Half of the core's reviews came in {half} of {spans}, "
        f"when the market wrote {percent(float(usual[loud[:half]].sum()))} of its own"
    )
    dates = [_date(start, width) for start in edges]
    peak = int(loud[0])
    summary = (
        f"Shares of the reviews over time, in {spans} from {dates[0]} to {dates[-1]}. The core is loudest "
        f"from {dates[peak]} with {percent(float(shares[peak]))} of its reviews; the market wrote "
        f"{percent(float(usual[peak]))} of its own then."
    )
    listed = [i for i in range(bins) if own[i]]
    return Timeline(
        title=title,
        summary=summary,
        header=("from", "core's reviews", "share of the core", "share of the market"),
        rows=tuple((dates[i], f"{own[i]:,.0f}", percent(shares[i]), percent(usual[i])) for i in listed),
        starts=tuple(int(e) for e in edges),
        core=tuple(shares.tolist()),
        market=tuple(usual.tolist()),
    )


def ratings(tensor: SparseTensor, core: Core) -> Ratings:
    """Which ratings the core gave, and which the market gives."""
    k = tensor.rating_mode
    if k is None:
        raise SettingsError("the reviews of this model have no rating, so there is no histogram of them")
    values = np.asarray(tensor.vocabularies[k].values, np.float64)
    order = np.argsort(values, kind="stable")
    market = np.bincount(tensor.coordinates[:, k], weights=tensor.counts, minlength=len(values))[order]
    own = np.bincount(tensor.coordinates[core.cells, k], weights=tensor.counts[core.cells], minlength=len(values))
    own = own[order]
    shares, usual = own / max(own.sum(), 1.0), market / max(market.sum(), 1.0)
    names = tuple(f"{v:g}" for v in values[order])
    top = int(np.argmax(shares)) if len(shares) else 0
    own_share, usual_share = percent(float(shares[top])), percent(float(usual[top]))
    loudest = np.sort(np.argsort(-shares, kind="stable")[:RATINGS_NAMED])
    named = [f"{names[i]}: core {percent(shares[i])}, market {percent(usual[i])}" for i in loudest]
    others = len(names) - len(named)
    title = f"{own_share} of the core's ratings are {names[top]}; {usual_share} in the market"
    return Ratings(
        title=title,
        summary=f"Shares of the ratings. {'; '.join(named)}{f'; and {others:,} others' if others else ''}.",
        header=("rating", "core's reviews", "share of the core", "share of the market"),
        rows=tuple(
            (n, f"{c:,.0f}", percent(a), percent(b)) for n, c, a, b in zip(names, own, shares, usual, strict=True)
        ),
        values=names,
        levels=tuple(_levels(tensor, values[order]).tolist()),
        core=tuple(shares.tolist()),
        market=tuple(usual.tolist()),
    )


def item_mode(tensor: SparseTensor, core: Core, actor: int) -> int:
    """The coarsest mode of ids that the core's actors meet on: sellers rather than products."""
    there = [k for k, v in enumerate(tensor.vocabularies) if k != actor and v.kind == "id" and v.mode in core.members]
    there = there or [k for k, mode in enumerate(tensor.modes) if k != actor and mode in core.members]
    if not there:
        raise SettingsError(f"core {core.number} has members of one mode only, so there is no matrix to draw")
    return min(there, key=lambda k: tensor.shape[k])


def has_ratings(tensor: SparseTensor) -> bool:
    return tensor.rating_mode is not None


def has_times(tensor: SparseTensor) -> bool:
    return _first(tensor, "time") is not None


class MatrixPairs(NamedTuple):
    """Distinct pairs of an item and an actor: how many reviews, and the level of their mean rating."""

    item: Numbers
    actor: Numbers
    reviews: Numbers
    level: Numbers


def _pairs(tensor: SparseTensor, item: int, actor: int, items: Numbers, actors: Numbers) -> MatrixPairs:
    """All pairs with one of these items or one of these actors."""
    codes = tensor.coordinates
    cells = np.flatnonzero(np.isin(codes[:, item], items) | np.isin(codes[:, actor], actors))
    key = codes[cells, item].astype(np.int64) * tensor.shape[actor] + codes[cells, actor]
    distinct, where = np.unique(key, return_inverse=True)
    weight = tensor.counts[cells].astype(np.float64)
    reviews = np.bincount(where, weights=weight, minlength=len(distinct))
    k = tensor.rating_mode
    if k is None:
        level = np.full(len(distinct), LEVELS - 1, np.int64)
    else:
        rating = np.asarray(tensor.vocabularies[k].values, np.float64)[codes[cells, k]]
        mean = np.bincount(where, weights=weight * rating, minlength=len(distinct)) / np.maximum(reviews, 1)
        level = _levels(tensor, mean)
    return MatrixPairs(distinct // tensor.shape[actor], distinct % tensor.shape[actor], reviews.astype(np.int64), level)


def _levels(tensor: SparseTensor, rating: Floats) -> Numbers:
    """0 for the worst rating there is to 4 for the best."""
    k = tensor.rating_mode
    assert k is not None  # only asked where there are ratings
    scale = np.asarray(tensor.vocabularies[k].values, np.float64)
    low, high = float(scale.min()), float(scale.max())
    place = (rating - low) / (high - low) if high > low else np.ones(len(rating))
    return np.clip(np.floor(place * (LEVELS - 1) + 0.5), 0, LEVELS - 1).astype(np.int64)


def _level_names(tensor: SparseTensor, used: Numbers) -> tuple[tuple[int, str], ...]:
    k = tensor.rating_mode
    if k is None:
        return ((LEVELS - 1, "a review"),)
    scale = np.asarray(tensor.vocabularies[k].values, np.float64)
    levels = _levels(tensor, scale)
    names = []
    for level in sorted(set(used.tolist())):
        own = scale[levels == level]
        low, high = (own.min(), own.max()) if len(own) else (None, None)
        middle = scale.min() + level / (LEVELS - 1) * (scale.max() - scale.min())
        names.append(
            (level, f"about {middle:.3g}" if low is None else f"{low:g}" if low == high else f"{low:g}–{high:g}")
        )
    return tuple(names)


def _matrix_rows(
    tensor: SparseTensor, item: int, rows: Numbers, pairs: MatrixPairs, actors: Numbers, core_rows: int
) -> tuple[Row, ...]:
    mine = np.isin(pairs.actor, actors)
    by_core = np.bincount(pairs.item[mine], weights=pairs.reviews[mine], minlength=tensor.shape[item])
    everyone = np.bincount(tensor.coordinates[:, item], weights=tensor.counts, minlength=tensor.shape[item])
    return tuple(
        (name, f"{by_core[code]:,.0f}", f"{everyone[code]:,.0f}", "yes" if i < core_rows else "no")
        for i, (name, code) in enumerate(zip(_names(tensor, item, rows, 60), rows, strict=True))
    )


def _busiest(codes: Numbers, weights: Numbers, most: int) -> Numbers:
    """The codes with the largest sum of weights, largest first."""
    distinct, where = np.unique(codes, return_inverse=True)
    total = np.bincount(where, weights=weights, minlength=len(distinct))
    return distinct[np.lexsort((distinct, -total))][:most]


def _positions(codes: Numbers, wanted: Numbers) -> Numbers:
    order = np.argsort(codes)
    return order[np.searchsorted(codes, wanted, sorter=order)]


def _names(tensor: SparseTensor, mode: int, codes: Numbers, limit: int = 24) -> Row:
    return tuple(harmless(name, limit) for name in tensor.vocabularies[mode].text(codes))


def _first(tensor: SparseTensor, kind: str) -> int | None:
    return next((k for k, v in enumerate(tensor.vocabularies) if v.kind == kind), None)


def _spans(bins: int, width: int, together: int) -> str:
    """So many bins of time, in words."""
    if width * together in UNITS:
        return counted(bins, UNITS[width * together])
    length = f"{together} {plural(UNITS[width])}" if width in UNITS else f"{width * together:,} seconds"
    return f"{bins:,} spans of {length}"


def _date(seconds: int, width: int) -> str:
    text = str(np.datetime64(int(seconds), "s"))
    return text[:10] if width % DAY == 0 else text[:16].replace("T", " ")
