"""Arrays that do not fit together are refused before a kernel reads them; what is imported, and when."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ringleader.errors import ModelFileError
from ringleader.kernels.checks import check_lists
from ringleader.kernels.layout import Statistics, Terms, View, no_statistics, no_terms, plan_blocks, read_only
from ringleader.kernels.protocol import Backend, backend_names, get_backend, unavailable
from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.posterior import cell_evidence, cell_log_odds
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.tensor.sparse import SparseTensor

RANK, SIZES = 3, (8, 5)
RUNNABLE = [name for name in backend_names() if unavailable(name) is None]
every_backend = pytest.mark.parametrize("backend", [get_backend(name) for name in RUNNABLE], ids=RUNNABLE)


def small_view() -> View:
    rng = np.random.default_rng(0)
    tuples = np.stack([rng.integers(0, 8, 30), rng.integers(0, 5, 30), rng.integers(0, 8, 30)], axis=1)
    factors = np.abs(rng.normal(size=(13, RANK)))
    return View(read_only(tuples.astype(np.int32)), np.ones(1), 0, factors, np.array([0, 8]), 13, np.ones(RANK))


def second_mode(view: View, entities: np.ndarray | None = None):  # type: ignore[no-untyped-def]
    chosen = np.arange(5) if entities is None else entities
    offsets = np.concatenate([[0], np.cumsum(np.bincount(view.tuples[:, 1], minlength=5))])
    order = np.argsort(view.tuples[:, 1], kind="stable").astype(np.int32)
    within = np.minimum(chosen, 4)
    return plan_blocks(1, chosen, (offsets[within], offsets[within + 1], order))


def test_lists_that_were_read_from_a_file_need_no_kernel_of_their_own() -> None:
    numba = pytest.importorskip("numba")
    order = np.arange(6, dtype=np.int32)
    lists = np.array([0, 2, 4]), np.array([2, 4, 6]), order
    of_a_file = tuple(array.copy() for array in lists)
    for array in of_a_file:
        array.flags.writeable = False
    kinds = {str(numba.typeof(plan_blocks(0, np.arange(3), own, own))) for own in (lists, of_a_file)}
    assert len(kinds) == 1


def small_problem() -> tuple[Problem, State]:
    rng = np.random.default_rng(1)
    tensor = SparseTensor.from_arrays(np.stack([rng.integers(0, n, 60) for n in (20, 9, 4)], axis=1))
    problem = build_problem(tensor, (), ModelConfig(rank=RANK, sweeps=1))
    return problem, start_state(problem)


def call(backend: Backend, operation: str, view: View, **changes: object) -> None:
    blocks, rule = second_mode(view), small_problem()[0].rule(1)
    if operation == "sweep_blocks":
        terms = changes.pop("terms", no_terms(RANK))
        statistics = changes.pop("statistics", no_statistics(RANK))
        action = changes.pop("action", 0)
        rule = rule._replace(action=action)
        cavity = changes.pop("cavity", np.zeros((0, RANK)))
        backend.sweep_blocks(view, blocks._replace(**changes), rule, terms, statistics, cavity)  # type: ignore[arg-type]
    elif operation in ("block_moments", "leave_one_out"):
        getattr(backend, operation)(view, blocks._replace(**changes), rule)
    elif operation == "lambda_moments":
        backend.lambda_moments(view, np.arange(30, dtype=np.int32), rule)
    elif operation == "log_odds":
        backend.log_odds(view, view.tuples[:, :2])
    else:
        backend.log_likelihood(view)


OPERATIONS = ("sweep_blocks", "block_moments", "leave_one_out", "lambda_moments", "log_odds", "log_likelihood")


@every_backend
@pytest.mark.parametrize("operation", OPERATIONS)
def test_factors_that_are_too_short_are_refused(backend: Backend, operation: str) -> None:
    view = small_view()
    call(backend, operation, view)
    with pytest.raises(ValueError, match=r"factors have shape \(12, 3\), but the tuples name 13 entities"):
        call(backend, operation, view._replace(factors=view.factors[:12].copy()))
    with pytest.raises(ValueError, match="29 weights for 30 cells"):
        call(backend, operation, view._replace(weights=np.ones(29)))


@every_backend
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entities": np.array([0, 1, 2, 3, 5], np.int32)}, "entities of mode 1"),
        ({"entities": np.array([0, 1, 2, 3, -1], np.int32)}, "entities of mode 1 run from -1"),
        ({"ends": np.array([1, 2, 3, 4])}, "differ in number"),
        ({"tasks": np.array([0, 4])}, "pieces of work"),
        ({"rate": np.ones(4)}, "differ in number"),
        ({"mode": 2}, "mode 2"),
    ],
)
def test_blocks_that_do_not_fit_their_view_are_refused(
    backend: Backend, changes: dict[str, object], message: str
) -> None:
    for operation in ("sweep_blocks", "block_moments", "leave_one_out"):
        with pytest.raises(ValueError, match=message):
            call(backend, operation, small_view(), **changes)


def test_lists_that_leave_their_cells_are_refused_where_blocks_are_made() -> None:
    view = small_view()
    blocks = second_mode(view)
    check_lists(blocks, 30)
    for changes, message in (
        ({"cells": np.full(30, 30, np.int32)}, "cells of blocks run from 30 to 30"),
        ({"ends": np.array([1, 2, 3, 4, 31])}, "outside their list"),
        ({"drawn_ends": np.array([0, 0, 0, 0, 1])}, "outside their list of 0 cells"),
    ):
        with pytest.raises(ValueError, match=message):
            check_lists(blocks._replace(**changes), 30)  # type: ignore[arg-type]
    problem, _ = small_problem()
    with pytest.raises(ValueError, match="outside their list"):
        problem.blocks(0, (np.full(21, 99), np.zeros(3, np.int32) * 0))


@every_backend
def test_labels_and_statistics_that_do_not_fit_are_refused(backend: Backend) -> None:
    offsets = np.array([0, 1, 1, 1, 1, 1])
    terms = Terms(offsets, np.zeros(1, np.int32), np.ones(1), np.ones((1, RANK + 1)), np.zeros(1))
    call(backend, "sweep_blocks", small_view(), terms=terms)
    for wrong in (
        terms._replace(offsets=offsets[:-1]),
        terms._replace(target=np.ones(1, np.int32)),
        terms._replace(beta=np.ones((1, RANK))),
    ):
        with pytest.raises(ValueError, match=r"label terms|heads"):
            call(backend, "sweep_blocks", small_view(), terms=wrong)
    with pytest.raises(ValueError, match="cavity rows"):
        call(backend, "sweep_blocks", small_view(), terms=terms, cavity=np.zeros((1, RANK - 1)))
    with pytest.raises(ValueError, match="statistics"):
        call(backend, "sweep_blocks", small_view(), statistics=Statistics(np.zeros((4, 6)), np.zeros((4, 3))), action=2)


def test_a_state_that_does_not_fit_its_problem_is_refused() -> None:
    problem, state = small_problem()
    short = state.replace(factors=state.factors[:-3].copy())
    shifted = state.replace(starts=state.starts + np.array([0, 1, 0, 0]))
    narrow = state.replace(component_weights=np.ones(RANK - 1))
    for wrong in (short, shifted, narrow):
        for use in (fit_loop, cell_evidence, cell_log_odds):
            with pytest.raises(ModelFileError, match="does not fit"):
                use(problem, wrong)  # type: ignore[operator]
    with pytest.raises(ValueError, match="codes of mode 0"):
        cell_log_odds(problem, state, np.array([[20, 0, 0]]))


def test_numba_is_imported_when_its_backend_is_made() -> None:
    script = (
        "import sys\n"
        "import ringleader.learners.gibbs, ringleader.model.posterior, ringleader.signals.lockstep.pairs\n"
        "import ringleader.signals.evidence, ringleader.kernels.protocol as protocol\n"
        "protocol.get_backend('reference')\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules), 'numba came with an import'\n"
        "protocol.get_backend('numba')\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_problem_has_numba_imported_when_something_is_asked_of_its_backend() -> None:
    script = (
        "import pickle, sys\n"
        "import numpy as np\n"
        "from ringleader.model.config import ModelConfig\n"
        "from ringleader.model.problem import build_problem, with_targets\n"
        "from ringleader.tensor.sparse import SparseTensor\n"
        "tensor = SparseTensor.from_arrays(np.zeros((1, 2), int), sizes=(1, 1))\n"
        "problem = with_targets(build_problem(tensor, config=ModelConfig(threads=3)), ())\n"
        "copy = pickle.loads(pickle.dumps(problem.backend))\n"
        "assert 'numba' not in sys.modules\n"
        "assert (copy.name, copy.threads, problem.backend.threads) == ('numba', 3, 3)\n"
        "assert 'numba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
