"""What the head sees of an entity: ranks over the whole population, bent by splines.

An input becomes its rank over all entities (ties share their mean), so its scale means nothing and no label is used.
Each input then has a *linear* column (its normal score) and a few *bends*, the cubic splines of its rank that are left
once constant and straight line are taken out, smoothest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Frozen, Numbers, frozen
from ringleader.errors import SettingsError
from ringleader.kernels.eigen import symmetric_eigen
from ringleader.kernels.elementary import ndtri
from ringleader.kernels.protocol import loaded_kernels
from ringleader.kernels.tiles import FEW, product, times_vector, vector_times
from ringleader.runtime.executor import Threads
from ringleader.runtime.peers import Alone, Peers, gather, together
from ringleader.shares.order import rank_values

Levels = npt.NDArray[np.uint16]
Precision = Literal["float64", "float32"]

TABLE = 2048
"""Most points of the table that maps values of new entities to ranks."""
LEVELS = 65_536
"""Distinct ranks that are told apart."""
CURVE = 4_096
"""Entities from which a curve is found at all levels first, which is a few long sums and not many short ones."""
SHARED = 4_000_000
"""Numbers from which threads share the ranking of a table; of fewer they would wait for the interpreter's lock."""
AT_ONCE, NUMBERS_AT_ONCE = 8, 2**19
"""Columns that several processes rank together at the most, and numbers of each process: an exchange costs them as much
as ranking some thousand numbers, and each number takes 64 bytes while it is ranked."""
INTERCEPT, LINEAR, BEND, EVIDENCE, ASSOCIATION = 0, 1, 2, 3, 4
"""What a column of the design is."""


def checked(features: npt.ArrayLike, names: Sequence[str]) -> Floats:
    """Features as float64 (n, F); says which column is not finite."""
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise SettingsError(f"features have shape {table.shape}, but {len(names)} names; pass one column for each name")
    bad = [j for j, column in enumerate(table.T) if not np.isfinite(column).all()]
    if bad:
        count = int((~np.isfinite(table[:, bad[0]])).sum())
        raise SettingsError(
            f"input {names[bad[0]]!r} has {count} values of {len(table)} that are not finite numbers; fill or drop them"
        )
    return table


@dataclass(frozen=True)
class Ranks(Frozen):
    """How each input is ranked. A rank u in (0, 1) is kept as its level: u = (level + 1/2) / LEVELS.

    offsets : (F + 1,) where the table of each input begins
    values  : sorted values of every input, one input after the other
    places  : their ranks u
    levels  : (n, F) uint16, those of the population itself
    means   : by number of knots, (F, 1 + knots): mean over the population of each input's columns; filled when asked
    peers   : the processes that the rows of the population lie with, each with those of its own entities
    counts  : how many each has
    """

    offsets: Numbers
    values: Floats
    places: Floats
    levels: Levels
    means: Mapping[int, Floats] = field(default_factory=dict, compare=False, repr=False)
    peers: Peers = field(default_factory=Alone, compare=False, repr=False)
    counts: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def among(self, peers: Peers) -> Ranks:
        """The same, where every process has the levels of its own entities."""
        return replace(self, peers=peers, counts=tuple(gather(peers, len(self.levels))))

    @property
    def first(self) -> int:
        """The code of the first entity whose levels are here."""
        return sum(self.counts[: self.peers.rank])

    @property
    def population(self) -> int:
        """How many entities there are."""
        return sum(self.counts) if self.counts else len(self.levels)

    def of(self, features: Floats) -> Levels:
        """Levels (m, F) of other entities: between the population's, and no further out than its ends."""
        made = np.empty(features.shape, np.uint16)
        for j in range(features.shape[1]):
            part = slice(self.offsets[j], self.offsets[j + 1])
            made[:, j] = _level(np.interp(features[:, j], self.values[part], self.places[part]))
        return made

    def column_means(self, knots: int) -> Floats:
        """Mean over the population of the columns of each input, (F, 1 + knots)."""
        if knots not in self.means:
            table, turned, n = basis_table(knots), _turned(knots), self.population
            means = np.zeros((self.levels.shape[1], table.shape[1]))
            for j in range(len(means)):
                if n < CURVE:
                    column = np.concatenate(gather(self.peers, self.levels[:, j]))
                    means[j] = table[column].mean(axis=0) if n else 0.0
                else:
                    own = np.bincount(self.levels[:, j], minlength=LEVELS)
                    counts = np.sum(gather(self.peers, own), axis=0).astype(np.float64)
                    means[j] = times_vector(turned, counts) / n
            self.know({knots: means})
        return self.means[knots]

    def know(self, means: Mapping[int, Floats]) -> None:
        """Means by number of knots, which need not be found any more."""
        object.__setattr__(self, "means", frozen({**self.means, **means}))


def _level(u: Floats) -> Levels:
    return np.clip(np.floor(u * LEVELS), 0, LEVELS - 1).astype(np.uint16)


def rank_all(features: Floats, peers: Peers | None = None) -> Ranks:
    """Rank every column over all its rows, or over those of several processes: (rank - 1/2) / n, ties averaged."""
    peers = Alone() if peers is None else peers
    rows, width = features.shape
    counts = tuple(gather(peers, rows))
    n = max(sum(counts), 1)
    levels = np.empty((rows, width), np.uint16, order="F")

    def rank(j: int, peers: Peers = peers) -> tuple[Floats, Floats]:
        """Fills the levels of a column; its distinct values and their ranks."""
        ranked = rank_values(peers, np.ascontiguousarray(features[:, j]))
        levels[:, j] = _level(ranked.places / n)
        last = max(ranked.total - 1, 0)
        picked = np.unique(np.linspace(0, last, min(TABLE, ranked.total)).astype(np.int64)) - ranked.first
        picked = picked[(picked >= 0) & (picked < len(ranked.distinct))]
        mine = ranked.distinct[picked], ranked.distinct_places[picked] / n
        values, places = (np.concatenate(part) for part in zip(*gather(peers, mine), strict=True))
        return values, places

    if peers.count == 1:
        tables = Threads(None if rows * width >= SHARED else 1).map(rank, range(width))
    else:
        columns = [partial(rank, j) for j in range(width)]
        step = min(max(NUMBERS_AT_ONCE * peers.count // n, 1), AT_ONCE)
        tables = [t for first in range(0, width, step) for t in together(peers, columns[first : first + step])]
    offsets = np.concatenate([[0], np.cumsum([len(values) for values, _ in tables])]).astype(np.int64)
    values = np.concatenate([np.zeros(0), *(values for values, _ in tables)])
    places = np.concatenate([np.zeros(0), *(places for _, places in tables)])
    return Ranks(offsets, values, places, levels, peers=peers, counts=counts)


def side_by_side(*tables: Ranks) -> Ranks:
    """The ranks of several tables of the same entities as those of one."""
    ends = np.cumsum([0, *(table.offsets[-1] for table in tables)])
    offsets = [table.offsets[1:] + end for table, end in zip(tables, ends, strict=False)]
    known = set[int]().union(*(table.means for table in tables))
    return Ranks(
        np.concatenate([[0], *offsets]).astype(np.int64),
        np.concatenate([table.values for table in tables]),
        np.concatenate([table.places for table in tables]),
        np.concatenate([table.levels for table in tables], axis=1),
        {knots: np.concatenate([table.column_means(knots) for table in tables]) for knots in sorted(known)},
        tables[0].peers,
        tables[0].counts,
    )


def cubic_splines(u: Floats, knots: int) -> Floats:
    """The knots + 2 uniform cubic B-splines at u in [0, 1]: shape (n, knots + 2)."""
    from scipy.interpolate import BSpline  # slow to import, and only tables of bases need it

    uniform = np.arange(-3, knots + 3) / (knots - 1)
    return np.asarray(BSpline.design_matrix(np.clip(u, 0.0, 1.0), uniform, 3).toarray())


@lru_cache(maxsize=16)
def bend_map(knots: int) -> Floats:
    """(knots + 2, knots): splines -> bends, orthogonal to constant and line, unit variance in sum over u ~ U(0, 1).

    Bend k has variance in proportion to 1 / (its mean squared second derivative): equal prior variances of the bends
    are then the smoothing prior of a cubic spline.
    """
    grid = (np.arange(4000) + 0.5) / 4000
    splines = cubic_splines(grid, knots)
    straight = np.stack([np.ones_like(grid), np.sqrt(12) * (grid - 0.5)])
    gram = _squared(splines) / len(grid)
    second = np.diff(splines, 2, axis=0) * float(len(grid) * len(grid))
    rough = _squared(second) / len(grid)
    # The splines whose functions are orthogonal to constant and line.
    _, turn = symmetric_eigen(_squared(np.stack([(splines * one[:, None]).sum(axis=0) for one in straight])))
    free = turn[:, :knots]
    size, turn = symmetric_eigen(_between(gram, free))
    free = product(free, turn / np.sqrt(size))  # of unit variance
    bent, turn = symmetric_eigen(_between(rough, free))
    share = (1 / bent) / (1 / bent).sum()
    made = product(free, turn * np.sqrt(share))
    return np.asarray(made * np.where(made.sum(axis=0) < 0, -1.0, 1.0))


def _squared(rows: Floats) -> Floats:
    """rows' rows."""
    return np.stack([(rows * column[:, None]).sum(axis=0) for column in rows.T])


def _between(matrix: Floats, columns: Floats) -> Floats:
    """columns' matrix columns."""
    return product(np.ascontiguousarray(columns.T), product(matrix, columns))


@lru_cache(maxsize=4)
def basis_table(knots: int) -> Floats:
    """(LEVELS, 1 + knots): at each level the normal score and the bends."""
    u = (np.arange(LEVELS) + 0.5) / LEVELS
    table = np.column_stack([ndtri(u), product(cubic_splines(u, knots), bend_map(knots))])
    table.setflags(write=False)
    return table


@lru_cache(maxsize=4)
def _turned(knots: int) -> Floats:
    """``basis_table`` with one row for each of its columns, (1 + knots, LEVELS)."""
    return np.ascontiguousarray(basis_table(knots).T)


@lru_cache(maxsize=8)
def _columns(knots: int, precision: Precision) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """``basis_table`` as normal scores (LEVELS,) and bends (LEVELS, knots), each in one piece."""
    table = basis_table(knots).astype(precision)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1:])


@dataclass(frozen=True)
class Layout(Frozen):
    """Which column of the design is what: the intercept, then for each input its slope, then each one's bends.

    kind   : (P,) INTERCEPT, LINEAR, BEND, EVIDENCE or ASSOCIATION
    source : (P,) the input a column is made of; -1 for the intercept
    centre : (P,) its mean over the population, taken off
    """

    kind: Numbers
    source: Numbers
    centre: Floats
    knots: int

    @cached_property
    def inputs(self) -> Numbers:
        """The inputs that vary, ascending."""
        return frozen(np.unique(self.source[self.source >= 0]))

    def columns(self, j: int) -> tuple[Numbers, Floats]:
        """Where the columns of input ``inputs[j]`` stand, and their table (LEVELS, 1 + knots), not centred."""
        count = len(self.inputs)
        bends = 1 + count + self.knots * j + np.arange(self.knots)
        return np.concatenate([[1 + j], bends]), basis_table(self.knots)

    def rows(self, levels: Levels) -> Floats:
        """Design (m, P) of entities with these levels (m, F)."""
        return np.asarray(self._rows(levels, "float64"), np.float64)

    def single_rows(self, levels: Levels) -> npt.NDArray[np.float32]:
        """The same in single precision."""
        return np.asarray(self._rows(levels, "float32"), np.float32)

    def _rows(self, levels: Levels, precision: Precision) -> npt.NDArray[np.floating]:
        inputs, (slopes, bends) = self.inputs, _columns(self.knots, precision)
        chosen = levels[:, inputs]
        count = len(inputs)
        made = np.empty((len(levels), len(self.kind)), precision)
        made[:, 0] = 1.0
        made[:, 1 : 1 + count] = slopes[chosen]
        made[:, 1 + count :] = bends[chosen].reshape(len(levels), count * self.knots)
        made -= self.centre.astype(precision)
        return made

    def contributions(self, levels: Levels, weights: Floats, inputs: int) -> Floats:
        """What each input adds to the predictor, (m, inputs), 0 on average; an input that does not vary adds 0."""
        made = np.zeros((len(levels), inputs), order="F")
        for name, amounts in self._curves(levels, weights):
            made[:, name] = amounts
        return made

    def predictor(self, levels: Levels, weights: Floats, population: int | None = None) -> Floats:
        """The intercept and what all inputs add, (m,).

        population : of how many entities these are some; the last bits depend on it
        """
        total = np.full(len(levels), weights[0])
        kernels = loaded_kernels() if self.knots < FEW else None
        if kernels is None or (len(levels) if population is None else population) < CURVE:
            for _, amounts in self._curves(levels, weights, population):
                total += amounts
            return total
        table = basis_table(self.knots)
        for j, name in enumerate(self.inputs):
            columns, base = self._columns_and_base(j, weights)
            kernels.add_curve(weights[columns], table, _turned(self.knots), base, levels[:, name], total)
        return total

    def _columns_and_base(self, j: int, weights: Floats) -> tuple[Numbers, float]:
        """Where the columns of input ``inputs[j]`` stand, and what they add on average."""
        columns = self.columns(j)[0]
        return columns, float((self.centre[columns] * weights[columns]).sum())

    def _curves(self, levels: Levels, weights: Floats, population: int | None = None) -> Iterator[tuple[int, Floats]]:
        """Each input that varies, and what it adds, (m,)."""
        count = len(levels) if population is None else population
        for j, name in enumerate(self.inputs):
            columns, base = self._columns_and_base(j, weights)
            if count < CURVE:
                table = basis_table(self.knots)
                yield int(name), times_vector(table[levels[:, name]], weights[columns]) - base
            else:  # the curve first, then where each entity is on it
                curve = vector_times(weights[columns], _turned(self.knots)) - base
                yield int(name), curve.take(levels[:, name])


def lay_out(ranks: Ranks, knots: int, evidence: int | None, association: Sequence[int] = ()) -> Layout:
    """The columns for the inputs that vary; the slopes of ``evidence`` and ``association`` have priors of their own."""
    varies = np.flatnonzero(np.diff(ranks.offsets) > 1)
    linear = np.where(varies == (-1 if evidence is None else evidence), EVIDENCE, LINEAR)
    linear[np.isin(varies, association)] = ASSOCIATION
    kind = np.concatenate([[INTERCEPT], linear, np.full(len(varies) * knots, BEND)]).astype(np.int64)
    source = np.concatenate([[-1], varies, np.repeat(varies, knots)]).astype(np.int64)
    means = ranks.column_means(knots)[varies]
    centre = np.concatenate([[0.0], means[:, 0], means[:, 1:].ravel()])
    return Layout(kind, source, centre, knots)


def pack_ranks(ranks: Ranks) -> dict[str, npt.NDArray[Any]]:
    """Ranks as named arrays."""
    means = {f"rank_means_{knots}": means for knots, means in ranks.means.items()}
    return {
        "rank_offsets": ranks.offsets,
        "rank_values": ranks.values,
        "rank_places": ranks.places,
        "ranks": ranks.levels,
        **means,
    }


def unpack_ranks(arrays: Mapping[str, npt.NDArray[Any]]) -> Ranks:
    """The inverse of ``pack_ranks``."""
    prefix = "rank_means_"
    means = {int(name.removeprefix(prefix)): array for name, array in arrays.items() if name.startswith(prefix)}
    levels = arrays["ranks"]
    if any(levels.strides):  # else they lie elsewhere
        levels = np.asfortranarray(levels)  # read one input at a time
    return Ranks(arrays["rank_offsets"], arrays["rank_values"], arrays["rank_places"], levels, means)


def pack(ranks: Ranks, layout: Layout) -> dict[str, npt.NDArray[Any]]:
    """Ranks and layout as named arrays."""
    own = {"kind": layout.kind, "source": layout.source, "centre": layout.centre}
    return {**pack_ranks(ranks), **own, "knots": np.array([layout.knots], np.int64)}


def unpack(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Ranks, Layout]:
    """The inverse of ``pack``."""
    layout = Layout(arrays["kind"], arrays["source"], arrays["centre"], int(arrays["knots"][0]))
    return unpack_ranks(arrays), layout
