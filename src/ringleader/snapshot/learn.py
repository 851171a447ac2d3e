"""Learn: reviews, labels and parameters -> a snapshot, with checkpoints on the way."""

from __future__ import annotations

import copy
import gc
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ringleader.arrays import Factors
from ringleader.cores import Cores
from ringleader.cores.cluster import cores_on_workers
from ringleader.errors import LabelError, ResumeError, RunWarning, SettingsError, warn_of
from ringleader.judge import Judge
from ringleader.judge.cluster import HeldSignals
from ringleader.kernels.protocol import idle_backend
from ringleader.known.covariates import UserCovariates, read_covariates
from ringleader.known.labels import Labels, Target, read_labels, unmatched
from ringleader.learners import SweepInfo, fit_loop
from ringleader.learners.cluster import ClusterLearner, check_cluster
from ringleader.learners.loop import Callback, check_callback, get_learner
from ringleader.model.config import ModelConfig
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.runtime.executor import using_threads
from ringleader.runtime.machine import return_memory
from ringleader.runtime.mapped import mapped_array
from ringleader.runtime.workers import Runtime, Workers, started
from ringleader.settings import Whole, check_setting
from ringleader.signals.cluster import FOUND, SOURCES, ClusterSignals
from ringleader.signals.lockstep import Lockstep, find_lockstep, start_rows
from ringleader.snapshot.batches import batch_of, batches_from, content_of
from ringleader.snapshot.folder import KEEP, Stored
from ringleader.snapshot.lock import writing
from ringleader.snapshot.manifest import MANIFEST
from ringleader.snapshot.memory import check_memory
from ringleader.snapshot.meta import HISTORY_COLUMNS
from ringleader.snapshot.parameters import (
    LOCKSTEP_SWEEPS,
    RANDOM_SWEEPS,
    check_parameters,
    model_config,
    seed_of,
)
from ringleader.snapshot.parts import Checkpoint, is_large, load
from ringleader.snapshot.resume import at_its_device, check_place, resumable, what_changed
from ringleader.snapshot.snapshot import Derived, Snapshot
from ringleader.snapshot.stored_state import check_stored_state, read_state
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import plural

SETTLED = 1e-6
"""Relative rise of the log posterior in a sweep below which there is nothing left to learn, as where hardly anybody
reviewed twice. A sweep never lowers the posterior under its own negatives: where it fell, those of another draw weigh
more than what there is to gain."""

CHEAP_BYTES = 10
"""Bytes of the factors for each entry of a sweep up to which saving them takes a tenth of the sweep or less."""
MOST_APART = 4
"""Sweeps from one checkpoint to the next, at the most."""


def learn(
    parameters: Mapping[str, Any],
    reviews: Any,
    labels: Any = None,
    covariates: Any = None,
    *,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "fit",
    at: str | None = None,
    keep: int = KEEP,
    runtime: Runtime | None = None,
) -> tuple[Snapshot, Stored | None]:
    """Fit a model. With ``checkpoint`` it is saved there after every sweep (see ``sweeps_apart``), and with ``resume``
    a fit that was stopped goes on to the same bits as one that was not. With ``runtime`` it sweeps on a cluster, to
    the same bits too. Another model there is refused without ``overwrite``, and stays until the new one is complete.
    Returns the model, and where it is stored.

    reviews, labels, covariates : as they are read, or whatever ``read_reviews``, ``read_labels`` and
    ``read_covariates`` take.
    command, at : what the history says of it
    keep        : earlier generations that stay in the folder
    """
    check_setting("keep", keep, Whole(0))
    check_callback(callback)
    lock = nullcontext() if checkpoint is None else writing(checkpoint, create=True)
    with started(runtime) as workers, lock, using_threads(parameters["threads"]):
        if checkpoint is not None:
            check_place(checkpoint, resume=resume, overwrite=overwrite)
        how = (callback, checkpoint, resume, command, at, keep)
        return _learn(parameters, reviews, labels, covariates, *how, workers)


def _learn(
    parameters: Mapping[str, Any],
    reviews: Any,
    labels: Any,
    covariates: Any,
    callback: Callback | None,
    checkpoint: str | os.PathLike[str] | None,
    resume: bool,
    command: str,
    at: str | None,
    keep: int,
    workers: Workers | None,
) -> tuple[Snapshot, Stored | None]:
    tensor = reviews if isinstance(reviews, SparseTensor) else read_reviews(reviews, runtime=workers)
    labels = as_labels(labels)
    if covariates is not None and not isinstance(covariates, UserCovariates):
        covariates = read_covariates(covariates)
    if resume and checkpoint is None:
        raise SettingsError("resume needs the folder of the fit to continue; give checkpoint=")
    seed = seed_of(parameters["random_state"])
    old = resumable(checkpoint) if resume and checkpoint is not None else None
    if old is not None and parameters["random_state"] is None:
        seed = int(old.meta["config"]["seed"])  # the one that was drawn then
    heldout: Labels | None = None
    if parameters["holdout"]:
        if labels is None:
            raise SettingsError("holdout needs labels to hold out from; give labels, or no holdout")
        labels, heldout = labels.split(parameters["holdout"], seed)
    check_parameters(parameters, tensor)
    chosen = parameters
    if workers is not None:
        if parameters.get("device", "auto") == "auto":
            chosen = {**parameters, "device": "cpu"}  # the workers' processors
        check_cluster(model_config(chosen, tensor, seed))  # before anything takes its time
    aligned = labels.align(tensor) if labels is not None else None
    if old is not None:
        targets = aligned.targets if aligned else ()
        done = _complete(old, chosen, tensor, labels, covariates, model_config(chosen, tensor, seed), targets)
        if done is not None:
            warn_of(unmatched(labels, tensor) if labels is not None else ())
            return done
    cluster = None if workers is None else ClusterSignals(workers, tensor, model_config(chosen, tensor, seed).contrast)
    if workers is None and parameters["preset"] == "default":
        check_memory(tensor, model_config(chosen, tensor, seed).rank, labels)
    config, rows, lockstep = _start(chosen, tensor, seed, cluster)
    if old is not None:
        config = at_its_device(config, old, _device(parameters))
    warn_of(unmatched(labels, tensor) if labels is not None else ())
    problem = build_problem(
        tensor,
        aligned.targets if aligned else (),
        config,
        start_rows={} if rows is None else {config.contrast: rows},
        backend=None if workers is None else idle_backend(),
    )
    for target in problem.targets:
        if target.kind == "real" and not len(target.codes):
            many = plural(tensor.modes[target.mode])
            raise LabelError(f"none of the labelled {many} is in the reviews, so {target.name} cannot be learned")
    state = _resumed_state(old, parameters, tensor, labels, covariates, config, problem.targets)
    begun_on = problem.backend.kind if old is None else old.meta.get("device", "cpu")
    if begun_on != problem.backend.kind:
        moved = (
            f"this fit was begun on {begun_on} and is continued on {problem.backend.kind}: "
            "the last bits of its numbers may differ from those of a fit that was not moved"
        )
        warn_of([moved], RunWarning)
    snapshot = Snapshot(
        parameters=copy.deepcopy(dict(parameters)),
        config=config,
        tensor=tensor,
        labels=labels,
        heldout=heldout,
        covariates=covariates,
        reading=how_it_was_read(tensor),
        report=tensor.report.as_dict() if tensor.report is not None else None,
        state=start_state(problem, np.empty if workers is None else mapped_array) if state is None else state,
        history=() if old is None else tuple(old.meta["history"]),
        complete=False,
        resumed_from=None if state is None else state.sweep,
        batches=(batch_of(command, at, tensor, len(labels) if labels is not None else 0),)
        if old is None
        else tuple(replace(b, content=content_of(tensor)) for b in batches_from(old.meta.get("batches", ()))),
        device=problem.backend.kind,
        derived=Derived(lockstep=lockstep),
    )
    may_settle = rows is None and config.start == "lockstep" and parameters["epochs"] is None
    problem, rows = replace(problem, start_rows={}), None  # they are in the state
    learner = None if workers is None else ClusterLearner(workers, get_learner(config.learner))
    writer = Checkpoint(checkpoint, old, keep, learner) if checkpoint is not None else None
    if writer is not None and old is None:
        writer.save(snapshot)
    history = list(snapshot.history)
    apart, waits = sweeps_apart(snapshot) if learner is None else 1, False

    def after_sweep(info: SweepInfo) -> bool | None:
        nonlocal snapshot, waits
        assert info.state is not None  # the loop always passes the live state
        history.append(history_entry(info))
        stop = callback(info) if callback is not None else None
        snapshot = replace(snapshot, state=info.state, history=tuple(history))  # the state before is needed no more
        waits = info.sweep % apart > 0
        if writer is not None and not waits:
            writer.save(snapshot)
        return stop or (may_settle and settled(history))

    past = [float("nan") if v is None else v for v in (h["heldout_log_likelihood"] for h in history)]
    measure = None if learner is None else learner.likelihoods
    left = 0 if may_settle and settled(history) else None
    last, _ = fit_loop(problem, snapshot.state, learner, sweeps=left, callback=after_sweep, past=past, measure=measure)
    if writer is not None and waits:
        writer.save(snapshot)
    fitted = replace(snapshot, state=last, history=tuple(history), complete=True)
    held: HeldSignals | None = None
    if cluster is not None and learner is not None:
        workers_learner, workers_signals = learner, cluster

        def find_evidence() -> None:
            workers_learner.keep_evidence(problem, fitted.state, workers_signals.edges)
            workers_learner.release()  # the signals need the memory

        pairs = cluster.lockstep() if lockstep is None else lockstep
        held = HeldSignals(cluster, pairs, fitted.user_columns.modes, find_evidence)
        if writer is not None:  # what follows needs the memory; whoever asks for the state reads it
            fitted = replace(fitted, state=writer.saved_state())
            snapshot, last = fitted, fitted.state
        judge = _judge_on(held, fitted) if writer is not None and fitted.judged else None
        label_free = held.label_free if writer is not None else held.whole()
        finder = None if writer is None else partial(_cores_on, held, pairs)
        fitted = replace(fitted, derived=Derived(label_free=label_free, judge=judge, find_cores=finder))
        cluster.release(FOUND if writer is None else SOURCES)
        return_memory()
    else:
        del problem, state, last, lockstep  # what follows needs the memory of all that is not of the fitted model
        snapshot = fitted
        if writer is not None and is_large(max(tensor.shape)):
            snapshot = fitted = writer.without_state(fitted)
            gc.collect()  # the one before and its signals hold each other
            fitted.signals.lay_aside()
        return_memory()
    if fitted.judged:
        fitted.judge.heads()
    if writer is None:
        return fitted, None
    writer.save(fitted, held)
    if cluster is not None:
        cluster.release(FOUND)
    elif not is_large(max(tensor.shape)):
        return fitted, writer.stored
    return writer.read_back(fitted), writer.stored


def _cores_on(held: HeldSignals, lockstep: Lockstep) -> Cores:
    """The cores of the reviews, found by workers, which let go of what is in the model's folder."""
    held.forget_written()
    return cores_on_workers(held.cluster, lockstep)


def _judge_on(held: HeldSignals, snapshot: Snapshot) -> Judge:
    """The heads of a snapshot, fitted by workers."""
    return held.judge(
        snapshot.targets,
        [k for k in range(len(snapshot.tensor.shape)) if snapshot.target_index(k) is None],
        seed=snapshot.config.seed,
        prevalence=snapshot.parameters["prevalence"],
        threads=snapshot.parameters["threads"],
    )


def sweeps_apart(snapshot: Snapshot) -> int:
    """Sweeps from one checkpoint of a fit to the next: where a large model has few reviews, saving takes as long as
    sweeping, and a sweep that is lost is soon done again.
    """
    entries = snapshot.tensor.n_cells * (1 + snapshot.config.negatives)
    if not is_large(max(snapshot.tensor.shape)):
        return 1
    return int(np.clip(snapshot.state.factors.nbytes // max(CHEAP_BYTES * entries, 1), 1, MOST_APART))


def as_labels(labels: Any) -> Labels | None:
    """Labels as they are, or read from a file or a table."""
    return labels if labels is None or isinstance(labels, Labels) else read_labels(labels)


def history_entry(info: SweepInfo) -> dict[str, float]:
    """What is remembered of a sweep."""
    return {name: float(getattr(info, name)) for name in HISTORY_COLUMNS}


def settled(history: Sequence[Mapping[str, float | None]]) -> bool:
    """Whether the last sweep raised the log posterior by next to nothing; not where it was not measured."""
    before, after = ([None, None] + [entry["log_posterior"] for entry in history])[-2:]
    return before is not None and after is not None and after - before <= SETTLED * abs(after)


def how_it_was_read(tensor: SparseTensor) -> dict[str, Any]:
    """The columns and modes of a tensor, so that new files are read in the same way; nothing where it was not read."""
    if tensor.report is None:
        return {}
    modes = []
    for v in tensor.vocabularies:
        kind = {"time": f"time={v.bin_seconds}s", "number": "rating"}.get(v.kind, v.kind)
        modes.append(f"{v.mode}={tensor.report.columns[v.mode]}:{kind}")
    return {"modes": modes} if tensor.report.count is None else {"modes": modes, "count": tensor.report.count}


def _start(
    parameters: Mapping[str, Any], tensor: SparseTensor, seed: int, cluster: ClusterSignals | None
) -> tuple[ModelConfig, Factors | None, Lockstep | None]:
    """The settings and, where they ask for them, the rows that lockstep gives to start from, and that lockstep."""
    config = model_config(parameters, tensor, seed)
    if config.start != "lockstep":
        return config, None, None
    with using_threads(parameters["threads"]):
        if cluster is not None:
            lockstep = cluster.lockstep()
            rows = cluster.start_rows(config.rank, config.seed, config.dtype)
            cluster.release()  # the sweeps need the memory
        else:
            counting = config.backend if config.backend.startswith("cuda") else "numba"
            lockstep = find_lockstep(tensor, actor=config.contrast, threads=parameters["threads"], backend=counting)
            rows = start_rows(lockstep, config.rank, config.seed)
        if rows is not None:
            rows.setflags(write=False)  # so that nobody copies them
    if parameters["epochs"] is None:
        config = config.replace(sweeps=LOCKSTEP_SWEEPS[parameters["preset"]] if rows is not None else RANDOM_SWEEPS)
    return config, rows, lockstep


def _device(parameters: Mapping[str, Any]) -> str:
    """The device that is asked for."""
    return "cpu" if "backend" in (parameters["settings"] or {}) else parameters.get("device", "auto")


def _complete(
    old: Stored,
    parameters: Mapping[str, Any],
    tensor: SparseTensor,
    labels: Labels | None,
    covariates: UserCovariates | None,
    config: ModelConfig,
    targets: Sequence[Target],
) -> tuple[Snapshot, Stored] | None:
    """The model that a fit of these data and settings has ended with, and where it is; None where work is left."""
    if not old.meta["complete"] or old.meta["heads"] is None:
        return None
    config = at_its_device(config, old, _device(parameters))
    if config.start == "lockstep" and parameters["epochs"] is None:
        # How many sweeps there are depends on whether there is any lockstep, and so on the reviews, which are compared.
        stored_sweeps = old.meta["config"].get("sweeps")
        if stored_sweeps in (LOCKSTEP_SWEEPS[parameters["preset"]], RANDOM_SWEEPS):
            config = config.replace(sweeps=stored_sweeps)
    if what_changed(old, tensor, labels, covariates, parameters, config):
        return None  # refused once the settings are known to the last
    state = _checked_state(old, tensor, config, targets)
    complete, stored = load(str(old.folder))
    return replace(complete, resumed_from=state.sweep), stored


def _resumed_state(
    old: Stored | None,
    parameters: Mapping[str, Any],
    tensor: SparseTensor,
    labels: Labels | None,
    covariates: UserCovariates | None,
    config: ModelConfig,
    targets: Sequence[Target],
) -> State | None:
    """The state of a checkpoint; None where there is none yet; an error where it is of another fit, or forged."""
    if old is None:
        return None
    reasons = what_changed(old, tensor, labels, covariates, parameters, config)
    if reasons and old.name == MANIFEST and old.meta["complete"]:
        raise ResumeError(
            f"there is no stopped fit in {old.folder} to continue: its model is complete, and differs from the "
            f"requested one ({'; '.join(reasons)}); replace it with --overwrite, or choose another folder"
        )
    if reasons:
        raise ResumeError(
            f"the fit in {old.folder} cannot be resumed: {'; '.join(reasons)}; "
            "give the same data and settings, or start again with --overwrite"
        )
    return _checked_state(old, tensor, config, targets)


def _checked_state(old: Stored, tensor: SparseTensor, config: ModelConfig, targets: Sequence[Target]) -> State:
    """The state that was stored; an error where it is forged."""
    state = read_state(old)
    check_stored_state(old.folder, old.name, tensor, config.rank, targets, state)
    return state
