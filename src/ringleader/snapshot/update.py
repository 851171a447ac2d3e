"""Update: a snapshot and new reviews or labels -> the next snapshot. The old one is not touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringleader.arrays import Bools
from ringleader.errors import SettingsError, warn_of
from ringleader.known.labels import Labels, unmatched
from ringleader.learners import SweepInfo, fit_loop
from ringleader.learners.loop import Callback, check_callback
from ringleader.model.priors import labelled_rows
from ringleader.model.problem import Problem, with_targets
from ringleader.model.start import fresh_heads
from ringleader.model.state import State, extend_state
from ringleader.signals.lockstep import CountedBefore
from ringleader.signals.suspicion import SIDE_BY_SIDE
from ringleader.snapshot.learn import as_labels, history_entry
from ringleader.snapshot.snapshot import Derived, Snapshot
from ringleader.snapshot.stored_state import put_state_away
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.merge import merge
from ringleader.tensor.sparse import SparseTensor

UPDATE_SWEEPS = 1
"""Sweeps of an update. With three, entities that every update touches drift away from where a refit ends."""


def update(
    snapshot: Snapshot,
    reviews: Any = None,
    labels: Any = None,
    callback: Callback | None = None,
) -> Snapshot:
    """The snapshot with new reviews and new labels; only what they touch moves. Old codes stay.

    Labels alone, where they do not move the factors, leave everything that no label enters as it is.
    """
    check_callback(callback)
    if not snapshot.complete:
        raise SettingsError("this fit was stopped before its end; continue it (--resume) before you update it")
    known, heldout, newer = snapshot.labels, snapshot.heldout, as_labels(labels)
    if newer is not None:
        known = known.merged(newer) if known is not None else newer
        heldout = heldout.without(newer) if heldout is not None else None
    if reviews is None and not snapshot.config.joint:
        warn_of(unmatched(newer, snapshot.tensor) if newer is not None else ())
        return _relabelled(snapshot, known, heldout)
    tensor = snapshot.tensor
    touched = [np.zeros(n, np.bool_) for n in tensor.shape]
    if reviews is not None:
        fresh = encode_new(reviews, tensor, snapshot.reading)
        tensor = merge(tensor, fresh)
        touched = touched_by_reviews(fresh, tensor.shape)
    warn_of(unmatched(newer, tensor) if newer is not None else ())
    # What is known of the old tensor does not hold for the new one.
    after = replace(snapshot, tensor=tensor, labels=known, heldout=heldout, resumed_from=None, derived=Derived())
    relabelled = touched_by_labels(snapshot.problem, after.problem, tensor.shape)
    state = carry_heads(snapshot.problem, after.problem, extend_state(snapshot.state, tensor.shape))
    put_state_away(snapshot.state)  # it is read again where somebody asks for it
    history = list(snapshot.history)

    def after_sweep(info: SweepInfo) -> bool | None:
        history.append(history_entry(info))
        return callback(info) if callback is not None else None

    moved = {k: np.flatnonzero(a | b) for k, (a, b) in enumerate(zip(touched, relabelled, strict=True))}
    state, _ = fit_loop(after.problem, state, sweeps=UPDATE_SWEEPS, touched=moved, callback=after_sweep)
    derived = Derived(aligned=after.aligned, problem=after.problem, counted=_counted(snapshot, tensor))
    return replace(after, state=state, history=tuple(history), derived=derived)


def _relabelled(snapshot: Snapshot, labels: Labels | None, heldout: Labels | None) -> Snapshot:
    """Other labels on the same reviews and factors: the heads whose labels changed are fitted anew, nothing else is."""
    label_free = snapshot.label_free
    after = replace(snapshot, labels=labels, heldout=heldout, resumed_from=None, derived=Derived())
    problem = with_targets(snapshot.problem, after.targets)
    state = carry_heads(snapshot.problem, problem, snapshot.state)
    judge = snapshot.judge.relabelled(label_free, after.targets)
    derived = Derived(
        aligned=after.aligned,
        problem=problem,
        label_free=label_free,
        judge=judge,
        find_cores=snapshot.core_finder,
        counted=snapshot.derived.counted,
    )
    return replace(after, state=state, derived=derived)


def _counted(snapshot: Snapshot, tensor: SparseTensor) -> CountedBefore | None:
    """What lockstep counted before, for the reviews behind them; nothing is kept where it would be too much."""
    return (snapshot.derived.counted or CountedBefore()) if tensor.n_cells <= SIDE_BY_SIDE else None


def preparations(snapshot: Snapshot, target: str, modes: Sequence[int]) -> Iterator[Callable[[], object]]:
    """Calls that find, a piece each, what ``update`` shares with the next one where labels of a target come alone.

    modes : of the labels that may come where the target has none yet
    """
    if snapshot.config.joint:
        return
    yield lambda: snapshot.problem
    yield lambda: snapshot.label_free.ties
    yield from snapshot.judge.preparations(target, modes)


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
    known = {(target.mode, target.name): target for target in before.targets}
    touched = [np.zeros(n, np.bool_) for n in shape]
    for target in after.targets:
        said = np.full(shape[target.mode], np.nan)
        if (target.mode, target.name) in known:
            said[known[target.mode, target.name].codes] = known[target.mode, target.name].values
        touched[target.mode][target.codes[said[target.codes] != target.values]] = True
    return touched


def carry_heads(before: Problem, after: Problem, state: State) -> State:
    """The state with a joint head for each target of ``after``: its old one where it had one, else a fresh one.

    Labels that stay keep their cavity rows: a mode that the update does not touch solves no new ones.
    """
    old, indices = state, {(t.mode, t.name): i for i, t in enumerate(before.targets)}
    state = fresh_heads(after, state)
    for i, target in enumerate(after.targets):
        at = indices.get((target.mode, target.name))
        if at is not None:
            state.heads[i], state.noise[i] = old.heads[at], old.noise[at]
            state.evidence_slopes[i : i + 1] = old.evidence_slopes[at : at + 1]
            _, here, there = np.intersect1d(target.codes, before.targets[at].codes, return_indices=True)
            labelled_rows(after, state, i)[here] = labelled_rows(before, old, at)[there]
    return state
