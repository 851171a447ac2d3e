"""Compiled solver of one block: a small system, the bound at zero, and the ways to step.

numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.kernels.layout import Rule, Terms
from ringleader.kernels.numba.elementary import CALLED, INNER, sigma_and_weight_of_one
from ringleader.kernels.numba.lanes import after, fma, start
from ringleader.kernels.numba.work import Work, dot_from

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
    free: Any  # 1 or 0
    chosen: Any
    factor: Any  # (P, P)


@njit(**INNER)
def solver_memory(rank: int) -> tuple[Any, Any]:
    """The arrays behind a solver; they must outlive it."""
    padded = (rank + 3) // 4 * 4
    return np.zeros((padded + 4) * padded), np.ones(2 * rank, np.int64)


@njit(**INNER)
def new_solver(rank: int, memory: tuple[Any, Any]) -> Solver:
    padded = (rank + 3) // 4 * 4
    point, free = start(memory[0]), start(memory[1])
    residual, change = after(point, padded), after(point, 2 * padded)
    packed, factor = after(point, 3 * padded), after(point, 4 * padded)
    return Solver(rank, padded, point, residual, change, packed, free, after(free, rank), factor)


@njit(**INNER)
def mirror(curvature: Any, rank: int, padded: int) -> None:
    """Copy the upper triangle to the lower one."""
    for r in range(rank):
        for s in range(r + 1, rank):
            curvature[s * padded + r] = curvature[r * padded + s]


@njit(**CALLED)
def factorise(curvature: Any, solver: Solver) -> int:
    """Cholesky of the free coordinates' block, U'U, packed to the front of ``solver.factor``; returns how many."""
    factor, chosen, padded = solver.factor, solver.chosen, solver.padded
    count = 0
    for r in range(solver.rank):
        if solver.free[r]:
            chosen[count] = r
            count += 1
    for i in range(count):
        for j in range(i, count):
            factor[i * padded + j] = curvature[chosen[i] * padded + chosen[j]]
        for j in range(count, padded):
            factor[i * padded + j] = 0.0  # ``substitute`` adds up whole lanes
    for first in range(0, count, 4):  # four pivots at a time: fewer, fatter loops over the rows below
        last = min(first + 4, count)
        for i in range(first, last):
            # Only rounding can make a pivot vanish: the prior keeps the block positive.
            pivot = math.sqrt(max(factor[i * padded + i], 1e-14 * curvature[chosen[i] * padded + chosen[i]] + 1e-300))
            inverse = 1.0 / pivot
            factor[i * padded + i] = inverse
            for j in range(i + 1, count):
                factor[i * padded + j] *= inverse
            for k in range(i + 1, last):
                share = factor[i * padded + k]
                for j in range(k, count):
                    factor[k * padded + j] = fma(-share, factor[i * padded + j], factor[k * padded + j])
        for k in range(last, count):
            a, b, c, d = (
                -factor[first * padded + k],
                -factor[(first + 1) * padded + k],
                -factor[(first + 2) * padded + k],
                -factor[(first + 3) * padded + k],
            )
            for j in range(k, count):
                total = fma(a, factor[first * padded + j], factor[k * padded + j])
                total = fma(b, factor[(first + 1) * padded + j], total)
                total = fma(c, factor[(first + 2) * padded + j], total)
                factor[k * padded + j] = fma(d, factor[(first + 3) * padded + j], total)
    return count


@njit(**CALLED)
def substitute(residual: Any, count: int, solver: Solver, out: Any) -> None:
    """out = solution for the free coordinates (0 elsewhere), from the factor left by ``factorise``."""
    factor, chosen, packed, padded = solver.factor, solver.chosen, solver.packed, solver.padded
    for i in range(count):
        packed[i] = residual[chosen[i]]
    whole = (count + 3) // 4 * 4
    for i in range(count, whole):
        packed[i] = 0.0
    for i in range(count):
        packed[i] *= factor[i * padded + i]
        share = -packed[i]
        for j in range(i + 1, count):
            packed[j] = fma(share, factor[i * padded + j], packed[j])
    for i in range(count - 1, -1, -1):
        total = packed[i] - dot_from(after(factor, i * padded), packed, i + 1, whole)
        packed[i] = total * factor[i * padded + i]
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
    """What a change gains on the quadratic bound: g'd - d' F d / 2."""
    rank, padded, change = solver.rank, solver.padded, solver.change
    gain = 0.0
    for r in range(rank):
        pull = gradient[r] - 0.5 * curvature[r * padded + r] * change[r]
        pull -= dot_from(after(curvature, r * padded), change, r + 1, padded)
        gain += pull * change[r]
    return gain


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
