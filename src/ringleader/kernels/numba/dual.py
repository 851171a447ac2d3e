"""Compiled step of a block with few entries: as many unknowns as entries, not as many as components.

With design rows C, curvature weights W, log-odds phi and residuals e of n entries, prior variances V and the row x, all
restricted to the free coordinates, the block's system (C' W C + V^-1) d = C' e - V^-1 x has the solution

    x + d = V C' y,    (C V C' + W^-1) y = W^-1 e + phi        (n unknowns)

so that neither the curvature is summed nor its system factorised. Same as: ``single_block.move_block``, to rounding.
numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
from __future__ import annotations

from typing import Any

from numba import njit

from ringleader.kernels.layout import Rule
from ringleader.kernels.numba.elementary import CALLED, INNER
from ringleader.kernels.numba.lanes import after, fma, lane, load, spread, store, sums
from ringleader.kernels.numba.solve import (
    ROUNDING,
    TINY,
    Solver,
    factorise,
    prior_variance,
    products,
    substitute,
)
from ringleader.kernels.numba.sums import fill_up, weigh
from ringleader.kernels.numba.work import Work


@njit(**INNER)
def most_entries(work: Work, rule: Rule) -> int:
    """Entries up to which a block is solved here: where the system is half as large, and the buffer holds them.

    Weights of E[omega] are never near zero; those of the Fisher information may be, and are divided by.
    """
    if rule.action != 0 or rule.curvature != 0:
        return 0
    return min(work.rank // 2, work.capacity - work.per_cell)


@njit(**INNER)
def _rows_of(rows: Any, first: int, padded: int) -> tuple[Any, Any, Any, Any]:
    """Four rows from ``first`` on."""
    top = after(rows, first * padded)
    return top, after(top, padded), after(top, 2 * padded), after(top, 3 * padded)


@njit(**INNER)
def _spread_prior(work: Work, count: int, rule: Rule, variances: Any, inverses: Any) -> None:
    """Prior variances of the free coordinates (0 elsewhere), inverses of all, and rows times the variances."""
    rows, weighted, own, padded = work.rows, work.weighted, work.own, work.padded
    store(inverses, padded - 4, spread(0.0))
    store(variances, padded - 4, spread(0.0))
    for r in range(work.rank):
        variance = prior_variance(own[r], rule)
        variances[r], inverses[r] = variance, 1.0 / variance
    if rule.nonnegative:
        for s in range(0, padded, 4):
            gradient = spread(0.0) - load(own, s) * load(inverses, s)
            for b in range(count):
                gradient = fma(load(rows, b * padded + s), spread(work.entries[3 * work.capacity + b]), gradient)
            store(work.gradient, s, gradient)
        for r in range(work.rank):
            if not (own[r] > 0.0 or work.gradient[r] > 0.0):
                variances[r] = 0.0
    for s in range(0, padded, 4):
        variance = load(variances, s)
        for b in range(count):
            store(weighted, b * padded + s, load(rows, b * padded + s) * variance)


@njit(**INNER)
def _solve_entries(work: Work, count: int, full: int, solver: Solver) -> Any:
    """y, one number for each entry."""
    entries, capacity, padded, matrix = work.entries, work.capacity, work.padded, work.curvature
    for b in range(count):
        row, vector = after(matrix, b * padded), after(work.weighted, b * padded)
        for first in range(b // 4 * 4, full, 4):
            store(row, first, products(_rows_of(work.rows, first, padded), vector, 0, padded))
        inverse = 1.0 / entries[2 * capacity + b]
        row[b] += inverse
        solver.residual[b] = fma(entries[3 * capacity + b], inverse, entries[b])
        solver.free[b] = 1
    small = Solver(
        count,
        padded,
        solver.point,
        solver.residual,
        solver.change,
        solver.packed,
        solver.least,
        solver.inverse,
        solver.times,
        solver.free,
        solver.chosen,
        solver.factor,
    )
    substitute(solver.residual, factorise(matrix, small), small, solver.residual)
    return solver.residual


@njit(**INNER)
def _gain(work: Work, full: int, change: Any, inverses: Any) -> float:
    """What a change gains on the quadratic bound: g'd - d' F d / 2, entry by entry and coordinate by coordinate."""
    entries, capacity, padded, half = work.entries, work.capacity, work.padded, spread(0.5)
    gain = spread(0.0)
    for first in range(0, full, 4):
        moved = products(_rows_of(work.rows, first, padded), change, 0, padded)
        weight, error = load(entries, 2 * capacity + first), load(entries, 3 * capacity + first)
        gain = fma(moved, error - half * weight * moved, gain)
    for s in range(0, padded, 4):
        d = load(change, s)
        gain = gain - d * load(inverses, s) * fma(half, d, load(work.own, s))
    return lane(sums(gain, gain, gain, gain), 0)


@njit(**CALLED)
def move_by_entries(work: Work, count: int, rule: Rule, rate: float, solver: Solver) -> bool:
    """Put the new row of a block of ``count`` gathered entries into ``solver.point``.

    False where clipping at zero lost what the step gained: what is to be done then needs the curvature.
    """
    own, padded, change, step = work.own, work.padded, solver.change, rule.step * rate
    # The curvature is not summed: its last rows hold vectors, its first ones the system of at most rank / 2 entries.
    variances, inverses = after(work.curvature, (padded - 1) * padded), after(work.curvature, (padded - 2) * padded)
    full = fill_up(work, count)
    weigh(work, full, rule)
    _spread_prior(work, count, rule, variances, inverses)
    y = _solve_entries(work, count, full, solver)
    for s in range(0, padded, 4):
        target = spread(0.0)
        for b in range(count):
            target = fma(load(work.weighted, b * padded + s), spread(y[b]), target)
        store(change, s, spread(step) * (target - load(own, s)))
    if rule.nonnegative:
        for r in range(work.rank):
            if own[r] + change[r] < max(TINY, ROUNDING * own[r]):
                change[r] = -own[r]
        if _gain(work, full, change, inverses) < 0.0:
            return False
    for r in range(work.rank):
        solver.point[r] = own[r] + change[r]
    return True
