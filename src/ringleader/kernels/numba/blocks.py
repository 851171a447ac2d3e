"""Compiled blocks: sum an entity's entries, solve, step. ``sums`` does the sums, ``solve`` the step.

numba's disk cache looks at this file only, so it carries a checksum of those whose code it compiles: who changes them
must change it here (a test says so), and the cache is then made anew.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ringleader.arrays import Floats
from ringleader.kernels.layout import CHUNK, Blocks, Rule, Statistics, Terms, View
from ringleader.kernels.numba.dual import most_entries, move_by_entries
from ringleader.kernels.numba.elementary import CALLED, INNER, OUTER, sigma_and_weight_of_one
from ringleader.kernels.numba.lanes import after, load, spread, start, store
from ringleader.kernels.numba.solve import (
    Solver,
    add_terms,
    factorise,
    mirror,
    move,
    new_solver,
    prior_variance,
    solve,
    solver_memory,
    substitute,
)
from ringleader.kernels.numba.sums import add_cells, add_contrast_cells, gather_cells, gather_contrast_cells
from ringleader.kernels.numba.work import Work, clear, design_row, dot, locate, new_memory, work_on

COMPILED_FROM = "ca5d5b6c94a7"
"""Checksum of the files of this package whose code is compiled into others (``tests/contract``)."""


class BlockLabels(NamedTuple):
    """Label terms of the mode, and where their cavity rows go."""

    terms: Terms
    cavity: Any  # (n_terms, R), or (0, R) where not wanted


class Lists(NamedTuple):
    """The blocks of a mode as the loops over entities see them: pointers, for the reason that ``start`` gives."""

    contrast: bool
    first_row: int
    entities: Any
    begins: Any
    ends: Any
    cells: tuple[Any, int]
    drawn_begins: Any
    drawn_ends: Any
    drawn_cells: tuple[Any, int]
    scale: Any
    rate: Any
    first_chunk: Any
    first_node: Any
    sums: Any  # (n_nodes, P + 1, P)


class Nodes(NamedTuple):
    """Sums over runs of 2**level chunks of the long blocks: parts of their trees (``kernels/tree.py``)."""

    level: int
    depth: int  # sums that are held while the longest list is added up
    block: Any  # (n_nodes,)
    first: Any  # (E + 1,): first node of each block
    sums: Any  # (n_nodes, P + 1, P): curvature, then gradient


@njit(**INNER)
def _lists(view: View, blocks: Blocks, nodes: Nodes) -> Lists:
    return Lists(
        blocks.mode == view.contrast,
        view.starts[blocks.mode],
        start(blocks.entities),
        start(blocks.begins),
        start(blocks.ends),
        (start(blocks.cells), len(blocks.cells)),
        start(blocks.drawn_begins),
        start(blocks.drawn_ends),
        (start(blocks.drawn_cells), len(blocks.drawn_cells)),
        start(blocks.scale),
        start(blocks.rate),
        start(blocks.first_chunk),
        start(nodes.first),
        start(nodes.sums),
    )


@njit(**INNER)
def _take_own(lists: Lists, e: int, work: Work) -> None:
    """Take the row of block e, and clear its sums."""
    row = (lists.first_row + lists.entities[e]) * work.rank
    for r in range(work.rank):
        work.own[r] = work.factors[row + r]
    clear(work)


@njit(**INNER)
def _accumulate(lists: Lists, e: int, piece: tuple[int, int], work: Work, rule: Rule) -> None:
    """Set the work's gradient and curvature to the sums over positions ``piece`` of block e."""
    _take_own(lists, e, work)
    begin, length = lists.begins[e], lists.ends[e] - lists.begins[e]
    first, last = piece
    if not lists.contrast:
        add_cells(work, lists.cells[0], lists.cells[1], (begin + first, begin + last), rule)
        return
    shift = lists.drawn_begins[e] - length
    own = (begin + min(first, length), begin + min(last, length))
    drawn = (shift + max(first, length), shift + max(last, length))
    add_contrast_cells(work, lists.cells, own, lists.drawn_cells, drawn, rule)


@njit(**INNER)
def _put_sums(work: Work, sums: Any, c: int) -> None:
    count = (work.padded + 1) * work.padded
    for s in range(0, count, 4):
        store(sums, c * count + s, load(work.curvature, s))


@njit(**INNER)
def _take_sums(work: Work, sums: Any, c: int) -> None:
    count = (work.padded + 1) * work.padded
    for s in range(0, count, 4):
        store(work.curvature, s, load(sums, c * count + s))


@njit(**INNER)
def _add_sums(work: Work, sums: Any, c: int) -> None:
    count = (work.padded + 1) * work.padded
    for s in range(0, count, 4):
        store(work.curvature, s, load(sums, c * count + s) + load(work.curvature, s))


@njit(**INNER)
def _add_leaf(work: Work, stack: Any, leaf: int) -> None:
    """Take the work's sums as leaf number ``leaf`` of a tree; leaves come in order, ``stack`` holds the open nodes."""
    level = 0
    while (leaf >> level) & 1:
        _add_sums(work, stack, level)
        level += 1
    _put_sums(work, stack, level)


@njit(**INNER)
def _add_up(work: Work, stack: Any, leaves: int) -> None:
    """Set the work's sums to those of a tree of so many leaves."""
    level = 0
    while (leaves >> level) & 1 == 0:
        level += 1
    _take_sums(work, stack, level)
    level += 1
    while leaves >> level:
        if (leaves >> level) & 1:
            _add_sums(work, stack, level)
        level += 1


@njit(**INNER)
def _stack(work: Work, depth: int) -> Any:
    """Memory for the open nodes of one tree."""
    return np.empty(max(depth, 1) * (work.padded + 1) * work.padded)


@njit(**OUTER)
def sum_chunks(view: View, blocks: Blocks, rule: Rule, nodes: Nodes, span: tuple[int, int]) -> None:
    """Sums over the chunks of nodes ``span`` of the long blocks, into ``nodes.sums``."""
    memory = new_memory(view)
    work, lists = work_on(view, blocks.mode, memory), _lists(view, blocks, nodes)
    memory_of_stack = _stack(work, nodes.level + 1)
    stack = start(memory_of_stack)
    for n in range(span[0], span[1]):
        block = nodes.block[n]
        first = blocks.first_chunk[block] + ((n - nodes.first[block]) << nodes.level)
        last = min(first + (1 << nodes.level), blocks.first_chunk[block + 1])
        for c in range(first, last):
            _accumulate(lists, block, (blocks.chunks[c, 1], blocks.chunks[c, 2]), work, rule)
            _add_leaf(work, stack, c - first)
        _add_up(work, stack, last - first)
        _put_sums(work, lists.sums, n)
    memory.numbers[0] = memory_of_stack[0] = 0.0  # a use behind the last through pointers: they are not freed before


@njit(**INNER)
def _moments(lists: Lists, e: int, work: Work, rule: Rule, stack: Any) -> None:
    """Gradient and curvature of block e over all its entries; the long ones add up their nodes along the tree."""
    count = (work.padded + 1) * work.padded
    if lists.first_chunk[e] == lists.first_chunk[e + 1]:
        length = lists.ends[e] - lists.begins[e] + lists.drawn_ends[e] - lists.drawn_begins[e]
        _accumulate(lists, e, (0, length), work, rule)
    else:
        _take_own(lists, e, work)
        first, last = lists.first_node[e], lists.first_node[e + 1]
        for n in range(first, last):
            _take_sums(work, lists.sums, n)
            _add_leaf(work, stack, n - first)
        _add_up(work, stack, last - first)
    if lists.scale[e] != 1.0:
        for s in range(0, count, 4):
            store(work.curvature, s, load(work.curvature, s) * spread(lists.scale[e]))


@njit(**CALLED)
def _carry(statistics: Statistics, entity: int, work: Work, decay: float) -> None:
    """Blend the block's sums into its carried statistics, and put those in the place of the sums."""
    rank, padded, own, gradient, curvature = work.rank, work.padded, work.own, work.gradient, work.curvature
    second = after(start(statistics.second), entity * (rank * (rank + 1) // 2))
    first = after(start(statistics.first), entity * rank)
    place, seen = 0, 0.0
    for r in range(rank):
        seen += second[place]
        place += rank - r
    share = decay if seen > 0.0 else 1.0
    for r in range(rank):
        linear = gradient[r] + dot(after(curvature, r * padded), own, padded)
        first[r] += share * (linear - first[r])
    place = 0
    for r in range(rank):
        for s in range(r, rank):
            second[place] += share * (curvature[r * padded + s] - second[place])
            curvature[r * padded + s] = second[place]
            curvature[s * padded + r] = second[place]
            place += 1
    for r in range(rank):
        gradient[r] = first[r] - dot(after(curvature, r * padded), own, padded)


@njit(**CALLED)
def _add_labels(labels: BlockLabels, entity: int, rule: Rule, work: Work, solver: Solver) -> None:
    """Solve the cavity row where wanted, then add the labels of one entity."""
    terms, cavity = labels
    mirror(work.curvature, work.rank, work.padded)
    if len(cavity) > 0:
        solve(work.curvature, work.gradient, work.own, rule.nonnegative, solver)
        for r in range(work.rank):
            cavity[terms.offsets[entity], r] = solver.point[r]
    add_terms(terms, entity, work, rule)


@njit(**INNER)
def _step(
    lists: Lists, e: int, rule: Rule, labels: BlockLabels, statistics: Statistics, work: Work, solver: Solver
) -> None:
    """Put the new row of block e, whose sums are in the work, into ``solver.point`` and into the factors."""
    own, gradient, curvature = work.own, work.gradient, work.curvature
    offsets = start(labels.terms.offsets)
    entity = np.int64(lists.entities[e])
    if rule.action == 2:
        mirror(curvature, work.rank, work.padded)
        _carry(statistics, entity, work, rule.decay)
    for r in range(work.rank):
        variance = prior_variance(own[r], rule)
        gradient[r] -= own[r] / variance
        curvature[r * work.padded + r] += 1.0 / variance
    if len(labels.terms.offsets) > 1 and offsets[entity + 1] > offsets[entity]:
        _add_labels(labels, entity, rule, work, solver)
    move(curvature, gradient, own, rule, lists.rate[e], solver)
    row = (lists.first_row + entity) * work.rank
    for r in range(work.rank):
        work.factors[row + r] = solver.point[r]


@njit(**INNER)
def _step_by_entries(
    lists: Lists, e: int, rule: Rule, labels: BlockLabels, most: int, work: Work, solver: Solver
) -> bool:
    """Move block e through its entries where it has few (``dual``); False where it is left to the sums."""
    length = lists.ends[e] - lists.begins[e]
    drawn = lists.drawn_ends[e] - lists.drawn_begins[e]
    entries = length + drawn if lists.contrast else length * work.per_cell
    if entries == 0 or entries > most or lists.scale[e] != 1.0:
        return False
    offsets, entity = start(labels.terms.offsets), np.int64(lists.entities[e])
    if len(labels.terms.offsets) > 1 and offsets[entity + 1] > offsets[entity]:
        return False
    row = (lists.first_row + entity) * work.rank
    for r in range(work.rank):
        work.own[r] = work.factors[row + r]
    own = (lists.begins[e], lists.ends[e])
    if lists.contrast:
        behind = (lists.drawn_begins[e], lists.drawn_ends[e])
        count = gather_contrast_cells(work, lists.cells, own, lists.drawn_cells, behind, rule)
    else:
        count = gather_cells(work, lists.cells[0], lists.cells[1], own, rule)
    if count == 0 or not move_by_entries(work, count, rule, lists.rate[e], solver):
        return False
    for r in range(work.rank):
        work.factors[row + r] = solver.point[r]
    return True


@njit(**OUTER)
def sweep_blocks(
    view: View,
    blocks: Blocks,
    rule: Rule,
    labels: BlockLabels,
    statistics: Statistics,
    nodes: Nodes,
    span: tuple[int, int],
) -> None:
    """Update the blocks of tasks ``span`` in place. Same as: ``reference.sweep_blocks`` of those blocks."""
    memory, more = new_memory(view), solver_memory(view.factors.shape[1])
    work, lists = work_on(view, blocks.mode, memory), _lists(view, blocks, nodes)
    solver, memory_of_stack = new_solver(work.rank, more), _stack(work, nodes.depth)
    stack = start(memory_of_stack)
    most = most_entries(work, rule) if blocks.dual else 0
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        if most > 0 and _step_by_entries(lists, e, rule, labels, most, work, solver):
            continue
        _moments(lists, e, work, rule, stack)
        _step(lists, e, rule, labels, statistics, work, solver)
    memory.numbers[0] = more[0][0] = memory_of_stack[0] = 0.0  # keeps them alive until here


@njit(**OUTER)
def step_blocks(
    view: View,
    blocks: Blocks,
    rule: Rule,
    labels: BlockLabels,
    statistics: Statistics,
    nodes: Nodes,
    span: tuple[int, int],
) -> None:
    """The same where ``nodes.sums`` holds the sums of every block. Same as: ``reference.step_blocks``."""
    memory, more = new_memory(view), solver_memory(view.factors.shape[1])
    work, lists = work_on(view, blocks.mode, memory), _lists(view, blocks, nodes)
    solver = new_solver(work.rank, more)
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _take_own(lists, e, work)
        _take_sums(work, lists.sums, e)
        _step(lists, e, rule, labels, statistics, work, solver)
    memory.numbers[0] = more[0][0] = 0.0  # keeps both alive until here


@njit(**OUTER)
def block_moments(view: View, blocks: Blocks, rule: Rule, nodes: Nodes, out: Any, span: tuple[int, int]) -> None:
    """Gradient and curvature of the blocks of tasks ``span``. Same as: ``reference.block_moments``."""
    gradient, curvature = out
    memory = new_memory(view)
    work, lists = work_on(view, blocks.mode, memory), _lists(view, blocks, nodes)
    memory_of_stack = _stack(work, nodes.depth)
    stack = start(memory_of_stack)
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _moments(lists, e, work, rule, stack)
        mirror(work.curvature, work.rank, work.padded)
        for r in range(work.rank):
            gradient[e, r] = work.gradient[r]
            for s in range(work.rank):
                curvature[e, r, s] = work.curvature[r * work.padded + s]
    memory.numbers[0] = memory_of_stack[0] = 0.0  # keeps both alive until here


@njit(**OUTER)
def lambda_moments(view: View, cells: Any, rule: Rule, sums: Floats, level: int, span: tuple[int, int]) -> None:
    """Sums of lambda's block over nodes ``span`` of the chunks of cells, (n_nodes + 1, P + 1, P).

    ``view.component_weights`` must be ones; lambda itself comes in the last row of the last node.
    Same as: ``reference.lambda_moments``, node by node.
    """
    memory = new_memory(view)
    work = work_on(view, -1, memory)
    memory_of_stack = _stack(work, level + 1)
    stack = start(memory_of_stack)
    for r in range(work.rank):
        work.own[r] = sums[len(sums) - 1, work.padded, r]
    chunks = -(-len(cells) // CHUNK)
    for n in range(span[0], span[1]):
        first, last = n << level, min((n + 1) << level, chunks)
        for c in range(first, last):
            clear(work)
            add_cells(work, start(cells), len(cells), (c * CHUNK, min((c + 1) * CHUNK, len(cells))), rule)
            _add_leaf(work, stack, c - first)
        _add_up(work, stack, last - first)
        _put_sums(work, start(sums), n)
    memory.numbers[0] = memory_of_stack[0] = 0.0  # keeps both alive until here


@njit(**OUTER)
def leave_one_out(view: View, blocks: Blocks, rule: Rule, nodes: Nodes, out: Any, span: tuple[int, int]) -> None:
    """phi, leverage and weight of the cells of tasks ``span``. Same as: ``reference.leave_one_out``."""
    phis, leverages, omegas = out
    memory, more = new_memory(view), solver_memory(view.factors.shape[1])
    work, lists = work_on(view, blocks.mode, memory), _lists(view, blocks, nodes)
    solver, memory_of_stack = new_solver(work.rank, more), _stack(work, nodes.depth)
    stack = start(memory_of_stack)
    base = work.rows
    others = len(view.starts) - 1  # of the columns, the observed contrast entity comes after the other modes
    for e in range(blocks.tasks[span[0]], blocks.tasks[span[1]]):
        _moments(lists, e, work, rule, stack)
        for r in range(work.rank):
            work.curvature[r * work.padded + r] += 1.0 / prior_variance(work.own[r], rule)
            solver.free[r] = 1
        count = factorise(work.curvature, solver)
        for p in range(lists.begins[e], lists.ends[e]):
            cell = np.int64(lists.cells[0][p])
            locate(work, cell, others)
            design_row(work, others, base)
            phi = dot(base, work.own, work.padded)
            for r in range(work.rank):
                solver.residual[r] = 0.0 if rule.nonnegative and work.own[r] == 0.0 else base[r]
            substitute(solver.residual, count, solver, solver.change)
            phis[cell] = phi
            leverages[cell] = dot(solver.residual, solver.change, work.padded)
            omegas[cell] = work.weights[0 if work.uniform else cell] * sigma_and_weight_of_one(phi, rule.curvature)[1]
    memory.numbers[0] = more[0][0] = memory_of_stack[0] = 0.0  # keeps them alive until here
