"""Faults of the file system at every call of an operation, run under ``shim.c``.

``python injecting.py OPERATION FOLDER [STEP]`` runs the operation once to count its calls that change files; then, for
every n (or every STEP-th), once more from the same start with the n-th call failing, torn or fatal, each in a process
of its own. After each the folder must hold the old files or the new ones, whole; what is said must be a sentence.
Prints one JSON document: how many of each were tried, and what was wrong.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import ringleader as rl
from ringleader.cli.cores import write_cores
from ringleader.cli.rows import put_frame
from ringleader.datasets import marketplace
from ringleader.errors import RingleaderError
from ringleader.report import page
from ringleader.runtime.outputs import PARTIAL
from ringleader.snapshot import folder as store
from ringleader.snapshot import load, save, take_in, undo

KILL, TEAR = -1, -2
ACTIONS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "EROFS": errno.EROFS, "torn": TEAR}
ACTIONS |= {"EDQUOT": errno.EDQUOT, "ENAMETOOLONG": errno.ENAMETOOLONG, "SIGKILL": KILL}

WORDS = pa.table({"w": ["a", "b"]})
SHIM = ctypes.CDLL(None)
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
SHIM.fault_count.restype = ctypes.c_long

Operation = tuple[Callable[[Path], Any], Callable[[Path], Any]]
"""What prepares a folder, and what changes it."""


def tiny_save(place: Path, number: int) -> Any:
    """A folder of two parts, one of which changes."""
    state = {"a": np.full(50, float(number))}
    parts = [store.ModelPart("state", state, lambda: state), store.ModelPart("labels", WORDS, lambda: WORDS)]
    return store.save(place, {"complete": True, "number": number}, parts)


def operations(name: str, work: Path) -> Operation:
    if name == "store":
        return lambda place: tiny_save(place, 1), lambda place: tiny_save(place, 2)
    market = marketplace(1000, difficulty="easy", seed=3)
    labels = market.labels[market.labels["mode"] == "seller"]
    settings = {"rank": 2, "epochs": 2, "threads": 1}
    model = work / "model"
    if name in ("update", "undo", "overwriting fit", "outputs"):
        rl.RingDetector(**settings).fit(market.reviews[:800], labels).save(model)
    if name == "update":
        snapshot, _ = load(model)
        taken = take_in(snapshot, market.reviews[800:], None)
        taken.snapshot.judge.heads()
        save(taken.snapshot, work / "first")  # what follows is found once
        return lambda place: shutil.copytree(model, place), lambda place: save(taken.snapshot, place, load(place)[1])
    if name == "undo":
        rl.load(model).partial_fit(None, labels.assign(label=1 - labels["label"])).save(work / "other")
        changed = rl.load(model)
        changed.partial_fit(None, labels.assign(label=1 - labels["label"]))
        changed.save(model)
        return lambda place: shutil.copytree(model, place), undo
    if name == "fit":
        return lambda place: None, lambda place: rl.RingDetector(**settings).fit(
            market.reviews, labels, checkpoint=place
        )
    if name == "overwriting fit":
        return (
            lambda place: shutil.copytree(model, place),
            lambda place: rl.RingDetector(**settings).fit(market.reviews, checkpoint=place),
        )
    if name == "generate":
        return lambda place: market.write(place), lambda place: marketplace(1000, seed=4).write(place, overwrite=True)
    assert name == "outputs"
    detector = rl.load(model)
    text, scores, cores = page(detector), detector.scores("reviewer"), detector.cores()

    def write(place: Path, *, newer: bool) -> None:
        from ringleader import report

        report.page = lambda model: text if newer else text[:5000]
        report.write_report(detector, place / "report.html")
        for kind in (".csv", ".parquet", ".jsonl"):
            put_frame(scores if newer else scores[:3], str(place / f"scores{kind}"), raw=False)
        write_cores(cores, detector.tensor_, str(place / "cores"), raw=False)

    return lambda place: write(place, newer=False), lambda place: write(place, newer=True)


def contents(folder: Path) -> dict[str, str]:
    """Files under final names, by their content; a manifest without its times, which differ from run to run."""
    if not folder.is_dir():
        return {}
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not PARTIAL.fullmatch(path.name) and path.name != ".lock":
            data = path.read_bytes()
            if path.suffix == ".json":
                manifest = json.loads(data)
                manifest["meta"]["batches"] = [{**b, "at": None} for b in manifest["meta"].get("batches", [])]
                data = json.dumps([manifest["meta"], manifest["files"]], sort_keys=True).encode()
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def wrong(name: str, place: Path, old: dict[str, str], new: dict[str, str]) -> str | None:
    """What is wrong with a folder behind a fault, if anything is."""
    now = contents(place)
    if name in ("generate", "outputs"):
        half = [file for file, content in now.items() if content not in (old.get(file), new.get(file))]
        return f"half files {half}" if half else None
    if store.MANIFEST not in now:
        return None if not old and store.is_free(place) else "no manifest"
    try:
        store.load(place).verify()
        if name != "store":
            rl.load(place).scores("seller")
    except RingleaderError as error:
        return f"unreadable: {error}"
    if name != "fit" and now[store.MANIFEST] not in (old.get(store.MANIFEST), new[store.MANIFEST]):
        return "neither the old model nor the new one"
    return None


def in_a_child(call: Callable[[], Any], arm: tuple[str, int, int]) -> tuple[str, int]:
    """How a call ended that was faulted, and how many calls it made."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            SHIM.fault_arm(arm[0].encode(), arm[1], arm[2])
            call()
            said = "done"
        except RingleaderError as error:
            said = f"said: {error}"
        except BaseException as error:
            said = f"failed: {error!r}"
        number = SHIM.fault_count()
        SHIM.fault_arm(b"", 0, 0)
        os.write(writing, json.dumps([said[:500], number]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    said, number = json.loads(text) if text else (f"killed {os.waitstatus_to_exitcode(status)}", 0)
    return said, number


def main() -> None:
    name, work, step = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    prepare, change = operations(name, work)
    place = work / "place"

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        prepare(place)

    fresh()
    old = contents(place)
    said, calls = in_a_child(lambda: change(place), (str(place), 0, 0))
    assert said == "done", said
    new = contents(place)
    tried: Counter[str] = Counter()
    faults = []
    for n in range(1, calls + 1, step):
        for action, code in ACTIONS.items():
            fresh()
            said, _ = in_a_child(lambda: change(place), (str(place), n, code))
            tried[action] += 1
            problem = wrong(name, place, old, new)
            if said.startswith("failed") or (action == "SIGKILL") != said.startswith("killed"):
                problem = f"{problem or ''} it {said}"
            elif said == "done" and contents(place).get(store.MANIFEST) != new.get(store.MANIFEST):
                problem = "it said done, and the old model is there"
            if problem is None and name in ("store", "update", "generate", "outputs"):
                change(place)  # once more, without a fault
                left = {file: content for file, content in contents(place).items() if content != new.get(file)}
                numbered = name in ("store", "update")  # by then the number of the generation is another
                problem = f"a second attempt left {left}" if left and not numbered else None
                partial = [file.name for file in place.rglob(".*") if PARTIAL.fullmatch(file.name)]
                problem = f"a second attempt left {partial}" if partial else problem
            if problem:
                faults.append(f"call {n} of {calls}, {action}: {problem}")
    print(json.dumps({"operation": name, "calls": calls, "tried": tried, "wrong": faults}))


if __name__ == "__main__":
    main()
