"""Faults of the file system at every call of an operation, run under ``shim.c``.

``python injecting.py OPERATION FOLDER [STEP [BUG]]`` runs the operation once to count its calls that change files;
then, for every n (or every STEP-th), from the same start with the n-th call failing, torn or fatal, each in a process
of its own. After each the folder must hold the old files or the new ones, whole; what is said must be a sentence; and
the operation, repeated without a fault, must end as if there had been none. BUG plants one, to see it found.
STEP 0 only counts, between two marks that a tracer sees. Prints one JSON document: how many of each were tried, and
what was wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import os
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ringleader as rl
from ringleader import report
from ringleader.cli.app import app
from ringleader.cli.cores import write_cores
from ringleader.cli.rows import put_frame
from ringleader.console.decisions import DecisionStore, Draft
from ringleader.datasets import marketplace
from ringleader.errors import RingleaderError
from ringleader.runtime import outputs
from ringleader.snapshot import folder as store
from ringleader.snapshot import load, save, take_in, undo
from ringleader.snapshot import place as places

KILL, TEAR = -1, -2
EVERY = {"ENOSPC": errno.ENOSPC, "torn": TEAR, "SIGKILL": KILL}
"""What happens to every call: no space, block or inode left; half of a write; the end of the process."""
IN_TURN = {"EIO": errno.EIO, "EACCES": errno.EACCES, "EROFS": errno.EROFS}
IN_TURN |= {"EDQUOT": errno.EDQUOT, "ENAMETOOLONG": errno.ENAMETOOLONG}
"""One of these happens to each call too, in turn."""

WORDS = pa.table({"w": ["a", "b"]})
SHIM = ctypes.CDLL(None)
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
SHIM.fault_count.restype = SHIM.fault_names.restype = ctypes.c_long


class Operation(NamedTuple):
    """prepare : what makes a folder. change : what is done to it. again : what is done after a fault, if another.

    same_bits : whether the folder is then as if there had been no fault, to the bit; else it only works
    """

    prepare: Callable[[Path], Any]
    change: Callable[[Path], Any]
    again: Callable[[Path], Any] | None = None
    same_bits: bool = True


def tiny_save(place: Path, number: int) -> Any:
    """A folder of two parts, one of which changes."""
    state = {"a": np.full(50, float(number))}
    parts = [store.ModelPart("state", state, lambda: state), store.ModelPart("labels", WORDS, lambda: WORDS)]
    return store.save(place, {"complete": True, "number": number}, parts)


def nothing(place: Path) -> None:
    """The start of operations that make their folder."""


def operations(name: str, work: Path) -> Operation:
    if name == "store":
        return Operation(lambda place: tiny_save(place, 1), lambda place: tiny_save(place, 2), same_bits=False)
    market = marketplace(1000, difficulty="easy", seed=3)
    reviews = market.reviews[:400]
    labels = market.labels[(market.labels["mode"] == "seller") & (market.labels["target"] == "abuse")]
    labels = labels[labels["entity"].isin(reviews["seller"])]
    settings = {"rank": 2, "epochs": 1, "threads": 1}
    model = work / "model"
    if name == "generate":
        newer = marketplace(1000, seed=4)
        return Operation(lambda place: market.write(place), lambda place: newer.write(place, overwrite=True))
    detector = rl.RingDetector(**settings).fit(reviews, labels)  # children find the kernels compiled
    detector.scores("seller")
    if name == "fit":
        return Operation(
            nothing,
            lambda place: rl.RingDetector(**settings).fit(reviews, labels, checkpoint=place),
            lambda place: rl.RingDetector(**settings).fit(reviews, labels, checkpoint=place, resume=True),
        )
    detector.save(model)

    def copied(place: Path) -> None:
        shutil.copytree(model, place)

    if name == "fit --overwrite":

        def fit(place: Path, resume: bool) -> None:
            resume = resume and (place / store.UNFINISHED).exists()
            rl.RingDetector(**settings).fit(reviews[:300], checkpoint=place, resume=resume)

        return Operation(copied, lambda place: fit(place, False), lambda place: fit(place, True), same_bits=False)
    if name == "update":
        taken = take_in(load(model)[0], market.reviews[400:500], None)
        taken.snapshot.judge.heads()
        save(taken.snapshot, work / "first")  # what follows is found once

        def update(place: Path) -> None:
            if len(load(place)[0].batches) == 1:  # as the command does: a batch it has seen changes nothing
                save(taken.snapshot, place, load(place)[1])

        return Operation(copied, update)
    if name == "undo":
        changed = rl.load(model).partial_fit(None, labels.assign(label=1 - labels["label"]))
        changed.save(model)

        def back(place: Path) -> None:
            if len(load(place)[0].batches) == 2:
                undo(place)

        return Operation(copied, back)
    if name == "decide":

        def decide(place: Path, number: int) -> None:
            decisions = DecisionStore(place)
            decisions.append([Draft("seller", f"s{number}", "abuse", "bad")], key=f"key-{number}", who="me")
            decisions.close()

        def first(place: Path) -> None:
            place.mkdir()
            decide(place, 1)

        return Operation(first, lambda place: decide(place, 2), same_bits=False)
    if name == "decisions":
        decisions = DecisionStore(model)
        decisions.append([Draft("seller", "s1", "abuse", "bad")], key="key-1", who="me")
        decisions.close()

        def write(place: Path) -> None:
            app(["decisions", str(model), "--output", str(place / "labels.csv")], standalone_mode=False)

        return Operation(_a_file("labels.csv"), write)
    if name == "report":
        text = report.page(detector)
        report.page = lambda model, since=None: text
        return Operation(_a_file("report.html"), lambda place: report.write_report(detector, place / "report.html"))
    if name == "cores":
        sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
        from test_cores import cores_of, gang
        from test_cores import market as with_gangs

        tensor = with_gangs(gang("ring", (4, 5), 3), gang("mob", (1, 2), 3, first=50, people=11))
        found = cores_of(tensor)
        assert len(found) > 1
        other = with_gangs(gang("gang", (4, 5), 3))
        write_cores(cores_of(other), other, str(work / "old"), raw=False)
        return Operation(
            lambda place: shutil.copytree(work / "old", place),
            lambda place: write_cores(found, tensor, str(place), raw=False),
        )
    kind = name.removeprefix("score ")
    scores = detector.scores("reviewer")
    return Operation(
        _a_file(f"scores{kind}"), lambda place: put_frame(scores, str(place / f"scores{kind}"), raw=False) and None
    )


def _a_file(name: str) -> Callable[[Path], None]:
    """Makes a folder with an old file."""

    def prepare(place: Path) -> None:
        place.mkdir()
        (place / name).write_bytes(b"old")

    return prepare


@contextlib.contextmanager
def in_place(path: Any) -> Iterator[Path]:
    """``whole_file`` with a bug: it writes over the file that is there."""
    yield Path(path)


def plant(bug: str) -> None:
    """Bugs that must be found."""
    if bug == "outputs in place":
        for module in ("runtime.outputs", "report", "cores.tables", "datasets.marketplace.generate"):
            importlib.import_module(f"ringleader.{module}").whole_file = in_place  # type: ignore[attr-defined]
    elif bug == "manifest in place":
        beside = places.temporary_beside
        places.temporary_beside = lambda target: target if target.name == store.MANIFEST else beside(target)
    elif bug == "parts of one name":
        store.NUMBERED = store.re.compile("nothing(1)")
    elif bug == "faults in silence":
        really = store.save

        def silent(*words: Any, **named: Any) -> Any:
            with contextlib.suppress(RingleaderError):
                return really(*words, **named)

        store.save = silent
    else:
        raise AssertionError(bug)


def contents(folder: Path) -> dict[str, str]:
    """Files under final names, by their content; a manifest without its times, which differ from run to run."""
    if not folder.is_dir():
        return {}
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not outputs.PARTIAL.fullmatch(path.name) and path.name != ".lock":
            data = path.read_bytes()
            if path.suffix == ".json":
                with contextlib.suppress(ValueError):  # else it is damaged, as its bytes say
                    manifest = json.loads(data)
                    manifest["meta"]["batches"] = [{**b, "at": None} for b in manifest["meta"].get("batches", [])]
                    data = json.dumps([manifest["meta"], manifest["files"]], sort_keys=True).encode()
            elif path.suffix == ".xlsx" and zipfile.is_zipfile(path):  # its properties hold the time of writing
                with zipfile.ZipFile(path) as packed:
                    data = b"".join(packed.read(n) for n in sorted(packed.namelist()) if "docProps" not in n)
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def parts(place: Path) -> dict[str, str]:
    """The checksum of every part of a model."""
    return {part: entry["sha256"] for part, entry in store.load(place).files.items()}


def wrong(name: str, place: Path, old: dict[str, str], new: dict[str, str]) -> str | None:
    """What is wrong with a folder behind a fault, if anything is."""
    if name == "decide":
        decisions = DecisionStore(place)
        decided = {event.entity for event in decisions.events()}
        decisions.close()
        return None if decided in ({"s1"}, {"s1", "s2"}) else f"decided are {decided}"
    now = contents(place)
    if name.split()[0] in ("generate", "report", "score", "cores", "decisions"):
        half = [file for file, content in now.items() if content not in (old.get(file), new.get(file))]
        lost = [file for file in old if file in new and file not in now]
        return f"half files {half}, lost {lost}" if half or lost else None
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
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


def marked(call: Callable[[], Any]) -> None:
    """A call between two that do nothing, and the number of its calls that change a name as what went wrong."""
    Path("/ringleader-begins").exists()
    call()
    Path("/ringleader-ends").exists()
    raise RingleaderError(str(SHIM.fault_names()))


def after(operation: Operation, name: str, place: Path, new: dict[str, str]) -> str | None:
    """What is wrong once the operation was repeated without a fault."""
    said, _ = in_a_child(lambda: (operation.again or operation.change)(place), ("", 0, 0))
    if said != "done":
        return f"a second attempt {said}"
    left = [file.name for file in place.rglob(".*") if file.name != ".lock"]  # who holds it is known by the system
    if left:
        return f"a second attempt left {left}"
    if operation.same_bits and name in ("fit", "update", "undo"):
        now = parts(place)
        named = {entry.get("sha256") for entry in store.load(place).files.values()}
        return None if now == NEW_PARTS and named else "a second attempt ended in other bits"
    if operation.same_bits:
        odd = [file for file, content in contents(place).items() if content != new.get(file)]
        return f"a second attempt left {odd}" if odd else None
    return None


NEW_PARTS: dict[str, str] = {}


def main() -> None:
    name, work, step = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    operation = operations(name, work)
    if len(sys.argv) > 4:
        plant(sys.argv[4])
    place = work / "place"

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        operation.prepare(place)

    fresh()
    if step == 0:
        print(json.dumps(in_a_child(lambda: marked(lambda: operation.change(place)), (str(place), 0, 0))[0]))
        return
    old = contents(place)
    said, calls = in_a_child(lambda: operation.change(place), (str(place), 0, 0))
    assert said == "done", said
    new = contents(place)
    if store.MANIFEST in new:
        NEW_PARTS.update(parts(place))
    tried: Counter[str] = Counter()
    sentences: Counter[str] = Counter()
    faults = []
    for n in range(1, calls + 1, step):
        turn = list(IN_TURN)[n // step % len(IN_TURN)]
        for action, code in {**EVERY, turn: IN_TURN[turn]}.items():
            fresh()
            said, _ = in_a_child(lambda: operation.change(place), (str(place), n, code))
            tried[action] += 1
            sentences[said.replace(str(place), "PLACE")[:160]] += 1
            problem = wrong(name, place, old, new)
            if said.startswith("failed") or (action == "SIGKILL") != said.startswith("killed"):
                problem = f"{problem or ''} it {said}"
            elif said == "done" and name != "decide" and contents(place).get(store.MANIFEST) != new.get(store.MANIFEST):
                problem = "it said done, and the old model is there"
            problem = problem or after(operation, name, place, new)
            if problem:
                faults.append(f"call {n} of {calls}, {action}: {problem}")
    print(json.dumps({"operation": name, "calls": calls, "tried": tried, "wrong": faults, "said": sentences}))


if __name__ == "__main__":
    main()
