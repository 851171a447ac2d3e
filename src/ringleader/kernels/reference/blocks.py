"""The specification of every kernel over cells in plain NumPy, slow and clear. Tests hold the backends to it.

model.md names: phi, sigma, omega (E[omega], Polya-Gamma), N (Fisher weight), g and F (gradient and
curvature of a block), C_i (design row of an entry).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.counters import uniforms
from ringleader.kernels.entries import entries_of, products, weights_of
from ringleader.kernels.layout import STATISTICS, Blocks, OwnedDraws, Rule, Statistics, Terms, View
from ringleader.kernels.logistic import log_logistic
from ringleader.kernels.single_block import (
    carry,
    curvature_weight,
    label_moments,
    moments,
    move_block,
    prior_variance,
    solve_block,
)


def draw_negatives(tuples: Codes, modes: int, pool: Codes, key: int) -> None:
    """Fill columns ``modes:`` of tuples from ``pool``, the contrast entities each as often as it is active."""
    for j in range(tuples.shape[1] - modes):
        picked = (uniforms(key, np.arange(len(tuples)), j) * len(pool)).astype(np.int64)
        tuples[:, modes + j] = pool[picked]


def draw_numbered(tuples: Codes, modes: int, pool: Codes, key: int, numbers: Numbers) -> None:
    """The same of the cells ``numbers`` among all: a function of their numbers."""
    for j in range(tuples.shape[1] - modes):
        tuples[:, modes + j] = pool[(uniforms(key, numbers, j) * len(pool)).astype(np.int64)]


def owned_draws(tuples: Codes, modes: int, bounds: Numbers) -> list[OwnedDraws]:
    """By range of entities: the cells that drew some of it, how many draws of each, and the entities drawn."""
    parts = []
    for first, last in itertools.pairwise(bounds):
        theirs = (tuples[:, modes:] >= first) & (tuples[:, modes:] < last)
        times = theirs.sum(axis=1)
        cells = np.flatnonzero(times)
        parts.append(OwnedDraws(cells.astype(np.int32), times[cells].astype(np.uint8), tuples[:, modes:][theirs]))
    return parts


def group_owned(drawn: OwnedDraws, first: int, size: int) -> tuple[Numbers, Codes]:
    """Which cells drew each entity of a range: offsets (size + 1,) and cells, ascending within an entity."""
    offsets, order = group_drawn(drawn.entities[:, None] - np.int32(first), 0, size)
    return offsets, np.repeat(drawn.cells, drawn.times)[order]


def group_drawn(tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]:
    """Which cells drew each entity: offsets (size + 1,) and cells, ascending within an entity."""
    drawn = tuples[:, modes:]
    order = np.argsort(drawn.ravel(), kind="stable")
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(drawn.ravel(), minlength=size), out=offsets[1:])
    return offsets, (order // max(drawn.shape[1], 1)).astype(np.int32)


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


def sweep_blocks(view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats) -> None:
    """Update the factor rows of every block in place; write cavity rows of labelled entities where wanted."""
    step_blocks(view, blocks, rule, terms, statistics, cavity, block_moments(view, blocks, rule))


def step_blocks(
    view: View,
    blocks: Blocks,
    rule: Rule,
    terms: Terms,
    statistics: Statistics,
    cavity: Floats,
    sums: tuple[Floats, Floats],
) -> None:
    """The same where g and F of every block are given; of F the upper triangle counts."""
    gradients, curvatures = sums
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
