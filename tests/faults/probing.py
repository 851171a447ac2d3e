"""What a stored model must do whatever was done to it: answer in finite numbers, or be refused in a sentence."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import ringleader as rl
from ringleader.errors import RingleaderError


def use(folder: Path) -> str:
    """Loads a model, asks it everything and updates it. ``answered`` or ``refused: ...``; anything else is raised."""
    try:
        model = rl.load(folder)
        labelled = bool(model.complete_ and model.labels_ is not None)
        for mode in model.tensor_.modes:
            scores = model.scores(mode)
            assert np.isfinite(scores["score"].astype(float)).all(), f"scores of {mode}"
            for name in ("probability", "lower", "upper"):
                if name in scores:
                    shares = scores[name].dropna().astype(float)
                    assert ((shares > 0) & (shares < 1)).all(), f"{name} of {mode}"
        if labelled and model.preset == "default":
            targets = {model.tensor_.modes[target.mode] for target in model.targets_}
            assert all(model.scores(mode)["probability"].notna().all() for mode in targets), "no probabilities"
        mode = model.tensor_.modes[-3]
        model.explain(mode, model.scores(mode)["entity"].iloc[0]).to_dict()
        model.cores()
        _ = model.snapshot_.signals.strangers, model.snapshot_.signals.lockstep, model.snapshot_.signals.reviews
        fresh = model.tensor_.decode().drop(columns="count", errors="ignore").iloc[:3]
        if model.complete_ and model.reading_:
            renamed = fresh.rename(columns={"week": "timestamp"})
            model.partial_fit(
                renamed, pd.DataFrame({"mode": [mode], "entity": [str(fresh[mode].iloc[0])], "label": [1]})
            )
            assert np.isfinite(model.scores(mode)["score"].astype(float)).all()
    except RingleaderError as error:
        return f"refused: {error}"
    return "answered"


def give_up_after(seconds: int) -> None:
    """SIGPROF comes when this process has computed for so many seconds, SIGALRM after ten times as long; 0 for never.

    A machine that is busy with others, or stops for a while, makes no finding.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(10 * seconds)


def in_a_child(call: Callable[[], str], seconds: int = 60) -> str:
    """The answer of a call in a process of its own; how that ended, where it did not answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        give_up_after(seconds)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = call()
        except BaseException:
            last = traceback.extract_tb(sys.exc_info()[2])[-1]
            said = f"failed: {sys.exc_info()[1]!r:.200} at {Path(last.filename).name}:{last.lineno}"
        os.write(writing, said.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return said or f"died: status {status}"
