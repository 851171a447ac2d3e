"""The loop over sweeps: objective, callback, early stop, and a guard against leaving the finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ringleader.errors import SettingsError
from ringleader.learners.passes import Touched
from ringleader.learners.schedule import step_size
from ringleader.model.objective import effective_rank, heldout_log_likelihood, log_likelihood, log_posterior
from ringleader.model.problem import Problem
from ringleader.model.state import State


class Learner(Protocol):
    """A way to learn."""

    name: str

    def sweep(self, problem: Problem, state: State, touched: Touched | None = None) -> State:
        """One pass: a new state, with arrays of its own. The one that comes in stays as it is."""
        ...


class SweepInfo(NamedTuple):
    """What one sweep did. Likelihoods are per observed cell with its negatives; NaN where not tracked."""

    sweep: int  # sweeps done, this one included
    last_sweep: int  # number of the last one, where nothing stops before it
    step: float
    log_posterior: float
    log_likelihood: float
    heldout_log_likelihood: float
    effective_rank: float
    state: State | None  # after this sweep; None in the history, which would hold every state of a fit


Callback = Callable[[SweepInfo], bool | None]
Measure = Callable[[Problem, State], tuple[float, float]]
"""Log-likelihood of the training cells and their negatives, and mean of a held-out cell; NaN where not wanted."""


def check_callback(callback: Callback | None) -> None:
    """Refuses what cannot be called, before any sweep."""
    if callback is not None and not callable(callback):
        raise SettingsError(f"callback is {callback!r}; give a function of a SweepInfo, or None")


def fit_loop(
    problem: Problem,
    state: State,
    learner: Learner | None = None,
    *,
    sweeps: int | None = None,
    callback: Callback | None = None,
    touched: Touched | None = None,
    past: Sequence[float] = (),
    measure: Measure | None = None,
) -> tuple[State, list[SweepInfo]]:
    """Run ``sweeps`` more sweeps (default: those missing from ``config.sweeps``).

    Stops early where ``callback`` returns True, or where the held-out likelihood has not risen for
    ``config.patience`` sweeps (0: never), the sweeps whose likelihoods are in ``past`` included. The arrays of
    ``state`` stay as they are. Ten sweeps are four, a save, a load and six more, bit for bit. The callback may keep the
    state it is shown; the infos returned hold none. ``measure`` is for learners that have measured it already.
    """
    learner = get_learner(problem.config.learner) if learner is None else learner
    count = max(problem.config.sweeps - state.sweep, 0) if sweeps is None else sweeps
    history: list[SweepInfo] = []
    best, since = -np.inf, 0
    for value in past:
        best, since = (value, 0) if value > best else (best, since + 1)
    if problem.config.patience and since >= problem.config.patience:
        return state, history
    last_sweep = state.sweep + count
    for _ in range(count):
        step = step_size(problem.config, state.steps)
        state = learner.sweep(problem, state, touched)
        state.check_finite()
        info = sweep_info(problem, state, step, last_sweep, (measure or likelihoods)(problem, state))
        history.append(info._replace(state=None))
        if callback is not None and callback(info):
            break
        if info.heldout_log_likelihood > best:
            best, since = info.heldout_log_likelihood, 0
        else:
            since += 1
        if problem.config.patience and since >= problem.config.patience:
            break
    return state, history


def likelihoods(problem: Problem, state: State) -> tuple[float, float]:
    """Measure a state against the negatives of its last sweep (``Measure``)."""
    training = log_likelihood(problem, state) if problem.config.track_objective else float("nan")
    return training, heldout_log_likelihood(problem, state)


def sweep_info(
    problem: Problem, state: State, step: float, last_sweep: int, measured: tuple[float, float]
) -> SweepInfo:
    """What a sweep did, with the likelihoods that were measured after it."""
    weight = float(problem.weights.sum()) if len(problem.weights) > 1 else problem.tensor.n_cells * problem.weights[0]
    likelihood, heldout = measured
    return SweepInfo(
        state.sweep,
        last_sweep,
        step,
        log_posterior(problem, state, likelihood) if problem.config.track_objective else float("nan"),
        likelihood / max(weight, 1e-300),
        heldout,
        effective_rank(state, problem.backend),
        state,
    )


def get_learner(name: str) -> Learner:
    """The learner of that name."""
    from ringleader.learners import batch_em, gibbs, natural_gradient, online_em, sgd

    learners: dict[str, Learner] = {m.name: m for m in (natural_gradient, sgd, online_em, batch_em, gibbs)}
    if name not in learners:
        raise SettingsError(f"there is no learner {name!r}; choose {', '.join(learners)}")
    return learners[name]
