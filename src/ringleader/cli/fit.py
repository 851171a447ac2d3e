"""``ringleader fit``: learn a model, with checkpoints."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli import completion
from ringleader.cli.evaluate import show
from ringleader.cli.models import KEEP, locked
from ringleader.cli.options import (
    Json,
    Keep,
    RayAddress,
    ReviewTable,
    Seed,
    TargetKindOption,
    Wait,
    WorkerCount,
    cluster_of,
)
from ringleader.cli.reading import InputTables, ReadingOptions, takes_reading_options, unknown_lines
from ringleader.cli.terminal import VERBOSITY, print_json, run_warnings, say_event, say_stopped
from ringleader.errors import DeviceError, SettingsError
from ringleader.runtime.machine import now
from ringleader.wording import counted, harmless, json_ready

if TYPE_CHECKING:
    from ringleader.detector import RingDetector
    from ringleader.known.covariates import UserCovariates
    from ringleader.learners.loop import Callback
    from ringleader.runtime.workers import Workers


@takes_reading_options
def command(
    reviews: ReviewTable,
    *,
    out: Annotated[str, typer.Option("--out", metavar="MODEL", help="Folder to write the model to.")],
    reading: ReadingOptions,
    preset: Annotated[
        str,
        typer.Option(
            "--preset", metavar="default|corrected|paper", autocompletion=completion.presets, help="Model variant."
        ),
    ] = "default",
    learner: Annotated[
        str,
        typer.Option(
            "--learner",
            metavar="natural-gradient|sgd|online-em",
            autocompletion=completion.learners,
            help="The learner.",
        ),
    ] = "natural-gradient",
    rank: Annotated[int | None, typer.Option("--rank", metavar="N", help="Number of components.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", metavar="N", help="Number of sweeps over the data.")] = None,
    seed: Seed = 0,
    contrast: Annotated[
        str | None,
        typer.Option(
            "--contrast",
            metavar="NAME",
            autocompletion=completion.modes,
            help="Mode whose entities the negatives replace.",
        ),
    ] = None,
    joint: Annotated[bool | None, typer.Option("--joint/--no-joint", help="Whether labels change the factors.")] = None,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="0.2", help="Share of the known accounts held out for evaluation.")
    ] = 0.0,
    covariates: Annotated[
        str | None,
        typer.Option("--covariates", metavar="FILE", help="Numbers about accounts: mode, entity, any columns."),
    ] = None,
    prevalence: Annotated[
        list[str] | None,
        typer.Option("--prevalence", metavar="P", help="Share of abusive accounts, or MODE=P; estimated if not given."),
    ] = None,
    heldout_reviews: Annotated[
        float,
        typer.Option("--heldout-reviews", metavar="0.1", help="Share of reviews held out to measure the likelihood."),
    ] = 0.0,
    patience: Annotated[
        int,
        typer.Option(
            "--patience", metavar="N", help="Stop after this many sweeps without a better held-out likelihood."
        ),
    ] = 0,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="auto|cpu|cuda",
            autocompletion=completion.devices,
            help="auto uses a GPU where it is faster.",
        ),
    ] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue a fit that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
    target_kind: TargetKindOption = "binary",
    keep: Keep = KEEP,
    wait: Wait = False,
    ray: RayAddress = None,
    workers: WorkerCount = None,
    as_json: Json = False,
) -> None:
    """Fit a model to reviews and, if available, known accounts.

    With --overwrite, the existing model stays in use until the new one is complete, and undo restores it.

    Example: ringleader fit reviews.parquet --labels labels.csv --out model
    """
    from ringleader.detector import RingDetector
    from ringleader.known.covariates import read_covariates
    from ringleader.learners.cluster import check_cluster
    from ringleader.model.config import ModelConfig
    from ringleader.runtime.workers import started
    from ringleader.snapshot.resume import check_place

    VERBOSITY.events = as_json and ray is not None and not VERBOSITY.quiet
    detector = RingDetector(
        preset=preset,
        learner=learner,
        rank=rank,
        epochs=epochs,
        contrast=contrast,
        joint=joint,
        holdout=holdout,
        prevalence=_prevalence(prevalence or []),
        heldout_reviews=heldout_reviews,
        patience=patience,
        threads=reading.threads,
        device=device,
        random_state=seed,
    )
    check_place(out, resume=resume, overwrite=overwrite)
    cluster = cluster_of(ray, workers)
    if cluster is not None:  # said before anything takes its time
        check_cluster(ModelConfig.preset(detector.preset, learner=detector.learner))
    with locked(out, "fit", wait=wait, create=True):
        check_place(out, resume=resume, overwrite=overwrite)  # whoever wrote while this one waited
        began = time.perf_counter()
        with run_warnings(quiet=as_json), started(cluster) as running:
            if VERBOSITY.events and running is not None:
                say_event("started", workers=running.count, threads=running.threads)
            tables = reading.read(reviews, target_kind=target_kind, quiet=as_json, runtime=running)
            if VERBOSITY.events:
                say_event("read", cells=tables.tensor.n_cells, seconds=round(time.perf_counter() - began, 3))
            known = read_covariates(covariates, encoding=reading.encoding) if covariates else None
            _learn(
                detector, tables, known, out, running, resume=resume, overwrite=overwrite, keep=keep, as_json=as_json
            )
    summary = _summary(detector, out, time.perf_counter() - began)
    summary |= {"rejected": tables.rejected, "warnings": tables.warnings}
    if as_json:
        print_json(summary)
    elif not VERBOSITY.quiet:
        _show(summary)


def _learn(
    detector: RingDetector,
    tables: InputTables,
    covariates: UserCovariates | None,
    out: str,
    runtime: Workers | None,
    *,
    resume: bool,
    overwrite: bool,
    keep: int,
    as_json: bool,
) -> None:
    """Fits with checkpoints, and says where a fit that is stopped can go on."""
    from ringleader.cli.progress import JsonEvents, Terminated, stop_signals, sweep_bar
    from ringleader.snapshot import learn
    from ringleader.snapshot.resume import has_checkpoint

    tensor = tables.tensor
    entries = tensor.n_cells * (1 + detector.model_config(tensor).negatives)
    try:
        count = 0 if runtime is None else runtime.count
        with stop_signals(), sweep_bar(entries, quiet=VERBOSITY.quiet or as_json, workers=count) as bar:
            shown = JsonEvents(entries, count) if VERBOSITY.events else bar
            callback: Callback = shown
            if runtime is not None:
                runtime.watch = shown.step
            detector.snapshot_, _ = learn(
                detector.get_params(),
                tensor,
                tables.labels,
                covariates,
                callback=callback,
                checkpoint=out,
                resume=resume,
                overwrite=overwrite,
                at=now(),
                keep=keep,
                runtime=runtime,
            )
    except DeviceError as failed:
        if has_checkpoint(out):
            raise DeviceError(f"{failed.message}; the progress so far is in {out}: continue with --resume") from failed
        raise
    except (KeyboardInterrupt, Terminated) as stopped:
        left = (
            f"the progress so far is in {out}; continue with --resume" if has_checkpoint(out) else "nothing was saved"
        )
        if isinstance(stopped, KeyboardInterrupt):
            raise KeyboardInterrupt(f"stopped; {left}") from None
        say_stopped(f"stopped; {left}", 143)
        raise


def _prevalence(texts: list[str]) -> float | dict[str, float] | None:
    """One share for all modes, or one for each that is named."""
    shares: dict[str, float] = {}
    for text in texts:
        mode, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            value = 0.0
        if not 0 < value < 1:
            raise SettingsError(f"--prevalence is {text!r}; give a share between 0 and 1, such as 0.05 or seller=0.05")
        if mode in shares:
            raise SettingsError(f"--prevalence is given twice{f' for {mode}' if mode else ''}; give it once")
        shares[mode] = value
    if "" in shares and len(shares) > 1:
        raise SettingsError("--prevalence names a share for all modes and others by name; give one or the other")
    return shares.get("", shares or None)


def _summary(detector: RingDetector, out: str, seconds: float) -> dict[str, Any]:
    from ringleader.evaluation.truth import evaluate
    from ringleader.judge.head import Head

    aligned = detector.aligned_
    last = detector.history_[-1] if detector.history_ else {}
    return {
        "model": out,
        "modes": dict(zip(detector.tensor_.modes, detector.tensor_.shape, strict=True)),
        "reviews": int(detector.tensor_.counts.sum()),
        "cells": detector.tensor_.n_cells,
        "labels": aligned.n_labels,
        "unknown_labels": dict(aligned.unknown),
        "preset": detector.preset,
        "learner": detector.learner,
        "rank": detector.config_.rank,
        "sweeps": detector.state_.sweep,
        "resumed_from": detector.resumed_from_,
        "device": detector.device_,
        "log_posterior": json_ready(last.get("log_posterior")),
        "heldout_log_likelihood": json_ready(last.get("heldout_log_likelihood")),
        "effective_rank": json_ready(last.get("effective_rank")),
        "heads": [
            {"mode": detector.tensor_.modes[target.mode], "target": target.name, "kind": head.kind, "note": head.note}
            | ({"prevalence": head.prevalence, "estimated": head.estimated} if isinstance(head, Head) else {})
            for target, head in zip(detector.targets_, detector.heads_ or (), strict=False)
            if len(target.codes)
        ],
        "unknown_covariates": dict(detector.user_columns_.unknown),
        "unused": _unused(detector),
        "order": detector.snapshot_.signals.order if detector.tensor_.rating_mode is None else None,
        "holdout": evaluate(detector, detector.heldout_) if detector.heldout_ is not None else [],
        "seconds": round(seconds, 3),
    }


def _unused(detector: RingDetector) -> list[str]:
    """Covariates and prevalences that could not be used, in words."""
    import numpy as np

    covariates, shares = detector.covariates_, detector.prevalence
    labelled = {detector.tensor_.modes[target.mode] for target in detector.targets_}
    if detector.preset != "default":
        asked = {"covariates": covariates is not None, "prevalence": shares is not None}
        return [f"--{name}: the preset {detector.preset} is without" for name, there in asked.items() if there]
    notes = []
    if covariates is not None:
        table = covariates.table
        notes += [f"column {name!r} of the covariates is empty" for name in table.columns if table[name].isna().all()]
        notes += [f"covariates of {mode}: no {mode} is labelled" for mode in _others(table["mode"], labelled)]
        for k, part in detector.user_columns_.modes.items():
            constant = [name for name, column in zip(part.names, part.values.T, strict=True) if np.ptp(column) == 0]
            where = f"of the covariates is the same for every {detector.tensor_.modes[k]}"
            notes += [f"column {name!r} {where}" for name in constant]
    if isinstance(shares, dict):
        notes += [f"--prevalence {mode}: no {mode} is labelled" for mode in _others(shares, labelled)]
    elif shares is not None and not labelled:
        notes.append("--prevalence: there are no labels")
    return notes


def _others(modes: Iterable[str], labelled: set[str]) -> list[str]:
    return sorted(set(modes) - labelled)


def _show(summary: dict[str, Any]) -> None:
    sizes = ", ".join(counted(n, harmless(mode)) for mode, n in summary["modes"].items())
    print(f"{counted(summary['cells'], 'distinct review')}: {sizes}")
    print(counted(summary["labels"], "label"))
    for what in ("labels", "covariates"):
        for line in unknown_lines(summary[f"unknown_{what}"], what):
            print(harmless(line, 200))
    for text in summary["unused"]:
        print(f"note: not used: {harmless(text, 200)}")
    if summary["order"]:
        print(f"note: without labels it sorts by {summary['order']}")
    for head in summary["heads"]:
        guess = f"; prevalence {head['prevalence']:.1%}, estimated" if head.get("estimated") else ""
        print(f"{harmless(head['mode'])} {harmless(head['target'])}: {head['note']}{guess}")
    if summary["holdout"]:
        print("\non the labels held out:")
        show(summary["holdout"])
        print()
    if summary["resumed_from"] is not None:
        print(f"resumed after sweep {summary['resumed_from']}")
    rank = f", effective rank {summary['effective_rank']:.1f} of {summary['rank']}" if summary["effective_rank"] else ""
    where = "" if summary["device"] == "cpu" else f" on {harmless(summary['device'])}"
    print(f"learned in {summary['seconds']:.1f} s: {counted(summary['sweeps'], 'sweep')}{where}{rank}")
    mode = "seller" if "seller" in summary["modes"] else next(iter(summary["modes"]))
    words = ["ringleader", "score", summary["model"], "--mode", mode]
    print(f"model written to {summary['model']}; next: {harmless(shlex.join(words), 400)}")
