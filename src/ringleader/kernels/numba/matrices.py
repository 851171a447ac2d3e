"""Compiled matrix algebra, with the same bits on every processor: products, Cholesky factors, eigenvectors.

BLAS and LAPACK choose their order of operations by the processor. Here every sum of products goes through its terms in
ascending order, each fused with what is there already (``fma``), one sum in each lane of a register. So the bits do not
depend on how the work is cut, and a term that is zero changes none.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return, misc, no-redef"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ringleader.kernels.numba.elementary import OUTER
from ringleader.kernels.numba.lanes import after, fma, load, load_some, spread, start, store, sums

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""

Kernel = Callable[..., Any]
compiled = cast(Callable[[Kernel], Kernel], njit(**OUTER))
"""numba's decorator, with a type that mypy can follow."""

ROWS, REGISTERS, BYTES = 4, 3, 32
"""A block of sums is so many rows of so many registers of so many bytes: twelve registers, four are left to read."""
DEPTH, PART = 256, 96
"""Terms, and rows, at a time: what is read again and again then stays in a processor's caches."""
UPPER, ALL, LOWER = 1, 0, -1
"""Which part of a product is wanted: blocks that have nothing of it are left as they are."""


def panel_width(kind: Any) -> int:
    """Columns of a panel of numbers of this type."""
    return REGISTERS * BYTES // int(np.dtype(kind).itemsize)


def _block(rows: int, negative: bool) -> Any:
    """c[r, j] += or -= sum over k of a[r, k] b[k, j], of ``rows`` rows and a panel's columns; see ``add_product``."""

    def block(typing: Any, a: Any, a_width: Any, b: Any, depth: Any, c: Any, c_width: Any) -> Any:
        def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
            a, a_width, b, depth, c, c_width = arguments
            number = context.get_data_type(kind.args[0].dtype)
            size = kind.args[0].dtype.bitwidth // 8
            lanes = BYTES // size
            wide = ir.VectorType(number, lanes)
            form = ir.FunctionType(wide, (wide,) * 3)
            name = f"llvm.fma.v{lanes}f{8 * size}"
            fused = cgutils.get_or_insert_function(builder.module, form, name)
            whole, place = ir.IntType(64), ir.IntType(32)

            def read(pointer: Any, kind: Any) -> Any:
                value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
                value.align = size
                return value

            def at(row: int, register: int) -> Any:
                offset = builder.add(builder.mul(whole(row), c_width), whole(register * lanes))
                return builder.gep(c, [offset])

            places = [(row, register) for row in range(rows) for register in range(REGISTERS)]
            totals = {where: cgutils.alloca_once(builder, wide) for where in places}
            for where in places:
                builder.store(read(at(*where), wide), totals[where])
            with cgutils.for_range(builder, depth) as loop:
                first = builder.mul(loop.index, whole(lanes * REGISTERS))
                columns = [
                    read(builder.gep(b, [builder.add(first, whole(register * lanes))]), wide)
                    for register in range(REGISTERS)
                ]
                for row in range(rows):
                    own = builder.add(builder.mul(whole(row), a_width), loop.index)
                    factor = read(builder.gep(a, [own]), number)
                    if negative:
                        factor = builder.fneg(factor)
                    one = builder.insert_element(ir.Constant(wide, ir.Undefined), factor, place(0))
                    every = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(place, lanes), [0] * lanes))
                    for register in range(REGISTERS):
                        total = totals[row, register]
                        builder.store(builder.call(fused, [every, columns[register], builder.load(total)]), total)
            for where in places:
                pointer = builder.bitcast(at(*where), wide.as_pointer())
                builder.store(builder.load(totals[where]), pointer, align=size)
            return context.get_dummy_value()

        return types.void(a, types.intp, b, types.intp, c, types.intp), lower

    def without_compilation(a: Any, a_width: int, b: Any, depth: int, c: Any, c_width: int) -> None:
        width = panel_width(b.dtype)
        for row in range(rows):
            terms = a[row * a_width : row * a_width + depth] @ b[: depth * width].reshape(depth, width)
            c[row * c_width : row * c_width + width] += -terms if negative else terms

    return without_compilation if config.DISABLE_JIT else intrinsic(block)


_add_four, _add_one = _block(ROWS, False), _block(1, False)
_take_four, _take_one = _block(ROWS, True), _block(1, True)


@compiled
def pack(right: Any, panels: Any, spans: Any) -> None:
    """Fill ``panels`` (count, K, width), zeros before, with the columns of ``right`` (K, J), a few at a time.

    spans : (count, 2) the first row of each panel that is not zero, and the first behind the last one.
    """
    width = panels.shape[2]
    for panel in range(len(panels)):
        begin, end = panel * width, min((panel + 1) * width, right.shape[1])
        low, high = right.shape[0], 0
        for k in range(right.shape[0]):
            filled = False
            for j in range(begin, end):
                panels[panel, k, j - begin] = right[k, j]
                filled = filled or right[k, j] != 0
            if filled:
                low, high = min(low, k), k + 1
        spans[panel, 0], spans[panel, 1] = low, high


@compiled
def add_product(
    left: Any, rows: tuple[int, int, int], panels: Any, spans: Any, out: Any, corner: tuple[int, int], part: int
) -> None:
    """out += left @ right, of contiguous matrices; ``right`` is packed.

    rows : (begin, end, column): the rows of ``left``, and where the first of their K columns is
    corner : row and column of ``out`` where the product begins; there are whole panels of columns behind it
    part : UPPER, ALL or LOWER of ``out`` is wanted

    Same as, for k ascending: ``out[i, j] = fma(left[i, k], right[k, j], out[i, j])``.
    """
    begin, end, column = rows
    depth, width = panels.shape[1], panels.shape[2]
    a, b, c, spread_a, spread_c = start(left), start(panels), start(out), left.shape[1], out.shape[1]
    for k in range(0, depth, DEPTH):
        for some in range(begin, end, PART):
            last = min(some + PART, end)
            for panel in range(len(panels)):
                low, high = max(k, spans[panel, 0]), min(k + DEPTH, spans[panel, 1])
                if low >= high:
                    continue
                first = corner[1] + panel * width
                own = after(b, (panel * depth + low) * width)
                for i in range(some, last, ROWS):
                    row = corner[0] + i - begin
                    if (part == UPPER and row >= first + width) or (part == LOWER and row + ROWS <= first):
                        continue
                    factors, place = after(a, i * spread_a + column + low), after(c, row * spread_c + first)
                    if i + ROWS <= last:
                        _add_four(factors, spread_a, own, high - low, place, spread_c)
                    else:
                        for r in range(last - i):
                            factor, target = after(factors, r * spread_a), after(place, r * spread_c)
                            _add_one(factor, spread_a, own, high - low, target, spread_c)


@compiled
def take_product(left: Any, rows: tuple[int, int, int], panels: Any, out: Any, corner: tuple[int, int]) -> None:
    """The lower part of out -= left @ right, as ``add_product``; for few terms, of which none need be skipped."""
    begin, end, column = rows
    depth, width = panels.shape[1], panels.shape[2]
    a, b, c, spread_a, spread_c = start(left), start(panels), start(out), left.shape[1], out.shape[1]
    for some in range(begin, end, PART):
        last = min(some + PART, end)
        for panel in range(len(panels)):
            first = corner[1] + panel * width
            own = after(b, panel * depth * width)
            for i in range(some, last, ROWS):
                row = corner[0] + i - begin
                if row + ROWS <= first:
                    continue
                factors, place = after(a, i * spread_a + column), after(c, row * spread_c + first)
                if i + ROWS <= last:
                    _take_four(factors, spread_a, own, depth, place, spread_c)
                else:
                    for r in range(last - i):
                        factor, target = after(factors, r * spread_a), after(place, r * spread_c)
                        _take_one(factor, spread_a, own, depth, target, spread_c)


@compiled
def times_vector(matrix: Any, vector: Any, out: Any) -> None:
    """The first n of ``out`` = matrix @ vector, of a contiguous matrix (n, m); out : (n rounded up to fours,).

    Each is four sums, of every fourth term, added in pairs.
    """
    count, width = matrix.shape
    whole = width // 4 * 4
    a, x, last = start(matrix), start(vector), count - 1
    for i in range(0, count, 4):  # four rows at a time: one sum alone would wait for itself
        r0, r1 = after(a, i * width), after(a, min(i + 1, last) * width)
        r2, r3 = after(a, min(i + 2, last) * width), after(a, min(i + 3, last) * width)
        t0 = t1 = t2 = t3 = spread(0.0)
        for j in range(0, whole, 4):
            some = load(x, j)
            t0, t1 = fma(load(r0, j), some, t0), fma(load(r1, j), some, t1)
            t2, t3 = fma(load(r2, j), some, t2), fma(load(r3, j), some, t3)
        if whole < width:
            rest = width - whole
            some = load_some(x, whole, rest)
            t0, t1 = fma(load_some(r0, whole, rest), some, t0), fma(load_some(r1, whole, rest), some, t1)
            t2, t3 = fma(load_some(r2, whole, rest), some, t2), fma(load_some(r3, whole, rest), some, t3)
        store(start(out), i, sums(t0, t1, t2, t3))


@compiled
def vector_times(vector: Any, matrix: Any, out: Any) -> None:
    """out += vector @ matrix, of a contiguous matrix (n, m). Same as ``add_product``."""
    count, width = matrix.shape
    whole = width // 4 * 4
    a, y = start(matrix), start(out)
    for i in range(count):
        row, factor = after(a, i * width), spread(vector[i])
        for j in range(0, whole, 4):
            store(y, j, fma(factor, load(row, j), load(y, j)))
        for j in range(whole, width):
            y[j] = fma(vector[i], row[j], y[j])


@compiled
def add_outer_products(edges: Any, left: Any, right: Any, out: Any) -> None:
    """out[n, i, j] += left[r, i] right[r, j] for the rows r of run n, ascending; edges : where each run begins."""
    for run in range(len(out)):
        for row in range(edges[run], edges[run + 1]):
            for i in range(left.shape[1]):
                factor = left[row, i]
                for j in range(right.shape[1]):
                    out[run, i, j] += factor * right[row, j]


@compiled
def invert_factor(block: Any, turned: Any, inverse: Any) -> bool:
    """inverse = L^-1 where L L' = block, symmetric (n, n), of which the lower part is read; False where it has none.

    turned : (n, n) memory, L' afterwards
    """
    size = len(block)
    for i in range(size):
        for j in range(i, size):
            turned[i, j] = block[j, i]
    for k in range(size):
        if not turned[k, k] > 0.0:
            return False
        pivot = math.sqrt(turned[k, k])
        turned[k, k] = pivot
        for j in range(k + 1, size):
            turned[k, j] = turned[k, j] / pivot
        for i in range(k + 1, size):
            factor = turned[k, i]
            for j in range(i, size):
                turned[i, j] = turned[i, j] - factor * turned[k, j]
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 0.0
        inverse[i, i] = 1.0
        for k in range(i):
            factor = turned[k, i]
            for j in range(k + 1):
                inverse[i, j] = inverse[i, j] - factor * inverse[k, j]
        for j in range(i + 1):
            inverse[i, j] = inverse[i, j] / turned[i, i]
    return True


@compiled
def mirror(upper: Any, out: Any) -> None:
    """out (n, n), symmetric, from the upper part of ``upper`` (n, m), m >= n."""
    for i in range(len(out)):
        for j in range(i, len(out)):
            value = upper[i, j] + 0.0  # one zero, not two
            out[i, j] = value
            out[j, i] = value


@compiled
def _packed(right: Any) -> Any:
    """Panels and spans of a contiguous matrix, whole panels of columns (``pack``)."""
    width = REGISTERS * BYTES // 8
    panels = np.zeros((right.shape[1] // width, right.shape[0], width), np.float64)
    spans = np.empty((len(panels), 2), np.int64)
    pack(right, panels, spans)
    return panels, spans


@compiled
def cholesky_factor(left: Any, inverses: Any, tile: int) -> bool:
    """L, lower triangular, into the lower part of left = L L', (n, n), symmetric, n a multiple of ``tile``.

    Tile by tile: a column of the factor, then what it leaves of the columns behind it. False where left is not positive
    definite.

    inverses : (n, tile), those of the tiles of the diagonal afterwards. tile : whole panels of columns
    """
    whole = len(left)
    turned = np.zeros((tile, tile), np.float64)
    for begin in range(0, whole, tile):
        end = begin + tile
        inverse = inverses[begin:end]
        if not invert_factor(left[begin:end, begin:end], turned, inverse):
            return False
        for i in range(tile):
            for j in range(i + 1):
                left[begin + i, begin + j] = turned[j, i]
        if end < whole:
            behind = np.zeros((whole - end, tile), np.float64)
            panels, spans = _packed(np.ascontiguousarray(inverse.T))
            add_product(left, (end, whole, begin), panels, spans, behind, (0, 0), ALL)
            left[end:, begin:end] = behind
            take_product(behind, (0, len(behind), 0), _packed(np.ascontiguousarray(behind.T))[0], left, (end, end))
    return True


@compiled
def inverse_factor(left: Any, made: Any, tile: int) -> bool:
    """made, lower triangular, with made' made = left^-1; left as in ``cholesky_factor``, and used up; made : zeros.

    Row of tiles by row of tiles, from those of the factor. False where left is not positive definite.
    """
    whole = len(left)
    inverses = np.empty((whole, tile), np.float64)
    if not cholesky_factor(left, inverses, tile):
        return False
    for begin in range(0, whole, tile):
        end = begin + tile
        inverse = inverses[begin:end]
        if begin:
            panels, spans = _packed(np.ascontiguousarray(made[begin:end, :begin]))
            rows = np.zeros((tile, begin), np.float64)
            add_product(inverse, (0, tile, 0), panels, spans, rows, (0, 0), ALL)
            made[begin:end, :begin] = -rows
        made[begin:end, begin:end] = inverse
        if end < whole:
            panels, spans = _packed(np.ascontiguousarray(made[begin:end, :end]))
            add_product(left, (end, whole, begin), panels, spans, made, (end, 0), ALL)
    return True
