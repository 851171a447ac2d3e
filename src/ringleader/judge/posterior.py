"""The posterior of the head's coefficients, and the prior variances that the labels ask for.

Logistic: Fisher steps (model.md section 3), with the Polya-Gamma EM step, which cannot overshoot, where a Fisher step
would lose. At the mode the Fisher curvature F is exact, and F^-1 is the covariance (Laplace).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.judge.basis import BEND, LINEAR
from ringleader.kernels.elementary import exp, log
from ringleader.kernels.logistic import expected_omega, fisher_weight, log_logistic, logistic
from ringleader.kernels.tiles import cholesky_factor, gram, inverse_factor, product, times_vector, vector_times
from ringleader.runtime.remembered import computed_once

LEAST_LEFT = 0.05
"""Least share of an entity's leverage that is left when its own label is taken out."""
HASTE = 1.6
"""Length of an EM step on log variances: below 2 it ends where plain EM does, and sooner."""
NEAR, FASTER, CLOSE = 0.1, 4.0, 1e-7
"""Posterior standard deviations to the mode below which the next step takes the curvature of the last one, as long as
each brings the mode so many times as near; and those at which it is reached."""


class Prior(NamedTuple):
    """Independent normals: mean (P,) and variance (P,) of the coefficients."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class Posterior:
    """A normal posterior: weights (P,), fitted log-odds or values of the rows (M,), and the covariance behind them.

    ``gap`` is what is left of the gradient at the mode, in posterior standard deviations.
    """

    weights: Floats
    fitted: Floats
    inverse: Inverse
    objective: float
    gap: float

    @computed_once
    def variance(self) -> Floats:
        """(P,) of the weights."""
        return self.inverse.diagonal()

    @computed_once
    def leverage(self) -> Floats:
        """(M,) x' C x of the rows."""
        return self.inverse.leverage()


class Learning(NamedTuple):
    """How prior variances are learned: their modes before the data, and the coefficients' worth of each.

    ``worth`` is for a variance shared by all linear terms or by all bends, ``group_worth`` for that of a group of
    inputs around the shared one, ``own_worth`` for that of one input around its group's. A large worth keeps the
    prior, 0 believes the data alone. ``group`` is the group of each input.
    """

    linear: float
    bend: float
    worth: float
    group_worth: float
    own_worth: float
    group: Numbers
    rounds: int
    tolerance: float = 1e-2


def log_posterior(rows: Floats, label: Floats, prior: Prior, weights: Floats, psi: Floats | None = None) -> float:
    """log P(labels | weights) + log prior, up to a constant; label is 1 or 0. psi : rows times weights, where known."""
    psi = times_vector(rows, weights) if psi is None else psi
    fit = log_logistic(np.where(label > 0.5, psi, -psi)).sum()
    return float(fit - 0.5 * (np.square(weights - prior.mean) / prior.variance).sum())


def gradient(rows: Floats, label: Floats, prior: Prior, weights: Floats, psi: Floats | None = None) -> Floats:
    """g = sum (y - sigma) c - (x - m) / v. psi : rows times weights, where known."""
    psi = times_vector(rows, weights) if psi is None else psi
    return np.asarray(vector_times(label - logistic(psi), rows) - (weights - prior.mean) / prior.variance)


def fit_logistic(
    rows: Floats,
    label: Floats,
    prior: Prior,
    start: Floats,
    max_iterations: int,
    trace: list[float] | None = None,
    turned: Floats | None = None,
) -> Posterior:
    """The mode and its Laplace covariance. The objective never falls; ``trace`` collects it.

    turned : ``turn(rows)``, where it is known.
    """
    weights, psi = start, times_vector(rows, start)
    value = log_posterior(rows, label, prior, start, psi)
    known = _joint(rows, prior) if _few(rows) else turn(rows) if turned is None else turned
    inverse, gap, reused = invert(rows, fisher_weight(psi), prior, known), np.inf, False
    for taken in range(max_iterations):
        if trace is not None:
            trace.append(value)
        slope, before = gradient(rows, label, prior, weights, psi), gap
        reused = before < NEAR
        if taken and not reused:
            inverse = invert(rows, fisher_weight(psi), prior, known)
        change, gap = _step(inverse, slope)
        if reused and gap * FASTER > before:
            inverse, reused = invert(rows, fisher_weight(psi), prior, known), False
            change, gap = _step(inverse, slope)
        ahead = times_vector(rows, weights + change)
        new = log_posterior(rows, label, prior, weights + change, ahead)
        if new < value and gap >= CLOSE:
            change = invert(rows, expected_omega(psi), prior, known).solve(slope)
            ahead = times_vector(rows, weights + change)
            new = log_posterior(rows, label, prior, weights + change, ahead)
        if new < value:  # at the last digit
            break
        weights, psi, value = weights + change, ahead, new
        if gap < CLOSE:
            break
    # The last step was tiny where it converged, so the inverse before it serves, unless it is that of an earlier one.
    return Posterior(weights, psi, invert(rows, fisher_weight(psi), prior, known) if reused else inverse, value, gap)


def _step(inverse: Inverse, slope: Floats) -> tuple[Floats, float]:
    """The step along a slope, and its length in posterior standard deviations."""
    change = inverse.solve(slope)
    return change, math.sqrt(max(float((change * slope).sum()), 0.0))


def fit_linear(rows: Floats, value: Floats, prior: Prior, noise: float) -> Posterior:
    """The exact posterior of a linear model with noise variance ``noise``."""
    inverse = invert(rows, np.full(len(rows), 1 / noise), prior)
    weights = inverse.solve(vector_times(value, rows) / noise + prior.mean / prior.variance)
    fitted = times_vector(rows, weights)
    objective = -0.5 * np.square(value - fitted).sum() / noise
    objective -= 0.5 * (np.square(weights - prior.mean) / prior.variance).sum()
    return Posterior(weights, fitted, inverse, float(objective), 0.0)


class Inverse(Protocol):
    """C = (X' W X + V^-1)^-1, X (M, P), W and V diagonal; factorised when something is first asked of it."""

    def solve(self, slope: Floats) -> Floats: ...

    def diagonal(self) -> Floats: ...

    def leverage(self) -> Floats:
        """x' C x of every row of X."""


class ByWeights:
    """C from a (P, P) block: plain, and the one to use where there are more labels than weights.

    turned : ``turn`` of the rows, where it is known.
    """

    def __init__(self, rows: Floats, curvature: Floats, prior: Prior, turned: Floats | None = None) -> None:
        self.rows, self.curvature, self.prior, self.turned = rows, curvature, prior, turned

    @computed_once
    def factor(self) -> Floats:
        block = gram(self.rows, self.curvature, self.turned)
        block[np.diag_indices_from(block)] += 1 / self.prior.variance
        return inverse_factor(block)

    def solve(self, slope: Floats) -> Floats:
        return vector_times(times_vector(self.factor, slope), self.factor)

    def root(self) -> Floats:
        """R with R R' = C."""
        return np.ascontiguousarray(self.factor.T)

    def diagonal(self) -> Floats:
        return np.asarray(np.square(self.factor).sum(axis=0))

    def leverage(self) -> Floats:
        return np.asarray(np.square(product(self.rows, self.root())).sum(axis=1))


class ByLabels:
    """C by Woodbury from an (M, M) block: C = V - V X' W^(1/2) (I + W^(1/2) X V X' W^(1/2))^-1 W^(1/2) X V.

    joint : X V X', where it is known.
    """

    def __init__(self, rows: Floats, curvature: Floats, prior: Prior, joint: Floats | None = None) -> None:
        self.variance = prior.variance
        self.spread = rows * prior.variance  # X V
        self.joint = _joint(rows, prior) if joint is None else joint
        self.weight = np.sqrt(curvature)

    @computed_once
    def factor(self) -> Floats:
        block = self.joint * self.weight[:, None] * self.weight
        block[np.diag_indices_from(block)] += 1
        return inverse_factor(block)

    def _halved(self, matrix: Floats) -> Floats:
        """L^-1 W^(1/2) matrix, whose columns' squares are what the labels take off."""
        return product(self.factor, self.weight[:, None] * matrix)

    def solve(self, slope: Floats) -> Floats:
        inner = times_vector(self.factor, self.weight * times_vector(self.spread, slope))
        inner = self.weight * vector_times(inner, self.factor)
        return np.asarray(self.variance * slope - vector_times(inner, self.spread))

    def diagonal(self) -> Floats:
        return np.asarray(np.maximum(self.variance - np.square(self._halved(self.spread)).sum(axis=0), 0.0))

    def leverage(self) -> Floats:
        return np.asarray(np.maximum(np.diag(self.joint) - np.square(self._halved(self.joint)).sum(axis=0), 0.0))


def invert(rows: Floats, curvature: Floats, prior: Prior, known: Floats | None = None) -> Inverse:
    """The same C by the smaller block. known : what is the same for every curvature, where somebody has it: X V X' of
    few rows, ``turn(X)`` of many.
    """
    return ByLabels(rows, curvature, prior, known) if _few(rows) else ByWeights(rows, curvature, prior, known)


def turn(rows: Floats) -> Floats:
    """The rows turned over, (P, M), in one piece."""
    return np.ascontiguousarray(rows.T)


def _few(rows: Floats) -> bool:
    """Whether there are fewer labels than weights."""
    return bool(len(rows) < rows.shape[1])


def _joint(rows: Floats, prior: Prior) -> Floats:
    """X V X', (M, M)."""
    return gram(rows.T, prior.variance)


def covariance_root(rows: Floats, curvature: Floats, prior: Prior) -> Floats:
    """R with R R' = C: the Laplace covariance where the curvature is the Fisher weight at the mode."""
    return ByWeights(rows, curvature, prior).root()


class ModeError(NamedTuple):
    """Mean squared error M of a mode whose distance to the prior mean was multiplied by a factor.

    root     : (P, P) R with R R' = M
    left_out : (rows,) c' M c of each row c where its own label taught nothing
    """

    root: Floats
    left_out: Floats


def error_of_mode(rows: Floats, curvature: Floats, prior: Prior, believed: Floats, factor: float = 1.0) -> ModeError:
    """The mean squared error of a mode that was found with ``prior``, its distance to the prior mean m times s.

    believed : (P,) variances that the truth x is believed to have around m: the prior's or others. factor : s.

    With F = X' W X, D = V^-1 and A = F + D the mode is m + A^-1 F (x - m) and noise of covariance A^-1 F A^-1. With s
    times its distance to m it is H (x - m) away from x, with H = s A^-1 F - 1 = (s - 1) - s A^-1 D, and has s times the
    noise: the prior holds back, and the factor gives back and may go beyond. With E[(x - m)(x - m)'] = U the mean
    squared error is M = s^2 A^-1 F A^-1 + H U H', the posterior covariance A^-1 where U = V and s = 1.

    Without a row c of weight N, h = c' A^-1 c, c' M c becomes (s^2 (a' F a - N h^2) + g' U g) / (1 - N h)^2 with
    a = A^-1 c and g = s F a - (1 + (s - 1) N h) c.
    """
    error_of = _error_by_labels if _few(rows) else _error_by_weights
    error, taught, others, heard = error_of(rows, curvature, prior, believed, factor)
    short = factor * taught - (1 + (factor - 1) * heard)[:, None] * rows
    own = factor * factor * np.maximum(others, 0.0) + times_vector(np.square(short), believed)
    return ModeError(cholesky_factor(error), own / np.square(np.maximum(1 - heard, LEAST_LEFT)))


class _ErrorParts(NamedTuple):
    """error: M (P, P). Of each row: taught F a (P,), others a' F a - N h^2, heard N h."""

    error: Floats
    taught: Floats
    others: Floats
    heard: Floats


def _error_by_weights(rows: Floats, curvature: Floats, prior: Prior, believed: Floats, factor: float) -> _ErrorParts:
    """By A^-1. F a = c - D a."""
    drawn = 1 / prior.variance
    block = gram(rows, curvature)
    at = np.diag_indices_from(block)
    block[at] += drawn
    half = inverse_factor(block)
    inverse = gram(half, np.ones(len(half)))
    held = -factor * inverse * drawn
    held[at] += factor - 1
    error = factor * factor * (inverse - gram(inverse, drawn)) + gram(turn(held), believed)
    moved = product(product(rows, turn(half)), half)  # a of each row
    taught = rows - moved * drawn
    leverage = (moved * rows).sum(axis=1)
    heard = curvature * leverage
    return _ErrorParts(error, taught, (moved * taught).sum(axis=1) - heard * leverage, heard)


def _error_by_labels(rows: Floats, curvature: Floats, prior: Prior, believed: Floats, factor: float) -> _ErrorParts:
    """By few columns, with Y = W^(1/2) X: B = s A^-1 Y' = s V Y' (1 + Y V Y')^-1, M = B B' + (B Y - 1) U (B Y - 1)'."""
    root = np.sqrt(curvature)
    scaled = root[:, None] * rows
    block, believable = _joint(scaled, prior), scaled * believed
    block[np.diag_indices_from(block)] += 1
    half = inverse_factor(block)
    moved = product(turn(half), product(half, scaled * prior.variance))  # B' / s
    spread = gram(turn(scaled), believed)
    spread[np.diag_indices_from(spread)] += 1
    part = factor * product(turn(0.5 * factor * product(spread, moved) - believable), moved)
    error = part + part.T
    error[np.diag_indices_from(error)] += believed
    met = product(rows, turn(moved))  # a' F a is the sum of its squares, and N h^2 the square in the diagonal
    own = met.diagonal()
    return _ErrorParts(error, product(met, scaled), np.square(met).sum(axis=1) - np.square(own), root * own)


def learn_variances(
    fit: Callable[[Prior, Floats, bool], Posterior], prior: Prior, kind: Numbers, source: Numbers, learning: Learning
) -> tuple[Posterior, Prior, bool]:
    """Empirical Bayes by EM: v = (sum of E[x^2] + worth * mode) / (count + worth), shared, by group, for each input.

    ``fit(prior, start, to_the_end)`` returns a posterior, after one step where not to the end. Returns the posterior,
    the prior it was found with, and whether the variances settled. No variance can reach zero, because ``worth`` inputs
    of the prior's own size always count.
    """
    posterior = fit(prior, prior.mean, True)
    groups = [(np.flatnonzero(kind == LINEAR), learning.linear)]
    groups.append((np.flatnonzero(kind == BEND), learning.bend))
    groups = [(columns, mode) for columns, mode in groups if len(columns)]
    settled = not groups
    for _ in range(learning.rounds):
        second = np.square(posterior.weights - prior.mean) + posterior.variance
        variance = prior.variance.copy()
        for columns, mode in groups:
            each, inverse = np.unique(source[columns], return_inverse=True)
            size = np.bincount(inverse).astype(np.float64)
            total = np.bincount(inverse, weights=second[columns])
            inputs = len(each)
            shared = ((total / size).sum() + learning.worth * mode) / (inputs + learning.worth)
            group = learning.group[each]
            members = np.bincount(group)
            excess = np.bincount(group, weights=total / size - shared)
            of_group = (shared + excess / (members + learning.group_worth))[group]
            own = of_group + (total - size * of_group) / (size + learning.own_worth)
            variance[columns] = own[inverse]
        change = log(variance / prior.variance)
        moved = np.abs(change).max()
        prior = Prior(prior.mean, prior.variance * exp(HASTE * change))
        # One step for each round is enough: both settle together.
        posterior = fit(prior, posterior.weights, False)
        if moved < learning.tolerance:
            settled = True
            break
    return fit(prior, posterior.weights, True), prior, settled


def left_out(posterior: Posterior, label: Floats) -> Floats:
    """Log-odds of each labelled entity as if its label were unknown: one Fisher step away from the mode.

    psi_ = psi - h (y - sigma) / (1 - N h), with N in both places (model.md section 6.4).
    """
    psi, h = posterior.fitted, posterior.leverage
    left = np.maximum(1 - fisher_weight(psi) * h, LEAST_LEFT)
    return np.asarray(psi - h * (label - logistic(psi)) / left)
