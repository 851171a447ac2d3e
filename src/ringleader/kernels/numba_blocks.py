"""Compiled blocks: gather an entity's entries, build its gradient and curvature, solve, step.

Entries are gathered into a small transposed buffer (rank x BUFFER), so that every sum over entries
runs along contiguous memory. Helpers live beside their callers: numba's disk cache does not see changes
in other files.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.kernels.blocks import CHUNK, Blocks, Floats, Rule, Statistics, Terms, View
from ringleader.kernels.intrinsics import as_float, prefetch

BUFFER = 64  # entries gathered before they are summed; at least m + 1
FAST = {"reassoc", "contract", "nsz", "arcp"}  # never nnan or ninf: they would hide a runaway fit
ROUNDS = 40
PASSES = 8  # coordinate passes before the free coordinates are solved together
TOLERANCE = 1e-9
TINY = 1e-30  # below it a coordinate is zero: products of tiny numbers are slow and mean nothing
INNER: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": FAST,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
# Called per entry: a call would pass every array by value and count references, which costs more than the work.
INLINED: dict[str, Any] = {**INNER, "forceinline": True}
OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": FAST, "nogil": True}


class Labels(NamedTuple):
    """Label terms of the mode, and where their cavity rows go."""

    terms: Terms
    cavity: Any  # (n_terms, R), or (0, R) where not wanted


class Solver(NamedTuple):
    """Memory of the small solver, all of the rank."""

    point: Any
    residual: Any
    change: Any
    packed: Any
    free: Any
    chosen: Any
    factor: Any  # (R, R)


class Work(NamedTuple):
    """One task's own memory. P is the rank rounded up to a multiple of four."""

    columns: Any  # (P, BUFFER): design rows c_i, transposed
    weighted: Any  # (P, BUFFER)
    entries: Any  # (5, BUFFER): weight, y, phi, weight * curvature, weight * residual
    rows: Any  # (2 BUFFER, K + m): factor rows of the cells being gathered
    base: Any  # (P,)
    own: Any  # (P,): x, the entity's row
    curvature: Any  # (P, P), upper triangle
    gradient: Any  # (P,)


@njit(**INNER)
def _new_work(rank: int, width: int) -> Work:
    padded = (rank + 3) // 4 * 4
    return Work(
        np.zeros((padded, BUFFER)),
        np.zeros((padded, BUFFER)),
        np.zeros((5, BUFFER)),
        np.zeros((2 * BUFFER, width), np.int64),
        np.zeros(padded),
        np.zeros(padded),
        np.zeros((padded, padded)),
        np.zeros(padded),
    )


@njit(**INNER)
def _new_solver(rank: int) -> Solver:
    return Solver(
        np.zeros(rank),
        np.zeros(rank),
        np.zeros(rank),
        np.zeros(rank),
        np.ones(rank, np.bool_),
        np.zeros(rank, np.int64),
        np.zeros((rank, rank)),
    )


@njit(**INLINED)
def _sigma_and_weight(phi: float, curvature: int) -> tuple[float, float]:
    """sigma(phi), and N (curvature 1) or E[omega] (curvature 0). Branch-free, so that loops over entries vectorise."""
    size = min(abs(phi), 700.0)
    # exp(-size) = 2^-n exp(rest): the library's exp would be one call per entry.
    n = np.int32(size * 1.4426950408889634 + 0.5)
    rest = n * 0.693147180369123816490 - size + n * 1.90821492927058770002e-10
    decay = 1.0 + rest * (1.0 + rest * (1 / 2 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120 + rest * (
        1 / 720 + rest * (1 / 5040 + rest * (1 / 40320 + rest * (1 / 362880 + rest * (1 / 3628800 + rest * (
        1 / 39916800 + rest * (1 / 479001600))))))))))))  # fmt: skip
    decay *= as_float((1023 - np.int64(n)) << 52)
    larger = 1.0 / (1.0 + decay)
    sigma = larger if phi >= 0.0 else decay * larger
    square = min(size * size, 1e-4)
    near = 0.25 - square / 48.0 + square * square / 480.0
    far = (larger - 0.5) / max(size, 0.01)
    omega = near if size < 0.01 else far
    return sigma, (decay * larger * larger if curvature == 1 else omega)


@njit(**INNER)
def _flush(work: Work, count: int, rule: Rule) -> None:
    """Add the gathered entries to the gradient and to the upper triangle of the curvature."""
    if count == 0:
        return
    columns, weighted, entries = work.columns, work.weighted, work.entries
    padded = columns.shape[0]
    full = (count + 3) // 4 * 4
    for b in range(count, full):
        entries[0, b] = 0.0
        entries[1, b] = 0.0
        for r in range(padded):
            columns[r, b] = 0.0
    for b in range(full):
        entries[2, b] = 0.0
    for r in range(padded):
        x = work.own[r]
        for b in range(full):
            entries[2, b] += x * columns[r, b]
    for b in range(full):
        phi = entries[2, b]
        sigma, omega = _sigma_and_weight(phi, rule.curvature)
        entries[3, b] = entries[0, b] * omega
        entries[4, b] = entries[0, b] * (entries[1, b] - sigma) * rule.half
    for r in range(padded):
        total = 0.0
        for b in range(full):
            total += entries[4, b] * columns[r, b]
            weighted[r, b] = entries[3, b] * columns[r, b]
        work.gradient[r] += total
    curvature = work.curvature
    for r in range(0, padded, 2):
        for s in range(r // 4 * 4, padded, 4):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for b in range(full):
                u, v = weighted[r, b], weighted[r + 1, b]
                c0, c1, c2, c3 = columns[s, b], columns[s + 1, b], columns[s + 2, b], columns[s + 3, b]
                a0 += u * c0
                a1 += u * c1
                a2 += u * c2
                a3 += u * c3
                b0 += v * c0
                b1 += v * c1
                b2 += v * c2
                b3 += v * c3
            curvature[r, s] += a0
            curvature[r, s + 1] += a1
            curvature[r, s + 2] += a2
            curvature[r, s + 3] += a3
            curvature[r + 1, s] += b0
            curvature[r + 1, s + 1] += b1
            curvature[r + 1, s + 2] += b2
            curvature[r + 1, s + 3] += b3


@njit(**INLINED)
def _base(view: View, rows: Any, count: int, base: Any) -> None:
    """base = lambda times the factor rows ``rows[:count]``."""
    factors, lambdas = view.factors, view.component_weights
    rank = factors.shape[1]
    if count == 0:
        for r in range(rank):
            base[r] = lambdas[r]
    elif count == 1:
        first = rows[0]
        for r in range(rank):
            base[r] = lambdas[r] * factors[first, r]
    else:
        first, second = rows[0], rows[1]
        for r in range(rank):
            base[r] = lambdas[r] * factors[first, r] * factors[second, r]
    for k in range(2, count):
        first = rows[k]
        for r in range(rank):
            base[r] *= factors[first, r]


@njit(**INLINED)
def _locate(view: View, cell: int, mode: int, rows: Any) -> int:
    """Factor rows of a cell: the other modes first (returns how many), then the contrast entities."""
    modes = len(view.starts)
    count = 0
    for k in range(modes):
        if k != mode and k != view.contrast:
            rows[count] = view.starts[k] + view.tuples[cell, k]
            count += 1
    if mode != view.contrast:
        start = view.starts[view.contrast]
        rows[count] = start + view.tuples[cell, view.contrast]
        for j in range(modes, view.tuples.shape[1]):
            rows[count + 1 + j - modes] = start + view.tuples[cell, j]
    return count


@njit(**INLINED)
def _fetch_rows(view: View, rows: Any, count: int) -> None:
    """Prefetch the factor rows ``rows[:count]``."""
    line = 64 // view.factors.itemsize
    for k in range(count):
        for r in range(0, view.factors.shape[1], line):
            prefetch(view.factors, rows[k], r)


@njit(**INLINED)
def _fetch_tuples(view: View, cells: Any, first: int, last: int) -> None:
    for p in range(first, min(last, len(cells))):
        prefetch(view.tuples, np.int64(cells[p]), 0)


@njit(**INNER)
def _gather(view: View, mode: int, cells: Any, work: Work, rule: Rule) -> None:
    """Sum ``cells`` and their negatives into a block outside the contrast mode.

    While one batch is summed, the rows of the next and the tuples of the one after it are on their way.
    """
    factors, columns, base, entries = view.factors, work.columns, work.base, work.entries
    rank = factors.shape[1]
    negatives = view.tuples.shape[1] - len(view.starts)
    batch = BUFFER // (negatives + 1)
    uniform = len(view.weights) == 1
    share = 1.0 / max(negatives, 1)
    others, half = 0, 0
    _fetch_tuples(view, cells, 0, 2 * batch)
    for first in range(-batch, len(cells), batch):
        following = first + batch
        other = BUFFER - half
        for p in range(min(batch, len(cells) - following)):
            others = _locate(view, cells[following + p], mode, work.rows[other + p])
            _fetch_rows(view, work.rows[other + p], others + negatives + 1)
        _fetch_tuples(view, cells, following + batch, following + 2 * batch)
        filled = 0
        for p in range(min(batch, len(cells) - first) if first >= 0 else 0):
            weight = view.weights[0] if uniform else view.weights[cells[first + p]]
            rows = work.rows[half + p]
            if weight == 0.0:
                continue
            _base(view, rows, others, base)
            for j in range(negatives + 1):
                row = rows[others + j]
                for r in range(rank):
                    columns[r, filled] = base[r] * factors[row, r]
                entries[0, filled] = weight if j == 0 else weight * share
                entries[1, filled] = 1.0 if j == 0 else 0.0
                filled += 1
        half = other
        _flush(work, filled, rule)


@njit(**INNER)
def _gather_contrast(view: View, own: Any, drawn: Any, work: Work, rule: Rule) -> None:
    """Sum the cells ``own`` (y = 1) and the negatives of ``drawn`` (y = 0) into a block of the contrast mode."""
    columns, base, entries = work.columns, work.base, work.entries
    rank = view.factors.shape[1]
    uniform = len(view.weights) == 1
    share = 1.0 / max(view.tuples.shape[1] - len(view.starts), 1)
    total = len(own) + len(drawn)
    others, half = 0, 0
    _fetch_tuples(view, own, 0, 2 * BUFFER)
    _fetch_tuples(view, drawn, 0, 2 * BUFFER)
    for first in range(-BUFFER, total, BUFFER):
        following = first + BUFFER
        other = BUFFER - half
        for p in range(following, min(following + BUFFER, total)):
            cell = own[p] if p < len(own) else drawn[p - len(own)]
            others = _locate(view, cell, view.contrast, work.rows[other + p - following])
            _fetch_rows(view, work.rows[other + p - following], others)
        _fetch_tuples(view, drawn, following + BUFFER - len(own), following + 2 * BUFFER - len(own))
        filled = 0
        for p in range(first, min(following, total) if first >= 0 else first):
            cell = own[p] if p < len(own) else drawn[p - len(own)]
            weight = view.weights[0] if uniform else view.weights[cell]
            if weight == 0.0:
                continue
            _base(view, work.rows[half + p - first], others, base)
            for r in range(rank):
                columns[r, filled] = base[r]
            entries[0, filled] = weight if p < len(own) else weight * share
            entries[1, filled] = 1.0 if p < len(own) else 0.0
            filled += 1
        half = other
        _flush(work, filled, rule)


@njit(**INLINED)
def _clear(work: Work) -> None:
    for r in range(len(work.gradient)):
        work.gradient[r] = 0.0
        for s in range(len(work.gradient)):
            work.curvature[r, s] = 0.0


@njit(**INNER)
def _accumulate(view: View, blocks: Blocks, e: int, piece: tuple[int, int], work: Work, rule: Rule) -> None:
    """Set the work's gradient and curvature to the sums over positions ``piece`` of block e."""
    rank = view.factors.shape[1]
    row = view.starts[blocks.mode] + blocks.entities[e]
    for r in range(rank):
        work.own[r] = view.factors[row, r]
    _clear(work)
    begin, length = blocks.begins[e], blocks.ends[e] - blocks.begins[e]
    first, last = piece
    if blocks.mode != view.contrast:
        _gather(view, blocks.mode, blocks.cells[begin + first : begin + last], work, rule)
        return
    shift = blocks.drawn_begins[e] - length
    own = blocks.cells[begin + min(first, length) : begin + min(last, length)]
    drawn = blocks.drawn_cells[shift + max(first, length) : shift + max(last, length)]
    _gather_contrast(view, own, drawn, work, rule)


@njit(**OUTER)
def sum_chunks(view: View, blocks: Blocks, rule: Rule, sums: Any, span: tuple[int, int]) -> None:
    """Sums over pieces ``span`` of the long blocks into sums (n_chunks, P + 1, P): curvature, then gradient."""
    work = _new_work(view.factors.shape[1], view.tuples.shape[1])
    padded = len(work.gradient)
    for c in range(span[0], span[1]):
        piece = (blocks.chunks[c, 1], blocks.chunks[c, 2])
        _accumulate(view, blocks, blocks.chunks[c, 0], piece, work, rule)
        for s in range(padded):
            for r in range(padded):
                sums[c, r, s] = work.curvature[r, s]
            sums[c, padded, s] = work.gradient[s]


@njit(**INNER)
def _moments(view: View, blocks: Blocks, e: int, sums: Any, work: Work, rule: Rule) -> None:
    """Gradient and curvature of block e over all its entries; the long ones add up their pieces in order."""
    rank = view.factors.shape[1]
    padded = len(work.gradient)
    if blocks.first_chunk[e] == blocks.first_chunk[e + 1]:
        length = blocks.ends[e] - blocks.begins[e] + blocks.drawn_ends[e] - blocks.drawn_begins[e]
        _accumulate(view, blocks, e, (0, length), work, rule)
    else:
        row = view.starts[blocks.mode] + blocks.entities[e]
        for r in range(rank):
            work.own[r] = view.factors[row, r]
        _clear(work)
        for c in range(blocks.first_chunk[e], blocks.first_chunk[e + 1]):
            for r in range(padded):
                work.gradient[r] += sums[c, padded, r]
                for s in range(padded):
                    work.curvature[r, s] += sums[c, r, s]
    scale = blocks.scale[e]
    if scale != 1.0:
        for r in range(rank):
            work.gradient[r] *= scale
            for s in range(r, rank):
                work.curvature[r, s] *= scale


@njit(**INNER)
def _mirror(curvature: Any, rank: int) -> None:
    """Copy the upper triangle to the lower one."""
    for r in range(rank):
        for s in range(r + 1, rank):
            curvature[s, r] = curvature[r, s]


@njit(**INNER)
def _factorise(curvature: Any, room: Solver) -> int:
    """Cholesky of the free coordinates' block, U'U, packed to the front of ``room.factor``; returns how many."""
    factor, chosen = room.factor, room.chosen
    count = 0
    for r in range(len(room.free)):
        if room.free[r]:
            chosen[count] = r
            count += 1
    for i in range(count):
        for j in range(i, count):
            factor[i, j] = curvature[chosen[i], chosen[j]]
    for first in range(0, count, 4):  # four pivots at a time: fewer, fatter loops over the rows below
        last = min(first + 4, count)
        for i in range(first, last):
            # Only rounding can make a pivot vanish: the prior keeps the block positive.
            pivot = math.sqrt(max(factor[i, i], 1e-14 * curvature[chosen[i], chosen[i]] + 1e-300))
            inverse = 1.0 / pivot
            factor[i, i] = inverse
            for j in range(i + 1, count):
                factor[i, j] *= inverse
            for k in range(i + 1, last):
                share = factor[i, k]
                for j in range(k, count):
                    factor[k, j] -= share * factor[i, j]
        for k in range(last, count):
            a, b, c, d = factor[first, k], factor[first + 1, k], factor[first + 2, k], factor[first + 3, k]
            for j in range(k, count):
                upper = a * factor[first, j] + b * factor[first + 1, j]
                factor[k, j] -= upper + c * factor[first + 2, j] + d * factor[first + 3, j]
    return count


@njit(**INNER)
def _substitute(residual: Any, count: int, room: Solver, out: Any) -> None:
    """out = solution for the free coordinates (0 elsewhere), from the factor left by ``_factorise``."""
    factor, chosen, packed = room.factor, room.chosen, room.packed
    for i in range(count):
        packed[i] = residual[chosen[i]]
    for i in range(count):
        packed[i] *= factor[i, i]
        for j in range(i + 1, count):
            packed[j] -= packed[i] * factor[i, j]
    for i in range(count - 1, -1, -1):
        total = packed[i]
        for j in range(i + 1, count):
            total -= factor[i, j] * packed[j]
        packed[i] = total * factor[i, i]
    for r in range(len(out)):
        out[r] = 0.0
    for i in range(count):
        out[chosen[i]] = packed[i]


@njit(**INNER)
def _coordinate_pass(curvature: Any, residual: Any, point: Any, step: float) -> float:
    """One pass of coordinate ascent over point >= 0; returns the largest relative move."""
    rank = len(point)
    largest, size = 0.0, 0.0
    for j in range(rank):
        old = point[j]
        new = max(old + residual[j] / curvature[j, j], 0.0)
        move = step * (new - old)
        if move != 0.0:
            point[j] = old + move
            for r in range(rank):
                residual[r] -= move * curvature[j, r]
        largest = max(largest, abs(move))
        size = max(size, new)
    return largest / (size + 1e-300)


@njit(**INNER)
def _solve(curvature: Any, gradient: Any, own: Any, nonnegative: bool, room: Solver) -> None:
    """point = argmax over y (>= 0) of g'(y - x) - (y - x)' F (y - x) / 2, never worse than x itself."""
    rank = len(own)
    point, residual, free, change = room.point, room.residual, room.free, room.change
    for r in range(rank):
        point[r] = own[r]
        residual[r] = gradient[r]
        free[r] = True
    if not nonnegative:
        _substitute(residual, _factorise(curvature, room), room, change)
        for r in range(rank):
            point[r] += change[r]
        return
    for _round in range(ROUNDS):
        for _pass in range(PASSES):
            if _coordinate_pass(curvature, residual, point, 1.0) < TOLERANCE:
                return
        # The passes found which coordinates are free: solve those exactly, up to the first that hits zero.
        for r in range(rank):
            free[r] = point[r] > 0.0
        _substitute(residual, _factorise(curvature, room), room, change)
        share = 1.0
        for r in range(rank):
            if change[r] < 0.0 and -share * change[r] > point[r]:
                share = point[r] / -change[r]
        for r in range(rank):
            if change[r] != 0.0:
                moved = point[r] + share * change[r]
                if moved < 1e-14 * point[r]:
                    moved = 0.0
                move = moved - point[r]
                point[r] = moved
                for s in range(rank):
                    residual[s] -= move * curvature[r, s]


@njit(**INNER)
def _variance(x: float, rule: Rule) -> float:
    """Prior variance: fixed, or the mode of its inverse gamma given x (model.md section 3)."""
    if rule.shape == 0.0:
        return rule.variance
    return max((x * x + 2.0 * rule.scale) / (2.0 * rule.shape + 3.0), rule.floor)


@njit(**INNER)
def _add_terms(terms: Terms, entity: int, own: Any, rule: Rule, curvature: Any, gradient: Any) -> None:
    """Add the labels of one entity to its block."""
    rank = len(own)
    for term in range(terms.offsets[entity], terms.offsets[entity + 1]):
        beta = terms.beta[terms.target[term]]
        noise = terms.noise[terms.target[term]]
        psi = beta[0]
        for r in range(rank):
            psi += beta[r + 1] * own[r]
        if noise > 0.0:
            weight, error = 1.0 / noise, (terms.value[term] - psi) / noise
        else:
            sigma, weight = _sigma_and_weight(psi, rule.curvature)
            error = (1.0 if terms.value[term] > 0.0 else 0.0) - sigma
        for r in range(rank):
            gradient[r] += rule.half * error * beta[r + 1]
            for s in range(rank):
                curvature[r, s] += weight * beta[r + 1] * beta[s + 1]


@njit(**INNER)
def _carry(statistics: Statistics, entity: int, work: Work, decay: float) -> None:
    """Blend the block's sums into its carried statistics, and put those in the place of the sums."""
    rank = statistics.first.shape[1]
    second, first = statistics.second[entity], statistics.first[entity]
    place, seen = 0, 0.0
    for r in range(rank):
        seen += second[place]
        place += rank - r
    share = decay if seen > 0.0 else 1.0
    for r in range(rank):
        linear = work.gradient[r]
        for s in range(rank):
            linear += work.curvature[r, s] * work.own[s]
        first[r] += share * (linear - first[r])
    place = 0
    for r in range(rank):
        for s in range(r, rank):
            second[place] += share * (work.curvature[r, s] - second[place])
            work.curvature[r, s] = second[place]
            work.curvature[s, r] = second[place]
            place += 1
    for r in range(rank):
        work.gradient[r] = first[r]
        for s in range(rank):
            work.gradient[r] -= work.curvature[r, s] * work.own[s]


@njit(**INNER)
def _scalar_pass(curvature: Any, residual: Any, point: Any, step: float) -> None:
    """One pass of coordinate ascent without bounds."""
    for j in range(len(point)):
        move = step * residual[j] / curvature[j, j]
        point[j] += move
        for r in range(len(point)):
            residual[r] -= move * curvature[j, r]


@njit(**INLINED)
def _gain(curvature: Any, gradient: Any, change: Any) -> float:
    """What a change gains on the quadratic bound: g'd - d' F d / 2."""
    gain = 0.0
    for r in range(len(change)):
        pull = gradient[r] - 0.5 * curvature[r, r] * change[r]
        for s in range(r + 1, len(change)):
            pull -= curvature[r, s] * change[s]
        gain += pull * change[r]
    return gain


@njit(**INNER)
def _move(curvature: Any, gradient: Any, own: Any, rule: Rule, rate: float, room: Solver) -> None:
    """Put the new row of a block into ``room.point``."""
    rank = len(own)
    step = rule.step * rate
    point, change = room.point, room.change
    if rule.action == 1:
        if rate == 0.0:
            trace = 0.0
            for r in range(rank):
                trace += curvature[r, r]
            step = rule.step / trace
        for r in range(rank):
            point[r] = own[r] + step * gradient[r]
            if rule.nonnegative:
                point[r] = max(point[r], 0.0)
        return
    if rule.action == 2:
        for r in range(rank):
            point[r] = own[r]
            room.residual[r] = gradient[r]
        if rule.nonnegative:
            _coordinate_pass(curvature, room.residual, point, step)
        else:
            _scalar_pass(curvature, room.residual, point, step)
        return
    # model.md section 3: solve over the free coordinates, step, clip at zero.
    for r in range(rank):
        room.free[r] = not rule.nonnegative or own[r] > 0.0 or gradient[r] > 0.0
    _substitute(gradient, _factorise(curvature, room), room, change)
    for r in range(rank):
        change[r] *= step
        if rule.nonnegative and own[r] + change[r] < TINY:
            change[r] = -own[r]
    if rule.nonnegative and _gain(curvature, gradient, change) < 0.0:
        # Clipping lost what the step gained: go towards the constrained optimum instead, which cannot lose.
        _mirror(curvature, rank)
        _solve(curvature, gradient, own, True, room)
        for r in range(rank):
            change[r] = step * (point[r] - own[r])
    for r in range(rank):
        point[r] = own[r] + change[r]


@njit(**INNER)
def _finish(
    view: View, blocks: Blocks, e: int, rule: Rule, labels: Labels, statistics: Statistics, work: tuple[Work, Solver]
) -> None:
    """Prior, labels and step of block e, whose sums are in ``work``; writes its row."""
    terms, cavity = labels
    sums, room = work
    rank = view.factors.shape[1]
    entity = blocks.entities[e]
    labelled = len(terms.offsets) > 1 and terms.offsets[entity + 1] > terms.offsets[entity]
    if rule.action == 2 or labelled:
        _mirror(sums.curvature, rank)
    if rule.action == 2:
        _carry(statistics, entity, sums, rule.decay)
    own, gradient, curvature = sums.own[:rank], sums.gradient[:rank], sums.curvature
    for r in range(rank):
        variance = _variance(own[r], rule)
        gradient[r] -= own[r] / variance
        curvature[r, r] += 1.0 / variance
    if labelled:
        if len(cavity) > 0:
            _solve(curvature, gradient, own, rule.nonnegative, room)
            for r in range(rank):
                cavity[terms.offsets[entity], r] = room.point[r]
        _add_terms(terms, entity, own, rule, curvature, gradient)
    _move(curvature, gradient, own, rule, blocks.rate[e], room)
    row = view.starts[blocks.mode] + entity
    for r in range(rank):
        view.factors[row, r] = room.point[r]


@njit(**OUTER)
def sweep_blocks(
    view: View, blocks: Blocks, rule: Rule, labels: Labels, statistics: Statistics, sums: Floats, span: tuple[int, int]
) -> None:
    """Update the blocks of tasks ``span`` in place. Same as: ``reference.sweep_blocks`` of those blocks."""
    rank = view.factors.shape[1]
    work, room = _new_work(rank, view.tuples.shape[1]), _new_solver(rank)
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _moments(view, blocks, e, sums, work, rule)
        _finish(view, blocks, e, rule, labels, statistics, (work, room))


@njit(**OUTER)
def block_moments(view: View, blocks: Blocks, rule: Rule, sums: Floats, out: Any, span: tuple[int, int]) -> None:
    """Gradient and curvature of the blocks of tasks ``span``. Same as: ``reference.block_moments``."""
    gradient, curvature = out
    rank = view.factors.shape[1]
    work = _new_work(rank, view.tuples.shape[1])
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _moments(view, blocks, e, sums, work, rule)
        _mirror(work.curvature, rank)
        for r in range(rank):
            gradient[e, r] = work.gradient[r]
            for s in range(rank):
                curvature[e, r, s] = work.curvature[r, s]


@njit(**OUTER)
def lambda_moments(view: View, cells: Any, rule: Rule, sums: Floats, span: tuple[int, int]) -> None:
    """Sums of lambda's block over pieces ``span`` of cells, (n_pieces + 1, P + 1, P).

    ``view.component_weights`` must be ones; lambda itself comes in the last row of the last piece.
    Same as: ``reference.lambda_moments``, piece by piece.
    """
    rank = view.factors.shape[1]
    work = _new_work(rank, view.tuples.shape[1])
    padded = len(work.gradient)
    for r in range(rank):
        work.own[r] = sums[len(sums) - 1, padded, r]
    for c in range(span[0], span[1]):
        _clear(work)
        _gather(view, -1, cells[c * CHUNK : (c + 1) * CHUNK], work, rule)
        for s in range(padded):
            for r in range(padded):
                sums[c, r, s] = work.curvature[r, s]
            sums[c, padded, s] = work.gradient[s]


@njit(**OUTER)
def leave_one_out(view: View, blocks: Blocks, rule: Rule, sums: Floats, out: Any, span: tuple[int, int]) -> None:
    """phi, leverage and weight of the cells of tasks ``span``. Same as: ``reference.leave_one_out``."""
    phis, leverages, omegas = out
    rank = view.factors.shape[1]
    work, room = _new_work(rank, view.tuples.shape[1]), _new_solver(rank)
    columns = np.zeros(rank)
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _moments(view, blocks, e, sums, work, rule)
        for r in range(rank):
            work.curvature[r, r] += 1.0 / _variance(work.own[r], rule)
            room.free[r] = True
        count = _factorise(work.curvature, room)
        for p in range(blocks.begins[e], blocks.ends[e]):
            cell = blocks.cells[p]
            others = _locate(view, cell, blocks.mode, work.rows[0])
            _base(view, work.rows[0], others, work.base)
            if blocks.mode != view.contrast:
                for r in range(rank):
                    work.base[r] *= view.factors[work.rows[0, others], r]
            phi = 0.0
            for r in range(rank):
                phi += work.base[r] * work.own[r]
                columns[r] = 0.0 if rule.nonnegative and work.own[r] == 0.0 else work.base[r]
            _substitute(columns, count, room, room.change)
            leverage = 0.0
            for r in range(rank):
                leverage += columns[r] * room.change[r]
            weight = view.weights[0] if len(view.weights) == 1 else view.weights[cell]
            phis[cell] = phi
            leverages[cell] = leverage
            omegas[cell] = weight * _sigma_and_weight(phi, rule.curvature)[1]
