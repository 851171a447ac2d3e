"""One pass over the data. Learners differ in the move of a block; who moves, from which entries, is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Floats, Numbers
from ringleader.kernels.layout import GRADIENT, STATISTICS, Blocks, Statistics, Terms, View, no_statistics, plan_blocks
from ringleader.learners.schedule import batch_cells, step_size
from ringleader.model.evidence import ReviewEvidence, head_evidence, review_evidence
from ringleader.model.negatives import draw_sweep, view_of
from ringleader.model.priors import (
    balance,
    head_step,
    label_terms,
    labelled_rows,
    lambda_step,
    refresh_rows,
    update_shrinkage,
)
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.shares.share import Share, WholeShare

Touched = Mapping[int, npt.NDArray[Any]]
"""Entities of some modes, by code or as a mask; entities of other modes are not touched at all."""


class Move(NamedTuple):
    """How a learner moves its blocks."""

    action: int
    step: float
    decay: float = 1.0


def complete_pass(problem: Problem, state: State, move: Move, touched: Touched | None = None) -> State:
    """Every block once, each from all its entries. With ``touched``, only those blocks, and lambda stays."""
    chosen = None if touched is None else {k: _chosen(problem, k, touched) for k in range(problem.modes)}
    state = move_share(WholeShare(problem, _placed(problem, state), chosen), move, learn_lambda=touched is None)
    return read_evidence(problem, _fetched(problem, state), move)


def move_share(share: Share, move: Move, *, learn_lambda: bool = True) -> State:
    """Move what this process holds once, and take part in what all move together; in place."""
    problem, state = share.problem, share.state
    rate = _rate(problem, 1, move)[0]
    for mode in problem.sweep_order():
        if share.movable(mode) == 0:
            continue
        rule = problem.rule(mode, step=move.step, action=move.action, decay=move.decay)
        terms, statistics = label_terms(problem, state, mode), _statistics(state, mode)
        cavity = _cavity_rows(problem, state, terms)
        share.sweep(mode, rule, rate, terms, statistics, cavity)
        refresh_rows(problem, state, mode, terms, cavity)
        for t in problem.targets_of(mode):
            head_rule = problem.rule(mode, step=move.step, action=move.action)
            rows, evidence = share.labelled_rows(t), share.labelled_evidence(t)
            head_step(share.all_targets, state, t, rows, head_rule, evidence)
    if problem.config.learn_lambda and learn_lambda:
        rule = problem.rule(problem.config.contrast, step=move.step, action=move.action, decay=move.decay)
        lambda_step(problem, state, share.lambda_moments(rule), rule, (1.0, rate))
        state.shrinkage[:] = update_shrinkage(state.component_weights, state.shrinkage)
        balance(problem, state)
    return state.replace(sweep=state.sweep + 1, steps=state.steps + 1)


def _placed(problem: Problem, state: State) -> State:
    """A copy of the state, with the arrays that have rows of entities where the backend works."""
    large = {name: getattr(state, name) for name in ("factors", "second", "first")}
    rest = state.replace(**{name: array[:0] for name, array in large.items()}).copy()
    return rest.replace(**{name: problem.backend.place(array) for name, array in large.items()})


def _fetched(problem: Problem, state: State) -> State:
    """The state with NumPy's arrays."""
    large = ("factors", "second", "first")
    return state.replace(**{name: problem.backend.fetch(getattr(state, name)) for name in large})


def batch_pass(problem: Problem, state: State, move: Move) -> State:
    """As many entries as there are cells, in batches drawn with replacement; each batch moves what it touches."""
    for moved in batch_steps(problem, state, move):
        state = moved
    balance(problem, state)
    return read_evidence(problem, _fetched(problem, state).replace(sweep=state.sweep + 1), move)


def batch_steps(problem: Problem, state: State, move: Move) -> Iterator[State]:
    """The state after each batch: ``batch_pass`` for those who want to watch.

    All states share arrays that the next batch changes: copy one to keep it. Those with a row for each entity are where
    the backend works.
    """
    config = problem.config
    state = _placed(problem, state)
    view = view_of(problem, state, draw_sweep(problem, state.sweep))
    cells_in_all = problem.tensor.n_cells
    for batch in range(max(1, round(cells_in_all / config.batch_size))):
        gamma = step_size(config, state.steps)
        # Carried statistics move by gamma themselves; the maximisation after them is whole.
        step = move.step if move.action == STATISTICS else move.step * gamma
        scaled = move._replace(step=step, decay=gamma)
        cells = batch_cells(config, cells_in_all, state.sweep, batch)
        if config.learn_lambda:
            _batch_lambda(problem, state, view, cells, scaled)
        tuples = problem.backend.take(view.tuples, cells)
        for mode in problem.sweep_order():
            _move_mode(problem, state, view, _batch_blocks(problem, tuples, mode, cells, scaled), scaled)
            _move_heads(problem, state, mode, scaled)
        state = state.replace(steps=state.steps + 1)
        yield state


def _move_mode(problem: Problem, state: State, view: View, blocks: Blocks, move: Move) -> None:
    """Move the blocks of one mode, and note the rows on which its heads are fitted."""
    mode = blocks.mode
    rule = problem.rule(mode, step=move.step, action=move.action, decay=move.decay)
    terms = label_terms(problem, state, mode)
    cavity = _cavity_rows(problem, state, terms)
    problem.backend.sweep_blocks(view, blocks, rule, terms, _statistics(state, mode), cavity)
    refresh_rows(problem, state, mode, terms, cavity)


def _move_heads(problem: Problem, state: State, mode: int, move: Move) -> None:
    for t in problem.targets_of(mode):
        rule = problem.rule(mode, step=move.step, action=move.action)
        head_step(problem, state, t, labelled_rows(problem, state, t), rule)


def read_evidence(
    problem: Problem, state: State, move: Move, find: Callable[[Problem, State], ReviewEvidence] = review_evidence
) -> State:
    """The state with the evidence of its factors, and its heads moved to it; as it is where no head reads evidence.

    find : the evidence of the reviews under a state.
    """
    if not problem.reads_evidence:
        return state
    state = state.replace(evidence=head_evidence(problem, state, find))
    for _ in range(problem.config.head_steps):
        for mode in {target.mode for target in problem.targets}:
            _move_heads(problem, state, mode, move)
    return state


def _statistics(state: State, mode: int) -> Statistics:
    """The carried statistics of a mode's rows; none where the learner carries none."""
    if not len(state.first):
        return no_statistics(state.rank, state.second.dtype)
    own = slice(state.starts[mode], state.starts[mode + 1])
    return Statistics(state.second[own], state.first[own])


def _cavity_rows(problem: Problem, state: State, terms: Terms) -> Floats:
    """An array for cavity rows, NaN until solved; none where labels do not move the factors anyway."""
    wanted = problem.config.cavity and len(terms.target) > 0
    return np.full((len(terms.target) if wanted else 0, state.rank), np.nan)


def _chosen(problem: Problem, mode: int, touched: Touched) -> Numbers:
    """Codes of the touched entities of a mode; labelled ones join where labels move the factors."""
    entities = np.asarray(touched.get(mode, np.zeros(0, np.int64)))
    codes = np.flatnonzero(entities) if entities.dtype == np.bool_ else entities
    parts = [codes.astype(np.int64)]
    if problem.config.joint and len(codes):
        parts += [problem.targets[t].codes.astype(np.int64) for t in problem.targets_of(mode)]
    return np.unique(np.concatenate(parts))


def _rate(problem: Problem, count: int, move: Move) -> Floats:
    """Gradients take the scale of their step from the trace of the curvature, except under the printed settings."""
    own_scale = move.action == GRADIENT and problem.config.carry
    return np.zeros(count) if own_scale else np.ones(count)


def _batch_lambda(problem: Problem, state: State, view: View, cells: Codes, move: Move) -> None:
    rule = problem.rule(problem.config.contrast, step=move.step, action=move.action, decay=move.decay)
    cells_in_all = problem.tensor.n_cells
    scale = cells_in_all / len(cells) if problem.config.carry else 1.0
    rate = _rate(problem, 1, move)[0]
    lambda_step(problem, state, problem.backend.lambda_moments(view, cells, rule), rule, (scale, rate))
    state.shrinkage[:] = update_shrinkage(state.component_weights, state.shrinkage)


def _batch_blocks(problem: Problem, tuples: Codes, mode: int, cells: Codes, move: Move) -> Blocks:
    """The blocks that a batch touches, with the batch's entries of each; ``tuples`` are those of its cells."""
    modes, contrast = problem.modes, problem.config.contrast
    entities, begins, ends, own = _lists(tuples[:, mode], cells)
    total = problem.tensor.degrees(mode)
    if mode != contrast or problem.config.negatives == 0:
        scale = total[entities] / (ends - begins) if problem.config.carry else None
        return plan_blocks(mode, entities, (begins, ends, own), scale=scale, rate=_rate(problem, len(entities), move))
    drawn = tuples[:, modes:]
    drawn_entities, drawn_begins, drawn_ends, drawn_cells = _lists(
        drawn.ravel(), np.repeat(cells, problem.config.negatives)
    )
    every = np.union1d(entities, drawn_entities)
    first, last = _align(every, entities, begins, ends)
    drawn_first, drawn_last = _align(every, drawn_entities, drawn_begins, drawn_ends)
    # An entity is drawn as often as it is active: all its entries are 1 + m times its cells, on average.
    expected = total[every] * (1 + problem.config.negatives)
    seen = (last - first) + (drawn_last - drawn_first)
    scale = expected / seen if problem.config.carry else None
    return plan_blocks(
        mode,
        every,
        (first, last, own),
        (drawn_first, drawn_last, drawn_cells),
        scale=scale,
        rate=_rate(problem, len(every), move),
    )


def _lists(codes: npt.NDArray[Any], cells: Codes) -> tuple[Numbers, Numbers, Numbers, Codes]:
    """Entities among codes, the range of each in the sorted cells, and those cells."""
    order = np.argsort(codes, kind="stable")
    entities, begins = np.unique(codes[order], return_index=True)
    ends = np.append(begins[1:], len(codes))
    return entities.astype(np.int64), begins.astype(np.int64), ends.astype(np.int64), cells[order]


def _align(every: Numbers, entities: Numbers, begins: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """Ranges of a larger set of entities; empty where an entity has none."""
    first, last = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
    places = np.searchsorted(every, entities)
    first[places], last[places] = begins, ends
    return first, last
