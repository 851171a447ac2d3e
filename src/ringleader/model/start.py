"""Where a fit starts: random rows, or rows that were given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Factors
from ringleader.model.problem import Problem
from ringleader.model.state import State
from ringleader.runtime.mapped import pieces

LEVEL = 0.8
"""Where rows start beside given ones. Chosen over 0.5 and random starts on one medium market only: re-measure."""
FARTHEST = 3.65
"""Standard deviations at which random rows are cut off. Beyond 3.6541 (one draw in 3,900) NumPy makes normal numbers of
a logarithm of the C library, whose last bits depend on the processor."""


def start_state(problem: Problem, empty: Callable[[tuple[int, ...], npt.DTypeLike], Factors] = np.empty) -> State:
    """The first state of a fit. empty : makes the array of its rows

    ``half-normal``: u = |N(0.5, 0.3)|, its ends cut off, lambda = 1 (model.md section 6). ``uniform``: u ~ U(0, 1),
    lambda ~ U(0.5, 1.5), for the published settings. ``lockstep``: the rows that were given tell the components apart,
    so all others start level and the seed matters little; where none was given, as half-normal.
    Modes in ``problem.start_rows`` take those rows.
    """
    config = problem.config
    generator = np.random.default_rng([config.seed, 0x57A27])
    shape, dtype = (problem.rows, config.rank), np.dtype(config.dtype)
    factors, level = empty(shape, dtype), config.start == "lockstep" and bool(problem.start_rows)
    for piece in pieces(factors):  # one after the other they are drawn as all at once
        some = factors[piece]
        if config.start == "uniform":
            some[:] = generator.uniform(0, 1, some.shape)
        elif level:
            some[:] = LEVEL
        else:
            drawn = generator.standard_normal(some.shape)
            some[:] = np.abs(0.5 + 0.3 * np.clip(drawn, -FARTHEST, FARTHEST, out=drawn))
    uniform = config.start == "uniform"
    component_weights = generator.uniform(0.5, 1.5, config.rank) if uniform else np.ones(config.rank)
    starts = np.concatenate([problem.starts, [problem.rows]]).astype(np.int64)
    for mode, rows in problem.start_rows.items():
        own = factors[starts[mode] : starts[mode + 1]]
        for piece in pieces(rows):
            if problem.nonnegative(mode):
                np.maximum(rows[piece], 0, out=own[piece], casting="same_kind")
            else:
                own[piece] = rows[piece]
    carried = problem.rows + 1 if config.learner == "online-em" else 0
    state = State(
        factors=factors,
        starts=starts,
        component_weights=component_weights,
        shrinkage=np.ones(config.rank),
        heads=np.zeros((0, config.rank + 1)),
        noise=np.zeros(0),
        cavities=np.zeros((0, config.rank)),
        second=np.zeros((carried, config.rank * (config.rank + 1) // 2), dtype),
        first=np.zeros((carried, config.rank)),
    )
    return fresh_heads(problem, state)


def fresh_heads(problem: Problem, state: State) -> State:
    """The state with heads at their start, for the targets of this problem (also after labels changed).

    Slopes start at zero, that of the evidence too, so labels say nothing in the first sweep; the bias of a real target
    starts at its mean, so that its labels do not jolt the factors. Evidence that was found stays until the next sweep.
    """
    heads = np.zeros((len(problem.targets), state.rank + 1))
    noise = np.zeros(len(problem.targets))
    for t, target in enumerate(problem.targets):
        if target.kind == "real":
            heads[t, 0] = target.values.mean() if len(target.values) else 0.0
            noise[t] = max(float(np.var(target.values)), 1e-6) if len(target.values) else 1.0
    read = problem.reads_evidence
    parts = [state.rows(t.mode)[t.codes].astype(np.float64) for t in problem.targets]
    cavities = np.concatenate([np.zeros((0, state.rank)), *parts])
    slopes = np.zeros(len(problem.targets) if read else 0)
    evidence = state.evidence if len(state.evidence) else np.zeros(len(state.factors))
    return state.replace(
        heads=heads, noise=noise, cavities=cavities, evidence_slopes=slopes, evidence=evidence if read else np.zeros(0)
    )
