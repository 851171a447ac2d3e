"""State: every array that a fit carries from sweep to sweep. Plain arrays, so that it can be saved and resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Factors, Floats, Numbers
from ringleader.errors import ModelFileError, NumericalError
from ringleader.runtime.mapped import pieces

LATER = ("evidence", "evidence_slopes")
"""Arrays that states of models before version 1.1 do not have: their heads read rows alone."""


@dataclass(frozen=True, eq=False)
class State:
    """Learned arrays and counters. mu2 and rho2 are functions of the factors and heads, so they are not kept.

    A sweep makes a new state with arrays of its own; nothing writes into one that is already there.
    """

    factors: Factors  # U, (sum of n_k, R): one mode below the other
    starts: Numbers  # (K + 1,): first row of each mode, and the number of rows
    component_weights: Floats  # lambda, (R,)
    shrinkage: Floats  # delta, (R,): tau_r = prod_{l <= r} delta_l
    heads: Floats  # beta, (T, R + 1): bias first
    noise: Floats  # s2, (T,): noise variance of real targets, 0 for binary ones
    cavities: Floats  # rows of labelled entities solved without their labels, (labels of all targets, R)
    second: Factors  # S1 of online EM, (rows + 1, R (R + 1) / 2), lambda's last; or no rows
    first: Floats  # S2 of online EM, (rows + 1, R), lambda's last; or no rows
    sweep: int = 0
    steps: int = 0
    evidence: Floats = field(default_factory=lambda: np.zeros(0))  # e, (rows,): what joint heads read beside rows
    evidence_slopes: Floats = field(default_factory=lambda: np.zeros(0))  # alpha, (T,); both empty where none reads it

    @property
    def rank(self) -> int:
        return int(self.factors.shape[1])

    @property
    def modes(self) -> int:
        return len(self.starts) - 1

    def rows(self, mode: int) -> Factors:
        """The factor rows of a mode, (n_k, R): a view."""
        return self.factors[self.starts[mode] : self.starts[mode + 1]]

    def evidence_of(self, mode: int) -> Floats:
        """The evidence that joint heads read of a mode, (n_k,): a view; zeros where none reads it."""
        begin, end = int(self.starts[mode]), int(self.starts[mode + 1])
        return self.evidence[begin:end] if len(self.evidence) else np.zeros(end - begin)

    def copy(self) -> State:
        """The same with arrays of its own."""
        arrays = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("sweep", "steps")}
        return self.replace(**{name: array.copy() for name, array in arrays.items()})

    def replace(self, **changes: Any) -> State:
        return dataclasses.replace(self, **changes)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same state bit for bit."""
        arrays = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        arrays["sweep"], arrays["steps"] = np.array([self.sweep]), np.array([self.steps])
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> State:
        arrays = {**{name: np.zeros(0) for name in LATER}, **arrays}
        missing = {f.name for f in dataclasses.fields(cls)} - set(arrays)
        if missing:
            raise ModelFileError(f"the stored state lacks {', '.join(sorted(missing))}")
        taken = {f.name: np.asarray(arrays[f.name]) for f in dataclasses.fields(cls)}  # whoever read them made them
        sweep, steps = int(taken.pop("sweep")[0]), int(taken.pop("steps")[0])
        return cls(**taken, sweep=sweep, steps=steps)

    def check_finite(self) -> None:
        """Raise where the fit has left the finite numbers."""
        for name in ("factors", "component_weights", "shrinkage", "heads", "noise", "first", "evidence_slopes"):
            array = getattr(self, name)
            # The sum of finite numbers may overflow only where they are useless too; it is one pass without a mask.
            if not all(np.isfinite(np.sum(array[piece], dtype=np.float64)) for piece in pieces(array)):
                raise NumericalError(
                    f"{name} is no longer finite in sweep {self.sweep}; "
                    "use a smaller step, fewer components or another start"
                )


def extend_state(state: State, sizes: Sequence[int], rows: Mapping[int, npt.ArrayLike] | None = None) -> State:
    """The state over larger vocabularies: old rows stay, new ones come from ``rows`` or from their mode's mean.

    ``rows`` maps a mode to (n_new, R) rows of its new entities. Statistics of new entities are empty.
    """
    rank = state.rank
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    factors = np.zeros((int(starts[-1]), rank), state.factors.dtype)
    carried = len(state.first) > 0
    second = np.zeros((len(factors) + 1 if carried else 0, state.second.shape[1]), state.second.dtype)
    first = np.zeros((len(factors) + 1 if carried else 0, rank))
    second[-1:], first[-1:] = state.second[-1:], state.first[-1:]
    evidence = np.zeros(len(factors) if len(state.evidence) else 0)  # of new entities 0, until it is found
    for mode in range(state.modes):
        old = state.rows(mode)
        begin, middle, end = starts[mode], starts[mode] + len(old), starts[mode + 1]
        if end < middle:
            raise ModelFileError(f"mode {mode} had {len(old):,} entities and now {sizes[mode]:,}; codes must stay")
        factors[begin:middle] = old
        new = (rows or {}).get(mode)
        mean = old.mean(axis=0) if len(old) else np.full(rank, 0.5)
        factors[middle:end] = mean if new is None else np.asarray(new)
        was = slice(state.starts[mode], state.starts[mode + 1])
        if len(evidence):
            evidence[begin:middle] = state.evidence[was]
        if carried:
            second[begin:middle], first[begin:middle] = state.second[was], state.first[was]
    return state.replace(factors=factors, starts=starts, second=second, first=first, evidence=evidence)
