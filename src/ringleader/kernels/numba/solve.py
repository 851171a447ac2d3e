"""Compiled solver of one block: a small system, the bound at zero, and the ways to step.

numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.kernels.layout import Rule, Terms
from ringleader.kernels.numba.elementary import CALLED, INNER, sigma_and_weight_of_one
from ringleader.kernels.numba.lanes import after, fma, lane, load, spread, start, store, sums
from ringleader.kernels.numba.work import Work

ROUNDS = 40
PASSES = 8  # coordinate passes before the free coordinates are solved together
TOLERANCE = 1e-12
ROUNDING = 1e-12  # of a coordinate: what a step leaves of less is zero, else the last bits of sums would decide
TINY = 1e-30  # below it a coordinate is zero: products of tiny numbers are slow and mean nothing


class Solver(NamedTuple):
    """Memory of the small solver: pointers to R numbers each. The rows of matrices are P apart."""

    rank: int
    padded: int
    point: Any
    residual: Any
    change: Any
    packed: Any
    least: Any  # of each pivot
    inverse: Any  # 1 / D
    times: Any  # (4, P): four rows of D U
    free: Any  # 1 or 0
    chosen: Any
    factor: Any  # (P, P): U above its diagonal


@njit(**INNER)
def solver_memory(rank: int) -> tuple[Any, Any]:
    """The arrays behind a solver; they must outlive it."""
    padded = (rank + 3) // 4 * 4
    return np.zeros((padded + 10) * padded), np.ones(2 * rank, np.int64)


@njit(**INNER)
def new_solver(rank: int, memory: tuple[Any, Any]) -> Solver:
    padded = (rank + 3) // 4 * 4
    point, free = start(memory[0]), start(memory[1])
    residual, change = after(point, padded), after(point, 2 * padded)
    packed, least, inverse = after(point, 3 * padded), after(point, 4 * padded), after(point, 5 * padded)
    times, factor = after(point, 6 * padded), after(point, 10 * padded)
    return Solver(rank, padded, point, residual, change, packed, least, inverse, times, free, after(free, rank), factor)


@njit(**INNER)
def mirror(curvature: Any, rank: int, padded: int) -> None:
    """Copy the upper triangle to the lower one."""
    for r in range(rank):
        for s in range(r + 1, rank):
            curvature[s * padded + r] = curvature[r * padded + s]


@njit(**INNER)
def _pack(curvature: Any, solver: Solver) -> int:
    """Copy the free coordinates' block to the front of ``solver.factor``, filled up to fours; returns how many."""
    factor, chosen, padded = solver.factor, solver.chosen, solver.padded
    count = 0
    for r in range(solver.rank):
        if solver.free[r]:
            chosen[count] = r
            count += 1
    whole = (count + 3) // 4 * 4
    for i in range(count):
        row, source = after(factor, i * padded), after(curvature, chosen[i] * padded)
        for j in range(i, count):
            row[j] = source[chosen[j]]
        for j in range(count, whole):
            row[j] = 0.0
        # Only rounding can make a pivot vanish: the prior keeps the block positive.
        solver.least[i] = fma(1e-14, row[i], 1e-300)
    for i in range(count, whole):
        row = after(factor, i * padded)
        store(row, whole - 4, spread(0.0))
        row[i] = solver.least[i] = 1.0
    return count


@njit(**INNER)
def _pivots(rows: tuple[Any, Any, Any, Any], first: int, solver: Solver) -> None:
    """Factorise the 4 x 4 block on the diagonal, all in registers: pivots depend on each other and must not wait."""
    r0, r1, r2, r3 = rows
    least, inverse = after(solver.least, first), after(solver.inverse, first)
    a01, a02, a03 = r0[first + 1], r0[first + 2], r0[first + 3]
    a12, a13, a23 = r1[first + 2], r1[first + 3], r2[first + 3]
    i0 = 1.0 / max(r0[first], least[0])
    b01, b02, b03 = a01 * i0, a02 * i0, a03 * i0
    a12, a13, a23 = fma(-a01, b02, a12), fma(-a01, b03, a13), fma(-a02, b03, a23)
    i1 = 1.0 / max(fma(-a01, b01, r1[first + 1]), least[1])
    b12, b13 = a12 * i1, a13 * i1
    a23 = fma(-a12, b13, a23)
    i2 = 1.0 / max(fma(-a12, b12, fma(-a02, b02, r2[first + 2])), least[2])
    b23 = a23 * i2
    i3 = 1.0 / max(fma(-a23, b23, fma(-a13, b13, fma(-a03, b03, r3[first + 3]))), least[3])
    inverse[0], inverse[1], inverse[2], inverse[3] = i0, i1, i2, i3
    r0[first + 1], r0[first + 2], r0[first + 3] = b01, b02, b03
    r1[first + 2], r1[first + 3], r2[first + 3] = b12, b13, b23


@njit(**CALLED)
def factorise(curvature: Any, solver: Solver) -> int:
    """U' D U of the free coordinates' block, U with a diagonal of ones; returns how many are free.

    U goes to the front of ``solver.factor``, above its diagonal, and 1 / D to ``solver.inverse``. Four pivots at a
    time: the rows below them are then loaded and stored once for four, two rows at a time.
    """
    factor, padded, times = solver.factor, solver.padded, solver.times
    count = _pack(curvature, solver)
    whole = (count + 3) // 4 * 4
    for first in range(0, whole, 4):
        top = after(factor, first * padded)
        r1, r2, r3 = after(top, padded), after(top, 2 * padded), after(top, 3 * padded)
        _pivots((top, r1, r2, r3), first, solver)
        below = first + 4
        if below == whole:
            break
        b01, b02, b03 = spread(-top[first + 1]), spread(-top[first + 2]), spread(-top[first + 3])
        b12, b13, b23 = spread(-r1[first + 2]), spread(-r1[first + 3]), spread(-r2[first + 3])
        inverse = after(solver.inverse, first)
        i0, i1, i2, i3 = spread(inverse[0]), spread(inverse[1]), spread(inverse[2]), spread(inverse[3])
        for s in range(below, whole, 4):
            x0 = load(top, s)
            x1 = fma(b01, x0, load(r1, s))
            x2 = fma(b12, x1, fma(b02, x0, load(r2, s)))
            x3 = fma(b23, x2, fma(b13, x1, fma(b03, x0, load(r3, s))))
            store(times, s, x0)
            store(times, padded + s, x1)
            store(times, 2 * padded + s, x2)
            store(times, 3 * padded + s, x3)
            store(top, s, x0 * i0)
            store(r1, s, x1 * i1)
            store(r2, s, x2 * i2)
            store(r3, s, x3 * i3)
        for k in range(below, whole, 2):
            a, b = spread(-times[k]), spread(-times[padded + k])
            c, d = spread(-times[2 * padded + k]), spread(-times[3 * padded + k])
            e, f = spread(-times[k + 1]), spread(-times[padded + k + 1])
            g, h = spread(-times[2 * padded + k + 1]), spread(-times[3 * padded + k + 1])
            upper, lower = after(factor, k * padded), after(factor, (k + 1) * padded)
            for s in range(k // 4 * 4, whole, 4):  # left of the diagonal is never read
                u, v, w, x = load(top, s), load(r1, s), load(r2, s), load(r3, s)
                store(upper, s, fma(d, x, fma(c, w, fma(b, v, fma(a, u, load(upper, s))))))
                store(lower, s, fma(h, x, fma(g, w, fma(f, v, fma(e, u, load(lower, s))))))
    return count


@njit(**INNER)
def products(rows: tuple[Any, Any, Any, Any], vector: Any, first: int, end: int) -> Any:
    """Sums of the products of four rows with a vector, from ``first`` to ``end``, in four lanes."""
    top, r1, r2, r3 = rows
    a = b = c = d = spread(0.0)
    for s in range(first, end, 4):
        x = load(vector, s)
        a, b = fma(x, load(top, s), a), fma(x, load(r1, s), b)
        c, d = fma(x, load(r2, s), c), fma(x, load(r3, s), d)
    return sums(a, b, c, d)


@njit(**CALLED)
def substitute(residual: Any, count: int, solver: Solver, out: Any) -> None:
    """out = solution for the free coordinates (0 elsewhere), from what ``factorise`` left."""
    factor, chosen, packed, padded = solver.factor, solver.chosen, solver.packed, solver.padded
    whole = (count + 3) // 4 * 4
    for i in range(count):
        packed[i] = residual[chosen[i]]
    for i in range(count, whole):
        packed[i] = 0.0
    for first in range(0, whole, 4):
        top = after(factor, first * padded)
        r1, r2, r3 = after(top, padded), after(top, 2 * padded), after(top, 3 * padded)
        y0 = packed[first]
        y1 = fma(-top[first + 1], y0, packed[first + 1])
        y2 = fma(-r1[first + 2], y1, fma(-top[first + 2], y0, packed[first + 2]))
        y3 = fma(-top[first + 3], y0, packed[first + 3])
        y3 = fma(-r2[first + 3], y2, fma(-r1[first + 3], y1, y3))
        packed[first + 1], packed[first + 2], packed[first + 3] = y1, y2, y3
        a, b, c, d = spread(-y0), spread(-y1), spread(-y2), spread(-y3)
        for s in range(first + 4, whole, 4):
            total = fma(b, load(r1, s), fma(a, load(top, s), load(packed, s)))
            store(packed, s, fma(d, load(r3, s), fma(c, load(r2, s), total)))
    for s in range(0, whole, 4):
        store(packed, s, load(packed, s) * load(solver.inverse, s))
    for first in range(whole - 4, -4, -4):
        top = after(factor, first * padded)
        r1, r2, r3 = after(top, padded), after(top, 2 * padded), after(top, 3 * padded)
        total = load(packed, first) - products((top, r1, r2, r3), packed, first + 4, whole)
        y3 = lane(total, 3)
        y2 = fma(-r2[first + 3], y3, lane(total, 2))
        y1 = fma(-r1[first + 2], y2, fma(-r1[first + 3], y3, lane(total, 1)))
        y0 = fma(-top[first + 2], y2, fma(-top[first + 3], y3, lane(total, 0)))
        packed[first] = fma(-top[first + 1], y1, y0)
        packed[first + 1], packed[first + 2], packed[first + 3] = y1, y2, y3
    for r in range(solver.rank):
        out[r] = 0.0
    for i in range(count):
        out[chosen[i]] = packed[i]


@njit(**INNER)
def _coordinate_pass(curvature: Any, solver: Solver, step: float) -> float:
    """One pass of coordinate ascent over point >= 0; returns the largest relative move."""
    rank, padded, point, residual = solver.rank, solver.padded, solver.point, solver.residual
    largest, size = 0.0, 0.0
    for j in range(rank):
        old = point[j]
        new = max(old + residual[j] / curvature[j * padded + j], 0.0)
        move = step * (new - old)
        if move != 0.0:
            point[j] = old + move
            for r in range(rank):
                residual[r] = fma(-move, curvature[j * padded + r], residual[r])
        largest = max(largest, abs(move))
        size = max(size, new)
    return largest / (size + 1e-300)


@njit(**CALLED)
def solve(curvature: Any, gradient: Any, own: Any, nonnegative: bool, solver: Solver) -> None:
    """point = argmax over y (>= 0) of g'(y - x) - (y - x)' F (y - x) / 2, never worse than x itself."""
    rank, padded = solver.rank, solver.padded
    point, residual, free, change = solver.point, solver.residual, solver.free, solver.change
    for r in range(rank):
        point[r] = own[r]
        residual[r] = gradient[r]
        free[r] = 1
    if not nonnegative:
        substitute(residual, factorise(curvature, solver), solver, change)
        for r in range(rank):
            point[r] += change[r]
        return
    for _round in range(ROUNDS):
        for _pass in range(PASSES):
            if _coordinate_pass(curvature, solver, 1.0) < TOLERANCE:
                return
        # The passes found which coordinates are free: solve those exactly, up to the first that hits zero.
        for r in range(rank):
            free[r] = 1 if point[r] > 0.0 else 0
        substitute(residual, factorise(curvature, solver), solver, change)
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
                    residual[s] = fma(-move, curvature[r * padded + s], residual[s])


@njit(**INNER)
def prior_variance(x: float, rule: Rule) -> float:
    """Prior variance: fixed, or the mode of its inverse gamma given x (model.md section 3)."""
    if rule.shape == 0.0:
        return rule.variance
    return max((x * x + 2.0 * rule.scale) / (2.0 * rule.shape + 3.0), rule.floor)


@njit(**INNER)
def add_terms(terms: Terms, entity: int, work: Work, rule: Rule) -> None:
    """Add the labels of one entity to its block."""
    rank, padded, own, gradient, curvature = work.rank, work.padded, work.own, work.gradient, work.curvature
    for term in range(terms.offsets[entity], terms.offsets[entity + 1]):
        beta = terms.beta[terms.target[term]]
        noise = terms.noise[terms.target[term]]
        psi = beta[0]
        for r in range(rank):
            psi += beta[r + 1] * own[r]
        if noise > 0.0:
            weight, error, half = 1.0 / noise, (terms.value[term] - psi) / noise, 1.0
        else:
            half = rule.half  # of kappa, which only a binary target has
            sigma, weight = sigma_and_weight_of_one(psi, rule.curvature)
            error = (1.0 if terms.value[term] > 0.0 else 0.0) - sigma
        for r in range(rank):
            gradient[r] += half * error * beta[r + 1]
            for s in range(rank):
                curvature[r * padded + s] += weight * beta[r + 1] * beta[s + 1]


@njit(**INNER)
def _scalar_pass(curvature: Any, solver: Solver, step: float) -> None:
    """One pass of coordinate ascent without bounds."""
    rank, padded, point, residual = solver.rank, solver.padded, solver.point, solver.residual
    for j in range(rank):
        move = step * residual[j] / curvature[j * padded + j]
        point[j] += move
        for r in range(rank):
            residual[r] = fma(-move, curvature[j * padded + r], residual[r])


@njit(**INNER)
def _gain(curvature: Any, gradient: Any, solver: Solver) -> float:
    """What a change gains on the quadratic bound: g'd - d' F d / 2, from the upper triangle of F."""
    padded, change = solver.padded, solver.change
    gain = spread(0.0)
    for first in range(0, padded, 4):
        top = after(curvature, first * padded)
        r1, r2, r3 = after(top, padded), after(top, 2 * padded), after(top, 3 * padded)
        behind = products((top, r1, r2, r3), change, first + 4, padded)
        own = load(change, first)
        # The block on the diagonal is there in full: half of its product counts every pair once.
        within = sums(own * load(top, first), own * load(r1, first), own * load(r2, first), own * load(r3, first))
        gain = fma(load(gradient, first) - behind - spread(0.5) * within, own, gain)
    return lane(sums(gain, gain, gain, gain), 0)


@njit(**CALLED)
def move(curvature: Any, gradient: Any, own: Any, rule: Rule, rate: float, solver: Solver) -> None:
    """Put the new row of a block into ``solver.point``."""
    rank, padded = solver.rank, solver.padded
    step = rule.step * rate
    point, change = solver.point, solver.change
    if rule.action == 1:
        if rate == 0.0:
            trace = 0.0
            for r in range(rank):
                trace += curvature[r * padded + r]
            step = rule.step / trace
        for r in range(rank):
            point[r] = own[r] + step * gradient[r]
            if rule.nonnegative:
                point[r] = max(point[r], 0.0)
        return
    if rule.action == 2:
        for r in range(rank):
            point[r] = own[r]
            solver.residual[r] = gradient[r]
        if rule.nonnegative:
            _coordinate_pass(curvature, solver, step)
        else:
            _scalar_pass(curvature, solver, step)
        return
    # model.md section 3: solve over the free coordinates, step, clip at zero.
    for r in range(rank):
        solver.free[r] = 1 if not rule.nonnegative or own[r] > 0.0 or gradient[r] > 0.0 else 0
    substitute(gradient, factorise(curvature, solver), solver, change)
    for r in range(rank):
        change[r] *= step
        if rule.nonnegative and own[r] + change[r] < max(TINY, ROUNDING * own[r]):
            change[r] = -own[r]
    if rule.nonnegative and _gain(curvature, gradient, solver) < 0.0:
        # Clipping lost what the step gained: go towards the constrained optimum instead, which cannot lose.
        mirror(curvature, rank, padded)
        solve(curvature, gradient, own, rule.nonnegative, solver)
        for r in range(rank):
            change[r] = step * (point[r] - own[r])
    for r in range(rank):
        point[r] = own[r] + change[r]
