"""What an update of a fitted model takes over from it: codes, heads, and whom the new reviews and labels touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ringleader.arrays import Bools
from ringleader.errors import SettingsError
from ringleader.model.problem import Problem
from ringleader.model.start import fresh_heads
from ringleader.model.state import State
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor


def encode_new(reviews: Any, known: SparseTensor, reading: Mapping[str, Any]) -> SparseTensor:
    """New reviews in the codes of the known ones; ``reading`` is how those were read."""
    if not isinstance(reviews, SparseTensor):
        return read_reviews(reviews, **reading, vocabularies=known.vocabularies)
    if reviews.modes != known.modes:
        raise SettingsError(f"the model has the modes {', '.join(known.modes)}, the new reviews "
                            f"{', '.join(reviews.modes)}; read them with the same modes")  # fmt: skip
    for old, new in zip(known.vocabularies, reviews.vocabularies, strict=True):
        if not new.values[: len(old)].equals(old.values):
            raise SettingsError(
                f"the codes of mode {old.mode!r} differ from the model's; read the new reviews with "
                "vocabularies=model.tensor_.vocabularies, or give their path"
            )
    return reviews


def touched_by_reviews(fresh: SparseTensor, shape: tuple[int, ...]) -> list[Bools]:
    """Who is in the new reviews, mode by mode, (n_k,) each."""
    return [np.isin(np.arange(n), fresh.coordinates[:, k]) for k, n in enumerate(shape)]


def touched_by_labels(before: Problem, after: Problem, shape: tuple[int, ...]) -> list[Bools]:
    """Whose label is new or another than it was, mode by mode, (n_k,) each."""
    said = {(t.mode, t.name, int(c)): v for t in before.targets for c, v in zip(t.codes, t.values, strict=True)}
    touched = [np.zeros(n, np.bool_) for n in shape]
    for target in after.targets:
        for code, value in zip(target.codes, target.values, strict=True):
            if said.get((target.mode, target.name, int(code))) != value:
                touched[target.mode][code] = True
    return touched


def carry_heads(before: Problem, after: Problem, state: State) -> State:
    """The state with a head for each target of ``after``: its old one where it had one, else a fresh one."""
    old = {(t.mode, t.name): (state.heads[i], state.noise[i]) for i, t in enumerate(before.targets)}
    state = fresh_heads(after, state)
    for i, target in enumerate(after.targets):
        if (target.mode, target.name) in old:
            state.heads[i], state.noise[i] = old[target.mode, target.name]
    return state
