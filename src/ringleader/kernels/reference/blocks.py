"""The specification of every kernel in plain NumPy, slow and clear. Tests hold the compiled ones to it.

model.md names: phi, sigma, omega (E[omega], Polya-Gamma), N (Fisher weight), g and F (gradient and
curvature of a block), C_i (design row of an entry).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Floats, Numbers
from ringleader.counters import uniforms
from ringleader.kernels.layout import FISHER, GRADIENT, STATISTICS, Blocks, Rule, Statistics, Terms, View
from ringleader.kernels.logistic import expected_omega, fisher_weight, log_logistic, logistic

TINY = 1e-30  # below it a coordinate is zero: products of tiny numbers are slow and mean nothing
ROUNDING = 1e-12  # of a coordinate: what a step leaves of less is zero, else the last bits of sums would decide


def curvature_weight(phi: npt.ArrayLike, curvature: int) -> Floats:
    return fisher_weight(phi) if curvature == FISHER else expected_omega(phi)


def draw_negatives(tuples: Codes, modes: int, pool: Codes, key: int) -> None:
    """Fill columns ``modes:`` of tuples from ``pool``, the contrast entities each as often as it is active."""
    for j in range(tuples.shape[1] - modes):
        picked = (uniforms(key, np.arange(len(tuples)), j) * len(pool)).astype(np.int64)
        tuples[:, modes + j] = pool[picked]


def group_drawn(tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]:
    """Which cells drew each entity: offsets (size + 1,) and cells, ascending within an entity."""
    drawn = tuples[:, modes:]
    order = np.argsort(drawn.ravel(), kind="stable")
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(drawn.ravel(), minlength=size), out=offsets[1:])
    return offsets, (order // max(drawn.shape[1], 1)).astype(np.int32)


def products(view: View, codes: npt.NDArray[Any], leave: int = -1) -> Floats:
    """lambda * prod over the modes other than ``leave`` of the factor rows, one row per tuple."""
    rows = np.tile(np.asarray(view.component_weights, np.float64), (len(codes), 1))
    for k, start in enumerate(view.starts):
        if k != leave:
            rows *= view.factors[start + codes[:, k]]
    return rows


def entries_of(view: View, cells: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Floats, Floats]:
    """The entries of cells: codes (n, K), y and weight. Each cell is followed by its negatives."""
    modes, width = len(view.starts), view.tuples.shape[1]
    negatives = width - modes
    codes = np.repeat(view.tuples[cells, :modes].astype(np.int64), negatives + 1, axis=0)
    codes[:, view.contrast].reshape(-1, negatives + 1)[:, 1:] = view.tuples[cells, modes:]
    weight = np.repeat(weights_of(view, cells), negatives + 1).reshape(-1, negatives + 1)
    weight[:, 1:] /= max(negatives, 1)
    label = np.zeros_like(weight)
    label[:, 0] = 1
    return codes, label.ravel(), weight.ravel()


def weights_of(view: View, cells: npt.NDArray[Any]) -> Floats:
    return np.full(len(cells), view.weights[0]) if len(view.weights) == 1 else view.weights[cells]


def block_entries(view: View, blocks: Blocks, e: int) -> tuple[npt.NDArray[Any], Floats, Floats]:
    """All entries of block e: codes, y and weight."""
    own = blocks.cells[blocks.begins[e] : blocks.ends[e]]
    codes, label, weight = entries_of(view, own)
    if blocks.mode != view.contrast:
        return codes, label, weight
    modes = len(view.starts)
    mine = label == 1
    drawn = blocks.drawn_cells[blocks.drawn_begins[e] : blocks.drawn_ends[e]]
    foreign = view.tuples[drawn, :modes].astype(np.int64)
    foreign[:, view.contrast] = blocks.entities[e]
    share = weights_of(view, drawn) / max(view.tuples.shape[1] - modes, 1)
    return (
        np.concatenate([codes[mine], foreign]),
        np.concatenate([label[mine], np.zeros(len(drawn))]),
        np.concatenate([weight[mine], share]),
    )


def moments(rows: Floats, label: Floats, weight: Floats, x: Floats, rule: Rule) -> tuple[Floats, Floats]:
    """g = sum w (y - sigma) c and F = sum w omega c c' at x, without the prior."""
    phi = rows @ x
    gradient = rule.half * (weight * (label - logistic(phi))) @ rows
    return gradient, (rows * (weight * curvature_weight(phi, rule.curvature))[:, None]).T @ rows


def block_moments(view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
    """g (E, R) and F (E, R, R) of every block, data alone."""
    rank = view.factors.shape[1]
    gradient, curvature = np.zeros((len(blocks.entities), rank)), np.zeros((len(blocks.entities), rank, rank))
    for e, entity in enumerate(blocks.entities):
        codes, label, weight = block_entries(view, blocks, e)
        x = np.asarray(view.factors[view.starts[blocks.mode] + entity], np.float64)
        g, f = moments(products(view, codes, blocks.mode), label, weight, x, rule)
        gradient[e], curvature[e] = blocks.scale[e] * g, blocks.scale[e] * f
    return gradient, curvature


def lambda_moments(view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
    """g (R,) and F (R, R) of lambda over the entries of cells, data alone; A_i = prod_k u."""
    codes, label, weight = entries_of(view, cells)
    rows = products(view._replace(component_weights=np.ones_like(view.component_weights)), codes)
    return moments(rows, label, weight, view.component_weights, rule)


def prior_variance(x: Floats, rule: Rule) -> Floats:
    """Fixed, or the mode of the inverse gamma given x: (x^2 + 2 b) / (2 a_c + 3)."""
    if rule.shape == 0:
        return np.full(x.shape, float(rule.variance))
    return np.maximum((x**2 + 2 * rule.scale) / (2 * rule.shape + 3), rule.floor)


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
    statistics.first[entity] += share * (gradient + curvature @ x - statistics.first[entity])


def move_block(curvature: Floats, gradient: Floats, x: Floats, rule: Rule, rate: float) -> Floats:
    """The new row of a block whose g and F hold the prior and the labels."""
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
    change[free] = step * np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
    if not rule.nonnegative:
        return np.asarray(x + change)
    change = np.where(x + change < np.maximum(TINY, ROUNDING * x), -x, change)
    if change @ (gradient - 0.5 * curvature @ change) < 0:
        # Clipping lost what the step gained: go towards the constrained optimum instead, which cannot lose.
        change = step * (solve_block(curvature, gradient, x, True) - x)
    return np.asarray(x + change)


def sweep_blocks(view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
    """Update the factor rows of every block in place; write cavity rows of labelled entities where wanted."""
    gradients, curvatures = block_moments(view, blocks, rule)
    rank = view.factors.shape[1]
    upper = np.triu_indices(rank)
    for e, entity in enumerate(blocks.entities):
        row = view.starts[blocks.mode] + entity
        x = np.asarray(view.factors[row], np.float64)
        gradient, curvature = gradients[e], curvatures[e]
        if rule.action == STATISTICS:
            carry(statistics, entity, (gradient, curvature), x, rule.decay)
            curvature = np.zeros((rank, rank))
            curvature[upper] = statistics.second[entity]
            curvature = curvature + np.triu(curvature, 1).T
            gradient = statistics.first[entity] - curvature @ x
        variance = prior_variance(x, rule)
        gradient = gradient - x / variance
        curvature = curvature + np.diag(1 / variance)
        if len(terms.offsets) > 1 and terms.offsets[entity + 1] > terms.offsets[entity]:
            if len(cavity):
                cavity[terms.offsets[entity]] = solve_block(curvature, gradient, x, rule.nonnegative)
            more = label_moments(terms, entity, x, rule)
            gradient, curvature = gradient + more[0], curvature + more[1]
        view.factors[row] = move_block(curvature, gradient, x, rule, blocks.rate[e])


def log_odds(view: View, codes: Codes) -> Floats:
    """phi of each tuple of codes (n, K)."""
    return np.asarray(products(view, codes).sum(axis=1))


def log_likelihood(view: View) -> tuple[float, float]:
    """Weighted log-likelihood of the observed cells, and of the negatives."""
    codes, label, weight = entries_of(view, np.arange(len(view.tuples)))
    phi = products(view, codes).sum(axis=1)
    value = weight * log_logistic(np.where(label == 1, phi, -phi))
    return float(value[label == 1].sum()), float(value[label == 0].sum())


def leave_one_out(view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
    """phi, leverage h = c' A^-1 c and weight in A of every observed cell, seen from its block of one mode.

    A is the block's curvature plus prior; c is zero where the entity's factor is zero (model.md section 6.4).
    Cells whose block is not among ``blocks`` get NaN.
    """
    phi, leverage, omega = (np.full(len(view.tuples), np.nan) for _ in range(3))
    _, curvatures = block_moments(view, blocks, rule)
    for e, entity in enumerate(blocks.entities):
        cells = blocks.cells[blocks.begins[e] : blocks.ends[e]]
        x = np.asarray(view.factors[view.starts[blocks.mode] + entity], np.float64)
        rows = products(view, view.tuples[cells, : len(view.starts)], blocks.mode)
        phi[cells] = rows @ x
        free = np.where(x != 0, rows, 0) if rule.nonnegative else rows
        block = curvatures[e] + np.diag(1 / prior_variance(x, rule))
        leverage[cells] = (free * np.linalg.solve(block, free.T).T).sum(axis=1)
        omega[cells] = weights_of(view, cells) * curvature_weight(phi[cells], rule.curvature)
    return phi, leverage, omega


def head_moments(rows: Factors, values: Floats, beta: Floats, noise: float, rule: Rule) -> tuple[Floats, Floats]:
    """g (R + 1,) and F of one head over labelled rows (M, R), without the prior; noise 0 is a binary target.

    Written with einsum: matrix products of a threaded BLAS differ in their last bits between machines.
    """
    design = np.hstack([np.ones((len(rows), 1)), np.asarray(rows, np.float64)])
    psi = np.einsum("mr,r->m", design, beta)
    if noise > 0:
        error, weight = (values - psi) / noise, np.full(len(psi), 1 / noise)
    else:
        error, weight = (values > 0) - logistic(psi), curvature_weight(psi, rule.curvature)
    half = 1.0 if noise > 0 else rule.half
    return half * np.einsum("m,mr->r", error, design), np.einsum("mr,ms->rs", design * weight[:, None], design)
