"""SparseTensor: the distinct cells of a review table, coded, counted and grouped by entity.

Frozen: the arrays are read-only. Cells are sorted by their codes (first mode first), so the
same table gives the same tensor whatever the order of its rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Frozen, frozen
from ringleader.counters import mixed
from ringleader.errors import SettingsError
from ringleader.runtime.mapped import mapped_array, pieces
from ringleader.tables.check import CheckReport
from ringleader.tables.schema import names_a_rating
from ringleader.tensor.vocabulary import Vocabulary
from ringleader.wording import counted, free_name, harmless, html_text

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 2**31 - 1
"""Cells are numbered by int32; a larger tensor is refused."""

UNKNOWN = int(np.iinfo(np.int64).min)
"""In the place of an exact value that nobody holds."""

MAP_FROM_BYTES = 1 << 29
"""Groupings are in memory-mapped files when all of them together are larger than this."""


SORT_ROWS = 1 << 20
"""Rows, or cells, whose exact values are sorted at a time: 40 bytes for each of them."""


class Grouping(NamedTuple):
    """The cells of each entity of one mode.

    The cells of entity n are ``cells[offsets[n]:offsets[n + 1]]``, in ascending order.
    """

    offsets: npt.NDArray[np.int64]  # (n_k + 1,)
    cells: npt.NDArray[np.int32]  # (n_cells,)


@dataclass(frozen=True, eq=False)
class SparseTensor(Frozen):
    """Distinct cells of K modes with their multiplicity.

    Attributes
    ----------
    coordinates : int32 (n_cells, K), C order. Dense codes, 0..n_k-1 in mode k.
    counts : int64 (n_cells,). How many rows of the table fell into each cell.
    vocabularies : one per mode, in the order of the columns of ``coordinates``.
    report : what was read and rejected, if the tensor came from a table.
    exact : int64 (n_reviews,), what the bins of each review leave out: its exact time in microseconds since 1970, or a
        hash where ratings are binned too or there are several times. Cell after cell, ascending within each. UNKNOWN
        where it is not held; None where none is, or where no mode has bins.
    """

    coordinates: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    vocabularies: tuple[Vocabulary, ...]
    report: CheckReport | None = None
    exact: npt.NDArray[np.int64] | None = None
    _groupings: dict[int, Grouping] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.coordinates.ndim != 2 or self.coordinates.shape[1] != len(self.vocabularies):
            raise SettingsError(
                f"coordinates have shape {self.coordinates.shape}, but there are "
                f"{len(self.vocabularies)} vocabularies; give one column per mode"
            )
        if len(self.vocabularies) < 2:
            raise SettingsError("a tensor needs at least two modes")
        if len(set(self.modes)) != len(self.modes):
            raise SettingsError(f"mode names must differ, got {', '.join(self.modes)}")
        if len(self.coordinates) > MAX_CELLS:
            raise SettingsError(f"{len(self.coordinates):,} cells; at most {MAX_CELLS:,} fit")
        if self.counts.shape != (len(self.coordinates),):
            raise SettingsError(f"{len(self.coordinates)} cells need as many counts, got {self.counts.shape}")
        object.__setattr__(self, "coordinates", np.ascontiguousarray(self.coordinates, dtype=np.int32).view())
        object.__setattr__(self, "counts", np.ascontiguousarray(self.counts, dtype=np.int64).view())
        if self.exact is not None:
            if self.exact.shape != (self.n_reviews,):
                raise SettingsError(f"{self.n_reviews} reviews need as many exact values, got {self.exact.shape}")
            object.__setattr__(self, "exact", np.ascontiguousarray(self.exact, dtype=np.int64).view())
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_groupings": {}}

    def __repr__(self) -> str:
        modes = ", ".join(counted(len(v), harmless(v.mode, 30)) for v in self.vocabularies)
        return f"SparseTensor: {counted(self.n_reviews, 'review')}, {self.n_cells:,} of them distinct; {modes}"

    def _repr_html_(self) -> str:
        read = self.report._repr_html_() if self.report is not None else ""
        return f"<p>{html_text(repr(self))}</p>{read}"

    @classmethod
    def from_arrays(
        cls,
        coordinates: npt.ArrayLike,
        modes: Sequence[str] | None = None,
        *,
        counts: npt.ArrayLike | None = None,
        sizes: Sequence[int] | None = None,
    ) -> SparseTensor:
        """A tensor from integer codes: merges equal rows, sorts them, names entities by their code."""
        codes = np.atleast_2d(np.asarray(coordinates))
        if codes.size and (codes.min() < 0 or codes.max() >= MAX_CELLS):
            raise SettingsError("codes must be non-negative and fit into 32 bits")
        weights = np.ones(len(codes), np.int64) if counts is None else np.asarray(counts, np.int64)
        distinct, where = np.unique(codes.astype(np.int32), axis=0, return_inverse=True)
        total = np.zeros(len(distinct), np.int64)
        np.add.at(total, where.reshape(-1), weights)
        names = tuple(modes) if modes is not None else tuple(f"mode{k}" for k in range(codes.shape[1]))
        shape = tuple(sizes) if sizes is not None else tuple(int(m) + 1 for m in codes.max(axis=0))
        vocabularies = tuple(
            Vocabulary.of_ids(name, [str(i) for i in range(n)]) for name, n in zip(names, shape, strict=True)
        )
        return cls(distinct, total, vocabularies)

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes, in order."""
        return tuple(v.mode for v in self.vocabularies)

    @property
    def shape(self) -> tuple[int, ...]:
        """Entities per mode."""
        return tuple(len(v) for v in self.vocabularies)

    @property
    def rating_mode(self) -> int | None:
        """The position of the mode that holds the ratings; None where there are none.

        Of several modes of numbers it is the one called ``rating`` or alike, else the first.
        """
        numbers = [k for k, v in enumerate(self.vocabularies) if v.kind == "number"]
        return next(iter([k for k in numbers if names_a_rating(self.modes[k])] + numbers), None)

    @property
    def n_cells(self) -> int:
        """How many distinct cells there are."""
        return int(self.coordinates.shape[0])

    @property
    def n_reviews(self) -> int:
        """How many rows of the table there are."""
        return sum(int(self.counts[piece].sum()) for piece in pieces(self.counts))

    @property
    def binned_modes(self) -> tuple[str, ...]:
        """Modes in which reviews that differ may be in one cell: their times do, or ratings that are binned."""
        return tuple(v.mode for v in self.vocabularies if v.kind == "time" or v.edges)

    def __len__(self) -> int:
        return self.n_cells

    def mode_index(self, mode: str | int) -> int:
        """The position of a mode, by its name (or position)."""
        if isinstance(mode, (int, np.integer)):
            if not 0 <= mode < len(self.vocabularies):
                raise SettingsError(f"there is no mode {mode}; there are {len(self.vocabularies)}")
            return int(mode)
        if mode not in self.modes:
            raise SettingsError(f"there is no mode {mode!r}; the modes are {', '.join(self.modes)}")
        return self.modes.index(mode)

    def vocabulary(self, mode: str | int) -> Vocabulary:
        """Entities and codes of a mode."""
        return self.vocabularies[self.mode_index(mode)]

    def cells_of_each(self, mode: int, first: int = 0, last: int | None = None) -> npt.NDArray[np.int64]:
        """Cells of each entity of a mode among cells ``first`` to below ``last``, (n_k,), without laying them out."""
        counts = np.zeros(self.shape[mode], np.int64)
        codes = self.coordinates[first:last]
        for piece in pieces(codes):
            if piece.stop - piece.start < len(counts):
                np.add.at(counts, codes[piece, mode], 1)
            else:
                counts += np.bincount(codes[piece, mode], minlength=len(counts))
        return counts

    def first_cells(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The first cell that has such a code of the first mode, or a larger one, for each of some codes."""
        column = self.coordinates[:, 0]
        return np.array([bisect_left(column, code) for code in np.asarray(codes).tolist()], np.int64)

    def degrees(self, mode: str | int) -> npt.NDArray[np.int64]:
        """Cells of each entity of a mode, (n_k,)."""
        return np.diff(self.grouping(mode).offsets)

    def grouping(self, mode: str | int) -> Grouping:
        """The cells of each entity of a mode, built on first use and cached."""
        k = self.mode_index(mode)
        if k not in self._groupings:
            large = self.n_cells * 4 * len(self.modes) > MAP_FROM_BYTES
            self._groupings[k] = _map_to_disk(self, k) if large else group_codes(self.coordinates[:, k], self.shape[k])
        return self._groupings[k]

    def decode(self) -> pd.DataFrame:
        """The distinct table: a row per cell, a column per mode, and ``count`` (``count_`` beside a mode ``count``)."""
        import pandas as pd

        columns: dict[str, Any] = {v.mode: v.decode(self.coordinates[:, k]) for k, v in enumerate(self.vocabularies)}
        columns[free_name("count", columns)] = self.counts.copy()
        return pd.DataFrame(columns)


def group_codes(codes: npt.NDArray[np.int32], size: int) -> Grouping:
    """Counting sort of the cells by code. Same as: ``np.argsort(codes, kind="stable")``."""
    from scipy.sparse import coo_array

    n = len(codes)
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=size), out=offsets[1:])
    # The conversion from coordinates to compressed rows is the counting sort we need, in C.
    numbers = np.arange(n, dtype=np.int32)
    rows = coo_array((np.empty(n, np.bool_), (codes, numbers)), shape=(size, n))
    rows.has_canonical_format = True
    cells = rows.tocsr().indices.astype(np.int32, copy=False)
    return frozen(Grouping(offsets, cells))


def exact_values(tensor: SparseTensor) -> npt.NDArray[np.int64]:
    """``tensor.exact``; UNKNOWN for every review where there is none."""
    return np.full(tensor.n_reviews, UNKNOWN) if tensor.exact is None else tensor.exact


def exact_column(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64] | None:
    """Values before binning as one number for each row: a single time as it is, else a hash; None without any."""
    if not columns:
        return None
    if len(columns) == 1 and columns[0].dtype.kind == "i":
        return columns[0]
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        number = column if column.dtype.kind == "i" else column + 0.0  # there are two zeros
        key = mixed(key ^ number.view(np.uint64)) + np.uint64(1)
    hashed = key.view(np.int64)
    hashed[hashed == UNKNOWN] += 1
    return hashed


def sort_within_cells(exact: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
    """Sorts the exact values of each cell, in place. Most cells have one.

    A piece of the rows at a time, so that what is needed beside them does not grow with the table.
    Same as: ``exact[:] = exact[np.lexsort((exact, np.repeat(np.arange(len(counts)), counts)))]``
    """
    begin = 0  # of the rows before the piece
    for first in range(0, len(counts), SORT_ROWS):
        some = counts[first : first + SORT_ROWS]
        ends, done = begin + np.cumsum(some), 0
        while done < len(some):
            last = max(done + 1, int(np.searchsorted(ends, begin + SORT_ROWS, side="right")))
            piece = exact[begin : ends[last - 1]]
            if last == done + 1:
                piece.sort()
            else:
                _sort_piece(piece, some[done:last])
            begin, done = int(ends[last - 1]), last


def _sort_piece(exact: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
    repeated = counts > 1
    rows = np.repeat(repeated, counts)
    values, cells = exact[rows], np.repeat(np.arange(np.count_nonzero(repeated)), counts[repeated])
    exact[rows] = values[np.lexsort((values, cells))]


def _map_to_disk(tensor: SparseTensor, k: int) -> Grouping:
    """The same, with the large array in a file that goes when the tensor goes."""
    grouping = group_codes(np.ascontiguousarray(tensor.coordinates[:, k]), tensor.shape[k])
    cells = mapped_array((tensor.n_cells,), np.int32)
    cells[:] = grouping.cells
    return frozen(Grouping(grouping.offsets, cells))


def mapped(
    n_cells: int, n_modes: int, n_reviews: int, folder: Path
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Coordinates, counts and exact values of zeros in memory-mapped files, for tables larger than memory."""
    coordinates, counts = mapped_array((n_cells, n_modes), np.int32, folder), mapped_array((n_cells,), np.int64, folder)
    return coordinates, counts, mapped_array((n_reviews,), np.int64, folder)
