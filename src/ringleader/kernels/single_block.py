"""One block at a time in NumPy: sums of its entries, prior, labels, solver and step (model.md section 3).

The blocks of lambda and of the heads are few, so every backend moves them with this; the blocks of entities are many,
and this is what the kernels of a backend must compute for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Factors, Floats
from ringleader.kernels.layout import FISHER, GRADIENT, STATISTICS, Rule, Statistics, Terms
from ringleader.kernels.logistic import expected_omega, fisher_weight, logistic
from ringleader.runtime.executor import Threads
from ringleader.runtime.machine import leave_mapped

TINY = 1e-30  # below it a coordinate is zero: products of tiny numbers are slow and mean nothing
ROUNDING = 1e-12  # of a coordinate: what a step leaves of less is zero, else the last bits of sums would decide


def curvature_weight(phi: npt.ArrayLike, curvature: int) -> Floats:
    return fisher_weight(phi) if curvature == FISHER else expected_omega(phi)


def moments(rows: Floats, label: Floats, weight: Floats, x: Floats, rule: Rule) -> tuple[Floats, Floats]:
    """g = sum w (y - sigma) c and F = sum w omega c c' at x, without the prior."""
    phi = rows @ x
    gradient = rule.half * (weight * (label - logistic(phi))) @ rows
    return gradient, (rows * (weight * curvature_weight(phi, rule.curvature))[:, None]).T @ rows


def prior_variance(x: Floats, rule: Rule) -> Floats:
    """Fixed, or the mode of the inverse gamma given x: (x^2 + 2 b) / (2 a_c + 3)."""
    if rule.shape == 0:
        return np.full(x.shape, float(rule.variance))
    return np.maximum((np.square(x) + 2 * rule.scale) / (2 * rule.shape + 3), rule.floor)


def rows_log_prior(rows: Factors, rule: Rule, xp: Any = np, piece: int = 65536, threads: int = 1) -> float:
    """Log prior of factor rows (n, R), up to constants, at the modes of learned variances; ``xp`` has their arrays.

    In pieces: the copy of all rows in float64 would be the largest array of a fit. Threads find those of some pieces
    each; they are added in the order of the rows, so that the bits do not depend on how many threads there are.
    """

    def of_piece(first: int) -> float:
        squares = np.square(rows[first : first + piece].astype(np.float64))
        if rule.shape == 0:
            part = float(squares.sum()) / (2 * rule.variance)
        else:
            learned = (squares + 2 * rule.scale) / (2 * rule.shape + 3)
            variance = xp.maximum(learned, rule.floor)
            part = float(((rule.shape + 1.5) * xp.log(variance) + (squares / 2 + rule.scale) / variance).sum())
        leave_mapped()
        return part

    total = 0.0
    for part in Threads(threads).map(of_piece, range(0, len(rows), piece)):
        total -= part
    return total


def column_squares(rows: Factors, piece: int = 65536, threads: int = 1) -> Floats:
    """Sum of squares of each column of factor rows (n, R); in pieces, as ``rows_log_prior``."""

    def of_piece(first: int) -> Floats:
        part: Floats = np.square(rows[first : first + piece].astype(np.float64)).sum(axis=0)
        leave_mapped()
        return part

    total = np.zeros(rows.shape[1])
    for part in Threads(threads).map(of_piece, range(0, len(rows), piece)):
        total += part
    return total


def label_moments(terms: Terms, entity: int, x: Floats, rule: Rule) -> tuple[Floats, Floats]:
    """What the labels of one entity add to g and F of its block."""
    gradient, curvature = np.zeros(len(x)), np.zeros((len(x), len(x)))
    for i in range(terms.offsets[entity], terms.offsets[entity + 1]):
        beta, noise = terms.beta[terms.target[i]], terms.noise[terms.target[i]]
        psi = beta[0] + beta[1:] @ x
        if noise > 0:
            error, weight = (terms.value[i] - psi) / noise, 1 / noise
        else:
            error = float(terms.value[i] > 0) - float(logistic(psi))
            weight = float(curvature_weight(psi, rule.curvature))
        # The printed half belongs to kappa, which only a binary target has.
        gradient += (1.0 if noise > 0 else rule.half) * error * beta[1:]
        curvature += weight * np.outer(beta[1:], beta[1:])
    return gradient, curvature


def solve_block(curvature: Floats, gradient: Floats, x: Floats, nonnegative: bool) -> Floats:
    """argmax over y of g'(y - x) - (y - x)' F (y - x) / 2, subject to y >= 0 where asked."""
    target = gradient + curvature @ x
    if not nonnegative:
        return np.asarray(np.linalg.solve(curvature, target))
    # Lawson and Hanson's active set: free the coordinate that gains most; step back to the first that hits zero.
    point, free = np.zeros(len(x)), np.zeros(len(x), bool)
    tiny = 1e-13 * (np.abs(target).max() + 1e-300)
    for _ in range(10 * len(x) + 10):
        slope = np.where(free, -np.inf, target - curvature @ point)
        if slope.max() <= tiny:
            break
        free[slope.argmax()] = True
        while True:
            wanted = np.zeros(len(x))
            wanted[free] = np.linalg.solve(curvature[np.ix_(free, free)], target[free])
            below = free & (wanted <= 0)
            if not below.any():
                point = wanted
                break
            shares = np.where(below, point / np.where(below, point - wanted, 1.0), np.inf)
            point = point + shares.min() * (wanted - point)
            free &= shares > shares.min()
            point[~free] = 0.0
    return point


def scalar_pass(curvature: Floats, gradient: Floats, x: Floats, nonnegative: bool, step: float = 1.0) -> Floats:
    """One coordinate after the other towards its own optimum: the scalar updates of online EM."""
    point, residual = x.copy(), gradient.copy()
    for j in range(len(x)):
        new = point[j] + residual[j] / curvature[j, j]
        new = max(new, 0.0) if nonnegative else new
        move = step * (new - point[j])
        residual -= move * curvature[j]
        point[j] += move
    return point


def carry(statistics: Statistics, entity: int, sums: tuple[Floats, Floats], x: Floats, decay: float) -> None:
    """S1 and S2 of one entity move by ``decay`` towards the new sums; all the way the first time."""
    gradient, curvature = sums
    upper = np.triu_indices(len(x))
    old = np.zeros_like(curvature)
    old[upper] = statistics.second[entity]
    share = decay if np.trace(old) > 0 else 1.0
    statistics.second[entity] += (share * (curvature - old)[upper]).astype(statistics.second.dtype)
    statistics.first[entity] += share * (gradient + (curvature * x).sum(axis=1) - statistics.first[entity])


def move_block(
    curvature: Floats,
    gradient: Floats,
    x: Floats,
    rule: Rule,
    rate: float,
    solve: Callable[..., Any] = np.linalg.solve,
) -> Floats:
    """The new row of a block whose g and F hold the prior and the labels. solve : of a positive definite system."""
    step = rule.step * rate
    if rule.action == GRADIENT:
        step = rule.step / np.trace(curvature) if rate == 0 else step
        moved = x + step * gradient
        return np.maximum(moved, 0) if rule.nonnegative else moved
    if rule.action == STATISTICS:
        return scalar_pass(curvature, gradient, x, rule.nonnegative, step)
    # Solve over the free coordinates, step, clip at zero (model.md section 3).
    free = np.ones(len(x), bool) if not rule.nonnegative else (x > 0) | (gradient > 0)
    change = np.zeros(len(x))
    change[free] = step * solve(curvature[np.ix_(free, free)], gradient[free])
    if not rule.nonnegative:
        return np.asarray(x + change)
    change = np.where(x + change < np.maximum(TINY, ROUNDING * x), -x, change)
    if change @ (gradient - 0.5 * curvature @ change) < 0:
        # Clipping lost what the step gained: go towards the constrained optimum instead, which cannot lose.
        change = step * (solve_block(curvature, gradient, x, True) - x)
    return np.asarray(x + change)


def head_moments(rows: Factors, values: Floats, beta: Floats, noise: float, rule: Rule) -> tuple[Floats, Floats]:
    """g (R + 1,) and F of one head over labelled rows (M, R), without the prior; noise 0 is a binary target."""
    design = np.hstack([np.ones((len(rows), 1)), np.asarray(rows, np.float64)])
    psi = (design * beta).sum(axis=1)
    if noise > 0:
        error, weight = (values - psi) / noise, np.full(len(psi), 1 / noise)
    else:
        error, weight = (values > 0) - logistic(psi), curvature_weight(psi, rule.curvature)
    half = 1.0 if noise > 0 else rule.half
    curvature = np.stack([(design * column[:, None]).sum(axis=0) for column in (design * weight[:, None]).T])
    return half * (design * error[:, None]).sum(axis=0), curvature
