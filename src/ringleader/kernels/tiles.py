"""Matrix algebra whose bits depend neither on the processor, nor on the number of cores, nor on who else uses BLAS.

BLAS libraries choose their order of operations by the processor, and cut large products among their threads; either
gives other last bits. Here the compiled kernels of ``numba/matrices`` add up every sum in one order, however the work
is cut, and threads of our own share it. Small sums are added up in NumPy, term by term, so that whoever only reads a
model need not load a compiler.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.layout import read_only
from ringleader.kernels.protocol import get_backend
from ringleader.runtime.executor import Threads

TILE = 48
"""Rows and columns of a tile of a matrix that is inverted: whole panels of columns."""

FEW = 16
"""Terms of a sum up to which it is made in NumPy."""

SHARED = 4_000_000
"""Terms of a product from which threads share it."""

LANES = 4
"""Numbers that are added at once: the columns that ``graph_times`` takes are multiples of it."""

NOT_DEFINITE = "the matrix is not positive definite"

PART = 1024
"""Rows whose lengths are found at a time: with 500 columns they stay in a processor's cache."""

Matrix = npt.NDArray[np.floating]


class Packed(NamedTuple):
    """The right factor of a product, laid out as the kernels read it.

    panels : (count, K, width) a few columns at a time, the last ones filled up with zeros
    spans  : (count, 2) the first of the K rows of each panel that is not zero, and the first behind the last one
    """

    panels: Matrix
    spans: Numbers

    @property
    def columns(self) -> int:
        """How many there are, with those that fill up the last panel."""
        return int(self.panels.shape[0] * self.panels.shape[2])


def _packed(right: Matrix) -> Packed:
    from ringleader.kernels.numba import matrices

    right = np.ascontiguousarray(right)
    width = matrices.panel_width(right.dtype)
    count = -(-right.shape[1] // width)
    panels, spans = np.zeros((count, right.shape[0], width), right.dtype), np.empty((count, 2), np.int64)
    matrices.pack(right, panels, spans)
    return Packed(panels, spans)


def _added_up(left: Matrix, right: Packed, part: int = 0) -> Matrix:
    """left @ right, with the columns that fill up the last panel; part : as ``numba.matrices.add_product`` has it."""
    from ringleader.kernels.numba import matrices

    left = np.ascontiguousarray(left)
    out = np.zeros((len(left), right.columns), left.dtype)
    threads = Threads() if left.size * right.columns >= SHARED else Threads(1)
    cuts = [len(left) * place // (4 * threads.count) // 4 * 4 for place in range(4 * threads.count)]
    pieces = itertools.pairwise([*(cuts if threads.count > 1 else [0]), len(left)])
    threads.map(lambda some: matrices.add_product(left, (*some, 0), *right, out, (some[0], 0), part), pieces)
    return out


def product(left: Floats, right: Floats) -> Floats:
    """left @ right. What is zero above and below a few columns of ``right`` costs nothing."""
    if len(right) <= FEW:
        total = np.zeros((len(left), right.shape[1]))
        for k, row in enumerate(right):
            total += left[:, k, None] * row
        return total
    return np.ascontiguousarray(_added_up(left, _packed(right))[:, : right.shape[1]], np.float64)


def row_lengths(make_rows: Callable[[slice], npt.NDArray[np.float32]], count: int, root: Floats) -> Floats:
    """Length of each row of X @ root, (count,), in single precision; ``make_rows`` gives a part of the rows of X."""
    # In single precision the squares of very large and very small numbers are lost; powers of two cost no bit.
    exponent = math.frexp(float(np.abs(root).max(initial=0.0)))[1]
    right = _packed(np.ldexp(root, -exponent).astype(np.float32))

    def lengths(start: int) -> Floats:
        rows = make_rows(slice(start, min(start + PART, count)))
        sums = np.square(_added_up(rows, right), dtype=np.float64).sum(axis=1)
        return np.asarray(np.ldexp(np.sqrt(sums), exponent))

    return np.concatenate([*Threads().map(lengths, range(0, count, PART)), np.zeros(0)])


def gram(rows: Floats, weight: Floats, turned: Floats | None = None) -> Floats:
    """rows' diag(weight) rows, symmetric. turned : rows' in one piece, where somebody has it: to turn takes a fifth."""
    from ringleader.kernels.numba import matrices

    root = np.sqrt(weight)
    scaled = rows * root[:, None]
    made = np.empty((rows.shape[1], rows.shape[1]))
    left = scaled.T if turned is None else turned * root
    matrices.mirror(_added_up(left, _packed(scaled), matrices.UPPER), made)
    return made


def times_vector(matrix: Floats, vector: Floats) -> Floats:
    """matrix @ vector."""
    count, width = matrix.shape
    if width <= FEW:
        total = np.zeros(count)
        for column, factor in zip(matrix.T, vector, strict=True):
            total += column * factor
        return total
    from ringleader.kernels.numba import matrices

    out = np.empty(-(-count // 4) * 4)
    matrices.times_vector(np.ascontiguousarray(matrix), np.ascontiguousarray(vector), out)
    return out[:count]


def vector_times(vector: Floats, matrix: Floats) -> Floats:
    """vector @ matrix."""
    total = np.zeros(matrix.shape[1])
    if len(vector) <= FEW:
        for factor, row in zip(vector, matrix, strict=True):
            total += factor * row
        return total
    from ringleader.kernels.numba import matrices

    matrices.vector_times(np.ascontiguousarray(vector), np.ascontiguousarray(matrix), total)
    return total


def graph_times(graph: Any, numbers: Floats) -> Floats:
    """graph @ numbers (m, K) of SciPy's graph (n, m) by rows or columns, with its bits; K is a multiple of LANES."""
    from ringleader.kernels.numba import graphs

    if len(numbers) != graph.shape[1] or numbers.shape[1] % LANES:
        raise ValueError(f"a graph of shape {graph.shape} times numbers of shape {numbers.shape}")
    by_rows, shape = graph.format == "csr", (graph.shape[0], numbers.shape[1])
    made = np.empty(shape) if by_rows else np.zeros(shape)
    product_of = graphs.by_rows if by_rows else graphs.by_columns
    parts = (graph.indptr, graph.indices, graph.data, np.asarray(numbers, np.float64))
    product_of(*(read_only(np.ascontiguousarray(part)) for part in parts), made)
    return made


def graph_through(graph: Any, numbers: Floats) -> Floats:
    """``graph_times(graph.T, graph_times(graph, numbers))`` of a graph by rows, with its bits, in one pass."""
    from ringleader.kernels.numba import graphs

    if graph.format != "csr" or numbers.shape[1] != graphs.WIDTH:
        return graph_times(graph.T, graph_times(graph, numbers))
    if len(numbers) != graph.shape[1]:
        raise ValueError(f"through a graph of shape {graph.shape} with numbers of shape {numbers.shape}")
    made = np.zeros(numbers.shape)
    parts = (graph.indptr, graph.indices, graph.data, np.asarray(numbers, np.float64))
    graphs.through_rows(*(read_only(np.ascontiguousarray(part)) for part in parts), made)
    return made


def load_kernels() -> None:
    """Have the compiled kernels loaded that heads and flows need: the first of a process takes as long as hundreds."""
    get_backend()
    factor = inverse_factor(np.eye(FEW + 1))
    for graph in (sparse.csr_array(factor), sparse.csc_array(factor)):
        graph_times(graph, np.ones((len(factor), LANES)))
    gram(factor, np.ones(len(factor)))


def outer_products(edges: Numbers, left: Floats, right: Floats) -> Floats:
    """Sums of outer products of rows of left (n, K) and right (n, L), (runs, K, L); edges : where each run begins."""
    from ringleader.kernels.numba import matrices

    made = np.zeros((len(edges) - 1, left.shape[1], right.shape[1]))
    matrices.add_outer_products(np.asarray(edges, np.int64), *map(np.ascontiguousarray, (left, right)), made)
    return made


def solve_definite(matrix: Floats, vector: Floats) -> Floats:
    """matrix^-1 vector, of a symmetric positive definite matrix; NaN where it is not finite.

    Where rounding made it singular, a little of its diagonal is added.
    """
    if not np.isfinite(matrix).all():
        return np.full(len(vector), np.nan)
    for share in (0.0, 1e-14, 1e-12, 1e-10):
        try:
            factor = inverse_factor(matrix + np.diag(share * np.diag(matrix)))
            break
        except np.linalg.LinAlgError:
            if share == 1e-10:
                raise
    return vector_times(times_vector(factor, vector), factor)


def cholesky_factor(block: Floats) -> Floats:
    """L, lower triangular, with L L' = block, for a symmetric positive definite block: as Cholesky has it."""
    from ringleader.kernels.numba import matrices

    left = _whole_tiles(block)
    if not matrices.cholesky_factor(left, np.empty((len(left), TILE)), TILE):
        raise np.linalg.LinAlgError(NOT_DEFINITE)
    return np.tril(left[: len(block), : len(block)])


def inverse_factor(block: Floats) -> Floats:
    """K, lower triangular, with K' K = block^-1, for a symmetric positive definite block: its Cholesky factor inverted.

    In one compiled call: heads are fitted side by side, and between calls threads wait for the interpreter's lock.
    """
    from ringleader.kernels.numba import matrices

    left = _whole_tiles(block)
    made = np.zeros(left.shape)
    if not matrices.inverse_factor(left, made, TILE):
        raise np.linalg.LinAlgError(NOT_DEFINITE)
    return np.ascontiguousarray(made[: len(block), : len(block)])


def _whole_tiles(block: Floats) -> Floats:
    """A copy with whole tiles: what fills up the last one must not be singular."""
    size = len(block)
    whole = np.eye(-(-size // TILE) * TILE)
    whole[:size, :size] = block
    return whole
